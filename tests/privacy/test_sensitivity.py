"""How far one person moves a measurement: against enumeration, grids and exact rational arithmetic."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose

from privgp.gp.arithmetic import rounding
from privgp.privacy.sensitivity import (
    ENUMERATED_ROWS,
    MAX_ENERGY_WEIGHT,
    column_norms,
    many_row_sensitivity,
    person_norms,
    scale_change,
    single_row_sensitivity,
    total_sensitivity,
)
from privgp.vault.validate import clip_outputs

ENTRIES = st.floats(-1, 1).filter(lambda x: x == 0 or abs(x) > 1e-100)


def largest_norm(B, columns):
    """The largest norm of a signed sum of these columns, by trying all signs."""
    signs = np.array(list(product((1.0, -1.0), repeat=len(columns))))
    return np.linalg.norm(signs @ B[:, columns].T, axis=1).max()


@given(arrays(float, st.tuples(st.integers(1, 6), st.integers(1, 4)), elements=ENTRIES))
def test_column_norms_are_upper_bounds_in_exact_arithmetic(B):
    for norm, column in zip(column_norms(B), B.T, strict=True):
        square = sum(Fraction(float(x)) ** 2 for x in column)
        assert Fraction(float(norm)) ** 2 >= square
        assert norm <= float(square) ** 0.5 * (1 + 1e-14)


@settings(max_examples=60)
@given(
    measured=st.integers(1, 5),
    counts=st.lists(st.integers(1, 8), min_size=1, max_size=5),
    seed=st.integers(0, 2**31),
)
def test_person_norms_are_exact_for_people_with_few_rows(measured, counts, seed):
    rng = np.random.default_rng(seed)
    inputs = 6
    B = rng.standard_normal((measured, inputs)) * rng.choice([1e-6, 1.0], size=inputs)
    people = rng.permutation(np.repeat(np.arange(len(counts)), counts))
    index = rng.integers(0, inputs, size=len(people))
    norms = person_norms(B, index, people)
    expected = [largest_norm(B, index[people == who]) for who in range(len(counts))]
    assert_allclose(norms, expected, rtol=1e-7, atol=1e-12)
    assert np.all(norms >= np.array(expected) * (1 - 1e-15))


@pytest.mark.parametrize("rows", [ENUMERATED_ROWS, ENUMERATED_ROWS + 1, ENUMERATED_ROWS + 3])
@pytest.mark.parametrize("kind", ["random", "equal", "orthogonal", "correlated"])
def test_person_norms_bound_people_with_many_rows(rows, kind):
    rng = np.random.default_rng(rows)
    B = {
        "random": rng.standard_normal((4, rows)),
        "equal": np.tile(rng.standard_normal((4, 1)), rows),
        "orthogonal": np.eye(rows),
        "correlated": 1.0 + 0.1 * rng.standard_normal((3, rows)),
    }[kind]
    exact = largest_norm(B, np.arange(rows))
    (bound,) = person_norms(B, np.arange(rows), np.zeros(rows, dtype=np.int64))
    assert bound >= exact * (1 - 1e-15)
    if rows == ENUMERATED_ROWS or kind in ("equal", "orthogonal"):
        assert bound == pytest.approx(exact, rel=1e-6)
    assert bound <= column_norms(B).sum() * (1 + 1e-12)


def test_the_largest_energy_weight_is_the_minimum_of_its_bound():
    delta = np.linspace(1e-3, 2, 2_000_001)[:-1]
    least = ((2 + delta) / (delta**2 * (2 - delta))).min()
    assert least == pytest.approx((11 + 5 * 5**0.5) / 8, rel=1e-10)
    assert least - 1e-4 < MAX_ENERGY_WEIGHT**2 <= least


def largest_change(norm, weight):
    """The largest change of (norm * u, weight * u^2) over a grid of pairs in [-1, 1]."""
    u = np.linspace(-1, 1, 1001)
    change, total = u[:, None] - u, u[:, None] + u
    return np.sqrt((change**2 * (norm**2 + (weight * total) ** 2)).max())


@settings(max_examples=25)
@given(norm=st.floats(0, 2), weight=st.floats(0, 4))
def test_the_energy_row_moves_no_further_than_said(norm, weight):
    assert largest_change(norm, weight) <= single_row_sensitivity(norm, weight) * (1 + 1e-12)


def largest_small_change(norm, weight, most, order):
    """The same over pairs that differ by at most ``most``, ends of that among them."""
    u = np.linspace(-1, 1, 401)
    change = np.append(np.linspace(0, most, 401), most)
    v = np.clip(u[:, None] + change, -1.0, 1.0)
    moved = np.stack([norm * (v - u[:, None]), weight * (v**2 - np.square(u)[:, None])])
    return np.linalg.norm(moved, order, axis=0).max()


@settings(max_examples=40)
@given(norm=st.floats(0, 2), weight=st.floats(0, 4), most=st.floats(1e-3, 2))
def test_a_small_change_moves_no_further_than_said_and_as_far(norm, weight, most):
    single = single_row_sensitivity(norm, weight, most)
    total = float(total_sensitivity(np.array([norm]), np.array([weight]), most)[0])
    for claimed, order in ((single, 2), (total, 1)):
        found = largest_small_change(norm, weight, most, order)
        assert found <= claimed * (1 + 1e-12) + 1e-15
        if most < 2.0 or order == 1:  # the old bound for whole changes is not always reached
            assert found >= 0.999 * claimed - 1e-9


@settings(max_examples=40)
@given(
    rows=st.integers(2, 5), weight=st.floats(0, 2), most=st.floats(0.01, 2), seed=st.integers(0, 2**31)
)  # fmt: skip
def test_small_changes_of_several_rows_move_no_further_than_said(rows, weight, most, seed):
    rng = np.random.default_rng(seed)
    B, shares = rng.standard_normal((3, rows)), rng.uniform(size=rows)
    u = rng.choice([-1.0, 1.0, 0.0], size=(2000, rows))
    v = np.clip(u + rng.choice([-most, most, 0.5 * most], size=u.shape), -1, 1)
    moved = np.hypot(np.linalg.norm((u - v) @ B.T, axis=1), weight * np.abs((u**2 - v**2) @ shares))
    norm = largest_norm(B, np.arange(rows))
    assert moved.max() <= many_row_sensitivity(norm, weight, shares.sum(), most) * (1 + 1e-12)


@settings(max_examples=200)
@given(
    low=st.floats(-1e6, 1e6),
    width=st.floats(1e-3, 1e6),
    at=st.floats(-0.2, 1.2),
    share=st.floats(1e-9, 1.2),
)
def test_outputs_that_differ_by_a_change_are_no_further_apart_when_scaled(low, width, at, share):
    """The vault's own arithmetic, in exact rationals."""
    bounds = (low, low + width)
    most = share * width
    y = low + at * width
    z = y + most
    while Fraction(z) - Fraction(y) > Fraction(most):
        z = float(np.nextafter(z, -np.inf))
    u, v = clip_outputs(np.array([y, z]), 2, bounds)
    assert abs(Fraction(v) - Fraction(u)) <= Fraction(scale_change(most, bounds))
    assert scale_change(None, bounds) == 2.0


