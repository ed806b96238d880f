"""Averages are those of joint draws, and cover what they are of."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import privgp
from privgp import PrivateGPClassifier, PrivateGPRegressor
from privgp.gp.inference.averages import COARSE, FINE, Sums

rng = np.random.default_rng(3)
X = rng.uniform(0, 1, (400, 2))
TRUTH = np.sin(4 * X[:, 0]) * np.cos(3 * X[:, 1])
LEARNED: dict[str, Any] = {"epsilon": 2.0, "delta": 1e-5, "random_state": 0}
SETTINGS = LEARNED | {"hyperparameters": "fixed"}
POINTS = rng.uniform(0, 1, (200, 2))
BY = np.array(["west", "east"])[(POINTS[:, 0] > 0.5).astype(int)]
WEIGHTS = rng.uniform(0, 2, 200)
OUTCOMES: dict[str, tuple[Any, Any]] = {
    "number": (PrivateGPRegressor(y_bounds=(-2, 2), **LEARNED), TRUTH + rng.normal(0, 0.2, 400)),
    "rate": (
        PrivateGPRegressor(y_bounds=(0, 20), likelihood="poisson", max_change=1, **SETTINGS),
        rng.poisson(3 + 2 * TRUTH).astype(float),
    ),
    "several": (
        PrivateGPRegressor(y_bounds=((-2, 2), (-2, 2)), **SETTINGS),
        np.column_stack([TRUTH, -TRUTH]),
    ),
    "classes": (
        PrivateGPClassifier(classes=["no", "yes"], **SETTINGS),
        np.where(TRUTH + rng.normal(0, 0.3, 400) > 0, "yes", "no"),
    ),
}


@pytest.fixture(scope="module", params=OUTCOMES)
def fitted(request: pytest.FixtureRequest) -> Any:
    model, y = OUTCOMES[request.param]
    return model.fit(X, y)


def by_draws(model: Any, count: int = 4000) -> np.ndarray:
    """Averages of joint draws, (labels, quantities, draws): what every answer must agree with."""
    drawn = model.sample_y(POINTS, count, 5).reshape(len(POINTS), -1, count)
    shares = np.stack([WEIGHTS * (label == BY) for label in ("east", "west")])
    shares /= shares.sum(axis=1, keepdims=True)
    return np.einsum("ap,pqd->aqd", shares, drawn)


def test_averages_are_those_of_joint_draws(fitted):
    found = fitted.average(POINTS, weights=WEIGHTS, by=BY)
    expected = by_draws(fitted)
    shape = expected.shape[:2]
    assert found.labels == ("east", "west")
    std = expected.std(axis=2)
    assert np.all(np.abs(found.mean.reshape(shape) - expected.mean(axis=2)) < 0.08 * std + 1e-3)
    assert np.all(np.abs(found.std.reshape(shape) / std - 1.0) < 0.06)
    low, high = np.quantile(expected, [0.05, 0.95], axis=2)
    assert np.all(np.abs(found.low.reshape(shape) - low) < 0.15 * std)
    assert np.all(np.abs(found.high.reshape(shape) - high) < 0.15 * std)
    covariance = found.covariance.reshape(2, 2, -1)
    for place in range(shape[1]):
        wanted = np.cov(expected[:, place])
        scale = np.sqrt(np.outer(np.diag(wanted), np.diag(wanted)))
        assert np.all(np.abs(covariance[:, :, place] - wanted) < 0.1 * scale)


def test_differences_are_those_of_joint_draws(fitted):
    found = fitted.average(POINTS, weights=WEIGHTS, by=BY).difference("east", "west")
    expected = np.subtract(*by_draws(fitted))
    std = expected.std(axis=1)
    assert np.all(np.abs(np.ravel(found.mean) - expected.mean(axis=1)) < 0.08 * std + 1e-3)
    assert np.all(np.abs(np.ravel(found.std) / std - 1.0) < 0.08)
    low, high = np.quantile(expected, [0.05, 0.95], axis=1)
    assert np.all(np.abs(np.ravel(found.low) - low) < 0.2 * std)
    assert np.all(np.abs(np.ravel(found.high) - high) < 0.2 * std)
    assert np.all(np.abs(np.ravel(found.above) - (expected > 0).mean(axis=1)) < 0.05)


def test_one_row_is_what_is_predicted_there(fitted):
    found = fitted.average(POINTS[:3], by=[2, 0, 1])
    low, high = fitted.interval(POINTS[[1, 2, 0]])
    mean = fitted.predict_proba if hasattr(fitted, "classes") else fitted.predict
    assert found.labels == (0, 1, 2)
    assert np.allclose(found.mean, mean(POINTS[[1, 2, 0]]))
    width = np.mean(high - low)
    assert np.all(np.abs(found.low - low) < 0.06 * width)
    assert np.all(np.abs(found.high - high) < 0.06 * width)


def test_averages_of_numbers_are_exact():
    model = OUTCOMES["number"][0].fit(X, OUTCOMES["number"][1])
    found = model.average(POINTS, weights=WEIGHTS, by=BY)
    mean, covariance = model.predict(POINTS, return_cov=True)
    shares = np.stack([WEIGHTS * (label == BY) for label in ("east", "west")])
    shares /= shares.sum(axis=1, keepdims=True)
    assert np.allclose(found.mean, shares @ mean, atol=1e-10)
    assert np.allclose(found.covariance, shares @ covariance @ shares.T, atol=1e-9)
    assert np.allclose(found.std**2, np.diag(found.covariance))


def test_averages_over_many_points_are_close_to_exact():
    model = PrivateGPRegressor(y_bounds=(-2, 2), **SETTINGS)
    model.fit(X, TRUTH)
    many = rng.uniform(0, 1, (20_000, 2))
    by = np.floor(4 * many[:, 0]) * 4 + np.floor(4 * many[:, 1])
    found = model.average(many, by=by)
    for place in (0, 7, 15):
        mean, covariance = model.predict(many[by == place][:800], return_cov=True)
        std = np.sqrt(covariance.mean())
        assert found.mean[place] == pytest.approx(mean.mean(), abs=0.15 * std)
        assert found.std[place] == pytest.approx(std, rel=0.05)
    assert np.linalg.eigvalsh(found.covariance).min() > -1e-9


def test_few_points_stand_for_many_and_weigh_the_same():
    points = rng.normal(size=(30_000, 2))
    points[:, 1] = rng.integers(0, 2, len(points))  # such as a category
    weights = rng.uniform(size=len(points))
    places = rng.integers(0, 50, len(points))
    sums = Sums.of(points, weights, places)
    for cells, most in ((sums.fine, FINE), (sums.coarse, COARSE)):
        assert len(cells.points) <= most
        assert np.allclose(cells.shares.sum(axis=1), 1.0)
        assert {*np.unique(cells.points[:, 1])} == {0.0, 1.0}
        wanted = np.bincount(places, weights * points[:, 0]) / np.bincount(places, weights)
        assert np.allclose(cells.shares @ cells.points[:, 0], wanted)


def test_few_points_are_kept_as_they_are():
    points = np.repeat(rng.normal(size=(40, 2)), 1000, axis=0)
    sums = Sums.of(points, np.ones(len(points)), np.zeros(len(points), dtype=np.int64))
    assert sums.fine is sums.coarse
    assert len(sums.fine.points) == 40
    assert np.allclose(sums.fine.shares.toarray(), 1 / 40)


def test_columns_of_the_table_are_named():
    frame = pd.DataFrame({"x": X[:, 0], "y": X[:, 1]})
    model = PrivateGPRegressor(y_bounds=(-2, 2), **SETTINGS)
    model.fit(frame, TRUTH)
    ordered = pd.Categorical(BY, categories=["west", "north", "east"], ordered=True)
    new = pd.DataFrame({"x": POINTS[:, 0], "y": POINTS[:, 1], "region": ordered, "n": WEIGHTS})
    found = model.average(new, weights="n", by="region")
    assert found.labels == ("west", "east")
    table = found.to_frame()
    assert isinstance(table, pd.DataFrame)
    assert [*table.columns] == ["region", "mean", "std", "low", "high"]
    same = model.average(pl.from_pandas(new.astype({"region": str})), weights="n", by="region")
    assert isinstance(same.to_frame(), pl.DataFrame)
    assert np.allclose(same.mean, found.mean[::-1])
    whole = model.average(new[["x", "y"]])
    assert whole.labels == ("all",)
    assert "region" not in repr(whole)
    shown = repr(found)
    for label, mean, low, high in zip(found.labels, found.mean, found.low, found.high, strict=True):
        (line,) = [each for each in shown.splitlines() if each.startswith(f"  {label}: ")]
        numbers = [float(each) for each in re.findall(r"-?[0-9.]+", line)]
        assert np.allclose(numbers, [mean, low, high], rtol=1e-3)
    assert "90% interval" in shown
    assert "<table>" in found._repr_html_()


@pytest.mark.filterwarnings("ignore:The file contains")
def test_a_loaded_release_averages_the_same(fitted, tmp_path):
    fitted.save(tmp_path / "a.privgp")
    loaded = privgp.load(tmp_path / "a.privgp")
    a, b = (model.average(POINTS, by=BY) for model in (loaded, fitted))
    for name in ("mean", "std", "low", "high", "covariance", "draws"):
        assert np.array_equal(getattr(a, name), getattr(b, name))


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"weights": [1.0]}, "weights must be 200"),
        ({"weights": -np.ones(200)}, "none negative"),
        ({"weights": np.full(200, np.nan)}, "finite"),
        ({"weights": np.zeros(200)}, "weights are 0 for all rows of 'all'"),
        ({"weights": ["a"] * 200}, "finite numbers"),
        ({"by": ["a"]}, "by must have a label"),
        ({"by": [None] * 200}, "by has no label in row 1"),
        ({"by": "region"}, "table|column"),
        ({"coverage": 2}, "coverage"),
    ],
)
def test_wrong_averages_are_refused(asked, message):
    model = PrivateGPRegressor(y_bounds=(-2, 2), **SETTINGS)
    with pytest.raises(ValueError, match=message):
        model.fit(X, TRUTH).average(POINTS, **asked)


def test_a_difference_of_what_is_no_label_is_refused():
    model = PrivateGPRegressor(y_bounds=(-2, 2), **SETTINGS)
    found = model.fit(X, TRUTH).average(POINTS, by=BY)
    with pytest.raises(ValueError, match="'north' is not a label: the labels are 'east', 'west'"):
        found.difference("north", "east")


def test_too_many_averages_are_refused():
    points = rng.uniform(size=(9000, 2))
    with pytest.raises(ValueError, match="at most 3,000 averages"):
        Sums.of(points, np.ones(9000), np.arange(9000))
