"""The papers' own formulas, for comparison: what they print, and what is wrong with it."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

from papers.shared.cloaking import algorithm_1, cloak, hall_delta, hall_multiplier, workload


def some(rows=40, seed=0):
    rng = np.random.default_rng(seed)
    X = np.round(rng.uniform(0, 10, (rows, 1)), 1)  # some rows are equal
    return X, np.sin(X[:, 0]) + 0.1 * rng.normal(size=rows)


def test_halls_calibration_is_not_private_at_the_epsilon_of_figure_1():
    assert hall_multiplier(1.0, 0.01) == pytest.approx(3.2552472614)
    assert hall_delta(50.0, 0.01) == pytest.approx(0.999993, abs=1e-6)
    assert hall_delta(1.0, 0.01) < 1e-4


def test_a_cloak_is_the_posterior_mean_with_noise_that_hides_every_output():
    X, y = some()
    targets = np.linspace(-1, 11, 9)[:, None]
    made = cloak(RBF(2.0), 0.3, X, y, targets, 0.5)
    known = GaussianProcessRegressor(RBF(2.0), alpha=0.3, optimizer=None).fit(X, y - 0.5)
    assert np.allclose(made.mean, 0.5 + known.predict(targets), atol=1e-8)
    C = workload(RBF(2.0), 0.3, X, targets).matrix
    moved = np.linalg.norm(np.linalg.pinv(made.root) @ C, axis=0)
    assert moved.max() == pytest.approx(1.0, rel=1e-6)
    rng = np.random.default_rng(0)
    draws = np.array([made.release(3.0, rng) for _ in range(4000)])
    assert np.allclose(draws.std(axis=0), made.noise_std(3.0), rtol=0.1)


def test_algorithm_1_comes_near_the_optimum_on_an_easy_problem():
    X, y = some(12)
    targets = np.array([[2.0], [7.0]])
    best = cloak(RBF(2.0), 0.3, X, y, targets, 0.0)
    C = workload(RBF(2.0), 0.3, X, targets).matrix
    root = algorithm_1(C, 2000, 0)
    wanted, found = (np.linalg.slogdet(R @ R.T)[1] for R in (best.root, root))
    assert found == pytest.approx(wanted, abs=0.1)
    early = algorithm_1(C, 1, 0)
    assert np.linalg.slogdet(early @ early.T)[1] > wanted + 1.0
