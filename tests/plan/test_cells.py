"""Cells: every row in one of them, as many as the formula says, made of inputs alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from privgp import PrivateGPRegressor
from privgp.plan.build import Budget, Question, gather
from privgp.plan.cells import MOST_CELLS, PARTS, Cells, cell_count, divide, halve, means
from tests.gp.sums import sums_of_parts

LAPLACE_VARIANCE = 8.0  # of the noise on a sum of outputs in [-1, 1], at epsilon 1


def places(rows: int, inputs: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(size=(rows, inputs))


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 200), st.integers(1, 3), st.integers(1, 60), st.integers(0, 2**20))
def test_halves_hold_every_row_once_and_never_part_equal_inputs(rows, inputs, count, seed):
    X = np.random.default_rng(seed).integers(0, 6, size=(rows, inputs)).astype(float)
    cells = halve(X, count)
    assert_array_equal(np.unique(cells), np.arange(cells.max() + 1))
    assert cells.max() < min(count, rows)
    for cell in np.unique(cells):
        alike = np.unique(X[cells == cell], axis=0)
        others = X[cells != cell]
        assert not any((others == one).all(axis=1).any() for one in alike)


def test_halves_of_even_rows_have_equally_many():
    counts = np.bincount(halve(places(4096, 2), 64))
    assert len(counts) == 64
    assert counts.min() >= 62
    assert counts.max() <= 66


def test_parts_divide_their_own_cell_alone():
    X, cells = places(500, 2), np.random.default_rng(1).permutation(np.arange(500) % 9)
    parts = divide(X, cells, 3)
    assert_array_equal(np.unique(parts), np.arange(27))
    assert_array_equal(parts // 3, cells)


def test_a_row_is_in_the_cell_of_the_nearest_part():
    X = places(3000, 2)
    cells = Cells.of(X, np.array([1.0, 2.0]), 40)
    assert_array_equal(np.unique(cells.cells), np.arange(40))
    assert 3 * 40 <= len(cells.centres) <= PARTS * 40
    far = np.square((X[:, None] - cells.centres) / cells.scales).sum(axis=2)
    assert_array_equal(cells.find(X), far.argmin(axis=1))


def test_cells_are_small_where_rows_are_dense():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.uniform(0, 1, (4000, 1)), rng.uniform(1, 10, (400, 1))])
    cells = Cells.of(X, np.ones(1), 44)
    found = np.unique(cells.cells[cells.find(X[:4000])])
    assert len(found) >= 22  # a tenth of the range holds half of the cells


def test_rows_too_far_from_all_cells_are_refused():
    cells = Cells(np.array([[0.0], [1.0]]), np.array([0, 1]), np.ones(1))
    with pytest.raises(ValueError, match="choose other units"):
        cells.find(np.array([[1e200]]))


def mean_log_error(rows: int, count: float, noise: float) -> float:
    """The formula of the proof page for one input, with every frequency of a periodic box separately."""
    usual, total = np.sqrt(1.0 / 12.0), 0.0
    frequencies = np.pi * np.arange(0.5, 20_000.0)
    factors = 2.0 * 2.0 ** (-0.5 * np.arange(int(2.0 * np.log2(2.0 * usual * rows)) + 1))
    for factor in factors:
        S = (5.0 / (factor * usual) ** 2 + frequencies**2) ** -3.0
        S *= 0.25 / S.sum()
        W = noise * count / rows**2 + 0.09 / rows
        left = np.where(frequencies < np.pi * count, S * W / (S + W), S).sum()
        total += np.log(left) / (1.0 + 0.25 * np.log(factor) ** 2)
    return float(total)


@pytest.mark.parametrize("rows", [300, 2000, 20_000])
def test_the_number_of_cells_leaves_little_more_error_than_the_best_one(rows):
    found = cell_count(rows, 1, LAPLACE_VARIANCE)
    counts = 2.0 ** np.arange(0.0, 10.5, 0.25)
    best = min(mean_log_error(rows, count, LAPLACE_VARIANCE) for count in counts)
    shares = sum(
        1.0 / (1.0 + 0.25 * np.log(2.0 * 2.0 ** (-0.5 * k)) ** 2)
        for k in range(int(2.0 * np.log2(2.0 * np.sqrt(1.0 / 12.0) * rows)) + 1)
    )
    assert (mean_log_error(rows, found, LAPLACE_VARIANCE) - best) / shares < 0.04  # 2% of the error


def test_more_rows_and_less_noise_have_more_cells_but_not_too_many():
    for inputs in (1, 2, 4):
        by_rows = [cell_count(10**k, inputs, LAPLACE_VARIANCE) for k in range(1, 9)]
        assert by_rows == sorted(by_rows)
        assert 1 <= by_rows[0] < by_rows[3] < by_rows[-1] == MOST_CELLS
    by_noise = [cell_count(5000, 2, 8.0 / eps**2) for eps in (0.1, 0.3, 1.0, 3.0)]
    assert by_noise == sorted(by_noise)
    assert by_noise[0] < by_noise[-1]


def test_few_inputs_stay_as_they_are_and_many_become_parts():
    question, budget = Question((-1.0, 1.0)), Budget(1.0, 0.0)
    few = places(300, 1).round(1)
    found = gather(few, question, budget, None)
    assert found.groups is found.cells is None
    assert_array_equal(found.inputs[found.index], few)
    many = places(6000, 2)
    found = gather(many, question, budget, None)
    assert len(found.groups) == len(found.inputs) < 600
    assert found.groups.max() + 1 == found.cells == cell_count(6000, 2, LAPLACE_VARIANCE)
    np.testing.assert_allclose(found.inputs, means(many, found.index))
    grid = np.repeat(places(450, 2, 1), 20, axis=0)
    found = gather(grid, question, budget, None)
    assert_array_equal(found.inputs[found.index], grid)  # nothing is approximated
    assert found.cells is None
    assert found.groups.max() + 1 < len(found.inputs)


@pytest.mark.parametrize(
    ("mechanism", "least", "most"), [("gaussian", 1600, 1600), ("laplace", 200, 800)]
)
def test_rows_have_their_own_weights_in_weighted_sums_alone(mechanism, least, most):
    X = places(1600, 4)
    model = PrivateGPRegressor(y_bounds=(0, 1), epsilon=1.0, delta=0.01, mechanism=mechanism)
    assert least <= model.plan(X).strategy.matrix.shape[1] <= most


def test_sums_of_parts_are_those_of_a_plan_in_memory():
    X = places(5000, 2)
    model = PrivateGPRegressor(y_bounds=(0, 1), epsilon=1.0, delta=0.0)
    plan = model.plan(X)
    assert "5000 rows in 107 cells" in plan.describe()
    counts = np.bincount(plan.strategy.index).astype(float)
    told = sums_of_parts(plan.strategy.matrix, plan.inputs, counts)
    for name in (
        "nodes",
        "weights",
        "noise_gram",
        "energy_gram",
        "energy_cross",
        "energy_noise_gram",
    ):
        np.testing.assert_allclose(getattr(plan.functionals, name), getattr(told, name), atol=1e-9)


@pytest.mark.statistical
def test_a_rough_function_of_many_rows_is_followed():
    """Sixty waves over the interval: groups of 97 could not. One release with fixed seeds."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(60_000, 1))
    y = np.sin(2.0 * np.pi * 60.0 * X[:, 0]) + rng.normal(0.0, 0.3, len(X))
    model = PrivateGPRegressor(y_bounds=(-2, 2), epsilon=1.0, delta=1e-6, random_state=0)
    at = np.linspace(0.0, 1.0, 999)[:, None]
    truth = np.sin(2.0 * np.pi * 60.0 * at[:, 0])
    model.fit(X, y)
    assert np.sqrt(np.mean((model.predict(at) - truth) ** 2)) < 0.25
    low, high = model.interval(at)
    assert np.mean((low <= truth) & (truth <= high)) > 0.75


@pytest.mark.parametrize("rows", [19_000, 60_000])
def test_distinct_inputs_that_the_budget_can_distinguish_have_one_sum_each(rows):
    """Searched for groups, there were at most 100 numbers however many rows there were."""
    X = np.random.default_rng(0).integers(0, 15, (rows, 2)).astype(float)
    plan = PrivateGPRegressor(y_bounds=(0, 1), epsilon=1.0, delta=1e-5).plan(X)
    assert len(plan.strategy.matrix) == len(np.unique(X, axis=0)) == 225
