"""Models of tables: dates, categories, places, periods and truth values, from the plan to the file."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF, Matern

import privgp
from privgp import (
    PrivateFunction,
    PrivateGPClassifier,
    PrivateGPRegressor,
    PrivateGridSearchCV,
)
from privgp.models.load import pack_model, unpack_model
from privgp.pictures.style import figure_bytes
from privgp.plan.plan import load_plan, save_plan

ROWS = 36
COLUMNS: Any = {("lat", "lon"): "place", "hour": ("periodic", 24)}
RNG = np.random.default_rng(0)
START = datetime(2023, 1, 1)
FRAME = pl.DataFrame(
    {
        "when": [START + timedelta(hours=float(h)) for h in RNG.uniform(0, 5000, ROWS).round(2)],
        "region": RNG.choice(["north", "south", "east"], ROWS),
        "lat": RNG.uniform(51, 52, ROWS),
        "lon": RNG.uniform(-1, 1, ROWS),
        "hour": RNG.uniform(0, 24, ROWS),
        "ok": RNG.random(ROWS) < 0.5,
    }
)
OUTPUTS = 20.0 + 5.0 * (FRAME["region"] == "north").to_numpy() + RNG.normal(0, 1, ROWS)


def regressor(**given: Any) -> PrivateGPRegressor:
    usual = {"y_bounds": (0, 40), "columns": COLUMNS, "random_state": 0, "hyperparameters": "fixed"}
    return PrivateGPRegressor(**{**usual, **given})


@cache
def plain() -> PrivateGPRegressor:
    """A release without learning, which predicts quickly."""
    return regressor(epsilon=4.0).fit(FRAME, OUTPUTS)


@pytest.fixture(scope="module")
def fitted() -> PrivateGPRegressor:
    return plain()


def test_a_column_has_one_lengthscale_also_when_it_is_learned() -> None:
    fitted = regressor(hyperparameters="learned", epsilon=4.0).fit(FRAME, OUTPUTS)
    priors = fitted.plan_.priors
    assert len(priors) == 3
    assert priors[0].root.shape == (12, 7)  # 10 coordinates of 5 columns, and two variances
    when, *region, east, north, up, x, y, ok = fitted.kernel_.k1.k2.length_scale
    assert len(region) == 3
    assert len({*region}) == len({east, north, up}) == len({x, y}) == 1
    assert len({when, region[0], east, x, ok}) == 5
    assert list(fitted.feature_names_in_) == FRAME.columns
    assert fitted.n_features_in_ == 6


def test_the_same_table_of_any_library_gives_the_same_release(fitted: PrivateGPRegressor) -> None:
    expected = fitted.predict(FRAME)
    rows = FRAME.rows()
    structured = np.array(
        rows, dtype=[(n, "datetime64[us]" if n == "when" else object) for n in FRAME.columns]
    )
    for table in (
        FRAME.to_pandas(), FRAME.to_dict(), FRAME.to_dict(as_series=False), FRAME.to_dicts(),
        structured, rows, FRAME.select(FRAME.columns[::-1]), FRAME.with_columns(name=pl.lit("x")),
        FRAME.with_columns(pl.col("region").cast(pl.Categorical)),
        FRAME.to_pandas().astype({"region": "category", "ok": "boolean"}),
    ):  # fmt: skip
        assert np.array_equal(fitted.predict(table), expected)
    again = regressor(epsilon=4.0).fit(FRAME.to_pandas(), OUTPUTS)
    assert np.array_equal(again.predict(FRAME), expected)


ZONES = st.sampled_from(["UTC", "Asia/Tokyo", "America/St_Johns"])


@settings(deadline=None, max_examples=20)
@given(
    st.lists(st.datetimes(datetime(1990, 1, 1), datetime(2050, 1, 1)), min_size=1, max_size=4),
    st.sampled_from(["s", "ms", "us", "ns"]),
    ZONES,
)
def test_one_instant_has_one_prediction(instants: list[datetime], unit: str, zone: str) -> None:
    whole = [instant.replace(microsecond=0) for instant in instants]
    rest = FRAME.drop("when").head(1)

    def predicted(when: Any) -> Any:
        return plain().predict({"when": when, **rest[[0] * len(whole)].to_dict()})

    expected = predicted(np.array(whole, dtype=f"datetime64[{unit}]"))
    aware = pd.Series([instant.replace(tzinfo=UTC) for instant in whole])
    for when in (
        whole, [instant.isoformat() + "+00:00" for instant in whole], aware.dt.tz_convert(zone),
        aware.dt.tz_convert(zone).dt.as_unit("ns"), pd.Series(whole).dt.as_unit(unit),
        pl.Series(whole).dt.replace_time_zone("UTC").dt.convert_time_zone(zone),
    ):  # fmt: skip
        assert np.array_equal(predicted(when), expected)


def test_dates_are_told_from_numbers_without_being_asked() -> None:
    """Ticks of a resolution were once taken for numbers, whatever the resolution."""
    days = np.arange(30).astype("datetime64[D]").reshape(-1, 1)
    model = regressor(columns=None).fit(days.astype("datetime64[s]"), np.arange(30.0))
    assert np.array_equal(
        model.predict(days.astype("datetime64[us]")), model.predict(days.astype("datetime64[ms]"))
    )
    assert abs(model.predict(days.astype("datetime64[us]")) - np.arange(30.0)).mean() < 15.0


def test_a_file_takes_the_same_table(fitted: PrivateGPRegressor) -> None:
    loaded = unpack_model(pack_model(fitted))
    assert loaded.inputs_ == fitted.inputs_
    assert list(loaded.feature_names_in_) == FRAME.columns
    for each in ({}, {"observation": True}):
        found = loaded.predict(FRAME, return_std=True, **each)
        assert np.array_equal(found, fitted.predict(FRAME, return_std=True, **each))
    assert np.array_equal(loaded.interval(FRAME), fitted.interval(FRAME))
    assert pack_model(loaded) == pack_model(fitted)
    told = loaded.certificate()["inputs"]
    assert told[0].startswith("when (a date")
    assert any("latitude" in each for each in told)


def test_what_a_table_lacks_is_said(fitted: PrivateGPRegressor) -> None:
    with pytest.raises(ValueError, match="no column 'region'"):
        fitted.predict(FRAME.drop("region"))
    with pytest.raises(ValueError, match="'hour' has no value in row 1"):
        fitted.predict(FRAME.with_columns(hour=pl.lit(None, dtype=pl.Float64)))
    with pytest.raises(ValueError, match="'when' must hold dates: row 1"):
        fitted.predict(FRAME.with_columns(when=pl.lit("noon")))
    with pytest.raises(ValueError, match="X has 2 columns"):
        fitted.predict(np.ones((3, 2)))


def test_an_unknown_level_is_less_certain_than_any_known_one(fitted: PrivateGPRegressor) -> None:
    unknown = FRAME.with_columns(region=pl.lit("west"))
    mean, std = fitted.predict(unknown, return_std=True)
    levels = [fitted.predict(FRAME.with_columns(region=pl.lit(r)), return_std=True)
              for r in ("north", "south", "east")]  # fmt: skip
    assert np.all(std > np.min([s for _, s in levels], axis=0))
    means = [m for m, _ in levels]
    assert np.all((mean > np.min(means, axis=0) - 2.0) & (mean < np.max(means, axis=0) + 2.0))


def test_one_lengthscale_is_given_for_every_column() -> None:
    kernel = 25.0 * Matern([100.0, 1.0, 50.0, 6.0, 1.0], nu=2.5)
    model = regressor(kernel=kernel).fit(FRAME, OUTPUTS)
    assert model.kernel_.k2.length_scale.tolist() == [100, 1, 1, 1, 50, 50, 50, 6, 6, 1]
    assert np.array_equal(unpack_model(pack_model(model)).predict(FRAME), model.predict(FRAME))
    with pytest.raises(ValueError, match="lengthscales"):
        regressor(kernel=Matern([1.0, 2.0])).plan(FRAME)


def test_a_plan_is_carried_out_on_the_same_table(tmp_path) -> None:
    model = regressor(targets=FRAME.head(5))
    plan = model.plan(FRAME)
    save_plan(plan, tmp_path / "a.plan")
    stored = load_plan(tmp_path / "a.plan")
    assert stored.made_for.parameters.columns == plan.made_for.parameters.columns
    first, second = model.fit(FRAME, OUTPUTS, plan=plan), regressor(targets=FRAME.head(5))
    second.fit(FRAME.to_pandas(), OUTPUTS, plan=stored)
    assert np.array_equal(first.predict(FRAME), second.predict(FRAME))
    other = FRAME.with_columns(pl.col("when") + timedelta(seconds=1))
    with pytest.raises(ValueError, match="plan was made for other inputs"):
        model.fit(other, OUTPUTS, plan=plan)


def kinds() -> dict[str, Any]:
    return {
        "inducing": (regressor(inducing=12), OUTPUTS),
        "unbiased": (regressor(reconstruct="unbiased", targets=FRAME.head(3), delta=0.01), OUTPUTS),
        "several": (regressor(y_bounds=((0, 40), (0, 40))), np.column_stack([OUTPUTS, OUTPUTS])),
        "counts": (
            regressor(likelihood="poisson", max_change=1),
            np.rint(OUTPUTS),
        ),
        "labels": (
            PrivateGPClassifier(
                classes=["a", "b"], columns=COLUMNS, random_state=0, hyperparameters="fixed"
            ),
            np.where(OUTPUTS > 20, "a", "b"),
        ),
    }


@pytest.mark.parametrize("kind", [*kinds()])
def test_every_kind_of_release_takes_tables(kind: str) -> None:
    model, outputs = kinds()[kind]
    asked = FRAME.head(3)
    model.fit(FRAME, outputs)
    loaded = unpack_model(pack_model(model))
    assert np.array_equal(loaded.predict(asked), model.predict(asked))
    assert np.array_equal(np.array(loaded.interval(asked)), np.array(model.interval(asked)))


def test_an_update_takes_the_same_table() -> None:
    model = regressor().fit(FRAME, OUTPUTS)
    later = FRAME.with_columns(pl.col("when") + timedelta(days=30))
    model = unpack_model(pack_model(model)).set_params(random_state=1)
    model.update(later, OUTPUTS)
    assert len(model.measurements_) == 2
    assert np.array_equal(unpack_model(pack_model(model)).predict(later), model.predict(later))


def test_a_map_across_the_date_line_and_at_a_pole() -> None:
    fiji = {"lat": RNG.uniform(-19, -16, 40), "lon": RNG.uniform(177, 183, 40)}
    turned = {**fiji, "lon": np.mod(fiji["lon"] + 180, 360) - 180}
    outputs = 20.0 + 3.0 * (fiji["lon"] - 180)
    columns = {("lat", "lon"): "place"}
    model, other = (
        regressor(columns=columns, epsilon=20.0).fit(table, outputs) for table in (fiji, turned)
    )
    sides = {"lat": [-17.0, -17.0], "lon": [179.9999999, -179.9999999]}
    east, west = model.predict(sides)
    assert east == pytest.approx(west, abs=1e-5)
    assert np.allclose(model.predict(sides), other.predict(sides), atol=1e-6)
    low, high = figure_of(model).axes[0].get_xlim()
    assert 176 < low < 178 < 182 < high < 184
    poles = model.predict({"lat": [90.0, 90.0], "lon": [0.0, 77.0]})
    assert poles[0] == pytest.approx(poles[1], abs=1e-9)


def figure_of(model: Any) -> Any:
    figure = model.plot()
    assert figure_bytes(figure, ".png").startswith(b"\x89PNG")
    return figure


def test_pictures_are_in_the_units_of_the_columns(fitted: PrivateGPRegressor) -> None:
    fitted.name_output("calls", "per day")
    panels = figure_of(fitted).axes
    assert [panel.get_xlabel() for panel in panels] == [
        "when",
        "region",
        "lon",
        "lat",
        "hour",
        "ok",
    ]
    assert [text.get_text() for text in panels[1].get_xticklabels()] == ["east", "north", "south"]
    assert panels[0].get_ylabel() == "calls (per day)"
    low, high = panels[0].get_xlim()  # days since 1970
    assert 19358 <= low < high <= 19358 + 210
    assert unpack_model(pack_model(fitted)).output_ == {"name": "calls", "units": "per day"}
    assert "calls, in per day" in fitted.certificate()["private"][0]


@pytest.mark.parametrize(
    "model",
    [
        PrivateFunction(RBF(1.0), 1.0, y_bounds=(0, 40), epsilon=1.0, delta=0.01),
        PrivateGridSearchCV(
            PrivateGPRegressor(y_bounds=(0, 40)), {"kernel": [RBF(1.0)]}, epsilon=1.0, delta=0.01
        ),
    ],
)
def test_what_takes_numbers_only_says_so(model: Any) -> None:
    with pytest.raises(ValueError, match="dates or categories where"):
        model.fit(FRAME, OUTPUTS)


def test_private_inputs_are_numbers_within_declared_bounds() -> None:
    with pytest.raises(ValueError, match="x_bounds must have a pair for every input"):
        regressor(protect="records", x_bounds=(0, 1)).plan(10)
    with pytest.raises(ValueError, match="table of numbers"):
        regressor(columns=None, protect="records", x_bounds=(0, 1)).fit(
            FRAME.select("when"), OUTPUTS
        )


@pytest.mark.parametrize("learned", [False, True])
def test_private_columns_are_declared_and_kept_in_the_file(learned: bool) -> None:
    model = regressor(
        protect="records",
        columns={"when": "date", "region": ("category", ["north", "south", "east"])},
        x_bounds={"when": ("2023-01-01", datetime(2023, 12, 31))},
        epsilon=4.0,
        delta=1e-5,
        hyperparameters="learned" if learned else "fixed",
    )
    plan = model.plan(ROWS)
    asked = FRAME.select("region", "when")
    model.fit(asked, OUTPUTS, plan=plan)
    if learned:
        when, *region = model.kernel_.k1.k2.length_scale
        assert len({*region}) == 1 < len({when, *region})
    loaded = unpack_model(pack_model(model))
    assert np.array_equal(loaded.predict(asked), model.predict(asked))
    assert "2023-01-01" in loaded.certificate()["inputs"][0]
    if not learned:
        (panel,) = figure_of(loaded).axes  # a curve for every region
        assert panel.get_xlabel() == "when"
        named = [line.get_label() for line in panel.lines]
        assert {f"region: {each}" for each in FRAME["region"].unique()} <= {*named}
    content = pack_model(model)
    beyond = FRAME.select("region", when=pl.lit(datetime(2050, 1, 1)))
    again = regressor(**model.get_params()).set_params(hyperparameters="fixed")
    assert np.all(np.isfinite(again.fit(beyond, OUTPUTS).predict(asked)))
    assert content == pack_model(model)


def test_a_pipeline_in_front_predicts_from_its_file(tmp_path) -> None:
    """What is saved is the last step: it takes what the steps before make of a table."""
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    before = ColumnTransformer([("scaled", StandardScaler(), ["lat", "lon"])], remainder="drop")
    pipeline = make_pipeline(before.set_output(transform="pandas"), regressor(columns=None))
    pipeline.fit(FRAME.to_pandas(), OUTPUTS)
    with pytest.warns(UserWarning, match="contains the inputs"):
        pipeline[-1].save(tmp_path / "a.privgp")
    loaded = privgp.load(tmp_path / "a.privgp")
    assert list(loaded.feature_names_in_) == ["scaled__lat", "scaled__lon"]
    again = loaded.predict(pipeline[:-1].transform(FRAME.to_pandas()))
    assert np.array_equal(again, pipeline.predict(FRAME.to_pandas()))


NUMBERS = {"age": np.arange(20.0), "bmi": np.arange(20.0) % 7}
QUICK = {"epsilon": 1.0, "delta": 1e-5, "hyperparameters": "fixed", "random_state": 0}


@pytest.mark.parametrize("fitted_to", ["dict", "polars", "pandas"])
def test_numbers_are_told_by_their_names(fitted_to: str, tmp_path) -> None:
    y = NUMBERS["age"] / 20
    X: Any = NUMBERS
    if fitted_to != "dict":
        X = pytest.importorskip(fitted_to).DataFrame(NUMBERS)
    model = PrivateGPRegressor(y_bounds=(0, 1), **QUICK)
    assert model.plan(X).made_for.names == ("age", "bmi")
    model.fit(X, y).save(tmp_path / "m.privgp")
    expected = model.predict(pl.DataFrame({"age": [2.0, 3.0], "bmi": [1.0, 5.0]}))
    asked = {"note": ["a", "b"], "bmi": [1, 5], "age": [2, 3]}
    rows = [{"age": 2, "bmi": 1}, {"age": 3, "bmi": 5}]
    structured = np.array([(1, 2), (5, 3)], dtype=[("bmi", "i4"), ("age", "f4")])
    for read in (model, privgp.load(tmp_path / "m.privgp")):
        for each in (asked, rows, structured):
            assert np.array_equal(read.predict(each), expected)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"age": [1]}, "no column 'bmi': the inputs are age, bmi"),
        ({"age": ["old"], "bmi": [1]}, "a finite number in every cell"),
        ({"age": [None], "bmi": [1]}, "a finite number in every cell"),
        ({"age": [1, 2], "bmi": [1]}, "equally many cells"),
    ],
)
def test_what_a_table_of_numbers_lacks_is_said(asked: Any, words: str) -> None:
    model = PrivateGPRegressor(y_bounds=(0, 1), **QUICK).fit(NUMBERS, NUMBERS["age"] / 20)
    with pytest.raises(ValueError, match=words):
        model.predict(asked)


def test_names_are_refused_where_none_are_known() -> None:
    rows = np.column_stack([*NUMBERS.values()])
    model = PrivateGPRegressor(y_bounds=(0, 1), **QUICK).fit(rows, NUMBERS["age"] / 20)
    with pytest.raises(ValueError, match="fitted without names: give X as rows"):
        model.predict(NUMBERS)


def test_truth_values_are_labels_or_the_numbers_0_and_1() -> None:
    X, truths = NUMBERS["age"][:, None], np.arange(20) % 3 == 0
    pandas = pytest.importorskip("pandas")
    forms = [truths, truths.tolist(), pl.Series(truths), pandas.Series(truths, dtype="boolean")]
    classifiers = [PrivateGPClassifier(classes=[False, True], **QUICK).fit(X, y) for y in forms]
    assert classifiers[0].predict(X).dtype == bool
    regressors = [PrivateGPRegressor(y_bounds=(0, 1), **QUICK).fit(X, y) for y in forms]
    numbers = PrivateGPRegressor(y_bounds=(0, 1), **QUICK).fit(X, truths.astype(float))
    for classifier, regressor in zip(classifiers, regressors, strict=True):
        assert np.array_equal(classifier.predict_proba(X), classifiers[0].predict_proba(X))
        assert np.array_equal(regressor.predict(X), numbers.predict(X))


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (np.arange(30.0), "one row per record and one column per input"),
        (
            np.where(np.arange(30.0) > 20, np.nan, 1.0)[:, None],
            "missing values .NaN.: fill them in",
        ),
        (pd.DataFrame(np.ones((30, 2)), columns=["a", "a"]), "two columns of one name"),
    ],
)
def test_a_refusal_says_what_to_do_and_quotes_no_value(X, words):
    model = PrivateGPRegressor(y_bounds=(0, 1), hyperparameters="fixed", random_state=0)
    with pytest.raises(ValueError, match=words) as refused:
        model.fit(X, np.full(30, 0.25))
    assert len(str(refused.value)) < 200
