"""Reading and writing tables. Only the columns that are asked for are ever loaded. The library that
parses quotes cells in its errors, so none of its errors is passed on."""

import codecs
import gzip
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import polars as pl

from privgp.command.errors import Refusal, counted, listed
from privgp.command.io.cells.dates import check_date_format
from privgp.command.io.cells.numerals import decimal_comma_seen, pointed
from privgp.command.io.files import TABLES, check_readable, ending, whole_file

Read = TypeVar("Read")
DELIMITERS = ";\t|"  # tried where a header has one name only
UTF_8 = ("utf-8", "utf-8-sig")


@dataclass(frozen=True)
class Form:
    """How a CSV file is written; None: as its header, or its public cells, plainly show."""

    delimiter: str | None = None
    decimal_comma: bool | None = None
    encoding: str | None = None
    date_format: str | None = None
    texts: tuple[str, ...] = ()  # columns whose cells are no numbers, whatever they look like


@dataclass(frozen=True)
class Source:
    """A table on disk; only its header is known."""

    path: Path
    names: tuple[str, ...]
    delimiter: str = ","
    decimal_comma: bool | None = None  # None: nothing shows it
    encoding: str = "utf-8-sig"
    date_format: str | None = None
    texts: tuple[str, ...] = ()

    @property
    def is_plain(self) -> bool:
        """Whether it is a CSV file in UTF-8 with commas between fields, and without decimal commas."""
        return self.delimiter == "," and not self.decimal_comma and self.encoding in UTF_8

    @property
    def is_csv(self) -> bool:
        return ending(self.path) != ".parquet"


def open_table(path: Path, form: Form | None = None, public: Sequence[str] = ()) -> Source:
    """``public``: columns that may be looked at to see how numbers are written."""
    form = form or Form()
    if form.delimiter is not None and len(form.delimiter.encode()) != 1:
        raise Refusal("--delimiter must be one character, such as ';'.")
    check_date_format(form.date_format)
    check_readable(path, TABLES)
    if ending(path) == ".parquet":
        return Source(path, tuple(_parsed(path, lambda: pl.read_parquet_schema(path))))
    delimiter, encoding = form.delimiter or ",", _encoding(form.encoding)
    names = _header(path, delimiter, encoding)
    for other in DELIMITERS if form.delimiter is None else "":
        if len(names) == 1 and other in names[0]:
            delimiter, names = other, _header(path, other, encoding)
    how = delimiter, form.decimal_comma, encoding, form.date_format, form.texts
    source = Source(path, names, *how)
    numeric = [name for name in public if name not in form.texts]
    if form.decimal_comma is None and numeric and all(names.count(name) == 1 for name in numeric):
        frame = _parsed(path, _selected(source, numeric).collect)
        return replace(source, decimal_comma=decimal_comma_seen(frame, path, delimiter))
    return source


def _encoding(given: str | None) -> str:
    try:
        return "utf-8-sig" if given is None else codecs.lookup(given).name
    except LookupError:
        raise Refusal(
            f"--encoding must be the name of one, such as windows-1252 or utf-16, got '{given}'."
        ) from None


def _header(path: Path, delimiter: str, encoding: str) -> tuple[str, ...]:
    # The lines after the first may be of any length here.
    first = partial(pl.read_csv, has_header=False, n_rows=1, truncate_ragged_lines=True)
    read = partial(first, path, infer_schema=False, glob=False, separator=delimiter)
    told = {} if encoding in UTF_8 else {"encoding": encoding}
    return tuple((name or "").strip() for name in _parsed(path, lambda: read(**told).row(0)))


def check_columns(source: Source, wanted: Sequence[str]) -> None:
    """Refuse names that the table does not have, or has twice."""
    for name in wanted:
        count = source.names.count(name)
        if count == 0:
            told = _what_there_is(source, wanted)
            raise Refusal(f"'{source.path}' has no column '{name}'{told}.")
        if count > 1:
            raise Refusal(f"'{source.path}' has {count} columns named '{name}': rename them.")


def _what_there_is(source: Source, wanted: Sequence[str]) -> str:
    # A table without a header shows its first row as one, and with it somebody's values, which may be
    # words: it has one if some of the columns are there.
    named = any(name in source.names for name in wanted)
    if source.is_csv and (not named or any(_is_number(name) for name in source.names)):
        return ": its first line must name the columns"
    return f": it has {listed(source.names)}"


def _is_number(text: str) -> bool:
    return bool(re.match(r"\s*[-+]?\W?[\d.]", text))


def _scan(source: Source) -> pl.LazyFrame:
    if source.is_csv:
        separator, encoding = source.delimiter, source.encoding
        scan = partial(pl.scan_csv, infer_schema=False, glob=False, separator=separator)
        if encoding in UTF_8:
            return scan(source.path)
        read = partial(pl.read_csv, infer_schema=False, glob=False, separator=separator)
        return _parsed(source.path, lambda: read(source.path, encoding=encoding).lazy())  # at once
    return pl.scan_parquet(source.path, glob=False)


