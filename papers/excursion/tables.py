"""Tables 1 to 4 side by side: as printed, by the paper's method here, by the default here."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from papers.excursion.printed import (
    ENTROPY,
    EPSILON,
    GAP,
    QUANTITIES,
    TABLE_1,
    TABLE_2,
    TABLE_3,
    TABLE_4,
    Cell,
    Printed,
)
from papers.excursion.rows import Row
from papers.shared.report import Result, Section, Table

Found = dict[float, Row]  # by what stands above the column: noise M or records


@dataclass(frozen=True)
class Layout:
    """One table of the paper: its columns are values of ``above``."""

    number: int
    title: str
    above: str
    columns: tuple[float, ...]
    printed: Printed
    quartiles: bool = True

    def name(self, column: float) -> str:
        if self.above == "records":
            return f"{column:g} records"
        return f"noise to signal {column / (1.0 - column):.2f}"

    def results(self, found: Found) -> tuple[list[Result], list[Result]]:
        """Medians and quartiles of the columns that were run."""
        medians: list[Result] = []
        ends: list[Result] = []
        for quantity in QUANTITIES:
            for column, printed in self._cells(quantity):
                row = found.get(column)
                if row is None:
                    continue
                for k, which in enumerate(("", "lower quartile of ", "upper quartile of ")):
                    name = f"table {self.number}: {which}{quantity}, {self.name(column)}"
                    values = (_at(c, k) for c in (printed, *_here(row, quantity)))
                    if k == 0 or (self.quartiles and len(printed) > 1):
                        (ends if k else medians).append(Result(name, *values))
        return medians, ends

    def section(self, found: Found, words: Sequence[str]) -> Section:
        rows = []
        for quantity in QUANTITIES:
            cells = dict(self._cells(quantity))
            if not cells:
                continue
            here = {c: _here(found[c], quantity) if c in found else ((), ()) for c in cells}
            lines = (
                ("printed", [cells[c] for c in cells]),
                ("paper's method here", [here[c][0] for c in cells]),
                ("default here", [here[c][1] for c in cells]),
            )
            for source, values in lines:
                if any(values):
                    texts = (_text(cell, quantity, self.quartiles) for cell in values)
                    rows.append((quantity if source == "printed" else "", source, *texts))
        names = tuple(self.name(column) for column in self.columns)
        return Section(
            f"Table {self.number}: {self.title}", tuple(words),
            table=Table(("median", "", *names), tuple(rows)),
        )  # fmt: skip

    def _cells(self, quantity: str) -> list[tuple[float, Cell]]:
        if quantity not in self.printed:
            return []
        return list(zip(self.columns, self.printed[quantity], strict=True))


def _here(row: Row, quantity: str) -> tuple[Cell, Cell]:
    return row.papers.get(quantity, ()), row.default.get(quantity, ())


def _at(cell: Cell, k: int) -> float | None:
    return float(cell[k]) if len(cell) > k else None


def _text(cell: Cell, quantity: str, quartiles: bool) -> str:
    """``0.854 [0.799, 0.895]``."""
    if not cell:
        return "–"

    def number(value: float) -> str:
        if quantity in (ENTROPY, GAP):
            return f"{value:.1f}"
        if quantity == EPSILON or math.fabs(value) >= 1.0:
            return f"{value:.3g}"
        return f"{value:.3f}"

    if len(cell) == 1 or not quartiles:
        return number(cell[0])
    return f"{number(cell[0])} [{number(cell[1])}, {number(cell[2])}]"


NOISES, SIZES, PLUME_NOISES = (0.1, 0.3, 0.5, 0.6), (50, 100, 200, 400), (0.1, 0.3, 0.5)
LAYOUTS = (
    Layout(1, "one input, 100 records", "noise", NOISES, TABLE_1, quartiles=False),
    Layout(2, "one input, 100 records, with quartiles", "noise", NOISES, TABLE_2),
    Layout(3, "one input, noise to signal 1", "records", SIZES, TABLE_3),
    Layout(4, "two inputs, 400 records", "noise", PLUME_NOISES, TABLE_4),
)
