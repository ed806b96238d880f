"""Two stages as one measurement: what clipping does is undone, and the scatter is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from privgp import PrivateGPRegressor
from privgp.plan.plan import plan_of_parts
from privgp.release.learn import zeros_of
from privgp.release.residuals import FirstStage, variance_after, variance_before
from privgp.vault.measure import exact

X = np.repeat(np.arange(10.0), 300)[:, None]
BOUNDS = (0.0, 10.0)


def first_stage(values=None, noise_std=None):
    settings = {"y_bounds": BOUNDS, "epsilon": 1.0, "mechanism": "laplace", "residuals": "always"}
    whole = PrivateGPRegressor(**settings).plan(X)
    measured, plan = zeros_of(whole), whole.parts[0]
    if values is not None:
        sums = exact(plan.strategy, values, BOUNDS)
        measured = plan.strategy.read(sums, plan.noises[0], plan.half_width)
    measured = measured if noise_std is None else replace(measured, noise_std=noise_std)
    return FirstStage(plan, plan.residuals, measured, learned=False)


@pytest.mark.parametrize("std", [0.05, 0.4, 1.0, 2.0])
def test_the_variance_of_clipped_numbers(std):
    drawn = np.clip(np.random.default_rng(0).normal(0, std, 400_000), -1.0, 1.0)
    assert variance_after(std, 1.0) == pytest.approx(np.mean(drawn**2), rel=0.01)
    found = variance_before(variance_after(std, 1.0), 1.0)
    assert found == pytest.approx(std**2, rel=1e-6) or std > 1.5  # which clipping hardly tells


def test_what_nothing_or_too_much_is_left_of_stays_finite():
    assert 0.0 < variance_before(-3.0, 2.0) < 1e-4
    assert variance_before(5.0, 2.0) == variance_before(0.7 * 4.0, 2.0) < 1e3


@pytest.mark.parametrize("shift", [0.0, 0.3])
def test_both_stages_without_noise_give_the_sums_of_outputs(shift):
    rng = np.random.default_rng(0)
    truth = 5.0 + 2.0 * np.sin(X[:, 0] / 2.0)
    y = truth + rng.normal(0, 0.5, len(X))
    stage = first_stage(truth - shift, noise_std=1e-9 if shift == 0.0 else None)
    curve, width = stage.centre
    assert curve.shape == (len(X),)
    assert 0.0 < width <= 5.0
    vars(stage)["width"] = width = 1.25
    vars(stage)["curve"] = (truth - shift)[::300]
    left = np.clip(y - truth + shift, -width, width)
    numbers = exact(stage.plan.strategy, left, (-width, width))
    second = stage.plan.strategy.read(numbers, stage.plan.noises[1], width)
    stage = replace(stage, measured=replace(stage.measured, noise_std=1e9))
    vars(stage).update(width=width, curve=(truth - shift)[::300])
    both, squares = stage.together(second)
    wanted = exact(stage.plan.strategy, y, BOUNDS)[:-1] * 5.0
    rows = np.bincount(stage.plan.strategy.matrix.argmax(axis=0)) * 300.0
    assert both.values / rows == pytest.approx(wanted / rows, abs=0.02)
    assert squares.energy / len(X) == pytest.approx(0.5**2 + shift**2, rel=0.08)
    assert both.noise_std == pytest.approx(second.noise_std, rel=0.2)


def test_stages_are_weighed_by_their_noise():
    stage = first_stage()
    vars(stage).update(width=5.0)
    both, _ = stage.together(zeros_of(plan_of_parts([stage.plan])))
    each = np.array([stage.measured.noise_std, zeros_of(plan_of_parts([stage.plan])).noise_std])
    assert both.noise_std == pytest.approx(np.sum(each**-2.0) ** -0.5, rel=0.02)
