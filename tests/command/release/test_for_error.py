"""``privgp plan``: budgets are planned for one by one, and the least for an error is found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from privgp.command.io.documents import EPSILONS
from tests.command.running import BUDGET, COLUMNS, QUICK, assert_one_sentence, run

BOUNDS = [*BUDGET[:3], *BUDGET[5:]]  # without --epsilon


def answer(*arguments: object) -> dict[str, Any]:
    result = run(*arguments, "--json")
    assert result.code == 0, result
    found: dict[str, Any] = json.loads(result.out)
    return found


def test_the_table_is_that_of_plans_for_every_epsilon(
    visits: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("privgp.command.io.documents.EPSILONS", EPSILONS)
    made = answer("plan", visits, *COLUMNS, *BUDGET, *QUICK)
    assert made["planned_again"] is True
    table = {each["epsilon"]: each["expected_error"] for each in made["expected_errors"]}
    assert [*table] == [0.1, 0.2, 0.5, 1.0, 2.0, 5.0]
    for epsilon in (0.1, 5.0):
        other = answer("plan", visits, *COLUMNS, *BOUNDS, "--epsilon", epsilon, *QUICK)
        assert other["expected_error"] == table[epsilon]


def test_inducing_inputs_are_planned_again_for_every_epsilon(visits: Path) -> None:
    common = ["plan", visits, *COLUMNS, *BUDGET, *QUICK, "--inducing", "8"]
    assert answer(*common)["planned_again"] is True


def test_the_least_epsilon_stands_in_the_place_of_a_given_one(tmp_path: Path, visits: Path) -> None:
    out = tmp_path / "visits.plan"
    options = [*COLUMNS, *BOUNDS, *QUICK]
    made = answer("plan", visits, *options, "--for-error", "900", "-o", out)
    assert made["for_error"] == 900.0
    assert made["expected_error"] <= 900.0
    less = answer("plan", visits, *options, "--epsilon", made["epsilon"] / 1.02)
    assert less["expected_error"] > 900.0
    assert less["for_error"] is None
    release = ["release", visits, "--plan", out, "--output", "cost"]
    assert run(*release, "-o", tmp_path / "v.privgp").code == 0


def test_an_error_out_of_reach_stops_with_a_sentence(visits: Path) -> None:
    result = run("plan", visits, *COLUMNS, *BOUNDS, *QUICK, "--for-error", "0.001")
    assert_one_sentence(result)
    assert "No epsilon reaches an expected error of 0.001" in result.err
    assert "without privacy it would be" in result.err


@pytest.mark.parametrize("error", ["0", "-3", "nan", "inf", "little"])
def test_what_is_no_error_is_refused(visits: Path, error: str) -> None:
    result = run("plan", visits, *COLUMNS, *BOUNDS, *QUICK, "--for-error", error)
    assert_one_sentence(result)
    assert "--for-error" in result.err


@pytest.mark.parametrize("options", [[*BUDGET, "--for-error", "900"], BOUNDS])
def test_one_of_epsilon_and_error_is_given(visits: Path, options: list[str]) -> None:
    result = run("plan", visits, *COLUMNS, *options)
    assert_one_sentence(result)
    assert "--epsilon" in result.err
    assert "--for-error" in result.err


def test_a_release_takes_no_error(tmp_path: Path, visits: Path) -> None:
    out = ["-o", tmp_path / "v.privgp"]
    result = run("release", visits, "--plan", "a.plan", "--for-error", "900", *out)
    assert_one_sentence(result)
