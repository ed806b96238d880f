"""What every model that is published has: its budget, its least epsilon, its file, its certificate."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from sklearn.base import clone

from privgp.gp.measurement import Measurement
from privgp.gp.priors import Hyperparameters
from privgp.models.queries import Queries
from privgp.models.rows.tables import remember
from privgp.models.spending import SpendsAtFit, names_of, simulation
from privgp.plan.accuracy import check_error, least_epsilon
from privgp.plan.build import Budget
from privgp.plan.part import unit_of
from privgp.plan.plan import Plan
from privgp.privacy.guarantee import Guarantee, promise
from privgp.privacy.protected import ROW, Protected, exactly
from privgp.publish import Receipt
from privgp.question.outcomes import NUMBER_WORDING, Unit, Wording
from privgp.release.learn import learn_release, zeros_of
from privgp.release.release import Planned, Release
from privgp.release.residuals import FirstStage, LeftSquares
from privgp.release.spendings import FROM_THEM, utc
from privgp.types import Array, Column, Table
from privgp.vault.measure import measure, measure_twice
from privgp.vault.values import Sealed

RESIDUALS = (
    "; then totals of how far values are above or below a curve that was learned from the first "
    "ones, each distance clipped to a width that was learned from them too"
)
MISSING = "which rows have a missing value is public: these rows were left out"
OF_WEIGHTS = (
    "the weight of a record is protected with it, and the largest weight that counts was chosen without "
    "looking at the weights"
)
EXPOSURES = "the exposures are public, and were not computed from the counts"


def with_assumptions(model: Any, guarantee: Guarantee) -> Guarantee:
    """The guarantee with what is assumed besides of how the model's data came about."""
    return replace(guarantee, assumptions=(*guarantee.assumptions, *model._noted))


def guarantee_of(plan: Plan, *, simulated: bool) -> Guarantee:
    """What the measurement of a plan guarantees, of outputs or of records."""
    protected, assumptions = _protection_of(plan)
    return promise(
        protected,
        [noise.event for noise in plan.noises],
        (plan.epsilon, plan.delta),
        assumptions=assumptions,
        mechanism=f"{_totals_of(plan)}{'' if plan.residuals is None else RESIDUALS} ({plan.noise.describe()}){FROM_THEM}",
        sampler=plan.noise.sampler,
        simulated=simulated,
    )


def _totals_of(plan: Plan) -> str:
    """What is measured, in words."""
    size, squares = plan.strategy.size, sum(p.strategy.energy_weight > 0 for p in plan.parts)
    if len(plan.parts) > 1:
        of_squares = f", {squares} of them of squares," if squares else ","
        return (
            f"{size} noisy totals of the values of {len(plan.parts)} outputs{of_squares} each value "
            "clipped to the declared range of its output"
        )
    (part,) = plan.parts
    told = part.outcome.wording
    what = part.kind.totals.replace("values", told.values)
    of_squares = ", one of them of squares," if squares else ","
    return f"{size} noisy total{'s' if size > 1 else ''} of {what}{of_squares} {told.limited}"


def _protection_of(plan: Plan) -> tuple[Protected, tuple[str, ...]]:
    """Whom the guarantee protects, and what it assumes."""
    unit, told = unit_of(plan.parts[0]), plan.parts[0].outcome.wording
    if len(plan.parts) > 1:
        told = replace(NUMBER_WORDING, outputs=ROW)
        protected, assumptions = _limits_of_several(plan, unit, told)
    else:
        protected, assumptions = unit.limit_change(told, plan.parts[0].max_change)
    counted = not unit.private_inputs and any(part.outcome.has_rate for part in plan.parts)
    weighed = unit.private_inputs and any(
        getattr(part.strategy, "weighted", False) for part in plan.parts
    )
    more = (*((EXPOSURES,) if counted else ()), *((OF_WEIGHTS,) if weighed else ()))
    return protected, (*assumptions, *more)


def _limits_of_several(plan: Plan, unit: Unit, told: Wording) -> tuple[Protected, tuple[str, ...]]:
    """The same of several outputs, each with a limit of its own or none."""
    protected, assumptions = unit.whom(told), unit.assumptions_of(told)
    limits = [
        f"{name} by at most {exactly(change)}"
        for name, change in zip(plan.names, plan.max_changes, strict=True)
        if change is not None
    ]
    if not limits or unit.private_inputs:
        return protected, assumptions
    limited = "; ".join(limits)
    counts = ", ".join(limit.partition(" by ")[0] for limit in limits)
    protected = replace(
        protected,
        unit=f"{protected.unit}, of {counts} one person's contribution alone",
        neighbours=f"{protected.neighbours}, and {limited}",
    )
    return protected, (*assumptions, f"one person changes no more than this: {limited}")


