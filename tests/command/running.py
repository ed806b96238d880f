"""A small table, a way to run the command as a user would, and what every refusal is like."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import cache
from typing import Any

import polars as pl
import typer

from privgp.command import main
from privgp.command.app import app

BUDGET = ["--bounds", "0", "5000", "--epsilon", "1", "--delta", "1e-5"]
COLUMNS = ["--inputs", "age,bmi", "--output", "cost"]
QUICK = ["--hyperparameters", "fixed"]
ROWS = 24


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str


def run(*arguments: object, main: Callable[[Sequence[str]], int] = main) -> Result:
    """The command with these arguments."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main([str(argument) for argument in arguments])
    return Result(code, out.getvalue(), err.getvalue())


def instead(line: Sequence[object], options: Sequence[object]) -> list[object]:
    """A command line with these options in place of its own of the same names."""
    given = _option_words(options)
    names = {name for name, _ in given}
    kept = [words for name, words in _option_words(line) if not name or name not in names]
    return [word for words in (*kept, *(words for _, words in given)) for word in words]


def _option_words(line: Sequence[object]) -> list[tuple[str, list[object]]]:
    """Every option by its long name, with the words it is written in; words before all of them under
    no name."""
    found: list[tuple[str, list[object]]] = [("", [])]
    for word in line:
        if re.match("--?[a-z]", str(word)):
            name = str(word).partition("=")[0]
            found.append(("--out" if name == "-o" else name, []))
        found[-1][1].append(word)
    return found


@cache
def subcommands() -> dict[str, Any]:
    """Every command by its words; those of a group are "group command"."""
    top: Any = typer.main.get_command(app)
    found = {}
    for name, command in top.commands.items():
        inner = getattr(command, "commands", {})
        found.update({f"{name} {word}": part for word, part in inner.items()})
        if not inner:
            found[name] = command
    return found


def assert_one_sentence(result: Result, code: int = 2) -> None:
    """The command stopped with one sentence and told nothing private."""
    assert result.code == code, result
    assert result.out == ""
    assert result.err.startswith("Error: "), result
    assert result.err.endswith((".\n", ".)\n")), result
    assert result.err.count("\n") == 1, result
    assert "Traceback" not in result.err
    assert not any(cell in result.err for cell in private_cells()), result


def assert_refused(result: Result, *words: str) -> None:
    assert_one_sentence(result)
    assert "unexpectedly" not in result.err
    for word in words:
        assert word in result.err, result


def people_table(rows: int = ROWS) -> pl.DataFrame:
    """Ages, body-mass indices and costs; every cost has digits that occur nowhere else."""
    ages = [20 + 3 * i % 61 for i in range(rows)]
    bmis = [19.5 + (7 * i % 13) for i in range(rows)]
    costs = [round(400 + 31 * age + 40 * (i % 5) + 0.73591, 5) for i, age in enumerate(ages)]
    people = [f"person {i // 2}" for i in range(rows)]
    return pl.DataFrame({"person": people, "age": ages, "bmi": bmis, "cost": costs})


def private_cells() -> list[str]:
    return [str(cost) for cost in people_table()["cost"]] + ["73591"]
