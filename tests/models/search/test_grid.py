"""PrivateGridSearchCV as scikit-learn and a careless user see it: what it chooses and refuses."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, KFold, PredefinedSplit, ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from privgp import PrivateGPRegressor, PrivateGridSearchCV
from privgp.models.search.candidates import centre_of, models_of
from tests.models import FITS_AN_INPUT
from tests.models.search.searches import GRID, METHODS, PAID, search, some_data


@parametrize_with_checks(
    [
        PrivateGridSearchCV(
            PrivateGPRegressor(y_bounds=(-100, 100), mechanism="gaussian"),
            {"noise_variance": [1.0, 10.0]},
            epsilon=1.0,
            delta=1e-3,
        )
    ],
    expected_failed_checks=lambda _: FITS_AN_INPUT,
)
def test_every_check_of_scikit_learn_passes(estimator, check):
    check(estimator)


def test_the_plan_depends_on_the_grid_and_not_on_the_ranking():
    """Whatever the outputs, the same is measured."""
    X, _ = some_data()
    rng = np.random.default_rng(0)
    plans, chosen = [], set()
    for y in (rng.uniform(-2, 2, 40), np.zeros(40), np.sin(X[:, 0])):
        found = search(epsilon=1000.0).fit(X, y)
        plans.append(found.best_estimator_.plan_.strategy.matrix)
        chosen.add(found.best_index_)
    assert len(chosen) > 1
    for plan in plans:
        assert_array_equal(plan, plans[0])


def test_the_centre_is_the_geometric_middle_of_equal_forms_and_else_the_middle_one():
    X, _ = some_data()
    signal = ConstantKernel(4.0) * Matern([1.0, 2.0], nu=2.5)
    model = PrivateGPRegressor(signal, y_bounds=(0, 1))
    wide = np.hstack([X, X])
    grid = [{"kernel__k2__length_scale": s, "noise_variance": v} for s, v in
            [([1.0, 4.0], 0.1), ([9.0, 16.0], 10.0)]]  # fmt: skip
    centre = centre_of(models_of(model, grid, wide))
    np.testing.assert_allclose(centre.kernel.k2.length_scale, [3.0, 8.0])
    assert centre.noise_variance == pytest.approx(1.0)
    assert centre.kernel.k1.constant_value == pytest.approx(4.0)
    assert signal.k2.length_scale == [1.0, 2.0], "nothing given is changed"
    mixed = [{"kernel": k} for k in (RBF(1.0), Matern(5.0), Matern(2.0, nu=0.5))]
    assert centre_of(models_of(model, mixed, X)).kernel == Matern(5.0)


def test_noise_may_stand_in_the_kernel():
    X, y = some_data()
    grid = {"kernel": [RBF(s) + WhiteKernel(v) for s in (0.3, 1.0) for v in (0.01, 1.0)]}
    found = search(grid=grid, epsilon=500.0).fit(X, y)
    assert found.best_params_["kernel"] == RBF(1.0) + WhiteKernel(0.01)
    assert found.best_estimator_.noise_variance_ == pytest.approx(0.01)


def test_with_little_noise_the_evidence_finds_the_truth():
    """Drawn from the prior of one candidate; an evidence ratio this large is no accident."""
    rng = np.random.default_rng(3)
    X = np.sort(rng.uniform(0, 10, 60))[:, None]
    y = np.linalg.cholesky(RBF(1.0)(X) + 1e-9 * np.eye(60)) @ rng.standard_normal(60)
    y += 0.1 * rng.standard_normal(60)
    found = search(epsilon=1e4).fit(X, 0.5 * y)
    evidence = found.cv_results_["log_evidence"]
    assert found.best_params_["kernel__length_scale"] == 1.0
    assert found.cv_results_["rank_test_score"][found.best_index_] == 1
    assert evidence[found.best_index_] == evidence.max()


@pytest.mark.parametrize(
    ("method", "cv"),
    list(zip(PAID, [KFold(5), ShuffleSplit(8, test_size=0.25, random_state=0)], strict=True)),
)
def test_without_noise_it_chooses_what_scikit_learn_chooses(method, cv):
    """Folds of one size, so that the mean of their mean squared errors is the pooled one."""
    for seed in range(2):
        X, y = some_data(40, seed)
        y = y + 0.5 * np.random.default_rng(seed).standard_normal(40)
        y = np.clip(y, -2, 2)
        found = search(method, epsilon=1e4, cv=cv, selection_share=0.5).fit(X, y)
        theirs = GridSearchCV(
            GaussianProcessRegressor(RBF(1.0, "fixed"), optimizer=None),
            {"kernel__length_scale": GRID["kernel__length_scale"], "alpha": GRID["noise_variance"]},
            cv=cv,
            scoring="neg_mean_squared_error",
        ).fit(X, y)
        best = theirs.best_params_
        assert found.best_params_ == {
            "kernel__length_scale": best["kernel__length_scale"],
            "noise_variance": best["alpha"],
        }


@pytest.mark.parametrize("method", PAID)
def test_any_estimator_is_chosen_by_private_validation_records(method):
    rng = np.random.default_rng(0)
    X, X_val = rng.normal(size=(200, 3)), rng.normal(size=(150, 3))
    y, y_val = (x[:, 0] + 0.5 * x[:, 1] ** 2 > 0.3 for x in (X, X_val))
    grid = {"max_depth": [1, 2, 4, 8]}
    tree = DecisionTreeClassifier(random_state=0)
    found = PrivateGridSearchCV(
        tree, grid, epsilon=1e4, delta=1e-6, method=method, random_state=0
    ).fit(X, y, X_val=X_val, y_val=y_val)
    split = PredefinedSplit([-1] * 200 + [0] * 150)
    theirs = GridSearchCV(tree, grid, cv=split, refit=False).fit(
        np.vstack([X, X_val]), np.concatenate([y, y_val])
    )
    assert found.best_params_ == theirs.best_params_
    assert is_classifier(found)
    assert_array_equal(found.classes_, [False, True])
    assert found.predict_proba(X_val).shape == (150, 2)
    alone = clone(tree).set_params(**found.best_params_).fit(X, y)
    assert_array_equal(found.predict(X_val), alone.predict(X_val))
    promise = found.guarantee_
    assert (promise.epsilon, promise.delta, promise.pure_epsilons) == (1e4, 0.0, (1e4,))
    assert "validation record" in promise.unit
    assert "all of epsilon" in found.describe()


def test_squared_absolute_and_own_losses_choose_too():
    rng = np.random.default_rng(1)
    X, X_val = rng.normal(size=(60, 2)), rng.normal(size=(80, 2))
    y, y_val = X @ [1.0, 2.0], X_val @ [1.0, 2.0]
    settings = {"epsilon": 1e4, "delta": 1e-6, "method": "permute-and-flip", "random_state": 0}
    grid = {"ridge__alpha": [1e-3, 10.0, 1e5]}
    model = make_pipeline(StandardScaler(), Ridge())
    for scoring in ("squared_error", "absolute_error", lambda y, p: np.abs(y - p) > 0.5):
        found = PrivateGridSearchCV(
            model, grid, scoring=scoring, loss_bounds=(0, 4), **settings
        ).fit(X, y, X_val=X_val, y_val=y_val)
        assert found.best_params_ == {"ridge__alpha": 1e-3}
        assert is_regressor(found)
    assert found.score(X, y) > 0.99
    low = PrivateGridSearchCV(model, grid, scoring="squared_error", loss_bounds=(0, 4),
        **{**settings, "epsilon": 1e-3})  # fmt: skip
    chosen = {low.set_params(random_state=s).fit(X, y, X_val=X_val, y_val=y_val).best_index_
              for s in range(40)}  # fmt: skip
    assert chosen == {0, 1, 2}, "a tiny budget chooses at random"


def test_parameters_are_nested_and_clones_are_equal():
    one = search()
    assert one.get_params()["estimator__kernel__length_scale"] == 1.0
    two = clone(one).set_params(estimator__y_bounds=(0, 1), epsilon=3.0)
    assert two.estimator.y_bounds == (0, 1)
    assert one.estimator.y_bounds == (-2, 2)
    assert "best_estimator_" not in vars(two)
    with pytest.raises(AttributeError):
        _ = one.n_features_in_


def test_names_of_columns_reach_the_chosen_model():
    X, y = some_data()
    frame = pd.DataFrame({"age": X[:, 0]})
    for method in METHODS:
        found = search(method).fit(frame, y)
        assert_array_equal(found.feature_names_in_, ["age"])
        assert found.n_features_in_ == 1
        assert found.predict(frame).shape == (40,)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": np.nan}, "epsilon"),
        ({"delta": 1.0}, "delta"),
        ({"method": "best"}, "method must be one of"),
        ({"selection_share": 0.0}, "selection_share"),
        ({"selection_share": 1.0}, "selection_share"),
        ({"selection_share": True}, "selection_share"),
        ({"selection_share": 0.5}, "selection_share does not go with method='measurement'"),
        ({"cv": 3}, "cv does not go with method='measurement': leave cv=5"),
        ({"cv": KFold(5)}, "cv does not go with method='measurement'"),
        ({"grid": {}}, "no split|candidates|kernel"),
        ({"grid": {"noise_variance": []}}, "param_grid"),
        ({"grid": {"noise_variance": 1.0}}, "param_grid"),
        ({"grid": "noise"}, "param_grid"),
        ({"grid": {"epsilon": [1.0, 2.0]}}, "kernel and noise parameters only.*not epsilon"),
        ({"grid": {"y_bounds": [(0, 1)]}}, "not y_bounds"),
        ({"grid": {"noise_variance": [-1.0]}}, "noise_variance must be positive"),
        ({"grid": {"noise_variance": [np.inf]}}, "noise_variance must be positive"),
        ({"grid": {"kernel__length_scale": [-1.0]}}, "positive"),
        ({"grid": {"kernel": ["rbf"]}}, "kernel"),
        ({"grid": {"nonsense": [1]}}, "not nonsense"),
        ({"scoring": "accuracy"}, "validation records"),
        ({"loss_bounds": (0, 1)}, "validation records"),
        ({"method": "exponential", "cv": 1}, "cv"),
    ],
)
def test_bad_arguments_are_refused_before_anything_is_spent(settings, message, monkeypatch):
    def spent(*_args, **_kwargs):
        raise AssertionError("spent")

    monkeypatch.setattr("privgp.models.search.outputs.measure", spent)
    monkeypatch.setattr("privgp.models.search.outputs.choose_by_residuals", spent)
    if settings == {"grid": {}}:
        return  # one candidate, the model as it is: a search that is none, as in scikit-learn
    X, y = some_data()
    with pytest.raises(ValueError, match=message):
        search(**settings).fit(X, y)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("X", "y"),
    [
        ([[1.0], [2.0]], [1.0, np.nan]),
        ([[1.0], [np.inf]], [1.0, 1.0]),
        ([[1.0], [2.0]], [1.0]),
        ([[1.0], [2.0]], ["a", "b"]),
        ([[1.0], [2.0]], None),
        (np.empty((0, 1)), []),
        ([1.0, 2.0], [1.0, 2.0]),
    ],
)
def test_bad_data_are_refused(method, X, y):
    found = search(method, **({"cv": 2} if method in PAID else {}))
    with pytest.raises(ValueError, match=r"y|X|array|sample"):
        found.fit(X, y)
    assert not hasattr(found, "guarantee_")


def test_one_row_can_be_measured_but_not_cross_validated():
    assert search().fit([[1.0]], [0.5]).predict([[1.0]]).shape == (1,)
    with pytest.raises(ValueError, match="cv"):
        search("exponential").fit([[1.0]], [0.5])


def test_searches_that_make_no_sense_are_refused():
    X, y = some_data()
    regressor = PrivateGPRegressor(y_bounds=(-2, 2))
    budget = {"epsilon": 1.0, "delta": 1e-6}
    for estimator, settings, data, message in [
        (Ridge(), {}, {}, "must be a PrivateGPRegressor"),
        (Ridge(), {"method": "exponential"}, {}, "X_val"),
        (Ridge(), {}, {"X_val": X, "y_val": y}, "does not use validation records"),
        (Ridge(), {"method": "exponential"}, {"X_val": X, "y_val": y}, "scoring must be given"),
        (Ridge(), {"method": "exponential"}, {"y_val": y}, "scoring must be given"),
        (LogisticRegression(), {"method": "exponential"}, {"y_val": y}, "X_val and y_val"),
        (
            regressor,
            {"method": "exponential"},
            {"X_val": X, "y_val": y},
            "spends its own budget",
        ),
        (clone(regressor).set_params(protect="records"), {}, {}, "protect='records'"),
        (clone(regressor).set_params(reconstruct="unbiased"), {}, {}, "reconstruct='posterior'"),
        (clone(regressor).set_params(y_bounds=None), {}, {}, "y_bounds"),
        (regressor, {"method": "exponential"}, {"X_val": X, "groups": y}, "groups cannot"),
    ]:
        grid = {"noise_variance": [1.0]} if isinstance(estimator, PrivateGPRegressor) else {}
        with pytest.raises(ValueError, match=message):
            PrivateGridSearchCV(estimator, grid, **budget, **settings).fit(X, y, **data)
