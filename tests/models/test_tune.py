"""tune_for: posteriors of many datasets at once, the best of what is private, no private data."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import ndtr
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, Matern, WhiteKernel

from privgp import tune_for
from privgp.models.function.tune import (
    ExcursionTask,
    ManyPosteriors,
    MaximumTask,
    MeanTask,
    PriorDraws,
    ProbabilityTask,
    draw_datasets,
)

RNG = np.random.default_rng(0)
GRID = np.linspace(0, 1, 25)[:, None]
INPUTS = RNG.random((4, 30, 1))
PHASE = RNG.uniform(0, 6, (4, 1))
OUTPUTS = np.clip(np.sin(6 * INPUTS[..., 0] + PHASE) + 0.3 * RNG.standard_normal((4, 30)), -1, 1)
DRAWS = PriorDraws(INPUTS, OUTPUTS, GRID, np.sin(6 * GRID[:, 0] + PHASE))
LAW = {"domain": (0, 1), "y_bounds": (-1, 1), "delta": 1e-2, "rounds": 0}


@pytest.mark.parametrize("kernel", [RBF(0.3), Matern(0.5, nu=0.5)])
def test_many_posteriors_are_what_one_at_a_time_gives(kernel):
    mean, variance = ManyPosteriors(DRAWS, kernel).at(0.7)
    for j in range(4):
        one = GaussianProcessRegressor(kernel, alpha=0.7, optimizer=None).fit(INPUTS[j], OUTPUTS[j])
        expected, std = one.predict(GRID, return_std=True)
        assert np.allclose(mean[j], expected)
        assert np.allclose(variance[j], std**2, atol=1e-9)


def test_the_loss_of_a_path_is_how_often_it_is_wrong():
    mean, std, truth = np.array([[0.5, -1.0]]), np.array([[2.0, 0.5]]), np.array([[1.0, 1.0]])
    wrong = ndtr([-0.25, 2.0])
    assert ExcursionTask().loss(mean, std, truth) == pytest.approx(wrong.mean())
    entropy = ExcursionTask(score="cross-entropy").loss(mean, std, truth)
    assert entropy == pytest.approx(-np.log1p(-wrong).mean())
    shifted = ExcursionTask(threshold=3.0).loss(mean + 3.0, std, truth + 3.0)
    assert shifted == pytest.approx(wrong.mean())


def test_the_losses_of_the_other_tasks():
    mean, std, truth = np.array([[0.5, -1.0]]), np.array([[2.0, 0.5]]), np.array([[1.0, -1.0]])
    assert MeanTask().loss(mean, std, truth) == pytest.approx([(0.25 + 4.0 + 0.0 + 0.25) / 2])
    stated = ndtr([0.25, -2.0])
    expected = [((stated[0] - 1.0) ** 2 + stated[1] ** 2) / 2]
    assert ProbabilityTask().loss(mean, std, truth) == pytest.approx(expected)
    wrong = ndtr(-1.5 / np.hypot(2.0, 0.5))  # the second point is taken for the highest
    found = MaximumTask(repeats=4000).loss(mean, std, truth)
    assert found == pytest.approx([2.0 * wrong], abs=0.06)
    assert MaximumTask().loss(mean, 1e-9 * std, truth) == 0.0


def test_simulated_datasets_have_the_law_that_was_asked_for():
    kernel = 0.04 * Matern(0.3, nu=1.5) + WhiteKernel(0.01)
    law = {"rows": 5, "domain": [(0, 1), (2, 4)], "y_bounds": (9, 11)}
    drawn = draw_datasets(kernel, None, draws=300, points=8, **law)
    assert drawn.inputs.shape == (300, 5, 2)
    assert np.all((drawn.points >= (0, 2)) & (drawn.points <= (1, 4)))
    assert np.abs(drawn.outputs).max() <= 1.0
    assert drawn.truth.std() == pytest.approx(0.2, rel=0.1)
    assert drawn.outputs.std() == pytest.approx(0.05**0.5, rel=0.1)
    again = draw_datasets(kernel, None, draws=300, points=8, **law)
    assert np.array_equal(drawn.outputs, again.outputs)
    for wrong in ({"rows": 0}, {"domain": (1, 0)}, {"y_bounds": None}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            draw_datasets(kernel, None, **{**law, **wrong})


@pytest.mark.parametrize("task", [MeanTask(), MaximumTask(), ProbabilityTask(0.2)])
def test_every_task_is_tuned_within_the_budget(task):
    law = {**LAW, "regularisations": [1.0, 5.0, 30.0], "lengthscales": [0.1, 0.5]}
    tuned = tune_for(task, DRAWS, 5.0, **law)
    assert tuned.epsilon <= 5.0
    assert np.isfinite(tuned.loss)


def test_the_best_setting_keeps_to_the_budget_and_a_larger_budget_is_no_worse():
    law = {**LAW, "regularisations": [0.3, 1.0, 3.0, 10.0, 30.0], "lengthscales": [0.1, 0.3, 0.6]}
    found = [tune_for(ExcursionTask(), DRAWS, epsilon, **law) for epsilon in (2.0, 10.0, None)]
    for tuned, epsilon in zip(found, (2.0, 10.0, math.inf), strict=True):
        assert tuned.epsilon <= epsilon
        assert tuned.paths.guarantee_for(30).epsilon == tuned.epsilon
        assert tuned.regularisation == pytest.approx(
            math.sqrt(tuned.paths.noise_variance) / tuned.scale
        )
    assert found[0].loss >= found[1].loss - 1e-3 >= found[2].loss - 2e-3
    finer = tune_for(ExcursionTask(), DRAWS, 10.0, **{**law, "rounds": 1})
    assert finer.loss <= found[1].loss
    assert finer.epsilon <= 10.0


def test_the_coarse_grid_can_be_given():
    found = tune_for(
        ExcursionTask(), DRAWS, None, **LAW, regularisations=[3.0, 2.0], lengthscales=[0.2, 0.4]
    )
    assert found.regularisation in (2.0, 3.0)
    assert found.lengthscale in (0.2, 0.4)
    for name in ("regularisations", "lengthscales"):
        for wrong in ([1.0], [1.0, 1.0], [0.0, 1.0], [1.0, math.inf], [math.nan, 1.0], "ab", ["a"]):
            with pytest.raises(ValueError, match=name):
                tune_for(ExcursionTask(), DRAWS, None, **LAW, **{name: wrong})


def test_the_effective_dimension_is_a_trace():
    found = ManyPosteriors(DRAWS, RBF(0.3)).effective_dimension(0.7)
    for j in range(4):
        K = RBF(0.3)(INPUTS[j])
        assert found[j] == pytest.approx(np.trace(K @ np.linalg.inv(K + 0.7 * np.eye(30))))


def test_wrong_draws_tasks_and_budgets_are_refused():
    parts = (INPUTS, OUTPUTS, GRID, DRAWS.truth)
    for place, wrong in [(0, INPUTS[0]), (1, OUTPUTS[:, :-1]), (2, GRID[:, 0]), (3, DRAWS.truth[:2]),
            (0, INPUTS[:, :0]), (1, OUTPUTS * np.nan)]:  # fmt: skip
        changed = [wrong if i == place else part for i, part in enumerate(parts)]
        with pytest.raises(ValueError, match="draws"):
            PriorDraws(*changed)
    with pytest.raises(ValueError, match="score"):
        ExcursionTask(score="luck")
    for epsilon in (0.0, -1.0, math.nan):
        with pytest.raises(ValueError, match="epsilon"):
            tune_for(ExcursionTask(), DRAWS, epsilon, **LAW)
    with pytest.raises(ValueError, match="larger epsilon"):
        tune_for(ExcursionTask(), DRAWS, 1e-4, **{**LAW, "delta": 1e-12, "n_paths": 10_000})
