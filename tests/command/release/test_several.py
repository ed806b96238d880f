"""Several outputs: one file, planned, released and asked by their names."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from privgp import Label, Number, PrivateGP, load, load_plan
from tests.command.running import QUICK, assert_refused, instead, people_table, run

OUTPUTS = ["--output", "cost,days"]
BOUNDS = ["--bounds", "0", "5000", "--bounds", "-1e0", "40"]
BUDGET = ["--epsilon", "1", "--delta", "1e-5"]
ASKED = ["--inputs", "age", *OUTPUTS, *BOUNDS, *BUDGET, *QUICK]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "visits.csv"
    people_table().with_columns(days=pl.col("age") / 4.0).write_csv(path)
    return path


def test_from_a_plan_to_predictions_by_name(table: Path, tmp_path: Path) -> None:
    plan, out, new = (tmp_path / name for name in ("v.plan", "v.privgp", "new.csv"))
    page, told = tmp_path / "v.html", tmp_path / "v.png"
    planned = run("plan", table, *ASKED, "--shares", "1,2", "--json", "-o", plan)
    assert planned.code == 0, planned
    facts = json.loads(planned.out)
    assert facts["bounds"] == [[0, 5000], [-1, 40]]
    assert len(facts["expected_error"]) == len(facts["expected_errors"][0]["expected_error"]) == 2
    assert load_plan(plan).output_names == ("cost", "days")
    line = ["--plan", plan, "--seed", "3", "--certificate", page, "--plot", told]
    released = run("release", table, *OUTPUTS, *line, "-o", out)
    assert released.code == 0, released
    assert "all output values of one row" in released.out
    assert "cost 0 to 5000, days -1 to 40" in page.read_text()
    model = load(out)
    assert model.output_names_ == ("cost", "days")
    predicted = run("predict", out, table, "-o", new)
    assert predicted.code == 0, predicted
    found = pl.read_csv(new)
    assert found.columns[:11] == [
        "person", "age", "bmi", "cost_mean", "cost_std", "cost_low", "cost_high",
        "days_mean", "days_std", "days_low", "days_high",
    ]  # fmt: skip
    means = model.predict(found.select("age"))
    assert found["cost_mean"].to_list() == pytest.approx(means[:, 0])
    assert found["days_mean"].to_list() == pytest.approx(means[:, 1])
    shown = run("inspect", out)
    assert shown.code == 0, shown
    assert "Most plausible kernel of days" in shown.out
    assert "days, in [-1, 40]" in shown.out
    swapped = ["--output", "days,cost", "--plan", plan, "-o", tmp_path / "other.privgp"]
    assert_refused(run("release", table, *swapped), "cost,days, in this order")


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (["--output", "cost"], "--output names 1 column"),
        (["--output", "cost,cost"], "--output names the column 'cost' twice"),
        (["--output", "cost,age"], "cannot be among the inputs"),
        (["--output", "cost,none"], "none"),
        (["--bounds", "3", "1"], "--bounds must have low < high"),
        (["--shares", "1"], "--shares must be"),
        (["--shares", "1,a"], "--shares must be"),
        (["--inducing", "0"], "--inducing must be at least 1"),
        (["--objective", "trace"], "--objective does not go with several outputs"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_spent(
    table: Path, tmp_path: Path, changed: list[str], words: str
) -> None:
    result = run("release", table, *instead(ASKED, changed), "-o", tmp_path / "v.privgp")
    assert_refused(result, words)
    assert not (tmp_path / "v.privgp").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--bounds", "0", "9"], "--output names 2 columns, but there are bounds for one output"),
        (["--classes", "a,b"], "--output names 2 columns, but there are classes for one output"),
    ],
)
def test_bounds_for_one_output_do_not_do_for_two(
    table: Path, tmp_path: Path, options: list[str], words: str
) -> None:
    line = ["--inputs", "age", *OUTPUTS, "--epsilon", "1", "--delta", "1e-5"]
    assert_refused(run("release", table, *line, *options, "-o", tmp_path / "v.privgp"), words)


def test_other_commands_take_bounds_once(table: Path, tmp_path: Path) -> None:
    line = ["--inputs", "age", "--output", "cost", *BOUNDS, "--epsilon", "1", "--delta", "1e-5"]
    made = run("search", "grid", table, *line, "--lengthscales", "5,9", "-o", tmp_path / "v.privgp")
    assert_refused(made, "--bounds must be given once")


def test_an_error_to_reach_is_for_one_output(table: Path) -> None:
    line = ["--inputs", "age", *OUTPUTS, *BOUNDS, "--delta", "1e-5", "--for-error", "9"]
    assert_refused(run("plan", table, *line), "--for-error is for one output")


def test_bad_cells_of_any_output_are_refused(table: Path, tmp_path: Path) -> None:
    for column in ("cost", "days"):
        cells = [*pl.read_csv(table)[column].cast(pl.String)[:-1], "text"]
        bad = tmp_path / "bad.csv"
        pl.read_csv(table).with_columns(pl.Series(column, cells)).write_csv(bad)
        result = run("release", bad, *ASKED, "-o", tmp_path / "v.privgp")
        assert_refused(result, f"Column '{column}'", "finite number in every row")


def test_outcomes_of_several_kinds_are_predicted_and_described(tmp_path: Path) -> None:
    X = np.linspace(0.0, 1.0, 40)
    table = pl.DataFrame({"x": X, "height": 150 + 30 * X, "smokes": ["yes", "no"] * 20})
    outcomes = {"height": Number(100, 200), "smokes": Label("yes", "no")}
    model = PrivateGP(outcomes, inputs=["x"], epsilon=5.0, delta=1e-5, random_state=0)
    model.set_params(hyperparameters="fixed").fit(table).save(tmp_path / "both.privgp")
    table.select("x").write_csv(tmp_path / "new.csv")
    out = tmp_path / "out.csv"
    done = run("predict", tmp_path / "both.privgp", tmp_path / "new.csv", "-o", out, "--json")
    assert done.code == 0, done
    assert json.loads(done.out)["mean"] == ["height_mean"]
    found, expected = pl.read_csv(out), model.predict(table.select("x"))
    for name in ("height_mean", "height_high", "smokes_probability_yes", "smokes_low_no"):
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-9)
    assert found["smokes_label"].to_list() == expected["smokes_label"].to_list()
    told = run("inspect", tmp_path / "both.privgp").out
    assert "Most plausible kernel of height" in told
    assert "Classes: 'no' and 'yes'." in told
