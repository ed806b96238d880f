"""The noise on bin sums and the best attack on one output, with the production samplers.

60,000 draws a side; every test fails by chance with probability below 1e-6, and rejects noise that is
20% smaller than it should be.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import beta, laplace, norm

from privgp.models.binned import BinnedMeans
from privgp.plan.bins.bins import BinSums, HalvedBins
from privgp.plan.strategy import noise_of as noise_for_strategy
from privgp.privacy.budget import gaussian_multiplier
from privgp.privacy.noise import gaussian_noise, laplace_noise
from privgp.vault.measure import add_noise, exact, measure

pytestmark = pytest.mark.statistical(failure=1e-6)
DRAWS = 60_000
FAILURE = 1e-8
BOUNDS = (0.0, 10.0)
RECORDS = HalvedBins(np.zeros(1), np.ones(1), (2,), 1, np.eye(2), energy_weight=0.0)


def noise_of(kind: str):
    """Calibrated at (1, 0.01) for one output in [-1, 1]."""
    if kind == "laplace":
        return laplace_noise(1.0, DRAWS, 2.0, 1e-9)
    return gaussian_noise(1.0, 0.01, DRAWS, 2.0, 1e-9)


@cache
def errors(kind: str, seed: int) -> np.ndarray:
    """The noise of as many bins that hold one output; ``seed`` only tells two such draws apart."""
    y = np.full(DRAWS, 10.0)
    bins = BinSums(kind, np.arange(DRAWS), DRAWS)
    return measure(y, BOUNDS, bins, noise_of(kind)).values / 5.0 - 1.0


@cache
def record_errors(side: int) -> np.ndarray:
    """The noise on both changed numbers of a record; ``side`` only tells two such draws apart."""
    noise = noise_for_strategy(RECORDS, 1.0, 0.0).with_size(2 * DRAWS)
    return add_noise(np.zeros(2 * DRAWS), noise).reshape(DRAWS, 2)


def released(kind: str, exact: float, shrink: float = 1.0) -> np.ndarray:
    """Releases of an exact sum; noise that is shrunk shows that a test would fail."""
    return exact + shrink * errors(kind, round(exact))


def bounds_of(successes: int) -> tuple[float, float]:
    """Clopper and Pearson's interval of a probability."""
    low = beta.ppf(FAILURE, successes, DRAWS - successes + 1)
    return float(low), float(beta.isf(FAILURE, successes + 1, DRAWS - successes))


@pytest.mark.parametrize(("kind", "law"), [("laplace", laplace), ("gaussian", norm)])
@pytest.mark.parametrize(("shrink", "accepted"), [(1.0, True), (0.8, False)])
def test_the_noise_has_the_claimed_law(kind, law, shrink, accepted):
    claimed = noise_of(kind)
    scale = claimed.scale if kind == "laplace" else claimed.std
    z = np.sort(released(kind, 1.0, shrink) - 1.0) / scale
    levels = np.arange(DRAWS + 1) / DRAWS
    cdf = law.cdf(z)
    distance = max((levels[1:] - cdf).max(), (cdf - levels[:-1]).max())
    assert bool(distance <= math.sqrt(math.log(2 / FAILURE) / (2 * DRAWS))) is accepted


@pytest.mark.parametrize(("shrink", "kept"), [(1.0, True), (0.8, False)])
def test_no_event_of_the_laplace_release_is_more_than_e_to_the_epsilon_more_likely(shrink, kept):
    """The worst events: beyond the larger of the two exact sums."""
    high = int((released("laplace", 1.0, shrink) >= 1.0).sum())
    low = int((released("laplace", -1.0, shrink) >= 1.0).sum())
    least = math.log(bounds_of(high)[0] / bounds_of(low)[1])
    assert (least <= 1.0) is kept
    if kept:
        assert math.log(bounds_of(high)[1] / bounds_of(low)[0]) >= 0.95  # and no more noise


@pytest.mark.parametrize(("shrink", "kept"), [(1.0, True), (0.8, False)])
def test_the_best_guess_after_the_gaussian_release_is_as_good_as_promised(shrink, kept):
    right = int((released("gaussian", 1.0, shrink) > 0.0).sum())
    promised = float(ndtr(0.5 / gaussian_multiplier(1.0, 0.01)))
    assert (bounds_of(right)[0] <= promised) is kept
    if kept:
        assert bounds_of(right)[1] >= promised


def test_a_whole_release_has_the_noise_it_tells():
    """12 fits of 400 bins; the variance of 4,800 Laplace draws is known to 18%, where noise that is
    20% off has a variance 36% off."""
    rng = np.random.default_rng(0)
    X = np.repeat(np.arange(400) + 0.5, rng.integers(1, 9, 400))[:, None]
    y = rng.uniform(0, 10, len(X))
    index = X[:, 0].astype(int)
    exact = np.bincount(index, y) / np.bincount(index)
    model = BinnedMeans(400, y_bounds=BOUNDS, x_bounds=(0, 400))
    fits = [model.fit(X, y) and (model.means_ - exact) / model.noise_std_ for _ in range(12)]
    assert np.square(fits).mean() == pytest.approx(1.0, abs=0.18)


def test_a_whole_release_of_records_has_the_noise_it_tells():
    """8 fits of 400 bins with 1,000 records each, Laplace: 3,200 means of known error. Its kurtosis is
    at most that of Laplace noise, so their variance is known to 22% except with probability 1e-6."""
    rng = np.random.default_rng(0)
    X, y = np.repeat(np.arange(400) + 0.5, 1000)[:, None], rng.uniform(0, 10, 400_000)
    true = np.bincount(X[:, 0].astype(int), y) / 1000
    model = BinnedMeans(400, y_bounds=BOUNDS, x_bounds=(0, 400), protect="records")
    fits = [model.fit(X, y) and (model.means_ - true) / model.noise_std_ for _ in range(8)]
    assert model.guarantee_.pure_epsilons == (1.0,)
    assert np.square(fits).mean() == pytest.approx(1.0, abs=0.22)


@pytest.mark.parametrize(("shrink", "kept"), [(1.0, True), (0.8, False)])
def test_no_event_of_a_laplace_release_of_records_is_too_likely(shrink, kept):
    """60,000 draws a side: one record has the highest output of one bin, or of another.

    The worst event has both changed numbers beyond the larger of their two exact values.
    """
    beyond = []
    for side, x in enumerate((0.2, 0.8)):
        numbers = exact(RECORDS, ([[x]], [10.0]), BOUNDS)
        first, second = (numbers[:2] + shrink * record_errors(side)).T
        beyond.append(int(((first >= 1.0) & (second <= 0.0)).sum()))
    least = math.log(bounds_of(beyond[0])[0] / bounds_of(beyond[1])[1])
    assert (least <= 1.0) is kept
    if kept:
        assert math.log(bounds_of(beyond[0])[1] / bounds_of(beyond[1])[0]) >= 0.9
