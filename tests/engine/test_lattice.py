"""Sums as integers: exact in any order, and rounded by no more than is proved."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privgp.engine.local import LIMB, MOST_TERMS, SPAN, Lattice

UNIT = Fraction(1, 2**53)


def value(lattice: Lattice, parts: np.ndarray) -> Fraction:
    upper, lower = (int(part) for part in parts)
    return Fraction(2) ** (lattice.top - SPAN) * (upper * 2 ** (SPAN - LIMB) + lower)


@settings(max_examples=200)
@given(share=st.floats(-1.0, 1.0), top=st.integers(-60, 60), small=st.integers(0, 90))
def test_a_number_is_rounded_by_half_a_step_at_most(share, top, small):
    lattice = Lattice(top)
    number = share * 2.0 ** (top - small)
    parts = lattice.split(np.array([number]))[:, 0]
    assert abs(value(lattice, parts) - Fraction(number)) <= Fraction(lattice.step) / 2
    assert np.abs(parts).max() <= 2**LIMB  # so that MOST_TERMS of them add up in 63 bits
    assert MOST_TERMS * 2**LIMB <= 2**62
    back = float(lattice.join(parts))
    bound = 3 * UNIT * abs(Fraction(number)) + 2 * Fraction(lattice.step)
    assert abs(Fraction(back) - Fraction(number)) <= bound


@settings(max_examples=50)
@given(seed=st.integers(0, 2**31), count=st.integers(1, 200))
def test_sums_do_not_depend_on_order_or_grouping(seed, count):
    rng = np.random.default_rng(seed)
    numbers = rng.uniform(-1, 1, size=(count, 3)) * 10.0 ** rng.uniform(-15, 0, size=(count, 3))
    lattice = Lattice.for_size(1.0)
    parts = np.array([lattice.split(row) for row in numbers])
    total = parts.sum(axis=0)
    shuffled = parts[rng.permutation(count)]
    cut = rng.integers(0, count + 1)
    assert np.array_equal(shuffled[:cut].sum(axis=0) + shuffled[cut:].sum(axis=0), total)
    exact = [sum(map(Fraction, column)) for column in numbers.T]
    for joined, true in zip(lattice.join(total), exact, strict=True):
        bound = 3 * UNIT * abs(true) + (count + 2) * Fraction(lattice.step)
        assert abs(Fraction(float(joined)) - true) <= bound


def test_adding_floats_does_depend_on_the_order():
    """Without the lattice the same numbers give other bits: the tests above can fail."""
    rng = np.random.default_rng(0)
    numbers = rng.uniform(-1, 1, size=5000)
    assert sum(numbers[:2500]) + sum(numbers[2500:]) != sum(numbers)


@pytest.mark.parametrize("most", [0.0, -1.0, np.inf, np.nan, 1e200, 1e-200])
def test_numbers_beyond_the_lattice_are_refused(most):
    with pytest.raises(ValueError, match="other units"):
        Lattice.for_size(most)


def test_the_lattice_holds_what_it_is_made_for():
    for most in (1.0, 0.75, 3.0, 65536.0):
        assert most <= 2.0 ** Lattice.for_size(most).top <= 2.0 * most
