"""privgp search grid: chooses, releases, says what it may, and refuses in one sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from privgp import load
from privgp.models.search.grid import PrivateGridSearchCV
from tests.command.running import BUDGET, COLUMNS, assert_one_sentence, assert_refused, instead, run

ONE = ["--inputs", "age", "--output", "cost"]
GRID = ["--lengthscales", "5,20,60", "--noise-std", "100,800"]
METHODS = ("measurement", "permute-and-flip", "exponential")


@pytest.mark.parametrize("method", METHODS)
def test_a_grid_is_searched_and_the_release_predicts(visits, tmp_path, method):
    out = tmp_path / "chosen.privgp"
    folds = [] if method == "measurement" else ["--folds", 3]
    result = run("search", "grid", visits, *ONE, *BUDGET, *GRID, "--method", method, *folds,
        "-o", out, "--certificate", tmp_path / "c.json")  # fmt: skip
    assert result.code == 0, result
    assert result.out.count("chosen\n") + result.out.count("chosen ") >= 1
    assert "(1, 0)-differential privacy (pure)" in result.out
    model = load(out)
    assert (model.guarantee_.epsilon, model.guarantee_.delta) == (1.0, 0.0)
    assert model.kernel_.k1.k2.length_scale in (5.0, 20.0, 60.0)
    source = json.loads((tmp_path / "c.json").read_text())["hyperparameters"]["source"]
    assert "chosen among 6 candidates" in source
    new = tmp_path / "new.csv"
    pl.DataFrame({"age": [30, 40]}).write_csv(new)
    assert run("predict", out, new, "-o", tmp_path / "p.csv").code == 0
    told = run("inspect", out)
    assert told.code == 0
    assert ("6 candidates" in told.out) == (method != "measurement")


def test_json_lists_the_candidates(visits, tmp_path):
    out = tmp_path / "a.privgp"
    result = run("search", "grid", visits, *COLUMNS, *BUDGET, "--lengthscales", "10:3,30:9,15",
        "-o", out, "--seed", 1, "--json")  # fmt: skip
    told = json.loads(result.out)
    assert [row["lengthscale"] for row in told["candidates"]] == [[10.0, 3.0], [30.0, 9.0], [15.0]]
    assert told["candidates"][told["chosen"]]["log_evidence_below_best"] == 0.0
    assert told["simulation"] is True
    assert told["guarantee"]["pure_epsilons"] == [1.0]


def test_a_kernel_may_be_given(visits, tmp_path):
    out = tmp_path / "a.privgp"
    kernel = "1e6*rbf(1) + 1e6 + white(4e4)"
    result = run("search", "grid", visits, *ONE, *BUDGET, "--lengthscales", "10,30", "--kernel",
        kernel, "-o", out)  # fmt: skip
    assert result.code == 0, result
    assert load(out).noise_variance_ == pytest.approx(4e4)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--lengthscales", "three"], "--lengthscales"),
        (["--lengthscales", "3,,9"], "--lengthscales"),
        (["--lengthscales", "0,3"], "--lengthscales"),
        (["--lengthscales", "nan"], "--lengthscales"),
        (["--lengthscales", "3:4:5"], "as many as there are inputs (1)"),
        (["--noise-std", "-1"], "--noise-std"),
        (["--noise-std", "inf"], "--noise-std"),
        (["--lengthscales", ",".join(["1"] * 201)], "more than 200"),
        (["--selection-share", "1"], "--selection-share"),
        (["--selection-share", "nan"], "--selection-share"),
        (["--selection-share", "0.3"], "--selection-share does not go with --method measurement"),
        (["--folds", "5"], "--folds does not go with --method measurement"),
        (["--method", "permute-and-flip", "--folds", "25"], "--folds"),
        (["--epsilon", "0"], "epsilon"),
        (["--delta", "2"], "delta"),
        (["--bounds", "5", "1"], "bounds"),
        (["--kernel", "rbf(3) + matern52(4)"], "one part with a lengthscale"),
        (["--kernel", "5"], "one part with a lengthscale"),
        (["--kernel", "rbf(3) + white(4)", "--noise-std", "3"], "noise once"),
        (["--kernel", "rbf("], "--kernel"),
        (["--method", "luck"], "luck"),
        (["--method", "exponential", "--folds", "1"], "folds"),
        (["--inputs", "height"], "height"),
        (["--inputs", "cost"], "cost"),
        (["-o", "nowhere/a.privgp"], "nowhere"),
        (["-o", "a.csv"], ".privgp"),
    ],
)
def test_bad_input_is_refused_before_anything_is_spent(
    visits: Path, tmp_path: Path, arguments: list[str], words: str, monkeypatch: Any
) -> None:
    def spend(*_: Any, **__: Any) -> None:
        raise AssertionError("budget was spent")

    monkeypatch.setattr(PrivateGridSearchCV, "fit", spend)
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    given = ["--lengthscales", "5,20", "-o", "a.privgp"]
    assert_refused(
        run("search", "grid", visits, *instead([*ONE, *BUDGET, *given], arguments)), words
    )
    assert sorted(tmp_path.iterdir()) == before


def test_an_existing_file_is_kept(visits, tmp_path):
    out = tmp_path / "a.privgp"
    out.write_text("mine")
    assert_refused(run("search", "grid", visits, *ONE, *BUDGET, *GRID, "-o", out), "--force")
    assert out.read_text() == "mine"


def test_a_failure_after_spending_says_so(visits, tmp_path, monkeypatch):
    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("no room left for 73591")

    monkeypatch.setattr(PrivateGridSearchCV, "fit", fail)
    result = run("search", "grid", visits, *ONE, *BUDGET, *GRID, "-o", tmp_path / "a.privgp")
    assert_one_sentence(result, code=1)
    assert "as spent" in result.err


def test_the_group_explains_itself():
    assert "grid" in run("search", "--help").out
