"""Means of a stationary kernel over pairs of boxes by Gauss-Legendre quadrature over differences.

Per input the difference of two evenly distributed points has a trapezoid for its density: it rises,
is flat and falls. Each piece gets its own nodes; where the kernel may have its kink, at a
difference of nothing, pieces are split and nodes crowd towards it. Errors are near 1e-6 up to three
inputs; beyond, the five nodes per input ignore the kink, which then matters less."""

from functools import lru_cache

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from privgp.gp.kernels.evaluate import evaluate
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
