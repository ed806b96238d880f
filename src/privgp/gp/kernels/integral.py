"""Averages of a Gaussian process over axis-parallel boxes: the integral kernel.

The covariance of two box averages is the mean of ``k(x - z)`` over x in one and z in the other. All
supported kernels are stationary, so it is an integral over differences. Per input it is closed for
RBF and, with one input, for Matern 1/2, 3/2, 5/2: with ``G'' = k``, ``G(0) = G'(0) = 0``,

    w v mean k = G(b - c) - G(a - c) - G(b - d) + G(a - d)   for x in [a, b], z in [c, d],

of widths w, v. Everything else is integrated numerically.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, reduce

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf, expm1
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Kernel, Matern, Product, Sum

from privgp.gp.kernels.evaluate import evaluate, variance
from privgp.gp.kernels.registry import kind_of, parts
from privgp.types import Array, Integers

CROWDED = {1: 14, 2: 12, 3: 6}  # nodes per piece at the kink, by the number of inputs
MOST_NODES = {1: 96, 2: 32, 3: 14}
SMALL = 1.0  # lengthscales: boxes up to this wide are integrated by few nodes away from the kink
BLOCK_ENTRIES = 2**20


@lru_cache(maxsize=256)
def gauss(count: int) -> tuple[Array, Array]:
    """Nodes and weights of Gauss-Legendre quadrature on [0, 1], (count,) each."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return 0.5 * nodes + 0.5, 0.5 * weights


def mean_of_differences(kernel: Kernel, a: Array, b: Array, c: Array, d: Array) -> Array:
    """Mean of k(x - z) for x in [a_i, b_i] and z in [c_j, d_j], (rows of a, rows of c).

    Parameters
    ----------
    kernel
        a supported one; it needs no closed form.
    a, b, c, d
        Corners, (boxes, inputs); pairs on a regular grid are integrated once.

    """
    inputs = a.shape[1]
    sides = np.broadcast_arrays(a[:, None] - d, (b - a)[:, None], d - c)
    spans = np.concatenate(sides, axis=2).reshape(-1, 3 * inputs)
    inverse: Integers | slice = slice(None)
    if a is c:  # of the pairs on a regular grid few differ
        digits = 1e-13 * max(float(np.abs(spans).max()), 1e-300)
        _, first, inverse = np.unique(
            np.round(spans / digits), axis=0, return_index=True, return_inverse=True
        )
        spans, inverse = spans[first], inverse.ravel()
    start, w, v = np.split(spans, 3, axis=1)
    slack = 0.5 * (w + v)
    near = (inputs <= 3) & np.all((start <= slack) & (start + w + v >= -slack), axis=1)
    out = np.empty(len(spans))
    for chosen, at_kink in ((near, True), (~near, False)):
        out[chosen] = _means(kernel, start[chosen], w[chosen], v[chosen], at_kink)
    return np.asarray(out[inverse].reshape(len(a), len(c)))


