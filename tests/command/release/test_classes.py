"""Labels on the command line: plan, release, predict, inspect, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from privgp import PrivateGPClassifier, load
from tests.command.running import QUICK, Result, run

BUDGET = ["--epsilon", "1", "--delta", "1e-5"]
LABELS = ["--inputs", "age", "--output", "ill"]
HIDDEN = "zq-undeclared"


@pytest.fixture
def people(tmp_path: Path) -> Path:
    """One label has spaces around it, one was never declared."""
    ages = np.arange(20, 80)
    ill = np.where(ages > 50, "yes", "no").astype(object)
    ill[3], ill[5] = " no ", HIDDEN
    pl.DataFrame({"age": ages, "ill": ill.tolist()}).write_csv(tmp_path / "people.csv")
    return tmp_path / "people.csv"


def release(people: Path, *more: str) -> Result:
    out = people.with_suffix(".privgp")
    return run("release", people, *LABELS, *BUDGET, *QUICK, "-o", out, *more)


def test_from_a_plan_to_probabilities(people: Path) -> None:
    plan, released, table = (people.with_suffix(s) for s in (".plan", ".privgp", ".parquet"))
    made = run("plan", people, "--inputs", "age", "--classes", "yes,no", *BUDGET, *QUICK,
               "-o", plan, "--json")  # fmt: skip
    assert json.loads(made.out)["classes"] == ["yes", "no"]
    done = run("release", people, "--plan", plan, "--output", "ill", "-o", released)
    assert done.code == 0, done
    assert "protecting one label" in done.out
    assert HIDDEN not in done.out + done.err
    predicted = run("predict", released, people, "-o", table, "--inputs", "age")
    assert predicted.code == 0, predicted
    frame = pl.read_parquet(table)
    assert frame.columns == [
        "age", "label", "probability_no", "probability_yes", "low_no", "low_yes", "high_no", "high_yes",
        "near_data",
    ]  # fmt: skip
    assert {*frame["label"].unique()} <= {"no", "yes"}
    assert np.allclose(frame["probability_no"] + frame["probability_yes"], 1.0)
    shown = run("inspect", released)
    assert "Classes: 'no' and 'yes'." in shown.out


def test_labels_that_are_numerals_are_one_however_written(people: Path) -> None:
    frame = pl.read_csv(people).with_columns(
        pl.Series("ill", ["1", "1.0", "0"] * 20, dtype=pl.String)
    )
    frame.write_csv(people)
    assert release(people, "--classes", "0,01", "--seed", "1").code == 0
    model = load(people.with_suffix(".privgp"))
    assert isinstance(model, PrivateGPClassifier)
    assert [*model.classes_] == ["0", "1"]
    assert model.predict_proba([[50.0]])[0, 1] > 0.5


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "--bounds"),
        (["--classes", "yes"], "2 to 100"),
        (["--classes", "yes,no", "--bounds", "0", "1"], "--bounds does not go with labels"),
        (["--classes", "yes,no", "--objective", "trace"], "--objective does not go with labels"),
        (["--bounds", "0", "1", "--link", "probit"], "--link does not go with one output"),
    ],
)
def test_what_does_not_go_with_labels_is_refused(
    people: Path, options: list[str], words: str
) -> None:
    result = release(people, *options)
    assert result.code == 2, result
    assert words in result.err
    assert not people.with_suffix(".privgp").exists()


def test_a_new_label_has_no_band_of_its_own(people: Path) -> None:
    assert release(people, "--classes", "yes,no", "--seed", "1").code == 0
    released, out = people.with_suffix(".privgp"), people.with_name("new.csv")
    asked = run("predict", released, people, "--inputs", "age", "-o", out, "--observation")
    assert asked.code == 2
    assert "--observation" in asked.err
