"""One table on disk, a file or many, read as it is written: only the columns that are asked for."""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from privgp.errors import TableError
from privgp.tables import parser
from privgp.tables.files import File, Files, open_files, stamp_of
from privgp.tables.parser import PLAIN, EncodingError, Layout, list_names
from privgp.tables.texts import has_decimal_comma

DELIMITERS = ",;\t|"  # in the order in which they are tried on a header
SINCE_1970 = {"seconds": 1, "milliseconds": 1000}  # words for a date format: how many are a second


@dataclass(frozen=True)
class Form:
    """The declared format of a CSV file; None: as its header, or its public cells, show."""

    delimiter: str | None = None
    decimal_comma: bool | None = None
    encoding: str | None = None
    date_format: str | None = None
    texts: tuple[str, ...] = ()

    def check(self) -> None:
        """Refuse what is no delimiter and no format of dates, by TableError."""
        given = "," if self.delimiter is None else self.delimiter
        if len(given.encode()) != 1 or given in '"\r\n':
            raise TableError("`delimiter` must be one character, such as ';'.")
        form = self.date_format
        if form is not None and form not in SINCE_1970 and "%" not in form:
            raise TableError(
                "`date_format` must be such as '%d.%m.%Y' or '%m/%d/%Y %I:%M %p', or one of "
                f"{', '.join(SINCE_1970)}."
            )

    @property
    def codec(self) -> str:
        """The name that Python has for the encoding."""
        try:
            return Layout.encoding if self.encoding is None else codecs.lookup(self.encoding).name
        except LookupError:
            raise TableError(
                "`encoding` must be the name of one, such as windows-1252 or utf-16, got "
                f"'{self.encoding}'."
            ) from None


@dataclass(frozen=True)
class Source:
    """A table on disk.

    Attributes
    ----------
    path : what it was opened by: a file, a folder or a pattern
    files : those that it is made of
    date_format : how dates are written that are not in ISO 8601

    """

    path: Path
    files: Files
    date_format: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The columns, which are those of the first file."""
        return self.files.files[0].columns

    @property
    def layout(self) -> Layout:
        return self.files.files[0].layout

    @property
    def is_plain(self) -> bool:
        """Whether a CSV file is in UTF-8, with commas between fields and without decimal commas."""
        layout = self.layout
        return layout.delimiter == "," and not layout.decimal_comma and layout.is_utf_8

    @property
    def is_csv(self) -> bool:
        """Whether cells are texts."""
        return any(file.is_csv or file.partition for file in self.files.files)


def open_source(path: Path, form: Form | None = None, public: Sequence[str] = ()) -> Source:
    """A file, every line of which is checked.

    Parameters
    ----------
    path
        A CSV file, possibly compressed, or a Parquet file.
    form
        Its declared format.
    public
        Columns that may be looked at to see how numbers are written.

    """
    form, named = form or Form(), str(path)
    form.check()
    stamp, is_csv = stamp_of(named), parser.is_csv(named)  # before anything is read of it
    layout, names = _header(named, form) if is_csv else (PLAIN, parser.read_header(named))
    file = File(named, names, parser.count_rows(named, layout), (), stamp, layout)
    if not file.rows:
        raise TableError(f"'{path}' has a header but no rows: add at least one.")
    numeric = [name for name in public if name not in form.texts]
    shows = is_csv and numeric and all(names.count(name) == 1 for name in numeric)
    if form.decimal_comma is None and shows:
        found = has_decimal_comma(file.read(numeric), path, layout.delimiter)
        file = replace(file, layout=replace(layout, decimal_comma=found))
    return Source(path, Files((file,)), form.date_format)


def open_many(path: Path) -> Source:
    """The files of a folder or a pattern as one table."""
    return Source(path, open_files(str(path)))


def _header(path: str, form: Form) -> tuple[Layout, tuple[str, ...]]:
    """The first delimiter that parts the header into several names, or else the first of all, and the
    names."""
    delimiters = form.delimiter or DELIMITERS
    plain = Layout(delimiters[0], form.codec, form.decimal_comma, form.texts)
    for delimiter in delimiters:
        layout = replace(plain, delimiter=delimiter)
        try:
            names = parser.read_header(path, layout)
        except EncodingError:
            break
        except TableError:  # quotes may stand around names that another delimiter parts
            continue
        if len(names) > 1:
            return layout, names
    return plain, parser.read_header(path, plain)


def check_columns(source: Source, wanted: Sequence[str]) -> None:
    """Refuse names that the table does not have, or has twice."""
    for name in wanted:
        count = source.names.count(name)
        if count == 0:
            near = [each for each in source.names if each.strip().casefold() == name.casefold()]
            hint = (
                f", but one named '{near[0]}': write the name exactly like that."
                if near
                else _columns_there(source, wanted)
            )
            raise TableError(f"'{source.path}' has no column '{name}'{hint}")
        if count > 1:
            raise TableError(f"'{source.path}' has {count} columns named '{name}': rename them.")


def _columns_there(source: Source, wanted: Sequence[str]) -> str:
    # A table without a header shows its first row as one, and with it somebody's values, which may be
    # words: it has one if some of the columns are there.
    named = any(name in source.names for name in wanted)
    if source.is_csv and (not named or any(map(_begins_as_number, source.names))):
        return (
            ": its first line must name the columns; check that line and the spelling of the name."
        )
    return f": it has {list_names(source.names)}."


def _begins_as_number(text: str) -> bool:
    return bool(re.match(r"\s*[-+]?\W?[\d.]", text))


def load(source: Source, wanted: Sequence[str]) -> pl.DataFrame:
    """These columns and no others, cells of a CSV file as text; at least one row. Every line was checked:
    which columns are wanted makes no difference to what is said of them."""
    check_columns(source, wanted)
    frame = source.files.read(wanted)
    source.files.refuse_changes()  # what was read is what was checked
    return frame
