"""A search that is killed at any moment goes on without drawing any step twice."""

from __future__ import annotations

import json
import multiprocessing
import time
from pathlib import Path

import numpy as np
import pytest

from privgp import Ledger, PrivateBayesSearchCV
from privgp.models.search import bayes
from tests.models.looking_up import Column, records

X_VAL, Y_VAL = records([0.1, 0.5, 0.9, 0.7, 0.3], rows=100)


def search(path, **settings) -> PrivateBayesSearchCV:
    base = {"epsilon": 1.0, "delta": 1e-5, "n_iter": 4, "random_state": 3, "state_file": path}
    return PrivateBayesSearchCV(Column(), {"j": list(range(5))}, **{**base, **settings})


def fit(path, **settings):
    return search(path, **settings).fit(None, None, X_val=X_VAL, y_val=Y_VAL)


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_receipt_of_another_charge_pays_for_no_search(tmp_path):
    """A state file that names the head of a cheap charge is charged for what it draws."""
    account = Ledger(f"sqlite:///{tmp_path}/l.db").open("digits", epsilon=2.0, delta=1e-4)
    cheap = fit(None, epsilon=0.01, delta=1e-6, ledger=account)
    path = tmp_path / "forged"
    fit(path, ledger=account)
    header, *_ = path.read_text().splitlines(keepends=True)
    path.write_text(header + json.dumps({"charged": cheap.charged_}) + "\n")
    fit(path, ledger=account)
    assert [entry.promised.epsilon for entry in account.entries()] == [0.01, 1.0, 1.0]
    assert fit(path, ledger=account).charged_["entry"] == 3  # which goes on, and draws nothing


class Killed(BaseException):
    pass


@pytest.mark.parametrize("event", range(11))
@pytest.mark.parametrize("when", ["before", "within", "after"])
def test_killed_at_any_write_it_goes_on(tmp_path, monkeypatch, event, when):
    """One header, then two lines for each of five steps: die in each of the eleven writes."""
    shares = [1, 2, 3, 4]  # so that every step is known by its noise
    whole, path = fit(tmp_path / "whole", budget_split=shares), tmp_path / "state"
    append, count, draws = bayes.SearchState._append, [0], []
    measured = bayes.measure_loss

    def dying(self, line):
        count[0] += 1
        if count[0] == event + 1:
            if when == "after":
                append(self, line)
            elif when == "within":
                self._file.write(json.dumps(line).encode()[:-4])
                self._file.flush()
            raise Killed
        append(self, line)

    def counted(*arguments):
        draws.append(arguments[2].std)
        return measured(*arguments)

    monkeypatch.setattr(bayes, "measure_loss", counted)
    monkeypatch.setattr(bayes.SearchState, "_append", dying)
    with pytest.raises(Killed):
        fit(path, budget_split=shares)
    monkeypatch.setattr(bayes.SearchState, "_append", append)
    found = fit(path, budget_split=shares)
    assert len(draws) == len(set(draws)) == 5 - (when == "after" and event % 2)  # none twice
    # drawn and never written, or asked for and never drawn
    lost = event % 2 == 1 if when == "after" else event >= 2 and event % 2 == 0
    scores = found.cv_results_["score"]
    assert np.isnan(scores).sum() == lost
    assert found.best_score_ == found.best_score_  # a number whatever was lost
    if not lost:
        assert np.array_equal(scores, whole.cv_results_["score"])
        assert found.best_score_ == whole.best_score_
    spent = [line["asked"] for line in lines(path)[1:] if "asked" in line]
    assert spent == list(range(5))


def test_a_finished_search_is_only_read_again(tmp_path, monkeypatch):
    first = fit(tmp_path / "state", random_state=None)
    before = (tmp_path / "state").read_bytes()
    monkeypatch.setattr(bayes, "measure_loss", lambda *a: pytest.fail("drawn again"))
    again = fit(tmp_path / "state", random_state=None)
    assert again.best_score_ == first.best_score_
    assert again.best_params_ == first.best_params_
    assert np.array_equal(again.cv_results_["score"], first.cv_results_["score"])
    assert (tmp_path / "state").read_bytes() == before


