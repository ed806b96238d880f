"""The integral kernel against brute force and its limits."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import dblquad, nquad, quad
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    ExpSineSquared,
    Matern,
    RationalQuadratic,
)

from privgp.gp.kernels.evaluate import evaluate
from privgp.gp.kernels.integral import integral_cross, integral_gram

ONE = [
    RBF(0.7),
    RBF(0.05),
    Matern(0.7, nu=0.5),
    Matern(0.7, nu=1.5),
    Matern(0.2, nu=2.5),
    Matern(0.7, nu=1.0),
    RationalQuadratic(0.5, 0.7),
    ExpSineSquared(0.8, 0.9),
    ConstantKernel(2.0) * RBF(0.5) * RBF(1.0) + ConstantKernel(0.3),
    RBF(1.0) * ExpSineSquared(1.0, 0.5) + Matern(0.3, nu=1.5),
]
TWO = [
    RBF([0.7, 0.3]),
    3.0 * RBF(0.5) * RBF([0.4, 2.0]),
    Matern([0.7, 0.4], nu=0.5),
    Matern(0.5, nu=1.5),
    Matern([0.3, 0.6], nu=2.5),
    RationalQuadratic(0.5, 0.7),
    Matern(0.5, nu=2.5) * RationalQuadratic(0.7, 1.0) + RBF(0.5),
]
# (low, high) in one input: apart, touching, overlapping, one inside the other, the same, points
PAIRS = [
    ((0.0, 0.5), (0.7, 1.4)),
    ((0.0, 0.5), (0.5, 1.4)),
    ((0.0, 0.8), (0.5, 1.4)),
    ((0.0, 2.0), (0.5, 0.6)),
    ((0.2, 0.9), (0.2, 0.9)),
    ((0.3, 0.3), (0.0, 1.0)),
    ((0.3, 0.3), (0.8, 0.8)),
]


def k(kernel, difference) -> float:
    T = np.atleast_2d(np.asarray(difference, float))
    return float(kernel(T, np.zeros_like(T))[0, 0])


def brute_force(kernel, a, b, c, d) -> float:
    """Mean of k over the pair of boxes by adaptive quadrature over differences' densities."""

    def density(t, j):
        overlap = min(b[j], d[j] + t) - max(a[j], c[j] + t)
        return max(overlap, 0.0) / ((b[j] - a[j]) * (d[j] - c[j]))

    inputs = len(a)
    ranges = [(a[j] - d[j], b[j] - c[j]) for j in range(inputs)]
    breaks = [
        {"points": sorted({min(max(t, low), high) for t in (0.0, a[j] - c[j], b[j] - d[j])})}
        | {"epsabs": 1e-10, "epsrel": 1e-9, "limit": 200}
        for j, (low, high) in enumerate(ranges)
    ]
    return nquad(
        lambda *t: k(kernel, t) * np.prod([density(s, j) for j, s in enumerate(t)]),
        ranges,
        opts=breaks,
    )[0]


@pytest.mark.parametrize("kernel", ONE, ids=str)
@pytest.mark.parametrize("pair", PAIRS[:5], ids=str)
def test_intervals_against_brute_force(kernel, pair):
    (a, b), (c, d) = pair
    low, high = np.array([[a], [c]]), np.array([[b], [d]])
    K = integral_gram(kernel, low, high)
    expected = brute_force(kernel, [a], [b], [c], [d])
    assert K[0, 1] == pytest.approx(expected, abs=2e-6)
    point = integral_cross(kernel, np.array([[0.33]]), low, high)[0, 1]
    mean = quad(lambda z: k(kernel, 0.33 - z), c, d, points=[np.clip(0.33, c, d)], limit=200)[0]
    assert point == pytest.approx(mean / (d - c), abs=2e-6)


@pytest.mark.parametrize("kernel", TWO, ids=str)
@pytest.mark.parametrize(("one", "other"), [(4, 4), (1, 2), (3, 1), (0, 0), (2, 4)])
def test_rectangles_against_a_finer_rule(kernel, one, other):
    """The brute force is a fine tensor rule, split at the breaks of the differences' density."""
    (a1, b1), (c1, d1) = PAIRS[one]
    (a2, b2), (c2, d2) = PAIRS[other]
    low, high = np.array([[a1, a2], [c1, c2]]), np.array([[b1, b2], [d1, d2]])
    got = integral_gram(kernel, low, high)[0, 1]
    assert got == pytest.approx(fine(kernel, *PAIRS[one], *PAIRS[other]), abs=3e-6)


def fine(kernel, first, second, third, fourth) -> float:
    axes = [_fine_axis(*first, *second), _fine_axis(*third, *fourth)]
    T = np.stack(np.meshgrid(axes[0][0], axes[1][0], indexing="ij"), axis=-1).reshape(-1, 2)
    return float(
        evaluate(kernel, T, np.zeros((1, 2)))[:, 0] @ np.outer(axes[0][1], axes[1][1]).ravel()
    )


