"""What a release of outputs promises, and the noise of simulations."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from privgp.plan.preview import Plan
from privgp.privacy.guarantee import (
    OUTPUTS_NEIGHBOURS,
    OUTPUTS_UNIT,
    PERSON_NEIGHBOURS,
    PERSON_UNIT,
    SIMULATION,
    Guarantee,
)
from privgp.privacy.laplace import LaplaceNoise
from privgp.vault.sample import LAPLACE_SAMPLER, LATTICE_SAMPLER


def simulation(model: Any) -> np.random.Generator | None:
    """The generator of a simulation's noise; None for the noise that protects."""
    if model.random_state is None:
        return None
    return np.random.default_rng(check_random_state(model.random_state).randint(2**31))


def outputs_guarantee(plan: Plan, *, simulated: bool) -> Guarantee:
    people = plan.strategy.people is not None
    noise = plan.noise
    if isinstance(noise, LaplaceNoise):
        law, sampler = "Laplace", LAPLACE_SAMPLER
        spent: dict[str, Any] = {"noise_multipliers": (), "pure_epsilons": (plan.epsilon,)}
    else:
        law, sampler = "Gaussian", LATTICE_SAMPLER
        spent = {"noise_multipliers": (noise.multiplier,), "delta_slack": noise.delta_slack}
    return Guarantee(
        epsilon=plan.epsilon,
        delta=plan.delta,
        unit=PERSON_UNIT if people else OUTPUTS_UNIT,
        neighbours=PERSON_NEIGHBOURS if people else OUTPUTS_NEIGHBOURS,
        assumptions=(
            "the inputs, the number of rows and any person identifiers are public",
            "kernel, bounds, targets and budget were chosen without looking at the outputs",
        ),
        mechanism=(
            f"one {law} mechanism on {plan.strategy.size} linear and energy functionals of "
            "the clipped outputs; all else is post-processing"
        ),
        sampler=f"ordinary floating-point noise: {SIMULATION}" if simulated else sampler,
        **spent,
    )
