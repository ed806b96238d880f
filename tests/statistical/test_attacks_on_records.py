"""How far whole records move the measurement, and accuracy on real data with simulated noise."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.distance import pdist

from privgp import PrivateGPRegressor
from privgp.plan.bins.bins import Bins
from privgp.vault.measure import exact as without_noise
from tests.releases import releases

pytestmark = pytest.mark.statistical
Z90 = 1.6448536269514722


def plan_for(inputs: int, **settings):
    given = {
        "y_bounds": (-1, 1),
        "epsilon": 4.0,
        "delta": 1e-2,
        "mechanism": "gaussian",
        **settings,
    }
    return PrivateGPRegressor(protect="records", x_bounds=[(0, 1)] * inputs, **given).plan(30)


@pytest.mark.parametrize("inputs", [1, 2, 3])
def test_no_pair_of_records_moves_the_measurement_further_than_promised(inputs):
    """Outputs on a grid of [-1, 1] in every bin (in 60 of them from two inputs on), all pairs,
    through the code that measures."""
    bins = plan_for(inputs).strategy
    rng = np.random.default_rng(inputs)
    chosen = rng.permutation(bins.count)[:60]
    one = replace(bins, rows=1)
    measured = np.array(
        [
            without_noise(one, (place[None, :], np.array([u])), (-1.0, 1.0))
            for place in bins.centres()[chosen]
            for u in np.linspace(-1, 1, 11)
        ]
    )
    furthest = pdist(measured).max()
    assert 1.9 < furthest <= bins.sensitivity()
    assert bins.sensitivity() <= 2.0 * (1.0 + 1e-9)


def test_other_records_do_not_change_how_far_one_moves_the_measurement():
    bins = plan_for(2).strategy
    rng = np.random.default_rng(0)
    X, u = rng.uniform(size=(30, 2)), rng.uniform(-1, 1, size=30)
    whole = without_noise(bins, (X, u), (-1.0, 1.0))
    for _ in range(300):
        Z, v = X.copy(), u.copy()
        Z[7], v[7] = rng.uniform(size=2), rng.choice([-1.0, 1.0])
        moved = np.linalg.norm(without_noise(bins, (Z, v), (-1.0, 1.0)) - whole)
        assert moved <= bins.sensitivity() + 2 * bins.float_error()


def test_the_sensitivity_of_plain_bins_is_exactly_two():
    bins = Bins(np.zeros(1), np.ones(1), (5,), 1, np.eye(5))
    levels = np.linspace(-1, 1, 41)
    furthest = max(
        np.linalg.norm(
            without_noise(bins, (np.array([[0.1]]), np.array([u])), (-1.0, 1.0))
            - without_noise(bins, (np.array([[z]]), np.array([v])), (-1.0, 1.0))
        )
        for z in (0.1, 0.9)
        for u, v in itertools.product(levels, levels)
    )
    assert furthest == 2.0
    assert bins.sensitivity() == pytest.approx(2.0, rel=1e-12)


def test_kung_heights_with_private_ages(kung):
    X, y = kung
    squares, covered = [], []
    settings = {"protect": "records", "x_bounds": (0, 90), "y_bounds": (75, 175), "delta": 0.01}
    for model in releases(X, y, range(15), **settings):
        mean, std = model.predict(X, return_std=True, observation=True)
        squares.append(np.mean((mean - y) ** 2))
        covered.append(np.mean(np.abs(mean - y) < Z90 * std))
    assert np.sqrt(np.mean(squares)) <= 8.8
    assert 0.85 <= np.mean(covered) <= 0.95
