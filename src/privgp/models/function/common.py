"""What functions of outputs and of records have in common."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.gaussian_process.kernels import Kernel

from privgp.gp.kernels.evaluate import check_kernel, split_noise, variance
from privgp.plan.functions.outputs import FunctionModel
from privgp.plan.inputs.arguments import check_bounds
from privgp.privacy.budget import check_budget
from privgp.privacy.guarantee import SIMULATED_SAMPLER, Guarantee
from privgp.privacy.lattice import LATTICE_SAMPLER
from privgp.vault.states.kept import Kept
from privgp.vault.states.outputs import Draws
from privgp.vault.states.records import RecordDraws

if TYPE_CHECKING:
    from privgp.models.function.estimator import PrivateFunction
    from privgp.pictures.functions import Shown


def kernel_and_noise(given: Any, noise_variance: Any, columns: int) -> tuple[Kernel, float]:
    """The kernel without its WhiteKernel, and the noise variance, from whichever gave it."""
    if not isinstance(given, Kernel):
        raise ValueError("kernel must be a scikit-learn kernel.")
    kernel, white = split_noise(clone(given))
    if kernel is None:
        raise ValueError("kernel holds nothing but noise.")
    check_kernel(kernel, columns)
    if white is not None:
        if noise_variance is not None:
            raise ValueError("give the noise once: as noise_variance or as a WhiteKernel.")
        noise_variance = float(white.noise_level)
    if isinstance(noise_variance, bool) or not isinstance(noise_variance, Real):
        raise ValueError("noise_variance must be a positive number.")
    noise = float(noise_variance)
    if not (np.isfinite(noise) and noise > 0):
        raise ValueError(f"noise_variance must be positive and finite, got {noise}.")
    return kernel, noise


def asked_of(function: PrivateFunction) -> dict[str, Any]:
    """What was asked for, checked, as every function keeps it."""
    check_budget(function.epsilon, function.delta)
    dominance = function.dominance
    return {
        "y_bounds": check_bounds("y_bounds", function.y_bounds),
        "epsilon": float(function.epsilon),
        "delta": float(function.delta),
        "sensitivity": function.sensitivity,
        "dominance": float(dominance) if isinstance(dominance, Real) else dominance,
    }


def promised(
    asked: dict[str, Any],
    draws: Draws | RecordDraws,
    *,
    unit: str,
    neighbours: str,
    public: str,
    chosen: str,
    how: str,
) -> Guarantee:
    """What is promised of all answers together; ``how``: the function is drawn, {} for its size."""
    kept = "no draw is made twice: the state of the function is kept and never set back"
    return Guarantee(
        epsilon=asked["epsilon"],
        delta=asked["delta"],
        unit=unit,
        neighbours=neighbours,
        assumptions=(public, chosen, kept),
        mechanism="one Gaussian mechanism on the posterior mean as a function, "
        f"{how.format(f'{draws.noise.size:,}')}; all answers together are covered",
        sampler=LATTICE_SAMPLER if draws.seed is None else SIMULATED_SAMPLER,
        noise_multipliers=(draws.noise.multiplier,),
        delta_slack=draws.noise.delta_slack,
    )


def shown(kept: Kept) -> Shown:
    """What a picture of the function needs."""
    from privgp.pictures.functions import Shown  # matplotlib takes its time
    from privgp.pictures.style import limits

    c: Any = kept.contents
    inputs = c.model.inputs if isinstance(c.model, FunctionModel) else None
    if inputs is None:
        extent = np.array(c.model.domain)
    else:
        extent = np.array([limits(column, 0.0) for column in inputs.T])
    scale = 0.5 * (c.y_bounds[1] - c.y_bounds[0]) * c.draws.noise.std
    return Shown(
        release=kept.ask,
        noise_std=lambda X: scale * c.model.noise_shape(X),
        largest_std=scale * float(np.sqrt(variance(c.model.kernel))),
        extent=extent,
        inputs=inputs,
        answered=(c.draws.points, c.draws.answers),
        bounds=c.y_bounds,
        names=c.names,
        guarantee=c.guarantee,
    )
