"""One table in a file: what its rows are, and how they are read.

A row of a CSV file is decided here and nowhere else, by the strict grammar of RFC 4180: a field holds no
double quote, or must be in double quotes with every quote inside written twice. What readers of CSV read
in different ways is refused: a quote inside a plain field, text after a closing quote, an empty line, a
carriage return that ends no line, a line with more or fewer fields than the header. The library that reads
the cells must then find as many rows. It quotes cells in its errors, so none of them is passed on.
"""

import csv
import gzip
import io
import os
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, TypeVar

from privgp.errors import TableError

if TYPE_CHECKING:
    import polars as pl

LONGEST = 2**24  # characters of a record: more of them hang on a quote that nobody closed
UTF_8 = ("utf-8", "utf-8-sig")
MARK = "\ufeff"  # of the byte order, which the parser skips once
SAVE_AS = "save it as CSV UTF-8, or state its encoding where it can be given."
QUOTES = "write the field in double quotes, and every double quote in it twice"

Read = TypeVar("Read")
_lock = threading.Lock()
_reading: list[int] = []  # the error stream that was set aside, then one entry per further reader


class EncodingError(TableError):
    """A CSV file whose bytes are no text in its encoding."""


@dataclass(frozen=True)
class Layout:
    """How a CSV file is written.

    Attributes
    ----------
    delimiter : the character between its fields
    encoding : encoding of its letters, a name that Python knows
    decimal_comma : whether numbers are written 1.250,5 or 1,250.5; None if nothing shows it
    texts : columns whose cells are no numbers, whatever they look like

    """

    delimiter: str = ","
    encoding: str = "utf-8"
    decimal_comma: bool | None = None
    texts: tuple[str, ...] = ()

    @property
    def is_utf_8(self) -> bool:
        """Whether the parser decodes the file without help."""
        return self.encoding in UTF_8


PLAIN = Layout()


def is_csv(path: str) -> bool:
    """Whether the name of a file ends as that of a CSV file, possibly compressed."""
    return path.lower().endswith((".csv", ".csv.gz"))


def read_header(path: str, layout: Layout = PLAIN) -> tuple[str, ...]:
    """Names of the columns, without the spaces around them; no row of a CSV file is looked at.

    Parameters
    ----------
    path
        Path of a CSV file, possibly compressed, or a Parquet file.
    layout
        Layout of a CSV file.

    Raises
    ------
    TableError
        The file or its header cannot be read; the sentence holds no cell.

    """
    import polars as pl

    if not is_csv(path):
        return tuple(parse(path, lambda: pl.read_parquet_schema(path)))
    with _refuse_text(path, layout):
        return next((_names(record, layout) for _, record, _ in _records(path, layout)), ())


def count_rows(path: str, layout: Layout = PLAIN, most: int | None = None) -> int:
    """How many rows a table has; every line is checked, and the parser must count as many.

    Parameters
    ----------
    path, layout
        As in ``read_header``.
    most
        Stop counting the rows of a CSV file once there are more; None for never.

    Raises
    ------
    TableError
        A line is not written as the strict grammar wants it: its number is named, never its
        text.

    """
    import polars as pl

    rows = _count_records(path, layout, most) if is_csv(path) else None
    if most is not None and rows is not None and rows > most:
        return rows
    table = scan(path, layout)
    found = int(parse(path, lambda: table.select(pl.len()).collect()).item())
    if rows not in (None, found):
        raise _unreadable(path, layout)
    return found


def read_rows(
    path: str,
    columns: Sequence["pl.Expr"],
    rows: int,
    first: int = 0,
    stop: int | None = None,
    layout: Layout = PLAIN,
) -> "pl.DataFrame":
    """Rows of a table, cells of a CSV file as text.

    Parameters
    ----------
    path, layout
        As in ``read_header``.
    columns
        Expressions of Polars, one per column that is wanted.
    rows
        How many rows the table has, as ``count_rows`` found.
    first, stop
        The range of rows, up to but without ``stop``.

    Raises
    ------
    TableError
        The parser finds more or fewer rows than there are.

    """
    stop = rows if stop is None else stop
    wanted = scan(path, layout).slice(first, None if stop == rows else stop - first)
    frame = parse(path, lambda: wanted.select(columns).collect())
    if frame.height != stop - first:
        raise _unreadable(path, layout)
    return frame


def scan(path: str, layout: Layout = PLAIN) -> "pl.LazyFrame":
    """A table that is read when it is collected, by ``parse``."""
    import polars as pl

    if not is_csv(path):
        return pl.scan_parquet(path, glob=False, hive_partitioning=False)
    source: str | io.BytesIO = path
    if not layout.is_utf_8:
        with _refuse_text(path, layout), _open_text(path, layout) as text:
            source = io.BytesIO(text.read().encode())
    return pl.scan_csv(source, infer_schema=False, glob=False, separator=layout.delimiter)


