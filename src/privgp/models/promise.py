"""What a release of outputs or of records promises, and the noise of simulations."""

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from privgp.plan.plan import Plan
from privgp.privacy.guarantee import (
    COUNTS,
    PERSON_COUNTS,
    ROW,
    Guarantee,
    Protected,
    exactly,
    promise,
)
from privgp.question.outcomes import NUMBER_WORDING
from privgp.release.spendings import FROM_THEM

MISSING = "which rows have a missing value is public: these rows were left out"
ONE_CHANGE = "one person changes one output value alone, and that by at most {change}"
EXPOSURES = "the exposures are public, and were not computed from the counts"
GROUP_CHANGE = (
    "one person changes the output values of one group of rows alone, each by at most {change}"
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


def guarantee_of(plan: Plan, *, simulated: bool) -> Guarantee:
    """What the measurement of a plan promises, of outputs or of records."""
    protected, assumptions = _protection_of(plan)
    return promise(
        protected,
        [plan.noise.event],
        (plan.epsilon, plan.delta),
        assumptions=assumptions,
        mechanism=f"{_totals_of(plan)} ({plan.noise.describe()}){FROM_THEM}",
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
    told, strategy = plan.parts[0].outcome.wording, plan.strategy
    several = len(plan.parts) > 1
    if several:
        told = replace(NUMBER_WORDING, outputs=ROW)
    if plan.x_bounds is not None:
        whole: bool = strategy.whole_people  # type: ignore[union-attr]
        if whole:
            return told.people_records, PEOPLE_ASSUMPTIONS
        return told.records, RECORDS_ASSUMPTIONS
    alone = strategy.people is None
    limit = _limits_of_several if several else _limit_of_one
    protected, assumptions = limit(plan, told.outputs if alone else told.person, alone)
    counted = () if plan.unit is None else (EXPOSURES,)
    return protected, (*told.assumptions, *assumptions, *counted)


def _limit_of_one(
    plan: Plan, protected: Protected, alone: bool
) -> tuple[Protected, tuple[str, ...]]:
    """Whom the guarantee protects where one person changes an output by less than its range."""
    change = plan.parts[0].max_change
    if change is None:
        return protected, ()
    declared = ONE_CHANGE if alone else GROUP_CHANGE
    return (COUNTS if alone else PERSON_COUNTS).by(change), (
        declared.format(change=exactly(change)),
    )


def _limits_of_several(
    plan: Plan, protected: Protected, alone: bool
) -> tuple[Protected, tuple[str, ...]]:
    """The same of several outputs, each with a limit of its own or none."""
    limits = [
        f"{name} by at most {exactly(change)}"
        for name, change in zip(plan.names, plan.max_changes, strict=True)
        if change is not None
    ]
    if not limits:
        return protected, ()
    limited = "; ".join(limits)
    counts = ", ".join(limit.partition(" by ")[0] for limit in limits)
    protected = replace(
        protected,
        unit=f"{protected.unit}, of {counts} one person's contribution alone",
        neighbours=f"{protected.neighbours}, and {limited}",
    )
    return protected, (f"one person changes no more than this: {limited}",)
