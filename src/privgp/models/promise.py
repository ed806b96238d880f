"""What a release of outputs or of records promises, and the noise of simulations."""

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from privgp.plan.part import unit_of
from privgp.plan.plan import Plan
from privgp.privacy.guarantee import Guarantee, promise
from privgp.privacy.protected import ROW, Protected, exactly
from privgp.question.outcomes import NUMBER_WORDING, Unit, Wording
from privgp.release.spendings import FROM_THEM

RESIDUALS = (
    "; then as many totals of how far values are above or below a curve that was learned from the first "
    "ones, each distance clipped to a width that was learned from them too"
)
MISSING = "which rows have a missing value is public: these rows were left out"
EXPOSURES = "the exposures are public, and were not computed from the counts"


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
    return protected, (*assumptions, *((EXPOSURES,) if counted else ()))


def _limits_of_several(plan: Plan, unit: Unit, told: Wording) -> tuple[Protected, tuple[str, ...]]:
    """The same of several outputs, each with a limit of its own or none."""
    protected, assumptions = unit.protected(told), unit.assumed(told)
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
