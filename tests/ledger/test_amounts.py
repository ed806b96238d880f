"""Amounts never lose anything: whole numbers, rounded up."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privgp.ledger.filter import (
    UNIT,
    above,
    below,
    decimal,
    decimal_below,
    mu_square,
    mu_square_of_pure,
    up,
)


def test_numbers_are_read_as_the_decimals_they_are_written_as():
    assert 10 * decimal(0.1) == decimal(1.0) == UNIT
    assert 3 * decimal(0.1) == decimal(0.3)  # which floats get wrong


@pytest.mark.parametrize("tiny", [5e-324, 1e-310, 1e-200, 1e-60])
def test_the_smallest_spending_costs_a_unit(tiny):
    assert decimal(tiny) == 1
    assert mu_square(1 / tiny if tiny > 1e-300 else 1e300) >= 1
    assert mu_square_of_pure(tiny) == 1


@pytest.mark.parametrize("huge", [1e13, 1e300, math.inf, math.nan, -1.0, -1e-60, -5e-324])
def test_huge_amounts_are_refused(huge):
    with pytest.raises(ValueError, match="charge"):
        decimal(huge)


@pytest.mark.parametrize("multiplier", [0.0, -1.0, math.inf, math.nan, 1e-7])
def test_multipliers_that_promise_nothing_are_refused(multiplier):
    with pytest.raises(ValueError, match=r"multiplier|charge"):
        mu_square(multiplier)


@given(st.floats(1e-5, 1e200))
def test_the_square_of_mu_is_rounded_up_by_less_than_a_unit(multiplier):
    exact = UNIT / Fraction(multiplier) ** 2
    assert exact <= mu_square(multiplier) < exact + 1


@settings(max_examples=40)
@given(st.floats(1e-12, 1e3))
def test_a_pure_step_is_within_the_gaussian_that_stands_for_it(epsilon):
    """``mu`` is at least the least one, and within 2e-9 of it unless epsilon is small."""
    with mpmath.workdps(60):
        share = mpmath.mpf(1) / (1 + mpmath.exp(mpmath.mpf(epsilon)))
        quantile = mpmath.findroot(
            lambda x: mpmath.log(mpmath.ncdf(-x) / share), math.sqrt(math.pi / 8) * min(epsilon, 30)
        )
        least = (2 * quantile) ** 2
        found = mpmath.mpf(mu_square_of_pure(epsilon)) / UNIT
        assert found >= least * (1 - mpmath.mpf(10) ** -30)
        assert found <= least * (1 + 1e-4) + mpmath.mpf(10) ** -39


@given(st.integers(0, 10**50))
def test_floats_lie_on_their_side(amount):
    assert Fraction(below(amount)) <= Fraction(amount, UNIT) <= Fraction(above(amount))
    assert decimal(decimal_below(amount)) <= up(Fraction(amount, UNIT))
    assert decimal_below(decimal(0.2)) == 0.2
