"""One law, one guarantee: what is pure says delta = 0, wherever it is told, and composes."""

import dataclasses
import json

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF
from sklearn.linear_model import Ridge

from privgp import (
    BinnedGP,
    BinnedMeans,
    Guarantee,
    PosteriorPaths,
    PrivateBayesSearchCV,
    PrivateFunction,
    PrivateGPRegressor,
    PrivateGridSearchCV,
    compose,
    load,
)
from privgp.privacy.budget import check_budget
from privgp.privacy.guarantee import total_epsilon
from privgp.privacy.noise import LAPLACE_SAMPLER
from privgp.release.certificate import certificate, page, validate

X = np.linspace(0.0, 9.0, 40)[:, None]
Y = 0.5 + 0.4 * np.sin(X[:, 0])
BOUNDS = {"y_bounds": (0.0, 1.0)}
RECORDS = {"protect": "records", "x_bounds": (0.0, 9.0)}
VALIDATION = {"X_val": X[::2], "y_val": Y[::2]}


def regressor(**options):
    return PrivateGPRegressor(
        **BOUNDS, **{"epsilon": 0.7, "hyperparameters": "fixed", "noise_variance": 0.01} | options
    )


def chosen(estimator, grid, delta, given=None, **options):
    search = PrivateGridSearchCV(
        estimator, grid, epsilon=0.7, delta=delta, method="permute-and-flip", **options
    )
    return search.fit(X, Y, **(given or {}))


PURE = {
    "outputs": lambda delta: regressor(mechanism="laplace", delta=delta).fit(X, Y),
    "outputs, energy": lambda delta: regressor(
        mechanism="laplace", delta=delta, hyperparameters="learned"
    ).fit(X, Y),
    "people": lambda delta: regressor(mechanism="laplace", delta=delta).fit(
        X, Y, groups=np.arange(40) // 4
    ),
    "records": lambda delta: regressor(mechanism="laplace", delta=delta, **RECORDS).fit(X, Y),
    "means": lambda delta: BinnedMeans(5, **BOUNDS, epsilon=0.7, delta=delta).fit(X, Y),
    "process": lambda delta: BinnedGP(bins=5, **BOUNDS, epsilon=0.7, delta=delta).fit(X, Y),
    "measured search": lambda delta: PrivateGridSearchCV(
        regressor(mechanism="laplace", kernel=RBF(2.0)),
        {"kernel__length_scale": [1.0, 3.0]},
        epsilon=0.7,
        delta=delta,
    ).fit(X, Y),
    "choice": lambda delta: chosen(
        Ridge(), {"alpha": [1.0, 9.0]}, delta, VALIDATION,
        scoring="squared_error", loss_bounds=(0, 1),
    ),
    "choice and release": lambda delta: chosen(
        regressor(mechanism="laplace", kernel=RBF(2.0)), {"kernel__length_scale": [1.0, 3.0]}, delta
    ),
}  # fmt: skip


@pytest.mark.parametrize("delta", [0, 1e-5])
@pytest.mark.parametrize("name", PURE)
def test_a_pure_release_promises_delta_zero_whatever_was_offered(name, delta):
    promise = PURE[name](delta).guarantee_
    assert (promise.epsilon, promise.delta) == (0.7, 0.0)
    assert promise.is_pure
    assert promise.noise_multipliers == ()
    assert promise.delta_slack == 0.0
    if name == "choice and release":
        assert promise.pure_epsilons[0] == pytest.approx(0.21)
        assert 0.7 * (1 - 1e-12) < total_epsilon(promise.pure_epsilons) <= 0.7
    else:
        assert promise.pure_epsilons == (0.7,)
    assert promise.epsilon_at(0) <= 0.7
    assert promise.delta_at(promise.epsilon_at(0)) == 0.0
    assert promise.delta_at(0.69) > 0.0
    assert "(0.7, 0)-differential privacy (pure)" in promise.describe()
    twice = compose([promise, promise], 0)
    assert (twice.epsilon, twice.delta) == (2 * promise.epsilon_at(0), 0.0)
    assert compose([promise, promise], 1e-3).epsilon < twice.epsilon
    assert Guarantee.from_json(promise.to_json()) == promise


def test_laplace_noise_alone_is_drawn_for_a_pure_release():
    for name in ("outputs", "outputs, energy", "people", "records", "means", "process"):
        promise = PURE[name](0).guarantee_
        assert promise.sampler == LAPLACE_SAMPLER, name
        assert "Gaussian" not in promise.mechanism


def test_a_sum_of_pure_steps_is_rounded_up():
    assert total_epsilon((0.1, 0.2)) == 0.1 + 0.2
    assert total_epsilon((1.0, 2.0**-60)) > 1.0
    assert total_epsilon(()) == 0.0


@pytest.mark.parametrize("settings", [{}, RECORDS, {"hyperparameters": "learned"}])
def test_without_delta_only_laplace_noise_is_considered(settings):
    model = regressor(mechanism="auto", delta=0, **settings)
    plan = model.plan(X)
    assert plan.is_pure
    assert plan.rival is None
    assert plan.gap == np.inf
    assert "epsilon = 0.7, delta = 0 (Laplace noise needs none)" in plan.describe()
    assert model.fit(X, Y).guarantee_.delta == 0.0
    assert plan.plot() is not None
    one = regressor(mechanism="laplace", delta=1e-5, **settings).plan(X)
    assert one.expected_error() == pytest.approx(plan.expected_error())
    assert one.promised_delta == 0.0
    assert one.delta == 1e-5


SPENDING = ("published.measure", "binned.measure")


