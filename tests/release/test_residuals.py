"""Two stages as one measurement: what clipping does is undone, and the scatter is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from privgp import PrivateGPRegressor
from privgp.plan.plan import plan_of_parts
from privgp.release.learn import zeros_of
from privgp.release.residuals import (
    CUT_OFF,
    DIRECTIONS,
    LIKELY,
    FirstStage,
    _main_directions,
    join,
    variance_after,
    variance_before,
    weigh,
)
from privgp.vault.measure import exact

X = np.repeat(np.arange(10.0), 300)[:, None]
BOUNDS = (0.0, 10.0)


def first_stage(values=None, noise_std=None):
    settings = {"y_bounds": BOUNDS, "epsilon": 1.0, "mechanism": "laplace", "residuals": "always"}
    whole = PrivateGPRegressor(**settings).plan(X)
    plan = whole.parts[0]
    added, _ = plan.residuals.strategies(plan.strategy)
    sums = np.zeros(added.size) if values is None else exact(added, values, BOUNDS)
    measured = added.read(sums, plan.noises[0], plan.half_width)
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
    untold = {"noise_std": 1e9, "energy_noise_std": 1e9}  # by the first stage
    stage = replace(stage, measured=replace(stage.measured, **untold))
    vars(stage).update(width=width, curve=(truth - shift)[::300])
    both, squares = stage.together(second)
    wanted = exact(stage.plan.strategy, y, BOUNDS)[:-1] * 5.0
    rows = np.bincount(stage.plan.strategy.matrix.argmax(axis=0)) * 300.0
    assert both.values / rows == pytest.approx(wanted / rows, abs=0.02)
    assert squares.energy / len(X) == pytest.approx(0.5**2 + shift**2, rel=0.08)
    assert both.noise_std == pytest.approx(second.noise_std, rel=0.2)


def test_outputs_at_the_ends_of_their_range_are_not_clipped():
    """Zeros and ones scatter over the whole range: a width of half of it would cut off one side of them."""
    y = 10.0 * (np.random.default_rng(0).uniform(size=len(X)) < 0.2 + 0.05 * X[:, 0])
    stage = replace(first_stage(y), learned=True)
    curve, width = stage.centre
    assert width == 5.0
    assert np.all(curve == 5.0)
    numbers = exact(stage.plan.strategy, y - curve, (-width, width))
    second = stage.plan.strategy.read(numbers, stage.plan.noises[1], width)
    both, squares = stage.together(second)
    assert both.values == pytest.approx(exact(stage.plan.strategy, y, BOUNDS)[:-1] * 5.0)
    assert squares.energy / len(X) == pytest.approx(25.0)


def test_stages_are_weighed_by_their_noise():
    stage = first_stage()
    vars(stage).update(width=5.0)
    second = zeros_of(plan_of_parts([stage.plan]))
    both, _ = stage.together(second)
    each = np.array([stage.measured.noise_std, second.noise_std])
    assert both.noise_std == pytest.approx(np.sum(each**-2.0) ** -0.5, rel=0.02)


@pytest.mark.parametrize("groups", [[0, 1, 2, 3, 4, 5], [0, 0, 1, 1, 1, 2]])
def test_two_measurements_are_joined_as_the_posterior_of_the_sums_has_it(groups):
    """Against brute force: the sums given both measurements, with what was cut off as one more unknown."""
    rng, groups = np.random.default_rng(4), np.array(groups)
    G = (groups == np.arange(groups.max() + 1)[:, None]).astype(float)
    root = rng.normal(size=(6, 6))
    unit, sums = root @ root.T, rng.normal(size=6)
    first, second = G @ sums + rng.normal(0, 2, len(G)), sums + rng.normal(0, 0.5, 6)
    found = join(first, 2.0, second, 0.5, unit, groups)
    logs = []
    for share in CUT_OFF:
        S = 4.0 * np.eye(len(G)) + G @ (0.25 * np.eye(6) + share**2 * unit) @ G.T
        apart = G @ second - first
        logs.append(-0.5 * apart @ np.linalg.solve(S, apart) - 0.5 * np.linalg.slogdet(S)[1])
    shares = LIKELY * np.exp(logs - np.max(logs))
    known = np.linalg.inv(0.25 * np.eye(6) + float(shares @ CUT_OFF**2 / shares.sum()) * unit)
    left = np.linalg.inv(G.T @ G / 4.0 + known)
    assert found.values == pytest.approx(left @ (G.T @ first / 4.0 + known @ second))
    said = found.std**2 * np.eye(6) + found.common @ found.common.T
    assert found.std**-2.0 == pytest.approx(0.5**-2.0 + 2.0**-2.0)
    if len(G) == 6:
        assert said == pytest.approx(left)
    else:  # a total that is known better counts as known as well as single sums are
        assert np.linalg.eigvalsh(said - left).min() > -0.25 / 16.0


def test_what_clipping_cuts_off_everywhere_is_learned_from_the_first_stage():
    unit = np.full((40, 40), 200.0**2)  # one number for all sums
    first, second = np.full(40, 500.0), np.full(40, 495.0)
    found = join(first, 1.0, second, 0.1, unit, np.arange(40))
    assert found.values == pytest.approx(first, abs=0.1)
    assert np.ptp(found.values) < 1e-6
    away = join(first, 1e4, second, 0.1, unit, np.arange(40))
    assert away.values == pytest.approx(second, abs=0.1)


def test_estimates_are_weighted_by_what_they_tell():
    assert weigh((4.0, 1.0), (1.0, 2.0)) == pytest.approx((3.4, 0.8**0.5))
    assert weigh((4.0, 1e-9), (1.0, 2.0))[0] == pytest.approx(4.0)


def test_squares_of_outputs_tell_the_scatter_that_clipping_cuts_off():
    """Exponential scatter: the first stage's sum of squares has the tail, where it is known well enough."""
    scatter = np.random.default_rng(3).exponential(1.0, len(X)) - 1.0
    truth = 4.0 + np.sin(X[:, 0] / 2.0)
    found = []
    for noise in (1e9, 1e-3):
        stage = first_stage(truth + scatter, noise_std=1e-3)
        stage = replace(stage, measured=replace(stage.measured, energy_noise_std=noise))
        vars(stage).update(width=2.5, curve=truth[::300])
        numbers = exact(stage.plan.strategy, np.clip(scatter, -2.5, 2.5), (-2.5, 2.5))
        second = stage.plan.strategy.read(numbers, stage.plan.noises[1], 2.5)
        squares = stage.together(second)[1]
        found.append((squares.energy / len(X), squares.noise_std / len(X)))
    (clipped, unsure), (told, sure) = found
    wanted = float(np.mean(scatter**2))
    assert clipped < 0.85 * wanted < told < wanted
    assert sure < unsure


