"""The error to expect: a mean over the models planned for, and the range over all of a prior."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

from privgp import PrivateGPRegressor
from privgp.gp.inference.posterior import posterior
from privgp.gp.kernels.evaluate import variance
from privgp.gp.measurement import Measurement
from privgp.plan import accuracy
from privgp.plan.bins.build import design_models as design_models_of_bins
from privgp.plan.designs.noise_aware import design_models, several_scales

X = np.random.default_rng(0).uniform(0, 10, (40, 1))
KERNEL = ConstantKernel(0.3**2) * Matern(3.0, nu=2.5)


def planned(**settings):
    records = settings.get("protect") == "records"
    domain = {"x_bounds": ((0, 10),)} if records else {}
    model = PrivateGPRegressor(y_bounds=(-1, 1), epsilon=2.0, **domain, **settings)
    return model.plan(400 if records else X)


def squares(plan, model) -> float:
    """The mean square at the targets, straight from the posterior."""
    measured = plan.kind.functionals(plan, plan.strategy, plan.noise, model)
    nothing = Measurement(np.zeros(len(measured.weights)), plan.measured_noise_std, None, 0.0)
    left = posterior(measured, nothing, [replace(model, weight=1.0)], 0.0)
    variances = left.mean_and_variance(plan.targets)[1]
    return float(plan.target_weights @ variances / plan.target_weights.sum())


def error_of_one_prediction(plan, models) -> float:
    """The root mean square of the best prediction linear in t, the same whichever model holds."""
    weights = np.array([model.weight for model in models])
    prior, cross, S = 0.0, 0.0, 0.0
    for weight, model in zip(weights / weights.sum(), models, strict=True):
        known = accuracy._Known.of(plan, model, plan.targets)
        covariance = known.factor @ known.factor.T
        prior = prior + weight * model.variances(plan.targets)
        cross, S = cross + weight * known.rows @ covariance, S + weight * covariance
    left = prior - np.einsum("ij,ij->i", cross, np.linalg.solve(S, cross.T).T)
    return plan.weighted(np.sqrt(left))


@pytest.mark.parametrize(("protect", "count"), [("outputs", 8), ("records", 3)])
def test_the_error_is_that_of_not_knowing_which_model_holds(protect, count):
    """More than the mean over models that would be known, less than that of one prediction for all."""
    plan = planned(protect=protect)
    models = several_scales(design_models(plan.priors))
    if protect == "records":
        models = design_models_of_bins(plan.priors[0])
    weights = np.array([model.weight for model in models])
    known = np.sqrt(weights @ [squares(plan, model) for model in models] / weights.sum())
    assert len(models) == count
    assert known < plan.expected_error() < error_of_one_prediction(plan, models)
    assert plan.weighted(plan.expected_std(plan.targets)) == pytest.approx(plan.expected_error())
    assert plan.expected_error() > 1.1 * plan.starting_error


@pytest.mark.parametrize("protect", ["outputs", "records"])
def test_given_hyperparameters_are_the_only_model(protect):
    fixed = {"kernel": KERNEL, "noise_variance": 0.01, "hyperparameters": "fixed"}
    plan = planned(protect=protect, **fixed)
    assert plan.expected_error() == pytest.approx(plan.starting_error)
    assert plan.error_range() == (plan.expected_error(), plan.expected_error())
    assert "under the given hyperparameters" in plan.describe()
    assert "plausible functions" not in plan.describe()


@pytest.mark.parametrize("protect", ["outputs", "records"])
def test_the_range_holds_the_expected_error_and_is_told(protect):
    plan = planned(protect=protect)
    low, high = plan.error_range()
    assert 0 < low < plan.starting_error < high < plan.half_width
    assert low < plan.expected_error() < high
    text = plan.describe()
    assert f"{low:.4g} to {high:.4g} for 90% of plausible functions" in text
    assert "not known before measuring" in text
    assert "averaged over smooth and rough functions" in plan.summary()
    assert "before measuring" not in plan.summary()


def test_a_plan_states_over_which_distances_the_function_changes_and_the_error_of_a_rough_one():
    plan = planned()
    (scale,) = np.atleast_1d(plan.start.kernel.k1.k2.length_scale)
    assert f"(lengthscales from a quarter to twice {scale:.3g} along the input)" in plan.summary()
    rough = accuracy.rough_error(plan.parts[0])
    assert rough is not None
    assert rough > plan.expected_error()
    assert f"It is about {rough:.4g} for a function that is rough everywhere" in plan.describe()
    given = planned(kernel=RBF(1.0))
    assert accuracy.rough_error(given.parts[0]) is None
    assert "rough everywhere" not in given.describe()


def test_no_draw_varies_more_than_the_bounds_allow():
    plan = planned()
    draws = list(accuracy.draws_of(plan))
    assert len({draw.input_map.share for draw in draws}) == len(plan.priors) == 3
    variances = [variance(draw.kernel) for draw in draws]
    assert max(variances) == pytest.approx(plan.half_width**2)  # some would have been larger
    assert max(draw.noise_variance for draw in draws) == pytest.approx(plan.half_width**2)
    wide = planned(kernel=ConstantKernel(9.0) * Matern(3.0, nu=2.5))
    assert max(variance(draw.kernel) for draw in accuracy.draws_of(wide)) == pytest.approx(9.0)


def test_few_of_many_targets_stand_for_all():
    model = PrivateGPRegressor(
        y_bounds=(-1, 1), targets=np.linspace(0, 10, 4000), kernel=KERNEL, noise_variance=0.01
    )
    plan = model.plan(X)
    targets, shares = accuracy.some_targets(plan, accuracy.MOST_TARGETS)
    assert len(targets) == len(shares) == 1334
    assert shares.sum() == pytest.approx(1.0)
    every = plan.weighted(plan.expected_std(plan.targets))
    assert plan.expected_error() == pytest.approx(every, rel=1e-3)


def test_targets_that_count_are_never_all_left_out():
    plan = planned()
    weights = np.zeros(len(plan.targets))
    weights[1] = 2.0
    _, shares = accuracy.some_targets(replace(plan.parts[0], target_weights=weights), 20)
    assert_allclose(shares.sum(), 1.0)


@pytest.mark.parametrize("protect", ["outputs", "records"])
def test_the_error_without_privacy_is_the_limit_of_large_budgets(protect):
    fixed = {"kernel": KERNEL, "noise_variance": 0.01, "hyperparameters": "fixed"}
    plan = planned(protect=protect, **fixed)
    open_error = plan.error_without_privacy()
    assert open_error < plan.expected_error()
    assert plan.expected_error(1e4) == pytest.approx(open_error, rel=0.12)


def test_the_error_without_privacy_through_nodes(monkeypatch):
    plan = planned()
    exact = plan.error_without_privacy()
    monkeypatch.setattr(accuracy, "EXACT_INPUTS", 10)
    assert plan.error_without_privacy() == pytest.approx(exact, rel=1e-4)
    streamed = planned(inducing=X[:38])
    assert streamed.error_without_privacy() == pytest.approx(exact, rel=0.1)


def test_a_plan_and_the_check_of_a_release_compute_no_average(monkeypatch):
    def asked(*_):
        raise AssertionError("an average that nobody asked for")

    for name in ("average_variances", "variances_by_draw", "expected_error"):
        monkeypatch.setattr(accuracy, name, asked)
    y = np.sin(X[:, 0])
    model = PrivateGPRegressor(y_bounds=(-1, 1), random_state=0).fit(X, y)
    assert np.isfinite(model.plan_.starting_error)
