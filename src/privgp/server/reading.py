"""Private tables on the server's disk: read when they are needed, never written, never quoted.

Whatever is wrong with a private column, the sentence is the same; the parser's own errors quote cells
and are passed on to nobody.
"""

import csv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import polars as pl

from privgp.server.errors import Refused
from privgp.types import Array
from privgp.vault.validate import column_labels, column_numbers, column_people

Read = TypeVar("Read")
ENDINGS = (".csv", ".parquet")
UNREADABLE = "The table cannot be read: it must be CSV in UTF-8 with a header, or Parquet."
NO_COLUMN = "The table must have each of the named columns once."


def count_rows(path: Path) -> int:
    """The number of rows of a table that can be read, every line of it."""
    rows = int(_parsed(lambda: _scan(path).select(pl.len()).collect()).item())
    if path.suffix == ".csv":
        _parsed(lambda: _check_lines(path, rows))
    if rows == 0:
        raise Refused(422, "The table has no rows.")
    return rows


def columns_of(path: Path, names: Sequence[str]) -> pl.DataFrame:
    """These columns and no others, cells of a CSV file as text."""
    there = _parsed(lambda: [name.strip() for name in _scan(path).collect_schema().names()])
    if any(there.count(name) != 1 for name in names):
        raise Refused(422, NO_COLUMN)
    places = [pl.nth(there.index(name)).alias(name) for name in names]
    return _parsed(lambda: _scan(path).select(places).collect())


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


def _scan(path: Path) -> pl.LazyFrame:
    if path.suffix == ".csv":
        return pl.scan_csv(path, infer_schema=False, glob=False)
    return pl.scan_parquet(path, glob=False)


def _check_lines(path: Path, rows: int) -> None:
    """Refuse a line with more or fewer fields than the header: all after it would be misread."""
    with path.open(newline="", encoding="utf-8-sig") as lines:
        widths = [len(row) for row in csv.reader(lines)]
    if len(widths) != rows + 1 or len({*widths}) != 1:
        raise ValueError


def _parsed(read: Callable[[], Read]) -> Read:
    try:
        return read()
    except (KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException:  # the parser's panics are no Exceptions
        raise Refused(422, UNREADABLE) from None
