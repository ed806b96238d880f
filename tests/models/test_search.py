"""PrivateGridSearchCV as scikit-learn, a data holder and a careless user see it."""

from __future__ import annotations

import pickle
import struct

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

from privgp import PrivateGPRegressor, PrivateGridSearchCV, load
from privgp.models import search_outputs
from privgp.models.candidates import centre_of, models_of

METHODS = ("measurement", "permute-and-flip", "exponential")
PAID = METHODS[1:]
GRID = {"kernel__length_scale": [0.3, 1.0, 3.0], "noise_variance": [0.01, 0.3]}


def some_data(rows: int = 40, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 10, size=(rows, 1))
    return X, np.sin(X[:, 0]) + 0.1 * rng.standard_normal(rows)


def search(method: str = "measurement", grid=None, **settings) -> PrivateGridSearchCV:
    mechanism = settings.pop("mechanism", "auto")
    model = PrivateGPRegressor(RBF(1.0, "fixed"), y_bounds=(-2, 2), mechanism=mechanism)
    settings = {"epsilon": 2.0, "delta": 1e-4, "random_state": 0, **settings}
    return PrivateGridSearchCV(model, GRID if grid is None else grid, method=method, **settings)


@parametrize_with_checks(
    [
        PrivateGridSearchCV(
            PrivateGPRegressor(y_bounds=(-100, 100)),
            {"noise_variance": [1.0, 10.0]},
            epsilon=1.0,
            delta=1e-3,
        )
    ]
)
def test_every_check_of_scikit_learn_passes(estimator, check):
    check(estimator)


@pytest.mark.parametrize("method", METHODS)
def test_the_promise_is_the_total_and_the_chosen_model_keeps_it(method, tmp_path):
    X, y = some_data()
    found = search(method, random_state=None).fit(X, y)
    promise = found.guarantee_
    assert (promise.epsilon, promise.delta) == (2.0, 1e-4)
    assert promise.delta_at(2.0) <= 1e-4 * (1 + 1e-9)
    assert promise == found.best_estimator_.guarantee_
    assert not promise.is_simulation
    spent = (0.3 * 2.0,) if method != "measurement" else ()
    assert promise.pure_epsilons[: len(spent)] == spent
    assert sum(promise.pure_epsilons) <= 2.0 * (1 + 1e-12)
    assert found.best_params_ == found.cv_results_["params"][found.best_index_]
    model = found.best_estimator_
    assert model.hyperparameters == "fixed"
    assert model.kernel.length_scale == found.best_params_["kernel__length_scale"]
    assert model.kernel_ == model.kernel
    assert model.noise_variance_ == pytest.approx(found.best_params_["noise_variance"])
    mean, std = found.predict(X, return_std=True)
    assert_array_equal(mean, model.predict(X))
    assert std.shape == (40,)
    assert found.score(X, y) == model.score(X, y)
    with pytest.warns(UserWarning, match="contains inputs"):
        model.save(tmp_path / "chosen.privgp")
    loaded = load(tmp_path / "chosen.privgp")
    assert loaded.guarantee_ == promise
    assert_array_equal(loaded.predict(X), mean)


@pytest.mark.parametrize("method", METHODS)
def test_a_seed_makes_a_reproducible_simulation_that_says_so(method):
    X, y = some_data()
    one, two = search(method).fit(X, y), search(method).fit(X, y)
    assert_array_equal(one.predict(X), two.predict(X))
    assert one.guarantee_.is_simulation
    assert "SIMULATION" in one.describe()


