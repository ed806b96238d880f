"""Attacks on the promise for whole records, and accuracy on real data with simulated noise."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from privgp import PrivateGPRegressor
from privgp.audit import trade_off
from privgp.plan.bins import Bins
from privgp.vault.records import exact_records

pytestmark = pytest.mark.statistical
Z90 = 1.6448536269514722


def plan_for(inputs: int, **settings):
    given = {"y_bounds": (-1, 1), "epsilon": 4.0, "delta": 1e-2, **settings}
    return PrivateGPRegressor(protect="records", x_bounds=[(0, 1)] * inputs, **given).plan(30)


@pytest.mark.parametrize("inputs", [1, 2, 3])
def test_no_pair_of_records_moves_the_measurement_further_than_promised(inputs):
    """Every pair of bins, outputs on a grid of [-1, 1], through the code that measures."""
    bins = plan_for(inputs).strategy
    rng = np.random.default_rng(inputs)
    others = rng.uniform(size=(29, inputs)), rng.uniform(-1, 1, size=29)

    def measured(x, u):
        return exact_records(np.vstack([others[0], x]), np.append(others[1], u), bins)

    furthest = 0.0
    for _ in range(3000):
        x, z = rng.uniform(-0.0, 1.0, size=(2, inputs))
        z = x if rng.uniform() < 0.3 else z
        u, v = rng.choice([-1.0, 1.0, 0.0, rng.uniform(-1, 1)], size=2)
        furthest = max(furthest, float(np.linalg.norm(measured(x, u) - measured(z, v))))
    assert furthest <= bins.sensitivity() + 2 * bins.float_error()
    x = np.full(inputs, 0.5)
    assert np.linalg.norm(measured(x, 1.0) - measured(x, -1.0)) > 1.9


def test_the_sensitivity_of_plain_bins_is_exactly_two():
    bins = Bins(np.zeros(1), np.ones(1), (5,), 1, np.eye(5))
    levels = np.linspace(-1, 1, 41)
    furthest = max(
        np.linalg.norm(
            exact_records(np.array([[0.1]]), np.array([u]), bins)
            - exact_records(np.array([[z]]), np.array([v]), bins)
        )
        for z in (0.1, 0.9)
        for u, v in itertools.product(levels, levels)
    )
    assert furthest == 2.0
    assert bins.sensitivity() == pytest.approx(2.0, rel=1e-12)


def test_no_attack_beats_the_promise_and_a_planted_fault_is_found():
    plan = plan_for(1)
    result = trade_off(plan, draws=20_000)
    assert result.holds, result.describe()
    assert result.is_tight, result.describe()
    assert not trade_off(plan, draws=20_000, noise_scale=0.8).holds


def test_kung_heights_with_private_ages(kung):
    X, y = kung
    squares, covered = [], []
    for seed in range(30):
        model = PrivateGPRegressor(
            protect="records", x_bounds=(0, 90), y_bounds=(75, 175), delta=0.01, random_state=seed
        ).fit(X, y)
        mean, std = model.predict(X, return_std=True, observation=True)
        squares.append(np.mean((mean - y) ** 2))
        covered.append(np.mean(np.abs(mean - y) < Z90 * std))
    assert np.sqrt(np.mean(squares)) <= 8.8
    assert 0.85 <= np.mean(covered) <= 0.95
