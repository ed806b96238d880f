"""Ranges of inputs, one reader for every option that declares them; grids and tables of targets."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from privgp.command import join_pairs
from privgp.command.errors import Refusal
from privgp.command.io.axes import grid, read_ranges, read_targets
from privgp.errors import TableError
from tests.command.running import BUDGET, COLUMNS, QUICK, run


def test_a_grid_is_the_product_of_its_axes_in_the_order_of_the_inputs() -> None:
    points = grid("bp=60:130:3, bmi=18:42:2", ["bmi", "bp"])
    expected = [[18, 60], [18, 95], [18, 130], [42, 60], [42, 95], [42, 130]]
    assert points.tolist() == expected


def test_a_name_may_hold_an_equals_sign() -> None:
    assert grid("a=b=0:1:2", ["a=b"]).tolist() == [[0.0], [1.0]]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "age",
        "age=",
        "age=0:90",
        "age=0:90:5:6",
        "age=0:90:5.5",
        "age=0:90:0",
        "age=0:90:-1",
        "age=90:0:5",
        "age=0:0:5",
        "age=nan:1:5",
        "age=0:inf:5",
        "age=-1e308:1e308:5",
        "age=0:1:100001",
        "age=0:1:999999999999999999999",
        "bmi=0:1:5",
        "age=0:1:5,age=0:1:5",
        "age=0:1:5,bmi=0:1:5",
        "=0:1:5",
        "age=a:b:c",
        "targets.txt",
    ],
)
def test_other_grids_are_refused_in_one_sentence(text: str) -> None:
    with pytest.raises(Refusal) as refusal:
        read_targets(text, ["age"])
    assert "--targets" in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_table_gives_its_input_columns(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"targets.{ending}"
    table = pl.DataFrame({"bp": [1, 2], "other": ["x", "y"], "bmi": [3.5, 4.5]})
    table.write_csv(path) if ending == "csv" else table.write_parquet(path)
    points = read_targets(str(path), ["bmi", "bp"])
    assert points.dtype == np.float64
    assert points.tolist() == [[3.5, 1.0], [4.5, 2.0]]


def test_a_table_without_an_input_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "targets.csv"
    path.write_text("bmi\n1\n")
    with pytest.raises(TableError, match="no column 'bp'"):
        read_targets(str(path), ["bmi", "bp"])


def test_too_many_points_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "targets.parquet"
    pl.DataFrame({"age": np.arange(100_001)}).write_parquet(path)
    with pytest.raises(Refusal, match="more than 100,000"):
        read_targets(str(path), ["age"])


# ranges

AGE, BMI = (0.0, 90.0), (15.0, 50.0)


def test_pairs_become_one_word() -> None:
    given = ["plan", "--x-bounds", "0", "90", "--x-bounds", "-1", "1e2", "--x-bounds=2:3"]
    joined = ["plan", "--x-bounds=0:90", "--x-bounds=-1:1e2", "--x-bounds=2:3"]
    assert join_pairs(given) == joined
    assert join_pairs(["--x-bounds", "0"]) == ["--x-bounds", "0"]
    assert join_pairs(["--domain", "0", "1"]) == ["--domain", "0", "1"]  # two numbers there


@pytest.mark.parametrize(
    "words",
    [
        ["0:90", "15:50"],
        ["0:90,15:50"],
        ["age=0:90,bmi=15:50"],
        ["bmi=15:50,age=0:90"],
        [" bmi =15:50", "age=0:90"],
    ],
)
def test_ranges_are_in_the_order_of_the_inputs(words: list[str]) -> None:
    assert read_ranges(words, ["age", "bmi"], "--domain") == [AGE, BMI]


def test_a_name_may_hold_an_equals_sign_and_no_names_may_be_known() -> None:
    assert read_ranges(["a=b=0:90"], ["a=b"], "--domain") == [AGE]
    assert read_ranges(["age=0:90,bmi=15:50"], None, "--domain") == [AGE, BMI]


@pytest.mark.parametrize("option", ["--x-bounds", "--domain"])
@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ([""], "two numbers"),
        (["0"], "two numbers"),
        (["0:1:2", "0:1"], "two numbers"),
        (["a:b", "0:1"], "two numbers"),
        (["age=0:1,"], "two numbers"),
        (["age=0:1", "0:1"], "two numbers"),
        (["age=0:1,age=0:1"], "'age' twice"),
        (["age=0:1"], "each input, 'age' and 'bmi'; it has 'age'"),
        (["age=0:1,height=0:1"], "it has 'age' and 'height'"),
        (["0:1"], "each input: 2, not 1"),
        (["0:1,0:1,0:1"], "each input: 2, not 3"),
    ],
)
def test_other_ranges_are_refused(words: list[str], problem: str, option: str) -> None:
    with pytest.raises(Refusal, match=problem) as refusal:
        read_ranges(words, ["age", "bmi"], option)
    assert str(refusal.value).startswith(option)


def test_names_and_pairs_are_the_same_to_every_command(tmp_path: Path, visits: Path) -> None:
    pairs = ["--x-bounds", "0", "90", "--x-bounds", "15", "50"]
    named = ["--x-bounds", "bmi=15:50,age=0:90"]
    plan = ["plan", visits, *COLUMNS, *BUDGET, *QUICK, "--protect", "records", "--json"]
    assert run(*plan, *pairs) == run(*plan, *named)
    kernel = ["--kernel", "1e6*matern52(20, 5) + white(250000)"]
    facts = []
    for name, ranges in (("a", pairs), ("b", named), ("c", ["--domain", "0:90,15:50"])):
        state = tmp_path / f"{name}.private-state"
        create = ["function", "create", visits, *COLUMNS, *BUDGET, *kernel, "--protect", "records"]
        result = run(*create, *ranges, "-o", state, "--json")
        assert result.code == 0, result
        facts.append({**json.loads(result.out), "state": None})
    assert facts[0] == facts[1] == facts[2]
