"""The page that lists the papers: every row names code that is there and a command that exists."""

from __future__ import annotations

import ast
import importlib
import re
import shlex
from functools import cache
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


@cache
def imports(file: Path) -> frozenset[str]:
    """The modules and names that a file imports, those of its functions too."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found.update(each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found.update(f"{node.module}.{each.name}" for each in node.names)
    return frozenset(found)


@cache
def file_of(module: str) -> Path | None:
    """The file of a module of this project."""
    parts = module.split(".")
    base = (ROOT / "src" if parts[0] == "privgp" else ROOT).joinpath(*parts)
    return next(
        (each for each in (base.with_suffix(".py"), base / "__init__.py") if each.is_file()), None
    )


@cache
def needed_by(start: Path) -> frozenset[Path]:
    """A file with all files of this project that it imports, and those that they do."""
    seen, waiting = {start}, [start]
    while waiting:
        names = imports(waiting.pop())
        files = {file for name in names if (file := file_of(name)) is not None} - seen
        seen |= files
        waiting += files
    return frozenset(seen)


def reaches(start: Path, code: str) -> bool:
    """Whether a file imports the code of a row, or imports what does."""
    return (file_of(code) or file_of(code.rpartition(".")[0])) in needed_by(start)


def start_of(command: str) -> Path:
    """The file that a command runs."""
    words = shlex.split(command)
    return (
        ROOT
        / ("papers" if words[0] == "python" else "")
        / (f"{words[3]}/report.py" if words[0] == "python" else words[1])
    )


def test_no_row_is_overlooked():
    lines = PAGE.read_text("utf-8").splitlines()
    tables = sum(line.startswith("|---") for line in lines)
    assert tables == 3
    assert len(rows()) == sum(line.startswith("|") for line in lines) - 2 * tables > 60


@pytest.mark.parametrize(
    "row", [row for row in rows() if UNDONE not in row[3]], ids=lambda row: row[0][:50]
)
def test_what_a_row_runs_uses_the_code_that_it_names(row):
    _, code, command, *_ = row
    if command.strip("`").startswith("privgp ") or "test_docs" in command:
        return  # commands import late, and examples are texts
    assert reaches(start_of(command.strip("`")), code.strip("`")), row


def test_code_that_is_not_used_is_noticed():
    assert not reaches(ROOT / "papers" / "kung" / "report.py", "privgp.server.app.serve")
    assert not reaches(ROOT / "tests" / "privacy" / "test_rdp.py", "privgp.command.search.grid")


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
