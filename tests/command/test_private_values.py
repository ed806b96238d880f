"""Every command reads private cells one by one, through the vault's converter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from privgp.command.io import columns
from privgp.tables.source import load, open_source
from privgp.vault import table as private_columns
from tests.command.running import BUDGET, COLUMNS, assert_refused, people_table, run
from tests.command.test_function import KERNEL
from tests.command.test_paths import LAW

RECORDS = ["--protect", "records", "--x-bounds", "0", "90", "--x-bounds", "10", "50"]
DOMAIN = ["--protect", "records", "--domain", "age=0:90,bmi=10:50"]
SEARCH = ["--inputs", "age,bmi", "--space", "alpha=1:2", "--estimator", "ridge", "--epsilon", 1,
    "--delta", 1e-5, "--steps", 2]  # fmt: skip

# name: (words before the table, words after it, ending of the result, private columns of numbers)
COMMANDS: dict[str, tuple[list[Any], list[Any], str, int]] = {
    "release": (["release"], [*COLUMNS, *BUDGET], "privgp", 1),
    "release of people": (["release"], [*COLUMNS, *BUDGET, "--groups", "person"], "privgp", 1),
    "release, inducing": (["release"], [*COLUMNS, *BUDGET, "--inducing", 4], "privgp", 1),
    "release of records": (["release"], [*COLUMNS, *BUDGET, *RECORDS], "privgp", 3),
    "function": (["function", "create"], [*COLUMNS, *BUDGET, *KERNEL], "private-state", 1),
    "function of records": (
        ["function", "create"], [*COLUMNS, *BUDGET, *KERNEL, *DOMAIN], "private-state", 3,
    ),
    "paths": (["paths", "create"], [*COLUMNS, *LAW, "--epsilon", 5], "private-state", 3),
    "search grid": (
        ["search", "grid"], [*COLUMNS, *BUDGET, "--lengthscales", "5,9"], "privgp", 1,
    ),
    "search bayes, numbers": (
        ["search", "bayes", "--train"],
        [*SEARCH, "--output", "cost", "--task", "regression", "--loss-bounds", 0, 9],
        "json", 4,
    ),
    "search bayes, labels": (
        ["search", "bayes", "--train"], [*SEARCH, "--output", "person"], "json", 2,
    ),
}  # fmt: skip


def words_of(name: str, folder: Path, ending: str) -> tuple[list[Any], int]:
    before, after, result, count = COMMANDS[name]
    data = folder / f"visits.{ending}"
    table = people_table()
    table.write_csv(data) if ending == "csv" else table.write_parquet(data)
    held = ["--validation", data] if name.startswith("search bayes") else []
    return [*before, data, *held, *after, "-o", folder / f"made.{result}"], count


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("name", COMMANDS)
def test_every_private_column_passes_through_the_converter(name, ending, tmp_path, monkeypatch):
    """The converter refuses the last column that it is to be given: so does the command."""
    words, count = words_of(name, tmp_path, ending)
    checked, calls = private_columns.column_numbers, []

    def refusing(values: Any, rows: int) -> Any:
        calls.append(rows)
        if len(calls) == count:
            raise ValueError
        return checked(values, rows)

    monkeypatch.setattr(private_columns, "column_numbers", refusing)
    assert_refused(run(*words), "must hold a finite number in every row")
    assert len(calls) == count


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_labels_are_read_cell_by_cell(ending, tmp_path, monkeypatch):
    seen = []

    def refusing(cell: Any) -> None:
        seen.append(cell)

    monkeypatch.setattr("privgp.vault.validate.read_label", refusing)
    words, _ = words_of("search bayes, labels", tmp_path, ending)
    assert_refused(run(*words), "must hold a label in every row")
    assert seen == people_table()["person"].to_list()


def test_cells_of_private_inputs_are_numbers_whatever_the_others_are(tmp_path):
    """A column of whole numbers is not another column because one cell has a fraction."""
    for last in ("3", "2.5", " 1e3 "):
        path = tmp_path / "records.csv"
        pl.DataFrame({"x": ["1", "9007199254740993", last], "y": ["1"] * 3}).write_csv(path)
        source = open_source(path)
        frame = load(source, ["x", "y"])
        found = columns.private_columns(frame, ["x"], source).to_numpy()
        assert found[:2].tolist() == [[1.0], [9007199254740992.0]]
