"""Commands that charge a ledger, and a word of warning to those that charge none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.command.running import BUDGET, COLUMNS, QUICK, assert_one_sentence, assert_refused, run

HALF = ["--bounds", "0", "5000", "--epsilon", "0.5", "--delta", "1e-6"]


@pytest.fixture(autouse=True)
def _fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def ledger(tmp_path: Path) -> list[str]:
    options = ["--ledger", f"sqlite:///{tmp_path}/budget.db"]
    made = run("ledger", "open", *options, "--dataset", "visits", "--epsilon", 1, "--delta", 1e-5)
    assert (made.code, made.err) == (0, "")
    return options


def shown(ledger: list[str]) -> dict:
    (account,) = json.loads(run("ledger", "show", *ledger, "--json").out)["accounts"]
    return account


def test_releases_are_charged_until_the_budget_ends(tmp_path, visits, ledger):
    release = ["release", visits, *COLUMNS, *HALF, *QUICK, *ledger, "--dataset", "visits"]
    for number in (1, 2):
        certificate = tmp_path / f"{number}.json"
        made = run(
            *release, "-o", tmp_path / f"{number}.privgp", "--certificate", certificate
        )  # fmt: skip
        assert (made.code, made.err) == (0, "")
        assert json.loads(certificate.read_text())["ledger"]["entry"] == number
        assert f"Charged to 'visits' as entry {number}" in made.out
        inspected = run("inspect", tmp_path / f"{number}.privgp")
        assert f"Charged to 'visits' as entry {number} of the custodian's ledger" in inspected.out
    refused = run(*release, "-o", tmp_path / "3.privgp")
    assert_refused(refused, "has epsilon = 0 left", "nothing was drawn")
    assert not (tmp_path / "3.privgp").exists()
    account = shown(ledger)
    assert (account["remaining"], len(account["charges"])) == (0.0, 2)
    head = json.loads((tmp_path / "2.json").read_text())["ledger"]["head"]
    assert account["head"] == head
    assert run("ledger", "verify", *ledger, "--head", head).code == 0
    assert_one_sentence(run("ledger", "verify", *ledger, "--head", "0" * 64), code=1)
    assert run("ledger", "export", *ledger, "-o", tmp_path / "all.json").code == 0
    exported = json.loads((tmp_path / "all.json").read_text())
    assert len(exported["accounts"][0]["entries"]) == 2
    assert "visits: epsilon = 1" in run("ledger", "show", *ledger).out


@pytest.mark.parametrize(
    "line",
    [
        ["function", "create", *COLUMNS, *BUDGET, "--kernel", "1e6*rbf(20)+white(4e6)"],
        ["search", "grid", *COLUMNS, *BUDGET, "--lengthscales", "5,20"],
    ],
)
def test_other_commands_are_charged_too(tmp_path, visits, ledger, line):
    ending = "private-state" if "function" in line else "privgp"
    words = [*line[:2], visits, *line[2:], *ledger, "--dataset", "visits"]
    assert run(*words, "-o", tmp_path / f"a.{ending}").code == 0
    assert shown(ledger)["remaining"] < 1e-6
    refused = run(*words, "-o", tmp_path / f"b.{ending}")
    assert_refused(refused, "nothing was drawn")
    assert not (tmp_path / f"b.{ending}").exists()


def test_charges_for_simulations_say_so(tmp_path, visits, ledger):
    release = ["release", visits, *COLUMNS, *HALF, *QUICK, *ledger, "--dataset", "visits"]
    assert run(*release, "--seed", 1, "-o", tmp_path / "1.privgp").code == 0
    assert "SIMULATION, not for release: epsilon = 0.5" in run("ledger", "show", *ledger).out
    assert shown(ledger)["charges"][0]["simulation"] is True


def test_a_second_release_of_a_table_without_a_ledger_warns(tmp_path, visits, ledger):
    release = ["release", visits, *COLUMNS, *HALF, *QUICK]
    assert run(*release, "--seed", 1, "-o", tmp_path / "0.privgp").err == ""
    assert run(*release, "-o", tmp_path / "1.privgp").err == ""
    again = run(*release, "-o", tmp_path / "2.privgp")
    assert again.code == 0
    assert again.err.startswith("Warning: 'visits.csv' was released before")
    assert again.err.count("\n") == 1
    assert run(*release, *ledger, "--dataset", "visits", "-o", tmp_path / "3.privgp").err == ""
    (notes,) = [path for path in (tmp_path / "state").rglob("*") if path.is_file()]
    assert len(notes.read_text().split()) == 1
    assert "visits" not in notes.read_text()


def test_notes_that_cannot_be_written_stop_nothing(tmp_path, visits, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    made = run("release", visits, *COLUMNS, *HALF, *QUICK, "-o", tmp_path / "1.privgp")
    assert (made.code, made.err) == (0, "")


def test_a_ledger_that_was_tampered_with_is_refused(tmp_path, visits, ledger):
    (tmp_path / "budget.db.anchor").write_text(json.dumps({"visits": [7, "0" * 64]}))
    words = [*COLUMNS, *HALF, *QUICK, *ledger, "--dataset", "visits"]
    refused = run("release", visits, *words, "-o", tmp_path / "1.privgp")
    assert_refused(refused, "an older copy was put back")
    assert_one_sentence(run("ledger", "verify", *ledger), code=1)
