"""What functions of outputs and of records have in common."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.gaussian_process.kernels import Kernel

from privgp.gp.kernels.evaluate import check_kernel, split_noise
from privgp.plan.functions.records import RecordsModel
from privgp.vault.states.function_file import Contents


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


def parameters(contents: Contents) -> dict[str, Any]:
    """The arguments that a function was made with."""
    c = contents
    return {
        "protect": "records" if isinstance(c.model, RecordsModel) else "outputs",
        "domain": c.model.domain if isinstance(c.model, RecordsModel) else None,
        "kernel": c.model.kernel,
        "noise_variance": c.model.noise_variance,
        "y_bounds": c.y_bounds,
        "epsilon": c.epsilon,
        "delta": c.delta,
        "sensitivity": c.sensitivity,
        "dominance": c.dominance,
        "inducing": c.model.nodes,
        "random_state": c.draws.seed,
    }
