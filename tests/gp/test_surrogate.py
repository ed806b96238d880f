"""The growing process is the Gaussian process it says it is."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

from privgp.gp.surrogate import Hyperprior, Surrogate, known_prior, robust_prior
from privgp.plan.search.plan import (
    best_setting,
    expected_improvement,
    next_setting,
    upper_limit,
)

POINTS = np.random.default_rng(0).uniform(size=(40, 2))
PLACES = [3, 17, 3, 8, 30, 21]
VALUES = np.sin(5 * POINTS[PLACES, 0]) + 0.1 * np.arange(6)


def grown(prior, noise=0.1) -> Surrogate:
    surrogate = Surrogate(POINTS, prior)
    for place, value in zip(PLACES, VALUES, strict=True):
        surrogate.observe(place, value, noise)
    return surrogate


@pytest.mark.parametrize("order", [1.5, 2.5, np.inf])
def test_it_agrees_with_scikit_learn(order):
    prior = Hyperprior(np.array([[0.3, 0.7]]), np.array([1.3]), np.array([order]), 0.9)
    kernel = 1.3**2 * (RBF([0.3, 0.7]) if order == np.inf else Matern([0.3, 0.7], nu=order))
    other = GaussianProcessRegressor(kernel + ConstantKernel(0.81), alpha=0.01, optimizer=None)
    other.fit(POINTS[PLACES], VALUES)
    mean, std = other.predict(POINTS, return_std=True)
    surrogate = grown(prior)
    ours, ours_std = surrogate.posterior()
    assert ours == pytest.approx(mean, abs=1e-7)
    assert ours_std == pytest.approx(std, abs=1e-7)
    evidence = other.log_marginal_likelihood_value_ + 3 * np.log(2 * np.pi)
    assert surrogate.log_evidence[0] == pytest.approx(evidence, abs=1e-7)


def test_hyperparameters_are_averaged_by_their_evidence():
    surrogate = grown(robust_prior(2))
    weights = surrogate.weights
    assert weights.sum() == pytest.approx(1)
    rng = np.random.default_rng(1)
    which = rng.choice(len(weights), 200_000, p=weights)
    draws = surrogate.means[which, 5] + np.sqrt(
        surrogate.variances[which, 5]
    ) * rng.standard_normal(200_000)
    mean, std = surrogate.posterior()
    assert draws.mean() == pytest.approx(mean[5], abs=5 * std[5] / np.sqrt(200_000))
    assert draws.std() == pytest.approx(std[5], rel=0.05)


def test_expected_improvement_is_what_its_name_says():
    surrogate = grown(robust_prior(2))
    best = surrogate.posterior()[0][PLACES].max()
    rng = np.random.default_rng(2)
    which = rng.choice(len(surrogate.weights), 200_000, p=surrogate.weights)
    for place in (0, 5, 30):
        spread = np.sqrt(surrogate.variances[which, place])
        gain = np.maximum(
            surrogate.means[which, place] + spread * rng.standard_normal(200_000) - best, 0
        )
        error = 6 * gain.std() / np.sqrt(200_000) + 1e-9
        assert expected_improvement(surrogate, PLACES)[place] == pytest.approx(
            gain.mean(), abs=error
        )


def test_the_next_setting_is_the_most_promising():
    surrogate = grown(robust_prior(2))
    mean, std = surrogate.posterior()
    assert next_setting(surrogate, PLACES, "ucb", 2.0) == np.argmax(mean + 2 * std)
    assert upper_limit(surrogate, 0.0) == pytest.approx(mean)
    assert best_setting(surrogate) == np.argmax(np.clip(mean, -1, 1) - std)
    first = next_setting(Surrogate(POINTS, robust_prior(2)), [], "ei", 2.0)
    assert np.linalg.norm(POINTS[first] - 0.5) < 0.2


def test_exact_scores_are_interpolated_and_repeats_do_no_harm():
    surrogate = Surrogate(POINTS, known_prior(2, 0.5, 2.5))
    for _ in range(3):
        for place, value in ((3, 1.0), (8, -1.0)):
            surrogate.observe(place, value, 0.0)
    mean, std = surrogate.posterior()
    assert mean[[3, 8]] == pytest.approx([1, -1], abs=1e-6)
    assert np.all(np.isfinite(mean))
    assert np.all(np.isfinite(std))
    assert std[[3, 8]].max() < 1e-4


def test_many_scores_are_as_good_as_few_and_large_searches_take_fewer_draws():
    surrogate = Surrogate(POINTS, robust_prior(2))
    rng = np.random.default_rng(0)
    for place in rng.integers(0, 40, 100):
        surrogate.observe(place, np.sin(5 * POINTS[place, 0]), 0.05)
    assert surrogate.posterior()[0] == pytest.approx(np.sin(5 * POINTS[:, 0]), abs=0.1)
    assert len(robust_prior(2, scores=500, settings=10_000).stds) == 8


def test_one_setting_and_an_unknown_order():
    lonely = Surrogate(np.zeros((1, 1)), robust_prior(1))
    assert next_setting(lonely, [], "ucb", 2.0) == 0
    with pytest.raises(ValueError, match="smoothness"):
        Surrogate(POINTS, known_prior(2, 0.5, 0.5)).observe(0, 1.0, 0.1)
