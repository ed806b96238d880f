"""What a paper says of its table, checked on numbers: orderings and trends, not digits."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

Table = Mapping[str, Mapping[str, float]]  # table[row][column]
TOLERANCE = 1.01  # of trends along a row, whose first steps are smaller than the error of a mean


@dataclass(frozen=True)
class Checked:
    text: str
    holds: bool


def expected(name: str) -> list[dict[str, Any]]:
    """The statements of a file beside this module."""
    text = Path(__file__).with_name(name).read_text("utf-8")
    statements: list[dict[str, Any]] = json.loads(text)["statements"]
    return statements


def check(statements: Sequence[Mapping[str, Any]], table: Table) -> list[Checked]:
    """Every statement with whether it holds; one about rows that are not there does not."""
    found = []
    for statement in statements:
        try:
            found.append(Checked(str(statement["text"]), _holds(statement, table)))
        except KeyError:
            found.append(Checked(str(statement["text"]), False))
    return found


def _holds(s: Mapping[str, Any], table: Table) -> bool:
    kind = s["kind"]
    if kind == "best":
        return min(s["among"], key=lambda row: table[row][s["column"]]) in s["one of"]
    if kind == "rising":
        values = [table[row][s["column"]] for row in s["rows"]]
        return all(a < b for a, b in pairwise(values))
    if kind == "worse with privacy":
        rows = [list(table[row].values()) for row in s["rows"]]
        return all(a <= TOLERANCE * b for v in rows for a, b in pairwise(v))
    if kind == "robust":
        return all(_growth(table[row]) <= s["at most"] for row in s["rows"])
    if kind == "fragile":
        return all(_growth(table[row]) >= s["at least"] for row in s["rows"])
    if kind == "method":
        best = best_of(table, s["better"], s["column"])
        return all(best < best_of(table, other, s["column"]) for other in s["than"])
    raise ValueError(f"unknown kind of statement {kind!r}.")


def best_of(table: Table, method: str, column: str) -> float:
    """The least number of a method's rows in a column."""
    values = [cells[column] for row, cells in table.items() if row.startswith(f"{method} ")]
    if not values:
        raise KeyError(method)
    return min(values)


def _growth(cells: Mapping[str, float]) -> float:
    values = list(cells.values())
    return values[-1] / values[0]
