"""PrivateGP: any outcomes of a table in one release."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import privgp
from privgp import Count, Label, Number, PrivateGP, PrivateGPClassifier, PrivateGPRegressor

ROWS = 60
rng = np.random.default_rng(0)
AGE = rng.uniform(0, 90, ROWS).round(1)
TABLE = pd.DataFrame(
    {
        "age": AGE,
        "who": np.repeat(np.arange(ROWS // 2), 2),
        "population": rng.uniform(1, 3, ROWS),
        "height": 165 - 90 * np.exp(-AGE / 8) + rng.normal(0, 6, ROWS),
        "smokes": np.where(rng.random(ROWS) < 0.3, "yes", "no"),
        "visits": rng.poisson(2, ROWS),
        "type": rng.choice(list("pqr"), ROWS),
    }
)
OUTCOMES = {
    "height": Number(60, 200),
    "smokes": Label("no", "yes"),
    "visits": Count(high=15, exposure="population"),
    "type": Label(*"pqr"),
}
SETTINGS = {
    "epsilon": 8.0, "delta": 1e-5, "random_state": 0, "hyperparameters": "fixed", "inputs": ["age"],
}  # fmt: skip


def model(outcomes=OUTCOMES, **settings):
    return PrivateGP(outcomes, **{**SETTINGS, **settings})


def test_one_release_holds_numbers_labels_and_counts(tmp_path):
    made = model()
    plan = made.plan(TABLE.drop(columns=["height", "smokes", "visits", "type"]))
    assert plan.output_names == tuple(OUTCOMES)
    made.fit(TABLE, plan=plan)
    found = made.predict(TABLE[:3])
    assert list(found.columns[:5]) == [
        "height_mean", "height_std", "height_low", "height_high", "smokes_label",
    ]  # fmt: skip
    probabilities = found[[f"type_probability_{each}" for each in "pqr"]]
    assert np.allclose(probabilities.sum(axis=1), 1.0)
    assert (found["visits_mean"] > 0).all()
    with pytest.warns(UserWarning, match="inputs"):
        made.save(tmp_path / "a.privgp")
    assert privgp.load(tmp_path / "a.privgp").predict(TABLE[:3]).equals(found)
    labels = made.certificate()["bounds"]["labels"]
    assert labels == {"smokes": ["no", "yes"], "type": ["p", "q", "r"]}


def test_a_saved_plan_is_carried_out(tmp_path):
    made = model()
    with pytest.warns(UserWarning, match="inputs"):
        made.plan(TABLE).save(tmp_path / "a.plan")
    plan = privgp.load_plan(tmp_path / "a.plan")
    planned = model().fit(TABLE, plan=plan).predict(TABLE[:3])
    assert planned.equals(made.fit(TABLE).predict(TABLE[:3]))
    with pytest.raises(ValueError, match="plan was made for other"):
        model(epsilon=1.0).fit(TABLE, plan=plan)


def test_one_outcome_is_what_its_estimator_releases():
    """The same noise on the same sums: only rounding of one factor, 1, lies between them."""
    alone = PrivateGPRegressor(
        y_bounds=(60, 200), epsilon=8.0, delta=1e-5, random_state=0, hyperparameters="fixed"
    ).fit(TABLE[["age"]], TABLE["height"])
    made = model(Number(60, 200)).fit(TABLE[["age"]], TABLE["height"])
    assert np.allclose(made.predict(TABLE[:5])["mean"], alone.predict(TABLE[["age"]][:5]))
    label = PrivateGPClassifier(
        classes=["no", "yes"], epsilon=8.0, delta=1e-5, random_state=0, hyperparameters="fixed"
    ).fit(TABLE[["age"]], TABLE["smokes"])
    made = model({"smokes": Label("no", "yes")}).fit(TABLE)
    ours = made.predict(TABLE[:5])[["smokes_probability_no", "smokes_probability_yes"]]
    assert np.allclose(ours, label.predict_proba(TABLE[["age"]][:5]), atol=1e-6)


@pytest.mark.parametrize("protect", ["outputs", "records"])
@pytest.mark.parametrize("groups", [None, "who"])
def test_any_unit_is_protected(protect, groups):
    outcomes = {name: OUTCOMES[name] for name in ("height", "smokes")}
    bounds = {"age": (0, 90)} if protect == "records" else None
    made = model(outcomes, protect=protect, groups=groups, x_bounds=bounds)
    made.plan(TABLE)
    assert made.fit(TABLE).predict(TABLE[:2]).shape == (2, 12)
    assert ("person" in made.guarantee_.unit) == (groups is not None)
    assert ("record" in made.guarantee_.unit) == (protect == "records")


@pytest.mark.parametrize(
    "of", [pl.from_pandas, lambda t: pl.from_pandas(t).lazy(), pa.Table.from_pandas, dict]
)
def test_a_table_of_any_library_gives_the_same_release(of):
    outcomes = {"height": Number(60, 200)}
    made = model(outcomes).fit(of(TABLE))
    expected = model(outcomes).fit(TABLE).predict(TABLE[:4])["height_mean"]
    found = made.predict(of(TABLE[:4]))
    column = found["height_mean"]
    assert np.array_equal(np.asarray(column), expected)


def test_the_answers_are_a_frame_of_the_library_that_was_given():
    made = model({"height": Number(60, 200)}).fit(TABLE)
    assert isinstance(made.predict(TABLE), pd.DataFrame)
    assert isinstance(made.predict(pl.from_pandas(TABLE)), pl.DataFrame)
    assert isinstance(made.predict(pa.Table.from_pandas(TABLE)), pa.Table)


def test_counts_say_by_how_much_a_person_changes_them():
    guarantee = model({"visits": Count(max_change=2, high=15)}).fit(TABLE).guarantee_
    assert "by at most 2" in guarantee.neighbours
    assert "contribution" in guarantee.unit


@pytest.mark.parametrize(
    ("outcomes", "settings", "words"),
    [
        ({}, {}, "outcomes must be"),
        ({"height": (60, 200)}, {}, "outcomes must be"),
        ({"weight": Number(0, 1)}, {}, "no column 'weight'"),
        ({"height": Number(60, 200)}, {"inputs": ["height"]}, "private outcome"),
        ({"height": Number(60, 200)}, {"inputs": ["size"]}, "no column 'size'"),
        ({"height": Number(60, 200)}, {"groups": "family"}, "no column 'family'"),
        ({"visits": Count()}, {}, "Count needs high"),
        ({"visits": Count(high=9, exposure="days")}, {}, "no column 'days'"),
        ({"height": Number(60, 200)}, {"protect": "records", "x_bounds": (0, 9)}, "by its name"),
        ({"height": Number(200, 60)}, {}, "low < high"),
        (
            {"visits": Count(high=9, exposure="population")},
            {"protect": "records", "x_bounds": {"age": (0, 90)}},
            "as private as the record",
        ),
        (
            {"height": Number(60, 200)},
            {"protect": "records", "x_bounds": {"age": (0, 90), "size": (0, 1)}},
            "must be the private inputs",
        ),
        ({"smokes": Label("no")}, {}, "classes"),
    ],
)
def test_what_is_wrong_is_refused_before_anything_is_spent(outcomes, settings, words):
    with pytest.raises(ValueError, match=words):
        model(outcomes, **settings).fit(TABLE)


def test_a_named_outcome_is_in_the_table():
    with pytest.raises(ValueError, match="leave y=None"):
        model().fit(TABLE, TABLE["height"])
    with pytest.raises(ValueError, match="data frame"):
        model().fit(TABLE.to_numpy())


def test_columns_that_were_not_named_as_inputs_are_told_before_they_are_public():
    made = model({"height": Number(60, 200)}, inputs=None)
    with pytest.warns(UserWarning, match="'age', 'visits'.* Name the inputs"):
        made.plan(TABLE[["age", "visits", "height"]])
