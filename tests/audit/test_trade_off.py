"""Which attack is made on what; bad input; pictures and progress."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.dummy import DummyClassifier
from sklearn.gaussian_process.kernels import RBF, Matern

from privgp import (
    PosteriorPaths,
    PrivateBayesSearchCV,
    PrivateFunction,
    PrivateGPRegressor,
    PrivateGridSearchCV,
)
from privgp.audit import trade_off
from privgp.audit.attacks import choose_attack
from privgp.audit.promises import Promise
from tests.adversary.faults import another_root_after_a_restart

X = np.linspace(0, 1, 8)[:, None]
Y = np.full(8, 0.5)
Z = np.where(np.arange(8) == 3, 0.75, 0.5)
SETTINGS = {"random_state": [0, 1, 2, 3, 4, 5]}


def regressor(**settings) -> PrivateGPRegressor:
    given = {"y_bounds": (0, 1), "epsilon": 8.0, "delta": 1e-2, "random_state": 0}
    return PrivateGPRegressor(**{**given, "mechanism": "gaussian", **settings})


def function() -> PrivateFunction:
    return PrivateFunction(RBF(0.3), 0.1, y_bounds=(0, 1), epsilon=8.0, delta=0.01, random_state=0)


def gaussian(dataset, rng, count):
    """Mu = 1 between datasets 0 and 1."""
    return dataset + rng.standard_normal((count, 1))


def test_a_regressor_is_attacked_as_its_plan_is():
    worst = trade_off(regressor(), X, draws=4000)
    assert worst.holds, worst.describe()
    assert worst.attack == "the best threshold on one number"
    given = trade_off(regressor(), (X, Y), (X, Z), draws=4000)
    assert given.promised_mu == worst.promised_mu
    assert given.mu_high < worst.mu_low  # a smaller change


def test_records_are_attacked_with_given_records():
    model = regressor(protect="records", x_bounds=(0, 1))
    moved = X.copy()
    moved[0] = 1.0
    result = trade_off(model, (X, Y), (moved, Y), draws=2000)
    assert result.holds, result.describe()
    assert result.mu_high > 0.5  # the inputs are seen, just not too well


def test_outputs_of_a_plan_may_be_given():
    plan = regressor().plan(X)
    assert trade_off(plan, Y, Z, draws=200).promised_mu == pytest.approx(1 / plan.noise.multiplier)
    with pytest.raises(ValueError, match="both data and neighbour"):
        trade_off(plan, Y, draws=200)


def test_one_person_with_several_rows_may_differ_in_all_of_them():
    people = np.repeat([0, 1, 2, 3], 2)
    plan = regressor().plan(X, groups=people)
    both = np.where(people == 1, 1.0, 0.5)
    assert trade_off(plan, Y, both, draws=200).holds
    with pytest.raises(ValueError, match="one row"):
        trade_off(plan, Y, np.where(people <= 1, 1.0, 0.5), draws=200)


def test_a_function_is_attacked_at_given_points():
    worst = trade_off(function(), X, draws=4000)
    assert worst.holds, worst.describe()
    assert worst.is_tight, worst.describe()
    far = trade_off(function(), X, points=[2.0], draws=4000)
    assert far.mu_high < 0.5  # nothing is seen from afar
    given = trade_off(function(), (X, Y), (X, Z), draws=2000)
    assert given.mu_high < worst.mu_low


def test_a_trained_attack_on_a_gaussian_law_comes_close_to_the_best():
    result = trade_off(
        gaussian, 0.0, 1.0, promise=Promise(mu=1.0), batch=True, draws=200_000, random_state=0
    )
    assert result.holds, result.describe()
    assert result.is_tight, result.describe()


def test_one_release_at_a_time_and_many_at_once_are_the_same_law():
    promise = (0.5, 0.01)
    many = trade_off(gaussian, 0.0, 3.0, promise=promise, batch=True, draws=2000, random_state=0)
    one = trade_off(
        lambda d, rng: d + rng.standard_normal(),
        0.0,
        3.0,
        promise=promise,
        draws=2000,
        random_state=0,
    )
    assert not many.holds
    assert not one.holds
    assert one.mu_low < many.mu_high
    assert many.mu_low < one.mu_high


class Released(BaseEstimator):
    """A model with fit and release: the mean of y plus noise."""

    def __init__(self, noise: float = 1.0, random_state: int | None = None) -> None:
        self.noise = noise
        self.random_state = random_state

    def fit(self, X, y):
        self.mean_ = float(np.mean(y))
        return self

    def release(self, X_new):
        rng = np.random.default_rng(self.random_state)
        return self.mean_ + self.noise * rng.standard_normal() + np.zeros(len(X_new))


def test_a_model_with_fit_and_release_is_attacked_through_them():
    neighbours = (X, Y), (X, np.where(np.arange(8) == 3, 8.5, 0.5))
    options = {"points": X[:2], "draws": 400, "random_state": 1, "promise": Promise(mu=1.0)}
    assert trade_off(Released(1.0), *neighbours, **options).holds
    assert not trade_off(Released(0.1), *neighbours, **options).holds


@pytest.mark.parametrize("n_paths", [1, 3])
def test_posterior_paths_are_attacked_where_the_datasets_differ(n_paths):
    model = PosteriorPaths(
        Matern(1.0, nu=0.5), 1.0, domain=(0, 1), y_bounds=(-1, 1), n_paths=n_paths, delta=0.01,
        random_state=0,
    )  # fmt: skip
    y, v = np.full(8, -1.0), np.full(8, -1.0)
    v[3] = 1.0
    result = trade_off(model, (X, y), (X, v), draws=5000, random_state=0)
    assert result.holds, result.describe()
    assert result.mu_low > 0.2  # it sees something
    claimed = trade_off(
        model, (X, y), (X, v), draws=5000, points=X, promise=(0.05, 1e-3), random_state=0
    )
    assert not claimed.holds, claimed.describe()
    with pytest.raises(ValueError, match="same number"):
        trade_off(model, (X, y), (X[:3], y[:3]))
    with pytest.raises(ValueError, match="must both be"):
        trade_off(model, X)


def test_the_worst_questions_find_a_factor_that_changes_at_a_restart():
    """R = 5, so that the sound paths tell next to nothing."""
    model = PosteriorPaths(
        Matern(1.0, nu=0.5), 25.0, domain=(0, 1), y_bounds=(-1, 1), delta=0.01, random_state=0
    )
    y, v = np.full(8, -1.0), np.full(8, -1.0)
    v[3] = 1.0
    given = {"draws": 1000, "random_state": 0}
    assert trade_off(model, (X, y), (X, v), **given).holds
    with another_root_after_a_restart():
        assert not trade_off(model, (X, y), (X, v), **given).holds


def test_scores_of_a_search_are_attacked_at_the_worst_record():
    """Mu is 2.4: noise a fifth too small is found by 3,500 draws."""
    search = PrivateBayesSearchCV(
        DummyClassifier(), SETTINGS, epsilon=8.0, delta=0.01, n_iter=3, budget_split=[1, 2, 1]
    )
    result = trade_off(search, 50, draws=3500)
    assert result.holds, result.describe()
    assert result.is_tight, result.describe()
    assert not trade_off(search, 50, draws=3500, noise_scale=0.8).holds


@pytest.mark.parametrize("method", ["permute-and-flip", "exponential"])
def test_choices_of_a_search_are_attacked_at_the_worst_record(method):
    """A simulation, 30,000 draws: exponential choices of six differ least."""
    search = PrivateGridSearchCV(
        DummyClassifier(), SETTINGS, epsilon=3.0, delta=0.01, method=method, random_state=0
    )
    assert trade_off(search, 50, draws=30_000).holds
    assert not trade_off(search, 50, draws=30_000, noise_scale=0.7).holds


@pytest.mark.parametrize(
    ("kind", "settings", "rows", "problem"),
    [
        (
            PrivateBayesSearchCV,
            {"space": SETTINGS, "n_iter": 1},
            None,
            "number of validation records",
        ),
        (
            PrivateBayesSearchCV,
            {"space": SETTINGS, "n_iter": 1, "method": "kusner"},
            10,
            "assumption",
        ),
        (PrivateGridSearchCV, {"param_grid": SETTINGS}, 10, "regressor itself"),
        (
            PrivateGridSearchCV,
            {"method": "exponential", "param_grid": SETTINGS},
            1,
            "number of validation records",
        ),
        (
            PrivateGridSearchCV,
            {"method": "exponential", "param_grid": {"random_state": [0]}},
            10,
            "two settings",
        ),
    ],
)
def test_searches_that_cannot_be_attacked_say_why(kind, settings, rows, problem):
    search = kind(DummyClassifier(), **{"epsilon": 1.0, "delta": 0.01, **settings})
    with pytest.raises(ValueError, match=problem):
        trade_off(search, rows)


def test_laws_of_a_few_choices_are_told_apart_by_a_tree():
    """Randomised response with epsilon log 9, said to have epsilon 1."""

    def respond(dataset, rng, count):
        honest = rng.uniform(size=count) < 0.9
        return np.where(honest, dataset, 2.0 - dataset)[:, None]

    bad = trade_off(respond, 0.0, 2.0, promise=(1.0, 1e-6), batch=True, draws=5000, random_state=0)
    good = trade_off(
        respond, 0.0, 2.0, promise=(math.log(9), 1e-6), batch=True, draws=5000, random_state=0
    )
    assert not bad.holds, bad.describe()
    assert good.holds, good.describe()


def test_a_release_without_noise_is_found_out():
    result = trade_off(
        lambda d, rng, count: np.full((count, 2), d), 1.0, 1.0 + 1e-9,
        promise=(4.0, 1e-3), batch=True, draws=2000,
    )  # fmt: skip
    assert not result.holds


def test_equal_laws_prove_nothing():
    chosen = choose_attack(np.ones((100, 2)), np.ones((100, 2)), Promise(mu=1.0), 100, 1e-6)
    assert chosen.excess < 0
    assert trade_off(gaussian, 0.0, 0.0, promise=(0.1, 1e-3), batch=True, draws=2000).holds


def test_progress_goes_from_nothing_to_everything():
    told: list[float] = []
    trade_off(regressor(), X, draws=3000, progress=lambda share, doing: told.append(share))
    assert told == sorted(told)
    assert 0.0 <= told[0] < 0.1
    assert 0.4 < told[-1] <= 1.0
    told.clear()
    trade_off(
        gaussian, 0.0, 1.0, promise=(1.0, 0.1), batch=True, draws=100,
        progress=lambda share, doing: told.append(share),
    )  # fmt: skip
    assert told == sorted(told)


def test_pictures_say_whether_the_promise_holds():
    result = trade_off(gaussian, 0.0, 3.0, promise=(0.5, 0.01), batch=True, draws=500)
    figure = result.plot()
    assert "breaks the guarantee" in figure.axes[0].get_title("left")
    names = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert any("bounds of its error rates" in name for name in names)
    ax = figure.axes[0]
    assert result.plot(ax) is figure


@pytest.mark.parametrize(
    ("arguments", "options", "problem"),
    [
        ((gaussian,), {}, "needs data, neighbour and guarantee"),
        ((gaussian, 0.0, 1.0), {}, "needs data, neighbour and guarantee"),
        ((gaussian, 0.0, 1.0), {"promise": (1.0, 0.1), "noise_scale": 0.5}, "noise_scale"),
        ((gaussian, 0.0, 1.0), {"promise": (1.0, 0.1), "draws": 10, "batch": True}, "at least 50"),
        ((regressor(),), {}, "give data"),
        ((regressor(), (X, Y), (X + 1, Y)), {}, "share their inputs"),
        ((regressor(), (X, Y), Y), {}, "must both be"),
        ((regressor(), (X, Y[:3]), (X, Z)), {}, "must both be"),
        ((regressor(), (X, Y), (X, Y)), {"draws": 10}, "same measurement"),
        ((regressor(), (X, Y), (X, Y + 0.1)), {}, "one row"),
        ((regressor(), (X, Y)), {}, "must both be"),
        ((function(), (X, Y), (X, Y + 0.1)), {}, "one row"),
        ((function(), (X, Y)), {}, "must both be"),
        ((regressor(protect="records", x_bounds=(0, 1)), (X, Y), (X, Y + 0.1)), {}, "one row"),
        ((regressor(), (X * np.nan, Y), (X, Y)), {}, "must both be"),
        ((regressor(), X), {"failure_probability": 0.0}, "failure_probability"),
        ((regressor(), X), {"noise_scale": math.nan}, "positive"),
        ((regressor(), X), {"draws": -1}, "positive"),
    ],
)
def test_bad_arguments_are_refused(arguments, options, problem):
    with pytest.raises(ValueError, match=problem):
        trade_off(*arguments, **options)


@pytest.mark.parametrize(
    "mechanism",
    [
        lambda d, rng, count: np.full((count, 1), np.nan),
        lambda d, rng, count: np.zeros((count + 1, 1)),
        lambda d, rng, count: np.zeros((count, 0)),
        lambda d, rng, count: 3.0,
    ],
)
def test_releases_that_are_no_table_of_numbers_are_refused(mechanism):
    with pytest.raises(ValueError, match="mechanism"):
        trade_off(mechanism, 0, 1, promise=(1.0, 0.1), batch=True, draws=100)


def test_releases_of_changing_length_are_refused():
    lengths = iter(range(1, 1000))
    with pytest.raises(ValueError, match="same number"):
        trade_off(lambda d, rng: np.zeros(next(lengths)), 0, 1, promise=(1.0, 0.1), draws=50)


@pytest.mark.parametrize("thing", ["plan", 3, None, object()])
def test_what_is_no_mechanism_is_refused(thing):
    with pytest.raises(TypeError, match="mechanism"):
        trade_off(thing, X)