def test_a_free_choice_spends_all_of_the_budget_on_the_measurement():
    X, y = some_data()
    found = search(mechanism="gaussian").fit(X, y)
    whole = PrivateGPRegressor(
        y_bounds=(-2, 2), epsilon=2.0, delta=1e-4, mechanism="gaussian"
    ).plan(X)
    assert found.guarantee_.noise_multipliers == (whole.noise.multiplier,)
    paid = search("permute-and-flip", mechanism="gaussian").fit(X, y)
    assert paid.guarantee_.noise_multipliers > found.guarantee_.noise_multipliers
    assert paid.best_estimator_.epsilon > 1.4, "exact accounting leaves more than 2 - 0.6"


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
    chosen = {low.set_params(random_state=s).fit(X, y, None, X_val, y_val).best_index_
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


@pytest.mark.parametrize("method", METHODS)
def test_people_with_several_rows_are_protected_together(method):
    X, y = some_data(30)
    groups = np.arange(30) // 3
    found = search(method).fit(X, y, groups=groups)
    assert found.guarantee_.unit == "all output values of one person"
    if method != "measurement":
        alone = search(method).fit(X, y)
        assert found.cv_results_["sensitivity"][0] > alone.cv_results_["sensitivity"][0]


SENTINELS = (1.2345678901234567, -0.98765432109876543, 1.7182818284590453)


@pytest.mark.parametrize("method", METHODS)
def test_nothing_private_is_left(method):
    X, y = some_data(30)
    y[:3] = SENTINELS
    found = search(method, random_state=None).fit(X, y)
    whole = pickle.dumps(found) + repr(vars(found)).encode() + found.describe().encode()
    for value in SENTINELS:
        for number in (value, value / 2.0):
            for form in (struct.pack("<d", number), repr(number).encode()):
                assert form not in whole


def test_what_is_told_of_candidates_does_not_depend_on_outputs():
    X, y = some_data()
    one, two = (search("permute-and-flip").fit(X, v).cv_results_ for v in (y, np.ones(40)))
    assert set(one) == {"params", "param_kernel__length_scale", "param_noise_variance",
                        "noise_std", "sensitivity"}  # fmt: skip
    for name in ("noise_std", "sensitivity"):
        assert_array_equal(one[name], two[name])
    by_record = PrivateGridSearchCV(Ridge(), {"alpha": [1.0, 2.0]}, epsilon=1.0, delta=1e-6,
        method="exponential", scoring="squared_error", loss_bounds=(0, 1))  # fmt: skip
    by_record.fit(X, y, X_val=X, y_val=y)
    assert set(by_record.cv_results_) == {"params", "param_alpha", "sensitivity"}
    assert by_record.cv_results_["sensitivity"] == pytest.approx(1 / 40)


def test_a_failure_after_the_choice_leaves_what_was_spent_on_record(monkeypatch):
    X, y = some_data()

    def fail(*_args, **_kwargs):
        raise RuntimeError("no room left")

    monkeypatch.setattr("privgp.models.regressor.measure", fail)
    found = search("permute-and-flip")
    with pytest.raises(RuntimeError):
        found.fit(X, y)
    assert found.guarantee_.epsilon == 2.0


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

    monkeypatch.setattr("privgp.models.search_outputs.measure", spent)
    monkeypatch.setattr("privgp.models.search_outputs.root_utilities", spent)
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
    found = search(method, cv=2)
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
        (regressor, {"method": "exponential"}, {"X_val": X, "y_val": y}, "would spend its budget"),
        (clone(regressor).set_params(protect="records"), {}, {}, "protect='records'"),
        (clone(regressor).set_params(reconstruct="unbiased"), {}, {}, "reconstruct='posterior'"),
        (clone(regressor).set_params(y_bounds=None), {}, {}, "y_bounds"),
        (regressor, {"method": "exponential"}, {"X_val": X, "groups": y}, "groups cannot"),
    ]:
        grid = {"noise_variance": [1.0]} if isinstance(estimator, PrivateGPRegressor) else {}
        with pytest.raises(ValueError, match=message):
            PrivateGridSearchCV(estimator, grid, **budget, **settings).fit(X, y, **data)


def test_the_unbiased_output_can_be_chosen_at_a_cost():
    X, y = some_data()
    found = search("permute-and-flip")
    found.estimator.set_params(reconstruct="unbiased", targets=[[1.0], [5.0]])
    found.fit(X, y)
    assert found.predict([[1.0], [5.0]]).shape == (2,)


def test_the_budget_is_told_before_it_is_spent():
    told = search("permute-and-flip").describe()
    assert "epsilon = 2, delta = 0.0001 in total" in told
    assert "epsilon = 0.6 (selection_share = 0.3)" in told
    assert "spends nothing" in search().describe()


def test_the_certificate_names_the_choice_and_what_it_cost():
    from privgp.release.certificate import certificate, page, validate

    X, y = some_data()
    paid = certificate(search("permute-and-flip").fit(X, y).best_estimator_)
    validate(paid)
    assert paid["mechanism"]["pure_epsilons"] == pytest.approx([0.6, 1.4])
    assert "chosen among 6 candidates by permute-and-flip" in paid["hyperparameters"]["source"]
    assert "pure epsilon 0.6" in page(paid)
    details = paid["registry"]["deployment"]["privacy_loss"]["privacy_parameters_details"]
    assert "epsilon = 0.6 and 1.4" in details
    free = certificate(search().fit(X, y).best_estimator_)
    assert "at no cost" in free["hyperparameters"]["source"]
    assert "pure epsilon 0.6" not in page(free)


@pytest.mark.parametrize("method", PAID)
def test_the_choice_is_made_with_its_share_and_a_sensitivity_that_neighbours_reach(
    method, monkeypatch
):
    """Two people predict 1,000 others at the same place: noise 20% smaller would not hide one."""
    seen = []

    def choose(utilities, sensitivity, epsilon, rng):
        seen.append((utilities[0], sensitivity, epsilon))
        return 0

    monkeypatch.setitem(search_outputs.MECHANISMS, method, choose)
    X, y = np.zeros((1002, 1)), np.full(1002, 2.0)
    y[1] = -2.0
    halves = np.arange(2), np.arange(2, 1002)
    settings = {"cv": [halves, halves[::-1]], "epsilon": 1e4, "selection_share": 0.25}
    for y[0] in (-2.0, 2.0):
        search(method, {"noise_variance": [0.01]}, **settings).fit(X, y)
    (one, claimed, spent), (two, again, _) = seen
    assert spent == 2500.0
    assert claimed == again
    assert 0.95 * claimed < abs(one - two) <= claimed


def test_too_much_left_for_the_release_is_noticed_before_anything_is_drawn(monkeypatch):
    monkeypatch.setattr(search_outputs, "remaining_epsilon", lambda epsilon, delta, spent: epsilon)
    X, y = some_data()
    found = search("permute-and-flip").fit(X, y)
    assert found.best_estimator_.epsilon == 2.0 - 0.6
    assert found.guarantee_.delta_at(2.0) <= 1e-4
