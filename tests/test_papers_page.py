"""The page that lists the papers: every row names code that is there and a command that exists."""

from __future__ import annotations

import importlib
import re
import shlex
from pathlib import Path

import pytest

from papers.__main__ import NAMES
from tests.command.running import subcommands

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "papers.md"
NONE, UNDONE = "–", "not attempted"


def rows() -> list[list[str]]:
    lines = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return [row for row in cells if row[0] != "item"]


def exists(name: str) -> bool:
    """Whether a dotted name is a module, or something in one."""
    try:
        importlib.import_module(name)
    except ModuleNotFoundError:
        home, _, last = name.rpartition(".")
        return bool(home) and hasattr(importlib.import_module(home), last)
    return True


def runs(command: str) -> bool:
    """Whether a command is one that this project has."""
    words = shlex.split(command)
    if words[:3] == ["python", "-m", "papers"]:
        return len(words) == 4 and words[3] in NAMES
    if words[0] == "pytest":
        return len(words) == 2 and (ROOT / words[1]).is_file()
    return words[0] == "privgp" and " ".join(words[1:]) in subcommands()


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0][:50])
def test_the_code_and_the_command_of_a_row_exist(row):
    assert len(row) == 5, row
    _, code, command, here, printed = row
    assert here
    assert printed
    if UNDONE in here:
        assert code == command == NONE
        return
    assert exists(code.strip("`")), code
    assert runs(command.strip("`")), command


def test_no_paper_is_left_out():
    text = PAGE.read_text("utf-8")
    for number in range(1, 7):
        assert re.search(rf"theorems? (?:[\d ,and]*)\b{number}\b", text), number
    for lemma in ("A.1", "A.3", *(f"B.{k}" for k in range(1, 9))):
        assert lemma in text, lemma
    for table in range(1, 5):
        assert re.search(rf"table (?:1 and )?{table}\b", text), table


@pytest.mark.parametrize(
    "wrong", ["python -m papers nothing", "pytest tests/none.py", "privgp none", "rm"]
)
def test_a_command_that_is_not_there_is_noticed(wrong):
    assert not runs(wrong)
    assert not exists("privgp.none")
