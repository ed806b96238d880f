"""Input maps, collapsing, the exact smoother, low-rank factors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, Matern

from privgp.gp.kernels.evaluate import evaluate
from privgp.gp.priors import blend_ranks, collapse, spreads
from privgp.gp.smoothers import choose_nodes, exact_smoother, nystrom


@given(st.floats(0.0, 1.0), st.integers(1, 60), st.integers(0, 1000))
def test_maps_are_monotone_and_keep_the_scale(share, rows, seed):
    X = np.random.default_rng(seed).exponential(size=(rows, 2))
    mapped = blend_ranks(X, share)(np.sort(X, axis=0))
    assert np.all(np.diff(mapped, axis=0) >= -1e-12)
    if rows > 30:
        assert np.all(spreads(mapped) < 3 * spreads(X))
        assert np.all(spreads(mapped) > spreads(X) / 3)


def test_the_raw_map_changes_nothing():
    X = np.arange(6.0).reshape(3, 2)
    assert blend_ranks(X, 0.0)(X) is X


def test_constant_columns_have_a_scale():
    assert_array_equal(spreads(np.full((5, 2), 1e9)), [1.0, 1.0])
    assert_array_equal(spreads(np.zeros((1, 1))), [1.0])


def test_collapsing_keeps_every_row():
    X = np.array([[1.0, 2.0], [0.0, 0.0], [1.0, 2.0]])
    unique, index = collapse(X)
    assert len(unique) == 2
    assert_array_equal(unique[index], X)


def test_the_smoother_is_the_posterior_mean_also_with_repeated_inputs():
    rng = np.random.default_rng(0)
    inputs = rng.uniform(0, 5, size=(12, 1))
    index = np.concatenate([np.arange(12), rng.integers(0, 12, 20)])
    y = rng.standard_normal(32)
    targets = np.linspace(0, 5, 7)[:, None]
    counts = np.bincount(index).astype(float)
    smoother = exact_smoother(2.0 * RBF(1.0), 0.3, inputs, counts, targets)
    reference = GaussianProcessRegressor(2.0 * RBF(1.0), alpha=0.3, optimizer=None)
    mean, std = reference.fit(inputs[index], y).predict(targets, return_std=True)
    assert_allclose(smoother.weights @ np.bincount(index, y), mean, atol=1e-9)
    assert_allclose(np.sqrt(smoother.variance), std, atol=1e-9)
    assert smoother.jitter == 0.0


def test_jitter_is_recorded():
    X = np.linspace(0, 1, 60)[:, None]
    smoother = exact_smoother(RBF(10.0), 1e-18, X, np.ones(60), X)
    assert smoother.jitter > 0
    assert np.all(np.isfinite(smoother.weights))


@pytest.mark.parametrize("count", [5, 40, 200])
def test_a_low_rank_factor_leaves_a_positive_residual(count):
    X = np.random.default_rng(1).normal(size=(150, 2))
    kernel = 2.0 * Matern(1.0, nu=2.5)
    factor = nystrom(kernel, X, choose_nodes(kernel, X, count))
    left = evaluate(kernel, X) - factor.factor @ factor.factor.T
    assert np.linalg.eigvalsh(left).min() > -1e-6
    assert_allclose(np.diag(left), factor.residual, atol=1e-6)
    assert_allclose(factor.interpolation.T @ evaluate(kernel, factor.nodes) @ factor.interpolation,
                    factor.factor @ factor.factor.T, atol=1e-6)  # fmt: skip
    if count >= 150:
        assert_allclose(left, 0.0, atol=1e-6)


def test_few_distinct_points_need_few_nodes():
    X = np.repeat(np.arange(3.0), 50)[:, None]
    chosen = choose_nodes(RBF(0.1), X, 20)
    assert len(chosen) <= 20
    assert set(X[chosen, 0]) == {0.0, 1.0, 2.0}