LONGEST = 200


FITTED = ("release_", "functionals_", "noise_variance_", "output_names_")


class Published(Queries, SpendsAtFit):
    _released: Release
    inputs_: Any = None  # what the columns are, where they are not all numbers
    output_: Any = None  # what the output is called, and its units
    _noted: tuple[str, ...] = ()  # what the guarantee assumes besides
    epsilon: float
    delta: float
    protect: str

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """The parameters of the constructor, and what an estimator makes of them."""

    def _least_epsilon(self, X: Table, error: float, **given: object) -> float:
        def plan_at(epsilon: float) -> Any:
            return clone(self).set_params(epsilon=epsilon).plan(X, **given)

        return least_epsilon(plan_at, check_error(error))

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the release to a ``.privgp`` file of JSON and arrays, which ``privgp.load`` reads.

        The file holds noisy sums and, with ``protect="outputs"``, the inputs, which a warning states: publish
        it only if no column of X is private. Equal models give equal bytes.

        Parameters
        ----------
        path : str or path
            A new file whose name ends in ``.privgp``.
        overwrite : bool, default False
            Replace a file that exists.

        """
        from privgp.models.load import notice, save

        save(self, path, overwrite=overwrite)
        if self._released.parameters.holds_inputs:
            warnings.warn(notice(self), UserWarning, stacklevel=2)

    def certificate(
        self, *, holder: Mapping[str, str] | None = None, date: datetime | None = None
    ) -> dict[str, object]:
        """What is guaranteed, as the JSON object that ``privgp inspect --json`` prints.

        Parameters
        ----------
        holder : mapping, optional
            What only the custodian knows, such as a contact, by the names on the certificate page.
        date : datetime, optional
            The date of the certificate. Default: now.

        Returns
        -------
        dict

        """
        from privgp.release.certificate import certificate

        return certificate(self, holder=holder, date=date)

    def name_output(self, name: str, units: str | None = None, column: str | None = None) -> Self:
        """Name the output on pictures, in the file and in the certificate.

        Parameters
        ----------
        name : str
            Its name.
        units : str, optional
            Such as "cm".
        column : str, optional
            The column of the table that held it.

        Returns
        -------
        self

        """
        said: dict[str, Any] = {"name": name, "units": units, "column": column}
        given = {key: text for key, text in said.items() if text is not None or key == "name"}
        for what, text in given.items():
            if not isinstance(text, str) or not text.strip() or len(text) > LONGEST:
                raise ValueError(f"{what} must be a text of at most {LONGEST} characters.")
        if vars(self).get("output_names_"):
            raise ValueError("several outputs have the names of the columns of y.")
        self.output_ = given
        if "_released" in vars(self):
            self._released = self._released.with_facts(self._released.facts.with_name(given))
        return self

    def _take_name(self, column: str | None = None) -> None:
        """Name the output as its column is named, unless somebody named it otherwise."""
        said = self.output_ or {}
        if set(said) <= {"name", "column"} and said.get("name") == said.get("column"):
            named = column and {"name": column[:LONGEST], "column": column[:LONGEST]}
            self.output_ = named or None

    @property
    def plan_summary_(self) -> str:
        """What the plan said of itself; also where only a file is left of it."""
        return self._released.facts.plan_summary

    def _exposures_by_place(self, exposure: Column | None, rows: int) -> dict[int, Array]:
        """The exposure of every row by the place of the output that is counted; labels are not."""
        return {}

    def _guarantee(self, plan: Plan) -> Guarantee:
        """What the measurement of a plan guarantees, with what is assumed besides."""
        simulated = self.random_state is not None
        return with_assumptions(self, guarantee_of(plan, simulated=simulated))

    def _publish_plan(
        self,
        plan: Plan,
        data: Sealed,
        *,
        inputs: Array | None = None,
        rows: int | None = None,
        batch: int | None = None,
    ) -> None:
        """Charge for a plan, measure it once and learn from the measurement.

        Parameters
        ----------
        plan : Plan
            What to measure, and the noise.
        data : Sealed
            The private values, as the vault measures them.
        inputs, rows
            As ``SpendsAtFit._publish`` has them.
        batch : int or None
            The batch of people, if this is added to what was released before.

        """
        random_state = simulation(self, 0 if batch is None else len(self._released.spent))
        self._publish(
            self._guarantee(plan),
            lambda: self._measure(plan, data, random_state),
            lambda drawn: self._learn(plan, drawn[0], batch, inputs=inputs, squares=drawn[1]),
            rehearse=lambda: self._rehearse(plan, batch),
            inputs=inputs,
            rows=rows,
        )

    def _measure(
        self, plan: Any, data: Sealed, random_state: Any
    ) -> tuple[object, LeftSquares | None]:
        """The noisy numbers of a plan, and where it has two stages the sum of squared residuals."""
        if plan.residuals is None:
            return measure(data, plan.y_bounds, plan.strategy, plan.noise, random_state), None
        known: list[FirstStage] = []

        def learn_centre(first: Measurement) -> tuple[Array, float]:
            self.guarantee_ = self._guarantee(plan)  # from here on it counts as spent
            known.append(self._first_stage(plan, first))
            return known[0].centre

        stages = plan.residuals.strategies(plan.strategy)
        given = plan.y_bounds, stages, plan.noises, learn_centre
        _, second = measure_twice(data, *given, random_state)
        return known[0].together(second)

    def _first_stage(self, plan: Plan, first: Measurement) -> FirstStage:
        """What the first of two stages tells: post-processing."""
        assert plan.residuals is not None
        part = plan.parts[0]
        return FirstStage(part, plan.residuals, first, self.hyperparameters == "learned")

    def _rehearse(self, plan: Plan, batch: int | None = None) -> None:
        """Let a copy learn from zeros in place of a measurement, with hyperparameters that are fixed, as
        learning them takes long: most of what would stop a release stops this first."""
        quick, zeros, squares = copy(self).set_params(hyperparameters="fixed"), zeros_of(plan), None
        if plan.residuals is not None:
            first = replace(zeros, values=plan.residuals.add_up(zeros.values))
            zeros, squares = quick._first_stage(plan, first).together(zeros)
        quick._learn(plan, zeros, batch, squares=squares)

    def _learn(
        self,
        plan: Plan,
        measured: object,
        batch: int | None = None,
        models: tuple[Hyperparameters, ...] = (),
        inputs: Array | None = None,
        squares: LeftSquares | None = None,
    ) -> None:
        """All that follows from the measurement of a plan: post-processing.

        Parameters
        ----------
        plan : Plan
            What was measured.
        measured : Measurement, or one of each outcome
            The noisy numbers.
        batch : int or None
            The batch of people, if this is added to what was released before.
        models : tuple of Hyperparameters
            Models that are given, not learned.
        inputs : array (rows, columns), optional
            The public inputs.
        squares : LeftSquares, optional
            The sum of squared residuals, of two stages.

        """
        # with what was drawn and never released, should an update have failed
        before = None if batch is None else replace(self._released, guarantee=self.guarantee_)
        chosen_by = None if before is None else before.facts.chosen_by
        receipt = vars(self).get("charged_")
        facts = Planned(plan, utc(datetime.now(UTC)), receipt, chosen_by, self.output_)
        asked, guarantee = self._parameters(plan.targets.shape[1]), self._guarantee(plan)
        names = names_of(self) if hasattr(self, "feature_names_in_") else None
        known: Any = {"names": names, "before": before, "batch": batch or 0}
        note = partial(setattr, self, "guarantee_")
        given = plan, measured, asked, guarantee, facts, note
        self._hold(learn_release(*given, **known, models=models, inputs=inputs, squares=squares))
        self.plan_ = plan
        self.__dict__.pop("chosen_by_", None)
        if chosen_by is not None:
            self.chosen_by_ = chosen_by

    def _hold(self, release: Release) -> Self:
        """Become what was released, just now or in a file."""
        self._released, self.inputs_ = release, release.parameters.columns
        remember(self, release.names, release.columns)
        self.guarantee_, self.released_at_ = release.guarantee, release.facts.date
        if release.facts.called is not None:
            self.output_ = release.facts.called
        self.measurements_ = tuple(each for part in release.parts for each in part.measurements)
        for name in FITTED:
            self.__dict__.pop(name, None)
        vars(self).update(release.attributes_of_fit())
        return self

    def _state(self, guarantee: Guarantee, receipt: Receipt | None, chosen_by: str) -> None:
        """State the guarantee and the charge of a search that this model was chosen by."""
        facts: Any = self._released.facts
        facts = replace(facts, receipt=receipt, chosen_by=chosen_by)
        self._released = self._released.with_facts(facts, guarantee)
        self.guarantee_ = guarantee
        self._keep_receipt(receipt)

    def _budget(self) -> Budget:
        return Budget(float(self.epsilon), float(self.delta))
