"""The periodic kernel of one input, ``exp(-2 sin^2(pi d / p) / l^2)``; its unit is the period."""

import math

import numpy as np
from sklearn.gaussian_process.kernels import ExpSineSquared

from privgp.gp.kernels.kind import ULPS, KernelKind, log_positive
from privgp.types import Array

MOST_PERIODS = 1e12  # in the domain


def _profile(kernel: ExpSineSquared, s: Array) -> Array:
    return np.exp(-2.0 * (np.sin(np.pi * np.sqrt(s)) / float(kernel.length_scale)) ** 2)


def _slope(kernel: ExpSineSquared, s: Array, K: Array) -> Array:
    return np.asarray(
        K * np.sinc(2.0 * np.sqrt(s)) * (2.0 * np.pi / float(kernel.length_scale)) ** 2
    )


def _by_differences(kernel: ExpSineSquared, X: Array, Z: Array) -> Array:
    """The difference d is reduced to within half a period without any error: ``d + lost`` is x - z
    exactly, and both steps of the reduction are exact too."""
    period = float(kernel.periodicity)
    x, z = X[:, :1], Z[:, 0]
    d = np.asarray(x - z)
    back = d - x
    lost = (x - (d - back)) - (z + back)
    d = np.fmod(d, period)
    d -= np.where(np.abs(d) > 0.5 * period, np.copysign(period, d), 0.0)
    d += lost
    np.abs(d, out=d)
    sine = np.sin(np.pi * d / period)
    sine /= float(kernel.length_scale)
    sine *= sine
    return np.exp(-2.0 * sine)


def _error_units(kernel: ExpSineSquared, widths: Array) -> float:
    if widths[0] > MOST_PERIODS * kernel.periodicity:
        raise ValueError(f"the domain must hold at most {MOST_PERIODS:g} periods.")
    return (2.0 * (4.36 + 2.0 * ULPS) + 1.0) / math.e + ULPS


PERIODIC = KernelKind(
    ExpSineSquared,
    ("length_scale", "periodicity"),
    ("lengthscale", "period"),
    {"periodic": {}},
    unit="periodicity",
    profile=_profile,
    slope=_slope,
    derivatives={"length_scale": lambda kernel, s, K: -2.0 * K * log_positive(K)},
    error_units=_error_units,
    by_differences=_by_differences,
    least_at=lambda kernel, widths: np.minimum(widths, 0.5 * kernel.periodicity),
    shortest_scale=lambda kernel: kernel.periodicity * min(kernel.length_scale, 1.0) / math.pi,
    one_input=True,
)
