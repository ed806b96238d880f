"""The sensitivity of a strategy, attacked: no pair of neighbours moves the measurement further."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize

from privgp import PrivateGPRegressor
from privgp.plan.strategy import SHARED_ENERGY_WEIGHT, OutputSums, strategy_for_rows
from privgp.privacy.sensitivity import MAX_ENERGY_WEIGHT, column_norms
from privgp.vault.measure import exact as without_noise


def random_strategy(seed, *, grouped, energy, equal_weights=False, rows=8, most=4) -> OutputSums:
    rng = np.random.default_rng(seed)
    inputs, measured = rng.integers(1, 6), rng.integers(1, 5)
    B = rng.standard_normal((measured, inputs)) * 10.0 ** rng.uniform(-2, 1, size=inputs)
    index = rng.integers(0, inputs, size=rows)
    people = None
    if grouped:
        people = np.repeat(np.arange(rows), rng.integers(1, most + 1, size=rows))[:rows]
        people = np.unique(rng.permutation(people), return_inverse=True)[1]
    return strategy_for_rows(B, index, people, energy=energy, equal_weights=equal_weights)


def largest_move(strategy: OutputSums, seed: int, starts: int = 3) -> float:
    """The furthest that any one person was found to move the exact measurement.

    Tried for every person: all corners against their opposites, random pairs of corners and of
    interior points, and climbs from the best of them.
    """
    rng = np.random.default_rng(seed)
    rows = len(strategy.index)
    people = np.arange(rows) if strategy.people is None else strategy.people
    everybody_else = rng.uniform(-1, 1, size=rows)
    found = 0.0
    for who in np.unique(people):
        mine = np.flatnonzero(people == who)
        k = len(mine)

        def moved(pair, mine=mine, k=k):
            u, v = everybody_else.copy(), everybody_else.copy()
            u[mine], v[mine] = pair[:k], pair[k:]
            change = without_noise(strategy, u, (-1.0, 1.0)) - without_noise(
                strategy, v, (-1.0, 1.0)
            )
            return float(np.linalg.norm(change))

        corners = np.array(list(product((-1.0, 1.0), repeat=k)))
        pairs = [np.concatenate([corner, -corner]) for corner in corners]
        pairs += list(rng.choice([-1.0, 1.0, 0.0, 0.236], size=(20, 2 * k)))
        pairs += list(rng.uniform(-1, 1, size=(10, 2 * k)))
        pairs.sort(key=moved, reverse=True)
        found = max(found, moved(pairs[0]))
        for start in [*pairs[: starts - 1], pairs[-1]]:
            climbed = minimize(
                lambda pair, moved=moved: -moved(pair),
                0.98 * start,
                method="L-BFGS-B",
                bounds=[(-1, 1)] * (2 * k),
                options={"maxiter": 15},
            )
            found = max(found, moved(climbed.x))
    return found


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("energy", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_no_neighbour_moves_the_measurement_further_than_the_sensitivity(seed, grouped, energy):
    strategy = random_strategy(seed, grouped=grouped, energy=energy)
    found, bound = largest_move(strategy, seed), strategy.sensitivity()
    assert found <= bound
    if not energy:
        assert found >= 0.99 * bound


@pytest.mark.parametrize("seed", range(3))
def test_weights_shared_by_all_keep_the_promise_too(seed):
    strategy = random_strategy(seed, grouped=True, energy=False, equal_weights=True)
    assert np.all(strategy.row_weights == 1.0)
    assert 0.99 * strategy.sensitivity() <= largest_move(strategy, seed) <= strategy.sensitivity()


def test_the_energy_row_uses_the_whole_allowance_of_a_lone_row():
    """A column of norm 1 or of norm 0: both reach 2, the second through the energy alone."""
    for norm in (1.0, 0.0):
        B = np.array([[norm]])
        strategy = OutputSums(B, np.zeros(1, int), np.ones(1), None, MAX_ENERGY_WEIGHT, np.ones(1))
        assert strategy.sensitivity() == pytest.approx(2.0, rel=1e-12)
        assert largest_move(strategy, 0) <= strategy.sensitivity()
    whole = OutputSums(
        np.ones((1, 1)), np.zeros(1, int), np.ones(1), None, MAX_ENERGY_WEIGHT, np.ones(1)
    )
    golden = 5**0.5 - 1  # u - u' with u = 1
    u, v = np.ones(1), np.ones(1) - golden
    change = without_noise(whole, u, (-1.0, 1.0)) - without_noise(whole, v, (-1.0, 1.0))
    assert np.linalg.norm(change) == pytest.approx(2.0, rel=1e-5)


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**31),
    grouped=st.booleans(),
    energy=st.booleans(),
    equal_weights=st.booleans(),
    rows=st.integers(1, 40),
)
def test_every_design_is_scaled_so_that_one_person_moves_it_by_at_most_2(
    seed, grouped, energy, equal_weights, rows
):
    strategy = random_strategy(
        seed, grouped=grouped, energy=energy, equal_weights=equal_weights, rows=rows, most=20
    )
    assert strategy.sensitivity() <= 2.0 * (1 + 1e-10)
    assert np.all(strategy.row_weights > 0)
    assert np.all(strategy.row_weights <= 1)
    assert column_norms(strategy.matrix).max() <= 1 + 1e-12
    if strategy.people is not None:  # every row of a person has the person's weight
        first = np.unique(strategy.people, return_index=True)[1]
        assert_array_equal(strategy.row_weights[first][strategy.people], strategy.row_weights)


@pytest.mark.parametrize("rows", [13, 40])
def test_people_with_many_rows_are_never_underestimated(rows):
    rng = np.random.default_rng(rows)
    B = rng.standard_normal((3, 4))
    people = np.zeros(rows, dtype=np.int64)
    index = rng.integers(0, 4, size=rows)
    strategy = strategy_for_rows(B, index, people, energy=True, equal_weights=False)
    signs = rng.choice([-1.0, 1.0], size=(4000, rows))
    held = strategy.matrix[:, index] * strategy.row_weights
    for row in held:  # the corners that push each measured number furthest
        signs = np.vstack([signs, np.sign(row)])
    assert 2 * np.linalg.norm(signs @ held.T, axis=1).max() <= strategy.sensitivity()


def test_energy_of_people_with_several_rows_is_faint():
    strategy = random_strategy(1, grouped=True, energy=True)
    assert strategy.energy_weight == SHARED_ENERGY_WEIGHT
    shares = np.bincount(strategy.people, strategy.energy_shares)
    assert_allclose(shares, 1.0)


def test_a_matrix_that_is_not_finite_gets_no_noise_level():
    strategy = OutputSums(
        np.array([[1.0, np.nan]]), np.array([0, 1]), np.ones(2), None, 0.0, np.ones(2)
    )
    assert np.isnan(strategy.sensitivity())


def test_rows_at_one_input_are_measured_together_and_no_louder():
    """A row at a crowded input moves the measurement no further than a row alone."""
    B = np.eye(2)
    strategy = strategy_for_rows(
        B, np.array([0] * 50 + [1]), None, energy=False, equal_weights=False
    )
    assert strategy.sensitivity() == pytest.approx(2.0)
    assert largest_move(strategy, 0, starts=1) == pytest.approx(2.0)


@pytest.mark.parametrize("reconstruct", ["posterior", "unbiased"])
@pytest.mark.parametrize("grouped", [False, True])
def test_plans_promise_what_their_strategies_keep(reconstruct, grouped):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 5, size=(14, 1)).astype(float)
    model = PrivateGPRegressor(
        y_bounds=(0, 1), epsilon=1.0, delta=1e-5, reconstruct=reconstruct, mechanism="gaussian"
    )
    plan = model.plan(X, groups=np.arange(14) // 3 if grouped else None)
    move = largest_move(plan.strategy, 0, starts=1)
    assert move <= plan.strategy.sensitivity()
    assert plan.noise.std >= plan.noise.multiplier * move
