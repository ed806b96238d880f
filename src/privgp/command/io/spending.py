"""Before a release: read, plan and rehearse. From then on: say what is spent if something stops it."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from sklearn.base import clone

from privgp.command.errors import Failure, refusal, refuse_on, stop_phrase
from privgp.command.io.request import Request, make_plan, public_computation
from privgp.command.io.screen import Step, show_blocks
from privgp.ledger.errors import LedgerError
from privgp.models.files import fit_table, is_read_in_blocks, rehearse_table
from privgp.models.load import save
from privgp.models.tables import rehearsal_inputs
from privgp.storage.parts import part_beside
from privgp.tables.parser import TableError
from privgp.types import Array

Measure = Callable[[], Any]


def prepare_release(request: Request, output: str, path: Path, step: Step) -> Measure:
    """Read the table, plan and rehearse; what is handed back spends."""
    step("Reading the table")
    if request.in_parts:
        return _prepare_in_parts(request, output, path, step)
    X, people, y = request.all_columns(output)
    model, exposures = request.model(), request.exposures()
    step("Planning and rehearsing")
    plan = request.plan or request.with_column_names(make_plan(model, X, people, exposures))
    rehearse(model, X, people, path, plan, request.plan_path, exposures)

    def measure() -> Any:
        request.source.files.refuse_changes()
        return model.fit(X, y, groups=people, plan=plan, **exposures)

    return measure


def _prepare_in_parts(request: Request, output: str, path: Path, step: Step) -> Measure:
    """The same for a table that is read in parts."""
    table, model = request.table(output), request.model()
    step("Planning and rehearsing")
    plan = request.plan or request.with_column_names(make_plan(model, table.inputs, table.groups))
    with rehearsal(model, path, request.plan_path) as trial:
        trial.n_features_in_ = len(table.inputs.names)
        trial.feature_names_in_ = np.array(table.inputs.names, dtype=object)
        rehearse_table(trial, table, plan)

    outputs: Any = table.output

    def measure() -> Any:
        if not is_read_in_blocks(table.inputs, model):
            return model.fit(table.inputs, outputs, groups=table.groups, plan=plan)
        with show_blocks() as watch:
            fit_table(model, table.inputs, outputs, table.groups, plan, watch)
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
        inputs, values = rehearsal_inputs(model, X), model._rehearsal_outputs(X.height)
        trial.fit(inputs, values, groups=people, plan=plan, **(exposures or {}))


@contextmanager
def rehearsal(model: Any, path: Path, plan_path: Path | None) -> Iterator[Any]:
    """A model to fit to made-up values, which is then saved to a file that is removed: whatever
    would stop a release from being saved, after its budget is spent, should stop this one first."""
    trial = clone(model).set_params(hyperparameters="fixed", ledger=None, random_state=0)
    with (
        refuse_on(f"'{path}' cannot be written there; nothing was spent.", OSError),
        public_computation(plan=f"'{plan_path}'"),
        part_beside(path, ending=path.suffix) as part,
    ):
        yield trial
        save(trial, part, overwrite=True)


@contextmanager
def guard_budget(epsilon: float, delta: float) -> Iterator[list[Path]]:
    """From here on the budget counts as spent, whatever happens; errors say so and nothing else.
    Yields a list to note the release in once it is written."""
    saved: list[Path] = []
    spent = f"count epsilon = {epsilon:g}, delta = {delta:g} as spent."
    try:
        with np.errstate(all="ignore"):
            yield saved
    except (LedgerError, TableError) as problem:  # raised before anything is drawn
        raise refusal(problem) from None
    except (KeyboardInterrupt, Exception) as problem:
        what = "noise may have been drawn, and nothing was released"
        if saved:
            what = f"'{saved[0]}' was written, which is complete"
        raise Failure(f"{stop_phrase(problem)} after {what}; {spent}") from None
