"""``--protect records``: whole records are hidden, and nothing that others see depends on them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import privgp
from privgp.models.regressor import PrivateGPRegressor
from tests.command.running import BUDGET, QUICK, ROWS, assert_refused, people_table, run

ONE = ["--inputs", "age", "--output", "cost", "--protect", "records", "--x-bounds", "0", "90"]
TWO = [*ONE[:1], "age,bmi", *ONE[2:], "--x-bounds", "-1e1", "50"]


def written(folder: Path, table: pl.DataFrame, ending: str = "csv") -> Path:
    path = folder / f"visits.{ending}"
    table.write_csv(path) if ending == "csv" else table.write_parquet(path)
    return path


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_plan_release_inspect_predict(tmp_path: Path, ending: str) -> None:
    data, file = written(tmp_path, people_table(), ending), tmp_path / "visits.privgp"
    planned = run("plan", data, *ONE, *BUDGET, *QUICK, "--plot", tmp_path / "plan.svg")
    assert planned.code == 0, planned
    assert f"{ROWS} records" in planned.out
    assert "a plan needs neither an input nor an output" in planned.out
    assert "<svg" in (tmp_path / "plan.svg").read_text()
    if ending == "parquet":
        return  # from here on they are the same
    page, picture = tmp_path / "page.html", tmp_path / "curve.png"
    released = run(
        *("release", data, *ONE, *BUDGET, *QUICK, "-o", file),
        *("--certificate", page, "--plot", picture),
    )
    assert released.code == 0, released
    assert "The file contains noisy sums of the records" in released.out
    assert "whole record" in released.out
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert privgp.load(file).x_bounds == ((0.0, 90.0),)
    inspected = run("inspect", file)
    assert inspected.code == 0, inspected
    assert "Inputs: 'age'; the file contains none." in inspected.out
    new = written(tmp_path / "..", pl.DataFrame({"age": [20, 60]}))
    predicted = run("predict", file, new, "-o", tmp_path / "new.csv")
    assert predicted.code == 0, predicted
    assert np.isfinite(pl.read_csv(tmp_path / "new.csv")["mean"].to_numpy()).all()


@pytest.mark.parametrize("law", ["gaussian", "laplace"])
def test_either_law_of_noise(tmp_path: Path, law: str) -> None:
    data, file = written(tmp_path, people_table()), tmp_path / "visits.privgp"
    asked = [*ONE, *BUDGET, *QUICK, "--mechanism", law]
    planned = run("plan", data, *asked)
    assert planned.code == 0, planned
    assert f"{law.capitalize()} noise" in " ".join(planned.out.split())
    released = run("release", data, *asked, "-o", file)
    assert released.code == 0, released
    inspected = run("inspect", file)
    assert inspected.code == 0, inspected
    assert f"({law.capitalize()} noise)" in " ".join(inspected.out.split())
    assert privgp.load(file).mechanism == law
    assert_refused(run("plan", data, *ONE, *BUDGET, "--mechanism", "cauchy"), "--mechanism")


def test_two_inputs_and_json(tmp_path: Path) -> None:
    data, file = written(tmp_path, people_table()), tmp_path / "visits.privgp"
    planned = json.loads(run("plan", data, *TWO, *BUDGET, *QUICK, "--json").out)
    assert planned["rows"] == ROWS
    assert planned["distinct_inputs"] is None
    released = run("release", data, *TWO, *BUDGET, *QUICK, "-o", file, "--json")
    assert released.code == 0, released
    assert json.loads(released.out)["contains_inputs"] == []
    assert privgp.load(file).x_bounds == ((0.0, 90.0), (-10.0, 50.0))


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_plan_loads_no_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str) -> None:
    """The header, and of the rest how many rows there are."""
    data = written(tmp_path, people_table(), ending)
    seen: list[pl.DataFrame] = []

    def forbidden(*_: Any, **__: Any) -> None:
        raise AssertionError("another way to the file was used")

    def watched(owner: Any, name: str) -> None:
        original: Callable[..., pl.DataFrame] = getattr(owner, name)

        def read(*arguments: Any, **options: Any) -> pl.DataFrame:
            frame = original(*arguments, **options)
            seen.append(frame)
            return frame

        monkeypatch.setattr(owner, name, read)

    watched(pl.LazyFrame, "collect")
    monkeypatch.setattr(pl, "read_parquet", forbidden)
    if ending == "parquet":
        monkeypatch.setattr(pl, "read_csv", forbidden)
    else:
        watched(pl, "read_csv")
    assert run("plan", data, *TWO, *BUDGET, *QUICK).code == 0
    cells = [cell for frame in seen for row in frame.rows() for cell in row]
    header = ["person", "age", "bmi", "cost"]
    assert sorted({str(cell) for cell in cells} - {str(ROWS)}) in ([], sorted(header))


@pytest.mark.parametrize(
    "ages", [["secret"] * ROWS, [""] * ROWS, ["nan"] * ROWS, ["-1e300"] * ROWS]
)
def test_what_the_table_holds_makes_no_difference_to_the_plan(
    tmp_path: Path, ages: list[str]
) -> None:
    table = people_table()
    data = written(tmp_path, table)
    first = run("plan", data, *ONE, *BUDGET, *QUICK, "--json")
    written(tmp_path, table.with_columns(pl.Series("age", ages), pl.Series("cost", ages)))
    assert run("plan", data, *ONE, *BUDGET, *QUICK, "--json") == first
    assert first.code == 0


@pytest.mark.parametrize("bad", ["73591", "nan 73591", "", "inf", "nan", "1e999"])
@pytest.mark.parametrize("row", [0, 11])
def test_bad_private_inputs_have_one_sentence_and_spend_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bad: str, row: int
) -> None:
    def spend(*_: Any, **__: Any) -> None:
        raise AssertionError("budget was spent")

    monkeypatch.setattr(PrivateGPRegressor, "fit", spend)
    ages = [str(age) for age in people_table()["age"]]
    ages[row] = bad if bad != "73591" else "73591 years"
    data = written(tmp_path, people_table().with_columns(pl.Series("age", ages)))
    result = run("release", data, *ONE, *BUDGET, "-o", tmp_path / "v.privgp")
    assert_refused(result, f"Column 'age' of '{data}' must hold a finite number in every row")
    assert not (tmp_path / "v.privgp").exists()


def test_what_the_rehearsal_sees_is_made_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fits: list[Any] = []
    original = PrivateGPRegressor.fit

    def fit(self: PrivateGPRegressor, X: Any, y: Any, **named: Any) -> Any:
        fits.append((X.to_numpy(), np.asarray(y)))
        return original(self, X, y, **named)

    monkeypatch.setattr(PrivateGPRegressor, "fit", fit)
    data = written(tmp_path, people_table())
    assert run("release", data, *ONE, *BUDGET, *QUICK, "-o", tmp_path / "v.privgp").code == 0
    rehearsal, real = fits
    assert np.all(rehearsal[0] == 45.0)
    assert np.all(rehearsal[1] == 2500.0)
    assert real[0][:, 0].tolist() == people_table()["age"].to_list()


def test_tables_without_rows_or_columns(tmp_path: Path) -> None:
    data = written(tmp_path, people_table().clear())
    assert_refused(run("plan", data, *ONE, *BUDGET), "no rows")
    data = written(tmp_path, people_table().drop("age"))
    assert_refused(run("plan", data, *ONE, *BUDGET), "no column 'age'")
    many = ",".join(f"x{i}" for i in range(21))
    options = ["--inputs", many, "--output", "cost", "--protect", "records"]
    pairs = ["--x-bounds", "0", "1"] * 21
    assert_refused(run("plan", data, *options, *pairs, *BUDGET), "at most 20 inputs")
