"""Private records with private weights: moves by brute force, what is learned, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone

from privgp import (
    Label,
    Number,
    Presence,
    PrivateGP,
    PrivateGPClassifier,
    PrivateGPRegressor,
    load,
    open_table,
)
from privgp.vault.measure import exact

RECORDS = {"protect": "records", "x_bounds": (0, 10), "random_state": 0}
NUMBER = {**RECORDS, "y_bounds": (0, 100), "epsilon": 1.0, "delta": 1e-5}
RNG = np.random.default_rng(0)
X = RNG.uniform(0.0, 10.0, (2000, 1))
OFTEN = (
    RNG.random(2000) < 0.5
)  # asked too often: a group with other outputs, which weights make up for
F = 40.0 + 20.0 * np.sin(X[:, 0] / 2.0)
Y = F + np.where(OFTEN, 20.0, 0.0) + RNG.normal(0.0, 5.0, 2000)
WEIGHTS = np.where(OFTEN, 1.0, 9.0)
AT = np.linspace(0.5, 9.5, 30)[:, None]
MEAN = 40.0 + 20.0 * np.sin(AT[:, 0] / 2.0) + 2.0


def error(model) -> float:
    return float(np.sqrt(np.mean((model.predict(AT) - MEAN) ** 2)))


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_the_released_function_is_the_weighted_mean(mechanism, tmp_path):
    asked = PrivateGPRegressor(**NUMBER, mechanism=mechanism)
    plain, weighted = clone(asked), clone(asked).set_params(max_weight=9.0)
    plain.fit(X, Y)
    weighted.fit(X, Y, sample_weight=WEIGHTS)
    assert error(weighted) < 0.5 * error(plain)
    low, high = weighted.interval(AT)
    assert np.mean((low <= MEAN) & (high >= MEAN)) > 0.6
    weighted.save(tmp_path / "w.privgp")
    loaded = load(tmp_path / "w.privgp")
    np.testing.assert_array_equal(loaded.predict(AT), weighted.predict(AT))
    assert loaded.max_weight == 9.0


def test_equal_weights_at_the_bound_move_what_no_weights_move():
    plan = PrivateGPRegressor(**NUMBER, max_weight=3.0).plan(2000)
    strategy, ones = plan.strategy, np.ones(2000)
    assert strategy.weighted
    plain = replace(strategy, weighted=False)
    np.testing.assert_array_equal(
        exact(strategy, (X, Y, ones), (0, 100)), exact(plain, (X, Y), (0, 100))
    )
    assert strategy.sensitivity() == plain.sensitivity()


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("inputs", [1, 4])
def test_no_replaced_record_moves_more_than_the_sensitivity(mechanism, inputs):
    if inputs == 4 and mechanism == "laplace":
        pytest.skip("features need Gaussian noise")
    bounds = [(0, 1)] * inputs
    model = PrivateGPRegressor(
        **{**NUMBER, "x_bounds": bounds}, mechanism=mechanism, max_weight=1.0
    )
    strategy = model.plan(3).strategy
    rng = np.random.default_rng(1)
    rest = rng.uniform(size=(2, inputs)), rng.uniform(0, 100, 2), rng.uniform(size=2)
    order = 1 if mechanism == "laplace" else 2
    places = rng.uniform(size=(4, inputs))
    each = [
        exact(
            strategy,
            (np.vstack([rest[0], x]), np.append(rest[1], y), np.append(rest[2], w)),
            (0, 100),
        )
        for x, y, w in product(places, (0.0, 50.0, 100.0), (0.0, 0.3, 1.0))
    ]
    moved = [np.linalg.norm(a - b, order) for a in each for b in each]
    assert max(moved) <= strategy.sensitivity()
    assert max(moved) >= 0.8 * strategy.sensitivity()


def test_weights_above_the_bound_and_below_zero_are_moved_to_it():
    model = PrivateGPRegressor(**NUMBER, max_weight=2.0, hyperparameters="fixed")
    given = np.where(OFTEN, 1e9, -5.0)
    one = clone(model).fit(X, Y, sample_weight=given)
    other = clone(model).fit(X, Y, sample_weight=np.where(OFTEN, 2.0, 0.0))
    np.testing.assert_array_equal(one.predict(AT), other.predict(AT))


def test_people_labels_and_several_outcomes_have_weights():
    people = np.repeat(np.arange(500), 4)
    fixed = {"hyperparameters": "fixed", "max_weight": 9.0}
    grouped = PrivateGPRegressor(**{**NUMBER, "epsilon": 8.0}, **fixed)
    grouped.fit(X, Y, groups=people, sample_weight=WEIGHTS)
    assert error(grouped) < 8.0
    labels = np.where(OFTEN, "often", "seldom")
    asked = {**RECORDS, "epsilon": 8.0, "delta": 1e-5, **fixed}
    for classes in (["often", "seldom"], ["often", "seldom", "never"]):
        model = PrivateGPClassifier(classes=classes, **asked)
        found = model.fit(X, labels, sample_weight=WEIGHTS).predict_proba(AT)
        assert abs(found[:, [*model.classes_].index("often")].mean() - 0.1) < 0.05
    table = {"x": X[:, 0].copy(), "y": Y, "kind": labels, "w": WEIGHTS}
    outcomes = {"y": Number(0, 100), "kind": Label("often", "seldom")}
    mixed = PrivateGP(outcomes, **{**asked, "x_bounds": {"x": (0, 10)}})
    frame = mixed.fit(table, inputs=["x"], sample_weight="w").predict_frame({"x": AT[:, 0]})
    assert np.sqrt(np.mean((np.asarray(frame["y_mean"]) - MEAN) ** 2)) < 5.0


def test_batches_add_up():
    model = PrivateGPRegressor(**{**NUMBER, "epsilon": 4.0}, max_weight=9.0)
    half = slice(None, 1000), slice(1000, None)
    model.fit(X[half[0]], Y[half[0]], sample_weight=WEIGHTS[half[0]])
    model.update(X[half[1]], Y[half[1]], sample_weight=WEIGHTS[half[1]])
    assert error(model) < 6.0
    with pytest.raises(ValueError, match="sample_weight must be given"):
        model.update(X[half[1]], Y[half[1]])


def test_a_plan_reads_no_weight_and_says_what_it_expects():
    model = PrivateGPRegressor(**NUMBER, max_weight=9.0)
    one, other = model.plan(2000), model.plan(X, sample_weight=WEIGHTS)
    assert one.hash == other.hash
    assert "weights" in one.summary()
    assert one.expected_error() > PrivateGPRegressor(**NUMBER).plan(2000).expected_error()
    assert "weight" in model.fit(X, Y, sample_weight=WEIGHTS).guarantee_.describe()


REFUSED = {
    "no bound": ({}, {"sample_weight": WEIGHTS}, "declare max_weight"),
    "no weights": ({"max_weight": 2.0}, {}, "sample_weight must be given"),
    "missing": ({"max_weight": 2.0}, {"sample_weight": WEIGHTS + np.nan}, "one finite number"),
    "too few": ({"max_weight": 2.0}, {"sample_weight": WEIGHTS[:9]}, "sample_weight|rows"),
    "text": ({"max_weight": 2.0}, {"sample_weight": ["much"] * 2000}, "one finite number"),
    "zero": ({"max_weight": 0.0}, {"sample_weight": WEIGHTS}, "max_weight"),
    "public": ({"max_weight": 2.0, "protect": "outputs", "x_bounds": None}, {}, "need no bound"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_go_together_is_refused_before_anything_is_spent(name):
    settings, given, words = REFUSED[name]
    model = PrivateGPRegressor(**{**NUMBER, **settings})
    with pytest.raises(ValueError, match=words):
        model.fit(X, Y, **given)
    assert not hasattr(model, "guarantee_")


def test_presence_has_no_weights():
    model = PrivateGP(Presence(), x_bounds={"x": (0, 10)}, max_weight=2.0)
    with pytest.raises(ValueError, match="Presence"):
        model.fit({"x": X[:, 0].copy(), "w": WEIGHTS}, sample_weight="w")


def test_weights_in_files_are_refused(tmp_path):
    """They would be read as a public column, whose cells errors may quote."""
    path = str(tmp_path / "t.csv")
    pl.DataFrame({"x": X[:, 0].copy(), "y": Y, "w": WEIGHTS}).write_csv(path)
    read = open_table(path, ["x"], "y", weights="w")
    with pytest.raises(ValueError, match="read the table first"):
        PrivateGPRegressor(**NUMBER, max_weight=9.0).fit(read.inputs, read.output)
    settings = {**RECORDS, "x_bounds": {"x": (0, 10)}, "max_weight": 9.0}
    mixed = PrivateGP({"y": Number(0, 100)}, **settings)
    with pytest.raises(ValueError, match="read the table first"):
        mixed.fit(open_table(path, ["x"], "y"), sample_weight="w")
