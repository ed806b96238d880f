"""People whose rows are read in chunks, and groups of rows: against brute force and dense formulas."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import RBF

from privgp.gp.kernels.evaluate import evaluate
from privgp.plan.inputs.rows import PeopleRows
from privgp.plan.streamed.columns import Columns, GroupColumns, functionals_of_columns
from privgp.plan.streamed.sums import strategy_of_columns


def rows_of(rng, rows, persons):
    codes = rng.integers(0, 2**62, size=persons)[rng.integers(0, persons, size=rows)]
    return PeopleRows.of(rng.normal(size=(rows, 2)), codes, 6)


def used(columns, rows):
    """The columns that are multiplied and the shares in the energy, chunk by chunk."""
    parts = [columns.chunk(chunk, whole=False, change=2.0)[:2] for chunk in rows.chunks()]
    return np.hstack([B for B, _ in parts]), np.concatenate([shares for _, shares in parts])


@settings(max_examples=30, deadline=None)
@given(
    rows=st.integers(1, 40),
    persons=st.integers(1, 12),
    groups=st.booleans(),
    energy=st.booleans(),
    seed=st.integers(0, 2**31),
)
def test_no_person_moves_the_measurement_further(rows, persons, groups, energy, seed):
    """Over all ends of each person's outputs, and what lies between them."""
    rng = np.random.default_rng(seed)
    people, Z = rows_of(rng, rows, persons), rng.normal(size=(4, 2))
    columns = Columns(RBF(1.0), Z, rng.standard_normal((3, 4)), True)
    if groups:
        columns = GroupColumns(RBF(1.0), Z, np.eye(2)[:, [0, 1, 1, 0]], False)
    totals = columns.totals(people)
    strategy = strategy_of_columns(columns, totals, energy=energy, people=True)
    B, shares = used(columns, people)
    bound, most, order = strategy.sensitivity(), 0.0, 1 if groups else 2
    for person in np.unique(people.codes):
        mine = np.flatnonzero(people.codes == person)
        assert shares[mine].sum() == pytest.approx(1.0)
        for ends in product((-1.0, 1.0), repeat=len(mine)):
            for other in (-np.array(ends), rng.uniform(-1, 1, size=len(mine))):
                moved = B[:, mine] @ (np.array(ends) - other)
                squares = strategy.energy_weight * (shares[mine] @ (1.0 - other**2))
                most = max(most, float(np.linalg.norm(np.append(moved, squares), order)))
    assert most <= bound * (1 + 1e-12)
    assert most >= 0.9 * 2.0 * totals.largest
    assert totals.persons == len(np.unique(people.codes))
    low, high = strategy.worst_neighbours()
    assert 0.9 * bound <= np.linalg.norm(high - low, order) <= bound * (1 + 1e-12)


def test_functionals_of_people_are_sums_over_their_rows():
    rng = np.random.default_rng(0)
    people, Z = rows_of(rng, 500, 120), rng.normal(size=(8, 2))
    columns = Columns(RBF(1.5), Z, rng.standard_normal((5, 8)), True)
    totals = columns.totals(people)
    B, e = used(columns, people)
    X = np.concatenate([chunk.inputs for chunk in people.chunks()])
    J = np.linalg.solve(evaluate(columns.kernel, Z), evaluate(columns.kernel, Z, X))
    f = functionals_of_columns(columns, totals, np.zeros((5, 5)))
    assert_allclose(f.weights, B @ J.T, atol=1e-6)
    assert_allclose(f.noise_gram, B @ B.T, atol=1e-10)
    assert_allclose(f.energy_gram, (J * e) @ J.T, atol=1e-6)
    assert_allclose(f.energy_cross, (J * e) @ B.T, atol=1e-6)
    assert_allclose(f.energy_noise_gram, (B * e) @ B.T, atol=1e-10)
    assert f.energy_total == len(np.unique(people.codes)) == totals.persons


def test_rows_beyond_a_persons_most_are_dropped_by_their_place():
    codes = np.array([7, 5, 7, 7, 5, 7]) << 55
    X = np.arange(6.0)[:, None]
    rows = PeopleRows.of(X, codes, 2)
    assert sorted(rows.places.tolist()) == [0, 1, 2, 4]
    assert (rows.count, rows.total, rows.persons) == (4, 6, 2)


def test_every_row_is_in_the_group_of_its_nearest_inducing_input():
    Z = np.array([[0.0], [1.0], [5.0]])
    columns = GroupColumns(RBF(1.0), Z, np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]), False)
    B, _ = columns.at(np.array([[-2.0], [0.9], [2.9], [3.1], [9.0]]))
    assert B.argmax(axis=0).tolist() == [0, 0, 0, 1, 1]
    assert columns.fits()
    wrong = GroupColumns(RBF(1.0), Z, np.array([[1.0, 1.0, 0.5], [0.0, 0.0, 0.5]]), False)
    assert not wrong.fits()
