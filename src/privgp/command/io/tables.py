"""Reading and writing tables. Only the columns that are asked for are ever loaded."""

import codecs
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from privgp.command.errors import Refusal, list_names
from privgp.command.io.cells.dates import check_date_format
from privgp.command.io.cells.numerals import has_decimal_comma, use_decimal_points
from privgp.command.io.files import TABLES, check_readable, suffix_of, whole_file
from privgp.tables import parser
from privgp.tables.files import Files
from privgp.tables.parser import EncodingError, Layout, TableError

DELIMITERS = ",;\t|"  # in the order in which they are tried on a header


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
    """A table on disk; only its header is known. ``files``: those of a folder or a pattern."""

    path: Path
    names: tuple[str, ...]
    delimiter: str = ","
    decimal_comma: bool | None = None  # None: nothing shows it
    encoding: str = "utf-8"
    date_format: str | None = None
    texts: tuple[str, ...] = ()
    files: Files | None = None

    @property
    def layout(self) -> Layout:
        return Layout(self.delimiter, self.encoding)

    @property
    def is_plain(self) -> bool:
        """Whether it is a CSV file in UTF-8 with commas between fields, and without decimal commas."""
        return self.delimiter == "," and not self.decimal_comma and self.layout.is_utf_8

    @property
    def is_csv(self) -> bool:
        if self.files is not None:
            return any(file.is_csv or file.partition for file in self.files.files)
        return suffix_of(self.path) != ".parquet"


def open_table(path: Path, form: Form | None = None, public: Sequence[str] = ()) -> Source:
    """``public``: columns that may be looked at to see how numbers are written."""
    form = form or Form()
    given = "," if form.delimiter is None else form.delimiter
    if len(given.encode()) != 1 or given in '"\r\n':
        raise Refusal("--delimiter must be one character, such as ';'.")
    check_date_format(form.date_format)
    check_readable(path, TABLES)
    if suffix_of(path) == ".parquet":
        with _refuse_tables():
            return Source(path, parser.read_header(str(path)))
    encoding = _codec_name(form.encoding)
    delimiter, names = _header(path, form.delimiter or DELIMITERS, encoding)
    how = delimiter, form.decimal_comma, encoding, form.date_format, form.texts
    source = Source(path, names, *how)
    numeric = [name for name in public if name not in form.texts]
    if form.decimal_comma is None and numeric and all(names.count(name) == 1 for name in numeric):
        frame = _read(source, numeric)
        return replace(source, decimal_comma=has_decimal_comma(frame, path, delimiter))
    return source


def open_many(path: Path, files: Files, form: Form) -> Source:
    """The files of a folder or a pattern as one table, which has the columns of the first of them."""
    return Source(path, files.files[0].columns, texts=form.texts, files=files)


def _codec_name(given: str | None) -> str:
    try:
        return Layout.encoding if given is None else codecs.lookup(given).name
    except LookupError:
        raise Refusal(
            f"--encoding must be the name of one, such as windows-1252 or utf-16, got '{given}'."
        ) from None


def _header(path: Path, delimiters: str, encoding: str) -> tuple[str, tuple[str, ...]]:
    """The first delimiter that parts the header into several names, or else the first of all, and the
    names."""
    for delimiter in delimiters:
        try:
            names = parser.read_header(str(path), Layout(delimiter, encoding))
        except EncodingError:
            break
        except TableError:  # quotes may stand around names that another delimiter parts
            continue
        if len(names) > 1:
            return delimiter, names
    with _refuse_tables():
        return delimiters[0], parser.read_header(str(path), Layout(delimiters[0], encoding))


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
    return f": it has {list_names(source.names)}"


def _is_number(text: str) -> bool:
    return bool(re.match(r"\s*[-+]?\W?[\d.]", text))


def _select_columns(source: Source, wanted: Sequence[str]) -> list[pl.Expr]:
    """These columns, cells of a CSV file as text."""
    check_columns(source, wanted)
    return [_cells(source, source.names.index(name)).alias(name) for name in wanted]


def _cells(source: Source, place: int) -> pl.Expr:
    """A column, with numbers as Python writes them; every cell by itself."""
    cells, as_it_is = pl.nth(place), source.names[place] in source.texts or not source.is_csv
    return cells if as_it_is else use_decimal_points(cells, source.decimal_comma)


def load(source: Source, wanted: Sequence[str]) -> pl.DataFrame:
    """These columns and no others, cells of a CSV file as text; at least one row. Every line is checked
    first: which columns are wanted makes no difference to what is said of them."""
    return _read(source, wanted)


def _read(source: Source, wanted: Sequence[str]) -> pl.DataFrame:
    if source.files is not None:
        return _read_many(source.files, source, wanted)
    columns, rows = _select_columns(source, wanted), count_rows(source, wanted)
    with _refuse_tables():
        return parser.read_rows(str(source.path), columns, rows, layout=source.layout)


def _read_many(files: Files, source: Source, wanted: Sequence[str]) -> pl.DataFrame:
    """The rows of all files in order. A column must have one type in all of them, so that none is read
    by that of another."""
    check_columns(source, wanted)
    with _refuse_tables():
        files.check(wanted)
        read = [(path, frame) for _, path, frame in files.batches(wanted)]
    first, known = read[0]
    for path, frame in read:
        for name in wanted:
            if frame[name].dtype != known[name].dtype:
                raise Refusal(
                    f"Column '{name}' of '{path}' has another type than in '{first}': write all files "
                    "alike."
                )
    return pl.concat([frame for _, frame in read])


def load_whole(path: Path, wanted: Sequence[str]) -> tuple[Source, pl.DataFrame]:
    """These columns of a table that is written plainly."""
    source = open_table(path)
    return source, load(source, wanted)


def count_rows(source: Source, wanted: Sequence[str]) -> int:
    """How many rows there are, every line checked; the table must have these columns."""
    check_columns(source, wanted)
    if source.files is not None:
        return source.files.rows
    with _refuse_tables():
        rows = parser.count_rows(str(source.path), source.layout)
    check_some(rows, source)
    return rows


@contextmanager
def _refuse_tables() -> Iterator[None]:
    """Refuse what is wrong with a table in the words of whoever read it; where letters are, say what
    can be done about it."""
    try:
        yield
    except EncodingError as problem:
        raise Refusal(
            f"{str(problem).rstrip('.')}: save it as CSV UTF-8, or, for plan, release, update and predict, "
            "name its encoding, such as windows-1252."
        ) from None
    except TableError as problem:
        raise Refusal(str(problem)) from None


def check_some(rows: int, source: Source) -> None:
    if rows == 0:
        raise Refusal(f"'{source.path}' has a header but no rows.")


def write_table(frame: pl.DataFrame, path: Path, *, simulation: bool) -> list[str]:
    """Write CSV or Parquet by the file's ending; returns the names of the columns. The table of a
    simulation has one column more, true in every row, which says so to any reader."""
    if simulation:
        name = "simulation"
        while name in frame.columns:
            name += "_"
        frame = frame.with_columns(pl.lit(True).alias(name))
    with whole_file(path) as part:
        if suffix_of(path) == ".csv":
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
