"""What functions of outputs and of records have in common."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.gaussian_process.kernels import Kernel

from privgp.gp.kernels.evaluate import check_kernel, split_noise
from privgp.plan.inputs.arguments import check_bounds
from privgp.privacy.budget import check_budget
from privgp.privacy.guarantee import Guarantee, Protected, promise
from privgp.vault.states.outputs import Draws
from privgp.vault.states.records import RecordDraws

if TYPE_CHECKING:
    from privgp.models.function.estimator import PrivateFunction


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
    protected: Protected,
    asked: dict[str, Any],
    draws: Draws | RecordDraws,
    *,
    public: str,
    chosen: str,
    how: str,
) -> Guarantee:
    """What is promised of all answers together; ``how``: the function is drawn, {} for its size."""
    noise = draws.noise
    return promise(
        protected,
        [noise.event],
        epsilon=asked["epsilon"],
        delta=asked["delta"],
        assumptions=(
            public,
            chosen,
            "no draw is made twice: the state of the function is kept and never set back",
        ),
        mechanism=f"{noise.describe()} on the posterior mean as a function, "
        f"{how.format(f'{noise.size:,}')}; all answers together are covered",
        sampler=noise.sampler,
        simulated=draws.seed is not None,
    )
