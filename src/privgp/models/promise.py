"""What a release of outputs or of records promises, and the noise of simulations."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from privgp.plan.bins.records import RecordsPlan
from privgp.plan.preview import Plan
from privgp.privacy.guarantee import (
    OUTPUTS_NEIGHBOURS,
    OUTPUTS_UNIT,
    PERSON_NEIGHBOURS,
    PERSON_UNIT,
    RECORDS_NEIGHBOURS,
    RECORDS_UNIT,
    SIMULATED_SAMPLER,
    Guarantee,
)
from privgp.privacy.laplace import LAPLACE_SAMPLER, LaplaceNoise
from privgp.privacy.lattice import LATTICE_SAMPLER


def simulation(model: Any) -> np.random.Generator | None:
    """The generator of a simulation's noise; None for the noise that protects."""
    if model.random_state is None:
        return None
    return np.random.default_rng(check_random_state(model.random_state).randint(2**31))


def outputs_guarantee(plan: Plan, *, simulated: bool) -> Guarantee:
    people = plan.strategy.people is not None
    law, spent = _spent(plan, simulated=simulated)
    return Guarantee(
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
        **spent,
    )


def records_guarantee(plan: RecordsPlan, *, simulated: bool) -> Guarantee:
    law, spent = _spent(plan, simulated=simulated)
    energy = ", and one energy" if plan.strategy.energy_weight > 0 else ""
    return Guarantee(
        unit=RECORDS_UNIT,
        neighbours=RECORDS_NEIGHBOURS,
        assumptions=(
            "the number of records is public",
            "kernel, bounds of inputs and outputs, targets and budget were chosen without looking "
            "at the records",
        ),
        mechanism=(
            f"one {law} mechanism on {plan.strategy.size} numbers: weighted counts and sums of "
            f"the clipped outputs over bins of the declared domain{energy}; all else is "
            "post-processing"
        ),
        **spent,
    )


def _spent(plan: Plan | RecordsPlan, *, simulated: bool) -> tuple[str, dict[str, Any]]:
    """The law of a plan's noise, and what of its guarantee that decides."""
    noise = plan.noise
    if isinstance(noise, LaplaceNoise):
        law, sampler = "Laplace", LAPLACE_SAMPLER
        spent: dict[str, Any] = {
            "delta": 0.0,  # whatever was offered
            "noise_multipliers": (),
            "pure_epsilons": (plan.epsilon,),
        }
    else:
        law, sampler = "Gaussian", LATTICE_SAMPLER
        spent = {
            "delta": plan.delta,
            "noise_multipliers": (noise.multiplier,),
            "delta_slack": noise.delta_slack,
        }
    return law, spent | {
        "epsilon": plan.epsilon,
        "sampler": SIMULATED_SAMPLER if simulated else sampler,
    }
