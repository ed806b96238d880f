"""Attacks on Laplace noise for whole records with the sampler that protects real releases, and its
accuracy by simulation.

A record that moves from the middle of the bounds in one bin to a bound in another moves four numbers,
by 1, 1/2, 1/2 and the weight w of the energy: all of the ``2 + w`` that are allowed, whatever w the
plan chooses. The event that all four lie beyond their exact values then has probability 1/16 against
``e^-epsilon / 16``. Bounds of such rates fail with probability at most 1e-6.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from math import log

import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.gaussian_process.kernels import ConstantKernel, Matern

from privgp import PrivateGPRegressor
from privgp.gp.inference.posterior import posterior
from privgp.plan.bins.bins import HalvedBins
from privgp.privacy.noise import LAPLACE, LaplaceNoise, laplace_noise
from privgp.release.records import RecordsInBins
from privgp.vault.measure import add_noise, measure
from privgp.vault.measure import exact as without_noise
from tests.releases import releases

pytestmark = pytest.mark.statistical(failure=1e-6)
DRAWS = 60_000
Z90 = 1.6448536269514722


def planned(rows: int, **settings):
    given = {"y_bounds": (-1, 1), "x_bounds": (0, 1), "mechanism": "laplace", **settings}
    return PrivateGPRegressor(protect="records", **given).plan(rows)


@cache
def four_errors(side: int, noise: LaplaceNoise) -> np.ndarray:
    """The noise on the four numbers; ``side`` only tells two such draws apart."""
    return add_noise(np.zeros(4 * DRAWS), noise).reshape(DRAWS, 4)


def attacked_epsilon(epsilon: float, noise_scale: float = 1.0) -> tuple[float, float, float]:
    """Confidence bounds of the log-ratio of the event's probabilities, and what it should be."""
    plan = planned(2000, epsilon=epsilon)
    X, u = np.full((2000, 1), 0.4), np.full(2000, 0.1)
    X[0], u[0] = 0.9, 0.0
    low = without_noise(plan.strategy, (X, u), (-1.0, 1.0))
    X[0], u[0] = 0.4, 1.0
    high = without_noise(plan.strategy, (X, u), (-1.0, 1.0))
    places = np.flatnonzero(high != low)
    assert len(places) == 4
    signs = np.sign(high - low)[places]
    noise = replace(plan.noise, size=4 * DRAWS)
    rates = []
    for side, exact in enumerate((high, low)):
        noisy = exact[places] + noise_scale * four_errors(side, noise)
        beyond = np.all(signs * (noisy - high[places]) > 0, axis=1)
        hits = int(np.count_nonzero(beyond))
        rates.append(binomtest(hits, DRAWS).proportion_ci(1 - 5e-7, method="exact"))
    share = np.abs(high - low).sum() / plan.strategy.sensitivity()
    return log(rates[0].low / rates[1].high), log(rates[0].high / rates[1].low), share * epsilon


def test_no_event_is_more_than_the_promised_times_as_likely():
    epsilon = 1.5
    least, most, exact = attacked_epsilon(epsilon)
    assert least <= exact <= most
    assert 0.97 * epsilon < exact <= epsilon


def test_the_attack_finds_noise_that_is_half_too_large():
    """The upper bound is 1.21 on average with a std of 0.03, seven of which lie below 1.455."""
    assert attacked_epsilon(1.5, noise_scale=1.5)[1] < 0.97 * 1.5


def test_counts_and_sums_have_the_noise_they_say_and_uncorrelated():
    """20,000 of each from the production sampler. The variance of a sum of two Laplace numbers is
    found to 7%, a correlation to 0.04, each within five standard deviations."""
    bins = HalvedBins(np.zeros(1), np.ones(1), (400,), 3, np.eye(400), 0.1)
    noise = laplace_noise(1.0, bins.size, bins.sensitivity(), bins.float_error())
    X, y = np.array([[0.1], [0.1], [0.9]]), np.array([3.0, -1.0, 2.0])
    drawn = [measure((X, y), (-3, 3), bins, noise) for _ in range(50)]
    index = bins.of(X)
    counts = np.concatenate([m.counts - np.bincount(index, minlength=400) for m in drawn])
    sums = np.concatenate([m.values - np.bincount(index, y, minlength=400) for m in drawn])
    claimed = bins.sum_std(noise.std)
    assert claimed == pytest.approx(2 * 2.1, rel=1e-6)
    assert drawn[0].noise_std == pytest.approx(3 * claimed)
    assert np.var(counts) / claimed**2 == pytest.approx(1.0, abs=0.07)
    assert np.var(sums) / drawn[0].noise_std ** 2 == pytest.approx(1.0, abs=0.07)
    assert abs(np.corrcoef(counts, sums)[0, 1]) < 0.04


def test_the_expected_error_is_met_by_simulated_releases():
    """100 functions from the prior, 400 even records each. The mean square of one release varies by
    about two thirds of itself, so that of 100 by 7%: five standard deviations are 17% of the error."""
    kernel = ConstantKernel(0.05, "fixed") * Matern(0.3, "fixed", nu=2.5)
    settings = {"kernel": kernel, "noise_variance": 0.01, "hyperparameters": "fixed"}
    plan = planned(400, epsilon=1.0, **settings)
    bins, squares = plan.strategy, []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        X = rng.uniform(size=(400, 1))
        both = np.vstack([X, plan.targets])
        root = np.linalg.cholesky(kernel(both) + 1e-9 * np.eye(len(both)))
        f = root @ rng.standard_normal(len(both))
        y = f[:400] + 0.1 * rng.standard_normal(400)
        measurement = measure((X, y), (-1, 1), bins, plan.noise, rng)
        where = RecordsInBins.of(bins, measurement, plan.noise.std)
        found = where.functionals(measurement, plan.start)
        mean, _ = posterior(found, measurement, [plan.start], 0.0).mean_and_variance(plan.targets)
        squares.append(np.mean((mean - f[400:]) ** 2))
    assert np.sqrt(np.mean(squares)) / plan.expected_error() == pytest.approx(1.0, abs=0.17)


def test_kung_heights_with_private_ages_and_a_small_delta(kung):
    X, y = kung
    squares, covered = [], []
    settings = {"protect": "records", "x_bounds": (0, 90), "y_bounds": (75, 175), "delta": 1e-5}
    for model in releases(X, y, range(10), **settings):
        squares.append(np.mean((model.predict(X) - y) ** 2))
        low, high = model.interval(X, 0.9, observation=True)
        covered.append(np.mean((low <= y) & (y <= high)))
    assert model.plan_.strategy.law == LAPLACE
    assert np.sqrt(np.mean(squares)) <= 10.5  # Gaussian noise: 10.8
    assert 0.85 <= np.mean(covered) <= 0.98
