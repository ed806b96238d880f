"""``privgp bounds``: bounds of a private column, at a price."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

from tests.command.running import assert_one_sentence, run


@pytest.fixture
def costs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    values = np.random.default_rng(0).lognormal(5.0, 1.0, 2000)
    pl.DataFrame({"cost": values}).write_csv("costs.csv")
    return values


def test_bounds_are_found_written_and_charged(costs, tmp_path):
    ledger = ["--ledger", "sqlite:///l.db", "--dataset", "costs"]
    assert run("ledger", "open", *ledger, "--epsilon", 1, "--delta", 0).code == 0
    line = ["bounds", "costs.csv", "--output", "cost", "--low", 0, "--epsilon", 0.5, *ledger]
    found = run(*line, "-o", "b.json", "--seed", 1, "--json")
    assert found.code == 0, found
    told, written = json.loads(found.out), json.loads((tmp_path / "b.json").read_text())
    assert told["bounds"] == written["bounds"] == [0.0, told["bounds"][1]]
    assert np.mean(costs <= told["bounds"][1]) > 0.9
    assert told["ledger"]["entry"] == 1
    assert told["guarantee"]["epsilon"] == 0.5
    shown = run("ledger", "show", *ledger, "--json")
    assert "0.5" in shown.out


def test_what_was_spent_and_how_to_use_it_is_told(costs):
    found = run("bounds", "costs.csv", "--output", "cost", "--low", 0, "--epsilon", 0.5)
    high = found.out.split("--bounds 0 ")[1].split(".")[0]
    assert float(high) > 100
    assert "This spent epsilon = 0.5" in found.out


def test_a_refused_charge_draws_nothing(costs):
    ledger = ["--ledger", "sqlite:///l.db", "--dataset", "costs"]
    assert run("ledger", "open", *ledger, "--epsilon", 0.1, "--delta", 0).code == 0
    line = ["bounds", "costs.csv", "--output", "cost", "--epsilon", 0.5, *ledger, "-o", "b.json"]
    assert_one_sentence(run(*line))


def test_files_in_a_folder_and_missing_values(costs, tmp_path):
    (tmp_path / "parts").mkdir()
    pl.DataFrame({"cost": costs[:1000]}).write_csv("parts/a.csv")
    pl.DataFrame({"cost": [*map(str, costs[1000:]), ""]}).write_csv("parts/b.csv")
    line = ["bounds", "parts", "--output", "cost", "--epsilon", 1]
    assert_one_sentence(run(*line))
    assert run(*line, "--missing", "drop").code == 0


def test_a_column_without_a_value_is_refused(costs):
    pl.DataFrame({"cost": ["", ""], "n": [1, 2]}).write_csv("none.csv")
    line = ["bounds", "none.csv", "--output", "cost", "--epsilon", 1, "--missing", "drop"]
    assert_one_sentence(run(*line))
