"""Reading and writing tables. Only the columns that are asked for are ever loaded. The library that
parses quotes cells in its errors, so none of its errors is passed on."""

import csv
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import polars as pl

from privgp.command.errors import Refusal, counted, listed
from privgp.command.io.files import TABLES, check_readable, whole_file

Read = TypeVar("Read")


@dataclass(frozen=True)
class Source:
    """A table on disk; only its header is known."""

    path: Path
    names: tuple[str, ...]

    @property
    def is_csv(self) -> bool:
        return self.path.suffix.lower() == ".csv"


def open_table(path: Path) -> Source:
    check_readable(path, TABLES)
    if path.suffix.lower() != ".csv":
        return Source(path, tuple(_parsed(path, lambda: pl.read_parquet_schema(path))))
    # The lines after the first may be of any length here.
    first = partial(pl.read_csv, has_header=False, n_rows=1, truncate_ragged_lines=True)
    names = _parsed(path, lambda: first(path, infer_schema=False, glob=False).row(0))
    return Source(path, tuple((name or "").strip() for name in names))


def check_columns(source: Source, wanted: Sequence[str]) -> None:
    """Refuse names that the table does not have, or has twice."""
    for name in wanted:
        count = source.names.count(name)
        if count == 0:
            raise Refusal(f"'{source.path}' has no column '{name}'{_what_there_is(source)}.")
        if count > 1:
            raise Refusal(f"'{source.path}' has {count} columns named '{name}': rename them.")


def _what_there_is(source: Source) -> str:
    # A table without a header shows its first row as one, and with it somebody's output.
    if source.is_csv and any(_is_number(name) for name in source.names):
        return ", and its first line must name the columns"
    if source.is_csv and len(source.names) == 1 and set(source.names[0]) & set(";\t|"):
        return f": it has {listed(source.names)}, but fields must be separated by commas"
    return f": it has {listed(source.names)}"


def _is_number(text: str) -> bool:
    return bool(re.match(r"\s*[-+]?\W?[\d.]", text))


def _scan(source: Source) -> pl.LazyFrame:
    if source.is_csv:
        return pl.scan_csv(source.path, infer_schema=False, glob=False)
    return pl.scan_parquet(source.path, glob=False)


def _selected(source: Source, wanted: Sequence[str]) -> pl.LazyFrame:
    """These columns and no others, cells of a CSV file as text."""
    check_columns(source, wanted)
    return _scan(source).select(pl.nth(source.names.index(name)).alias(name) for name in wanted)


def load(source: Source, wanted: Sequence[str]) -> pl.DataFrame:
    """These columns and no others, cells of a CSV file as text; at least one row."""
    frame = _parsed(source.path, _selected(source, wanted).collect)
    check_some(frame.height, source)
    return frame


def load_whole(path: Path, wanted: Sequence[str]) -> tuple[Source, pl.DataFrame]:
    """These columns of a table, every line checked."""
    source = open_table(path)
    frame = load(source, wanted)
    check_lines(source, frame.height)
    return source, frame


def count_rows(source: Source, wanted: Sequence[str]) -> int:
    """How many rows there are, without loading a cell; the table must have these columns."""
    check_columns(source, wanted)
    rows = int(_parsed(source.path, _scan(source).select(pl.len()).collect).item())
    check_some(rows, source)
    return rows


def batches(source: Source, wanted: Sequence[str], rows: int) -> Iterator[pl.DataFrame]:
    """As ``load``, in order and in tables of at most ``rows`` rows, so that few are held at a time."""
    selected = _selected(source, wanted)
    parts = _parsed(
        source.path, lambda: selected.collect_batches(chunk_size=rows, maintain_order=True)
    )
    while (frame := _parsed(source.path, lambda: next(parts, None))) is not None:
        yield frame


def check_some(rows: int, source: Source) -> None:
    if rows == 0:
        raise Refusal(f"'{source.path}' has a header but no rows.")


def check_lines(source: Source, rows: int) -> None:
    """Refuse a CSV file in which a line has more or fewer fields than the header, or rows are
    missing: loading some columns does not notice, and would misread all that comes after."""
    if not source.is_csv:
        return
    width, last = len(source.names), -1
    try:
        with source.path.open(newline="", encoding="utf-8-sig") as lines:
            reader = csv.reader(lines)
            for last, row in enumerate(reader):  # noqa: B007 - the header is number 0
                if len(row) != width:
                    raise Refusal(
                        f"Line {reader.line_num} of '{source.path}' has "
                        f"{counted(len(row), 'field')} where the header has {width}."
                    )
    except (OSError, ValueError, csv.Error):
        raise _unreadable(source.path) from None
    if last != rows:
        raise _unreadable(source.path)


def write_table(frame: pl.DataFrame, path: Path, *, simulation: bool) -> list[str]:
    """Write CSV or Parquet by the file's ending; returns the names of the columns. The table of a
    simulation has one column more, true in every row, which says so to any reader."""
    if simulation:
        name = "simulation"
        while name in frame.columns:
            name += "_"
        frame = frame.with_columns(pl.lit(True).alias(name))
    with whole_file(path) as part:
        if path.suffix.lower() == ".csv":
            frame.write_csv(part)
        else:
            frame.write_parquet(part)
    return frame.columns


def _parsed(path: Path, read: Callable[[], Read]) -> Read:
    try:
        with _no_panic_messages():
            return read()
    except (KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException:  # the parser's panics are no Exceptions
        raise _unreadable(path) from None


@contextmanager
def _no_panic_messages() -> Iterator[None]:
    """Keep the parser, which is no Python, from writing to the error stream of the process."""
    try:
        kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    except OSError:  # there is no error stream
        yield
        return
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def _unreadable(path: Path) -> Refusal:
    what = "CSV in UTF-8" if path.suffix.lower() == ".csv" else "Parquet"
    return Refusal(f"'{path}' cannot be read as {what}.")