def _selected(source: Source, wanted: Sequence[str]) -> pl.LazyFrame:
    """These columns and no others, cells of a CSV file as text."""
    check_columns(source, wanted)
    cells = (_cells(source, source.names.index(name)).alias(name) for name in wanted)
    return _scan(source).select(cells)


def _cells(source: Source, place: int) -> pl.Expr:
    """A column, with numbers as Python writes them; every cell by itself."""
    cells, as_it_is = pl.nth(place), source.names[place] in source.texts or not source.is_csv
    return cells if as_it_is else pointed(cells, source.decimal_comma)


def load(source: Source, wanted: Sequence[str]) -> pl.DataFrame:
    """These columns and no others, cells of a CSV file as text; at least one row."""
    frame = _parsed(source.path, _selected(source, wanted).collect)
    check_some(frame.height, source)
    return frame


def load_whole(path: Path, wanted: Sequence[str]) -> tuple[Source, pl.DataFrame]:
    """These columns of a table, every line checked."""
    return load_checked(open_table(path), wanted)


def load_checked(source: Source, wanted: Sequence[str]) -> tuple[Source, pl.DataFrame]:
    """The same of a table that is open. Lines come first: which columns are wanted makes no difference
    to what is said of them."""
    check_columns(source, wanted)
    rows = _count_lines(source)
    frame = load(source, wanted)
    if rows not in (None, frame.height):
        raise _unreadable(source.path)
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
    if _count_lines(source) not in (None, rows):
        raise _unreadable(source.path)


def _count_lines(source: Source) -> int | None:
    """How many rows a CSV file has, every one of which has all fields; None for another file."""
    if not source.is_csv:
        return None
    width, last = len(source.names), -1
    try:
        for last, (line, fields) in enumerate(_field_counts(source)):  # noqa: B007 - header: 0
            if fields != width:
                raise Refusal(
                    f"Line {line} of '{source.path}' has {counted(fields, 'field')} where the "
                    f"header has {width}."
                )
    except (OSError, EOFError, ValueError):
        raise _unreadable(source.path) from None
    return last


def _field_counts(source: Source) -> Iterator[tuple[int, int]]:
    """Of every row the last line, counted from 1, and how many fields it has. No cell is read: lines
    are searched for delimiters and quotes alone."""
    opened = gzip.open if ending(source.path) == ".csv.gz" else open
    fields, quoted = 0, False
    with opened(source.path, "rt", newline="", encoding=source.encoding) as lines:
        for number, line in enumerate(lines, start=1):
            if quoted or '"' in line:
                more, quoted = _delimiters(line, source.delimiter, quoted)
            else:
                more = line.count(source.delimiter)
            fields += more
            if not quoted:
                yield number, fields + 1 if fields or line.strip("\r\n") else 0
                fields = 0
    if quoted:
        yield number, fields + 1


def _delimiters(line: str, delimiter: str, quoted: bool) -> tuple[int, bool]:
    """How many delimiters of a line stand outside of quotes, and whether it ends inside of them. A
    quote begins a field or is a letter like any other; inside, two of them are one."""
    count, start, place = 0, True, 0
    while place < len(line):
        letter = line[place]
        if quoted:
            if line.startswith('""', place):
                place += 1
            elif letter == '"':
                quoted = False
        elif letter == '"' and start:
            quoted = True
        count += letter == delimiter and not quoted
        start = letter == delimiter and not quoted
        place += 1
    return count, quoted


def write_table(frame: pl.DataFrame, path: Path, *, simulation: bool) -> list[str]:
    """Write CSV or Parquet by the file's ending; returns the names of the columns. The table of a
    simulation has one column more, true in every row, which says so to any reader."""
    if simulation:
        name = "simulation"
        while name in frame.columns:
            name += "_"
        frame = frame.with_columns(pl.lit(True).alias(name))
    with whole_file(path) as part:
        if ending(path) == ".csv":
            frame.with_columns(map(_shortly, frame)).write_csv(part)
        else:
            frame.write_parquet(part)
    return frame.columns


def _shortly(column: pl.Series) -> pl.Series:
    """Instants as text without empty parts: days where all are midnight, else whole seconds."""
    if not isinstance(column.dtype, pl.Datetime) or column.dtype.time_zone is not None:
        return column
    for every, form in (("1d", "%Y-%m-%d"), ("1s", "%Y-%m-%dT%H:%M:%S")):
        if (column.dt.truncate(every) == column).all():
            return column.dt.strftime(form)
    return column


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
    if ending(path) == ".parquet":
        return Refusal(f"'{path}' cannot be read as Parquet.")
    return Refusal(
        f"'{path}' cannot be read as CSV in UTF-8: save it as CSV UTF-8, or, for plan, release, update and "
        "predict, name its encoding, such as windows-1252."
    )
