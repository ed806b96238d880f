"""A search over validation records takes no estimator that spends its own budget at fit."""

from __future__ import annotations

import inspect
from functools import partial

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.ensemble import BaggingRegressor, StackingRegressor, VotingRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process.kernels import RBF
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import privgp
from privgp import (
    BinnedGP,
    BinnedMeans,
    PosteriorPaths,
    PrivateBayesSearchCV,
    PrivateFunction,
    PrivateGPRegressor,
    PrivateGridSearchCV,
)
from privgp.models.published import SpendsAtFit

X = np.linspace(0.0, 1.0, 12)[:, None]
Y = X[:, 0].copy()
LOSS = {"scoring": "squared_error", "loss_bounds": (0, 1)}
BUDGET = {"epsilon": 1.0, "delta": 1e-5}


class Holding(RegressorMixin, BaseEstimator):
    """A user's own meta-estimator, which keeps its model under its own name."""

    def __init__(self, things=None):
        self.things = things

    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.zeros(len(X))


class Hidden(Holding):
    """One that makes its model in the constructor and does not tell scikit-learn of it."""

    def __init__(self):
        self._inner = private()


class Derived(PrivateGPRegressor):
    pass


def private(**options):
    return PrivateGPRegressor(y_bounds=(0, 1), hyperparameters="fixed", random_state=0, **options)


NESTED = {
    "bare": lambda: private(),
    "derived": lambda: Derived(y_bounds=(0, 1)),
    "pipeline": lambda: make_pipeline(StandardScaler(), private()),
    "pipeline in pipeline": lambda: make_pipeline(StandardScaler(), make_pipeline(private())),
    "target": lambda: TransformedTargetRegressor(private()),
    "columns": lambda: make_pipeline(
        ColumnTransformer([("one", make_pipeline(BinnedMeans(y_bounds=(0, 1))), [0])]), Ridge()
    ),
    "union": lambda: make_pipeline(FeatureUnion([("one", private())]), Ridge()),
    "bagging": lambda: BaggingRegressor(private()),
    "voting": lambda: VotingRegressor([("a", Ridge()), ("b", private())]),
    "stacking": lambda: StackingRegressor([("a", Ridge())], final_estimator=private()),
    "several outputs": lambda: MultiOutputRegressor(private()),
    "a public search": lambda: GridSearchCV(Ridge(), {"x": [private()]}),
    "a search": lambda: PrivateGridSearchCV(private(), {"noise_variance": [1.0]}, **BUDGET),
    "the same search": lambda: PrivateBayesSearchCV(Ridge(), {"alpha": [1.0]}, **BUDGET, n_iter=1),
    "binned": lambda: BinnedGP(y_bounds=(0, 1)),
    "function": lambda: Holding(PrivateFunction(RBF(1.0), 0.1, y_bounds=(0, 1), **BUDGET)),
    "paths": lambda: Holding([(PosteriorPaths(RBF(1.0), 0.1, domain=(0, 1), y_bounds=(0, 1), delta=0.1),)]),
    "own dict": lambda: Holding({"a": {"b": [private()]}}),
    "own array": lambda: Holding(np.array([private(), None], dtype=object)),
    "partial": lambda: Holding(partial(PrivateGPRegressor, y_bounds=(0, 1))),
    "class": lambda: Holding(PrivateGPRegressor),
    "hidden": lambda: Hidden(),
}  # fmt: skip


def bayes(estimator, space, **options):
    return PrivateBayesSearchCV(estimator, space, **BUDGET, n_iter=2, **LOSS, **options)


def grid(estimator, params):
    return PrivateGridSearchCV(estimator, params, **BUDGET, method="exponential", **LOSS)


@pytest.fixture(autouse=True)
def _nothing_is_fitted(monkeypatch):
    def spend(*_args, **_kwargs):
        raise AssertionError("a budget was spent")

    for place in ("published.measure", "binned.measure", "search.bayes.measure_loss"):
        monkeypatch.setattr(f"privgp.models.{place}", spend)


REFUSED = r"^estimator contains [A-Z]\w+, which spends its own budget at every fit"


@pytest.mark.parametrize("name", NESTED)
def test_an_estimator_that_spends_is_refused_wherever_it_is(name):
    estimator = NESTED[name]()
    for search in (bayes(estimator, {"things": [1]}), grid(estimator, {"things": [1]})):
        with pytest.raises(ValueError, match=REFUSED):
            search.fit(X, Y, X_val=X, y_val=Y)
    with pytest.raises(ValueError, match=REFUSED):
        bayes(estimator, {"things": [1]}).plan(100)


@pytest.mark.parametrize("name", NESTED)
def test_a_setting_that_would_put_one_in_is_refused(name):
    values = [None, NESTED[name]()]
    outer = Pipeline([("things", Ridge())])
    with pytest.raises(ValueError, match="space contains "):
        bayes(outer, {"things": values}).fit(X, Y, X_val=X, y_val=Y)
    for params in ({"things": values}, [{"things": [None]}, {"things": values}]):
        with pytest.raises(ValueError, match="param_grid contains "):
            grid(outer, params).fit(X, Y, X_val=X, y_val=Y)


def test_a_model_that_was_released_once_may_be_a_part(monkeypatch):
    monkeypatch.undo()
    released = private().fit(X, Y)
    measured = released.measurements_
    for search in (
        bayes(Holding(FrozenEstimator(released)), {"things": [FrozenEstimator(released)]}),
        grid(Holding(FrozenEstimator(released)), {"things": [FrozenEstimator(released)]}),
    ):
        search.fit(X, Y, X_val=X, y_val=Y)
    assert released.measurements_ is measured


def test_what_was_fitted_before_does_not_count_as_it_is_not_copied(monkeypatch):
    monkeypatch.undo()
    model = Holding()
    model.inner_ = private()
    grid(model, {"things": [1]}).fit(X, Y, X_val=X, y_val=Y)


def test_every_public_estimator_is_marked():
    found = [getattr(privgp, name) for name in privgp.__all__]
    estimators = [thing for thing in found if inspect.isclass(thing) and hasattr(thing, "fit")]
    assert len(estimators) >= 7
    assert all(issubclass(kind, SpendsAtFit) for kind in estimators)
