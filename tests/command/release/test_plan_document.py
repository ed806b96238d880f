"""A plan as a document: shown, certified and signed before anything is spent."""

from __future__ import annotations

import json
import re

import pytest

from privgp import load_plan
from tests.command.running import assert_one_sentence, people_table, run

BUDGET = "--epsilon 1 --delta 1e-5 --hyperparameters fixed"
LINES = {
    "number": "--inputs age --bounds 0 5000",
    "several": "--inputs age --output cost,bmi --bounds 0 5000 --bounds 10 50",
    "labels": "--inputs age --classes yes,no",
    "records": "--inputs age --bounds 0 5000 --protect records --x-bounds 0 100",
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    people_table().write_csv("v.csv")
    return tmp_path


@pytest.mark.parametrize("kind", LINES)
def test_a_plan_is_shown_and_written_as_page_and_json(kind, folder):
    assert run("plan", "v.csv", *LINES[kind].split(), *BUDGET.split(), "-o", "v.plan").code == 0
    shown = run("inspect", "v.plan")
    assert shown.code == 0, shown
    made = load_plan("v.plan")
    assert made.hash in shown.out
    assert "Nothing has been spent" in shown.out
    told = json.loads(run("inspect", "v.plan", "--json").out)
    assert told["hash"] == made.hash
    assert not told["spent"]
    for page in ("v.html", "v.json"):
        assert run("certificate", "v.plan", "-o", page).code == 0
    written = json.loads((folder / "v.json").read_text())
    assert written["columns"] == ["age"]
    assert [each["epsilon"] for each in written["expected_errors"]] == [0.5, 1.0, 2.0]
    page = (folder / "v.html").read_text()
    assert made.hash in page
    assert "Signature" in page
    assert written["unit"] in page
    assert 'src="data:image/png;base64,' in page
    assert not re.search(r"<script|https?:", page)


def test_what_the_custodian_adds_is_for_releases(folder):
    line = f"plan v.csv {LINES['number']} {BUDGET} -o v.plan"
    assert run(*line.split()).code == 0
    assert run("certificate", "--template", "-o", "holder.json").code == 0
    line = ["certificate", "v.plan", "-o", "v.html", "--holder", "holder.json"]
    assert_one_sentence(run(*line))
    assert not (folder / "v.html").exists()


def test_names_of_columns_are_escaped(folder):
    people_table().rename({"age": "<b>age</b>"}).write_csv("v.csv")
    line = ["plan", "v.csv", "--inputs", "<b>age</b>", "--bounds", 0, 5000, *BUDGET.split()]
    assert run(*line, "-o", "v.plan").code == 0
    assert run("certificate", "v.plan", "-o", "v.html").code == 0
    assert "<b>age" not in (folder / "v.html").read_text()
