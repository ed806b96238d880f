"""Pure steps beside Gaussian ones: no smaller than the truth, no larger than adding up."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

from privgp import compose
from privgp.privacy.budget import gaussian_delta, gaussian_multiplier
from privgp.privacy.guarantee import epsilon_left, mix_delta
from tests.privacy.test_guarantee import promise

budgets = st.floats(0.05, 5)


def by_integration(epsilon, mu, pures):
    """Delta from the densities of coins and one Gaussian: the integral of (p - e^eps q)_+."""
    x = np.linspace(-12, 12 + mu, 12001)
    p = np.exp(-0.5 * (x - mu) ** 2) / math.sqrt(2 * math.pi)
    q = np.exp(-0.5 * x**2) / math.sqrt(2 * math.pi)
    ones, others = np.ones(1), np.ones(1)
    for e in pures:
        likely = 1 / (1 + math.exp(-e))
        ones = np.outer(ones, [likely, 1 - likely]).ravel()
        others = np.outer(others, [1 - likely, likely]).ravel()
    return sum(
        np.trapezoid(np.maximum(a * p - math.exp(epsilon) * b * q, 0), x)
        for a, b in zip(ones, others, strict=True)
    )


@settings(max_examples=20)
@given(st.floats(0, 6), st.floats(0.1, 4), st.lists(st.floats(0.01, 2), min_size=1, max_size=4))
def test_delta_is_that_of_coins_and_a_gaussian(epsilon, mu, pures):
    found = mix_delta(epsilon, mu, pures)
    assert found == pytest.approx(by_integration(epsilon, mu, pures), abs=5e-6)


@given(budgets, st.floats(0.3, 10), budgets)
def test_it_lies_between_the_parts_and_their_sum(epsilon, c, pure):
    found = mix_delta(epsilon + pure, 1 / c, [pure])
    assert found <= gaussian_delta(epsilon, c) * (1 + 1e-9)
    assert found >= gaussian_delta(epsilon + pure, c) * (1 - 1e-9)


def test_pure_steps_alone_add_up_and_nothing_is_left_to_chance():
    assert mix_delta(0.75, 0.0, [0.5, 0.25]) == 0.0
    assert mix_delta(0.74, 0.0, [0.5, 0.25]) > 0.0
    assert mix_delta(0.0, 0.0, [1.0]) == pytest.approx(math.tanh(0.5))  # total variation


def test_many_pure_steps_promise_no_less_than_a_few():
    few, many = [0.1] * 10, [0.1] * 30
    assert mix_delta(1.0, 0.5, many) > mix_delta(1.0, 0.5, few)
    assert mix_delta(3.0, 0.5, many) <= gaussian_delta(0.0, 2.0)


@settings(max_examples=20)
@given(st.floats(0.01, 8), st.sampled_from([1e-9, 1e-5, 0.01]), st.floats(0.01, 0.99))
def test_what_remains_fits_beside_what_was_spent(epsilon, delta, share):
    spent = share * epsilon
    rest = epsilon_left(epsilon, delta, spent)
    assert epsilon - spent <= rest <= epsilon
    if rest > epsilon - spent:
        c = gaussian_multiplier(rest, delta)
        assert mix_delta(epsilon, 1 / c, [spent]) <= delta


def test_exact_accounting_leaves_more_than_adding_up():
    assert epsilon_left(1.0, 0.01, 0.3) > 0.8
    assert epsilon_left(1.0, 1e-6, 0.3) > 0.72


def test_a_guarantee_with_a_choice_is_kept_composed_and_read_back():
    chosen = dataclasses.replace(promise(0.7), pure_epsilons=(0.3,), epsilon=1.0)
    assert chosen.delta_at(1.0) <= 1e-6
    assert chosen.epsilon_at(1e-6) <= 1.0
    assert type(chosen).from_json(chosen.to_json()) == chosen
    whole = compose([chosen, promise()], 1e-6)
    assert whole.pure_epsilons == (0.3,)
    assert compose([promise(0.7), promise()], 1e-6).epsilon < whole.epsilon
    assert whole.epsilon < chosen.epsilon + promise().epsilon


def test_a_choice_alone_composes():
    alone = dataclasses.replace(promise(), noise_multipliers=(), delta_slack=0.0, delta=0.0,
        pure_epsilons=(1.0,))  # fmt: skip
    assert alone.delta_at(1.0) == 0.0
    assert 0 < alone.delta_at(0.5) < 1
    whole = compose([alone, alone], 1e-9)
    assert whole.epsilon == pytest.approx(2.0, abs=1e-6)
    assert compose([alone] * 8, 0.01).epsilon < 8.0
    assert alone.delta_at(0.0) == pytest.approx(2 * ndtr(0) * math.tanh(0.5))
