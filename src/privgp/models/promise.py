"""What a release of outputs or of records promises, and the noise of simulations."""

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from privgp.plan.plan import Plan
from privgp.privacy.guarantee import OUTPUTS, PEOPLE_RECORDS, PERSON, RECORDS, Guarantee, promise

OUTPUTS_ASSUMPTIONS = (
    "the inputs, the number of rows and any person identifiers are public",
    "kernel, bounds, targets and budget were chosen without looking at the outputs",
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


def simulation(model: Any) -> np.random.Generator | None:
    """The generator of a simulation's noise; None for the noise that protects."""
    return generator(*seeds(model))


def regressor_guarantee(plan: Plan, *, simulated: bool) -> Guarantee:
    """What the measurement of a plan promises, of outputs or of records."""
    strategy: Any = plan.strategy
    if plan.x_bounds is not None:
        protected, assumptions = RECORDS, RECORDS_ASSUMPTIONS
        if strategy.whole_people:
            protected, assumptions = PEOPLE_RECORDS, PEOPLE_ASSUMPTIONS
    else:
        protected, assumptions = OUTPUTS if strategy.people is None else PERSON, OUTPUTS_ASSUMPTIONS
    squares = ", one of them of squares," if strategy.energy_weight > 0 else ","
    return promise(
        protected,
        [plan.noise.event],
        (plan.epsilon, plan.delta),
        assumptions=assumptions,
        mechanism=f"{strategy.size} noisy total{'s' if strategy.size > 1 else ''} of {plan.kind.totals}{squares} "
        f"each value clipped to the declared range ({plan.noise.describe()}); everything else is "
        "computed from them",
        sampler=plan.noise.sampler,
        simulated=simulated,
    )
