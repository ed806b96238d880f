"""Clipped residuals: no curve and no width lets one person move their sums further than outputs."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from privgp import PrivateGPRegressor
from privgp.engine.workers import Serial
from privgp.plan.designs.stages import Residuals
from privgp.plan.inputs.blocks import ArrayInputs, Blocks
from privgp.plan.inputs.tally import People, tally_rows
from privgp.plan.strategy import noise_of, strategy_for_rows, strategy_of_groups
from privgp.vault.grouped.totals import Encoding, sum_outcomes
from privgp.vault.measure import exact, measure_twice, seal_residuals
from privgp.vault.values import Sealed, unseal

ROWS, BOUNDS = 9, (60.0, 200.0)
INDEX = np.arange(ROWS) % 4
PEOPLE = np.array([0, 0, 0, 1, 1, 2, 3, 4, 5])
GROUPS = np.array([[1.0, 1, 0, 0], [0, 0, 1, 1]])
STRATEGIES = {
    "groups": strategy_of_groups(GROUPS, INDEX, None, energy=True),
    "groups of people": strategy_of_groups(GROUPS, INDEX, PEOPLE, energy=True),
    "weights": strategy_for_rows(np.eye(4) * 0.7 + 0.2, INDEX, None, energy=True),
    "weights of people": strategy_for_rows(np.eye(4) * 0.7 + 0.2, INDEX, PEOPLE, energy=True),
}


def opened(sealed):
    """Tests alone may look inside."""
    return next(cell.cell_contents for cell in sealed._open.__closure__)


def measured(strategy, y, curve, width):
    left = opened(seal_residuals(y, ROWS, BOUNDS, curve, width))
    return exact(strategy, left, (-width, width))


@pytest.mark.parametrize("name", STRATEGIES)
def test_nobody_moves_residuals_further_than_the_sensitivity(name):
    strategy, rng = STRATEGIES[name], np.random.default_rng(0)
    order = 1 if strategy.law == "laplace" else 2
    people = np.arange(ROWS) if strategy.people is None else strategy.people
    most, allowed = 0.0, strategy.sensitivity() + 2.0 * strategy.float_error()
    for width in (1e-3, 7.0, 69.9, 1e6):
        for _ in range(60):
            # curves inside the bounds, far outside, and such that the difference is rounded away
            curve = rng.choice([0.0, 130.0, -1e300, 1e17, 3e-300], ROWS) + rng.normal(0, 50, ROWS)
            y = rng.choice([60.0, 200.0, 131.0, 1e9, -1e9], ROWS)
            other, mine = y.copy(), people == rng.integers(people.max() + 1)
            other[mine] = rng.choice([60.0, 200.0, 1e9], int(mine.sum()))
            ends = (measured(strategy, each, curve, width) for each in (y, other))
            most = max(most, float(np.linalg.norm(np.subtract(*ends), order)))
    assert 0.3 * allowed < most <= allowed


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize("groups", [(0, 0, 1, 1), (0, 1, 1, 0), (0, 0, 0, 0)])
def test_nobody_moves_sums_that_are_added_up_further_than_the_first_stage_states(name, groups):
    """Also where sums overlap, whose columns grow when they are added up."""
    strategy, rng = STRATEGIES[name], np.random.default_rng(3)
    first, _ = Residuals(groups=groups[: len(strategy.matrix)]).strategies(strategy)
    order = 1 if strategy.law == "laplace" else 2
    people = np.arange(ROWS) if strategy.people is None else strategy.people
    most, allowed = 0.0, first.sensitivity() + 2.0 * first.float_error()
    for _ in range(300):
        y = rng.choice([60.0, 200.0, 131.0, 1e9, -1e9], ROWS)
        other, mine = y.copy(), people == rng.integers(people.max() + 1)
        other[mine] = rng.choice([60.0, 200.0, 1e9], int(mine.sum()))
        moved = exact(first, y, BOUNDS) - exact(first, other, BOUNDS)
        most = max(most, float(np.linalg.norm(moved, order)))
    assert 0.3 * allowed < most <= allowed


def rows_of(people):
    """The rows as many are held, and their tally."""
    whose = None if people is None else People.of(people, None)
    rows = Blocks.of(ArrayInputs(INDEX[:, None].astype(float)), whose)
    return rows, tally_rows(rows, Serial())


def summed(y, rows, tally, curve, width):
    """The sums of residuals over the cells of a tally, in each of which the curve has one value."""
    kinds = [Encoding(BOUNDS)]
    outputs = sum_outcomes(Sealed(y, ROWS), rows, tally, kinds, Serial(), alone=True)
    return opened(seal_residuals(outputs, len(tally.keys), BOUNDS, curve, width))


@pytest.mark.parametrize("people", [None, PEOPLE])
def test_nobody_moves_residuals_of_many_rows_further_than_the_sensitivity(people):
    (rows, tally), rng, most = rows_of(people), np.random.default_rng(2), 0.0
    index, whose = tally.numbers[:, 0].astype(np.int64), None
    if people is not None:
        whose = np.arange(tally.people)
    strategy = strategy_of_groups(GROUPS, index, whose, energy=True, tally=tally)
    persons = np.arange(ROWS) if people is None else people
    allowed = strategy.sensitivity() + 2.0 * strategy.float_error()
    for width in (1e-3, 7.0, 1e6):
        for _ in range(30):
            size = len(tally.keys)
            curve = rng.choice([0.0, 130.0, -1e300, 1e17], size) + rng.normal(0, 50, size)
            y = rng.choice([60.0, 200.0, 131.0, 1e9, -1e9], ROWS)
            other, mine = y.copy(), persons == rng.integers(persons.max() + 1)
            other[mine] = rng.choice([60.0, 200.0, 1e9], int(mine.sum()))
            ends = (
                exact(strategy, summed(each, rows, tally, curve, width), (-width, width))
                for each in (y, other)
            )
            most = max(most, float(np.linalg.norm(np.subtract(*ends), 1)))
    assert 0.3 * allowed < most <= allowed


def test_residuals_of_many_rows_are_those_of_rows_in_memory():
    y, curve = np.random.default_rng(3).uniform(0, 260, ROWS), np.array([80.0, 120, 150, 190])
    rows, tally = rows_of(None)
    totals = summed(y, rows, tally, curve, 20.0)
    left = opened(seal_residuals(y, ROWS, BOUNDS, curve[INDEX], 20.0)) / 20.0
    wanted = [np.bincount(INDEX, each) for each in (left, left**2)]
    assert totals.sums.T * 2.0**-tally.bits == pytest.approx(np.array(wanted), abs=1e-10)
    assert totals.encoding.bounds == (-20.0, 20.0)


def test_residuals_are_those_of_exact_arithmetic_up_to_rounding():
    rng = np.random.default_rng(1)
    y, curve = rng.uniform(0, 260, ROWS), rng.uniform(60, 200, ROWS)
    found = opened(seal_residuals(y, ROWS, BOUNDS, curve, 20.0))
    for value, at, left in zip(y, curve, found, strict=True):
        inside = min(max(Fraction(value), Fraction(60)), Fraction(200))
        wanted = min(max(inside - Fraction(at), Fraction(-20)), Fraction(20))
        assert abs(Fraction(left) - wanted) <= Fraction(200) * Fraction(2) ** -52
    assert np.abs(found).max() <= 20.0


def test_another_persons_output_changes_nothing_of_mine():
    curve = np.linspace(70, 190, ROWS)
    y = np.full(ROWS, 100.0)
    one = opened(seal_residuals(y, ROWS, BOUNDS, curve, 5.0))
    y[3] = 199.0
    other = opened(seal_residuals(y, ROWS, BOUNDS, curve, 5.0))
    assert np.flatnonzero(one != other).tolist() in ([], [3])


@pytest.mark.parametrize(
    ("curve", "width"),
    [
        (np.full(ROWS, np.nan), 1.0),
        (np.full(ROWS, np.inf), 1.0),
        (np.zeros(ROWS - 1), 1.0),
        (np.zeros(ROWS), 0.0),
        (np.zeros(ROWS), np.inf),
        (np.zeros(ROWS), np.nan),
        (np.zeros(ROWS), -1.0),
    ],
)
def test_a_curve_that_is_none_is_refused_without_a_value(curve, width):
    with pytest.raises(ValueError, match="finite") as refusal:
        seal_residuals(np.full(ROWS, 123.456), ROWS, BOUNDS, curve, width)
    assert "123" not in str(refusal.value)


def test_residuals_are_sealed():
    sealed = seal_residuals(np.zeros(ROWS), ROWS, BOUNDS, np.zeros(ROWS), 1.0)
    with pytest.raises(TypeError, match="vault alone"):
        unseal(sealed)


@pytest.mark.parametrize("name", ["groups", "weights"])
def test_the_curve_is_learned_from_released_numbers_alone(name):
    strategy, seen = STRATEGIES[name], []
    split = Residuals(groups=(0,) * len(strategy.matrix))
    both = split.strategies(strategy)
    noises = tuple(map(noise_of, both, (0.4, 0.6), (1e-5, 1e-5)))

    def learn(first):
        seen.append(first)
        return np.full(ROWS, 130.0), 10.0

    y = np.full(ROWS, 135.0)
    given = BOUNDS, both, noises, learn, np.random.default_rng(0)
    first, second = measure_twice(y, *given)
    assert seen == [first]
    assert (len(first.values), len(second.values)) == (1, len(strategy.matrix))
    ratio = first.noise_std / second.noise_std
    assert ratio == pytest.approx(7.0 * noises[0].std / noises[1].std)


def test_sums_of_residuals_and_of_outputs_have_the_noise_that_is_stated():
    """Simulated noise: the second stage's is in proportion to the width."""
    model = PrivateGPRegressor(y_bounds=BOUNDS, epsilon=1.0, delta=0.0, residuals="always")
    plan = model.plan(np.arange(ROWS)[:, None])
    first, second = plan.noises
    assert first.event.pure_epsilons[0] + second.event.pure_epsilons[0] <= 1.0
    assert first.std / plan.noise.std == pytest.approx(1 / 0.25, rel=1e-5)
    assert second.std / plan.noise.std == pytest.approx(1 / 0.75, rel=1e-5)
