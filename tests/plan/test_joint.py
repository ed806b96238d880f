"""How far all outputs of one person together move a measurement: by brute force, and no further."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from privgp.plan.strategy import strategy_for_rows, strategy_of_groups
from privgp.plan.together import JointSums, factors
from privgp.privacy.noise import GAUSSIAN, LAPLACE
from privgp.question.rules import are_several, check_output_shares, per_output
from privgp.vault.measure import exact

ENDS = np.array(list(product((-1.0, 0.0, 1.0), repeat=2)))
PEOPLE = np.array([0, 0, 1, 2, 2])


def joint(law, people, energy, shares=(1.0, 2.0), seed=0):
    rng, index = np.random.default_rng(seed), np.array([0, 1, 2, 0, 1])
    parts = []
    for _ in range(2):
        if law == GAUSSIAN:
            B = rng.standard_normal((2, 3))
            parts.append(
                strategy_for_rows(B / np.linalg.norm(B, axis=0), index, people, energy=energy)
            )
        else:
            B = np.eye(2)[[0, 1, int(rng.integers(2))]].T
            parts.append(strategy_of_groups(B, index, people, energy=energy))
    return JointSums(tuple(parts), factors(shares, law))


def measured(strategy, y):
    return exact(strategy, y, ((-1.0, 1.0),) * 2)


@pytest.mark.parametrize("energy", [False, True])
@pytest.mark.parametrize("people", [None, PEOPLE], ids=["rows", "people"])
@pytest.mark.parametrize("law", [GAUSSIAN, LAPLACE])
def test_the_sensitivity_is_never_exceeded_and_is_reached(law, people, energy):
    """Both outputs of every person take all combinations of low, middle and high, before and after."""
    strategy = joint(law, people, energy)
    order, most = 1 if law == LAPLACE else 2, 0.0
    for person in range(5) if people is None else range(3):
        rows = [person] if people is None else np.flatnonzero(people == person)
        tables = []
        for values in product(ENDS, repeat=len(rows)):
            y = np.zeros((5, 2))
            y[rows] = values
            tables.append(measured(strategy, y))
        made = np.array(tables)
        for one in made:
            most = max(most, float(np.linalg.norm(made - one, order, axis=1).max()))
    bound = strategy.sensitivity()
    assert most <= bound * (1 + 1e-12)
    # the energy of several rows is bounded apart from their sums
    assert most >= bound * (0.95 if energy and people is not None else 1 - 1e-9)
    if not energy:
        low, high = strategy.worst_neighbours()
        assert np.linalg.norm(high - low, order) == pytest.approx(bound)


@pytest.mark.parametrize("law", [GAUSSIAN, LAPLACE])
@pytest.mark.parametrize("count", [2, 3, 7])
def test_equal_shares_cost_the_root_of_the_number_or_the_number(law, count):
    each = factors((1.0,) * count, law)
    assert 1.0 / np.array(each) == pytest.approx(count if law == LAPLACE else np.sqrt(count))


def test_factors_have_norm_one_and_the_ratio_of_the_shares():
    for shares in ((1.0, 2.0), (1e-3, 1.0, 5.0), (1e300, 1e299)):
        assert np.linalg.norm(factors(shares, GAUSSIAN)) == pytest.approx(1.0)
        assert np.sum(factors(shares, LAPLACE)) == pytest.approx(1.0)
        for law in (GAUSSIAN, LAPLACE):
            a = factors(shares, law)
            assert a[0] / a[1] == pytest.approx(shares[0] / shares[1])


@pytest.mark.parametrize("law", [GAUSSIAN, LAPLACE])
def test_rounding_stays_within_its_bound(law):
    strategy, rng = joint(law, None, False, shares=(1.0, 3.3)), np.random.default_rng(1)
    u = rng.uniform(-1, 1, size=(5, 2)) * rng.choice([1.0, 1e-9], size=(5, 2))
    errors, found = [], measured(strategy, u)
    rows = [
        (a, row, column)
        for a, part, column in zip(strategy.factors, strategy.parts, u.T, strict=True)
        for row in part.matrix[:, part.index] * part.row_weights
    ]
    for value, (a, row, column) in zip(found, rows, strict=True):
        true = Fraction(a) * sum(
            Fraction(w) * Fraction(x) for w, x in zip(row, column, strict=True)
        )
        errors.append(float(abs(Fraction(value) - true)))
    assert max(errors) > 0
    assert np.linalg.norm(errors, 1 if law == LAPLACE else 2) <= strategy.float_error()


def test_parts_of_other_rows_people_or_noise_are_refused():
    good, pure = joint(GAUSSIAN, PEOPLE, True), joint(LAPLACE, PEOPLE, True)
    good.check()
    first, second = good.parts
    others = np.array([0, 1, 1, 2, 2])
    for parts in (
        (first,),
        (first, pure.parts[1]),
        (first, joint(GAUSSIAN, None, True).parts[1]),
        (first, replace(second, people=others)),
        (first, replace(second, index=second.index[:4])),
    ):
        with pytest.raises(ValueError, match="belong together"):
            replace(good, parts=parts).check()
    with pytest.raises(ValueError, match="belong together"):
        replace(good, factors=(1.0,)).check()


@pytest.mark.parametrize(
    "shares",
    [(1,), (1, 2, 3), (1, 0), (1, -1), (1, np.nan), (1, np.inf), "ab", 2, (True, 1), (1, 1e-7)],
)
def test_bad_shares_are_refused(shares):
    with pytest.raises(ValueError, match="shares"):
        check_output_shares(shares, 2)


def test_what_counts_as_several_bounds():
    assert are_several([(0, 1), (0, 1)])
    assert are_several(np.array([[0, 1], [0, 1]]))
    assert are_several([(0, 1), 1])  # and is refused as such
    for one in ((0, 1), [0.0, 1.0], None, "01", 3, np.array([0, 1]), ()):
        assert not are_several(one)
    assert per_output("kernel", None, 2) == (None, None)
    with pytest.raises(ValueError, match="one per output"):
        per_output("kernel", [None], 2)
