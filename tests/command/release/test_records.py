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
    assert "Inputs: 'age'. The file contains no input." in inspected.out
    new = written(tmp_path / "..", pl.DataFrame({"age": [20, 60]}))
    predicted = run("predict", file, new, "-o", tmp_path / "new.csv")
    assert predicted.code == 0, predicted
    assert np.isfinite(pl.read_csv(tmp_path / "new.csv")["mean"].to_numpy()).all()


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("records")
    data, file = written(folder, people_table()), folder / "visits.privgp"
    assert run("release", data, *ONE, *BUDGET, *QUICK, "-o", file, "--seed", "1").code == 0
    return file


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_predictions_at_the_custodians_own_table_hold_none_of_its_cells(
    published: Path, tmp_path: Path, ending: str
) -> None:
    data, out, picture = published.with_name("visits.csv"), tmp_path / f"p.{ending}", "p.svg"
    done = run("predict", published, data, "-o", out, "--plot", tmp_path / picture)
    assert done.code == 0, done
    assert done.err.startswith(f"Warning: {out} holds predictions alone, in the order of the rows")
    assert done.err.count("\n") == 1
    found = pl.read_csv(out) if ending == "csv" else pl.read_parquet(out)
    assert found.columns == ["mean", "std", "low", "high", "near_data", "simulation"]
    expected = privgp.load(published).predict(people_table().select("age"))
    assert np.allclose(found["mean"].to_numpy(), expected, rtol=1e-9)
    # nor does the picture show where they lie
    run("predict", published, "--grid", "2", "-o", tmp_path / "g.csv", "--plot", tmp_path / "g.svg")
    assert (tmp_path / picture).read_bytes() == (tmp_path / "g.svg").read_bytes()


def test_columns_are_kept_where_that_is_asked_for(published: Path, tmp_path: Path) -> None:
    data, out = published.with_name("visits.csv"), tmp_path / "p.csv"
    done = run("predict", published, data, "-o", out, "--keep", "--json")
    assert done.code == 0, done
    predicted = ["mean", "std", "low", "high", "near_data", "simulation"]
    assert pl.read_csv(out).columns == ["person", "age", "bmi", *predicted]
    assert json.loads(done.out)["columns"] == ["person", "age", "bmi", *predicted]
    (warning,) = json.loads(done.out)["warnings"]
    assert "keep it private if NEW is the protected table" in warning
    on_grid = run("predict", published, "--grid", "2", "-o", out, "--force", "--keep")
    assert_refused(on_grid, "--keep and --no-keep are for the columns of NEW")


def test_the_number_of_rows_of_a_person_is_told_nowhere(tmp_path: Path) -> None:
    """Nor whether some of them have a missing value."""
    data, told, table = tmp_path / "v.csv", [], people_table().cast(pl.String)
    first, person = table.head(1), table["person"][0]
    missing = first.with_columns(age=pl.lit(""))
    people = [*ONE, "--groups", "person", "--missing", "drop", *BUDGET, *QUICK, "--force"]
    assert table.filter(pl.col("person") == person).height > 1
    for more in ([], [missing] * 7, [first] * 30 + [missing]):
        pl.concat([table, *more]).write_csv(data)
        for as_json in ([], ["--json"]):
            for command, *options in (
                ("plan", "-o", tmp_path / "v.plan", "--plot", tmp_path / "v.svg"),
                ("release", "-o", tmp_path / "v.privgp", "--seed", "1"),
            ):
                told.append(run(command, data, *people, *options, *as_json))
        told.append((tmp_path / "v.plan").read_bytes())
        told.append((tmp_path / "v.svg").read_bytes())
    assert all(each.code == 0 for each in told if hasattr(each, "code")), told
    assert told == told[:6] * 3
    assert "Rows in which a value is missing are left out" in told[0].err
    assert "Rows in which a value is missing are left out" in told[2].out


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


def test_private_records_of_labels_and_of_counts_from_plan_to_predictions(tmp_path: Path) -> None:
    """Three classes, and counts of people's records; the command gives what the library gives."""
    rng = np.random.default_rng(0)
    table, x = tmp_path / "people.csv", rng.uniform(0, 9, 60).round(2)
    pl.DataFrame(
        {
            "x": x,
            "mood": rng.choice(["good", "fair", "bad"], 60),
            "visits": rng.poisson(4.0, 60),
            "who": np.repeat(np.arange(20), 3),
        }
    ).write_csv(table)
    shared = ["--inputs", "x", "--protect", "records", "--x-bounds", "0", "9"]
    budget = ["--epsilon", "2", "--delta", "1e-5", *QUICK]
    kinds = {
        "mood": ["--classes", "good,fair,bad"],
        "visits": ["--bounds", "0", "20", "--likelihood", "poisson", "--groups", "who"],
    }
    for output, options in kinds.items():
        plan, out, told = (tmp_path / f"{output}.{end}" for end in ("plan", "privgp", "parquet"))
        made = run("plan", table, *shared, *options, *budget, "-o", plan)
        assert made.code == 0, made
        done = run("release", table, "--plan", plan, "--output", output, "-o", out)
        assert done.code == 0, done
        whose = "all records of one person" if "--groups" in options else "one whole record"
        assert whose in done.out
        asked = run("predict", out, table, "--inputs", "x", "-o", told)
        assert asked.code == 0, asked
        assert pl.read_parquet(told).height == 60
    refused = run(
        "plan", table, *shared, "--bounds", "0", "20", "--likelihood", "poisson", "--exposure", "who",
        *budget,
    )  # fmt: skip
    assert refused.code == 2
    assert "--exposure does not go with --protect records" in refused.err
