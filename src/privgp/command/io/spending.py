"""Before a release: read, plan and rehearse. From then on: say what is spent if something stops it."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from sklearn.base import clone

from privgp.command.errors import Failure, refusal, refusing, stopped
from privgp.command.io.columns import file_rows, made_up
from privgp.command.io.request import Request, make_plan, public_computation
from privgp.command.io.screen import Step
from privgp.command.io.tables import check_lines
from privgp.ledger.errors import LedgerError
from privgp.models.kinds.inducing import fit_rows
from privgp.models.load import save
from privgp.storage.parts import part_beside
from privgp.types import Array

Measure = Callable[[], Any]


def prepared(request: Request, output: str, path: Path, step: Step) -> Measure:
    """Read the table, plan and rehearse; what is handed back spends."""
    step("Reading the table")
    if request.in_parts:
        return _prepared_in_parts(request, output, path, step)
    X, people, y = request.all_columns(output)
    model, exposures = request.model(), request.exposures()
    step("Planning and rehearsing")
    plan = request.plan or request.named(make_plan(model, X, people, exposures))
    rehearse(model, X, people, path, plan, request.plan_path, exposures)
    return lambda: model.fit(X, y, people, plan, **exposures)


def _prepared_in_parts(request: Request, output: str, path: Path, step: Step) -> Measure:
    """The same for a table that is read in parts."""
    source = request.source()
    rows = file_rows(source, request.input_names, output)
    check_lines(source, rows.count)
    model = request.model()
    step("Planning and rehearsing")
    plan = request.plan or request.named(make_plan(model, rows, None))
    middle = 0.5 * plan.y_bounds[0] + 0.5 * plan.y_bounds[1]
    with rehearsal(model, path, request.plan_path) as trial:
        for each in (model, trial):
            each.n_features_in_ = rows.columns
            each.feature_names_in_ = np.array(rows.names, dtype=object)
        fit_rows(trial, rows, ((X, np.full(len(X), middle)) for X in rows.blocks()), plan=plan)

    def measure() -> Any:
        fit_rows(model, rows, rows.with_outputs(output), plan=plan)
        return model

    return measure


def rehearse(
    model: Any,
    X: pl.DataFrame,
    people: Any,
    path: Path,
    plan: Any = None,
    plan_path: Path | None = None,
    exposures: Mapping[str, Array] | None = None,
) -> None:
    """Release made-up values, measured as planned."""
    with rehearsal(model, path, plan_path) as trial:
        inputs = made_up(X, model.x_bounds, (0.0, 1.0))[0]
        trial.fit(inputs, model._made_up(X.height), people, plan, **(exposures or {}))


@contextmanager
def rehearsal(model: Any, path: Path, plan_path: Path | None) -> Iterator[Any]:
    """A model to fit to made-up values, which is then saved to a file that is removed: whatever
    would stop a release from being saved, after its budget is spent, should stop this one first."""
    trial = clone(model).set_params(hyperparameters="fixed", ledger=None, random_state=0)
    with (
        refusing(f"'{path}' cannot be written there; nothing was spent.", OSError),
        public_computation(plan=f"'{plan_path}'"),
        part_beside(path, ending=path.suffix) as part,
    ):
        yield trial
        save(trial, part, overwrite=True)


@contextmanager
def spending(epsilon: float, delta: float) -> Iterator[list[Path]]:
    """From here on the budget counts as spent, whatever happens; errors say so and nothing else.
    Yields a list to note the release in once it is written."""
    saved: list[Path] = []
    spent = f"count epsilon = {epsilon:g}, delta = {delta:g} as spent."
    try:
        with np.errstate(all="ignore"):
            yield saved
    except LedgerError as problem:  # raised before anything is drawn
        raise refusal(problem) from None
    except (KeyboardInterrupt, Exception) as problem:
        what = "noise may have been drawn, and nothing was released"
        if saved:
            what = f"'{saved[0]}' was written, which is complete"
        raise Failure(f"{stopped(problem)} after {what}; {spent}") from None
