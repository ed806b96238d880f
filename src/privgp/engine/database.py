"""Tables in a database, through Ibis (extra ``database``): rows stay there, and grouped sums come back.

A constant is handed over as the text of a float, which every database reads as that very float; a decimal
number in a query need not be.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, unquote, urlsplit, urlunsplit

import numpy as np

from privgp.errors import TableError
from privgp.types import Array, Integers, UserData

if TYPE_CHECKING:
    from ibis.expr import types as types
    from ibis.expr.datatypes import DataType as DataType

SCHEMES = ("duckdb", "postgres", "postgresql")
LARGEST = 1.7976931348623157e308
MISSING = "a table in a database needs the package ibis: install privgp with the extra 'database'."
FORM = (
    "a table in a database must be given as duckdb:///path?table=NAME or "
    "postgresql://user@host/database?table=NAME, or as an Ibis table."
)
LOST = "the database could not be reached, or has no such table."
FAILED = "the database refused the query. Nothing was released."


def is_url(given: object) -> bool:
    """Whether it is the address of a database."""
    return isinstance(given, str) and given.split("://")[0] in SCHEMES and "://" in given


def is_ibis(given: object) -> bool:
    """Whether it is a table of Ibis."""
    return type(given).__module__.startswith("ibis.") and hasattr(given, "group_by")


def open_database(given: UserData) -> types.Table:
    """A table of Ibis, given or by its address.

    Raises
    ------
    ValueError
        The address has another form, or the database has no such table. No password is quoted.

    """
    try:
        import ibis
    except ImportError:
        raise ValueError(MISSING) from None
    if is_ibis(given):
        return given
    parts = urlsplit(given)
    asked = parse_qs(parts.query)
    names = asked.pop("table", [])
    if len(names) != 1 or parts.scheme not in SCHEMES:
        raise ValueError(FORM)
    schema = asked.pop("schema", [None])[0]
    try:
        if parts.scheme == "duckdb":
            held = ibis.duckdb.connect(_path_of(parts.netloc + parts.path), read_only=True)
        else:
            query = "&".join(f"{key}={value[0]}" for key, value in asked.items())
            held = ibis.connect(urlunsplit(("postgres", parts.netloc, parts.path, query, "")))
        return held.table(names[0], database=schema)
    except Exception:  # of a driver, which may quote a password
        raise ValueError(LOST) from None


def _path_of(written: str) -> str:
    """The file of an address: relative after three slashes, absolute after four, or if it is there."""
    path = unquote(written)
    relative = path.removeprefix("/")
    return path if path != relative and not os.path.exists(relative) else relative


@contextmanager
def quiet_failures() -> Iterator[None]:
    """Say nothing of a query that failed: a database may quote values."""
    try:
        yield
    except Exception:  # also a ValueError: those of Arrow quote values
        raise TableError(FAILED) from None


def constant(value: float) -> types.NumericValue:
    """A float in a query, to the last bit."""
    import ibis

    return ibis.literal(repr(float(value))).cast("float64")


def whole(value: int) -> types.IntegerValue:
    """A whole number of 64 bits in a query."""
    import ibis

    return ibis.literal(int(value), type="int64")


def clip(numbers: types.NumericValue, low: float, high: float) -> types.NumericValue:
    """Numbers moved between two bounds; a missing one counts as the lower."""
    import ibis

    return ibis.least(ibis.greatest(numbers, constant(low)), constant(high))


def is_finite(numbers: types.NumericValue) -> types.BooleanValue:
    """Whether numbers are there, and neither infinite nor NaN."""
    within = (numbers <= constant(LARGEST)) & (numbers >= constant(-LARGEST))
    return numbers.notnull() & within.fill_null(False)


def floor(numbers: types.NumericValue) -> types.IntegerValue:
    """The whole number below, of 64 bits."""
    return numbers.floor().cast("int64")


def column_name(word: str, *places: int) -> str:
    """The name of a column of a query: a word and some numbers."""
    return "_".join([word, *map(str, places)])


def flag(condition: types.BooleanValue) -> types.IntegerValue:
    """1 where a condition holds and 0 elsewhere."""
    return condition.ifelse(whole(1), whole(0))


def least_whole(numbers: types.IntegerValue, most: int) -> types.IntegerValue:
    """Whole numbers, none above ``most``."""
    import ibis

    return ibis.least(numbers, whole(most))


def count_over(person: str) -> types.IntegerValue:
    """How many rows have the same person, for every row."""
    import ibis

    return ibis._.count().over(ibis.window(group_by=person))


def rank_over(person: str, order: Sequence[str]) -> types.IntegerValue:
    """The place of a row among those of its person, from 0, in the order of some columns."""
    import ibis

    return ibis.row_number().over(ibis.window(group_by=person, order_by=list(order)))


def beside(
    table: types.Table, key: str, keys: Integers, columns: Mapping[str, Array]
) -> types.Table:
    """A table with further columns of public numbers, which are handed over by the keys of rows.

    Rows with another key are left out.
    """
    import ibis
    import pyarrow as pa

    held = {key: pa.array(keys), **{name: pa.array(each) for name, each in columns.items()}}
    return table.join(ibis.memtable(pa.table(held)), key)


def sum_groups(
    table: types.Table, keys: Sequence[str], sums: Mapping[str, types.Value]
) -> dict[str, UserData]:
    """The result of a grouped query by its columns, as arrays of Arrow.

    Parameters
    ----------
    table : Ibis table
        The rows.
    keys : sequence of str
        Columns to group by; none: all rows together.
    sums : mapping
        What is aggregated of each group, by name.

    """
    query = table.group_by(list(keys)).aggregate(**sums) if keys else table.aggregate(**sums)
    with quiet_failures():
        found = query.to_pyarrow()
        return {name: found[name].combine_chunks() for name in [*keys, *sums]}


def integers(values: UserData) -> Integers:
    """Whole numbers of a result, to the last digit; 0 where one is missing."""
    with quiet_failures():
        return np.asarray(values.cast("int64").fill_null(0).to_numpy(), dtype=np.int64)


def floats(values: UserData) -> Array:
    """Numbers of a result."""
    with quiet_failures():
        return np.asarray(values.cast("float64").to_numpy(zero_copy_only=False), dtype=np.float64)


@dataclass(frozen=True, repr=False, eq=False)
class DatabaseTable:
    """A table in a database; the table states which part is public.

    Attributes
    ----------
    table : Ibis table
        The rows.

    """

    table: types.Table = field(repr=False)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.table.columns)

    def check(self, wanted: Sequence[str]) -> None:
        """Refuse columns that the table does not have."""
        absent = [name for name in wanted if name not in self.columns]
        if absent:
            raise ValueError(f"the table in the database has no column {absent[0]!r}.")

    def refuse_changes(self) -> None:
        """What is summed is one query, which sees one state of the table."""

    def distinct(self, name: str, most: int) -> list[object]:
        """The different cells of a public column, ``most`` of them at most."""
        with quiet_failures():
            found = self.table.select(name).distinct().limit(most).to_pyarrow()
        return [cell for cell in found[name].to_pylist() if cell is not None]

    def type_of(self, name: str) -> DataType:
        """The type of a column, as Ibis has it."""
        return self.table.schema()[name]

    @cached_property
    def rows(self) -> int:
        """How many rows there are."""
        import ibis

        return int(sum_groups(self.table, (), {"rows": ibis._.count()})["rows"][0].as_py())
