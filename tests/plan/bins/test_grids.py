"""The bins a plan chooses, against brute force over their number, by expectation and by simulation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from privgp import PrivateGPRegressor
from privgp.gp.inference.posterior import posterior
from privgp.gp.kernels.evaluate import evaluate
from privgp.gp.kernels.integral import integral_gram
from privgp.gp.measurement import Measurement
from privgp.plan.bins.bins import Bins, Grid, HalvedBins
from privgp.plan.bins.build import (
    BinAim,
    Scatter,
    aware_bins,
    best_bins,
    best_pure_bins,
    design_models,
)
from privgp.plan.bins.counts import bin_functionals, counts_after_noise
from privgp.plan.build import Budget, Question, initial_priors
from privgp.privacy.noise import LAPLACE, gaussian_noise
from privgp.vault.measure import exact as without_noise

NUMBERS = {1: (1, 2, 3, 4, 6, 8, 12, 16, 32, 64), 2: (1, 2, 3, 4, 6, 10)}
HALF = 0.5


def setting(inputs: int, rows: int, epsilon: float):
    """The prior, the aim, the noise and the targets of a plan for outputs of width 1."""
    spread = 1.0 / np.sqrt(12.0)
    even = np.array([[0.5 - spread] * inputs, [0.5 + spread] * inputs])
    prior = initial_priors(even, Question((-HALF, HALF)), learned=False)[0]
    noise = gaussian_noise(epsilon, 1e-5, 1, 2.0, 0.0).std
    low, high = np.zeros(inputs), np.ones(inputs)
    targets = Grid(low, high, (50,) if inputs == 1 else (11, 11)).centres()
    scatter = Scatter.of(prior, HALF)
    aim = BinAim(low, high, rows, design_models(prior), targets, HALF, scatter=scatter)
    return prior, aim, noise, targets


@pytest.mark.parametrize(
    ("inputs", "rows", "epsilon"),
    [(1, 30, 1.0), (1, 100, 0.2), (1, 300, 1.0), (1, 10_000, 1.0), (2, 300, 1.0)],
)
def test_no_number_of_plain_bins_is_much_better_than_the_plan(inputs, rows, epsilon):
    _, aim, noise, _ = setting(inputs, rows, epsilon)
    chosen, planned = best_bins(aim, noise)
    assert planned == aim.error(chosen, noise)
    errors = {k: aim.error(aim.bins(k), noise) for k in NUMBERS[inputs]}
    best = min(errors, key=errors.__getitem__)
    assert planned <= 1.01 * errors[best]
    # The comparison means something: other numbers of bins are much worse.
    assert max(errors.values()) > 1.2 * errors[best]


@pytest.mark.parametrize(("inputs", "rows"), [(1, 100), (1, 3000), (2, 300)])
def test_no_number_of_bins_is_much_better_for_laplace_noise(inputs, rows):
    _, aim, _, _ = setting(inputs, rows, 1.0)
    budget = Budget(1.0, 1e-5)
    chosen, planned = best_pure_bins(aim, budget)
    noise = budget.noise_of(chosen).std
    errors = [aim.error(aim.bins(k, HalvedBins, law=LAPLACE), noise) for k in NUMBERS[inputs]]
    assert planned == pytest.approx(aim.error(chosen, noise), rel=1e-6)
    assert planned <= 1.01 * min(errors)
    assert max(errors) > 1.2 * min(errors)
    np.testing.assert_array_equal(chosen.matrix, np.eye(chosen.count))


def simulated_error(bins: Bins, prior, noise: float, targets, draws: int) -> float:
    """Root mean square error of releases of functions drawn from the starting prior."""
    model, squares = prior.start, []
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        X = rng.uniform(size=(bins.rows, len(bins.shape)))
        K = evaluate(model.kernel, np.vstack([targets, X]))
        K.flat[:: len(K) + 1] += 1e-9
        f = np.linalg.cholesky(K) @ rng.standard_normal(len(K))
        y = f[len(targets) :] + np.sqrt(model.noise_variance) * rng.standard_normal(bins.rows)
        exact = without_noise(bins, (X, y / HALF), (-1.0, 1.0))[:-1]
        noisy = exact + noise * rng.standard_normal(len(exact))
        half = len(bins.matrix)
        found = bin_functionals(bins, *counts_after_noise(bins, noise, noisy[:half]), model)
        measured = Measurement(noisy[half:] * HALF, noise * HALF, None, 0.0, noisy[:half])
        mean = posterior(found, measured, [model], 0.0).mean_and_variance(targets)[0]
        squares.append(np.mean((mean - f[: len(targets)]) ** 2))
    return float(np.sqrt(np.mean(squares)))


@pytest.mark.statistical
def test_simulated_releases_are_as_good_as_with_the_best_number_of_plain_bins():
    """60 functions of the prior; the same for all numbers of bins, so that differences are known
    better than errors."""
    prior, aim, noise, targets = setting(1, 150, 2.0)
    chosen, _ = best_bins(aim, noise)
    planned = simulated_error(chosen, prior, noise, targets, 60)
    errors = [simulated_error(aim.bins(k), prior, noise, targets, 60) for k in (1, 2, 4, 8, 16)]
    assert planned <= 1.03 * min(errors)
    assert planned < 0.9 * max(errors)


def test_the_aware_design_is_no_worse_than_smooth_partitions_of_unity():
    """Hat functions, and their roots whose squares sum to 1, are among what it chooses from."""
    _, aim, noise, _ = setting(1, 300, 1.0)
    fine = aim.bins(64)
    least = aim.error(aware_bins(64, aim, noise), noise)
    place = (np.arange(64) + 0.5) / 64
    for knots in (3, 4, 6, 10):
        hats = np.maximum(0.0, 1.0 - np.abs(place * (knots - 1) - np.arange(knots)[:, None]))
        for matrix in (hats, np.sqrt(hats)):
            bins = replace(fine, matrix=matrix)
            assert bins.sensitivity() <= 2.0 + 1e-9
            assert least <= 1.002 * aim.error(bins, noise)


@pytest.mark.parametrize(("inputs", "parts"), [(1, 5), (1, 32), (2, 8)])
def test_nodes_give_the_integral_kernel(inputs, parts):
    """The covariance of bins' averages, at the starting and at half the lengthscale."""
    prior, aim, _, _ = setting(inputs, 100, 1.0)
    bins = aim.bins(parts)
    nodes, shares = bins.nodes()
    assert shares.sum() == pytest.approx(1.0)
    low = bins.centres() - 0.5 / parts
    for step, tolerance in ((0.0, 1e-4), (np.log(0.5), 5e-4)):
        kernel = prior.start.kernel
        kernel = kernel.clone_with_theta(kernel.theta + step)
        exact = integral_gram(kernel, low, low + 1.0 / parts)
        averaged = bins.average_over_bins(evaluate(kernel, nodes))
        np.testing.assert_allclose(averaged, exact, atol=tolerance * float(exact.max()))


