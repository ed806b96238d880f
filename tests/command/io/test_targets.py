"""Grids and tables of targets."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from privgp.command.errors import Refusal
from privgp.command.io.targets import grid, read_targets


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
    with pytest.raises(Refusal, match="no column 'bp'"):
        read_targets(str(path), ["bmi", "bp"])


def test_too_many_points_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "targets.parquet"
    pl.DataFrame({"age": np.arange(100_001)}).write_parquet(path)
    with pytest.raises(Refusal, match="more than 100,000"):
        read_targets(str(path), ["age"])
