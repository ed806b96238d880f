"""Four private inputs, and people with several records, on the command line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tests.command.running import assert_refused, run

FOUR = ["--inputs", "a,b,c,d", "--output", "cost", "--protect", "records"]
BOUNDS = ["--x-bounds", "0", "1"] * 4
BUDGET = ["--bounds", "0", "10", "--epsilon", "4", "--delta", "1e-5"]
QUICK = ["--hyperparameters", "fixed"]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    table = pl.DataFrame({name: rng.uniform(size=60) for name in "abcd"})
    table = table.with_columns(cost=5 + 3 * pl.col("a"), who=pl.Series(np.arange(60) // 3))
    table.write_csv(tmp_path / "trips.csv")
    return tmp_path / "trips.csv"


def test_four_private_inputs(data: Path, tmp_path: Path) -> None:
    plan = tmp_path / "trips.plan"
    said = run("plan", data, *FOUR, *BOUNDS, *BUDGET, *QUICK, "-o", plan)
    assert said.code == 0
    assert "features of the inputs" in said.out
    out = tmp_path / "trips.privgp"
    page = tmp_path / "trips.html"
    files = ["-o", out, "--certificate", page]
    assert run("release", data, "--output", "cost", "--plan", plan, *files).code == 0
    assert "features of the inputs" in page.read_text()
    told = run("inspect", out)
    assert told.code == 0
    assert "one whole record" in told.out
    assert run("predict", out, data, "-o", tmp_path / "new.csv").code == 0
    assert pl.read_csv(tmp_path / "new.csv").height == 60


def test_laplace_noise_is_refused_with_four(data: Path) -> None:
    line = ["plan", data, *FOUR, *BOUNDS, *BUDGET, "--mechanism", "laplace"]
    assert_refused(run(*line), "need Gaussian noise")


@pytest.mark.parametrize(
    "inputs", [["--inputs", "a", "--x-bounds", "0", "1"], [*FOUR[:2], *BOUNDS]]
)
def test_people_with_several_records(data: Path, tmp_path: Path, inputs: list[str]) -> None:
    line = [*FOUR[2:], *inputs, "--groups", "who", *BUDGET, *QUICK]
    if "a" in inputs:  # four inputs are planned for above, and by the release
        said = run("plan", data, *line)
        assert said.code == 0
        assert "20 people" in said.out
    out = tmp_path / "trips.privgp"
    assert run("release", data, *line, "-o", out).code == 0
    told = run("inspect", out)
    assert "all records of one person" in told.out
    assert "20" in told.out


@pytest.mark.parametrize("row", [0, 7])
def test_a_missing_person_is_refused_without_saying_where(data: Path, row: int) -> None:
    table = pl.read_csv(data).with_columns(pl.col("who").cast(pl.String))
    table[row, "who"] = ""
    table.write_csv(data)
    line = [*FOUR, *BOUNDS, "--groups", "who", *BUDGET, *QUICK, "-o", data.with_suffix(".privgp")]
    said = run("release", data, *line)
    assert_refused(said, "must name a person in every row.")
    assert "row 0" not in said.err
    assert "7" not in said.err.replace(str(data), "")
