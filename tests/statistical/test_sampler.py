"""The law of the noise that protects, tested on about 1.2e5 draws of the production sampler.

Every test fails by chance with probability below 1e-6, and each that accepts the claimed law is shown
to reject one whose standard deviation is 20% off.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import binom, chi2

from privgp.privacy.noise import GaussianNoise, gaussian_noise
from privgp.vault.measure import add_noise

pytestmark = pytest.mark.statistical(failure=1e-6)
FAILURE = 1e-8  # per comparison; no test below makes more than 40
DRAWS = 60_000
COORDINATES = 8


@pytest.fixture(scope="module")
def noise() -> GaussianNoise:
    return gaussian_noise(1.0, 1e-5, DRAWS, 2.0, 0.0)


@pytest.fixture(scope="module")
def draws(noise) -> np.ndarray:
    """60,000 errors of a measurement of some values on the lattice, in claimed stds."""
    values = np.round(np.linspace(-50, 50, DRAWS) / 2.0**noise.exponent) * 2.0**noise.exponent
    return (add_noise(values, noise) - values) / noise.std


def has_unit_variance(z: np.ndarray) -> bool:
    square = float(np.square(z).sum())
    return bool(chi2.ppf(FAILURE / 2, z.size) < square < chi2.isf(FAILURE / 2, z.size))


def is_standard_normal(z: np.ndarray) -> bool:
    """Kolmogorov-Smirnov with the Dvoretzky-Kiefer-Wolfowitz bound."""
    levels = np.arange(z.size + 1) / z.size
    cdf = ndtr(np.sort(z))
    distance = max((levels[1:] - cdf).max(), (cdf - levels[:-1]).max())
    return bool(distance <= math.sqrt(math.log(2 / FAILURE) / (2 * z.size)))


@pytest.mark.parametrize(("stretch", "accepted"), [(1.0, True), (0.8, False), (1.2, False)])
def test_the_variance_is_the_claimed_one(draws, stretch, accepted):
    assert has_unit_variance(stretch * draws) is accepted


@pytest.mark.parametrize(("stretch", "accepted"), [(1.0, True), (0.8, False), (1.2, False)])
def test_the_law_is_the_claimed_gaussian(draws, stretch, accepted):
    assert is_standard_normal(stretch * draws) is accepted


def test_the_noise_is_centred(draws):
    """The mean has std 0.004; a shift of 0.06 std would be seen."""
    limit = math.sqrt(2 * math.log(2 / FAILURE) / DRAWS)
    assert limit < 0.03
    assert abs(draws.mean()) < limit


def test_neighbouring_coordinates_are_uncorrelated(draws):
    """N * correlation^2 beyond 49, seven stds, has probability below 1e-10 under independence."""
    for lag in (1, 2, 3, 7):
        for transform in (np.asarray, np.square):
            x = transform(draws)
            x = (x - x.mean()) / x.std()
            assert DRAWS * np.mean(x[lag:] * x[:-lag]) ** 2 < 49


def test_coordinates_of_one_release_are_independent():
    """1,500 releases of 8 numbers: the sphere test of the correlation matrix, 28 degrees."""
    small = gaussian_noise(1.0, 1e-5, COORDINATES, 2.0, 0.0)
    releases = np.array([add_noise(np.zeros(COORDINATES), small) for _ in range(1500)])
    assert len(np.unique(releases, axis=0)) == len(releases)  # fresh draws differ

    def looks_independent(z):
        correlation = np.corrcoef(z.T)
        statistic = -(len(z) - 1 - (2 * COORDINATES + 5) / 6) * np.linalg.slogdet(correlation)[1]
        return statistic < chi2.isf(FAILURE, COORDINATES * (COORDINATES - 1) // 2)

    assert looks_independent(releases)
    mixed = releases.copy()
    mixed[:, 1] = 0.8 * mixed[:, 1] + 0.6 * mixed[:, 0]
    assert not looks_independent(mixed)


@pytest.mark.parametrize("std", [0.7, 2.5])
def test_a_coarse_lattice_shows_the_exact_discrete_gaussian(std):
    """15,000 draws on the integers: Pearson's test accepts the claimed scale and no other."""
    count = 15_000
    found = add_noise(np.full(count, 3.2), GaussianNoise(count, std, 0, 1.0, 0.0)) - 3
    assert np.all(found == np.round(found))

    def fits(scale):
        k = np.arange(-60, 61)
        probability = np.exp(-0.5 * (k / scale) ** 2)
        probability /= probability.sum()
        inner = probability * count > 20
        expected = np.append(probability[inner], probability[~inner].sum()) * count
        seen = np.array([np.count_nonzero(found == j) for j in k[inner]])
        seen = np.append(seen, count - seen.sum())
        statistic = float((np.square(seen - expected) / np.maximum(expected, 1.0)).sum())
        # Pearson's statistic has heavier tails than chi-square: twice its quantile
        return statistic < 2 * chi2.isf(FAILURE, len(seen) - 1)

    assert fits(std)
    assert not fits(1.2 * std)
    assert not fits(std / 1.2)


def test_low_order_bits_of_lattice_noise_cannot_tell_inputs_apart():
    """Answers to f=0 and f=1 lie on one lattice, with coin-flip low bits: 10,000 draws each."""
    count = 10_000
    noise = gaussian_noise(1.0, 1e-5, count, 1.0, 0.0)
    low_bits = []
    for f in (0.0, 1.0):
        steps = add_noise(np.full(count, f), noise) / 2.0**noise.exponent
        assert np.all(steps == np.round(steps))
        low_bits.append(steps.astype(np.int64) & 7)
    for bits in low_bits:
        for value in range(8):
            ones = np.count_nonzero(bits == value)
            low, high = binom.ppf([FAILURE, 1 - FAILURE], count, 1 / 8)
            assert low <= ones <= high


def test_low_order_bits_of_float_noise_give_the_input_away():
    """Near 1 floats are multiples of 2^-53; most small sums with 0 are not, so they say f=0."""
    count = 50_000
    noise = GaussianNoise(count, 1.0, -40, 1.0, 0.0)
    rng = np.random.default_rng(0)

    def cannot_come_from_one(released):
        scaled = released * 2.0**53
        return scaled != np.round(scaled)

    from_zero = add_noise(np.zeros(count), noise, rng)
    from_one = add_noise(np.ones(count), noise, rng)
    assert not cannot_come_from_one(from_one).any()
    assert cannot_come_from_one(from_zero).mean() > 0.2
    assert cannot_come_from_one(from_zero)[np.abs(from_zero) < 0.25].mean() > 2 / 3
