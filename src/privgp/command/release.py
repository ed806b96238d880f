"""``privgp release``: spend the budget once and write what may be published."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from sklearn.base import clone

from privgp.command.errors import Failure, Refusal
from privgp.command.io.columns import in_the_middle, output_column
from privgp.command.io.request import Request, make_plan, public_computation
from privgp.command.io.results import Results
from privgp.command.io.screen import Step, progress, say_json
from privgp.command.io.streams import file_rows
from privgp.command.io.tables import Source, check_lines, load, open_table
from privgp.models.inducing import fit_rows
from privgp.models.load import save
from privgp.models.regressor import PrivateGPRegressor
from privgp.plan.bins.records import RecordsPlan
from privgp.plan.preview import Plan
from privgp.storage.parts import part_beside


def run_release(request: Request, results: Results, *, force: bool, as_json: bool) -> None:
    """Check everything, then spend, then write."""
    request.check()
    if request.output is None:
        raise Refusal("--output must name the private column.")
    results.check(request.data, force=force)
    with progress(2) as step:
        step("Reading the table")
        source = open_table(request.data)
        if request.inducing is not None:
            measure = _from_file(request, source, results.release, step)
        else:
            measure = _from_memory(request, source, results.release, step)
    with spending(request) as saved:
        with progress(3) as step:
            step("Measuring with noise and learning from the measurement")
            with np.errstate(all="ignore"):
                model = measure()
            del measure  # it holds the outputs
            results.write(model, request.output, saved, step, force=force)
        if as_json:
            facts = results.facts(model.guarantee_, request)
            say_json(facts, simulation=model.guarantee_.is_simulation)
        else:
            results.tell(model.guarantee_, request)


Measure = Callable[[], PrivateGPRegressor]


def _from_memory(request: Request, source: Source, path: Path, step: Step) -> Measure:
    """Load and check a table, plan and rehearse; what is handed back spends."""
    assert request.output is not None
    frame = load(source, [*request.public_names, request.output])
    check_lines(source, frame.height)
    X, people = request.columns(frame, source)
    y = output_column(frame, request.output, source)
    model = request.model()
    step("Planning and rehearsing")
    plan = make_plan(model, X, people)
    rehearse(model, X, people, path, plan)
    return lambda: model.fit(X, y, people, plan)


def _from_file(request: Request, source: Source, path: Path, step: Step) -> Measure:
    """The same for a table that is read in parts; the rehearsal is for its first rows."""
    output = request.output
    assert output is not None
    rows = file_rows(source, request.input_names, output)
    check_lines(source, rows.count)
    model = request.model()
    model.n_features_in_ = rows.columns
    model.feature_names_in_ = np.array(rows.names, dtype=object)
    step("Planning and rehearsing")
    first = pl.DataFrame(next(rows.blocks()), schema=request.input_names, orient="row")
    rehearse(model, first, None, path, make_plan(model, first, None))

    def measure() -> PrivateGPRegressor:
        fit_rows(model, rows, rows.with_outputs(output))
        return model

    return measure


def rehearse(
    model: PrivateGPRegressor,
    X: pl.DataFrame,
    people: Any,
    path: Path,
    plan: Plan | RecordsPlan | None = None,
) -> None:
    """Release nobody's values, measured as planned, to a file that is then removed.

    A release that cannot be saved would have spent its budget for nothing, so whatever stops one
    (a full disk, a name that the format cannot hold) should stop this one first. It learns nothing,
    which keeps it short.
    """
    trial = clone(model).set_params(hyperparameters="fixed", random_state=0)
    low, high = model.y_bounds
    if model.protect == "records":  # private inputs stay out of it too
        X = in_the_middle(model.x_bounds, X)
    try:
        with public_computation(), part_beside(path, ending=path.suffix) as part:
            trial.fit(X, np.full(X.height, 0.5 * low + 0.5 * high), people, plan)
            save(trial, part, overwrite=True)
    except OSError:
        raise Refusal(f"'{path}' cannot be written there; nothing was spent.") from None


@contextmanager
def spending(request: Request) -> Iterator[list[Path]]:
    """From here on the budget counts as spent, whatever happens; errors say so and nothing else.

    Yields a list to note the release in once it is written.
    """
    saved: list[Path] = []
    spent = f"count epsilon = {request.epsilon:g}, delta = {request.delta:g} as spent."
    try:
        yield saved
    except (KeyboardInterrupt, Exception) as problem:
        stopped = "Interrupted" if isinstance(problem, KeyboardInterrupt) else "Failed"
        if saved:
            what = f"{stopped} after '{saved[0]}' was written, which is complete; {spent}"
        else:
            what = f"{stopped} after noise may have been drawn, and nothing was released; {spent}"
        raise Failure(what) from None
