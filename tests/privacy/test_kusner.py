"""The paper's constants, against an evaluation of its formulas in 50 digits."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from mpmath import mp, mpf

from privgp.gp.surrogate import known_prior
from privgp.privacy import selection
from privgp.privacy.selection import KusnerConstants

mp.dps = 50
POINTS = np.array(list(itertools.product(np.linspace(0, 1, 4), repeat=2)))


def exactly(x):
    return pytest.approx(float(x), rel=1e-9)


@pytest.mark.parametrize("size", [1, 16, 10_000])
@pytest.mark.parametrize("delta", [5e-6, 0.05])
@pytest.mark.parametrize("k1", [0.0, 0.5, 1 - 1 / 898])
@pytest.mark.parametrize("sigma", [0.01, 0.1, 2.0])
def test_every_constant_is_the_papers(size, delta, k1, sigma):
    X, d, k, s = mpf(size), mpf(delta), mpf(k1), mpf(sigma)
    T, eps, a, regret = 25, mpf("0.5"), mpf(3), mpf("0.7")
    ours = KusnerConstants(0.5, delta, size, T, k1, sigma, 0.7)

    def beta(t):
        return 2 * mp.log(X * t**2 * mp.pi**2 / (3 * d))

    c = 2 * mp.sqrt((1 - k) * mp.log(3 * X / d))
    assert exactly(c) == float(
        mp.sqrt(2 * (1 - k)) * mp.sqrt(2 * mp.log(3 * X / d))
    )  # theorem 1's form
    q = s * mp.sqrt(4 * mp.log(3 / d))
    sensitivity = 2 * mp.sqrt(beta(T + 1)) + c
    assert ours.beta(7) == exactly(beta(7))
    assert ours.record_shift() == exactly(c)
    assert ours.noise_shift == exactly(q)
    assert ours.mean_sensitivity == exactly(sensitivity)
    assert ours.laplace_scale == exactly((regret + c + q) / eps)
    assert selection.regret_constant(sigma) == exactly(8 / mp.log(1 + s**-2))
    theorem2 = 2 * mp.sqrt(beta(T)) + q + 2 * sensitivity / eps * (mp.log(X) + a)
    assert ours.setting_limit(3.0) == exactly(theorem2)
    theorem4 = mp.sqrt(2 * mp.log(2 * T / d)) + regret + a * (regret / eps + c / eps + q / eps)
    assert ours.value_limit(3.0) == exactly(theorem4)


def test_the_constants_without_noise_are_the_papers():
    A, tau, X, d, k = mpf("1.5"), mpf("0.8"), 400, mpf("5e-6"), 1 - 1 / mpf(898)
    regret = A * mp.exp(-2 * tau / mp.log(2) ** (mpf(2) / 4))
    assert selection.noise_free_regret(1.5, 0.8, 2) == exactly(regret)
    ours = KusnerConstants(0.5, 5e-6, X, 25, 1 - 1 / 898, 0.0, float(regret))
    c2, c3 = (2 * mp.sqrt((1 - k) * mp.log(n * X / d)) for n in (2, 3))
    assert ours.noise_shift == 0
    assert ours.record_shift() == exactly(c3)
    assert ours.record_shift(2) == exactly(c2)
    assert ours.laplace_scale == exactly((regret + c2) / mpf("0.5"))
    assert ours.value_limit(2.0) == exactly(regret + 2 * (regret + c2) / mpf("0.5"))


@pytest.mark.parametrize("sigma", [0.05, 0.3, 1.0])
def test_the_information_gain_is_bounded_from_above(sigma):
    """Against all multisets of three of nine points."""
    points, prior = POINTS[:9], known_prior(2, 0.4, 2.5)
    r = np.sqrt(5) * np.linalg.norm(points[:, None] - points[None], axis=2) / 0.4
    K = (1 + r + r * r / 3) * np.exp(-r)
    best = max(
        0.5 * np.linalg.slogdet(np.eye(3) + K[np.ix_(s, s)] / sigma**2)[1]
        for s in itertools.combinations_with_replacement(range(9), 3)
    )
    greedy = selection.greedy_gain(points, prior, 3, sigma)
    assert (1 - 1 / np.e) * best <= greedy <= best * (1 + 1e-9)
    assert (
        best <= selection.largest_gain(points, prior, 3, sigma) <= 1.5 * np.log1p(sigma**-2) * 1.001
    )


def test_the_greedy_gain_is_a_determinant():
    gain = selection.greedy_gain(POINTS, known_prior(2, 0.4, np.inf), 16, 0.1)
    squares = np.square(POINTS[:, None] - POINTS[None]).sum(axis=2)
    K = np.exp(-0.5 * squares / 0.16)
    assert gain >= 0.5 * np.linalg.slogdet(np.eye(16) + K / 0.01)[1] * (1 - 1e-9)
    one = selection.greedy_gain(POINTS[:1], known_prior(2, 0.4, np.inf), 3, 0.1)
    assert one == pytest.approx(0.5 * np.log1p(3 / 0.01), rel=1e-8)
