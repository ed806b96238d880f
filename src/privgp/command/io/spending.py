"""Before a release or an update: read, plan and rehearse. From then on: say what is spent if something stops it."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import polars as pl
from sklearn.base import clone

from privgp.command.errors import Failure, refusal, refuse_on, stop_phrase
from privgp.command.io.columns import as_table, input_names, with_names
from privgp.command.io.files import open_own
from privgp.command.io.request import KnownRequest, People, Request, make_plan, public_computation
from privgp.command.io.screen import Step, show_blocks
from privgp.errors import LedgerError, TableError
from privgp.models.load import load, save
from privgp.models.published import Published
from privgp.models.rows.files import fit_in_place, rehearse_table
from privgp.models.rows.fit import NOTHING, Aside, row_count
from privgp.models.rows.tables import rehearsal_inputs, remember
from privgp.models.rows.updates import (
    KINDS,
    MEASURED,
    OTHER_RECORDS,
    OTHER_ROWS,
    OTHER_UNIT,
    WHICH_RECORDS,
    check_updatable,
    measure_further,
)
from privgp.plan.inputs.inputs import Inputs
from privgp.plan.plan import Plan
from privgp.release.certificate.wording import at_most, error_unit
from privgp.storage.parts import part_beside
from privgp.tables.cells import Kinds
from privgp.types import Array, UserData

Measure = Callable[[], Published]


def prepare_release(request: Request, path: Path, step: Step) -> Measure:
    """Read the table, plan and rehearse; what is handed back spends."""
    step("Reading the table")
    if request.in_parts:
        return _prepare_in_parts(request, path, step)
    X, people, y = request.all_columns()
    model, exposures, weights = request.model(), request.exposures(), request.private_weights()
    simulated = exposures if weights is None else {"sample_weight": np.ones(X.height)}
    step("Planning and rehearsing")
    rows = X.height if request.inputs_are_private else X
    plan = request.plan or request.with_column_names(make_plan(model, rows, people, exposures))
    rehearse(model, X, people, path, plan, request.plan_path, simulated)

    def measure() -> Published:
        request.source.files.refuse_changes()
        if weights is not None:  # of private records, which have no exposures
            return model.fit(X, y, groups=people, plan=plan, sample_weight=weights)  # type: ignore[no-any-return]
        fitted: Published = model.fit(X, y, groups=people, plan=plan, **exposures)
        return fitted

    return measure


def _prepare_in_parts(request: Request, path: Path, step: Step) -> Measure:
    """The same for a table that is read in parts."""
    table, model = request.table(private=True), request.model()
    step("Planning and rehearsing")
    plan = request.plan or request.with_column_names(make_plan(model, table.inputs, table.groups))
    with rehearsal(clone(model), path, request.plan_path) as trial:
        remember(trial, table.inputs.names, len(table.inputs.names))
        rehearse_table(trial, table, plan)

    outputs: UserData = table.output

    def measure() -> Published:
        if not table.inputs.stays(model):
            return model.fit(table.inputs, outputs, groups=table.groups, plan=plan)  # type: ignore[no-any-return]
        with show_blocks() as watch:
            fit_in_place(
                model,
                table.inputs,
                outputs,
                table.groups,
                plan,
                table.inputs.choose_aside(NOTHING),
                watch,
            )
        return model

    return measure


def rehearse(
    model: Published,
    X: pl.DataFrame,
    people: People,
    path: Path,
    plan: Plan | None = None,
    plan_path: Path | None = None,
    exposures: Mapping[str, Array] | None = None,
) -> None:
    """Release simulated values, measured as planned."""
    with rehearsal(clone(model), path, plan_path) as trial:
        inputs, values = rehearsal_inputs(model, X), model._rehearsal_outputs(X.height)
        trial.fit(inputs, values, groups=people, plan=plan, **(exposures or {}))


@contextmanager
def rehearsal(trial: Published, path: Path, plan_path: Path | None = None) -> Iterator[Published]:
    """A model to fit to simulated values, which is then saved to a file that is removed: whatever
    would stop a release from being saved, after its budget is spent, should stop this one first."""
    trial.set_params(hyperparameters="fixed", ledger=None, random_state=0)
    with (
        refuse_on(f"'{path}' cannot be written there; nothing was spent.", OSError),
        public_computation(plan=f"'{plan_path}'"),
        part_beside(path, ending=path.suffix) as part,
    ):
        yield trial
        save(trial, part, overwrite=True)


@contextmanager
def guard_budget(epsilon: float, delta: float) -> Iterator[list[Path]]:
    """From here on the budget counts as spent, whatever happens; errors state this and nothing else.
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


