"""Draws, bands, thresholds and tables agree with one another for every kind of outcome."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import binom
from sklearn.gaussian_process.kernels import ConstantKernel, Matern

import privgp
from privgp import (
    Count,
    Label,
    Number,
    PrivateGP,
    PrivateGPClassifier,
    PrivateGPRegressor,
)

rng = np.random.default_rng(0)
X = rng.uniform(0, 10, (300, 1))
NUMBER = np.sin(X[:, 0]) + rng.normal(0, 0.3, 300)
NEW = np.linspace(0.2, 9.8, 15)[:, None]
LEARNED: dict[str, Any] = {"epsilon": 3.0, "delta": 1e-5, "random_state": 0}
SETTINGS = LEARNED | {"hyperparameters": "fixed"}
OUTCOMES: dict[str, tuple[Any, Any]] = {
    "number": (PrivateGPRegressor(y_bounds=(-2, 2), **LEARNED), NUMBER),
    "rate": (
        PrivateGPRegressor(y_bounds=(0, 20), likelihood="poisson", max_change=1, **SETTINGS),
        rng.poisson(3 + 2 * np.sin(X[:, 0])).astype(float),
    ),
    "several": (
        PrivateGPRegressor(y_bounds=((-2, 2), (0, 4)), **SETTINGS),
        np.column_stack([NUMBER, NUMBER**2]),
    ),
    "two classes": (
        PrivateGPClassifier(classes=["no", "yes"], **SETTINGS),
        np.where(NUMBER > 0, "yes", "no"),
    ),
    "three classes": (
        PrivateGPClassifier(classes=["a", "b", "c"], **SETTINGS),
        np.array(list("abc"))[np.digitize(NUMBER, [-0.4, 0.4])],
    ),
    "targets": (
        PrivateGPRegressor(y_bounds=(-2, 2), reconstruct="unbiased", targets=NEW, **SETTINGS),
        NUMBER,
    ),
}


@pytest.fixture(scope="module", params=OUTCOMES)
def fitted(request: pytest.FixtureRequest) -> Any:
    model, y = OUTCOMES[request.param]
    return model.fit(X, y)


def mean_of(model: Any) -> np.ndarray:
    """What is predicted, (rows, quantities)."""
    found = model.predict_proba(NEW) if hasattr(model, "classes") else model.predict(NEW)
    return found.reshape(len(NEW), -1)


def drawn(model: Any, count: int) -> np.ndarray:
    """(rows, quantities, draws)"""
    return model.sample_y(NEW, count, 1).reshape(len(NEW), -1, count)


def test_the_mean_of_many_draws_is_what_is_predicted(fitted):
    found = drawn(fitted, 4000)
    error = found.std(axis=2) / np.sqrt(4000)
    assert np.all(np.abs(found.mean(axis=2) - mean_of(fitted)) < 6 * error + 0.02)


def test_draws_repeat_and_have_the_shape_of_scikit_learn(fitted):
    one = fitted.sample_y(NEW)
    quantities = mean_of(fitted).shape[1]
    assert one.shape == ((len(NEW), 1) if quantities == 1 else (len(NEW), quantities, 1))
    assert np.array_equal(one, fitted.sample_y(NEW))
    assert not np.array_equal(one, fitted.sample_y(NEW, random_state=1))


def test_covariances_of_draws_are_those_of_predictions():
    model = OUTCOMES["number"][0].fit(X, NUMBER)
    covariance = model.predict(NEW, return_cov=True)[1]
    found = np.cov(model.sample_y(NEW, 8000))
    scale = np.sqrt(np.outer(np.diag(covariance), np.diag(covariance)))
    assert np.all(np.abs(found - covariance) < 0.08 * scale)


def test_probabilities_of_draws_sum_to_one():
    model, y = OUTCOMES["three classes"]
    found = model.fit(X, y).sample_y(NEW, 50)
    assert np.allclose(found.sum(axis=1), 1.0)
    assert np.all(found >= 0.0)


def test_an_interval_ends_where_its_share_exceeds(fitted):
    low, high = (each.reshape(len(NEW), -1) for each in fitted.interval(NEW, 0.8))
    outcomes = 2 if getattr(fitted, "output_names_", None) else 1
    for row in range(0, len(NEW), 5):
        for place in range(low.shape[1]):
            for end, share in ((low, 0.9), (high, 0.1)):
                t = end[row, place]
                asked: Any = [t] * outcomes if outcomes > 1 else t
                found = fitted.exceeds(NEW, asked).reshape(len(NEW), -1)
                if hasattr(fitted, "classes") and low.shape[1] > 2:
                    continue  # intervals of several classes are widened so that they sum to 1
                assert found[row, place] == pytest.approx(share, abs=2e-3)


def test_a_share_that_exceeds_is_the_share_of_draws(fitted):
    t = float(np.median(mean_of(fitted)))
    found = fitted.exceeds(NEW, t).reshape(len(NEW), -1)
    share = (drawn(fitted, 4000) > t).mean(axis=2)
    assert np.all((found >= 0.0) & (found <= 1.0))
    assert np.all(np.abs(found - share) < 0.05)


def test_a_band_holds_whole_draws_as_often_as_it_says(fitted):
    low, high = (each.reshape(len(NEW), -1) for each in fitted.interval(NEW, simultaneous=True))
    own_low, own_high = (each.reshape(len(NEW), -1) for each in fitted.interval(NEW))
    assert np.all(low <= own_low + 1e-9)
    assert np.all(high >= own_high - 1e-9)
    found = np.clip(drawn(fitted, 4000).transpose(2, 0, 1), low.min(axis=0), high.max(axis=0))
    inside = np.all((found >= low - 1e-9) & (found <= high + 1e-9), axis=1)
    assert np.all(np.abs(inside.mean(axis=0) - 0.9) < 0.03)


def test_a_band_over_many_rows_is_that_over_some_of_them():
    model = OUTCOMES["number"][0].fit(X, NUMBER)
    many = np.linspace(0, 10, 3000)[:, None]
    few = many[::10]
    whole, some = (model.interval(each, simultaneous=True) for each in (many, few))
    width = (whole[1] - whole[0])[::10]
    assert np.all(np.abs(width / (some[1] - some[0]) - 1.0) < 0.05)


def test_a_frame_holds_what_is_predicted(fitted):
    frame = fitted.predict_frame(NEW)
    assert isinstance(frame, pd.DataFrame)
    means = frame.filter(regex="mean|probability_").to_numpy()
    assert np.allclose(means, mean_of(fitted))
    low, _ = fitted.interval(NEW)
    assert np.allclose(frame.filter(regex="low").to_numpy(), low.reshape(len(NEW), -1))
    band = fitted.predict_frame(NEW, simultaneous=True)
    assert np.allclose(
        band.filter(regex="high").to_numpy(),
        fitted.interval(NEW, simultaneous=True)[1].reshape(len(NEW), -1),
    )


def test_a_frame_is_of_the_library_of_the_rows_with_their_index():
    model = PrivateGPRegressor(y_bounds=(-2, 2), **SETTINGS)
    model.fit(pd.DataFrame({"x": X[:, 0]}), NUMBER)
    rows = pd.DataFrame({"x": NEW[:, 0]}, index=[f"r{i}" for i in range(len(NEW))])
    assert model.predict_frame(rows).index.equals(rows.index)
    assert isinstance(model.predict_frame(pl.DataFrame({"x": NEW[:, 0]})), pl.DataFrame)


@pytest.mark.filterwarnings("ignore:The file contains")
def test_a_loaded_release_answers_the_same(fitted, tmp_path):
    fitted.save(tmp_path / "a.privgp")
    loaded = privgp.load(tmp_path / "a.privgp")
    assert np.array_equal(loaded.sample_y(NEW, 3), fitted.sample_y(NEW, 3))
    assert np.array_equal(loaded.exceeds(NEW, 0.5), fitted.exceeds(NEW, 0.5))
    bands = (each.interval(NEW, simultaneous=True) for each in (loaded, fitted))
    assert np.array_equal(*map(np.array, bands))


@pytest.fixture(scope="module")
def mixed() -> tuple[Any, pl.DataFrame]:
    table = pl.DataFrame(
        {"x": X[:, 0], "h": NUMBER, "n": rng.poisson(3, 300), "s": np.where(NUMBER > 0, "y", "n")}
    )
    outcomes = {"h": Number(-2, 2), "n": Count(high=10), "s": Label("n", "y")}
    model = PrivateGP(outcomes, inputs=["x"], **SETTINGS)
    return model.fit(table), pl.DataFrame({"x": NEW[:, 0], "other": ["z"] * len(NEW)})


def test_mixed_outcomes_answer_alike(mixed):
    model, new = mixed
    assert model.sample_y(new, 7).shape == (len(NEW), 4, 7)
    found = model.exceeds(new, {"h": 0.0, "n": 3.0, "s": 0.5})
    assert found.shape == (len(NEW), 4)
    assert np.allclose(found[:, 2] + found[:, 3], 1.0)
    frame = model.predict(new)
    low, high = model.interval(new)
    names = ["h_low", "n_low", "s_low_n", "s_low_y"]
    assert np.allclose(frame.select(names).to_numpy(), low)
    wide = model.predict(new, simultaneous=True)
    assert np.all(wide.select(names).to_numpy() <= low + 1e-9)
    assert np.allclose(model.interval(new, simultaneous=True)[0], wide.select(names).to_numpy())
    assert np.all(high >= low)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: m.sample_y(NEW, 0), "n_samples"),
        (lambda m: m.sample_y(NEW, True), "n_samples"),
        (lambda m: m.sample_y(NEW, 1.5), "n_samples"),
        (lambda m: m.sample_y(np.zeros((10_001, 1))), "10000 rows"),
        (lambda m: m.exceeds(NEW, np.nan), "t must be a finite number"),
        (lambda m: m.exceeds(NEW, [1, 2]), "t must be a finite number"),
        (lambda m: m.exceeds(NEW, "high"), "t must be a finite number"),
        (lambda m: m.exceeds(NEW, {"y": 1}), "t must be a finite number"),
        (lambda m: m.interval(NEW, observation=True, simultaneous=True), "simultaneous"),
        (lambda m: m.predict_frame(NEW, observation=True, simultaneous=True), "simultaneous"),
        (lambda m: m.predict_frame(NEW, 1.0), "coverage"),
        (lambda m: m.interval(NEW, 0.0, simultaneous=True), "coverage"),
    ],
)
def test_wrong_questions_are_refused(call, message):
    model = PrivateGPRegressor(y_bounds=(-2, 2), **SETTINGS)
    with pytest.raises(ValueError, match=message):
        call(model.fit(X, NUMBER))


def test_a_threshold_beyond_the_bounds_is_certain():
    model = PrivateGPRegressor(y_bounds=(-2, 2), **SETTINGS).fit(X, NUMBER)
    assert np.array_equal(model.exceeds(NEW, -2.5), np.ones(len(NEW)))
    assert np.array_equal(model.exceeds(NEW, 2.0), np.zeros(len(NEW)))


def test_bands_hold_whole_functions_of_the_prior_as_often_as_they_say():
    """Of 200 functions 157 to 197 are held but for a probability of 1e-6; narrow bands hold fewer, wide ones
    more."""
    kernel, noise = ConstantKernel(1.0) * Matern(0.2, nu=2.5), 0.3
    rows, places = np.linspace(0, 1, 40)[:, None], np.linspace(0.01, 0.99, 30)[:, None]
    root = np.linalg.cholesky(kernel(np.vstack([rows, places])) + 1e-9 * np.eye(70))
    held, narrow, wide = 0, 0, 0
    for seed in range(200):
        own = np.random.default_rng([8, seed])
        f = root @ own.normal(size=70)
        given = LEARNED | {"hyperparameters": "fixed", "random_state": seed}
        model = PrivateGPRegressor(
            kernel=kernel, noise_variance=noise**2, y_bounds=(-8, 8), **given
        )
        model.fit(rows, f[:40] + noise * own.normal(size=40))
        low, high = model.interval(places, simultaneous=True)
        far = np.abs(f[40:] - 0.5 * (low + high)) / (0.5 * (high - low))
        held, narrow = held + (far.max() <= 1.0), narrow + (far.max() <= 0.7)
        wide += far.max() <= 1.8
    first, last = binom.ppf([5e-7, 1.0 - 5e-7], 200, 0.9)
    assert narrow < first <= held <= last < wide
