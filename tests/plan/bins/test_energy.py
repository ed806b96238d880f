"""The weight of the energy under Laplace noise, where it costs accuracy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

from privgp import PrivateGPRegressor
from privgp.plan.bins.build import SCORE_LOSS, WEIGHTS, best_pure_bins, energy_weight, score_lost
from privgp.plan.build import Budget
from tests.plan.bins.test_grids import HALF, setting


@pytest.mark.parametrize(("inputs", "rows"), [(1, 100), (1, 3000), (2, 1000)])
def test_no_other_weight_is_much_better(inputs, rows):
    """Against the plan's own error with every weight, where the rule interpolates it."""
    _, aim, _, _ = setting(inputs, rows, 1.0)
    budget = Budget(1.0, 1e-5)
    chosen, _ = best_pure_bins(aim, budget)
    lost = {}
    for weight in (0.01, 0.03, 0.06, 0.1, 0.15, 0.2, 0.3, chosen.energy_weight):
        bins = replace(chosen, energy_weight=weight)
        error = aim.error(bins, budget.noise_of(bins).std) / HALF
        worse = score_lost(np.array([weight]), 1.0, rows, aim.scatter, np.array([error**2]))
        lost[weight] = np.log(error) + float(worse[0])
    assert lost[chosen.energy_weight] <= min(lost.values()) + 0.002
    assert max(lost.values()) > min(lost.values()) + 0.02


def test_the_interval_score_grows_as_said():
    """A normal output whose std is taken for 4% too large, and too small: variances by 8%."""
    z = norm.ppf(0.95)

    def score(c: float) -> float:
        return float(2 * c + 40 * (norm.pdf(c) - c * norm.sf(c)))

    worse = 0.5 * (score(1.04 * z) + score(0.96 * z)) / score(z) - 1.0
    assert worse == pytest.approx(SCORE_LOSS * 0.08**2, rel=0.01)


def test_the_energy_weighs_less_the_more_records_there_are():
    _, aim, _, _ = setting(1, 100, 1.0)
    weights = [
        energy_weight(1.0, rows, aim.scatter, error, 1.2 * error)
        for rows, error in ((1000, 5e-3), (10_000, 3e-4), (100_000, 2e-5))
    ]
    assert WEIGHTS[-1] >= weights[0] > weights[1] > weights[2] > WEIGHTS[0]


@pytest.mark.parametrize(("inputs", "rows"), [(1, 1000), (1, 2000), (2, 2000)])
def test_the_energy_tells_a_scatter_of_a_tenth_of_the_bounds(inputs, rows):
    """The noise on the mean square is below two fifths of that scatter's variance; with weights of
    0.06 and 0.05 it was not."""
    model = PrivateGPRegressor(
        protect="records", x_bounds=[(0, 1)] * inputs, y_bounds=(-1, 1), mechanism="laplace"
    )
    plan = model.plan(rows)
    noise = plan.noise.std / (plan.strategy.energy_weight * rows)
    assert noise < 0.4 * 0.2**2


def test_a_scatter_that_is_known_needs_no_energy():
    _, aim, _, _ = setting(1, 100, 1.0)
    known = replace(aim.scatter, log_std=0.0)
    assert energy_weight(1.0, 1000, known, 5e-3, 6e-3) == WEIGHTS[0]
