"""``--inducing``: tables that are read a part at a time, to the same bits as in memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from privgp import PrivateGPRegressor, load
from privgp.tables import files
from tests.command.running import (
    BUDGET,
    COLUMNS,
    QUICK,
    assert_refused,
    instead,
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
    assert "values, or means of values, of" in result.out
    model = PrivateGPRegressor(
        y_bounds=(0, 5000), epsilon=1, delta=1e-5, inducing=6, hyperparameters="fixed",
        random_state=3,
    ).fit(table.select("age", "bmi"), table["cost"].to_numpy())  # fmt: skip
    asked = table.select("age", "bmi").head(9)
    assert np.array_equal(load(out).predict(asked), model.predict(asked))
    assert run("inspect", out).code == 0
    assert "300 rows" in run("inspect", out).out


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_folder_or_a_pattern_is_the_table_of_its_files(tmp_path: Path, ending: str) -> None:
    table, out = people_table(300), tmp_path / "visits.privgp"
    folder = tmp_path / "visits"
    folder.mkdir()
    whole = write(table, tmp_path / f"whole.{ending}")
    for number, part in enumerate((table[:120], table[120:121], table[121:])):
        write(part, folder / f"{number}.{ending}")
    found = []
    for data in (whole, folder, folder / f"*.{ending}"):
        asked = *COLUMNS, *BUDGET, *QUICK, *MANY, "--groups", "person"
        plan = run("plan", data, *asked, "--json")
        assert '"rows": 300' in plan.out, plan
        result = run("release", data, *asked, "--seed", "3", "--force", "-o", out)
        assert result.code == 0, result
        found.append(load(out).predict(table.select("age", "bmi")))
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])
    planned = tmp_path / "visits.plan"
    assert run("plan", folder, *asked, "-o", planned).code == 0
    again = run(
        "release",
        folder,
        "--plan",
        planned,
        "--output",
        "cost",
        "--seed",
        "3",
        "--force",
        "-o",
        out,
    )
    assert again.code == 0, again
    assert np.array_equal(load(out).predict(table.select("age", "bmi")), found[0])


def test_a_small_folder_needs_no_inducing_inputs(tmp_path: Path) -> None:
    table, out = people_table(40), tmp_path / "visits.privgp"
    (tmp_path / "visits").mkdir()
    for number, part in enumerate((table[:15], table[15:])):
        write(part, tmp_path / "visits" / f"{number}.csv")
    asked = *COLUMNS, *BUDGET, *QUICK, "--seed", "3", "--force", "-o", out
    found = []
    for data in (tmp_path / "visits", write(table, tmp_path / "whole.csv")):
        assert run("release", data, *asked).code == 0
        found.append(load(out).predict(table.select("age", "bmi")))
    assert np.array_equal(*found)


@pytest.mark.parametrize(
    ("data", "arguments", "words"),
    [
        ("empty", [], ["empty", "no file"]),
        ("none*.csv", [], ["none*.csv", "no file"]),
        ("visits", ["--protect", "records", "--x-bounds", "0", "99"], ["--x-bounds"]),
        ("visits", ["--inputs", "age,size"], ["size"]),
        ("visits", ["--scheduler", "nowhere", *MANY], ["--scheduler must be an address"]),
        ("text", [], ["output column"]),
    ],
)
def test_bad_folders(tmp_path: Path, data: str, arguments: list[str], words: list[str]) -> None:
    for name in ("empty", "visits", "text"):
        (tmp_path / name).mkdir()
    write(people_table(), tmp_path / "visits" / "0.csv")
    write(people_table().with_columns(cost=pl.lit("secret")), tmp_path / "text" / "0.csv")
    out = tmp_path / "visits.privgp"
    result = run(
        "release", tmp_path / data, *instead([*COLUMNS, *BUDGET, *QUICK], arguments), "-o", out
    )
    assert_refused(result, *words)
    assert "secret" not in result.err
    assert not out.exists()


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
    assert '"distinct_inputs": 60' in answers[0].out
    assert '"rows": 60' in answers[0].out


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_plan_never_holds_a_private_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    data = write(people_table(), tmp_path / f"visits.{ending}")
    seen: list[pl.DataFrame] = []
    read = files.File.read

    def read_part(*arguments):
        seen.append(read(*arguments))
        return seen[-1]

    monkeypatch.setattr(files.File, "read", read_part)
    assert run("plan", data, *COLUMNS, *BUDGET, *QUICK, *MANY).code == 0
    assert seen
    assert all(set(frame.columns) == {"age", "bmi"} for frame in seen)
    cells = [str(cell) for frame in seen for row in frame.rows() for cell in row]
    assert not any(private in cell for cell in cells for private in private_cells())


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("column", ["age", "cost"])
@pytest.mark.parametrize("cell", [None, float("nan"), float("inf")])
def test_a_bad_cell_in_the_last_row_is_refused_before_anything_is_spent(
    tmp_path: Path, ending: str, column: str, cell: float | None
) -> None:
    values = [*people_table()[column].to_list()[:-1], cell]
    table = people_table().with_columns(pl.Series(column, values, dtype=pl.Float64, strict=False))
    data, out = write(table, tmp_path / f"visits.{ending}"), tmp_path / "visits.privgp"
    result = run("release", data, *COLUMNS, *BUDGET, *QUICK, *MANY, "-o", out)
    assert_refused(result, "Column 'age'" if column == "age" else "The output column must hold")
    assert "spent" not in result.err
    assert not out.exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--inducing", "0"], ["--inducing"]),
        (["--inducing", "-4"], ["--inducing"]),
        (["--inducing", "ten"], ["--inducing"]),
        (["--inducing", "1000000000"], ["inducing"]),
        (["--inducing", "5", "--groups", "nobody"], ["nobody"]),
        (["--inducing", "5", "--inputs", "age,size"], ["size"]),
    ],
)
def test_bad_requests(tmp_path: Path, arguments: list[str], words: list[str]) -> None:
    data, out = write(people_table(), tmp_path / "visits.csv"), tmp_path / "visits.privgp"
    for command in (["plan", data], ["release", data, "-o", out]):
        result = run(*command, *instead([*COLUMNS, *BUDGET, *QUICK], arguments))
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