def test_intervals_hold_skewed_outputs_of_many_rows():
    """Exponential scatter, of which clipping cuts off more on one side: the function stays covered."""
    rng = np.random.default_rng(5)
    x = rng.integers(0, 60, 20_000)[:, None] / 60.0
    y = np.sin(3.0 * x[:, 0]) + 0.15 * (rng.exponential(1.0, len(x)) - 1.0)
    asked = {"y_bounds": (-1.5, 1.5), "epsilon": 1.0, "delta": 1e-5, "random_state": 0}
    model = PrivateGPRegressor(**asked).fit(x, y)
    assert model.plan_.residuals is not None
    low, high = model.interval(x[:500])
    truth = np.sin(3.0 * x[:500, 0])
    assert np.mean((low < truth) & (truth < high)) > 0.75
    assert np.sqrt(np.mean((model.predict(x[:500]) - truth) ** 2)) < 0.02


def test_main_directions_are_those_of_the_whole_decomposition():
    places = np.linspace(0.0, 1.0, 300)
    unit = 0.5 + 0.5 * np.exp(-np.abs(places[:, None] - places) / 0.3)
    values, V = _main_directions(unit)
    assert_allclose(values, np.linalg.eigvalsh(unit)[-DIRECTIONS:], rtol=1e-4)
    assert_allclose(unit @ V[:, -3:], V[:, -3:] * values[-3:], atol=1e-6 * values[-1])
    assert len(_main_directions(unit[:5, :5])[0]) == 5


def test_nodes_that_are_joined_carry_as_much():
    f = first_stage().plan.functionals
    groups = np.arange(len(f.nodes)) // 2
    joined = f.join_nodes(groups)
    assert len(joined.nodes) == groups.max() + 1 < len(f.nodes)
    assert_allclose(joined.weights.sum(axis=1), f.weights.sum(axis=1))
    assert_allclose(joined.energy_gram.sum(), f.energy_gram.sum())
    line = 2.0 + 3.0 * f.nodes[:, 0]  # sums of a straight line stay what they are
    mass = f.weights.sum()
    assert_allclose(
        (joined.weights @ (2.0 + 3.0 * joined.nodes[:, 0])).sum() / mass,
        (f.weights @ line).sum() / mass,
    )
