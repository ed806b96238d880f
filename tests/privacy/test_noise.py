"""The price of a lattice, proved in docs/proofs/sample.md, against brute force on coarse lattices."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

from privgp.plan.strategy import OutputSums, noise_of
from privgp.privacy.budget import gaussian_delta, gaussian_multiplier
from privgp.privacy.guarantee import EPSILON_SLACK
from privgp.privacy.noise import (
    DELTA_SLACK,
    DEPTHS,
    LAWS,
    _spill,
    gaussian_noise,
    noise_for,
    noise_from_multiplier,
)

RATIOS = (1 / 4, 1 / 5, 1 / 8)  # a = h / sigma; in use it is below 2**-39


def tail(x):
    return mpmath.erfc(x / mpmath.sqrt(2)) / 2


def cells(ratio, reach=12):
    """For every k >= 0: the mass of the k-th cell under rounded and under lattice noise."""
    with mpmath.workdps(60):
        a = mpmath.mpf(ratio)
        ks = range(int(reach / ratio) + 1)
        half = mpmath.mpf(1) / 2
        rounded = [tail((k - half) * a) - tail((k + half) * a) for k in ks]
        weights = [mpmath.exp(-((k * a) ** 2) / 2) for k in ks]
        total = 2 * mpmath.fsum(weights) - 1
        return rounded, [w / total for w in weights]


@pytest.mark.parametrize("ratio", [1.0, 0.5, *RATIOS])
def test_total_variation_of_one_coordinate_is_at_most_a_squared_over_16(ratio):
    rounded, lattice = cells(ratio)
    gaps = [abs(r - d) for r, d in zip(rounded, lattice, strict=True)]
    distance = float(mpmath.fsum(gaps) - gaps[0] / 2)  # both sides, halved
    assert 0.016 * ratio**2 < distance <= ratio**2 / 16


@pytest.mark.parametrize("ratio", [1.0, 0.5, *RATIOS])
def test_rounded_noise_exceeds_lattice_noise_by_at_most_the_proved_ratio(ratio):
    rounded, lattice = cells(ratio)
    with mpmath.workdps(60):
        a = mpmath.mpf(ratio)
        theta = mpmath.jtheta(3, 0, mpmath.exp(-2 * mpmath.pi**2 / a**2))
        assert mpmath.log(theta) <= 3 * mpmath.exp(-mpmath.mpf("19.7") / a**2)
        for k, (r, d) in enumerate(zip(rounded, lattice, strict=True)):
            z = a**2 * k / 2
            growth = mpmath.sinh(z) / z if k else mpmath.mpf(1)
            assert r / d <= theta * growth
            assert growth <= mpmath.exp(z**2 / 6)


@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 0.1), (1.0, 1e-3), (10.0, 1e-3)])
def test_eta_is_the_largest_log_ratio_within_the_norm_bound(ratio, epsilon, delta):
    """For one coordinate, and for two by adding up; and it is no looser than by a fifth."""
    rounded, lattice = cells(ratio)
    losses = [float(mpmath.log(r / d)) for r, d in zip(rounded, lattice, strict=True)]
    s = epsilon - math.log(DELTA_SLACK * delta)
    for size in (1, 2):
        reach = (math.sqrt(size) * (1 + ratio / 2) + math.sqrt(2 * s)) / ratio
        far = range(min(len(losses), int(reach) + 1))
        if size == 1:
            worst = max(losses[k] for k in far)
        else:
            worst = max(losses[j] + losses[k] for j in far for k in far if j**2 + k**2 <= reach**2)
        assert worst <= _spill(epsilon, delta, size, ratio) <= 1.2 * worst


@pytest.mark.parametrize("size", [1, 2, 10, 1000])
@pytest.mark.parametrize("s", [0.1, 1.0, 10.0, 100.0])
def test_noise_is_rarely_longer_than_the_bound_used(size, s):
    assert chi2.logsf((math.sqrt(size) + math.sqrt(2 * s)) ** 2, size) <= -s


def lattice_delta(epsilon, ratio, shift):
    """The true delta of lattice noise between neighbours that are ``shift`` lattice steps apart."""
    reach = int(10 / ratio) + max(shift)
    k = np.arange(-reach, reach + 1)
    total = np.exp(-0.5 * (ratio * k) ** 2).sum()
    here = sum(np.ix_(*[0.5 * (ratio * k) ** 2 for _ in shift]))
    there = sum(np.ix_(*[0.5 * (ratio * (k - s)) ** 2 for s in shift]))
    return float(
        np.maximum(np.exp(-here) - np.exp(epsilon - there), 0.0).sum() / total ** len(shift)
    )


@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("epsilon", [0.05, 0.5, 2.0, 6.0])
@pytest.mark.parametrize("shift", [(1,), (4,), (16,), (3, 4), (9, 1), (2, 3, 6)])
def test_lattice_noise_is_as_private_as_proved(ratio, epsilon, shift):
    size, delta = len(shift), 1e-3
    eta = _spill(epsilon, delta, size, ratio)
    multiplier = 1.0 / (ratio * math.hypot(*shift))
    slack = size * ratio**2 / 16 + DELTA_SLACK * delta
    promised = gaussian_delta(epsilon, multiplier) + slack
    assert lattice_delta(epsilon + eta, ratio, shift) <= promised + 1e-13


@given(
    epsilon=st.floats(0.01, 100.0),
    log_delta=st.floats(-12, -0.5),
    size=st.integers(1, 10_000),
    log_sensitivity=st.floats(-20, 20),
    error=st.floats(0, 1e-3),
)
def test_noise_covers_rounding_and_costs_next_to_nothing(
    epsilon, log_delta, size, log_sensitivity, error
):
    delta, sensitivity = 10.0**log_delta, 10.0**log_sensitivity
    noise = gaussian_noise(epsilon, delta, size, sensitivity, error * sensitivity)
    step = 2.0**noise.exponent
    moved = sensitivity * (1 + 2 * error) + math.sqrt(size) * step
    assert noise.std >= noise.multiplier * moved * (1 - 1e-15)
    assert step / noise.std <= 2.0 ** (1 - DEPTHS[0])
    assert noise.multiplier >= gaussian_multiplier(epsilon, delta) / (1 + 1e-9)
    assert noise.multiplier <= gaussian_multiplier(epsilon, delta) * (1 + 1e-7)
    excess = math.sqrt(size) * noise.multiplier * 2.0 ** -DEPTHS[0]
    assert noise.std <= noise.multiplier * sensitivity * (1 + 2 * error) * (1 + 1e-14 + excess)
    assert size * (step / noise.std) ** 2 / 16 < noise.delta_slack < 1e-6 * delta
    assert _spill(epsilon, delta, size, step / noise.std) <= EPSILON_SLACK * epsilon


def test_a_finer_lattice_is_taken_when_the_budget_is_small():
    coarse = gaussian_noise(1.0, 1e-6, 10, 2.0, 0.0)
    fine = gaussian_noise(1.0, 1e-24, 10, 2.0, 0.0)
    assert math.log2(coarse.std) - coarse.exponent < 42
    assert math.log2(fine.std) - fine.exponent > 49
    assert fine.delta_slack < 1e-24


@pytest.mark.parametrize(
    ("epsilon", "delta", "size"), [(1e-40, 1e-5, 10), (1.0, 1e-40, 10), (1.0, 1e-36, 10**6)]
)
def test_budgets_that_no_lattice_can_keep_raise_a_clear_error(epsilon, delta, size):
    with pytest.raises(ValueError, match=r"too small for \d+ numbers on a lattice"):
        gaussian_noise(epsilon, delta, size, 2.0, 0.0)


@pytest.mark.parametrize("epsilon", [-1.0, math.nan, 2e4])
def test_bad_budgets_are_refused(epsilon):
    with pytest.raises(ValueError, match="epsilon must"):
        gaussian_noise(epsilon, 1e-5, 3, 2.0, 0.0)


def test_a_given_multiplier_is_kept():
    noise = noise_from_multiplier(0.5, 4, 2.0, 0.0)
    assert noise.multiplier == 0.5
    assert noise.std == pytest.approx(1.0)
    assert noise.std > 0.5 * (2.0 + 2.0 * 2.0**noise.exponent)


def test_a_measurement_that_nobody_can_move_is_named_as_the_problem():
    with pytest.raises(ValueError, match="sensitivity"):
        gaussian_noise(1.0, 1e-5, 3, 0.0, 0.0)


def test_a_measurement_so_small_that_its_squares_underflow_has_its_norm_and_is_refused():
    """A forged plan: one column's norm is ten times what the squares of its entries add up to."""
    B = np.zeros((1000, 2))
    B[:, 0], B[0, 1] = 1.5e-162, 3e-162
    forged = OutputSums(B, np.arange(2), np.ones(2), None, 0.0, np.ones(2))
    forged.check()
    assert np.sqrt(np.square(B).sum(axis=0)).max() < 1e-161
    assert forged.sensitivity() == pytest.approx(2.0 * 1000**0.5 * 1.5e-162)
    with pytest.raises(ValueError, match="sensitivity"):
        noise_of(forged, 1.0, 1e-5)


@pytest.mark.parametrize(
    ("sensitivity", "error"),
    [(1e131, 0.0), (1.0, 1e131), (np.inf, 0.0), (1.0, np.nan), (1.0, -0.1)],
)
def test_a_measurement_too_large_for_its_noise_is_refused(sensitivity, error):
    for law in LAWS:
        with pytest.raises(ValueError, match="choose other units"):
            noise_for(law, 1.0, 1e-5, 3, sensitivity, error)
