"""Trade-off curves: what a guarantee leaves to an attack."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from privgp import Guarantee
from privgp.audit.promises import EPSILONS, Promise, promise_of
from privgp.audit.result import Trial, clopper_pearson, from_errors
from privgp.privacy.budget import gaussian_delta

RATES = np.linspace(0.0, 1.0, 201)
GAUSSIAN = Guarantee(1.0, 1e-5, "u", "n", (), "m", "s", (2.0,))
PAIR = Guarantee(1.0, 1e-5, "u", "n", (), "m", "s", ())


@given(st.floats(0.01, 6.0))
def test_pairs_of_a_gaussian_promise_allow_what_its_own_curve_allows(mu):
    """Every (epsilon, delta) is a consequence of mu, and many of them come close to it."""
    pairs = tuple((float(e), gaussian_delta(float(e), 1.0 / mu)) for e in EPSILONS if e < 50)
    from_pairs = Promise(pairs=pairs).false_negative_rate(RATES)
    exact = Promise(mu=mu).false_negative_rate(RATES)
    assert np.all(from_pairs <= exact + 1e-9)
    assert np.max(exact - from_pairs) < 0.02


@given(st.floats(0.0, 5.0), st.floats(1e-9, 0.5))
def test_a_curve_falls_is_convex_and_symmetric(epsilon, delta):
    promise = Promise(pairs=((epsilon, delta),))
    curve = promise.false_negative_rate(RATES)
    assert np.all(np.diff(curve) <= 1e-12)
    assert np.all(np.diff(curve, 2) >= -1e-9)
    inside = curve > 1e-9
    assert promise.false_negative_rate(curve[inside]) == pytest.approx(RATES[inside], abs=1e-9)


def test_the_gaussian_curve_by_hand():
    assert Promise(mu=1.0).false_negative_rate(0.1) == pytest.approx(norm.cdf(norm.isf(0.1) - 1))
    assert Promise(mu=1.0, slack=0.01).false_negative_rate(0.1) == pytest.approx(
        norm.cdf(norm.isf(0.1) - 1) - 0.01
    )


def test_promises_come_from_guarantees_pairs_and_curves():
    assert promise_of(GAUSSIAN).mu == 0.5
    assert (1.0, 1e-5) in promise_of(PAIR).pairs
    assert promise_of((2.0, 0.01)).pairs == ((2.0, 0.01),)
    assert promise_of((0.0, 0.01)).pairs == ((0.0, 0.01),)

    class Curve:
        def delta_at(self, epsilon: float) -> float:
            return math.exp(-epsilon)

    assert promise_of(Curve()).false_negative_rate(0.01) > 0
    same = Promise(mu=2.0)
    assert promise_of(same) is same


@pytest.mark.parametrize("given_", ["text", 1.0, (1.0,), (1.0, 2.0, 3.0), None, ("a", "b")])
def test_what_is_no_promise_is_refused(given_):
    with pytest.raises(TypeError, match="promise"):
        promise_of(given_)


@pytest.mark.parametrize(
    "pair", [(-1.0, 0.1), (1.0, -0.1), (1.0, 1.0), (math.nan, 0.1), (1e5, 0.1)]
)
def test_budgets_out_of_range_are_refused(pair):
    with pytest.raises(ValueError, match=r"epsilon|delta"):
        promise_of(pair)


def test_bounds_of_a_rate_are_clopper_and_pearsons():
    assert clopper_pearson(0, 10, 0.05) == pytest.approx((0.0, 1 - 0.025**0.1))
    assert clopper_pearson(10, 10, 0.05) == pytest.approx((0.025**0.1, 1.0))


def test_an_attack_is_beyond_a_pair_only_where_the_pair_says_so():
    """1,000 draws, nothing ever mistaken: no finite guarantee with small delta survives."""
    pair = Promise(pairs=((1.0, 1e-5),))
    broken = from_errors(pair, 0, 0, 1000, 1e-6)
    assert not broken.holds
    assert broken.epsilon_low(1e-5) > 1.0
    assert "IS BROKEN" in broken.describe()
    fine = from_errors(pair, 400, 400, 1000, 1e-6)
    assert fine.holds
    assert fine.epsilon_low(1e-5) < 1.0
    # the same verdict from both ways to put it
    assert (broken.epsilon_low(1e-5) > 1.0) is (not broken.holds)


def test_a_score_at_the_cut_counts_against_the_attack():
    """Equal laws whose every score is the cut: they were distinguished without a mistake before."""
    trial = Trial(1000, 1e-6, lambda share, doing: None)
    tied = trial.test(lambda which, tell: np.ones(1000), 1.0, Promise(mu=1.0), "ties")
    assert tied.holds
    assert (tied.false_positive_rate, tied.false_negative_rate) == (0.0, 1.0)


def test_an_attack_that_always_says_yes_proves_nothing():
    for promise in (Promise(mu=1.0), Promise(pairs=((1.0, 0.01),)), Promise()):
        assert from_errors(promise, 1000, 0, 1000, 1e-6).holds
        assert from_errors(promise, 0, 1000, 1000, 1e-6).holds