def spent_sentence(model: Published) -> str:
    """What was spent, what that means for one person, and the error to expect."""
    promised, plan = model.guarantee_, vars(model).get("plan_")
    right = at_most(50.0 + 50.0 * promised.delta_at(0.0))
    said = (
        f"Spent: epsilon = {promised.epsilon:g}, delta = {promised.delta:g}. Anyone who has to guess which of "
        f"two values is true is right at most {right}% of the time; a coin toss is right 50%."
    )
    if plan is None:
        return said
    errors = ", ".join(f"{each:.4g}" for each in np.atleast_1d(plan.expected_error()))
    return f"{said} Expected error: {errors} {error_unit(plan.error_unit, vars(model).get('output_'))}."


Further = tuple[float, float] | None  # a further budget for the same rows; None for new people

# What the library refuses, in words of this command.
IN_OPTIONS = {
    KINDS: "FILE cannot be updated: it must be a release made without --reconstruct unbiased. Nothing was spent.",
    MEASURED: "The rows of DATA were measured already: if they are the same people, give --same-rows. "
    "Nothing was spent.",
    OTHER_ROWS: "With --same-rows, DATA must be the rows of FILE or of one of its updates, in the same "
    "order: leave it out for new people. Nothing was spent.",
    OTHER_RECORDS: "With --same-rows, DATA must have as many records, or as many people, as FILE or one "
    "of its updates: leave it out for new people. Nothing was spent.",
    WHICH_RECORDS: "Several batches have as many records as DATA, and private inputs are not compared: "
    "give --same-rows for a batch before the next update. Nothing was spent.",
    OTHER_UNIT: "--groups must be given if FILE was made with it, and otherwise not: the guarantee "
    "protects one kind of unit. Nothing was spent.",
}


@dataclass(frozen=True, kw_only=True)
class UpdateRequest(KnownRequest):
    """``released``: the model of the file; ``further``: budget for the same rows, None for new people."""

    released: Published
    further: Further
    elsewhere: ClassVar[Mapping[str, str]] = {"likelihood": "likelihood"}

    @classmethod
    def of(cls, release: Path, inputs: str | None, further: Further, **given: Any) -> Self:
        """``given``: what the release does not say, such as the table and how it is written."""
        model = open_own(release, load)
        names = input_names(model, release, inputs)
        with _refuse_as_options():
            check_updatable(model)
        epsilon, delta = further or (model.epsilon, model.delta)
        return cls(
            released=model, names=names, further=further, inputs="", epsilon=epsilon, delta=delta,
            **cls.said(model._released.parameters, release, "update it in Python"), **given,
        )  # fmt: skip

    @property
    def columns(self) -> Inputs | None:
        """What inputs are, under the names that they have in the table."""
        return with_names(self.released.inputs_, self.names)

    @property
    def kinds(self) -> Kinds | None:
        """None where all are numbers: nothing is then inferred."""
        return None if self.columns is None else super().kinds

    def model(self) -> Published:
        released: Published = self.released.set_params(random_state=self.charge.seed)
        released._noted = self.table_assumptions
        return released


def prepare_update(request: UpdateRequest, path: Path, step: Step) -> Measure:
    """Read the table and rehearse; what is handed back spends."""
    step("Reading the table")
    X, people, y = request.all_columns()
    model, exposures = request.model(), request.exposures()
    step("Planning and rehearsing")
    rehearse_update(model, X, people, path, request.further, exposures)

    def measure() -> Published:
        model.set_params(ledger=request.charge.account)
        _measure(model, X, y, people, request.further, exposures)
        return model

    return measure


def rehearse_update(
    model: Published,
    X: pl.DataFrame,
    people: People,
    path: Path,
    further: Further,
    exposures: Mapping[str, Array],
) -> None:
    """Release simulated values from a copy of the model."""
    with rehearsal(deepcopy(model), path) as trial, _refuse_as_options():
        inputs, middle = rehearsal_inputs(model, X), model._rehearsal_outputs(X.height)
        _measure(trial, inputs, middle, people, further, exposures)


@contextmanager
def _refuse_as_options() -> Iterator[None]:
    """Pass on what a computation without private values refuses, in words of this command."""
    with public_computation():
        try:
            yield
        except ValueError as problem:
            raise ValueError(IN_OPTIONS.get(str(problem), str(problem))) from None


def _measure(
    model: Published,
    X: pl.DataFrame,
    y: UserData,
    people: People,
    further: Further,
    exposures: Mapping[str, Array],
) -> None:
    """New people's rows, or the same again with a further budget."""
    rows = as_table(model._released.names, X)  # under the model's names
    aside = Aside(exposures.get("exposure"), exposures.get("sample_weight"))
    measure_further(model, rows, y, people, model._beside(aside, row_count(rows)), further)
