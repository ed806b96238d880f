"""How far one label, or all labels of one person, move the sums of every class."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from privgp.plan.build import Budget, Question, make_part
from privgp.plan.choice import of_every_class
from privgp.plan.labels import ClassGroupSums, ClassSums
from privgp.plan.strategy import strategy_for_rows, strategy_of_groups
from privgp.vault.measure import exact

INDEX = np.array([0, 1, 2, 0])


def furthest_pair(strategy, rows, order):
    """The largest distance over all labels of these rows, the others being of no class."""
    others = np.full(strategy.rows, -1.0)
    found = []
    for labels in product((-1.0, 0.0, 1.0, 2.0), repeat=len(rows)):
        codes = others.copy()
        codes[rows] = labels
        found.append(exact(strategy, codes, (0.0, 1.0)))
    return max(np.linalg.norm(a - b, order) for a in found for b in found)


@pytest.mark.parametrize("seed", range(3))
def test_one_label_moves_two_sums_and_no_more(seed):
    B = np.random.default_rng(seed).standard_normal((3, 3))
    gaussian = of_every_class(strategy_for_rows(B, INDEX, None, energy=False), 3)
    pure = of_every_class(strategy_of_groups(np.eye(3), INDEX, None, energy=False), 3)
    for strategy, order in ((gaussian, 2), (pure, 1)):
        most = max(furthest_pair(strategy, [row], order) for row in range(4))
        assert most == pytest.approx(strategy.sensitivity(), rel=1e-9)
    assert gaussian.sensitivity() == pytest.approx(2.0 * np.sqrt(2.0))
    assert pure.sensitivity() == pytest.approx(4.0)


def test_rows_that_move_between_different_classes_are_not_bounded_by_signs():
    """Three rows at 120 degrees, moved around a triangle of classes, pass the bound of outputs."""
    angles = 2.0 * np.pi * np.arange(3) / 3.0
    B = np.array([np.cos(angles), np.sin(angles)])
    people = np.zeros(3, dtype=np.int64)
    one = strategy_for_rows(B, np.arange(3), people, energy=False)
    assert one.row_weights == pytest.approx(0.5)  # signs: two rows against the third
    careless = ClassSums(**vars(one), classes=3)
    codes = np.array([[0.0, 1.0, 2.0], [1.0, 2.0, 0.0]])
    moved = np.linalg.norm(exact(careless, codes[0], (0, 1)) - exact(careless, codes[1], (0, 1)))
    assert moved > np.sqrt(2.0) * one.sensitivity() * 1.05
    assert moved <= careless.sensitivity()
    weighted = of_every_class(one, 3)
    assert furthest_pair(weighted, [0, 1, 2], 2) <= weighted.sensitivity()
    assert weighted.sensitivity() == pytest.approx(2.0 * np.sqrt(2.0))


def test_two_classes_need_one_sum():
    strategy = strategy_for_rows(np.eye(3), INDEX, None, energy=False)
    assert of_every_class(strategy, 2) is strategy


@pytest.mark.parametrize(("law", "kind"), [("gaussian", ClassSums), ("laplace", ClassGroupSums)])
def test_a_plan_measures_every_class_and_no_squares(law, kind):
    question = Question((0.0, 1.0), squares=False, classes=4, mechanism=law)
    plan = make_part(np.linspace(0, 1, 40)[:, None], question, Budget(1.0, 1e-5))
    assert isinstance(plan.strategy, kind)
    assert plan.strategy.size == 4 * len(plan.functionals.weights) == plan.noise.size
    assert plan.strategy.energy_weight == 0.0


def test_the_sums_are_those_of_labels():
    B = np.random.default_rng(0).standard_normal((2, 3))
    strategy = of_every_class(strategy_for_rows(B, INDEX, None, energy=False), 3)
    codes = np.array([0.0, 2.0, -1.0, 1.0])
    expected = []
    for place in range(3):
        u = np.where(codes == place, 1.0, -1.0)
        expected.append(strategy.matrix[:, INDEX] @ u)
    assert_array_equal(
        np.round(exact(strategy, codes, (0, 1)), 12), np.round(np.concatenate(expected), 12)
    )
