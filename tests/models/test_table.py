"""open_table: many files as one table, to the same bits as in memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from privgp import PrivateGPRegressor, load, load_plan, open_table
from privgp.errors import TableError
from privgp.models.rows import files as reading
from privgp.plan.inputs.blocks import STREAMED

ROWS, NAMES = 5000, ("a", "b")


@pytest.fixture(scope="module")
def data() -> pl.DataFrame:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, 2))
    y = np.sin(X[:, 0]) + 0.3 * rng.standard_normal(ROWS)
    people = rng.integers(0, 700, size=ROWS)
    return pl.DataFrame({"a": X[:, 0], "b": X[:, 1], "cost": y, "who": people})


def private(**settings) -> PrivateGPRegressor:
    given = {"y_bounds": (-3, 3), "random_state": 0, "hyperparameters": "fixed", "inducing": 15}
    return PrivateGPRegressor(**{**given, **settings})


def write(table: pl.DataFrame, folder: Path, files: int, ending: str) -> Path:
    folder.mkdir(parents=True)
    for number, rows in enumerate(np.array_split(np.arange(len(table)), files)):
        part, path = table[rows.tolist()], folder / f"{number:02d}.{ending}"
        part.write_csv(path) if ending == "csv" else part.write_parquet(path)
    return folder


@pytest.mark.filterwarnings("ignore:The file contains")
@pytest.mark.parametrize("groups", [None, "who"])
def test_files_and_memory_give_the_same_release(data, tmp_path, groups):
    X, y = data.select(NAMES), data["cost"].to_numpy()
    people = None if groups is None else data[groups].to_numpy()
    known = private().fit(X, y, groups=people).predict(X[:50])
    for files, ending in ((1, "parquet"), (7, "csv"), (40, "parquet")):
        table = open_table(write(data, tmp_path / f"{files}", files, ending), NAMES, "cost", groups)
        plan = private().plan(table.inputs, groups=table.groups)
        plan.save(tmp_path / f"{files}.plan")
        plan = load_plan(tmp_path / f"{files}.plan")
        model = private().fit(table.inputs, table.output, groups=table.groups, plan=plan)
        assert np.array_equal(model.predict(X[:50]), known)
        assert table.inputs.shape == (ROWS, 2)
    unasked = private().fit(table.inputs, table.output)  # the table knows its people
    assert unasked.guarantee_ == model.guarantee_
    assert np.array_equal(unasked.predict(X[:50]), known)


@pytest.mark.filterwarnings("ignore:The file contains")
def test_a_small_table_is_that_of_the_exact_model(data, tmp_path):
    few = data[:60]
    X, y = few.select(NAMES), few["cost"].to_numpy()
    table = open_table(write(few, tmp_path / "few", 3, "csv"), NAMES, "cost", "who")
    alone = open_table(tmp_path / "few", NAMES, "cost")
    for each, people in ((alone, None), (table, few["who"].to_numpy())):
        known = private(inducing=None).fit(X, y, groups=people)
        model = private(inducing=None).fit(each.inputs, each.output)
        assert np.array_equal(model.predict(X), known.predict(X))
        assert model.plan_.strategy.distinct_inputs is not None


@pytest.mark.filterwarnings("ignore:The file contains")
def test_past_some_rows_it_streams_by_itself_and_says_so(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 10, size=(STREAMED + 1, 1))
    y = np.sin(X[:, 0])
    model = private(inducing=None)
    plan = model.plan(X)
    assert "20001 rows in 152 cells" in plan.describe()
    assert plan.strategy.tally.rows == 20_001
    plan.save(tmp_path / "p.plan")
    model.fit(X, y, plan=load_plan(tmp_path / "p.plan"))
    model.save(tmp_path / "m.privgp")
    assert np.array_equal(load(tmp_path / "m.privgp").predict(X[:9]), model.predict(X[:9]))
    model.update(X[:50] + 0.01, y[:50])
    assert len(model.measurements_) == 2  # one of each batch


def test_most_rows_of_a_person_are_declared(data, tmp_path):
    few = data[:2000].with_columns(who=pl.int_range(pl.len()) % 200)
    X, y, people = few.select(NAMES), few["cost"].to_numpy(), few["who"].to_numpy()
    table = open_table(write(few, tmp_path / "few", 3, "parquet"), NAMES, "cost", "who")
    model = private(most_rows=4).fit(X, y, groups=people)
    assert model.plan_.strategy.rows == 800
    found = private(most_rows=4).fit(table.inputs, table.output)
    assert np.array_equal(found.predict(X[:50]), model.predict(X[:50]))
    changed = y.copy()
    changed[800:] = 2.5  # what is dropped does not matter
    again = private(most_rows=4).fit(X, changed, groups=people)
    assert np.array_equal(again.predict(X[:50]), model.predict(X[:50]))
    for wrong, words in ((0, "at least 1"), (1.5, "whole number"), (10**6, "at least 1")):
        with pytest.raises(ValueError, match=words):
            private(most_rows=wrong).fit(X, y, groups=people)
    with pytest.raises(ValueError, match="give groups"):
        private(most_rows=3).fit(X, y)


def test_folders_can_be_columns(data, tmp_path):
    for month in (1, 2, 10):
        rows = data[100 * month : 100 * month + 50]
        write(rows, tmp_path / f"year=2024/month={month}", 1, "parquet")
    (tmp_path / "year=2024" / "_SUCCESS").touch()
    table = open_table(tmp_path, ["a", "month"], "cost")
    found = table.inputs.public_table().to_numpy()
    assert found[:, 1].tolist() == [1.0] * 50 + [10.0] * 50 + [2.0] * 50
    assert table.inputs.shape == (150, 2)


@pytest.mark.parametrize(
    ("paths", "arguments", "words"),
    [
        ("nothing", {}, "does not exist"),
        ("*.txt", {}, "no file that ends in"),
        ("empty", {}, "no file that ends in"),
        ("t/00.csv", {"inputs": ["a", "z"]}, "no column 'z'"),
        ("t/00.csv", {"inputs": ["a", "cost"]}, "cannot be among the inputs"),
        ("t/00.csv", {"inputs": []}, "different columns"),
        ("t/00.csv", {"groups": "cost"}, "cannot name the people"),
        ("broken.csv", {}, "Line 3"),
        ("fake.parquet", {}, "cannot be read as Parquet"),
        ("header.csv", {}, "no rows"),
    ],
)
def test_what_is_no_table_is_refused(data, tmp_path, paths, arguments, words):
    write(data[:30], tmp_path / "t", 1, "csv")
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken.csv").write_text("a,b,cost\n1,2,3\n4,5\n")
    (tmp_path / "fake.parquet").write_text("a,b,cost\n1,2,31415\n")
    (tmp_path / "header.csv").write_text("a,b,cost\n")
    given = {"inputs": NAMES, "output": "cost", **arguments}
    with pytest.raises(ValueError, match=words) as caught:
        open_table(tmp_path / paths, **given)
    assert "31415" not in str(caught.value)


def test_cells_that_are_no_numbers_are_refused_without_telling_them(data, tmp_path):
    for column, words in (("a", "Column 'a'"), ("cost", "output column")):
        table = data[:5000].with_columns(pl.Series(column, ["secret7"] * 5000))
        opened = open_table(write(table, tmp_path / column, 2, "csv"), NAMES, "cost")
        with pytest.raises(ValueError, match=words) as caught:
            private().fit(opened.inputs, opened.output)
        assert "secret7" not in str(caught.value)
    assert issubclass(TableError, ValueError)


def test_columns_of_different_tables_do_not_go_together(data, tmp_path):
    one = open_table(write(data[:3000], tmp_path / "one", 1, "csv"), NAMES, "cost", "who")
    two = open_table(write(data[:3000], tmp_path / "two", 1, "csv"), NAMES, "cost", "who")
    with pytest.raises(ValueError, match="y must be the output of the table"):
        private().fit(one.inputs, two.output)
    with pytest.raises(ValueError, match="y must be the output of the table"):
        private(inducing=None).fit(one.inputs, two.output)  # in memory
    with pytest.raises(ValueError, match="y must be the output of the table"):
        private().fit(one.inputs, data["cost"][:3000].to_numpy())
    with pytest.raises(ValueError, match="groups must be the groups of the table"):
        private().fit(one.inputs, one.output, groups=two.groups)
    records = private(protect="records", x_bounds=[(-3, 3)] * 2)
    assert records.fit(one.inputs, one.output).plan_.strategy.count <= records.inducing


@pytest.mark.parametrize(("ending", "rows"), [("csv", ROWS), ("parquet", ROWS), ("csv", 200)])
def test_people_who_changed_places_while_a_table_is_read_are_refused(
    data, tmp_path, monkeypatch, ending, rows
):
    """A person's rows, weighed as if they were other people's, would move the sums further."""
    folder = write(data[:rows], tmp_path / "t", 1, ending)
    table = open_table(folder, NAMES, "cost", "who")
    read, sorted_rows = reading.table_people, data[:rows].sort("who")

    def rewritten(*asked):
        codes = read(*asked)
        path = folder / f"00.{ending}"
        sorted_rows.write_csv(path) if ending == "csv" else sorted_rows.write_parquet(path)
        return codes

    monkeypatch.setattr(reading, "table_people", rewritten)
    with pytest.raises(ValueError, match="changed"):
        private(inducing=15 if rows == ROWS else None).fit(table.inputs, table.output)
