"""Searches over models of private rows: one guarantee for choice and release, whatever is released."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern
from sklearn.svm import SVC

from privgp import (
    BinnedMeans,
    Ledger,
    PosteriorPaths,
    PrivateBayesSearchCV,
    PrivateFunction,
    PrivateGPClassifier,
    PrivateGPRegressor,
    PrivateGridSearchCV,
    compose,
    load,
)

rng = np.random.default_rng(5)
X = rng.uniform(0, 10, (300, 1))
y = np.sin(2 * X[:, 0]) + rng.normal(0, 0.3, 300)
BOUNDS = (-1.5, 1.5)
PATHS = PosteriorPaths(
    0.1**2 * Matern(1.0, nu=0.5), 1.0, domain=(0, 10), y_bounds=BOUNDS, delta=1e-3
)
FUNCTION = PrivateFunction(RBF(1.0), 0.1, y_bounds=BOUNDS, epsilon=1.0, delta=1e-3)
OF_RECORDS = clone(FUNCTION).set_params(protect="records", domain=(0, 10))
KERNEL = ConstantKernel(1.0) * RBF(1.0)
REGRESSOR = PrivateGPRegressor(
    KERNEL, 0.1, y_bounds=BOUNDS, protect="records", x_bounds=(0, 10), mechanism="laplace"
)
CLASSIFIER = PrivateGPClassifier(KERNEL, classes=(0, 1))
LABELLED = PrivateGPClassifier(KERNEL, classes=(0, 1, 2), protect="records", x_bounds=(0, 10))
MODELS = {
    "paths": PATHS, "function": FUNCTION, "function of records": OF_RECORDS, "records": REGRESSOR,
    "classifier": CLASSIFIER, "labelled records": LABELLED,
}  # fmt: skip
LENGTHS = [0.05, 0.6, 50.0]


def charges(account) -> list:
    return [entry for entry in account.entries() if entry.guarantee is not None]


def lengthscale(model) -> str:
    return next(name for name in model.get_params() if name.endswith("length_scale"))


def outputs(model):
    return (y > 0).astype(int) if hasattr(model, "classes") else y


def search(model, kind=PrivateGridSearchCV, **options):
    how = {"method": "permute-and-flip"} if kind is PrivateGridSearchCV else {"n_iter": 2}
    settings = {"epsilon": 5.0, "delta": 1e-3, "random_state": 0, **how, **options}
    return kind(model, {lengthscale(model): LENGTHS}, **settings)


@pytest.mark.parametrize("kind", [PrivateGridSearchCV, PrivateBayesSearchCV])
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())
def test_choice_and_release_have_one_guarantee(model, kind):
    found = search(model, kind).fit(X, outputs(model))
    guarantee = found.guarantee_
    assert (guarantee.epsilon, guarantee.delta) == (5.0, 1e-3)
    assert found.best_estimator_.guarantee_ == guarantee
    assert guarantee.is_simulation
    guarantee.check()
    assert guarantee.epsilon_at(1e-3) <= 5.0 * (1 + 1e-9)
    assert found.best_params_[lengthscale(model)] in LENGTHS
    twice = compose([guarantee, guarantee], 2e-3)
    assert 5.0 < twice.epsilon <= 10.0 * (1 + 1e-9)


@pytest.mark.parametrize(
    "model", [PATHS, REGRESSOR, CLASSIFIER], ids=["paths", "records", "labels"]
)
def test_a_choice_is_better_than_chance(model):
    chosen = [
        search(model, random_state=seed).fit(X, outputs(model)).best_params_[lengthscale(model)]
        for seed in range(4)
    ]
    assert chosen.count(0.6) >= 3


def test_a_measured_search_finds_the_lengthscale_of_many_records():
    more = np.random.default_rng(1).uniform(0, 10, (5000, 1))
    level = np.sin(2 * more[:, 0]) + np.random.default_rng(2).normal(0, 0.3, 5000)
    found = search(REGRESSOR, PrivateBayesSearchCV, n_iter=4, blocks=200).fit(more, level)
    assert found.best_params_[lengthscale(REGRESSOR)] == 0.6
    assert found.best_score_ == pytest.approx(-0.2, abs=0.15)


def test_the_release_has_what_the_choice_leaves():
    found = search(REGRESSOR, selection_share=0.2).fit(X, y)
    assert found.best_estimator_.plan_.epsilon == pytest.approx(4.0, rel=1e-12)
    spent = [*found.guarantee_.pure_epsilons]
    assert sum(spent) <= 5.0
    assert found.guarantee_.delta_slack == pytest.approx(1e-3, rel=1e-5)
    loose = clone(PATHS).set_params(noise_variance=0.01)
    paths = search(loose).fit(X, y).best_estimator_
    own = paths._kept.contents.guarantee
    assert own.epsilon <= 3.5 < own.epsilon * 1.02


def test_paths_keep_a_noise_variance_that_is_large_enough():
    model = clone(PATHS).set_params(noise_variance=400.0)
    assert search(model).fit(X, y).best_estimator_.noise_variance == 400.0


@pytest.mark.parametrize(
    "model", [FUNCTION, OF_RECORDS, PATHS], ids=["outputs", "records", "paths"]
)
def test_a_state_file_keeps_the_guarantee_of_the_choice(model, tmp_path):
    chosen = search(model).fit(X, y).best_estimator_
    answers = chosen.release([[1.0], [2.0]])
    chosen.save_state(tmp_path / "a.private-state")
    again = type(model).load_state(tmp_path / "a.private-state")
    assert again.guarantee_ == chosen.guarantee_
    assert np.array_equal(again.release([[1.0], [2.0]]), answers)


def test_a_file_keeps_the_guarantee_of_the_choice(tmp_path):
    chosen = search(REGRESSOR).fit(X, y).best_estimator_
    chosen.save(tmp_path / "a.privgp")
    again = load(tmp_path / "a.privgp")
    assert again.guarantee_ == chosen.guarantee_
    assert "blocks" in again.certificate()["hyperparameters"].get("chosen_by", "blocks")


def test_a_ledger_is_charged_once_for_both(tmp_path):
    account = Ledger(f"sqlite:///{tmp_path / 'l.db'}").open("people", 12.0, 0.1)
    search(REGRESSOR, ledger=account).fit(X, y)
    search(PATHS, PrivateBayesSearchCV, ledger=account).fit(X, y)
    assert len(charges(account)) == 2
    with pytest.raises(Exception, match="budget"):
        search(REGRESSOR, ledger=account).fit(X, y)


GRID = {"method": "permute-and-flip"}


@pytest.mark.parametrize(
    ("model", "options", "given", "words"),
    [
        (REGRESSOR, {"blocks": 1}, {}, "blocks"),
        (REGRESSOR, {"blocks": 200}, {}, "blocks"),
        (REGRESSOR, {"cv": 3}, {}, "cv"),
        (REGRESSOR, {}, {"groups": np.arange(300)}, "groups"),
        (clone(REGRESSOR).set_params(kernel=None), {"param_grid": {"noise_variance": [1.0]}}, {},
            "kernel must be given"),
        (clone(REGRESSOR).set_params(x_bounds=None), {}, {}, "x_bounds"),
        (REGRESSOR, {"param_grid": {"mechanism": ["laplace"]}}, {}, "mechanism"),
        (REGRESSOR, {"param_grid": {"noise_variance": [-1.0]}}, {}, "noise_variance"),
        (REGRESSOR, {"method": "measurement"}, {}, "protects outputs"),
        (PATHS, {"method": "measurement"}, {}, "PrivateGPRegressor"),
        (FUNCTION, {"delta": 0.0}, {}, "delta"),
        (BinnedMeans(y_bounds=BOUNDS), {"param_grid": {"noise_variance": [1.0]}}, {}, "no kernel"),
        (clone(REGRESSOR).set_params(y_bounds=None), {}, {}, "y_bounds"),
    ],
)  # fmt: skip
def test_bad_requests_are_refused_before_anything_is_charged(
    model, options, given, words, tmp_path
):
    account = Ledger(f"sqlite:///{tmp_path / 'l.db'}").open("people", 12.0, 0.1)
    grid = options.pop("param_grid", None)
    asked = {"epsilon": 5.0, "delta": 1e-3, **GRID, **options}
    name = next((n for n in model.get_params() if n.endswith("length_scale")), "noise_variance")
    made = PrivateGridSearchCV(model, grid or {name: LENGTHS}, ledger=account, **asked)
    with pytest.raises(ValueError, match=words):
        made.fit(X, y, **given)
    assert not charges(account)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"method": "kusner"}, "measured"),
        ({"scoring": "absolute_error"}, "scoring"),
        ({"state_file": "x.search"}, "state_file"),
        ({"selection_share": 0.0}, "selection_share"),
        ({"blocks": 2.5}, "blocks"),
        ({"delta": 0.0}, "delta"),
    ],
)
def test_bad_requests_of_a_measured_search_are_refused(options, words):
    with pytest.raises(ValueError, match=words):
        search(REGRESSOR, PrivateBayesSearchCV, **options).fit(X, y)


def test_blocks_and_shares_are_for_private_rows():
    with pytest.raises(ValueError, match="blocks"):
        PrivateBayesSearchCV(
            SVC(), {"C": [1.0, 2.0]}, epsilon=1.0, delta=1e-5, n_iter=2, blocks=4
        ).plan(100)


def test_bad_rows_are_refused_without_their_values():
    for bad in (np.where(np.arange(300) == 3, np.nan, y), y[:-1], np.full(300, "secret")):
        with pytest.raises(ValueError) as refused:  # noqa: PT011
            search(REGRESSOR).fit(X, bad)
        assert "secret" not in str(refused.value)


def test_a_plan_says_what_the_share_buys():
    plan = search(PATHS, PrivateBayesSearchCV).plan(900)
    assert plan.rows == 30
    assert (plan.epsilon, plan.delta) == (1.5, pytest.approx(3e-4))
