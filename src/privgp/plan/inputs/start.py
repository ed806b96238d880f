"""Starting hyperparameters from public facts alone: the spread of X and the width of the bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sklearn.gaussian_process.kernels import ConstantKernel, Kernel, Matern

from privgp.gp.kernels.evaluate import signal_and_noise, split_noise
from privgp.gp.priors import Hyperparameters, Prior, blend_ranks, prior_about, spreads
from privgp.types import Array

if TYPE_CHECKING:
    from privgp.plan.build import Question
    from privgp.plan.inputs.inputs import Inputs

# Prior stds as shares of the bounds' width: of the function and of its constant, and of the noise.
SIGNAL_SHARE = 0.25
NOISE_SHARE = 0.15
RATE_STD, LEVEL_STD = (
    0.5,
    1.5,
)  # of the logarithm of a rate about its level, and of that about the unit
RANK_SHARES: tuple[float, ...] = (0.0, 0.4, 0.8)


def default_kernel(X: Array, width: float, inputs: Inputs | None = None) -> Kernel:
    """Matern 5/2 of std d/4 and lengthscale std * sqrt(D) per input, plus an unknown constant."""
    scales = default_scales(X, inputs)
    lengthscale = scales if len(scales) > 1 else float(scales[0])
    signal = (SIGNAL_SHARE * width) ** 2
    return ConstantKernel(signal) * Matern(lengthscale, nu=2.5) + ConstantKernel(signal, "fixed")


def rate_kernel(X: Array, inputs: Inputs | None = None) -> Kernel:
    """Matern 5/2 on the logarithm of the rate, plus its unknown level."""
    scales = default_scales(X, inputs)
    lengthscale = scales if len(scales) > 1 else float(scales[0])
    level = ConstantKernel(LEVEL_STD**2, "fixed")
    return ConstantKernel(RATE_STD**2) * Matern(lengthscale, nu=2.5) + level


def default_scales(X: Array, inputs: Inputs | None) -> Array:
    """Std * sqrt(D) of every input."""
    return spreads(X) * np.sqrt(X.shape[1]) if inputs is None else inputs.scales(X)


def initial_priors(X: Array, question: Question, *, learned: bool) -> tuple[Prior, ...]:
    """One prior per input map; a given kernel has one map, of the inputs as they are, or two.

    ``X`` are all rows, repeated inputs included: their spread and ranks set scales and maps.
    """
    kernel, width, inputs = question.kernel, 2.0 * question.half_width, question.inputs
    rates = question.exposures is not None
    if kernel is None and rates:
        kernel = rate_kernel(X, inputs)
    elif kernel is None:
        kernel = default_kernel(X, question.signal * width, inputs)
    else:
        kernel = kernel if inputs is None else inputs.kernel(kernel)
    if question.kernel is None:
        shares = RANK_SHARES if learned else RANK_SHARES[:1]
    else:
        shares = RANK_SHARES[::2] if question.ranked else RANK_SHARES[:1]
    plain = () if inputs is None else inputs.plain_coordinates
    widths = () if inputs is None else inputs.widths
    if len(plain) == X.shape[1]:
        shares = RANK_SHARES[:1]
    # of counts, the variance over the mean
    default = 1.0 if rates else (NOISE_SHARE * width) ** 2
    signal, noise = signal_and_noise(kernel, question.noise_variance, X.shape[1], default=default)
    white = split_noise(kernel)[1]
    noise_free = white is None or not white.hyperparameter_noise_level.fixed
    noise_free = noise_free and question.row_noise is None and not rates  # which are known
    models = (Hyperparameters(signal, noise, blend_ranks(X, share, plain)) for share in shares)
    return tuple(prior_about(model, noise_free=noise_free, widths=widths) for model in models)