def test_averages_are_taken_bin_by_bin():
    bins = Bins(np.zeros(2), np.array([2.0, 3.0]), (2, 3), 10, np.eye(6))
    nodes, _ = bins.nodes()
    middle = bins.centres()
    for j in range(2):
        np.testing.assert_allclose(bins.average_over_bins(nodes[:, j]), middle[:, j])
    np.testing.assert_array_equal(bins.of(nodes), np.repeat(np.arange(6), len(nodes) // 6))


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
@pytest.mark.parametrize(
    ("inputs", "most", "finest"), [(1, 5, 5), (2, 9, 9), (2, 15, 9), (3, 1, 1)]
)
def test_a_whole_number_of_inducing_inputs_limits_the_bins(mechanism, inputs, most, finest):
    """They are chosen from the declared domain and the number of records alone."""
    asked = {"y_bounds": (0, 1), "protect": "records", "mechanism": mechanism, "epsilon": 5.0}
    model = PrivateGPRegressor(**asked, x_bounds=[(0, 1)] * inputs, inducing=most)
    plan = model.plan(100_000)
    assert plan.strategy.count == finest
    free = model.set_params(inducing=None).plan(100_000)
    assert free.strategy.count > finest
    assert free.expected_error() < plan.expected_error()


def test_a_whole_number_of_inducing_inputs_limits_the_features():
    asked = {"y_bounds": (0, 1), "protect": "records", "x_bounds": [(0, 1)] * 4, "epsilon": 5.0}
    for most in (1, 7):
        plan = PrivateGPRegressor(**asked, inducing=most).plan(100_000)
        assert len(plan.strategy.matrix) == most


def test_few_bins_can_be_divided_updated_and_refined():
    rng = np.random.default_rng(0)
    X, y = rng.uniform(0, 1, (60, 1)), rng.uniform(0, 1, 60)
    asked = {
        "y_bounds": (0, 1),
        "protect": "records",
        "x_bounds": (0, 1),
        "hyperparameters": "fixed",
    }
    model = PrivateGPRegressor(**asked, inducing=4, random_state=0, delta=1e-5)
    assert len(model.stages(X).budgets) == 2
    model.fit(X, y).refine(X, y, 0.5, 1e-6).update(X + 0.001, y)
    assert len(model.measurements_) == 3
    assert all(len(each.values) <= model.inducing for each in model.measurements_)