@pytest.mark.parametrize(
    ("bounds", "most", "outputs"),
    [
        ((2.0**53, 2.0**53 + 1e4), 1, [2**53 + 1, 2**53 + 2]),
        (
            (1e15, 1e15 + 1e3),
            0.01,
            [Decimal("1000000000000001.06"), Decimal("1000000000000001.07")],
        ),
    ],
)
def test_outputs_that_no_float_holds_are_no_further_apart_either(bounds, most, outputs):
    """They are rounded when they are read, and may move apart by that."""
    u, v = (clip_outputs([each], 1, bounds)[0] for each in outputs)
    assert abs(v - u) <= scale_change(most, bounds)


def test_the_largest_energy_weight_is_free_and_not_a_hair_more_is():
    assert largest_change(1.0, MAX_ENERGY_WEIGHT) == pytest.approx(2.0, rel=1e-9)
    assert single_row_sensitivity(1.0, MAX_ENERGY_WEIGHT) == pytest.approx(2.0, rel=1e-12)
    assert largest_change(1.0, 1.001 * MAX_ENERGY_WEIGHT) > 2.0 + 1e-4
    assert single_row_sensitivity(0.0, MAX_ENERGY_WEIGHT) == pytest.approx(2.0, rel=1e-12)


@settings(max_examples=40)
@given(rows=st.integers(2, 5), weight=st.floats(0, 2), seed=st.integers(0, 2**31))
def test_energies_of_several_rows_move_no_further_than_said(rows, weight, seed):
    rng = np.random.default_rng(seed)
    B = rng.standard_normal((3, rows)) * rng.choice([1e-3, 1.0])
    shares = rng.uniform(size=rows)
    u, v = (rng.choice([-1.0, 0.0, 1.0, 0.6], size=(2000, rows)) for _ in range(2))
    moved = np.hypot(np.linalg.norm((u - v) @ B.T, axis=1), weight * np.abs((u**2 - v**2) @ shares))
    norm = largest_norm(B, np.arange(rows))
    assert moved.max() <= many_row_sensitivity(norm, weight, shares.sum()) * (1 + 1e-12)


def test_energies_of_several_rows_alone_use_their_whole_allowance():
    """With outputs all 1 against all 0 the energy moves by its weight times the shares."""
    assert many_row_sensitivity(0.0, 1.5, 2.0) == pytest.approx(3.0, rel=1e-12)


@given(st.integers(1, 60), st.integers(0, 2**31))
def test_rounding_bounds_the_error_of_a_dot_product_in_any_order(length, seed):
    rng = np.random.default_rng(seed)
    x, y = rng.standard_normal((2, length)) * 10.0 ** rng.integers(-8, 8, size=(2, length))
    exact = sum(Fraction(float(a)) * Fraction(float(b)) for a, b in zip(x, y, strict=True))
    mass = sum(abs(Fraction(float(a)) * Fraction(float(b))) for a, b in zip(x, y, strict=True))
    for order in (slice(None), slice(None, None, -1), rng.permutation(length)):
        error = abs(Fraction(float(np.dot(x[order], y[order]))) - exact)
        assert error <= Fraction(rounding(length)) * mass
