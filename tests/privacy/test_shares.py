"""Steps with shares of one budget cost together what one Gaussian mechanism costs."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privgp.privacy.budget import gaussian_delta, gaussian_multiplier
from privgp.privacy.noise import budget_shares, noise_of_shares


@settings(max_examples=40)
@given(
    shares=st.lists(st.floats(0.01, 100), min_size=1, max_size=40),
    epsilon=st.floats(0.01, 1e4),
    delta=st.floats(1e-12, 0.5),
)
def test_all_steps_together_stay_within_the_budget(shares, epsilon, delta):
    noise = noise_of_shares(epsilon, delta, budget_shares(shares), 1e-3)
    whole = gaussian_multiplier(epsilon, delta)
    spent = sum(Fraction(step.multiplier) ** -2 for step in noise)  # exact
    assert spent <= Fraction(whole) ** -2
    assert float(spent) >= whole**-2 * (1 - 1e-6)  # and nearly all of it is used
    mu = math.sqrt(float(spent))
    slack = math.fsum(step.delta_slack for step in noise)
    assert gaussian_delta(epsilon * (1 - 2**-40), 1 / mu) + slack <= delta * (1 + 1e-12)


@settings(max_examples=30)
@given(shares=st.lists(st.floats(0.01, 100), min_size=1, max_size=20))
def test_noise_covers_the_sensitivity_and_the_lattice(shares):
    for step in noise_of_shares(1.0, 1e-5, budget_shares(shares), 1 / 898):
        assert step.size == 1
        moved = Fraction(1, 898) - Fraction(1, 10**18) + Fraction(2) ** step.exponent
        assert Fraction(step.std) >= Fraction(step.multiplier) * moved
        assert 2.0**step.exponent <= step.std * 2.0**-38


def test_more_budget_for_a_step_means_less_noise_there():
    first, second = noise_of_shares(1.0, 1e-5, budget_shares([1, 4]), 1.0)
    assert first.std == pytest.approx(2 * second.std, rel=1e-9)


def test_the_noise_of_thirty_steps_on_a_thousand_records():
    noise = noise_of_shares(1.0, 1e-5, budget_shares([1.0] * 30), 1e-3)
    assert noise[0].std == pytest.approx(0.0204, abs=1e-4)


@pytest.mark.parametrize(
    "shares", [[], [0.0], [-1, 2], [1, math.nan], [1, math.inf], ["a"], [1, 1e-9], [None]]
)
def test_bad_shares_are_refused(shares):
    with pytest.raises(ValueError, match="budget_split"):
        budget_shares(shares)


def test_shares_that_add_up_to_more_are_refused():
    with pytest.raises(ValueError, match="add up"):
        noise_of_shares(1.0, 1e-5, [0.6, 0.6], 1.0)


def test_impossible_budgets_are_refused():
    with pytest.raises(ValueError, match="too small"):
        noise_of_shares(1e-4, 1e-45, budget_shares(np.ones(20)), 1.0)