def parse(path: str, read: Callable[[], Read]) -> Read:
    """The result of the parser; its errors and panics quote cells, so their text is not passed on.

    Parameters
    ----------
    path
        Named in the error.
    read
        Calls the parser.

    """
    try:
        with _no_panic_messages():
            return read()
    except (KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException:  # panics are no Exceptions
        raise _unreadable(path) from None


def _count_records(path: str, layout: Layout, most: int | None = None) -> int:
    """How many rows a CSV file has, every one of which has as many fields as the header; one more than
    ``most`` if there are more."""
    rows, width = -1, 0  # the header is no row
    with _refuse_text(path, layout):
        for number, record, fields in _records(path, layout):
            rows += 1
            width = width or fields
            if not record.strip("\r\n"):
                raise TableError(f"Line {number} of '{path}' is empty: remove it.")
            if fields != width:
                held = f"{fields} field{'' if fields == 1 else 's'}"
                raise TableError(
                    f"Line {number} of '{path}' has {held} where the header has {width}: correct the line."
                )
            if most is not None and rows > most:
                break
    return max(rows, 0)


def _records(path: str, layout: Layout) -> Iterator[tuple[int, str, int]]:
    """Every record of a CSV file, the header first: the number of its first line, counted from 1, its
    text, and how many fields it has."""
    delimiter, held, length, is_quoted = layout.delimiter, list[str](), 0, False
    quoted, number = _quote_pattern(delimiter), 0
    with _open_text(path, layout) as lines:
        for number, line in enumerate(lines, start=1):
            if not held and '"' not in line:
                _check_ends(line, number, path)
                yield number, line, line.count(delimiter) + 1
                continue
            held.append(line)
            length += len(line)
            is_quoted ^= line.count('"') % 2 == 1
            if is_quoted and length <= LONGEST:
                continue
            if is_quoted:
                break
            record, start = "".join(held), number - len(held) + 1
            plain = quoted.sub("", record)
            if '"' in plain:
                raise TableError(
                    f"Line {start} of '{path}' has a quote inside a field: {QUOTES}, or see whether "
                    f"fields are separated by {delimiter!r}."
                )
            _check_ends(plain, start, path)
            yield start, record, plain.count(delimiter) + 1
            held, length = [], 0
    if is_quoted:
        start = number - len(held) + 1
        raise TableError(f"Line {start} of '{path}' has a quote that is not closed: {QUOTES}.")


def _quote_pattern(delimiter: str) -> re.Pattern[str]:
    """Whole fields in quotes. What is left of a record that is written well has no quote."""
    between = re.escape(delimiter)
    return re.compile(rf'(?:\A|(?<={between}))"(?:[^"]|"")*+"(?={between}|\r?\n?\Z)')


def _check_ends(text: str, number: int, path: str) -> None:
    """Refuse a carriage return that is not before a line's end: some readers end the line there."""
    if text.count("\r") > text.endswith("\r\n"):
        raise TableError(
            f"Line {number} of '{path}' has a carriage return inside: end lines with a line feed, or "
            "with both."
        )


def _names(record: str, layout: Layout) -> tuple[str, ...]:
    """The cells of a header that is written well."""
    read = csv.reader(io.StringIO(record, newline=""), delimiter=layout.delimiter, strict=True)
    return tuple(name.strip() for name in next(read, []))


@contextmanager
def _open_text(path: str, layout: Layout) -> Iterator[IO[str]]:
    """The text of a CSV file after the mark of its byte order, by lines that a line feed ends."""
    opened = gzip.open if path.lower().endswith(".gz") else open
    encoding = "utf-8" if layout.is_utf_8 else layout.encoding
    with opened(path, "rt", newline="\n", encoding=encoding) as text:
        if text.read(1) not in ("", MARK):
            text.seek(0)
        yield text


@contextmanager
def _refuse_text(path: str, layout: Layout) -> Iterator[None]:
    try:
        yield
    except TableError:
        raise
    except UnicodeError:
        raise EncodingError(
            f"'{path}' cannot be read as CSV in {_charset_name(layout)}: {SAVE_AS}"
        ) from None
    except (OSError, EOFError, ValueError, csv.Error):
        raise _unreadable(path, layout) from None


@contextmanager
def _no_panic_messages() -> Iterator[None]:
    """Keep the parser, which is no Python, from writing to the error stream of the process, also when
    several threads read: the first sets the stream aside, the last puts it back."""
    with _lock:
        try:
            if not _reading:
                kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, 2)
                os.close(nowhere)
                _reading.append(kept)
            else:
                _reading.append(-1)
            silent = True
        except OSError:  # there is no error stream
            silent = False
    try:
        yield
    finally:
        if silent:
            with _lock:
                if len(_reading) == 1:
                    os.dup2(_reading[0], 2)
                    os.close(_reading[0])
                _reading.pop()


def _charset_name(layout: Layout) -> str:
    return "UTF-8" if layout.is_utf_8 else layout.encoding


def _unreadable(path: str, layout: Layout = PLAIN) -> TableError:
    what = f"CSV in {_charset_name(layout)}" if is_csv(path) else "Parquet"
    return TableError(f"'{path}' cannot be read as {what}.")


def list_names(names: Sequence[str], most: int = 20) -> str:
    """'a', 'b' and 'c', shortened when there are many."""
    quoted = [f"'{name}'" for name in names[:most]]
    if len(names) > most:
        return f"{', '.join(quoted)} and {len(names) - most} more"
    if len(quoted) < 2:
        return "".join(quoted) or "none"
    return f"{', '.join(quoted[:-1])} and {quoted[-1]}"
