"""Dates, categories, places, hours and truth values in many files: the same bits as from memory."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import numpy as np
import polars as pl
import pytest

from privgp import PrivateGPRegressor, load, load_plan, open_table
from privgp.errors import TableError
from tests.command.running import run
from tests.models.test_table import write

pytestmark = pytest.mark.filterwarnings("ignore:The file contains")

ROWS = 2500
NAMES = ["when", "region", "lat", "lon", "hour", "ok", "age"]
COLUMNS: Any = {
    "when": "date",
    "region": "category",
    ("lat", "lon"): "place",
    "hour": ("periodic", 24),
    "ok": "boolean",
}


@pytest.fixture(scope="module")
def data() -> pl.DataFrame:
    rng = np.random.default_rng(0)
    when = [datetime(2024, 1, 1) + timedelta(hours=float(h)) for h in rng.uniform(0, 8000, ROWS)]
    return pl.DataFrame(
        {
            "when": pl.Series(when, dtype=pl.Datetime("us")),
            "region": rng.choice(["north", "far south", "7"], ROWS),
            "lat": rng.uniform(51, 52, ROWS),
            "lon": rng.uniform(-1, 1, ROWS),
            "hour": rng.integers(0, 24, ROWS),
            "ok": rng.random(ROWS) < 0.5,
            "age": rng.uniform(0, 90, ROWS),
            "who": rng.integers(0, 400, ROWS),
            "cost": rng.uniform(-3, 3, ROWS),
        }
    )


def private(**settings: Any) -> PrivateGPRegressor:
    given = {"y_bounds": (-3, 3), "random_state": 0, "hyperparameters": "fixed", "inducing": 12}
    return PrivateGPRegressor(**{**given, **settings})


@pytest.mark.parametrize("groups", [None, "who"])
def test_files_and_memory_give_the_same_release(data, tmp_path, groups):
    X, y = data.select(NAMES), data["cost"].to_numpy()
    people = None if groups is None else data[groups].to_numpy()
    known = private(columns=COLUMNS).fit(X, y, groups=people)
    for files, ending in ((1, "parquet"), (7, "csv")):
        folder = write(data, tmp_path / f"{files}", files, ending)
        table = open_table(folder, NAMES, "cost", groups, columns=COLUMNS)
        plan = private().plan(table.inputs)
        plan.save(tmp_path / f"{files}.plan")
        plan = load_plan(tmp_path / f"{files}.plan")
        model = private().fit(table.inputs, table.output, plan=plan)
        model.save(tmp_path / f"{files}.privgp")
        for found in (model, load(tmp_path / f"{files}.privgp")):
            assert np.array_equal(found.predict(X[:50]), known.predict(X[:50]))
        assert model.inputs_ == known.inputs_
        bare = open_table(folder, NAMES, "cost", groups)  # the model may say it, too
        assert np.array_equal(
            private(columns=COLUMNS).fit(bare.inputs, bare.output).predict(X[:50]),
            known.predict(X[:50]),
        )
    with pytest.raises(ValueError, match="given once"):
        private(columns={"when": "date"}).plan(table.inputs)


def test_a_small_table_is_that_of_the_exact_model(data, tmp_path):
    few = data[:60]
    X, y = few.select(NAMES), few["cost"].to_numpy()
    known = private(inducing=None, columns=COLUMNS).fit(X, y)
    write(few[:30], tmp_path / "few" / "a", 1, "csv")  # one half as text, the other typed
    write(few[30:], tmp_path / "few" / "b", 1, "parquet")
    table = open_table(tmp_path / "few", NAMES, "cost", columns=COLUMNS)
    plan = private(inducing=None).plan(table.inputs)
    model = private(inducing=None).fit(table.inputs, table.output, plan=plan)
    assert np.array_equal(model.predict(X), known.predict(X))
    assert list(model.feature_names_in_) == NAMES


def test_types_of_parquet_say_what_columns_are(data, tmp_path):
    zoned = pl.col("when").dt.replace_time_zone("UTC").dt.convert_time_zone("America/Lima")
    typed = data.with_columns(zoned, pl.col("region").cast(pl.Categorical))
    folder, names = write(typed, tmp_path / "t", 3, "parquet"), ["when", "region", "ok"]
    table = open_table(folder, names, "cost")
    model = private().fit(table.inputs, table.output)
    assert [column.kind for column in model.inputs_.columns] == ["date", "category", "boolean"]
    known = private().fit(data.select(names), data["cost"].to_numpy())
    assert np.array_equal(model.predict(data[:9]), known.predict(data.select(names)[:9]))


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"age": "date"}, "'age' of .* must hold dates"),
        ({("age", "hour"): "place"}, "'age' and 'hour' of .* must hold coordinates"),
        ({"who": "boolean"}, "'who', which is not a column"),
        ({"ok": "boolean", "age": "boolean"}, "'age' of .* must hold true or false"),
        ("date", "columns must say"),
        ({"age": "category"}, "more than 1,000 levels"),
    ],
)
def test_what_is_wrong_is_said_by_column_and_file(data, tmp_path, columns, words, monkeypatch):
    monkeypatch.setattr("privgp.models.rows.fit.STREAMED", 5)
    wrong = data.with_columns(age=pl.col("age") + 100)
    folder = write(wrong, tmp_path / "t", 2, "parquet")
    with pytest.raises(ValueError, match=words):
        private().plan(open_table(folder, ["age", "hour", "ok"], columns=columns).inputs)
    holes = wrong.with_columns(region=pl.when(pl.col("hour") > 0).then("region"))
    folder = write(holes, tmp_path / "holes", 2, "csv")
    with pytest.raises(TableError, match=r"'region' of .* must hold a value in every row"):
        private().plan(open_table(folder, "region", columns={"region": "category"}).inputs)


def test_the_command_takes_them_too(data, tmp_path):
    folder = write(data, tmp_path / "t", 7, "csv")
    options = ["--dates", "when", "--categories", "region", "--places", "lat,lon", "--periodic",
        "hour=24", "--booleans", "ok", "--inputs", ",".join(NAMES), "--bounds", -3, 3, "--inducing", 12,
        "--epsilon", 1, "--delta", 1e-6, "--hyperparameters", "fixed"]  # fmt: skip
    plan, file = tmp_path / "t.plan", tmp_path / "t.privgp"
    planned = run("plan", f"{folder}/*.csv", *options, "-o", plan)
    assert planned.code == 0, planned
    known = private(columns=COLUMNS, epsilon=1.0, delta=1e-6, random_state=1)
    known.fit(data.select(NAMES), data["cost"].to_numpy())
    for words in (options, ["--plan", plan]):
        asked = ["release", f"{folder}/*.csv", *words, "--output", "cost", "--seed", 1, "-o", file]
        found = run(*asked, "--force")
        assert found.code == 0, found
        assert np.array_equal(load(file).predict(data[:20]), known.predict(data.select(NAMES)[:20]))
