"""Quantiles of mixtures of normal distributions."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

from privgp.gp.inference.posterior import Mixture

LEVELS = (0.001, 0.05, 0.5, 0.95, 0.999)


def mixture(means, variances, weights=None, noises=None) -> Mixture:
    """One point from lists, several from lists of lists."""
    means, variances = np.array(means, float), np.array(variances, float)
    if means.ndim == 1:
        means, variances = means[:, None], variances[:, None]
    count = len(means)
    weights = np.full(count, 1.0 / count) if weights is None else np.array(weights, float)
    return Mixture(means, variances, weights, np.zeros(count) if noises is None else noises)


def below(m: Mixture, x: float) -> float:
    """The share of the density left of x, integrated numerically."""

    def density(u: float) -> float:
        v = m.variances[:, 0]
        each = np.exp(-0.5 * (u - m.means[:, 0]) ** 2 / v) / np.sqrt(2 * np.pi * v)
        return float(m.weights @ each)

    breaks = sorted({*m.means[:, 0], x - 1.0})
    low = float(np.min(m.means[:, 0] - 12 * np.sqrt(m.variances[:, 0])))
    ends = [low, *(b for b in breaks if low < b < x), x]
    pieces = (quad(density, a, b, limit=200)[0] for a, b in pairwise(ends))
    return float(sum(pieces)) if x > low else 0.0


def test_one_component_has_the_quantiles_of_its_normal_distribution():
    means, variances = np.array([[1.0, -2.0, 30.0]]), np.array([[4.0, 0.25, 1e-6]])
    found = mixture(means, variances).quantiles(LEVELS)
    assert found.shape == (len(LEVELS), 3)
    assert_allclose(found, means + ndtri(LEVELS)[:, None] * np.sqrt(variances), rtol=1e-11)


def test_a_certain_value_is_its_own_quantile():
    assert_allclose(mixture([2.0, 2.0], [0.0, 0.0]).quantiles(LEVELS), 2.0)
    half = mixture([1.0, 5.0], [0.0, 0.0], [0.3, 0.7]).quantiles([0.1, 0.5])[:, 0]
    assert_allclose(half, [1.0, 5.0])


@pytest.mark.parametrize(
    "parts",
    [
        ([0.0, 3.0], [1.0, 0.2], [0.5, 0.5]),
        ([0.0, 10.0, -4.0], [0.1, 4.0, 1.0], [0.2, 0.7, 0.1]),
        ([0.0, 0.0], [1.0, 100.0], [0.999, 0.001]),
    ],
)
def test_quantiles_are_those_of_the_integrated_density(parts):
    m = mixture(*parts)
    found = m.quantiles(LEVELS)[:, 0]
    exact = [brentq(lambda x, p=p: below(m, x) - p, -60, 60, xtol=1e-10) for p in LEVELS]
    assert_allclose(found, exact, atol=1e-6)


def test_a_weight_next_to_nothing_moves_nothing_but_the_far_tail():
    m = mixture([0.0, 1e6], [1.0, 1.0], [1.0 - 1e-12, 1e-12])
    assert_allclose(m.quantiles([0.05, 0.95])[:, 0], ndtri([0.05, 0.95]), atol=1e-6)
    assert_allclose(m.quantiles([1.0 - 5e-13])[0, 0], 1e6, atol=1.0)


PARTS = st.lists(
    st.tuples(st.floats(-1e3, 1e3), st.floats(1e-4, 1e4), st.floats(1e-6, 1.0)),
    min_size=1,
    max_size=6,
)


@given(PARTS, st.lists(st.floats(0.001, 0.999), min_size=1, max_size=4))
def test_quantiles_are_ordered_within_their_components_and_have_their_level(parts, levels):
    means, variances, weights = (np.array(column) for column in zip(*parts, strict=True))
    m = mixture(means, variances, weights / weights.sum())
    levels = sorted(levels)
    found = m.quantiles(levels)[:, 0]
    std = np.sqrt(variances)
    assert np.all(np.diff(found) >= -1e-9)
    for level, x in zip(levels, found, strict=True):
        each = means + ndtri(level) * std
        slack = 1e-9 * (1.0 + np.abs(each).max())
        assert each.min() - slack <= x <= each.max() + slack
        assert_allclose(m.weights @ ndtr((x - means) / std), level, atol=1e-7)


@given(PARTS, st.floats(0.01, 0.99), st.floats(0.01, 100.0), st.floats(-100, 100))
def test_quantiles_move_with_units(parts, level, scale, shift):
    means, variances, weights = (np.array(column) for column in zip(*parts, strict=True))
    plain = mixture(means, variances, weights / weights.sum())
    moved = mixture(shift + scale * means, scale**2 * variances, weights / weights.sum())
    one, two = plain.quantiles([level])[0, 0], moved.quantiles([level])[0, 0]
    # where two components are far apart, a quantile may be any value between them
    std = np.sqrt(variances)
    assert_allclose(plain.weights @ ndtr(((two - shift) / scale - means) / std), level, atol=1e-6)
    assert_allclose(plain.weights @ ndtr((one - means) / std), level, atol=1e-6)


def test_points_do_not_depend_on_each_other():
    rng = np.random.default_rng(0)
    m = mixture(rng.normal(size=(5, 20)), rng.uniform(0.1, 2, size=(5, 20)))
    alone = [Mixture(m.means[:, [i]], m.variances[:, [i]], m.weights, m.noises) for i in range(20)]
    together = m.quantiles(LEVELS)
    assert_allclose(together, np.hstack([one.quantiles(LEVELS) for one in alone]), rtol=1e-11)


def test_outputs_vary_no_more_than_their_bounds_allow():
    noises = np.array([0.5, 50.0])
    m = mixture([[0.0, 0.9], [0.0, 0.9]], [[0.1, 0.1], [0.1, 0.1]], noises=noises)
    outputs = m.of_outputs(-1.0, 1.0)
    most = np.array([1.0, 0.19])
    assert_allclose(outputs.variances, [[0.6, 0.19], most])
    outside = mixture([3.0], [0.4], noises=np.array([1.0])).of_outputs(-1.0, 1.0)
    assert_allclose(outside.variances, 0.4)  # never less than the function's own
    assert_array_equal(outputs.means, m.means)


def test_within_bounds_the_rest_of_the_mixture_is_left_out():
    m = mixture([0.0, 3.0], [1.0, 4.0], [0.3, 0.7])
    low, high = -0.5, 4.0
    found = m.quantiles_within(LEVELS, low, high)[:, 0]
    first, whole = below(m, low), below(m, high) - below(m, low)
    assert_allclose([(below(m, x) - first) / whole for x in found], LEVELS, rtol=1e-6, atol=1e-9)
    assert_allclose(
        m.quantiles_within(LEVELS, -1e3, 1e3), m.quantiles(LEVELS), rtol=1e-9, atol=1e-9
    )


def test_a_mixture_beyond_its_bounds_gives_the_nearer_bound():
    m = mixture([[-50.0, 50.0]], [[1.0, 1.0]])
    assert_array_equal(m.quantiles_within((0.05, 0.95), 0.0, 1.0), [[0.0, 1.0], [0.0, 1.0]])
