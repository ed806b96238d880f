"""Public rows in a database, and their sums, by grouped queries: see ``Source``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from privgp.engine import database as db
from privgp.engine.workers import Engine
from privgp.plan.inputs.grid import BINS, Axis, Grid, Limits
from privgp.plan.inputs.inputs import Inputs, list_columns
from privgp.plan.inputs.tally import CLASSES, LADDER, Grouped, fraction_bits
from privgp.tables.kinds import MOST_LEVELS, levels_of
from privgp.tables.table import Table
from privgp.tables.texts import NOTHING
from privgp.types import Integers, UserData

if TYPE_CHECKING:
    from ibis.expr import types as ir
    from ibis.expr.datatypes import DataType

NUMBERS = "Column {!r} of the database must hold a finite number in every row."
KINDS = (
    "Column {!r} of the database must hold degrees on the earth, or numbers between minus one period and "
    "two, in every row."
)
PEOPLE = (
    "Column {!r} of the database must name a person in every row, by a whole number or a text of plain letters "
    "and digits, without double spaces, other numerals such as 7.0 or 7e0, or texts such as NA: a database "
    "would take other ways to write one person for other people. Write them in one way, or read the table "
    "into memory."
)
PLAIN, DIGITS = "^[!-~]+( [!-~]+)*$", "^[0-9]+$"
NUMERAL = "^[-+]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][-+]?[0-9]+)?$"
EXPOSURE = "exposure must be positive and finite in every row."
LIMITED = ("periodic", "place")
PERSON, KEY, CLASS = "_privgp_person", "_privgp_key", "_privgp_class"


@dataclass(frozen=True, repr=False)
class DatabaseRows:
    """Rows in a database.

    Attributes
    ----------
    table : DatabaseTable
        The rows.
    names : tuple of str
        The input columns.
    kinds : Inputs, optional
        What they are; None: numbers.
    groups : str, optional
        The column of people; None: every row is a person.
    exposed : tuple of str or None
        Columns that counts are counted over; None: 1 for all rows.
    most : int, optional
        Rows of a person that are used, the first ones by their inputs; None: all.

    """

    table: db.DatabaseTable
    names: tuple[str, ...]
    kinds: Inputs | None = None
    groups: str | None = None
    exposed: tuple[str | None, ...] = ()
    most: int | None = None

    @cached_property
    def _about(self) -> dict[str, float]:
        """What one query tells of all rows: their number, that of people, limits and what is wrong."""
        import ibis

        rows, asked = self.located(), {"rows": ibis._.count()}
        for place, _ in enumerate(self.names):
            x = rows[f"x{place}"]
            asked |= {f"low{place}": x.min(), f"high{place}": x.max()}
            asked |= {f"ok{place}": db.flag(db.is_finite(x)).sum()}
            fraction = db.flag(x != db.floor(_within_bounds(x)).cast("float64"))
            asked |= {f"parts{place}": fraction.sum()}
        for place, _ in enumerate(self.exposed):
            e = rows[f"e{place}"]
            good = db.is_finite(e) & (e >= db.constant(1e-50)) & (e <= db.constant(1e50))
            asked |= {f"over{place}": e.max(), f"good{place}": db.flag(good).sum()}
        if self.groups is not None:
            asked |= {"people": rows[PERSON].nunique(), "known": rows[PERSON].count()}
            used = rows[CLASS] >= 0
            asked |= {"used": db.flag(used).sum(), "variety": rows[CLASS].nunique(where=used)}
        found = {name: one[0].as_py() for name, one in db.sum_groups(rows, (), asked).items()}
        self._check(found)
        return found

    def _check(self, found: dict[str, float]) -> None:
        """Refuse rows that are not complete."""
        rows = int(found["rows"])
        if not rows:
            raise ValueError("the table in the database has no rows.")
        for place, (name, column) in enumerate(zip(self.names, self._columns(), strict=True)):
            if int(found[f"ok{place}"]) != rows:
                limited = column is not None and column.kind in LIMITED
                raise ValueError((KINDS if limited else NUMBERS).format(name))
        if any(int(found[f"good{place}"]) != rows for place, _ in enumerate(self.exposed)):
            raise ValueError(EXPOSURE)
        if self.groups is not None and int(found["known"]) != rows:
            raise ValueError(PEOPLE.format(self.groups))

    def located(self, outcomes: Sequence[str] = ()) -> ir.Table:
        """The rows with the numbers of their inputs, ``x0``, ``x1``, ..., exposures, how many rows their
        people have, and columns ``y_0``, ``y_1``, ... of outcomes. No other column and no name of the table is
        left, as a database may take two names for one."""
        t = self.table.table
        held: dict[str, object] = {
            db.column_name("y", place): t[name] for place, name in enumerate(outcomes)
        }
        for place, (name, column) in enumerate(zip(self.names, self._columns(), strict=True)):
            held[f"x{place}"] = _numbers(self.table, name, column)
        for place, over in enumerate(self.exposed):
            held[f"e{place}"] = db.constant(1.0) if over is None else t[over].cast("float64")
        if self.groups is None:
            return t.select(**held)
        held[PERSON] = _person(self.table, self.groups)
        t = t.select(**held)
        order = [f"x{place}" for place, _ in enumerate(self.names)]
        found = t.mutate(_n=db.count_over(PERSON), _r=db.rank_over(PERSON, order))
        used = found["_n"] if self.most is None else db.least_whole(found["_n"], self.most)
        rung = db.whole(0)
        for step in LADDER[:-1].tolist():
            rung = rung + db.flag(used > db.whole(step))
        if self.most is not None:
            rung = (found["_r"] < db.whole(self.most)).ifelse(rung, db.whole(-1))
        return found.mutate(**{CLASS: rung})

    def _columns(self) -> list[UserData]:
        if self.kinds is None:
            return [None] * len(self.names)
        return [column for column in self.kinds.columns for _ in column.names]

    @property
    def count(self) -> int:
        return int(self._about["rows" if self.groups is None else "used"])

    @property
    def persons(self) -> int | None:
        return None if self.groups is None else int(self._about["people"])

    @property
    def has_weights(self) -> bool:
        return False

    @property
    def variety(self) -> int:
        return 1 if self.groups is None else int(self._about["variety"])

    @property
    def exposures(self) -> tuple[float, ...]:
        return tuple(float(self._about[f"over{place}"]) for place, _ in enumerate(self.exposed))

    def limits(self, engine: Engine) -> Limits:
        low, high, parts = (
            [self._about[f"{what}{place}"] for place, _ in enumerate(self.names)]
            for what in ("low", "high", "parts")
        )
        low_end, high_end = np.array([low, high], dtype=np.float64)
        return Limits(low_end, high_end, np.array([int(each) == 0 for each in parts]))

    def histograms(self, axes: Sequence[Axis], engine: Engine) -> Integers:
        import ibis

        found, rows = np.zeros((len(axes), BINS), dtype=np.int64), self.located()
        for place, axis in enumerate(axes):
            here = axis.place(rows[f"x{place}"], db.clip)
            binned = rows.mutate(**{KEY: db.least_whole(db.floor(here), axis.count - 1)})
            counted = db.sum_groups(binned, [KEY], {"rows": ibis._.count()})
            found[place, db.integers(counted[KEY])] = db.integers(counted["rows"])
        return found

    def keyed(self, grid: Grid, outcomes: Sequence[str] = ()) -> ir.Table:
        """The rows that are used, as ``located`` has them, with the key of their cell."""
        rows, key = self.located(outcomes), db.whole(0)
        for place, (axis, stride) in enumerate(zip(grid.axes, grid.strides, strict=True)):
            here = axis.place(rows[f"x{place}"], db.clip)
            key = key + db.least_whole(db.floor(here), axis.count - 1) * db.whole(stride)
            rows = rows.mutate(**{f"q{place}": db.floor(here * db.constant(axis.fine))})
        if self.groups is not None:
            key = key * db.whole(CLASSES) + rows[CLASS]
        rows = rows.mutate(**{KEY: key})
        return rows if self.groups is None else rows.filter(rows[CLASS] >= 0)

    def group(self, grid: Grid, engine: Engine) -> Grouped:
        import ibis

        rows, asked = self.keyed(grid), {"rows": ibis._.count()}
        inputs = range(len(self.names))
        unit = 2.0 ** fraction_bits(self.count)
        for place in inputs:
            x, q = rows[f"x{place}"], rows[f"q{place}"]
            asked |= {f"s{place}": q.sum(), f"low{place}": x.min(), f"high{place}": x.max()}
        for place, most in enumerate(self.exposures):
            share = rows[f"e{place}"] * db.constant(1.0 / most)
            asked |= {f"w{place}": db.floor(share * db.constant(unit)).sum()}
        found = db.sum_groups(rows, [KEY], asked)
        sums = ["rows", *(f"s{p}" for p in inputs), *(f"w{p}" for p, _ in enumerate(self.exposed))]
        lows, highs = (
            np.column_stack([db.floats(found[f"{what}{place}"]) for place in inputs])
            for what in ("low", "high")
        )
        columns = np.column_stack([db.integers(found[name]) for name in sums])
        return Grouped.of(db.integers(found[KEY]), columns, lows, highs)


def _within_bounds(x: ir.NumericValue) -> ir.NumericValue:
    """Numbers within those that whole numbers of 64 bits can be."""
    return db.clip(x, -(2.0**62), 2.0**62)


def _numbers(table: db.DatabaseTable, name: str, column: UserData) -> ir.NumericValue:
    """The number of every cell of an input column."""
    import ibis

    x, kind = table.table[name], table.type_of(name)
    if column is not None and column.kind == "category":
        cell = x if kind.is_string() else x.cast("string")
        text = cell.strip()
        found = db.constant(len(column.levels))
        for place, level in reversed([*enumerate(column.levels)]):
            found = (text == ibis.literal(level)).ifelse(db.constant(place), found)
        return text.isnull().ifelse(ibis.null("float64"), found)
    if column is not None and column.kind == "date":
        return _days(x, kind, name)
    if not (kind.is_numeric() or kind.is_boolean()):
        raise ValueError(NUMBERS.format(name))
    if column is not None and column.kind == "periodic":
        return _around(x.cast("float64"), column.period)
    if column is not None and column.kind == "place":
        most = db.constant(90.0 if name == column.names[0] else 360.0)
        x = x.cast("float64")
        return (x.abs() <= most).ifelse(x, ibis.null("float64"))
    if kind.is_boolean():
        return x.isnull().ifelse(ibis.null("float64"), db.flag(x).cast("float64"))
    return x.cast("float64")


def _around(x: ir.NumericValue, period: float) -> ir.NumericValue:
    """Numbers between 0 and the period, as NumPy has them: of numbers between minus one period and two, of
    which a difference is exact and a sum rounded once. Others are missing."""
    import ibis

    p, none = db.constant(period), ibis.null("float64")
    above = (x < db.constant(2.0 * period)).ifelse(x - p, none)
    below = (x >= db.constant(-period)).ifelse(x + p, none)
    return (x >= p).ifelse(above, (x < db.constant(0.0)).ifelse(below, x))


def _days(x: ir.DateValue, kind: DataType, name: str) -> ir.NumericValue:
    """Days since 1970 of a column of dates."""
    if not kind.is_date():
        raise ValueError(f"Column {name!r} of the database must hold dates.")
    import datetime

    import ibis

    start = ibis.literal(datetime.date(1970, 1, 1))
    return x.delta(start, unit="day").cast("float64")


def _person(table: db.DatabaseTable, name: str) -> ir.Value:
    """What people are distinguished by; missing where nobody is named, or in a way that others may be too."""
    import ibis

    x, kind = table.table[name], table.type_of(name)
    if kind.is_integer():
        return x
    if not kind.is_string():
        raise ValueError(PEOPLE.format(name))
    text = x.strip()
    digits, plain = text.re_search(DIGITS), text.re_search(PLAIN)
    named = plain & ~text.re_search(NUMERAL) & ~text.lower().isin(sorted(NOTHING))
    written = named.ifelse(text, ibis.null("string"))
    return digits.ifelse(text.re_replace("^0*([0-9])", r"\1"), written)


def database_inputs(
    table: db.DatabaseTable, names: tuple[str, ...], declared: UserData
) -> Inputs | None:
    """The kinds of the public columns of a table in a database; None if all are numbers.

    Parameters
    ----------
    table : DatabaseTable
        The table.
    names : tuple of str
        Names of the columns.
    declared : mapping, optional
        Kinds by name; other columns have the kind of their type. Levels that are not declared are asked
        of the database.

    """
    if isinstance(declared, Inputs):
        return declared
    said = list_columns(declared)
    plain = {name: _plain_kind(table, name) for name in names if name not in said}
    if declared is None and not any(plain.values()):
        return None
    columns = dict(declared or {}) | {name: kind or "number" for name, kind in plain.items()}
    if any(kind[:1] == ("place",) and kind != ("place",) for kind in columns.values()):
        raise ValueError("in a database, places must be latitudes and longitudes in degrees.")
    cells = [np.empty(0, dtype=object) for _ in names]
    for place, name in enumerate(names):
        if columns.get(name) in ("category", ("category", None)):
            levels = levels_of(table.distinct(name, MOST_LEVELS + 1))
            cells[place] = np.array(levels, dtype=object)
    return Inputs.of(Table(names, tuple(cells)), columns)


def _plain_kind(table: db.DatabaseTable, name: str) -> str | None:
    """The kind that the type of a column says; None for numbers."""
    kind = table.type_of(name)
    if kind.is_boolean():
        return "boolean"
    return "date" if kind.is_date() else None
