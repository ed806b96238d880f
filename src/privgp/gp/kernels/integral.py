"""Averages of a Gaussian process over axis-parallel boxes: the integral kernel.

The covariance of two box averages is the mean of ``k(x - z)`` over x in one and z in the other. All
supported kernels are stationary, so it is an integral over differences. Per input it is closed for
RBF and, with one input, for Matern 1/2, 3/2, 5/2: with ``G'' = k``, ``G(0) = G'(0) = 0``,

    w v mean k = G(b - c) - G(a - c) - G(b - d) + G(a - d)   for x in [a, b], z in [c, d],

of widths w, v. Everything else is integrated numerically: see privgp.gp.kernels.quadrature."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf, expm1
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Kernel, Matern, Product, Sum

from privgp.gp.kernels.evaluate import variance
from privgp.gp.kernels.quadrature import gauss, mean_of_differences
from privgp.gp.kernels.registry import parts
from privgp.types import Array, Integers

# A second difference of G loses digits where the widths are small and the distance is not.
LOST = 1e-9 / np.finfo(float).eps
FEW = 3  # nodes for a box that is tiny against the distance or the lengthscale


def integral_gram(kernel: Kernel, low: Array, high: Array) -> Array:
    """Covariance (m, m) of the averages of f over boxes.

    Parameters
    ----------
    kernel
        a supported one.
    low, high
        (m, inputs), corners of the boxes; one of no width in some input is a point there.

    """
    low, high = _check_limits(low, high)
    K = _between(kernel, low, high, low, high)
    return np.asarray(0.5 * (K + K.T))


def integral_cross(kernel: Kernel, X: Array, low: Array, high: Array) -> Array:
    """Covariance of f at the rows of X with the averages over boxes, (rows of X, m).

    Parameters
    ----------
    kernel
        a supported one.
    X
        (rows, inputs).
    low, high
        (m, inputs), corners of the boxes.

    """
    low, high = _check_limits(low, high)
    X, _ = _check_limits(X, X)
    if X.shape[1] != low.shape[1]:
        raise ValueError(f"X must have {low.shape[1]} columns, as the boxes have.")
    return _between(kernel, X, X, low, high)


def _check_limits(low: Array, high: Array) -> tuple[Array, Array]:
    low, high = np.asarray(low, dtype=float), np.asarray(high, dtype=float)
    if low.ndim != 2 or low.shape != high.shape:
        raise ValueError("low and high must have one row per box and one column per input.")
    if not (np.all(np.isfinite(low)) and np.all(np.isfinite(high)) and np.all(low <= high)):
        raise ValueError("low and high must be finite, and low nowhere above high.")
    return low, high


def _between(kernel: Kernel, a: Array, b: Array, c: Array, d: Array) -> Array:
    """Covariance of the averages over [a, b] and over [c, d], (rows of a, rows of c)."""
    return reduce(np.add, (_product(term, a, b, c, d) for term in parts(kernel, Sum)))


def _product(kernel: Kernel, a: Array, b: Array, c: Array, d: Array) -> Array:
    """The same of one term, whose constant factors come out of the integral."""
    factors = parts(kernel, Product)
    rest = [factor for factor in factors if not isinstance(factor, ConstantKernel)]
    scale = math.prod([variance(k) for k in factors if isinstance(k, ConstantKernel)], start=1.0)
    if not rest:
        return np.full((len(a), len(c)), scale)
    closed = _analytic_form(rest, a.shape[1])
    if closed is None:
        return np.asarray(scale * mean_of_differences(reduce(Product, rest), a, b, c, d))
    profile, scales = closed
    out = np.full((len(a), len(c)), scale)
    for j, unit in enumerate(scales):
        # On a grid few sides are distinct, and each pair of them is integrated once.
        first, left = _distinct(a[:, j] / unit, b[:, j] / unit)
        second, right = _distinct(c[:, j] / unit, d[:, j] / unit)
        sides = np.broadcast_arrays(*first[:, :, None], *second[:, None, :])
        out *= _interval_means(profile, *sides)[np.ix_(left, right)]
    return out


def _distinct(low: Array, high: Array) -> tuple[Array, Integers]:
    """The distinct pairs (low, high), (2, distinct), and which of them every pair is."""
    sides, index = np.unique(np.vstack([low, high]), axis=1, return_inverse=True)
    return sides, np.ravel(index)


@dataclass(frozen=True)
class _Profile:
    """k at a distance r >= 0 in units of its scale, with its first and second integral from 0."""

    value: Callable[[Array], Array]
    once: Callable[[Array], Array]
    twice: Callable[[Array], Array]


def _analytic_form(factors: list[Kernel], inputs: int) -> tuple[_Profile, Array] | None:
    """The profile and the scale per input of a product that has a closed form."""
    if all(isinstance(k, RBF) and not isinstance(k, Matern) for k in factors):
        inverse = sum(np.broadcast_to(k.length_scale, (inputs,)) ** -2.0 for k in factors)
        return _RBF, np.asarray(inverse**-0.5)
    only = factors[0]
    if inputs == 1 and len(factors) == 1 and isinstance(only, Matern):
        if only.nu in (0.5, 1.5, 2.5):
            return _matern(only.nu), np.ravel(only.length_scale) / np.sqrt(2.0 * only.nu)
        if only.nu == np.inf:
            return _RBF, np.ravel(only.length_scale)
    return None


_RBF: _Profile = _Profile(
    value=lambda r: np.exp(-0.5 * r * r),
    once=lambda r: np.sqrt(np.pi / 2.0) * erf(r / np.sqrt(2.0)),
    twice=lambda r: r * _RBF.once(r) + expm1(-0.5 * r * r),
)


def _matern(nu: float) -> _Profile:
    """``k = p e^-r``: then ``once = q(0) - q e^-r`` and ``twice = q(0) r - s(0) + s e^-r``."""
    p, q, s = {
        0.5: ([1.0], [1.0], [1.0]),
        1.5: ([1.0, 1.0], [2.0, 1.0], [3.0, 1.0]),
        2.5: ([1.0, 1.0, 1 / 3], [8 / 3, 5 / 3, 1 / 3], [5.0, 7 / 3, 1 / 3]),
    }[nu]

    def rest(coefficients: list[float], r: Array) -> Array:
        """The polynomial without its constant, times e^-r, plus the constant times expm1(-r)."""
        tail = np.polynomial.polynomial.polyval(r, [0.0, *coefficients[1:]])
        return np.asarray(coefficients[0] * expm1(-r) + tail * np.exp(-r))

    return _Profile(
        lambda r: np.asarray(np.polynomial.polynomial.polyval(r, p) * np.exp(-r)),
        lambda r: -rest(q, r),
        lambda r: q[0] * r + rest(s, r),
    )


def _interval_means(k: _Profile, a: Array, b: Array, c: Array, d: Array) -> Array:
    """Mean of k over x in [a, b], z in [c, d], entry by entry; each interval may be a point."""

    def twice(a: Array, b: Array, c: Array, d: Array) -> Array:
        G = [k.twice(np.abs(r)) for r in (b - c, a - c, b - d, a - d)]
        return np.asarray((G[0] - G[1] - G[2] + G[3]) / ((b - a) * (d - c)))

    def narrower_first(a: Array, b: Array, c: Array, d: Array) -> Array:
        turn = b - a > d - c
        near, far = np.where(turn, c, a), np.where(turn, d, b)
        wide = np.where(turn, a, c), np.where(turn, b, d)
        if np.array_equal(near, far):
            return _from_point(k, near, *wide)
        return _by_few_nodes(lambda x: _from_point(k, x, *wide), near, far)

    furthest = np.maximum(np.abs(b - c), np.abs(d - a))
    return _by_case((b - a) * (d - c) * LOST > furthest, twice, narrower_first, a, b, c, d)


def _from_point(k: _Profile, x: Array, c: Array, d: Array) -> Array:
    """Mean of k(x - z) over z in [c, d]."""

    def once(x: Array, c: Array, d: Array) -> Array:
        first, second = (np.sign(r) * k.once(np.abs(r)) for r in (x - c, x - d))
        return np.asarray((first - second) / (d - c))

    def by_nodes(x: Array, c: Array, d: Array) -> Array:
        return _by_few_nodes(lambda z: k.value(np.abs(x - z)), c, d)

    furthest = np.maximum(np.abs(x - c), np.abs(x - d))
    return _by_case((d - c) * LOST > 1.0 + furthest * 1e-6, once, by_nodes, x, c, d)


def _by_case(
    safe: NDArray[np.bool_], exact: Callable[..., Array], other: Callable[..., Array], *sides: Array
) -> Array:
    """``exact(*sides)`` in the entries where that is safe, ``other(*sides)`` elsewhere."""
    out = np.empty(safe.shape)
    for chosen, formula in ((safe, exact), (~safe, other)):
        if chosen.any():
            out[chosen] = formula(*(side[chosen] for side in sides))
    return out


def _by_few_nodes(function: Callable[[Array], Array], low: Array, high: Array) -> Array:
    """Mean of a function over [low, high], which is small."""
    terms = (w * function(low + node * (high - low)) for node, w in zip(*gauss(FEW), strict=True))
    return np.asarray(sum(terms))