def _means(kernel: Kernel, start: Array, w: Array, v: Array, at_kink: bool) -> Array:
    """One mean per row of (pairs, inputs): the least difference and the two boxes' widths."""
    pairs, inputs = start.shape
    shortest = min(kind_of(leaf).shortest_scale(leaf) for leaf in parts(kernel))
    widest = float(np.maximum(w, v).max(initial=0.0)) / shortest
    # Crowding nodes at one end leaves them three times as far apart at the other.
    needed = CROWDED.get(inputs, 5) + 5.0 * widest if at_kink else 6.0 + 2.0 * widest
    count = int(min(needed, MOST_NODES.get(inputs, 5)))
    out = np.empty(pairs)
    pieces = 6 if at_kink else 3
    step = max(1, BLOCK_ENTRIES // (pieces * count) ** inputs)
    for begin in range(0, pairs, step):
        rows = slice(begin, begin + step)
        many = len(start[rows])
        T, weight = np.empty((many, 1, 0)), np.ones((many, 1))
        for j in range(inputs):
            sides = start[rows, j], w[rows, j], v[rows, j]
            if at_kink or (widest > SMALL and inputs <= 3):
                nodes, share = _trapezoid(*sides, count, at_kink)
            else:
                nodes, share = _smooth_rule(*sides)
            used = share.any(axis=0)
            nodes, share = nodes[:, used, None], share[:, used]
            before, more = weight.shape[1], share.shape[1]
            T = np.concatenate([np.repeat(T, more, axis=1), np.tile(nodes, (1, before, 1))], axis=2)
            weight = (weight[:, :, None] * share[:, None, :]).reshape(many, -1)
        values = evaluate(kernel, T.reshape(-1, inputs), np.zeros((1, inputs)))
        out[rows] = np.einsum("ij,ij->i", weight, values.reshape(weight.shape))
    return out


def _smooth_rule(start: Array, w: Array, v: Array) -> tuple[Array, Array]:
    """The five-point Gauss rule of the trapezoid density, (pairs, 5): exact up to degree 9. With a
    difference scaled to [-1, 1] its even moments are those of a sum of two even variables; nodes
    are 0 and the roots of the orthogonal polynomial ``t (t^4 - p t^2 + q)``."""
    half = 0.5 * (w + v)
    share = np.divide(w, w + v, out=np.full_like(w, 0.5), where=half > 0)
    x, z = share**2, (1.0 - share) ** 2
    m2 = (x + z) / 3.0
    m4 = (x**2 + z**2) / 5.0 + 6.0 * x * z / 9.0
    m6 = (x**3 + z**3) / 7.0 + 15.0 * x * z * (x + z) / 15.0
    m8 = (x**4 + z**4) / 9.0 + 28.0 * x * z * (x**2 + z**2) / 21.0 + 70.0 * x**2 * z**2 / 25.0
    # t^5 - p t^3 + q t is orthogonal to t and t^3.
    below = m2 * m6 - m4**2
    p, q = (m2 * m8 - m4 * m6) / below, (m4 * m8 - m6**2) / below
    root = np.sqrt(np.maximum(0.25 * p * p - q, 0.0))
    inner, outer = 0.5 * p - root, 0.5 * p + root
    a = (m4 - outer * m2) / (inner * (inner - outer))
    b = (m4 - inner * m2) / (outer * (outer - inner))
    middle = start + half
    offsets = half[:, None] * np.sqrt(np.column_stack([inner, outer]))
    nodes = middle[:, None] + np.hstack([-offsets, np.zeros((len(w), 1)), offsets])
    weights = np.column_stack([0.5 * a, 0.5 * b, 1.0 - a - b, 0.5 * a, 0.5 * b])
    return nodes, weights


def _trapezoid(start: Array, w: Array, v: Array, count: int, at_kink: bool) -> tuple[Array, Array]:
    """Nodes and weights, (pairs, nodes) each, of the density of x - z; split at 0 if at the kink."""
    wide, narrow = np.maximum(w, v), np.minimum(w, v)
    ramp = np.divide(0.5 * narrow, wide, out=np.zeros_like(wide), where=wide > 0)
    edges = np.stack([start, start + narrow, start + wide, start + wide + narrow], axis=1)
    node, weight = gauss(count)
    crowd, denser = node**3, weight * 3.0 * node**2
    nodes, weights = [], []
    # The density along a piece of the way s from 0 to 1 is constant + slope s: it rises, stays, falls.
    for k, (constant, slope) in enumerate(((0.0, 2.0), (1.0, 0.0), (2.0, -2.0))):
        mass = (1.0 - 2.0 * ramp if k == 1 else ramp)[:, None]
        low, length = edges[:, k, None], (edges[:, k + 1] - edges[:, k])[:, None]
        if not at_kink:
            nodes.append(low + length * node)
            weights.append(mass * weight * (constant + slope * node))
            continue
        zero = np.divide(-low, length, out=np.zeros_like(low), where=length > 0).clip(0.0, 1.0)
        for end in (0.0, 1.0):
            share = zero + (end - zero) * crowd
            nodes.append(low + length * share)
            weights.append(mass * np.abs(end - zero) * denser * (constant + slope * share))
    return np.hstack(nodes), np.hstack(weights)


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
