"""PrivateBayesSearchCV through its public interface."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsClassifier

from privgp import PrivateBayesSearchCV, compose
from privgp.gp.surrogate import known_prior
from privgp.privacy.selection import largest_gain
from tests.models.looking_up import Column, records

SCORES = np.array([0.1, 0.4, 0.55, 0.8, 0.83, 0.97, 0.9, 0.62])
X_VAL, Y_VAL = records(SCORES)
SPACE = {"j": list(range(8))}


def search(estimator=None, space=SPACE, **settings) -> PrivateBayesSearchCV:
    base = {"epsilon": 1.0, "delta": 1e-5, "n_iter": 6, "random_state": 0}
    return PrivateBayesSearchCV(estimator or Column(), space, **{**base, **settings})


def fitted(**settings) -> PrivateBayesSearchCV:
    return search(**settings).fit(None, None, X_val=X_VAL, y_val=Y_VAL)


@pytest.mark.parametrize("acquisition", ["ucb", "ei"])
@pytest.mark.parametrize("final_share", [0.0, 0.25])
def test_without_noise_it_finds_what_trying_everything_finds(acquisition, final_share):
    found = fitted(
        epsilon=1e4, delta=0.5, n_iter=10, acquisition=acquisition, final_share=final_share
    )
    assert found.best_params_ == {"j": 5}
    assert found.best_score_ == pytest.approx(0.97, abs=1e-3)
    assert found.best_estimator_.j == 5


def test_kusners_algorithms_without_noise_find_it_too():
    assume = {"prior_mean": 0.5, "prior_std": 0.3, "observation_std": 1e-4, "correlation": 1.0}
    noisy = fitted(method="kusner", n_iter=12, epsilon=1e4, delta=0.5, assume=assume)
    assert noisy.best_params_ == {"j": 5}
    del assume["observation_std"]
    free = {**assume, "A": 1e-9, "tau": 1.0}
    found = fitted(method="kusner-noise-free", n_iter=12, epsilon=1e4, delta=0.5, assume=free)
    assert found.best_params_ == {"j": 5}
    assert found.best_score_ == pytest.approx(0.97, abs=1e-3)


def test_what_is_reported_is_what_was_measured_last():
    found = fitted()
    results = found.cv_results_
    assert found.best_score_ == results["score"][-1]
    assert found.best_score_std_ == results["noise_std"][-1] == found.plan_.score_std
    assert results["params"][-1] == found.best_params_
    assert len(results["params"]) == 7
    assert results["share"].sum() == pytest.approx(1)
    assert np.all(np.abs(results["posterior_mean"] - 0.5) < 1)
    without = fitted(final_share=0)
    assert len(without.cv_results_["score"]) == 6
    assert without.best_score_std_ < 1


def test_the_promise_is_the_budget():
    found = search(random_state=None).fit(None, None, X_val=X_VAL, y_val=Y_VAL)
    g = found.guarantee_
    assert (g.epsilon, g.delta) == (1.0, 1e-5)
    assert not g.is_simulation
    assert g.delta_at(1.0) <= 1e-5
    assert g.delta_at(1.0) > 0.99e-5
    assert len(g.noise_multipliers) == 7
    assert compose([g, g], 1e-5).epsilon > 1.4
    assert fitted().guarantee_.is_simulation
    kusner = fitted(method="kusner").guarantee_
    assert "assumption 1" in " ".join(kusner.assumptions)
    with pytest.raises(ValueError, match="names no"):
        compose([kusner, g], 1e-5)


def test_the_plan_tells_the_noise_beforehand():
    plan = search(n_iter=30, final_share=0).plan(1000)
    assert plan.noise_std == pytest.approx(np.full(30, 0.0204), abs=1e-4)
    assert "0.0204" in plan.describe()
    uneven = search(n_iter=2, budget_split=[1, 4], final_share=0).plan(1000)
    assert uneven.noise_std[0] == pytest.approx(2 * uneven.noise_std[1])
    assert " to " in uneven.describe()
    wide = search(Ridge(), {"alpha": (0, 1)}, scoring="squared_error", loss_bounds=(0, 50))
    narrow = search(Ridge(), {"alpha": (0, 1)}, scoring="squared_error", loss_bounds=(0, 1))
    assert wide.plan(100).score_std == pytest.approx(50 * narrow.plan(100).score_std)


def test_the_plan_shows_the_papers_theorems():
    plan = search(method="kusner").plan(898)
    assert plan.constants is not None
    assert (plan.constants.epsilon, plan.constants.delta) == (0.5, 5e-6)
    bounds = plan.theorem_bounds(3.0)
    assert bounds["setting"] == pytest.approx(0.25 * plan.constants.setting_limit(3.0))
    assert f"{bounds['value']:.3g}" in plan.describe()
    assert search().plan(10).theorem_bounds() == {}


def test_the_papers_regret_is_computed_from_the_space():
    plan = search(method="kusner", n_iter=25, assume={"lengthscale": 0.4}).plan(898)
    gain = largest_gain(plan.space.points, known_prior(1, 0.4, 2.5), 25, 0.1)
    beta = 2 * np.log(8 * 25**2 * np.pi**2 / (3 * 5e-6))
    regret = np.sqrt(8 / np.log(1 + 100) * beta * gain) / np.sqrt(25)
    assert plan.constants.regret == pytest.approx(regret, rel=1e-9)
    assert plan.constants.correlation == 1 - 1 / 898
    free = search(method="kusner-noise-free", assume={"A": 2.0, "tau": 0.5}).plan(898)
    assert free.constants.regret == pytest.approx(2 * np.exp(-1 / np.log(2) ** 0.25), rel=1e-9)


def test_losses_and_functions_of_records():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), rng.normal(size=60)
    space = {"alpha": (1e-3, 1e3, "log-uniform")}
    for scoring, name in (("squared_error", "sq"), ("absolute_error", "abs"), (_cost, "own")):
        found = search(
            Ridge(), space, scoring=scoring, loss_bounds=(0, 9), epsilon=1e4, delta=0.5, n_iter=3
        ).fit(X[:30], y[:30], X_val=X[30:], y_val=y[30:])
        error = np.abs(found.predict(X[30:]) - y[30:])
        losses = {"sq": error**2, "abs": error, "own": 2 * error}[name]
        assert found.best_score_ == pytest.approx(-np.clip(losses, 0, 9).mean(), abs=0.02), name


def _cost(y, prediction):
    return 2 * np.abs(y - prediction)


def test_the_model_is_trained_on_the_training_data_alone():
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(150)
    train, held = order[:80], order[80:]
    found = search(KNeighborsClassifier(), {"n_neighbors": [1, 3, 5, 9]}, epsilon=5.0)
    found.fit(X[train], y[train], X_val=X[held], y_val=y[held])
    again = clone(KNeighborsClassifier()).set_params(**found.best_params_).fit(X[train], y[train])
    assert np.array_equal(found.predict(X[held]), again.predict(X[held]))


@pytest.mark.parametrize("method", ["measured", "kusner"])
def test_nothing_private_remains(method):
    X = np.random.default_rng(1).normal(size=(40, 8))
    found = search(method=method).fit(None, None, X_val=X, y_val=(X[:, 0] > 0).astype(int))
    kept = pickle.dumps(found)
    assert X[7].tobytes() not in kept
    assert X.tobytes() not in kept
    assert "private" not in repr(found)


def test_kusners_search_says_nothing_about_its_course():
    found = fitted(method="kusner")
    assert found.cv_results_ == {"params": [found.best_params_]}
    assert np.isfinite(found.best_score_)


def test_simulations_repeat_and_releases_do_not():
    assert fitted().best_score_ == fitted().best_score_
    assert fitted(random_state=1).best_score_ != fitted().best_score_
    private = [fitted(random_state=None).best_score_ for _ in range(2)]
    assert private[0] != private[1]


def test_progress_is_told():
    told = []
    fitted(progress=told.append)
    assert told == list(range(1, 8))
    told.clear()
    fitted(progress=told.append, method="kusner")
    assert told == list(range(1, 7))
    fitted(progress=True)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"epsilon": 0}, "epsilon"), ({"epsilon": float("nan")}, "epsilon"), ({"delta": 1}, "delta"),
        ({"n_iter": 0}, "n_iter"), ({"n_iter": 2.5}, "n_iter"), ({"n_iter": True}, "n_iter"),
        ({"n_iter": 10**6}, "n_iter"), ({"method": "other"}, "method"), ({"acquisition": None}, "acquisition"),
        ({"exploration": -1}, "exploration"), ({"exploration": "a"}, "exploration"),
        ({"final_share": 1}, "final_share"), ({"final_share": float("nan")}, "final_share"),
        ({"budget_split": "uneven"}, "budget_split"), ({"budget_split": [1, 2]}, "budget_split"),
        ({"budget_split": [0] * 6}, "budget_split"), ({"budget_split": 3}, "budget_split"),
        ({"space": {"k": [1]}}, "no parameter"), ({"space": {}}, "space"), ({"estimator": object()}, "estimator"),
        ({"candidates": 0}, "candidates"), ({"scoring": "f1"}, "scoring"), ({"scoring": _cost}, "loss_bounds"),
        ({"estimator": Ridge(), "space": {"alpha": (0, 1)}}, "scoring"),
        ({"method": "kusner", "assume": {"x": 1}}, "assume"), ({"method": "kusner", "assume": 3}, "assume"),
        ({"method": "kusner", "assume": {"lengthscale": 0}}, "lengthscale"),
        ({"method": "kusner", "assume": {"correlation": 2}}, "correlation"),
        ({"method": "kusner", "assume": {"smoothness": 1}}, "smoothness"),
        ({"method": "kusner", "assume": {"prior_std": float("inf")}}, "prior_std"),
        ({"method": "kusner", "assume": {"prior_mean": "a"}}, "prior_mean"),
        ({"method": "kusner", "assume": {"lengthscale": None}}, "lengthscale"),
        ({"method": "kusner", "assume": {"observation_std": 2}}, "observation_std"),
        ({"method": "kusner-noise-free", "assume": {"A": 0, "tau": 1, "correlation": 1}}, "A must"),
        ({"method": "kusner-noise-free"}, "tau"), ({"method": "kusner", "state_file": "a"}, "state_file"),
        # what would be ignored
        ({"method": "kusner", "acquisition": "ucb"}, "acquisition does not go with method='kusner'"),
        ({"method": "kusner", "exploration": 3.0}, "exploration does not go with method='kusner'"),
        ({"method": "kusner", "budget_split": [1, 2]}, "budget_split does not go with method='kusner'"),
        ({"method": "kusner", "final_share": 0}, "final_share does not go with method='kusner'"),
        ({"method": "kusner", "assume": {"A": 1.0}}, "'A'. does not go with method='kusner'"),
        ({"method": "kusner-noise-free", "acquisition": "ucb"}, "acquisition does not go with"),
        ({"method": "kusner-noise-free", "assume": {"A": 1, "tau": 1, "observation_std": 0.1}}, "'observation_std'. does not go"),
        ({"assume": {"lengthscale": 0.3}}, "assume does not go with method='measured': leave assume=None"),
        ({"exploration": 3.0}, "exploration does not go with acquisition='ei'"),
        ({"candidates": 5}, "candidates does not go with a space of at most 1,000 settings"),
    ],
)  # fmt: skip
def test_bad_arguments_are_refused_before_anything_is_spent(settings, words):
    with pytest.raises(ValueError, match=words):
        search(**settings).fit(None, None, X_val=X_VAL, y_val=Y_VAL)
    with pytest.raises(ValueError, match=words):
        search(**settings).plan(10)


@pytest.mark.parametrize("rows", [0, -1, 2.5, None, "a"])
def test_bad_numbers_of_records_are_refused(rows):
    with pytest.raises(ValueError, match="n_val"):
        search().plan(rows)


@pytest.mark.parametrize(
    ("X_val", "y_val", "words"),
    [
        (None, None, "never used for training"), (X_VAL, None, "never used"), (X_VAL[:0], Y_VAL[:0], "at least one"),
        (X_VAL, Y_VAL[:-1], "same number"), (X_VAL.astype(float) * np.nan, Y_VAL, "NaN"),
        (X_VAL, Y_VAL * np.inf, "NaN or infinity"), (X_VAL, np.zeros((500, 2)), "one-dimensional"),
    ],
)  # fmt: skip
def test_bad_records_are_refused_without_quoting_them(X_val, y_val, words):
    with pytest.raises(ValueError, match=words):
        search().fit(None, None, X_val=X_val, y_val=y_val)


def test_one_record_will_do():
    found = search().fit(None, None, X_val=X_VAL[:1], y_val=Y_VAL[:1])
    assert found.best_score_std_ > 1


def test_predicting_before_a_search_is_refused():
    with pytest.raises(NotFittedError):
        search().predict(X_VAL)


def test_a_model_that_fails_on_private_records_tells_nothing():
    class Fails(Column):
        def predict(self, X):
            raise ValueError(f"bad record {X[0]}")

    with pytest.raises(ValueError, match="could not predict") as caught:
        search(Fails()).fit(None, None, X_val=X_VAL, y_val=Y_VAL)
    assert "bad record" not in str(caught.value)
    assert caught.value.__suppress_context__


def test_it_is_cloned_like_any_estimator():
    model = search(budget_split=[1, 2])
    assert clone(model).get_params()["budget_split"] == [1, 2]
    assert replace(model.set_params(budget_split="even").plan(5), rows=6).rows == 6