@pytest.mark.parametrize(
    "make",
    [
        lambda: regressor(mechanism="gaussian", delta=0),
        lambda: regressor(mechanism="gaussian", delta=0, **RECORDS),
        lambda: regressor(objective="max", delta=0),
        lambda: regressor(mechanism="gaussian", inducing=4, delta=0.0),
        lambda: BinnedMeans(5, **BOUNDS, delta=0, noise="gaussian"),
        lambda: BinnedGP(bins=5, **BOUNDS, delta=0, noise="gaussian", **RECORDS),
        lambda: PrivateFunction(RBF(1.0), 0.1, **BOUNDS, epsilon=1.0, delta=0),
        lambda: PosteriorPaths(RBF(1.0), 9.0, domain=(0, 9), **BOUNDS, delta=0),
        lambda: PrivateGridSearchCV(
            regressor(mechanism="gaussian", kernel=RBF(2.0)), {"kernel__length_scale": [1.0, 3.0]},
            epsilon=1.0, delta=0,
        ),
        lambda: PrivateGridSearchCV(
            regressor(mechanism="gaussian", kernel=RBF(2.0)), {"kernel__length_scale": [1.0, 3.0]},
            epsilon=1.0, delta=0, method="permute-and-flip",
        ),
    ],
)  # fmt: skip
def test_gaussian_noise_without_delta_is_refused_before_anything_is_spent(make, monkeypatch):
    def spend(*_args, **_kwargs):
        raise AssertionError("noise was drawn")

    for place in SPENDING:
        monkeypatch.setattr(f"privgp.models.{place}", spend)
    model = make()
    with pytest.raises(ValueError, match=r"^delta must be positive here, got 0: Laplace"):
        model.fit(X, Y)
    assert not hasattr(model, "guarantee_")


def test_scores_one_after_the_other_need_delta():
    search = PrivateBayesSearchCV(
        Ridge(), {"alpha": (0.1, 9.0)}, epsilon=1.0, delta=0, n_iter=2,
        scoring="squared_error", loss_bounds=(0, 1),
    )  # fmt: skip
    with pytest.raises(ValueError, match="delta must be positive here"):
        search.fit(X, Y, **VALIDATION)


def test_only_pure_promises_add_up_without_delta():
    pure = PURE["means"](0).guarantee_
    gaussian = BinnedMeans(5, **BOUNDS, epsilon=0.7, delta=1e-5, noise="gaussian").fit(X, Y)
    assert gaussian.guarantee_.epsilon_at(0) == np.inf
    with pytest.raises(ValueError, match="a step that is not pure"):
        compose([pure, gaussian.guarantee_], 0)
    with pytest.raises(ValueError, match="delta must be at least 0 and below 1"):
        compose([pure], -0.1)
    with pytest.raises(ValueError, match="delta must be at least 0 and below 1"):
        pure.epsilon_at(1.0)
    assert compose([pure, gaussian.guarantee_], 1e-5).epsilon < 1.41
    unknown = dataclasses.replace(pure, pure_epsilons=())
    assert unknown.epsilon_at(0) == 0.7
    assert dataclasses.replace(unknown, delta=0.1).epsilon_at(0) == np.inf


def test_budgets_are_checked_with_and_without_delta():
    check_budget(1.0, 0, pure=True)
    for delta in (0, 0.0, -0.0):
        with pytest.raises(ValueError, match="delta must be positive here"):
            check_budget(1.0, delta)
    for delta in (-1e-300, 1.0, np.nan, np.inf, False, None, "0"):
        with pytest.raises(ValueError, match="delta must"):
            check_budget(1.0, delta, pure=True)
    with pytest.raises(ValueError, match="epsilon must"):
        check_budget(0, 0, pure=True)


@pytest.mark.parametrize("name", ["outputs", "records", "choice and release"])
def test_headline_registry_and_curve_of_a_certificate_agree(name):
    model = PURE[name](1e-5)
    model = getattr(model, "best_estimator_", model)
    told = certificate(model)
    validate(told)
    assert told["delta"] == 0.0
    loss = told["registry"]["deployment"]["privacy_loss"]["privacy_parameters"]
    assert loss == {"epsilon": 0.7, "delta": 0.0} == told["nist_sp_800_226"]["parameters"]
    assert told["registry"]["deployment"]["dp_variant"]["variant_name"] == "Pure DP"
    for epsilon, delta in told["curve"]:
        assert (delta == 0.0) == (epsilon >= 0.7), epsilon
    assert "included in epsilon" in told["mechanism"]["floating_point"]
    assert "delta" not in told["mechanism"]["floating_point"]
    assert "epsilon = 0.7 and delta = 0 (pure)" in page(told)


def test_a_file_brings_back_the_promise_and_what_was_offered(tmp_path):
    for offered in (0.0, 1e-5):
        model = PURE["outputs"](offered)
        with pytest.warns(UserWarning, match="contains the inputs"):
            model.save(tmp_path / f"{offered}.privgp")
        again = load(tmp_path / f"{offered}.privgp")
        assert again.guarantee_ == model.guarantee_
        assert again.delta == offered
        assert certificate(again)["delta"] == 0.0


def test_old_files_of_pure_releases_that_say_the_delta_offered_are_still_read(tmp_path):
    model = PURE["outputs"](1e-5)
    written = dataclasses.replace(model.guarantee_, delta=1e-5)  # as it was then
    model._released = dataclasses.replace(model._released, guarantee=written)
    with pytest.warns(UserWarning, match="contains the inputs"):
        model.save(tmp_path / "old.privgp")
    again = load(tmp_path / "old.privgp")
    assert again.guarantee_.delta == 1e-5
    assert again.guarantee_.epsilon_at(0) == 0.7
    assert compose([again.guarantee_, again.guarantee_], 0).epsilon == 1.4
    assert json.loads(again.guarantee_.to_json())["delta"] == 1e-5
