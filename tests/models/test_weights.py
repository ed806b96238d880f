"""Public sample weights: what is measured, what the release is of, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal

import privgp
from privgp import Count, Label, Number, PrivateGP, PrivateGPClassifier, PrivateGPRegressor
from privgp.plan.inputs.tally import find_rungs
from privgp.vault.measure import exact

rng = np.random.default_rng(3)
ROWS = 60
X = np.round(rng.uniform(0, 5, (ROWS, 1)), 1)
WEIGHTS = rng.choice([1.0, 2.5, 5.0], ROWS)
Y = np.where(WEIGHTS > 2, 0.7, 0.2)
PEOPLE = np.repeat(np.arange(ROWS // 3), 3)
SETTINGS: dict[str, Any] = {"epsilon": 2.0, "delta": 1e-5, "random_state": 0}
FIXED = {**SETTINGS, "hyperparameters": "fixed"}


def regressor(**given: Any) -> PrivateGPRegressor:
    return PrivateGPRegressor(**{"y_bounds": (0, 1), **FIXED, **given})


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_the_sums_are_those_of_weighted_outputs(mechanism):
    strategy = regressor(mechanism=mechanism).plan(X, sample_weight=WEIGHTS).strategy
    outputs = rng.uniform(0, 1, ROWS)
    u = (2 * outputs - 1) * WEIGHTS / 5.0
    by_hand = sum(strategy.matrix[:, strategy.index[i]] * u[i] for i in range(ROWS))
    found = exact(strategy, outputs, (0, 1))[: len(strategy.matrix)]
    assert_allclose(found, by_hand, atol=1e-12)


@pytest.mark.parametrize("groups", [None, PEOPLE])
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_no_person_moves_the_sums_further_than_stated(mechanism, groups):
    strategy = regressor(mechanism=mechanism).plan(X, groups=groups, sample_weight=WEIGHTS).strategy
    order, people = (1 if mechanism == "laplace" else 2), PEOPLE if groups is not None else None
    whose, moves = np.arange(ROWS) if people is None else people, []
    for person in np.unique(whose):
        mine = np.flatnonzero(whose == person)
        for corner in range(4 ** len(mine)):
            one, other = np.full(ROWS, 0.5), np.full(ROWS, 0.5)
            for place, row in enumerate(mine):
                which = corner // 4**place % 4
                one[row], other[row] = which % 2, which // 2
            moved = exact(strategy, one, (0, 1)) - exact(strategy, other, (0, 1))
            moves.append(np.linalg.norm(moved, order))
    assert 0.99 * strategy.sensitivity() <= max(moves) <= strategy.sensitivity()


def test_noise_is_no_larger_than_without_weights():
    for mechanism in ("laplace", "gaussian"):
        weighted = regressor(mechanism=mechanism).plan(X, sample_weight=WEIGHTS)
        assert weighted.strategy.sensitivity() <= regressor(mechanism=mechanism).plan(
            X
        ).strategy.sensitivity() * (1 + 1e-9)


def test_equal_weights_change_nothing():
    plain = regressor().fit(X, Y)
    weighted = regressor().fit(X, Y, sample_weight=np.full(ROWS, 7.0))
    assert_allclose(weighted.predict(X), plain.predict(X), rtol=1e-9)
    assert "sample weights" not in weighted.plan_.summary()


def many(seed: int = 0, rows: int = 800) -> tuple[Any, ...]:
    """Rows of two kinds at the same inputs, one with four times the weight."""
    rng = np.random.default_rng(seed)
    x, heavy = rng.uniform(0, 1, (rows, 1)), rng.uniform(size=rows) < 0.5
    return x, heavy, np.where(heavy, 4.0, 1.0), rng


NEW = np.linspace(0.1, 0.9, 5)[:, None]


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_the_release_is_of_weighted_means(mechanism):
    x, heavy, w, rng = many(rows=150)
    y = np.where(heavy, 2.0, 7.0) + rng.normal(0, 0.5, len(x))
    model = PrivateGPRegressor(
        y_bounds=(0, 10), epsilon=9.0, delta=1e-5, mechanism=mechanism, random_state=0
    )
    model.fit(x, y, sample_weight=w)
    assert np.abs(model.predict(NEW) - 3.0).mean() < 0.6
    again = model.update(x + 1e-4, y, sample_weight=w).refine(x, y, 2.0, 1e-6, sample_weight=w)
    assert np.abs(again.predict(NEW) - 3.0).mean() < 0.6


def test_rates_and_probabilities_are_weighted_too():
    x, heavy, w, rng = many(1)
    x = np.round(x, 1)
    counts = rng.poisson(np.where(heavy, 2.0, 7.0))
    rates = PrivateGPRegressor(
        y_bounds=(0, 20), likelihood="poisson", max_change=2, **{**FIXED, "epsilon": 9.0}
    ).fit(x, counts, sample_weight=w)
    assert rates.predict(NEW).mean() == pytest.approx(3.0, abs=0.4)
    labels = (rng.uniform(size=len(x)) < np.where(heavy, 0.2, 0.8)).astype(int)
    for classes in ((0, 1), (0, 1, 2)):
        model = PrivateGPClassifier(classes=classes, **{**FIXED, "epsilon": 9.0})
        found = model.fit(x, labels, sample_weight=w).predict_proba(NEW)[:, 1].mean()
        assert found == pytest.approx(0.32, abs=0.06)


def test_private_gp_takes_a_column_or_its_name():
    x, heavy, w, rng = many(2, 600)
    table = pd.DataFrame({"x": x[:, 0], "w": w, "y": np.where(heavy, 2.0, 7.0), "l": heavy * 1})
    table["n"] = rng.poisson(2.0, len(x))
    outcomes = {"y": Number(0, 10), "l": Label(0, 1), "n": Count(2, high=9)}
    model = PrivateGP(outcomes, inputs=["x"], **FIXED)
    named = model.plan(table, sample_weight="w")
    assert named.hash == model.plan(table, sample_weight=w).hash != model.plan(table).hash
    assert "sample weights worth 4" in named.summary()
    model.fit(table, sample_weight="w", plan=named)
    assert model.predict(pd.DataFrame({"x": [0.5]}))["y_mean"][0] == pytest.approx(3.0, abs=1.0)
    with pytest.raises(ValueError, match="no column 'v', which sample_weight names"):
        model.plan(table, sample_weight="v")
    with pytest.raises(ValueError, match="private outcome"):
        model.plan(table, sample_weight="y")


def test_many_rows_are_told_apart_by_their_weights(monkeypatch):
    monkeypatch.setattr("privgp.models.rows.fit.STREAMED", 100)
    x, heavy, w, _ = many(3)
    x = np.round(x, 1)  # rows of both weights at every input
    y = np.where(heavy, 2.0, 7.0)
    model = PrivateGPRegressor(y_bounds=(0, 10), **{**SETTINGS, "epsilon": 8.0})
    plan = model.plan(x, sample_weight=w)
    assert plan.strategy.tally.row_weights is not None
    assert plan.strategy.effective_rows == pytest.approx(w.sum() ** 2 / (w**2).sum(), rel=1e-6)
    model.fit(x, y, sample_weight=w, plan=plan)
    assert np.abs(model.predict(NEW) - 3.0).mean() < 0.2
    with pytest.raises(ValueError, match="made for other"):
        model.fit(x, y, sample_weight=w[::-1], plan=plan)


def test_weights_of_files_are_those_of_memory(tmp_path):
    x, heavy, w, _ = many(4, 300)
    table = pd.DataFrame({"x": x[:, 0], "w": w, "y": np.where(heavy, 2.0, 7.0)})
    table.to_parquet(tmp_path / "a.parquet")
    held = privgp.open_table(tmp_path / "a.parquet", "x", "y", weights="w")
    model = PrivateGPRegressor(y_bounds=(0, 10), **FIXED)
    from_file = model.fit(held.inputs, held.output).predict(NEW)
    assert_array_equal(from_file, model.fit(x, table["y"].to_numpy(), sample_weight=w).predict(NEW))


def test_classes_of_weights_are_few_and_hold_equal_weights_together():
    assert_array_equal(find_rungs(np.array([2.0, 1.0, 2.0])), [1, 0, 1])
    rungs = find_rungs(rng.lognormal(size=5000))
    assert rungs.min() == 0
    assert rungs.max() == 15
    assert np.bincount(rungs).max() <= 2 * 5000 / 16


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(3), "one number for each of the 60 rows"),
        (np.zeros(ROWS), "positive and finite"),
        (np.full(ROWS, np.nan), "positive and finite"),
        (np.append(np.ones(ROWS - 1), 1e9), "must not differ by more than"),
        (["a"] * ROWS, "must be numbers"),
        (Y, "shares memory"),
    ],
)
def test_wrong_weights_are_refused_before_anything_is_spent(weights, message):
    with pytest.raises(ValueError, match=message):
        regressor().fit(X, Y, sample_weight=weights)


def test_refining_with_other_weights_is_refused():
    model = regressor().fit(X, Y, sample_weight=WEIGHTS)
    with pytest.raises(ValueError, match="sample_weight"):
        model.refine(X, Y, 1.0, sample_weight=np.ones(ROWS))
    with pytest.raises(ValueError, match="measured already"):
        model.update(X, Y, sample_weight=np.ones(ROWS))


@pytest.mark.parametrize(
    "given",
    [
        {"protect": "records", "x_bounds": (0, 5)},
        {"reconstruct": "unbiased"},
    ],
)
def test_what_does_not_go_with_weights_is_said(given):
    with pytest.raises(ValueError, match="sample_weight"):
        regressor(**given).fit(X, Y, sample_weight=WEIGHTS)


def test_scikit_learn_routes_weights_groups_and_exposures():
    with sklearn.config_context(enable_metadata_routing=True):
        model = regressor(likelihood="poisson", y_bounds=(0, 5), max_change=1.0)
        model.set_fit_request(groups=True, exposure=True, sample_weight=True)
        routed = model.get_metadata_routing().fit.requests
        assert {name for name, asked in routed.items() if asked} == {
            "groups", "exposure", "sample_weight",
        }  # fmt: skip
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import FunctionTransformer

        pipeline = make_pipeline(
            FunctionTransformer(), regressor().set_fit_request(sample_weight=True)
        )
        pipeline.fit(X, Y, sample_weight=WEIGHTS)
        alone = regressor().fit(X, Y, sample_weight=WEIGHTS)
        assert_array_equal(pipeline.predict(X), alone.predict(X))
