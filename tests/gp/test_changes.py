"""Changes of a function: their shapes, their heights, and where the list of them looks."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm
from sklearn.gaussian_process.kernels import RBF

from privgp.gp.changes import (
    ACROSS,
    ALONG,
    SHAPES,
    Cell,
    Change,
    halve,
    list_changes,
    values,
)
from privgp.gp.priors import MOST_CHANGES, Hyperparameters

RNG = np.random.default_rng(0)


def one(kind: str, slope: float = 2.0, std: float = 3.0) -> Change:
    return Change(kind, np.array([1.0]), np.array([[slope]]), std)


def listed(cells: list[Cell]) -> list[Change]:
    return [cell.change for cell in cells]


def near(cells: list[Cell]) -> list[Change]:
    rng = np.random.default_rng(1)
    return [cell.anywhere(rng) for cell in cells]


def test_every_kind_has_its_formula():
    x = np.linspace(-2, 4, 13)
    z = 2.0 * (x - 1.0)
    X = x[:, None]
    assert_allclose(one("bump")(X), 3.0 * np.exp(-z * z / 2), rtol=1e-12)
    assert_allclose(one("step")(X), 3.0 * (norm.cdf(z) - 0.5), rtol=1e-12, atol=1e-15)
    assert_allclose(one("edge")(X), 3.0 * np.where(z > 0, np.exp(-z), 1.0), rtol=1e-12)


@pytest.mark.parametrize("kind", SHAPES)
def test_far_away_and_very_steep_is_finite(kind):
    X = np.array([[-1e300], [-1.0], [1.0], [1.0 + 1e-12], [1e300]])
    for slope in (1e-8, 1.0, 1e8):
        with np.errstate(over="ignore"):
            found = one(kind, slope)(X)
        assert np.all(np.isfinite(found))
        assert np.all(np.abs(found) <= 3.0)


def test_values_are_columns():
    X = RNG.uniform(size=(7, 1))
    several = [one("bump"), one("edge")]
    assert_allclose(values(several, X), np.stack([change(X) for change in several], axis=1))
    assert values([], X).shape == (7, 0)


@pytest.mark.parametrize("columns", [1, 2, 3])
@pytest.mark.parametrize("rows", [1, 5, 60])
@pytest.mark.parametrize("constant", [False, True])
def test_the_list_is_for_the_range_of_the_points(columns, rows, constant):
    X = RNG.uniform(-3, 5, size=(rows, columns))
    if constant:
        X[:, -1] = 7.0
    cells, shares = list_changes(X, 1.7)
    changes = listed(cells)
    assert len(changes) == len(shares)
    assert {change.kind for change in changes} == set(SHAPES)
    assert_allclose(shares.sum(), 1.0)
    wanted = ALONG if X.shape[1] == 1 else ACROSS
    for kind, share in zip(("step", "bump", "edge"), wanted, strict=True):
        of_kind = [s for s, change in zip(shares, changes, strict=True) if change.kind == kind]
        assert_allclose(sum(of_kind), share)
    found = values(changes, X)
    assert np.all(np.isfinite(found))
    assert np.all(np.abs(found) <= 1.7)
    for first in range(0, len(changes), MOST_CHANGES):
        model = Hyperparameters(RBF(), 1.0, changes=tuple(changes[first : first + MOST_CHANGES]))
        model.check_for(columns)


@pytest.mark.parametrize("columns", [1, 2, 3])
def test_the_list_moves_with_the_units_of_the_inputs(columns):
    X = RNG.uniform(size=(40, columns))
    scale = 10.0 ** np.arange(columns)
    plain, scaled = list_changes(X, 1.0)[0], list_changes(5.0 + X * scale, 1.0)[0]
    for take in (listed, near):
        found = values(take(scaled), 5.0 + X * scale)
        assert_allclose(values(take(plain), X), found, rtol=1e-6, atol=1e-9)


def test_some_change_is_near_every_place():
    X = np.linspace(0, 10, 201)[:, None]
    changes = listed(list_changes(X, 1.0)[0])
    for kind in ("bump", "step"):
        found = np.abs(values([c for c in changes if c.kind == kind], X))
        if kind == "step":  # a jump between neighbours 0.05 apart
            found = np.abs(np.diff(found, axis=0))
            assert np.count_nonzero(found.max(axis=0) > 0.05) == found.shape[1]
        else:
            assert found.max(axis=1).min() > 0.8


def test_a_change_near_a_listed_one_lies_no_further_than_half_way_to_the_next():
    X = np.linspace(0, 10, 201)[:, None]
    cells = list_changes(X, 1.3)[0]
    assert {cell.octaves for cell in cells if cell.change.kind == "bump"} == {1.0}
    for cell, other in zip(cells, near(cells), strict=True):
        assert (other.kind, other.std) == (cell.change.kind, 1.3)
        assert np.all(np.abs(other.centre - cell.change.centre) <= 0.5 * cell.apart)
        octaves = np.log2(other.slopes / cell.change.slopes)
        assert np.all(np.abs(octaves) <= 0.5 * cell.octaves + 1e-12)
    steps = np.sort([c.centre[0] for c in listed(cells) if c.kind == "step"])
    assert_allclose([c.apart[0] for c in cells if c.change.kind == "step"], np.diff(steps)[0])


def test_a_step_across_a_map_is_turned_no_further_than_half_way_to_the_next():
    X = RNG.uniform(size=(40, 2)) * np.array([1.0, 3.0])
    cells = [cell for cell in list_changes(X, 1.0)[0] if cell.change.kind == "step"]
    width = X.max(axis=0) - X.min(axis=0)
    cosines = []
    for cell, other in zip(cells, near(cells), strict=True):
        a, b = cell.change.slopes[0] * width, other.slopes[0] * width
        cosines.append(a @ b / np.linalg.norm(a) / np.linalg.norm(b))
    assert np.min(cosines) >= np.cos(0.5 * np.pi / 12)
    assert np.min(cosines) < np.cos(0.4 * np.pi / 12)


@pytest.mark.parametrize("columns", [1, 2, 3])
def test_halves_fill_their_cell_and_share_its_weight(columns):
    """Changes drawn from all halves have the centres, widths and directions of those drawn from the cell."""
    cells, weights = list_changes(RNG.uniform(size=(40, columns)) * 10.0, 1.0)
    for kind in SHAPES:
        chosen = [i for i, cell in enumerate(cells) if cell.change.kind == kind][3]
        heavy = np.arange(len(cells)) == chosen
        finer, shares = halve(cells, weights, heavy)
        count = len(finer) - len(cells) + 1
        halves, cell = finer[chosen : chosen + count], cells[chosen]
        assert count == 2 ** (np.count_nonzero(cell.apart) + (cell.octaves > 0) + (cell.angle > 0))
        assert_allclose(shares[chosen : chosen + count], weights[chosen] / count)
        assert_allclose(shares.sum(), 1.0)
        rng = np.random.default_rng(2)
        whole = [cell.anywhere(rng) for _ in range(4000)]
        parts = [halves[i % count].anywhere(rng) for i in range(4000)]
        for of in (lambda c: c.centre, lambda c: c.slopes.ravel()):
            one, other = (np.array([of(change) for change in each]) for each in (whole, parts))
            spread = np.ptp(one, axis=0)
            assert_allclose(other.mean(axis=0), one.mean(axis=0), atol=0.03 * spread.max() + 1e-9)
            assert_allclose(other.std(axis=0), one.std(axis=0), atol=0.03 * spread.max() + 1e-9)


def test_a_model_with_changes_has_their_covariance():
    X, Z = RNG.uniform(size=(6, 1)), RNG.uniform(size=(4, 1))
    changes = (one("bump"), one("step"))
    plain = Hyperparameters(2.0 * RBF(0.3), 1.0)
    bent = Hyperparameters(2.0 * RBF(0.3), 1.0, changes=changes)
    extra = sum(np.outer(change(X), change(Z)) for change in changes)
    assert_allclose(bent.covariance(X, Z), plain.covariance(X, Z) + extra)
    assert_allclose(bent.variances(X), np.diag(bent.covariance(X)))
    assert_allclose(plain.variances(X), 2.0)


ROOM = np.zeros(2)
BROKEN = {
    "kind": Change("dent", ROOM, np.ones((1, 2)), 1.0),
    "centre": Change("bump", np.zeros(1), np.ones((1, 2)), 1.0),
    "place": Change("bump", np.array([0.0, np.nan]), np.ones((1, 2)), 1.0),
    "columns": Change("step", ROOM, np.ones((1, 3)), 1.0),
    "one slope": Change("step", ROOM, np.eye(2), 1.0),
    "one-dimensional": Change("step", ROOM, np.ones(2), 1.0),
    "none": Change("bump", ROOM, np.ones((0, 2)), 1.0),
    "infinite": Change("edge", ROOM, np.array([[np.inf, 0.0]]), 1.0),
    "height": Change("bump", ROOM, np.eye(2), 0.0),
    "no height": Change("bump", ROOM, np.eye(2), float("nan")),
}
GOOD = Change("bump", ROOM, np.eye(2), 1.0)


@pytest.mark.parametrize("broken", BROKEN)
def test_changes_that_do_not_fit_are_refused(broken):
    Hyperparameters(RBF(), 1.0, changes=(GOOD, GOOD)).check_for(2)
    with pytest.raises(ValueError, match="changes are broken"):
        Hyperparameters(RBF(), 1.0, changes=(GOOD, BROKEN[broken])).check_for(2)
    with pytest.raises(ValueError, match="changes are broken"):
        Hyperparameters(RBF(), 1.0, changes=(GOOD,) * (MOST_CHANGES + 1)).check_for(2)
