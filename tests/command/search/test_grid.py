"""privgp search grid: chooses, releases, says what it may, and refuses in one sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from privgp import load
from privgp.models.search.grid import PrivateGridSearchCV
from tests.command.running import BUDGET, COLUMNS, assert_one_sentence, assert_refused, instead, run

ONE = ["--inputs", "age", "--output", "cost"]
GRID = ["--lengthscales", "5,20,60", "--noise-std", "100,800"]
METHODS = ("measurement", "permute-and-flip", "exponential")


def refuse_spending(patch: Any, problem: Exception) -> None:
    """Let a search fail that is no rehearsal, which has a seed and simulated values."""
    fit = PrivateGridSearchCV.fit

    def spend(search: PrivateGridSearchCV, *given: Any, **more: Any) -> Any:
        if search.random_state is None:
            raise problem
        return fit(search, *given, **more)

    patch.setattr(PrivateGridSearchCV, "fit", spend)


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


@pytest.fixture(scope="module")
def sales(tmp_path_factory) -> Path:
    """Enough rows for blocks, in the order of a private input."""
    rng = np.random.default_rng(0)
    age = np.sort(rng.uniform(0.0, 100.0, 200))
    cost = np.clip(2500.0 + 2000.0 * np.sin(age / 10.0) + rng.normal(0.0, 300.0, 200), 0.0, 5000.0)
    path = tmp_path_factory.mktemp("sales") / "sales.csv"
    pl.DataFrame({"age": age, "cost": cost, "high": np.where(cost > 2500, "yes", "no")}).write_csv(
        path
    )
    return path


FREE = ["--inputs", "age", "--epsilon", "6", "--delta", "1e-5", "--lengthscales", "0.1,10,1000"]
RECORDS = [
    *FREE, "--output", "cost", "--bounds", "0", "5000", "--noise-std", "300", "--protect", "records",
    "--x-bounds", "0", "100", "--method", "permute-and-flip",
]  # fmt: skip
LABELS = [*FREE, "--output", "high", "--classes", "no,yes", "--method", "exponential"]


@pytest.mark.parametrize("asked", [RECORDS, LABELS], ids=["records", "labels"])
def test_records_and_labels_are_compared_by_blocks(sales, tmp_path, asked):
    out = tmp_path / "chosen.privgp"
    done = run("search", "grid", sales, *asked, "--blocks", 8, "--seed", 1, "--json", "-o", out)
    assert done.code == 0, done
    told = json.loads(done.out)
    assert told["candidates"][told["chosen"]]["lengthscale"] == [10.0]
    guarantee = load(out).guarantee_
    assert (guarantee.epsilon, guarantee.delta) == (6.0, 1e-5)
    assert "on 8 blocks of the rows" in guarantee.mechanism
    assert guarantee.pure_epsilons[0] == pytest.approx(0.3 * 6.0)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--method", "measurement"], "permute-and-flip"),
        (["--folds", "5"], "--folds does not go with records and labels"),
        (["--groups", "high"], "--groups does not go with records and labels"),
        (["--blocks", "51"], "--blocks"),
        (["--noise-std", "0"], "--noise-std"),
        (["--x-bounds", "5", "5"], "--x-bounds"),
    ],
)
def test_bad_input_of_blocks_is_refused_before_anything_is_spent(
    sales, tmp_path, arguments, words, monkeypatch
):
    refuse_spending(monkeypatch, AssertionError("budget was spent"))
    given = instead([*RECORDS, "-o", str(tmp_path / "a.privgp")], arguments)
    assert_refused(run("search", "grid", sales, *given), words)
    assert not [*tmp_path.iterdir()]


def test_blocks_are_for_records_and_labels(visits, tmp_path):
    given = [
        *ONE,
        *BUDGET,
        *GRID,
        "--method",
        "exponential",
        "--blocks",
        4,
        "-o",
        tmp_path / "a.privgp",
    ]
    assert_refused(run("search", "grid", visits, *given), "--blocks does not go with numbers")


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
    refuse_spending(monkeypatch, AssertionError("budget was spent"))
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
    refuse_spending(monkeypatch, RuntimeError("no room left for 73591"))
    result = run("search", "grid", visits, *ONE, *BUDGET, *GRID, "-o", tmp_path / "a.privgp")
    assert_one_sentence(result, code=1)
    assert "as spent" in result.err


def test_the_group_explains_itself():
    assert "grid" in run("search", "--help").out
