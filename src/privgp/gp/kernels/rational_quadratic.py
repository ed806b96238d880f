"""The rational quadratic kernel, ``(1 + s / (2 alpha))^-alpha``."""

import math

import numpy as np
from sklearn.gaussian_process.kernels import RationalQuadratic

from privgp.gp.kernels.kind import ULPS, KernelKind, log_positive
from privgp.types import Array


def _profile(kernel: RationalQuadratic, s: Array) -> Array:
    """By a formula whose error does not grow with alpha."""
    alpha = float(kernel.alpha)
    return np.exp(-alpha * np.log1p(s / (2.0 * alpha)))


def _by_alpha(kernel: RationalQuadratic, s: Array, K: Array) -> Array:
    alpha = float(kernel.alpha)
    return K * (s / (2.0 + s / alpha) + log_positive(K))


RATIONAL_QUADRATIC = KernelKind(
    RationalQuadratic,
    ("length_scale", "alpha"),
    ("lengthscale", "alpha"),
    {"rq": {}},
    profile=_profile,
    slope=lambda kernel, s, K: K / (1.0 + s / (2.0 * float(kernel.alpha))),
    derivatives={"alpha": _by_alpha},
    error_units=lambda kernel, widths: (len(widths) + 6.0 + 2.0 * ULPS) / math.e + ULPS,
)
