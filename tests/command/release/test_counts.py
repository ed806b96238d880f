"""Counts on the command line: rates by a public exposure, and the noise of one person."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from privgp import PrivateGPRegressor, load
from tests.command.running import assert_one_sentence, instead, run

BUDGET = ["--bounds", "0", "100", "--epsilon", "1", "--delta", "1e-5", "--hyperparameters", "fixed"]
COUNTS = ["--inputs", "week", *BUDGET, "--likelihood", "poisson", "--max-change", "1"]


@pytest.fixture
def weeks(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    week, people = np.arange(40.0), rng.integers(100, 900, size=40)
    cases = rng.poisson(people * 0.05)
    path = tmp_path / "weeks.csv"
    pl.DataFrame({"week": week, "people": people, "cases": cases}).write_csv(path)
    return path


def test_a_release_is_that_of_the_library(tmp_path: Path, weeks: Path) -> None:
    out = tmp_path / "weeks.privgp"
    given = ["--output", "cases", "--exposure", "people", "--seed", "3", "-o", out]
    assert run("release", weeks, *COUNTS, *given).code == 0
    table = pl.read_csv(weeks)
    model = PrivateGPRegressor(
        y_bounds=(0, 100), epsilon=1.0, delta=1e-5, hyperparameters="fixed", max_change=1,
        likelihood="poisson", random_state=3,
    )  # fmt: skip
    X = table.select(pl.col("week").cast(pl.Float64))
    model.fit(X, table["cases"].to_numpy(), exposure=table["people"].to_numpy())
    assert load(out).predict(X).tolist() == model.predict(X).tolist()
    told = run("inspect", out).out
    assert "one row, by at most 1" in told
    assert "Variance of a count over its mean: 1." in told


def test_a_plan_says_exposure_and_change(tmp_path: Path, weeks: Path) -> None:
    plan, out = tmp_path / "weeks.plan", tmp_path / "weeks.privgp"
    made = run("plan", weeks, *COUNTS, "--exposure", "people", "-o", plan)
    assert made.code == 0
    assert "of the rate" in made.out
    carried = ["release", weeks, "--plan", plan, "--output", "cases", "-o", out, "--json"]
    result = run(*carried)
    assert result.code == 0, result
    assert "by at most 1" in json.dumps(json.loads(result.out))
    assert load(out).max_change == 1.0
    assert_one_sentence(run(*carried[:-1], "--force", "--max-change", "2"))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--exposure", "cases"], "cannot be the exposure"),
        (["--exposure", "week"], "--exposure must be positive and finite"),
        (
            ["--exposure", "people", "--likelihood", "gaussian"],
            "--exposure does not go with --likelihood gaussian",
        ),
        (["--max-change", "0"], "--max-change must be positive"),
    ],
)
def test_what_counts_cannot_have_is_refused(
    tmp_path: Path, weeks: Path, options: list[str], sentence: str
) -> None:
    out = tmp_path / "weeks.privgp"
    result = run("release", weeks, *instead([*COUNTS, "--output", "cases"], options), "-o", out)
    assert_one_sentence(result)
    assert sentence in result.err
    assert not out.exists()
