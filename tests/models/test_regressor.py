"""PrivateGPRegressor as scikit-learn, a data holder and a careless user see it."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import (
    RBF,
    CompoundKernel,
    ConstantKernel,
    Matern,
    WhiteKernel,
)
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

from privgp import PrivateGPRegressor
from privgp.gp.inference.posterior import posterior
from privgp.plan.build import Budget, Question, make_part
from privgp.release.answers import AtTargets, Cloaked
from privgp.release.queries.quantities import check_coverage
from privgp.vault.measure import measure
from tests.budgets import SetNoise
from tests.models import WEIGHS_ROWS


@parametrize_with_checks(
    [PrivateGPRegressor(y_bounds=(-100, 100), hyperparameters="fixed")],
    expected_failed_checks=lambda _: WEIGHS_ROWS,
)
def test_every_check_of_scikit_learn_passes(estimator, check):
    check(estimator)


# What learning could break: what a fit leaves behind, and that it is the same once more.
OF_A_FIT = {
    "check_dict_unchanged", "check_estimators_overwrite_params",
    "check_estimators_pickle", "check_fit_idempotent", "check_methods_subset_invariance",
}  # fmt: skip
CHECKS = {
    check.func.__name__: (estimator, check)
    for estimator, check in estimator_checks_generator(PrivateGPRegressor(y_bounds=(-100, 100)))
}


@pytest.mark.parametrize("name", sorted(OF_A_FIT))
def test_checks_of_a_fit_pass_with_learned_hyperparameters(name):
    estimator, check = CHECKS[name]
    check(estimator)


def some_data(rows: int = 40, columns: int = 1, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 10, size=(rows, columns))
    return X, np.sin(X[:, 0]) + 0.1 * rng.standard_normal(rows)


def regressor(**settings) -> PrivateGPRegressor:
    return PrivateGPRegressor(
        **{"y_bounds": (-2, 2), "epsilon": 2.0, "random_state": 0, **settings}
    )


@pytest.fixture(scope="module")
def plain() -> PrivateGPRegressor:
    """A release of some data with learned hyperparameters; nobody changes it."""
    return regressor().fit(*some_data())


def test_predictions_are_deterministic_and_noise_is_drawn_once():
    X, y = some_data()
    settings = {"random_state": None, "hyperparameters": "fixed"}
    model = regressor(**settings).fit(X, y)
    first, second = model.predict(X, return_std=True), model.predict(X, return_std=True)
    assert_array_equal(first[0], second[0])
    assert_array_equal(first[1], second[1])
    again = regressor(**settings).fit(X, y)
    assert not np.array_equal(again.predict(X), first[0])


def test_a_seed_makes_a_reproducible_simulation_that_says_so(plain):
    X, y = some_data()
    one = regressor().fit(X, y)
    assert_array_equal(one.predict(X), plain.predict(X))
    assert one.guarantee_.is_simulation
    assert "simulation, not for release" in one.guarantee_.sampler
    real = regressor(random_state=None, hyperparameters="fixed").fit(X, y)
    assert not real.guarantee_.is_simulation


def test_the_plan_sees_no_outputs_and_spends_nothing(plain):
    X, _ = some_data()
    plan = regressor().plan(X)
    fitted = plain.plan_
    assert_array_equal(plan.strategy.matrix, fitted.strategy.matrix)
    assert plan.noise == fitted.noise
    assert "a plan needs no output" in plan.describe()
    low, high = plan.expected_std(X, prior_range=0.9)
    assert np.all(low <= high)
    assert plan.expected_error(0.5) > plan.expected_error() > plan.expected_error(10.0)
    assert np.all(plan.noise_std < plan.expected_std(plan.targets))


def test_the_least_epsilon_for_an_error_is_the_one_to_plan_with():
    X, _ = some_data(60)
    model = regressor(epsilon=7.0, hyperparameters="fixed", delta=1e-3)
    found = model.epsilon_for(X, 0.3, groups=np.arange(60) // 2)
    assert model.epsilon == 7.0

    def expected(epsilon):
        same = clone(model).set_params(epsilon=epsilon)
        return same.plan(X, groups=np.arange(60) // 2).expected_error()

    assert expected(found / 1.02) > 0.3 >= expected(found)
    with pytest.raises(ValueError, match=r"no epsilon reaches .* without privacy it would be"):
        model.epsilon_for(X, 1e-3)


def test_the_least_epsilon_of_records_and_of_inducing_inputs():
    records = regressor(protect="records", x_bounds=((0, 10),), hyperparameters="fixed")
    found = records.epsilon_for(500, 0.3)
    assert clone(records).set_params(epsilon=found).plan(500).expected_error() <= 0.3
    inducing = regressor(inducing=10, hyperparameters="fixed")
    X, _ = some_data()
    found = inducing.epsilon_for(X, 0.5)
    assert clone(inducing).set_params(epsilon=found).plan(X).expected_error() <= 0.5


@pytest.mark.parametrize("error", [0, -1.0, np.nan, np.inf, "small", None, True])
def test_what_is_no_error_is_refused(error):
    with pytest.raises(ValueError, match="error must be a positive number"):
        regressor().epsilon_for(some_data()[0], error)


def test_covariance_agrees_with_std_and_observation_adds_the_noise(plain):
    model = plain
    new = np.linspace(-2, 12, 17)[:, None]
    mean, std = model.predict(new, return_std=True)
    _, covariance = model.predict(new, return_cov=True)
    assert_allclose(np.sqrt(np.diag(covariance)), std, rtol=1e-6)
    assert np.linalg.eigvalsh(covariance).min() > -1e-8
    _, wide = model.predict(new, return_std=True, observation=True)
    assert_allclose(wide**2 - std**2, model.noise_variance_, rtol=1e-8)
    _, wide_cov = model.predict(new, return_cov=True, observation=True)
    assert_allclose(np.diag(wide_cov), wide**2, rtol=1e-6)
    with pytest.raises(ValueError, match="not both"):
        model.predict(new, return_std=True, return_cov=True)
    assert mean.shape == (17,)


@pytest.mark.parametrize("targets", [None, 7])
@pytest.mark.parametrize(
    ("objective", "reconstruct"),
    [("posterior", "posterior"), ("trace", "posterior"), ("trace", "unbiased"),
     ("max", "unbiased"), ("logdet", "unbiased")],
)  # fmt: skip
@pytest.mark.parametrize("kernel", [4.0 * RBF(1.5), 4.0 * Matern(2.0, nu=2.5)])
def test_without_noise_it_is_scikit_learns_regressor(kernel, objective, reconstruct, targets):
    X, y = some_data(60)
    wanted = None if targets is None else np.linspace(0, 10, targets)[:, None]
    question = Question(
        (-2.0, 2.0),
        kernel,
        0.1,
        wanted,
        objective,
        reconstruct,
        learned=False,
        mechanism="gaussian",
    )
    plan = make_part(X, question, SetNoise(1.0, 1e-6, 1e-12))
    measured = measure(y, plan.y_bounds, plan.strategy, plan.noise, np.random.default_rng(0))
    if reconstruct == "unbiased":
        values = AtTargets.of(plan, measured, 0.0)
        release = Cloaked(values, plan.functionals, measured, plan.start, 0.0)
    else:
        release = posterior(plan.functionals, measured, [plan.start], 0.0)
    mean, variance = release.mean_and_variance(plan.targets)
    reference = GaussianProcessRegressor(kernel, alpha=0.1, optimizer=None).fit(X, y)
    expected, std = reference.predict(plan.targets, return_std=True)
    assert_allclose(mean, expected, atol=1e-6)
    assert_allclose(np.sqrt(variance), std, atol=1e-6)


@pytest.mark.parametrize(
    "coverage", [0.0, 1.0, -0.1, 90, float("nan"), True, None, "0.9", 1.0 - 2.0**-53]
)
def test_a_coverage_that_is_no_probability_is_refused(coverage):
    with pytest.raises(ValueError, match="coverage must lie between 0 and 1"):
        check_coverage(coverage)


def test_the_ends_of_an_interval_leave_equal_tails():
    assert check_coverage(0.5) == (0.25, 0.75)
    assert check_coverage(np.float32(0.5)) == (0.25, 0.75)
    low, high = check_coverage(1.0 - 2.0**-51)
    assert 0.0 < low < high < 1.0


def test_unbiased_predicts_at_its_targets_and_conditions_elsewhere():
    X, y = some_data()
    targets = np.linspace(1, 9, 5)[:, None]
    model = regressor(reconstruct="unbiased", targets=targets).fit(X, y)
    assert model.plan_.objective == "trace"
    mean, std = model.predict(targets[::-1], return_std=True)
    assert mean.shape == (5,)
    assert np.all(std >= model.plan_.noise_std[::-1])
    assert_allclose(model.predict(targets + 1e-7), mean[::-1], rtol=1e-3, atol=1e-4)


def test_further_points_of_an_unbiased_release_have_the_variance_that_conditioning_leaves():
    """Against brute force: outputs drawn from the model, released and continued many times."""
    X, kernel, noise = np.linspace(0, 4, 12)[:, None], 0.3 * RBF(1.0), 0.05
    targets, elsewhere = np.array([[0.5], [1.5], [3.0]]), np.array([[1.0], [2.2], [3.7]])
    model = PrivateGPRegressor(
        kernel, noise, y_bounds=(-4, 4), epsilon=30.0, delta=1e-3, reconstruct="unbiased",
        targets=targets, random_state=0,
    )  # fmt: skip
    plan, rng = model.plan(X), np.random.default_rng(0)
    both = np.vstack([X, targets, elsewhere])
    root = np.linalg.cholesky(kernel(both) + 1e-10 * np.eye(len(both)))
    apart, covariance = [], None
    for seed in range(300):
        f = root @ rng.standard_normal(len(both))
        y = np.clip(f[:12] + np.sqrt(noise) * rng.standard_normal(12), -4, 4)
        model.set_params(random_state=seed).fit(X, y, plan=plan)
        mean, covariance = model.predict(both[12:], return_cov=True)
        apart.append(f[12:] - mean)
    _, std = model.predict(both[12:], return_std=True)
    assert_allclose(np.diag(covariance), std**2)
    assert np.std(apart, axis=0) / std == pytest.approx(1.0, abs=0.2)
    assert np.cov(np.transpose(apart)) == pytest.approx(covariance, abs=0.25 * covariance.max())


def test_further_points_are_consistent_whatever_was_asked_before():
    X, y = some_data()
    targets = np.linspace(1, 9, 5)[:, None]
    model = regressor(reconstruct="unbiased", targets=targets).fit(X, y)
    at_once = model.predict(np.vstack([X[:4], targets]))
    assert np.array_equal(at_once[4:], model.predict(targets))
    for place in range(4):
        assert model.predict(X[place : place + 1])[0] == pytest.approx(at_once[place], rel=1e-9)
    low, high = model.interval(X[:4])
    assert np.all((low < at_once[:4]) & (at_once[:4] < high))


def test_unbiased_is_unbiased():
    X, y = some_data(50)
    kernel, noise = 1.0 * RBF(2.0), 0.1
    question = Question((-2.0, 2.0), kernel, noise, X[:6], "trace", "unbiased", learned=False)
    plan = make_part(X, question, Budget(1.0, 1e-3))
    rng = np.random.default_rng(0)
    draws = np.array(
        [
            AtTargets.of(plan, measure(y, plan.y_bounds, plan.strategy, plan.noise, rng), 0.0).mean
            for _ in range(4000)
        ]
    )
    reference = GaussianProcessRegressor(kernel, alpha=noise, optimizer=None).fit(X, y)
    assert_allclose(draws.std(axis=0), plan.noise_std, rtol=0.07)
    error = np.abs(draws.mean(axis=0) - reference.predict(X[:6]))
    assert np.all(error < 6 * plan.noise_std / np.sqrt(4000))


def test_one_row_and_equal_rows_work():
    assert np.isfinite(regressor().fit([[1.0]], [0.5]).predict([[1.0], [50.0]])).all()
    X = np.ones((20, 2))
    mean, std = regressor().fit(X, np.full(20, 0.5)).predict(X, return_std=True)
    assert np.all(np.isfinite(mean))
    assert np.all(std > 0)


def test_duplicate_rows_are_one_input_with_more_outputs():
    X, _ = some_data(20)
    plan = regressor().plan(np.vstack([X, X, X]))
    assert len(plan.inputs) == 20
    assert plan.strategy.matrix.shape[1] == 20


def test_more_data_and_more_budget_mean_less_error():
    X, _ = some_data(100)
    small, large = regressor().plan(X[:30]), regressor().plan(X)
    assert large.expected_error() < small.expected_error()
    assert regressor(epsilon=0.1).plan(X).expected_error() > large.expected_error()


def test_a_person_with_many_rows_costs_more_noise():
    X, y = some_data(40)
    people = np.repeat(np.arange(8), 5)
    alone, together = regressor().plan(X), regressor().plan(X, groups=people)
    assert together.strategy.sensitivity() <= 2 * (1 + 1e-12)
    assert together.expected_error() > alone.expected_error()
    named = [f"person {i}" for i in people]
    model = regressor(hyperparameters="fixed").fit(X, y, groups=named)
    assert "person" in model.guarantee_.unit
    single = regressor().plan(X, groups=np.arange(40))
    assert_allclose(single.expected_error(), alone.expected_error(), rtol=1e-3)


def test_kernels_of_the_user_are_honoured():
    X, y = some_data()
    kernel = ConstantKernel(0.5, "fixed") * RBF(1.3, "fixed") + WhiteKernel(0.2, "fixed")
    model = regressor(kernel=kernel).fit(X, y)
    assert model.kernel_ == ConstantKernel(0.5, "fixed") * RBF(1.3, "fixed")
    assert_allclose(model.noise_variance_, 0.2)
    free = regressor(kernel=0.5 * RBF(1.3)).fit(X, y)
    assert free.kernel_.theta.shape == (2,)
    fixed = regressor(kernel=0.5 * RBF(1.3), hyperparameters="fixed", noise_variance=0.1).fit(X, y)
    assert fixed.kernel_ == 0.5 * RBF(1.3)


def test_frames_pipelines_and_clones():
    X, y = some_data(30, 2)
    pandas = pd.DataFrame(X, columns=["age", "bmi"])
    fixed = regressor(hyperparameters="fixed")
    model = clone(fixed).fit(pandas, pd.Series(y))
    assert list(model.feature_names_in_) == ["age", "bmi"]
    expected = model.predict(pandas)
    polars = pl.DataFrame(X, schema=["age", "bmi"])
    assert_allclose(clone(fixed).fit(polars, pl.Series(y)).predict(polars), expected)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(pandas[["bmi", "age"]])
    assert clone(model).get_params()["y_bounds"] == (-2, 2)
    piped = make_pipeline(StandardScaler(), clone(fixed)).fit(X, y)
    assert piped.predict(X).shape == (30,)
    assert len(cross_val_score(fixed, X, y, cv=3)) == 3


def test_pickles_predict_the_same(plain):
    X, _ = some_data()
    assert_array_equal(pickle.loads(pickle.dumps(plain)).predict(X), plain.predict(X))


BAD_SETTINGS = [
    ({"y_bounds": None}, "declared"),
    ({"y_bounds": (2, -2)}, "low < high"),
    ({"y_bounds": (1, 1)}, "low < high"),
    ({"y_bounds": (np.nan, 1)}, "finite"),
    ({"y_bounds": (0, np.inf)}, "finite"),
    ({"y_bounds": "ab"}, "two numbers"),
    ({"y_bounds": (1, 2, 3)}, "two numbers"),
    ({"y_bounds": 5}, "two numbers"),
    ({"y_bounds": (1e16, 1e16 + 2)}, "width"),
    ({"y_bounds": (-1e200, 1e200)}, "width"),
    ({"epsilon": 0}, "epsilon"),
    ({"epsilon": -1}, "epsilon"),
    ({"epsilon": np.nan}, "epsilon"),
    ({"epsilon": np.inf}, "epsilon"),
    ({"epsilon": 2e4}, "epsilon"),
    ({"epsilon": "1"}, "epsilon"),
    ({"epsilon": True}, "epsilon"),
    ({"delta": 0, "mechanism": "gaussian"}, "delta must be positive"),
    ({"delta": 0, "objective": "trace"}, "delta must be positive"),
    ({"delta": 0, "reconstruct": "unbiased"}, "delta must be positive"),
    ({"delta": 0, "inducing": 5, "mechanism": "gaussian"}, "delta must be positive"),
    ({"delta": -1e-9}, "delta"),
    ({"delta": False}, "delta"),
    ({"delta": 1}, "delta"),
    ({"delta": np.nan}, "delta"),
    ({"delta": None}, "delta"),
    ({"protect": "everything"}, "protect"),
    ({"objective": "best"}, "objective"),
    ({"reconstruct": 3}, "reconstruct"),
    ({"hyperparameters": "guessed"}, "hyperparameters"),
    ({"kernel": "rbf"}, "must be a kernel"),
    ({"kernel": CompoundKernel([RBF()])}, "must be a kernel"),
    ({"kernel": WhiteKernel()}, "nothing but noise"),
    ({"kernel": RBF(1.0) * WhiteKernel()}, "top-level sum"),
    ({"kernel": RBF() + WhiteKernel() + WhiteKernel()}, "two WhiteKernels"),
    ({"kernel": RBF([1.0, 2.0, 3.0])}, "3 lengthscales"),
    ({"kernel": RBF(-1.0)}, "positive"),
    ({"kernel": RBF(np.nan)}, "positive"),
    ({"kernel": RBF() + WhiteKernel(), "noise_variance": 1.0}, "once"),
    ({"noise_variance": 0.0}, "noise_variance"),
    ({"noise_variance": -1.0}, "noise_variance"),
    ({"noise_variance": "small"}, "noise_variance"),
    ({"targets": [[1.0, 2.0]]}, "1 columns"),
    ({"targets": np.empty((0, 1))}, "1 columns"),
    ({"targets": [[np.nan]]}, "NaN"),
    ({"targets": ["here"]}, "numbers"),
]


@pytest.mark.parametrize(("settings", "words"), BAD_SETTINGS)
def test_bad_settings_are_refused_before_anything_is_spent(settings, words, monkeypatch):
    def spend(*_args, **_kwargs):
        raise AssertionError("noise was drawn")

    monkeypatch.setattr("privgp.models.published.measure", spend)
    X, y = some_data(10)
    model = regressor(**settings)
    for call in (lambda: model.fit(X, y), lambda: model.plan(X)):
        with pytest.raises(ValueError, match=words) as caught:
            call()
        assert "\n" not in str(caught.value)


BAD_OUTPUTS = [
    [np.nan] * 10,
    [np.inf] * 10,
    ["secret-a"] * 10,
    [0.5] * 9,
    np.zeros((10, 2)),
    None,
    [None] * 10,
    [{}] * 10,
    np.full(10, 1 + 2j),
    np.full(10, "2020-01-01", dtype="datetime64[D]"),
    [],
]


@pytest.mark.parametrize("y", BAD_OUTPUTS, ids=range(len(BAD_OUTPUTS)))
def test_bad_outputs_are_refused_without_being_quoted(y, monkeypatch):
    def spend(*_args, **_kwargs):
        raise AssertionError("noise was drawn")

    monkeypatch.setattr("privgp.models.published.measure", spend)
    X, _ = some_data(10)
    with pytest.raises(ValueError, match="y") as caught:
        regressor().fit(X, y)
    message = str(caught.value)
    assert "secret" not in message
    assert "0.5" not in message
    assert "2020" not in message
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


@pytest.mark.parametrize(
    ("X", "words"),
    [
        ([[np.nan]] * 10, "NaN"),
        ([[np.inf]] * 10, "infinity"),
        (np.empty((0, 1)), "0 sample"),
        (np.empty((10, 0)), "0 feature"),
        (np.zeros(10), "one column per input"),
        ([["a"]] * 5 + [[1.0]] * 5, "convert"),
    ],
)
def test_bad_inputs_are_refused(X, words):
    with pytest.raises(ValueError, match=words):
        regressor().fit(X, np.zeros(10))


@pytest.mark.parametrize("groups", [[1] * 9, [[1]] * 10, [np.nan] * 10, [None] * 10])
def test_bad_groups_are_refused(groups):
    X, y = some_data(10)
    with pytest.raises(ValueError, match="groups"):
        regressor().fit(X, y, groups=groups)


def test_one_person_is_one_person_however_written():
    X, _ = some_data(6)
    mixed = np.array([1, 1.0, True, "a", "b", "b"], dtype=object)
    assert_array_equal(regressor().plan(X, groups=mixed).strategy.people, [0, 0, 0, 1, 2, 2])
    with pytest.raises(ValueError, match="groups"):
        regressor().plan(X, groups=np.array(["NaT"] * 6, dtype="datetime64[D]"))
    with pytest.raises(ValueError, match="groups"):
        regressor().plan(X, groups=np.array([[1], [2], [3], [4], [5], [6, 7]], dtype=object))


def test_saving_says_that_the_file_contains_inputs(tmp_path):
    X, y = some_data(10)
    with pytest.warns(UserWarning, match="contains the inputs"):
        regressor(hyperparameters="fixed").fit(X, y).save(tmp_path / "model.privgp")


@pytest.mark.parametrize("scale", [1e-30, 1e-6, 1e6, 1e30])
def test_units_do_not_matter(scale, plain):
    X, y = some_data()
    scaled = regressor(y_bounds=(-2 * scale, 2 * scale)).fit(X * scale, y * scale)
    assert_allclose(scaled.predict(X * scale) / scale, plain.predict(X), rtol=1e-3, atol=2e-3)


def test_outputs_outside_the_bounds_are_clipped_without_a_word(recwarn):
    X, y = some_data()
    wild = y.copy()
    wild[3] = 1e9
    capped = y.copy()
    capped[3] = 2.0
    one, two = (regressor(hyperparameters="fixed").fit(X, outputs) for outputs in (wild, capped))
    assert_array_equal(one.predict(X), two.predict(X))
    assert len(recwarn) == 0
