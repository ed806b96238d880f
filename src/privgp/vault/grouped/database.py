"""Private outcomes in a database, summed there: one query, of which grouped sums come back to the vault."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from privgp.engine import database as db
from privgp.engine.workers import Engine, Watch
from privgp.errors import TableError
from privgp.plan.inputs.database import KEY, DatabaseRows
from privgp.plan.inputs.tally import Tally
from privgp.question.outcomes import Classes
from privgp.types import Integers, UserData
from privgp.vault.grouped.totals import CHANGED, Encoding, ResidualEncoding
from privgp.vault.values import Sealed, read_label

WRONG = "the output columns must hold a finite number in every row, or a label where classes are declared."
TRUTHS = {False: "false", True: "true"}  # also of the numbers 0 and 1
CURVE = "_curve"
ANOTHER = "y must be the output of the table whose inputs are X."


@dataclass(frozen=True)
class DatabaseOutput:
    """Private columns of a table in a database.

    Attributes
    ----------
    table : DatabaseTable
        The table.
    names : tuple of str
        The columns.

    """

    table: db.DatabaseTable
    names: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The names, as data frames have them."""
        return self.names

    def check(self) -> None:
        """Nothing yet: the query that sums values counts those that can be read, before anything is spent."""


@dataclass(frozen=True, repr=False)
class DatabaseOutcomes:
    """Outcomes in a database; see ``ArrayOutcomes``.

    Attributes
    ----------
    rows : DatabaseRows
        The rows.
    outcomes : tuple
        The column of every outcome, and its declared classes, None where it is a number.

    """

    rows: DatabaseRows
    outcomes: tuple[tuple[str, Classes | None], ...]

    def sum_over(
        self, tally: Tally, encodings: Sequence[Encoding], engine: Engine, watch: Watch | None
    ) -> Integers:
        """One query; a value that cannot be read is refused without saying which."""
        names, bits = [name for name, _ in self.outcomes], tally.bits
        rows = self.rows.keyed(tally.grid, names)
        curves = [each.curve for each in encodings if isinstance(each, ResidualEncoding)]
        if curves:
            rows = db.beside(rows, KEY, tally.keys, {CURVE: curves[0]})
        asked: dict[str, db.types.Value] = {"rows": rows[KEY].count()}
        for place, ((name, classes), kind) in enumerate(zip(self.outcomes, encodings, strict=True)):
            cell = _Cell(rows[db.column_name("y", place)], self.rows.table.type_of(name), classes)
            asked[db.column_name("ok", place)] = db.flag(cell.is_there()).sum()
            if isinstance(kind, ResidualEncoding):
                columns = _residuals(cell.number(), rows[CURVE], kind, bits)
            else:
                columns = cell.encode(kind, bits)
            for column, encoded in enumerate(columns):
                asked[db.column_name("y", place, column)] = encoded.sum()
        found = db.sum_groups(rows, [KEY], asked)
        return _collect(tally, {name: db.integers(v) for name, v in found.items()})


def seal_database(
    output: DatabaseOutput, rows: DatabaseRows, classes: Sequence[Classes | None]
) -> Sealed:
    """The outcomes of rows in a database, on the way to the query that sums them.

    Parameters
    ----------
    output : DatabaseOutput
        Must be of the same table as the rows.
    rows : DatabaseRows
        The rows.
    classes : sequence
        The declared classes of every outcome; None where it is a number.

    """
    if output.table is not rows.table:
        raise ValueError(ANOTHER)
    outcomes = tuple(zip(output.names, classes, strict=True))
    return Sealed(DatabaseOutcomes(rows, outcomes), rows.count, output.names)


def _collect(tally: Tally, found: dict[str, Integers]) -> Integers:
    """The sums in the order of the tally's cells, if they are of its rows and all values are there: sums of
    missing cells alone are missing too, and are refused by their count."""
    order = np.argsort(found[KEY])
    if not np.array_equal(found[KEY][order], tally.keys):
        raise TableError(CHANGED)
    if any(not np.array_equal(v, found["rows"]) for k, v in found.items() if k.startswith("ok")):
        raise TableError(WRONG)
    sums = [values for name, values in found.items() if name.startswith("y")]
    return np.column_stack([found["rows"], *sums])[order]


@dataclass(frozen=True, repr=False)
class _Cell:
    """A private cell of every row as an expression: it is read where it is."""

    cell: db.types.Value
    kind: db.DataType
    classes: Classes | None

    def is_there(self) -> db.types.BooleanValue:
        if self.classes is not None:
            found = self.cell.notnull()
            if self.kind.is_string():
                found = found & (self.cell.strip() != "")
            return found
        return db.is_finite(self.number())

    def number(self) -> db.types.NumericValue:
        if not (self.kind.is_numeric() or self.kind.is_boolean()):
            raise TableError(WRONG)
        if self.kind.is_boolean():  # one that is missing is refused by its count
            return self.cell.isnull().ifelse(
                db.constant(np.inf), db.flag(self.cell).cast("float64")
            )
        return self.cell.cast("float64")

    def encode(self, encoding: Encoding, bits: int) -> list[db.types.IntegerValue]:
        """What ``Encoding.encode`` computes, by the same operations on floats."""
        if self.classes is None:
            return _numbers(self.number(), encoding, bits)
        each = [self._has(name) for name in self.classes]
        if len(each) > 2:
            one = db.whole(1 << bits)
            return [has.ifelse(one, db.whole(-(1 << bits))) for has in each]
        share = each[0].ifelse(db.constant(0.0), db.constant(0.5))
        return _numbers(each[1].ifelse(db.constant(1.0), share), encoding, bits)

    def _has(self, name: UserData) -> db.types.BooleanValue:
        """Whether a cell holds a class; False where it is missing."""
        if self.kind.is_string():
            found = self.cell.strip() == (read_label(name) or "")
        elif self.kind.is_boolean():
            found = self.cell.ifelse("true", "false") == TRUTHS.get(name, name)
        elif self.kind.is_numeric():
            found = self.cell.cast("float64") == db.constant(float(name))
        else:
            raise TableError(WRONG)
        return found.fill_null(False)


def _residuals(
    values: db.types.NumericValue,
    curve: db.types.NumericValue,
    encoding: ResidualEncoding,
    bits: int,
) -> list[db.types.IntegerValue]:
    """What numbers are above or below a curve, as ``ResidualEncoding.encode`` computes it."""
    left = db.clip(values, *encoding.within) - curve
    return _numbers(left, encoding, bits)


def _numbers(
    values: db.types.NumericValue, encoding: Encoding, bits: int
) -> list[db.types.IntegerValue]:
    """A number in [-1, 1] and its square as whole multiples of ``2**-bits``."""
    low, high = encoding.bounds
    middle, half = 0.5 * high + 0.5 * low, 0.5 * high - 0.5 * low
    scaled = (db.clip(values, low, high) - db.constant(middle)) / db.constant(half)
    rounded = db.floor(db.clip(scaled, -1.0, 1.0) * db.constant(2.0**bits))
    v = rounded.cast("float64") * db.constant(2.0**-bits)
    return [rounded, db.floor(v * v * db.constant(2.0**bits))]
