"""Lazy draws: what one output can move, all draws together, never exceeds its limit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privgp.privacy.noise import noise_from_multiplier
from privgp.vault.states.outputs import first_draws, grow_draws, within_limit

NOISE = noise_from_multiplier(1.0, 50, 2.0, 0.0)
INDEX = np.array([0, 0, 1, 2])
SECRETS = [0.123456789, 0.987654321, 0.5, 0.25]


def draws(seed=None, norm=1.0):
    return first_draws(SECRETS, (0.0, 1.0), INDEX, NOISE, norm, seed, 1)


@given(seed=st.integers(0, 2**31), size=st.floats(1e-6, 1e6), batch=st.integers(1, 40))
def test_whatever_rows_are_proposed_no_column_exceeds_the_limit(seed, size, batch):
    rng = np.random.default_rng(seed)
    rows = size * rng.normal(size=(40, 5)) * rng.integers(0, 2, (40, 5))
    squares, kept = np.zeros(5), []
    for at in range(0, 40, batch):
        part, squares = within_limit(rows[at : at + batch], squares, 1.0)
        kept.append(part)
    stored = np.vstack(kept)
    assert np.all(np.square(stored).sum(axis=0) <= 1.0 + 1e-13)
    assert np.all(np.abs(stored) <= np.abs(rows))
    assert np.all(stored * rows >= 0)


def test_rows_within_the_limit_are_not_touched():
    rows = np.full((4, 3), 0.4)
    kept, squares = within_limit(rows, np.zeros(3), 1.0)
    assert kept is rows
    assert np.allclose(squares, 0.64)


def test_outputs_are_clipped_scaled_and_added_up_per_input():
    state = first_draws([5.0, 0.5, 0.25, -9.0], (0.0, 1.0), INDEX, NOISE, 1.0, None, 1)
    assert np.allclose(state.sums, [1.0, -0.5, -1.0])


def test_simulated_draws_do_not_depend_on_batches():
    rows = np.random.default_rng(0).normal(size=(10, 3)) * 0.1
    whole = grow_draws(draws(seed=7), rows)
    parts = draws(seed=7)
    for row in rows:
        parts = grow_draws(parts, row[None])
    assert np.allclose(whole.numbers, parts.numbers, rtol=0, atol=1e-14)


def test_draws_lie_on_the_lattice_and_differ():
    rows = np.zeros((20, 3))
    first, second = (grow_draws(draws(), rows).numbers for _ in range(2))
    steps = first / 2.0**NOISE.exponent
    assert np.array_equal(steps, np.rint(steps))
    assert not np.any(first == second)


def test_there_are_no_more_coordinates_than_were_accounted_for():
    state = grow_draws(draws(), np.zeros((50, 3)))
    with pytest.raises(ValueError, match="no coordinates left"):
        grow_draws(state, np.zeros((1, 3)))


@pytest.mark.parametrize("rows", [np.zeros((1, 2)), np.zeros(3), np.full((1, 3), np.nan)])
def test_rows_that_make_no_sense_are_refused_before_a_draw(rows):
    with pytest.raises(ValueError, match="wrong shape or are not finite"):
        grow_draws(draws(), rows)


def test_nothing_private_is_shown():
    shown = repr(grow_draws(draws(), np.ones((1, 3)) * 0.1))
    assert "sums" not in shown
    assert "123456" not in shown
