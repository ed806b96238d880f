"""Private tables on the server's disk: read when they are needed, never written, never quoted.

Whatever is wrong with a private column, the sentence is the same.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import polars as pl

from privgp.server.errors import Refused
from privgp.storage import parser
from privgp.storage.parser import TableError
from privgp.types import Array
from privgp.vault.validate import column_labels, column_numbers, column_people

Read = TypeVar("Read")
ENDINGS = (".csv", ".parquet")
UNREADABLE = "The table cannot be read: it must be CSV in UTF-8 with commas (RFC 4180) and a header, or Parquet."
NO_COLUMN = "The table must have each of the named columns once."


def count_rows(path: Path) -> int:
    """The number of rows of a table that can be read, every line of it."""
    rows = _read(lambda: parser.count_rows(str(path)))
    if rows == 0:
        raise Refused(422, "The table has no rows.")
    return rows


def columns_of(path: Path, names: Sequence[str]) -> pl.DataFrame:
    """These columns and no others, cells of a CSV file as text; every line is checked."""
    rows, there = count_rows(path), _read(lambda: parser.read_header(str(path)))
    if any(there.count(name) != 1 for name in names):
        raise Refused(422, NO_COLUMN)
    places = [pl.nth(there.index(name)).alias(name) for name in names]
    return _read(lambda: parser.read_rows(str(path), places, rows))


def number_columns(frame: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """The named columns as finite numbers, read by the vault, as inputs may be private."""
    return pl.DataFrame([pl.Series(name, output_numbers(frame, name)) for name in names])


def output_numbers(frame: pl.DataFrame, name: str) -> Array:
    column = frame[name]
    sentence = f"Column '{name}' must hold a finite number in every row."
    try:
        if not (column.dtype == pl.String or column.dtype.is_numeric()):
            raise TypeError
        is_machine_number = column.dtype.is_integer() or column.dtype.is_float()
        cells = column.to_numpy() if is_machine_number else column.to_list()
        return column_numbers(cells, frame.height)
    except (TypeError, ValueError, pl.exceptions.PolarsError):
        raise Refused(422, sentence) from None


def output_labels(frame: pl.DataFrame, name: str) -> Any:
    column = frame[name]
    try:
        if not (column.dtype in (pl.String, pl.Boolean) or column.dtype.is_numeric()):
            raise TypeError
        return column_labels(column.to_list())
    except (TypeError, ValueError, pl.exceptions.PolarsError):
        raise Refused(422, f"Column '{name}' must hold a label in every row.") from None


def person_column(frame: pl.DataFrame, name: str) -> Any:
    """One identifier per row, as text: one person however it is written."""
    try:
        return column_people(frame[name].to_list())
    except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError):
        raise Refused(422, f"Column '{name}' must name a person in every row.") from None


def _read(read: Callable[[], Read]) -> Read:
    """What is wrong with a table is the same sentence to everybody."""
    try:
        return read()
    except TableError:
        raise Refused(422, UNREADABLE) from None