def _fine_axis(a, b, c, d):
    breaks = np.unique([a - d, a - c, b - d, b - c, 0.0])
    breaks = breaks[(breaks >= a - d) & (breaks <= b - c)]
    # geometric towards zero on both sides
    near = np.concatenate([0.5 ** np.arange(1, 16), -(0.5 ** np.arange(1, 16))])
    near = near[(near > a - d) & (near < b - c)]
    breaks = np.unique(np.concatenate([breaks, near]))
    node, weight = np.polynomial.legendre.leggauss(8)
    nodes = np.concatenate([0.5 * (p + q) + 0.5 * (q - p) * node for p, q in pairwise(breaks)])
    weights = np.concatenate([0.5 * (q - p) * weight for p, q in pairwise(breaks)])
    overlap = np.minimum(b, d + nodes) - np.maximum(a, c + nodes)
    return nodes, weights * np.maximum(overlap, 0.0) / ((b - a) * (d - c))


def test_one_double_integral_in_the_open():
    """Over x and z themselves, not over differences."""
    kernel = Matern(0.6, nu=1.5)
    value, _ = dblquad(lambda x, z: k(kernel, x - z), 0.5, 1.4, 0.0, 0.4)
    K = integral_gram(kernel, np.array([[0.0], [0.5]]), np.array([[0.4], [1.4]]))
    assert K[0, 1] == pytest.approx(value / (0.4 * 0.9), abs=1e-8)


@pytest.mark.parametrize("kernel", ONE + TWO, ids=str)
@pytest.mark.parametrize("width", [0.0, 1e-12, 1e-9, 1e-7, 1e-5])
def test_tiny_boxes_are_points(kernel, width):
    inputs = 2 if kernel in TWO else 1
    rng = np.random.default_rng(0)
    X = rng.uniform(-30, 30, size=(6, inputs))
    X[5] = X[4]
    low, high = X - 0.5 * width, X + 0.5 * width
    Z = rng.uniform(-1, 1, size=(3, inputs))
    exact = evaluate(kernel, X)
    np.testing.assert_allclose(integral_gram(kernel, low, high), exact, atol=2e-6 + 40 * width)
    cross = integral_cross(kernel, Z, low, high)
    np.testing.assert_allclose(cross, evaluate(kernel, Z, X), atol=2e-6 + 40 * width)


@pytest.mark.parametrize(
    "kernel",
    [RBF(1e8), Matern(1e8, nu=0.5), Matern(1e8, nu=2.5), RationalQuadratic(1e8), Matern(1e8, nu=1)],
    ids=str,
)
@pytest.mark.parametrize("inputs", [1, 2, 3])
def test_a_huge_lengthscale_is_a_constant(kernel, inputs):
    rng = np.random.default_rng(0)
    low = rng.uniform(size=(4, inputs))
    K = integral_gram(kernel, low, low + rng.uniform(size=(4, inputs)))
    np.testing.assert_allclose(K, 1.0, atol=1e-6)


@pytest.mark.parametrize("kernel", ONE + TWO, ids=str)
def test_averages_of_parts_average_to_the_whole(kernel):
    """Cutting a box in two, the covariances add up: mean over the whole = mean of the halves."""
    inputs = 2 if kernel in TWO else 1
    low = np.zeros((3, inputs))
    high = np.ones((3, inputs))
    high[1, 0], low[2, 0] = 0.4, 0.4
    K = integral_gram(kernel, low, high)
    np.testing.assert_allclose(K[0], 0.4 * K[1] + 0.6 * K[2], atol=3e-6)
    assert np.linalg.eigvalsh(K).min() > -1e-5


def test_a_grid_of_boxes_is_quick_and_a_covariance():
    edges = np.linspace(0, 1, 13)
    a, b = np.meshgrid(edges[:-1], edges[:-1], indexing="ij")
    low = np.column_stack([a.ravel(), b.ravel()])
    K = integral_gram(Matern(0.3, nu=2.5), low, low + 1 / 12)
    assert K.shape == (144, 144)
    assert np.linalg.eigvalsh(K).min() > -1e-5


@pytest.mark.parametrize(
    ("low", "high"),
    [
        ([[0.0]], [[-1.0]]),
        ([[np.nan]], [[1.0]]),
        ([[0.0]], [[np.inf]]),
        ([0.0], [1.0]),
        ([[0.0]], [[1.0, 2.0]]),
    ],
)
def test_bad_boxes_are_refused(low, high):
    with pytest.raises(ValueError, match="low and high"):
        integral_gram(RBF(), np.array(low), np.array(high))
    with pytest.raises(ValueError, match="low and high"):
        integral_cross(RBF(), np.zeros((1, 1)), np.array(low), np.array(high))


def test_points_need_the_boxes_columns():
    with pytest.raises(ValueError, match="X must have 1 columns"):
        integral_cross(RBF(), np.zeros((1, 2)), np.zeros((1, 1)), np.ones((1, 1)))


def test_four_inputs():
    rng = np.random.default_rng(0)
    low = rng.uniform(size=(3, 4))
    high = low + 0.3
    X = rng.uniform(size=(200_000, 4))
    kernel = Matern([0.5, 0.6, 0.7, 0.8], nu=1.5)
    point = integral_cross(kernel, low[:1], low, high)[0]
    for j in range(3):
        inside = low[j] + 0.3 * X
        values = evaluate(kernel, inside, low[:1])[:, 0]
        assert abs(point[j] - values.mean()) < 6 * values.std() / np.sqrt(len(X))