def test_the_file_holds_noisy_scores_and_public_words(tmp_path):
    found = fit(tmp_path / "state", random_state=None)
    header, *events = lines(tmp_path / "state")
    assert header["question"]["records"] == 100
    assert [e["value"] for e in events if "got" in e] == pytest.approx(
        1 - found.cv_results_["score"]
    )


@pytest.mark.parametrize(
    "settings",
    [{"epsilon": 2.0}, {"n_iter": 5}, {"random_state": 4}, {"random_state": None}, {"acquisition": "ucb"},
     {"budget_split": [1, 2, 3, 4]}, {"final_share": 0.5}, {"space": {"j": [0, 1]}}, {"estimator": Column(1)}],
)  # fmt: skip
def test_another_search_is_refused(tmp_path, settings):
    fit(tmp_path / "state")
    with pytest.raises(ValueError, match="another search"):
        search(tmp_path / "state").set_params(**settings).fit(None, None, X_val=X_VAL, y_val=Y_VAL)


@pytest.mark.parametrize(
    "contents", [b"hello\n", b"hello", b"{}\n", b"\x00" * 50, b"PK\x03\x04\n", b"\n", b"[1]\n[2]\n"]
)
def test_other_files_are_refused_and_left_alone(tmp_path, contents):
    path = tmp_path / "other"
    path.write_bytes(contents)
    with pytest.raises(ValueError, match="not the file of a search"):
        fit(path)
    assert path.read_bytes() == contents


@pytest.mark.parametrize(
    "line",
    ['{"asked": 9, "place": 0}', '{"got": 4, "value": NaN}', '{"got": 2, "value": 1}', "hello", "[]",
     '{"asked": 5, "place": 99}', '{"asked": 5, "place": 0}', '{"asked": 5}', "1"],
)  # fmt: skip
def test_damaged_files_are_refused(tmp_path, line):
    fit(tmp_path / "state")
    with open(tmp_path / "state", "a") as file:
        file.write(line + "\n")
    with pytest.raises(ValueError, match="damaged"):
        fit(tmp_path / "state")


def test_an_answer_before_any_question_is_damage(tmp_path):
    path = tmp_path / "state"
    fit(path)
    head = path.read_text().splitlines()[0]
    path.write_text(f'{head}\n{{"got": -1, "value": 0.5}}\n')
    with pytest.raises(ValueError, match="damaged"):
        fit(path)


def test_a_file_in_use_and_places_that_cannot_be_written_are_refused(tmp_path):
    with pytest.raises(ValueError, match="cannot be written"):
        fit(tmp_path / "no" / "state")
    with pytest.raises(ValueError, match="cannot be written"):
        fit(tmp_path)
    held = bayes.SearchState(tmp_path / "held", {})
    with pytest.raises(ValueError, match="in use"):
        fit(tmp_path / "held")
    held.close()


def search_slowly(path: Path) -> None:
    slow = search(path, random_state=None, progress=lambda done: time.sleep(0.05))
    slow.fit(None, None, X_val=X_VAL, y_val=Y_VAL)


def test_a_process_that_is_really_killed(tmp_path):
    path = tmp_path / "state"
    process = multiprocessing.get_context("fork").Process(target=search_slowly, args=(path,))
    process.start()
    limit = time.monotonic() + 300
    while not (path.exists() and path.read_bytes().count(b"\n") >= 4):
        assert time.monotonic() < limit
        time.sleep(0.005)
    process.kill()
    process.join()
    kept = path.read_text().rpartition("\n")[0]  # a line may be torn
    found = fit(path, random_state=None)
    assert path.read_text().startswith(kept)
    assert len(found.cv_results_["params"]) == 5
