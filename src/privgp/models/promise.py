"""What a release of outputs or of records promises, and the noise of simulations."""

from dataclasses import dataclass, replace
from functools import singledispatch
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from privgp.plan.several.plan import JointPlan
from privgp.privacy.guarantee import (
    COUNTS,
    LABELLED_RECORDS,
    LABELS,
    OUTPUTS,
    PEOPLE_LABELLED_RECORDS,
    PEOPLE_RECORDS,
    PERSON,
    PERSON_COUNTS,
    PERSON_LABELS,
    RECORDS,
    ROW,
    Guarantee,
    Protected,
    exactly,
    promise,
)
from privgp.release.spendings import FROM_THEM

OUTPUTS_ASSUMPTIONS = (
    "the inputs, the number of rows and any person identifiers are public",
    "kernel, bounds, targets and budget were chosen without looking at the outputs",
)
RESIDUALS = (
    "; then as many totals of how far values are above or below a curve that was learned from the first "
    "ones, each distance clipped to a width that was learned from them too"
)
MISSING = "which rows have a missing value is public: these rows were left out"
ONE_CHANGE = "one person changes one output value alone, and that by at most {change}"
EXPOSURES = "the exposures are public, and were not computed from the counts"
GROUP_CHANGE = (
    "one person changes the output values of one group of rows alone, each by at most {change}"
)
LABELS_ASSUMPTIONS = (
    OUTPUTS_ASSUMPTIONS[0],
    "kernel, classes, targets and budget were chosen without looking at the labels",
)
PEOPLE_ASSUMPTIONS = (
    "the number of people is public, and the person identifiers are right",
    "kernel, bounds of inputs and outputs, targets and budget were chosen without looking at "
    "the records",
)
RECORDS_ASSUMPTIONS = (
    "the number of records is public",
    "kernel, bounds of inputs and outputs, targets and budget were chosen without looking at "
    "the records",
)


def seeds(model: Any, count: int = 1) -> tuple[int | None, ...]:
    """Seeds of a simulation's noise; None for the noise that protects."""
    if model.random_state is None:
        return (None,) * count
    return tuple(check_random_state(model.random_state).randint(2**31, size=count).tolist())


def generator(seed: Any) -> np.random.Generator | None:
    return None if seed is None else np.random.default_rng(seed)


def simulation(model: Any, before: int = 0) -> np.random.Generator | None:
    """The generator of a simulation's noise, another one after every earlier measurement; None for the
    noise that protects."""
    (seed,) = seeds(model)
    return generator([seed, before] if before and seed is not None else seed)


def with_assumptions(model: Any, guarantee: Guarantee) -> Guarantee:
    """The promise with what is assumed besides of how the model's data came about."""
    return replace(guarantee, assumptions=(*guarantee.assumptions, *model._noted))


@dataclass(frozen=True)
class Told:
    """What a promise says of outputs: who is protected, what is totalled, and how it is limited."""

    outputs: Protected
    person: Protected
    records: Protected
    people_records: Protected
    values: str
    limited: str
    assumptions: tuple[str, ...]


VALUES = Told(
    OUTPUTS,
    PERSON,
    RECORDS,
    PEOPLE_RECORDS,
    "values",
    "each value clipped to the declared range",
    OUTPUTS_ASSUMPTIONS,
)
OF_LABELS = Told(
    LABELS,
    PERSON_LABELS,
    LABELLED_RECORDS,
    PEOPLE_LABELLED_RECORDS,
    "labels",
    "each label counted in its declared class",
    LABELS_ASSUMPTIONS,
)


@singledispatch
def regressor_guarantee(plan: Any, *, simulated: bool, told: Told = VALUES) -> Guarantee:
    """What the measurement of a plan promises, of outputs or of records."""
    strategy = plan.strategy
    assumptions = told.assumptions
    if plan.x_bounds is not None:
        protected, assumptions = told.records, RECORDS_ASSUMPTIONS
        if strategy.whole_people:
            protected, assumptions = told.people_records, PEOPLE_ASSUMPTIONS
    else:
        protected = told.outputs if strategy.people is None else told.person
        if plan.max_change is not None:
            alone = strategy.people is None
            protected = (COUNTS if alone else PERSON_COUNTS).by(plan.max_change)
            declared = ONE_CHANGE if alone else GROUP_CHANGE
            assumptions = *assumptions, declared.format(change=exactly(plan.max_change))
        if plan.unit is not None:
            assumptions = *assumptions, EXPOSURES
    what = plan.kind.totals.replace("values", told.values)
    squares = ", one of them of squares," if strategy.energy_weight > 0 else ","
    return promise(
        protected,
        [noise.event for noise in plan.noises],
        (plan.epsilon, plan.delta),
        assumptions=assumptions,
        mechanism=f"{strategy.size} noisy total{'s' if strategy.size > 1 else ''} of {what}{squares} "
        f"{told.limited}{'' if plan.residuals is None else RESIDUALS} ({plan.noise.describe()}){FROM_THEM}",
        sampler=plan.noise.sampler,
        simulated=simulated,
    )


@regressor_guarantee.register(JointPlan)
def joint_guarantee(plan: JointPlan, *, simulated: bool, told: Told = VALUES) -> Guarantee:
    """What the measurement of several outcomes guarantees."""
    squares = sum(part.energy_weight > 0 for part in plan.strategy.parts)
    of_squares = f", {squares} of them of squares," if squares else ","
    protected, assumptions = _protection_of(plan)
    count = len(plan.parts)
    return promise(
        protected,
        [plan.noise.event],
        (plan.epsilon, plan.delta),
        assumptions=assumptions,
        mechanism=f"{plan.strategy.size} noisy totals of the values of {count} "
        f"output{'s' if count > 1 else ''}"
        f"{of_squares} each value clipped to the declared range of its output "
        f"({plan.noise.describe()}){FROM_THEM}",
        sampler=plan.noise.sampler,
        simulated=simulated,
    )


def _protection_of(plan: JointPlan) -> tuple[Protected, tuple[str, ...]]:
    """Whom the guarantee protects, and what it assumes."""
    if plan.x_bounds is not None:
        if plan.strategy.whole_people:
            return PEOPLE_RECORDS, PEOPLE_ASSUMPTIONS
        return RECORDS, RECORDS_ASSUMPTIONS
    protected = ROW if plan.strategy.people is None else PERSON
    assumptions: tuple[str, ...] = OUTPUTS_ASSUMPTIONS
    limits = [
        f"{name} by at most {exactly(change)}"
        for name, change in zip(plan.names, plan.max_changes, strict=True)
        if change is not None
    ]
    if limits:
        limited = "; ".join(limits)
        counts = ", ".join(limit.partition(" by ")[0] for limit in limits)
        protected = replace(
            protected,
            unit=f"{protected.unit}, of {counts} one person's contribution alone",
            neighbours=f"{protected.neighbours}, and {limited}",
        )
        assumptions = (*assumptions, f"one person changes no more than this: {limited}")
    if plan.unit is not None:
        assumptions = (*assumptions, EXPOSURES)
    return protected, assumptions
