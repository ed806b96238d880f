"""``privgp search bayes`` as a user runs it."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

from privgp import Guarantee, PrivateBayesSearchCV
from privgp.command.errors import Refusal
from privgp.command.io.axes import read_space
from tests.command.running import assert_one_sentence, assert_refused, run

MARK = "73591"  # digits of private cells that occur nowhere else
SPACE = "C=1e-2:1e2:log,kernel=rbf|linear"


@pytest.fixture
def tables(tmp_path):
    """Two inputs, a label and a number; private inputs have their own digits."""
    rng = np.random.default_rng(0)
    paths = []
    for name, rows in (("train.csv", 60), ("private.csv", 80)):
        x = rng.normal(size=(rows, 2)).round(2)
        label = np.where(x[:, 0] + 0.3 * rng.normal(size=rows) > 0, "ill", "well")
        inside = [
            f"{value:.2f}{MARK}" if name == "private.csv" else f"{value:.2f}" for value in x[:, 0]
        ]
        frame = pl.DataFrame({"a": inside, "b": x[:, 1], "state": label, "cost": x.sum(axis=1)})
        frame.write_csv(tmp_path / name)
        paths.append(tmp_path / name)
    return paths


def arguments(tables, out, *more, **changed):
    options = {
        "--train": tables[0], "--validation": tables[1], "--inputs": "a,b", "--output": "state",
        "--space": SPACE, "--epsilon": 1, "--delta": 1e-5, "--steps": 4, "-o": out,
    }  # fmt: skip
    options.update({"--" + name.replace("_", "-"): value for name, value in changed.items()})
    words = [word for pair in options.items() if pair[1] is not None for word in pair]
    return ["search", "bayes", *words, *more]


def search(tables, tmp_path, *more, **changed):
    return run(*arguments(tables, tmp_path / "tuned.json", *more, **changed))


def test_it_writes_the_setting_its_score_and_the_promise(tables, tmp_path):
    result = search(tables, tmp_path)
    assert result.code == 0, result
    found = json.loads((tmp_path / "tuned.json").read_text())
    assert set(found["best_params"]) == {"C", "kernel"}
    assert abs(found["best_score"] - 0.85) < 0.6
    assert 0.05 < found["best_score_std"] < 0.2
    assert len(found["tried"]) == 5
    assert found["records"] == 80
    guarantee = Guarantee.from_json(json.dumps(found["guarantee"]))
    assert (guarantee.epsilon, guarantee.delta) == (1.0, 1e-5)
    assert not found["simulation"]
    assert "may be published" in result.out
    assert MARK not in result.out + (tmp_path / "tuned.json").read_text()


@pytest.mark.parametrize(
    ("estimator", "space"),
    [("svm", "C=1:10"), ("ridge", "alpha=0.1:10:log"), ("knn", "n_neighbors=1:9:int"),
     ("random-forest", "n_estimators=3|5")],
)  # fmt: skip
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_every_estimator_runs_and_answers_in_json(tables, tmp_path, estimator, space, task):
    changed = {"estimator": estimator, "space": space, "task": task, "steps": 2, "seed": 1}
    bounds = ["--loss-bounds", 0, 9] if task == "regression" else []
    if task == "regression":
        changed["output"] = "cost"
    result = search(tables, tmp_path, "--json", *bounds, **changed)
    assert result.code == 0, result
    assert json.loads(result.out)["simulation"]


def test_the_plan_reads_no_private_value_and_writes_nothing(tables, tmp_path):
    result = search(tables, tmp_path, "--plan")
    assert result.code == 0
    assert "noise of std" in result.out
    assert not (tmp_path / "tuned.json").exists()
    facts = json.loads(search(tables, tmp_path, "--plan", "--json", method="kusner").out)
    assert facts["theorem_bounds"]["setting"] > 1


def test_a_search_that_was_interrupted_goes_on(tables, tmp_path, monkeypatch):
    state = tmp_path / "tuning.search"
    fit, count = PrivateBayesSearchCV.fit, [0]

    def interrupted(self, *data, **private):
        def tell(done):
            count[0] += 1
            if count[0] == 2:
                raise KeyboardInterrupt

        return fit(self.set_params(progress=tell), *data, **private)

    monkeypatch.setattr(PrivateBayesSearchCV, "fit", interrupted)
    result = search(tables, tmp_path, state=state)
    assert_one_sentence(result, code=1)
    assert "go on" in result.err
    kept = state.read_text()
    assert kept.count('"got"') == 2
    assert search(tables, tmp_path, state=state).code == 0
    assert state.read_text().startswith(kept)
    assert state.read_text().count('"got"') == 5
    assert MARK not in state.read_text()
    other = search(tables, tmp_path, "--force", state=state, epsilon=2)
    assert_refused(other, "--state", "another search")


def test_a_failure_counts_as_spent(tables, tmp_path, monkeypatch):
    def failing(self, *data, **private):
        raise RuntimeError(MARK)

    monkeypatch.setattr(PrivateBayesSearchCV, "fit", failing)
    result = search(tables, tmp_path)
    assert_one_sentence(result, code=1)
    assert "spent" in result.err
    assert MARK not in result.err
    assert not (tmp_path / "tuned.json").exists()


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"epsilon": 0}, "epsilon"), ({"delta": 2}, "delta"), ({"inputs": "a,c"}, "no column 'c'"),
        ({"inputs": "a,a"}, "twice"), ({"output": "a"}, "--output"), ({"output": "none"}, "no column"),
        ({"space": "C"}, "--space"), ({"space": "D=1:2"}, "not a parameter"), ({"space": "C=2:1"}, "low < high"),
        ({"space": "C=-1:1"}, "trained"), ({"space": "kernel=some"}, "trained"), ({"space": "C=0:1:log"}, "above 0"),
        ({"task": "regression"}, "--loss-bounds"), ({"method": "kusner", "state": "s"}, "--state"),
        ({"train": "missing.csv"}, "does not exist"), ({"validation": "missing.parquet"}, "does not exist"),
        ({"validation": "table.txt"}, "must end in"),
        ({"method": "kusner", "acquisition": "ei"}, "--acquisition does not go with --method kusner"),
        ({"loss": "absolute_error"}, "--loss does not go with --task classification"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_in_one_sentence(tables, tmp_path, changed, words):
    assert_refused(search(tables, tmp_path, **changed), words)
    assert not (tmp_path / "tuned.json").exists()


def test_bounds_for_accuracy_are_refused(tables, tmp_path):
    assert_refused(search(tables, tmp_path, "--loss-bounds", 0, 1), "--loss-bounds")


@pytest.mark.parametrize("cell", ["", "nan", "inf", f"x{MARK}"])
def test_bad_private_cells_are_refused_without_saying_which(tables, tmp_path, cell):
    lines = tables[1].read_text().splitlines()
    lines[5] = ",".join([cell, *lines[5].split(",")[1:]])
    tables[1].write_text("\n".join(lines) + "\n")
    result = search(tables, tmp_path)
    assert_refused(result, "finite number in every row")
    assert MARK not in result.err
    assert "row 5" not in result.err


def test_missing_labels_are_refused(tables, tmp_path):
    text = tables[1].read_text().replace("well", "", 1)
    tables[1].write_text(text)
    assert_refused(search(tables, tmp_path), "label in every row")


def test_files_in_the_way_are_refused(tables, tmp_path):
    (tmp_path / "tuned.json").write_text("mine")
    assert_refused(search(tables, tmp_path), "exists already")
    assert (tmp_path / "tuned.json").read_text() == "mine"
    assert search(tables, tmp_path, "--force", steps=1).code == 0
    same = run(*arguments(tables, tmp_path / "new.json", state=tables[0]))
    assert_refused(same, "used twice")
    assert_refused(run(*arguments(tables, tmp_path / "new.csv")), "must end in .json")
    assert_refused(run(*arguments(tables, tmp_path / "no" / "new.json")), "does not exist")


def test_spaces_in_words():
    assert read_space("C=1e-3:1e3:log, g=0:1 ,k=rbf|none|2|0.5|true,n=1:3:int") == {
        "C": (1e-3, 1e3, "log-uniform"),
        "g": (0.0, 1.0),
        "k": ["rbf", None, 2, 0.5, True],
        "n": [1, 2, 3],
    }


@pytest.mark.parametrize(
    "text",
    ["", ",", "C", "C=", "=1", "C=1:2,C=1:2", "C=1:2:3", "C=a:b", "C=1:2:log:log", "C=nan:1", "C=1:inf",
     "n=1:2000:int", "n=1.5:3:int", "x=" + "1|" * 2000],
)  # fmt: skip
def test_spaces_that_make_no_sense_are_refused(text):
    with pytest.raises(Refusal, match="--space"):
        read_space(text)
