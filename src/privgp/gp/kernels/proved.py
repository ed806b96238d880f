"""Kernel values with a proved bound of their rounding error, for any points of a box.

Distances come from differences, not from a matrix product, and every formula is one whose error does
not grow with the distance or with a parameter. Proof: docs/proofs/kernels.md.
"""

from __future__ import annotations

import math

import numpy as np
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    ExpSineSquared,
    Kernel,
    Matern,
    Product,
    RationalQuadratic,
    Sum,
)

from privgp.gp.kernels.evaluate import _profile, rational_profile, variance
from privgp.gp.rounding import UNIT_ROUNDOFF
from privgp.types import Array

CAREFUL = (
    "RBF, Matern with nu 0.5, 1.5, 2.5 or inf, RationalQuadratic, ExpSineSquared, ConstantKernel"
)
ULPS = 4.0  # what exp, log1p and sin may err by; tests/plan/test_careful.py measures them
SMALLEST, LARGEST = 1e-50, 1e50  # lengthscales, alpha, periodicity; LARGEST: coordinates too
LEAST_VARIANCE, LARGEST_VARIANCE = 1e-100, 1e100
MOST_COLUMNS = 10**6
MOST_PERIODS = 1e12  # in the domain
SLACK = 1.001  # terms of second order, underflow, and the rounding of the bound itself


def careful_values(kernel: Kernel, X: Array, Z: Array) -> Array:
    """k(X, Z), (rows of X, rows of Z).

    An entry depends on its two points alone; k(X, X) is symmetric, its diagonal ``variance(kernel)``.
    """
    if isinstance(kernel, Sum):
        return careful_values(kernel.k1, X, Z) + careful_values(kernel.k2, X, Z)
    if isinstance(kernel, Product):
        return careful_values(kernel.k1, X, Z) * careful_values(kernel.k2, X, Z)
    if isinstance(kernel, ConstantKernel):
        return np.full((len(X), len(Z)), float(kernel.constant_value))
    if isinstance(kernel, ExpSineSquared):
        return _periodic(float(kernel.length_scale), float(kernel.periodicity), X, Z)
    squared = _scaled_squares(kernel.length_scale, X, Z)
    if isinstance(kernel, RationalQuadratic):
        alpha = float(kernel.alpha)
        return rational_profile(squared / (2.0 * alpha), alpha)
    return _profile(squared, kernel.nu if isinstance(kernel, Matern) else np.inf)


def careful_error(kernel: Kernel, widths: Array) -> float:
    """A bound of ``|careful_values - k|`` as a share of ``variance(kernel)``.

    For points of a box with sides ``widths`` (inputs,) whose coordinates are at most 1e50 in size.
    Refuses kernels and parameters for which none is proved.
    """
    sides = np.asarray(widths, dtype=float)
    if sides.ndim != 1 or not 1 <= len(sides) <= MOST_COLUMNS:
        raise ValueError(f"widths must hold one number per input, at most {MOST_COLUMNS:,}.")
    if not np.all((sides >= 0.0) & (sides <= 2.0 * LARGEST)):
        raise ValueError(f"the domain must lie within {-LARGEST:g} and {LARGEST:g}.")
    share = _share(kernel, sides)
    return share / (1.0 - share) * SLACK  # of the computed variance, which errs by no more


def _share(kernel: Kernel, widths: Array) -> float:
    """The same as a share of the exact variance."""
    if isinstance(kernel, Sum | Product):
        left, right = _share(kernel.k1, widths), _share(kernel.k2, widths)
        _check("variance", variance(kernel), LEAST_VARIANCE, LARGEST_VARIANCE)
        parts = left + right + left * right if isinstance(kernel, Product) else max(left, right)
        return parts + (1.0 + parts) * UNIT_ROUNDOFF * SLACK
    if isinstance(kernel, ConstantKernel):
        _check("constant_value", kernel.constant_value, LEAST_VARIANCE, LARGEST_VARIANCE)
        return 0.0
    return _units(kernel, widths) * UNIT_ROUNDOFF * SLACK


def _units(kernel: Kernel, widths: Array) -> float:
    """The error of one kernel of variance 1 in units of 2^-53, to first order."""
    columns = len(widths)
    if not isinstance(kernel, RBF | RationalQuadratic | ExpSineSquared):
        raise ValueError(
            f"kernel {type(kernel).__name__} is not available here, as the error of its values is "
            f"not proved: use {CAREFUL}, and their sums and products."
        )
    _check("length_scale", kernel.length_scale, SMALLEST, LARGEST)
    if np.size(kernel.length_scale) not in (1, columns):
        raise ValueError("kernel must have one lengthscale, or one per input.")
    if isinstance(kernel, ExpSineSquared):
        _check("periodicity", kernel.periodicity, SMALLEST, LARGEST)
        if columns > 1:
            raise ValueError("kernel ExpSineSquared is a covariance of one input only.")
        if widths[0] > MOST_PERIODS * kernel.periodicity:
            raise ValueError(f"the domain must hold at most {MOST_PERIODS:g} periods.")
        return (2.0 * (4.36 + 2.0 * ULPS) + 1.0) / math.e + ULPS
    if isinstance(kernel, RationalQuadratic):
        _check("alpha", kernel.alpha, SMALLEST, LARGEST)
        return (columns + 6.0 + 2.0 * ULPS) / math.e + ULPS
    nu = kernel.nu if isinstance(kernel, Matern) else np.inf
    if nu == np.inf:
        return (columns + 4.0) / math.e + ULPS
    if nu == 0.5:
        return (0.5 * columns + 3.0) / math.e + ULPS
    if nu == 1.5:
        return (0.5 * columns + 3.5) * 4.0 / math.e**2 + 1.694 * ULPS + 2.0
    if nu == 2.5:
        return (0.5 * columns + 3.5) * 0.6044 + 1.854 * ULPS + 5.0
    raise ValueError(
        f"kernel Matern(nu={nu:g}) is not available here, as the error of its values is not "
        f"proved: use {CAREFUL}."
    )


def _check(name: str, value: float | Array, low: float, high: float) -> None:
    values = np.asarray(value, dtype=float)
    if not np.all((values >= low) & (values <= high)):
        raise ValueError(f"kernel {name} must lie between {low:g} and {high:g} here.")


def _scaled_squares(length_scale: float | Array, X: Array, Z: Array) -> Array:
    """Sum over columns of ``((x_j - z_j) / l_j)^2``."""
    scales = np.broadcast_to(np.asarray(length_scale, float), (X.shape[1],))
    out = np.zeros((len(X), len(Z)))
    for x, z, scale in zip(X.T, Z.T, scales, strict=True):
        difference = np.subtract.outer(x, z)
        difference /= scale
        difference *= difference
        out += difference
    return out


def _periodic(scale: float, period: float, X: Array, Z: Array) -> Array:
    """``exp(-2 sin^2(pi d / p) / l^2)``, d reduced to within half a period without any error.

    ``d + lost`` is x - z exactly, and both steps of the reduction are exact too.
    """
    x, z = X[:, :1], Z[:, 0]
    d = np.asarray(x - z)
    back = d - x
    lost = (x - (d - back)) - (z + back)
    d = np.fmod(d, period)
    d -= np.where(np.abs(d) > 0.5 * period, np.copysign(period, d), 0.0)
    d += lost
    np.abs(d, out=d)
    sine = np.sin(np.pi * d / period)
    sine /= scale
    sine *= sine
    return np.exp(-2.0 * sine)
