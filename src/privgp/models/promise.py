"""What a release of outputs or of records promises, and the noise of simulations."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from privgp.plan.plan import Plan
from privgp.privacy.guarantee import OUTPUTS, PERSON, RECORDS, Guarantee, Protected, promise


def simulation(model: Any) -> np.random.Generator | None:
    """The generator of a simulation's noise; None for the noise that protects."""
    if model.random_state is None:
        return None
    return np.random.default_rng(check_random_state(model.random_state).randint(2**31))


def outputs_guarantee(plan: Plan, *, simulated: bool) -> Guarantee:
    assumptions = (
        "the inputs, the number of rows and any person identifiers are public",
        "kernel, bounds, targets and budget were chosen without looking at the outputs",
    )
    protected = OUTPUTS if plan.strategy.people is None else PERSON
    return _guarantee(plan, protected, assumptions, "the values", simulated)


def records_guarantee(plan: Plan, *, simulated: bool) -> Guarantee:
    assumptions = (
        "the number of records is public",
        "kernel, bounds of inputs and outputs, targets and budget were chosen without looking at "
        "the records",
    )
    what = "records and their values over bins of the declared domain"
    return _guarantee(plan, RECORDS, assumptions, what, simulated)


def _guarantee(
    plan: Plan,
    protected: Protected,
    assumptions: tuple[str, ...],
    what: str,
    simulated: bool,
) -> Guarantee:
    size = plan.strategy.size
    squares = ", one of them of squares," if plan.strategy.energy_weight > 0 else ","
    return promise(
        protected,
        [plan.noise.event],
        epsilon=plan.epsilon,
        delta=plan.delta,
        assumptions=assumptions,
        mechanism=f"{size} noisy total{'s' if size > 1 else ''} of {what}{squares} each value clipped "
        f"to the declared range ({plan.noise.describe()}); everything else is computed from them",
        sampler=plan.noise.sampler,
        simulated=simulated,
    )
