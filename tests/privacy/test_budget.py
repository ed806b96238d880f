"""The Gaussian curve against 50-digit arithmetic, and budgets that are no guarantee."""

from __future__ import annotations

import math
from decimal import Decimal

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privgp.privacy.budget import (
    check_budget,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_multiplier,
)

EPSILONS = (1e-4, 1e-3, 0.01, 0.2, 0.5, 1.0, 2.0, 7.0, 50.0, 1e3, 1e4)
DELTAS = (1e-300, 1e-100, 1e-30, 1e-12, 1e-6, 0.01, 0.5, 0.999)


def exact_delta(epsilon, multiplier):
    """The curve at 50 digits more than its terms cancel."""
    with mpmath.workdps(50):
        e, c = mpmath.mpf(epsilon), mpmath.mpf(multiplier)

        def cdf(x):
            return mpmath.erfc(-x / mpmath.sqrt(2)) / 2

        return cdf(1 / (2 * c) - e * c) - mpmath.exp(e) * cdf(-1 / (2 * c) - e * c)


@pytest.mark.parametrize(
    ("epsilon", "multiplier"), [(0.2, 6.053), (0.5, 3.147), (1.0, 1.878), (2.0, 1.116)]
)
def test_multipliers_at_one_percent_are_those_of_the_exact_curve(epsilon, multiplier):
    assert gaussian_multiplier(epsilon, 0.01) == pytest.approx(multiplier, abs=5e-4)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("delta", DELTAS)
def test_the_multiplier_never_undershoots_and_wastes_nothing(epsilon, delta):
    c = gaussian_multiplier(epsilon, delta)
    assert exact_delta(epsilon, c) <= delta
    assert exact_delta(epsilon, c / (1 + 1e-7)) > delta


@settings(max_examples=100)
@given(st.floats(-4, 4), st.floats(-15, -0.001))
def test_no_budget_in_practical_use_is_undershot(log_epsilon, log_delta):
    epsilon, delta = 10.0**log_epsilon, 10.0**log_delta
    assert exact_delta(min(epsilon, 1e4), gaussian_multiplier(min(epsilon, 1e4), delta)) <= delta


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(1e-12, 1e-30), (1e-14, 1e-20), (1e-20, 1e-12), (1e-8, 1e-100)]
)
def test_budgets_too_small_for_float_arithmetic_are_kept_or_refused(epsilon, delta):
    try:
        c = gaussian_multiplier(epsilon, delta)
    except ValueError:
        return
    assert exact_delta(epsilon, c) <= delta


@pytest.mark.parametrize("epsilon", [0.0, *EPSILONS])
@pytest.mark.parametrize("multiplier", [0.01, 0.3, 1.0, 5.0, 100.0])
def test_delta_is_the_curve(epsilon, multiplier):
    exact = exact_delta(epsilon, multiplier)
    assert gaussian_delta(epsilon, multiplier) == pytest.approx(float(exact), rel=1e-9, abs=1e-300)


def test_noise_without_end_leaks_nothing():
    assert gaussian_delta(0.0, math.inf) == 0.0


@pytest.mark.parametrize("delta", [1e-12, 1e-6, 0.01, 0.5])
@pytest.mark.parametrize("multiplier", [0.05, 0.5, 1.0, 4.0, 50.0])
def test_epsilon_is_the_inverse_of_delta_rounded_up(delta, multiplier):
    epsilon = gaussian_epsilon(delta, multiplier)
    assert exact_delta(epsilon, multiplier) <= delta
    if epsilon > 0:
        assert exact_delta(epsilon * (1 - 1e-6), multiplier) > delta


def test_more_noise_never_leaks_more():
    multipliers = np.geomspace(0.05, 50, 60)
    for epsilon in (0.0, 0.1, 1.0, 10.0):
        deltas = [gaussian_delta(epsilon, c) for c in multipliers]
        assert all(np.diff(deltas) <= 0)


@pytest.mark.parametrize("numerator", [2.0, 1.25])
def test_the_textbook_formulas_are_not_private_at_large_epsilon(numerator):
    def textbook(epsilon):
        return math.sqrt(2 * math.log(numerator / 0.01)) / epsilon

    assert exact_delta(50.0, textbook(50.0)) > 0.99999
    assert exact_delta(9.0, textbook(9.0)) > 0.01
    assert exact_delta(1.0, textbook(1.0)) < 2e-4  # and wasteful at small epsilon


BAD_NUMBERS = [
    math.nan, math.inf, -math.inf, 0, 0.0, -1.0, -1e-300, "1", b"1", True, False, np.True_,
    None, 1 + 0j, np.array(1.0), np.array([1.0]), [1.0], Decimal(1),
]  # fmt: skip


@pytest.mark.parametrize("value", [*BAD_NUMBERS, 1.0001e4, 1e300], ids=repr)
def test_an_epsilon_that_is_no_promise_is_refused(value):
    with pytest.raises(ValueError, match="epsilon must"):
        check_budget(value, 0.01)
    with pytest.raises(ValueError, match="epsilon must"):
        gaussian_multiplier(value, 0.01)


@pytest.mark.parametrize("value", [*BAD_NUMBERS, 1, 1.0, 1.5, 1e300], ids=repr)
def test_a_delta_that_is_no_promise_is_refused(value):
    with pytest.raises(ValueError, match="delta must"):
        check_budget(1.0, value)
    with pytest.raises(ValueError, match="delta must"):
        gaussian_multiplier(1.0, value)


@pytest.mark.parametrize("budget", [(10**400, 0.01), (1.0, 10**400)])
def test_integers_beyond_floats_are_refused_like_any_large_number(budget):
    with pytest.raises(ValueError, match=r"must be a.*, got a huge number"):
        check_budget(*budget)


@pytest.mark.parametrize("value", [1, 1e4, np.float64(1), np.float32(1), np.int64(1)])
def test_ordinary_numbers_of_any_type_are_budgets(value):
    check_budget(value, 0.5)
