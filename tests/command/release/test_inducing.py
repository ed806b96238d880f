"""``--inducing``: tables that are read a part at a time, to the same bits as in memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from privgp import PrivateGPRegressor, load
from privgp.command.io import columns
from privgp.command.io.columns import file_rows
from privgp.command.io.tables import open_table
from privgp.plan.inputs.rows import ArrayRows
from tests.command.running import (
    BUDGET,
    COLUMNS,
    QUICK,
    assert_refused,
    people_table,
    private_cells,
    run,
)

MANY = ["--inducing", "6"]


def write(table: pl.DataFrame, path: Path) -> Path:
    table.write_csv(path) if path.suffix == ".csv" else table.write_parquet(path)
    return path


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_release_from_a_file_is_the_release_from_memory(tmp_path: Path, ending: str) -> None:
    table = people_table(300)
    data, out = write(table, tmp_path / f"visits.{ending}"), tmp_path / "visits.privgp"
    result = run("release", data, *COLUMNS, *BUDGET, *QUICK, *MANY, "--seed", "3", "-o", out)
    assert result.code == 0, result
    assert "centres or values of inputs" in result.out
    model = PrivateGPRegressor(
        y_bounds=(0, 5000), epsilon=1, delta=1e-5, inducing=6, hyperparameters="fixed",
        random_state=3,
    ).fit(table.select("age", "bmi"), table["cost"].to_numpy())  # fmt: skip
    asked = table.select("age", "bmi").head(9)
    assert np.array_equal(load(out).predict(asked), model.predict(asked))
    assert run("inspect", out).code == 0
    assert "300 rows through 6 inducing inputs" in run("inspect", out).out


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_batches_of_the_table_do_not_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    table = people_table(100)
    source = open_table(write(table, tmp_path / f"visits.{ending}"))
    X, y = table.select("age", "bmi").to_numpy().astype(float), table["cost"].to_numpy()
    for batch in (1, 7, 64, 1000):
        monkeypatch.setattr(columns, "BATCH", batch)
        rows = file_rows(source, ["age", "bmi"], "cost")
        assert (rows.count, rows.columns) == (100, 2)
        for size in (1, 30, 200):
            blocks = list(rows.blocks(size))
            assert [len(b) for b in blocks] == [len(b) for b in ArrayRows(X).blocks(size)]
            assert np.array_equal(np.vstack(blocks), X)
            pairs = list(rows.with_outputs("cost", size))
            assert np.array_equal(np.concatenate([outputs for _, outputs in pairs]), y)
        places = np.array([0, 6, 7, 63, 64, 99])
        assert np.array_equal(rows.take(places), X[places])


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_plan_needs_no_output_and_does_not_look_at_it(tmp_path: Path, ending: str) -> None:
    table = people_table(60)
    answers = [
        run("plan", write(each, tmp_path / f"{name}.{ending}"), *COLUMNS, *BUDGET, *QUICK, *MANY, "--json")
        for name, each in {
            "there": table,
            "gone": table.drop("cost"),
            "text": table.with_columns(cost=pl.lit("secret")),
        }.items()
    ]  # fmt: skip
    assert answers[0].code == 0, answers[0]
    assert answers[0] == answers[1] == answers[2]
    assert '"inducing": 6' in answers[0].out
    assert '"rows": 60' in answers[0].out


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_plan_never_holds_a_private_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    data = write(people_table(), tmp_path / f"visits.{ending}")
    seen: list[pl.DataFrame] = []
    original = columns.batches

    def watched(*arguments):
        for frame in original(*arguments):
            seen.append(frame)
            yield frame

    monkeypatch.setattr(columns, "batches", watched)
    assert run("plan", data, *COLUMNS, *BUDGET, *QUICK, *MANY).code == 0
    assert seen
    assert all(set(frame.columns) == {"age", "bmi"} for frame in seen)
    cells = [str(cell) for frame in seen for row in frame.rows() for cell in row]
    assert not any(private in cell for cell in cells for private in private_cells())


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("column", ["age", "cost"])
@pytest.mark.parametrize("cell", [None, float("nan"), float("inf")])
def test_a_bad_cell_in_the_last_row_is_refused_before_anything_is_spent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str, column: str, cell: float | None
) -> None:
    monkeypatch.setattr(columns, "BATCH", 10)
    values = [*people_table()[column].to_list()[:-1], cell]
    table = people_table().with_columns(pl.Series(column, values, dtype=pl.Float64, strict=False))
    data, out = write(table, tmp_path / f"visits.{ending}"), tmp_path / "visits.privgp"
    result = run("release", data, *COLUMNS, *BUDGET, *QUICK, *MANY, "-o", out)
    assert_refused(result, column)
    assert ("row 24" in result.err) == (column == "age")
    assert "spent" not in result.err
    assert not out.exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--inducing", "0"], ["--inducing"]),
        (["--inducing", "-4"], ["--inducing"]),
        (["--inducing", "ten"], ["--inducing"]),
        (["--inducing", "1000000000"], ["inducing"]),
        (["--inducing", "5", "--groups", "person"], ["--groups", "--inducing"]),
        (["--inducing", "5", "--inputs", "age,size"], ["size"]),
    ],
)
def test_bad_requests(tmp_path: Path, arguments: list[str], words: list[str]) -> None:
    data, out = write(people_table(), tmp_path / "visits.csv"), tmp_path / "visits.privgp"
    for command in (["plan", data], ["release", data, "-o", out]):
        result = run(*command, *COLUMNS, *BUDGET, *QUICK, *arguments)
        assert_refused(result, *words)
    assert not out.exists()


def test_broken_tables(tmp_path: Path) -> None:
    out = tmp_path / "visits.privgp"
    texts = {
        "rows.csv": "age,bmi,cost\n",
        "lines.csv": "age,bmi,cost\n1,2,3\n4,5\n",
        "wide.csv": "age,bmi,cost\n1,2,3\n4,5,6,7\n",
        "fake.parquet": "age,bmi,cost\n1,2,3\n",
        "text.csv": "age,bmi,cost\n1,2,3\nold,5,6\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
        result = run("release", tmp_path / name, *COLUMNS, *BUDGET, *QUICK, *MANY, "-o", out)
        assert_refused(result, name)
        assert not out.exists()
