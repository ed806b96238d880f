"""``privgp update``: new people, or the same rows with a further budget."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

import privgp
from tests.command.running import BUDGET, QUICK, assert_one_sentence, people_table, run

ONE = ["--inputs", "age", "--output", "cost"]


@pytest.fixture
def released(tmp_path: Path) -> Path:
    """A release of the first rows, with the tables of both batches beside it."""
    table = people_table()
    table.head(14).write_csv(tmp_path / "first.csv")
    table.tail(10).write_csv(tmp_path / "second.csv")
    path = tmp_path / "first.privgp"
    assert run("release", tmp_path / "first.csv", *ONE, *BUDGET, *QUICK, "-o", path).code == 0
    return path


def test_new_people_and_then_the_same_again(released: Path, tmp_path: Path) -> None:
    second, two, three = tmp_path / "second.csv", tmp_path / "two.privgp", tmp_path / "three.privgp"
    page = tmp_path / "page.html"
    done = run("update", released, second, "--output", "cost", "-o", two, "--certificate", page)
    assert done.code == 0, done
    assert "nobody is in two of the batches" in done.out
    assert "nobody is in two of the batches" in page.read_text()
    model = privgp.load(two)
    assert (model.guarantee_.epsilon, len(model.measurements_)) == (1.0, 2)
    further = ["--same-rows", "--epsilon", "0.5", "--delta", "1e-5"]
    done = run("update", two, second, "--output", "cost", *further, "-o", three, "--json")
    assert done.code == 0, done
    told = json.loads(done.out)
    assert 1.0 < told["guarantee"]["epsilon"] <= 1.5
    assert privgp.load(three).guarantee_.epsilon == told["guarantee"]["epsilon"]
    inspected = run("inspect", three)
    assert "Measurements: 3, of 2 batches of people; 1 of them measured rows again" in inspected.out
    predicted = run("predict", three, second, "-o", tmp_path / "predicted.csv")
    assert predicted.code == 0, predicted


def test_columns_of_other_names(released: Path, tmp_path: Path) -> None:
    table = pl.read_csv(tmp_path / "second.csv").rename({"age": "years"})
    table.write_csv(tmp_path / "other.csv")
    line = [
        "update",
        released,
        tmp_path / "other.csv",
        "--output",
        "cost",
        "-o",
        tmp_path / "n.privgp",
    ]
    assert_one_sentence(run(*line))
    assert run(*line, "--inputs", "years").code == 0


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["--epsilon", "1"], "--same-rows"),
        (["--delta", "1e-5"], "--same-rows"),
        (["--same-rows"], "--epsilon and --delta"),
        (["--same-rows", "--epsilon", "1", "--delta", "1e-5"], "one of its updates"),
        (["--groups", "age"], "must be given if FILE"),
        (["--inputs", "age,bmi"], "has 1 input"),
    ],
)
def test_refusals(released: Path, tmp_path: Path, options: list[str], word: str) -> None:
    out = tmp_path / "new.privgp"
    second = tmp_path / "second.csv"
    result = run("update", released, second, "--output", "cost", "-o", out, *options)
    assert_one_sentence(result)
    assert word in result.err
    assert not out.exists()


def test_the_same_rows_are_not_new_people(released: Path, tmp_path: Path) -> None:
    line = ["update", released, tmp_path / "first.csv", "--output", "cost"]
    result = run(*line, "-o", tmp_path / "new.privgp")
    assert_one_sentence(result)
    assert "measured already" in result.err
    assert "--same-rows" in result.err


def test_updates_are_charged(released: Path, tmp_path: Path) -> None:
    ledger = ["--ledger", f"sqlite:///{tmp_path}/budget.db", "--dataset", "visits"]
    assert run("ledger", "open", *ledger, "--epsilon", 1.2, "--delta", 1e-5).code == 0
    second, two = tmp_path / "second.csv", tmp_path / "two.privgp"
    done = run("update", released, second, "--output", "cost", "-o", two, *ledger)
    assert done.code == 0, done
    assert "Charged to 'visits' as entry 1" in done.out
    assert "Charged to 'visits' as entry 1" in run("inspect", two).out
    again = ["--same-rows", "--epsilon", "1", "--delta", "1e-6", "-o", tmp_path / "three.privgp"]
    refused = run("update", two, second, "--output", "cost", *again, *ledger)
    assert_one_sentence(refused)
    assert "does not fit" in refused.err
    assert not (tmp_path / "three.privgp").exists()


KINDS = {
    "labels": (["--output", "ill", "--classes", "no,perhaps,yes", "--epsilon", "1"], []),
    "rates": (["--output", "visits", "--likelihood", "poisson", "--bounds", "0", "9",
               "--max-change", "1", "--exposure", "days", "--epsilon", "1"], ["--exposure", "days"]),
    "outputs": (["--output", "cost,visits", "--bounds", "0", "1000", "--bounds", "0", "9",
                 "--epsilon", "1"], []),
    "records": (["--output", "cost", "--bounds", "0", "1000", "--protect", "records", "--x-bounds",
                 "0", "100", "--epsilon", "1"], []),
    "dated records": (["--output", "ill", "--classes", "no,yes", "--protect", "records",
                       "--x-bounds", "age=0:100,day=2024-01-01:2024-12-31", "--dates", "day",
                       "--epsilon", "1"], []),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_releases_of_every_kind_are_updated_and_refined(kind: str, tmp_path: Path) -> None:
    asked, further = KINDS[kind]
    table = people_table().with_columns(
        visits=pl.int_range(pl.len()) % 5,
        days=1.0 + pl.int_range(pl.len()) % 3,
        ill=pl.Series(["no", "yes", "yes"] * 8),
        day=pl.Series([f"2024-{month:02}-11" for month in range(1, 13)] * 2),
    )
    one, two, path = tmp_path / "one.csv", tmp_path / "two.csv", tmp_path / "1.privgp"
    table.head(14).write_csv(one)
    table.tail(10).write_csv(two)
    inputs = ["--inputs", "age,day" if "dated" in kind else "age", "--delta", "1e-5"]
    hurry = ["--hyperparameters", "fixed"]
    done = run("release", one, *inputs, *asked, *hurry, "-o", path)
    assert done.code == 0, done
    line = [*asked[:2], *further]
    done = run("update", path, two, *line, "-o", tmp_path / "2.privgp")
    assert done.code == 0, done
    assert "nobody is in two of the batches" in done.out
    again = ["--same-rows", "--epsilon", "0.5", "--delta", "1e-5"]
    done = run("update", tmp_path / "2.privgp", one, *line, *again, "-o", tmp_path / "3.privgp")
    assert done.code == 0, done
    model = privgp.load(tmp_path / "3.privgp")
    assert [each.batch for each in model._released.spent] == [0, 1, 0]
    assert 1.0 < model.guarantee_.epsilon <= 1.5
    assert ("Publish it only if these columns may be public" in done.out) == ("records" not in kind)


def test_private_kinds_may_have_other_names_in_the_table_of_an_update(tmp_path: Path) -> None:
    dated = people_table().with_columns(day=pl.lit("2024-03-11"))
    one, two, path = tmp_path / "one.csv", tmp_path / "two.csv", tmp_path / "1.privgp"
    dated.write_csv(one)
    dated.rename({"age": "years", "day": "when"}).write_csv(two)
    ranges = "age=0:100,day=2024-01-01:2024-12-31"
    asked = ["--inputs", "age,day", "--protect", "records", "--x-bounds", ranges, "--dates", "day"]
    done = run("release", one, *asked, "--output", "cost", *BUDGET, *QUICK, "-o", path)
    assert done.code == 0, done
    line = ["update", path, two, "--output", "cost", "-o", tmp_path / "2.privgp"]
    assert_one_sentence(run(*line))  # no column is called age
    done = run(*line, "--inputs", "years,when")
    assert done.code == 0, done
    assert list(privgp.load(tmp_path / "2.privgp").feature_names_in_) == ["age", "day"]


def test_releases_of_other_kinds_are_refused(released: Path, tmp_path: Path) -> None:
    other, options = tmp_path / "other.privgp", [*BUDGET, *QUICK, "--reconstruct", "unbiased"]
    assert run("release", tmp_path / "first.csv", *ONE, *options, "-o", other).code == 0
    line = ["update", other, tmp_path / "second.csv", "--output", "cost"]
    result = run(*line, "-o", tmp_path / "new.privgp")
    assert_one_sentence(result)
    assert "FILE cannot be updated" in result.err


def test_two_measurements_of_the_same_rows_are_both_told(released: Path, tmp_path: Path) -> None:
    again = ["--same-rows", "--epsilon", "1", "--delta", "1e-5", "-o", tmp_path / "new.privgp"]
    done = run("update", released, tmp_path / "first.csv", "--output", "cost", *again)
    assert "2 measurements of the same rows: " in done.out
    assert "; then " in done.out
    assert done.out.count("everything else is computed from them") == 1
