"""Public cells of a table as what their columns are: declared kinds, or what the cells show.

Public cells may be located in an error; private ones are read by the vault alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta

import numpy as np
import polars as pl

from privgp.errors import TableError
from privgp.tables.dates import EPOCH, nanoseconds_of
from privgp.tables.kinds import KINDS
from privgp.tables.source import SINCE_1970, Source
from privgp.tables.texts import NOTHING, OTHERWISE, disguise_of

Kinds = Mapping[str, str]  # the kind of every column that is known, by its name
NUMBERS = [name for name, kind in KINDS.items() if kind.numeric]
TEXTS = [name for name in KINDS if name not in NUMBERS]
ISO = r"^\s*\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}.*)?\s*$"
TRUTHS = {"true": 1, "false": 0}
FILL_IN = "fill it in, or leave the row out"
LIKE = "such as 2024-05-31 or 2024-05-31T12:00+02:00"


def input_columns(
    frame: pl.DataFrame,
    names: Sequence[str],
    source: Source,
    kinds: Kinds | None = None,
    choice: str = FILL_IN,
) -> pl.DataFrame:
    """The named columns, of these kinds, as finite numbers unless they are something else.

    ``kinds``: None if all must be numbers.
    """
    told = dict.fromkeys(names, "number") if kinds is None else kinds
    made = pl.DataFrame(
        [
            as_kind(
                frame[name],
                f"Column '{name}' of '{source.path}'",
                told.get(name),
                is_csv=source.is_csv,
                choice=choice,
                date_format=source.date_format,
            )
            for name in names
        ]
    )
    if all(made[name].dtype.is_numeric() or made[name].dtype == pl.Boolean for name in names):
        return made.cast({pl.Boolean: pl.Int64})  # then they are all numbers
    return made


def identifiers(frame: pl.DataFrame, name: str, source: Source) -> np.ndarray:
    """One person's identifier per row. Neither spaces around one nor another sign for decimals make
    another person."""
    column = frame[name]
    if column.dtype == pl.String:
        column = column.str.strip_suffix(OTHERWISE).str.strip_chars()
        missing = column.is_null() | (column == "")
    elif column.dtype.is_float():
        missing = column.is_null() | ~column.is_finite()
    elif column.dtype.is_integer():
        missing = column.is_null()
    else:
        raise TableError(f"Column '{name}' of '{source.path}' must hold numbers or text.")
    if missing.any():
        raise TableError(
            f"Column '{name}' of '{source.path}' has no identifier in row {int(missing.arg_max() or 0) + 1}: "
            "every row needs its person."
        )
    return column.to_numpy()


def null_words(
    frame: pl.DataFrame, kept: pl.DataFrame, names: Sequence[str]
) -> dict[str, list[str]]:
    """What public columns of texts hold as if it were no value, though it may be a level, by their
    names. ``kept``: the table without the rows that are left out."""
    found = {name: _null_words(frame[name], kept[name]) for name in names}
    return {name: words for name, words in found.items() if words}


def _null_words(column: pl.Series, kept: pl.Series) -> list[str]:
    if column.dtype != pl.String:
        return []
    kept = kept.str.strip_chars()
    if _looks_numeric(kept).any() or kept.str.contains(ISO).all():
        return []
    words = column.drop_nulls().str.strip_chars().unique(maintain_order=True).to_list()
    return [word for word in words if word and word.lower() in NOTHING]


def as_kind(
    column: pl.Series,
    where: str,
    kind: str | None,
    *,
    is_csv: bool = True,
    choice: str = FILL_IN,
    date_format: str | None = None,
) -> pl.Series:
    """A public column of its kind; where that is not known, of the one that is inferred. ``choice``:
    what may be done about missing values; ``date_format``: how dates are written."""
    text = column.dtype == pl.String
    column = column.str.strip_chars() if text else column
    missing = column.is_null() | (column == "") if text else column.is_null()
    _refuse(missing, where, f"has no value in row {{}}: {choice}.")
    if text and kind in (*NUMBERS, "date"):
        _refuse_marks(column, where, choice)
    if kind in NUMBERS:
        return _numbers(column, where)
    if kind == "date":
        return parse_dates(column, where, date_format)
    if kind in ("category", "boolean"):
        kinds = pl.Boolean | pl.Categorical | pl.Enum
        plain = text or column.dtype.is_integer() or isinstance(column.dtype, kinds)
        if not plain:
            raise TableError(f"{where} must hold text or whole numbers, to be a {kind}.")
        return column
    if not (text and is_csv):
        return _plain(column, where)
    if _are_truths(column):
        return _numbers(column, where).cast(pl.Boolean)
    if column.str.contains(ISO).all():
        return parse_dates(column, where)
    if _looks_numeric(column).any():
        _refuse_marks(column, where, choice)
        return _numbers(_without_codes(column, where), where)
    _refuse_disguises(column, where)
    _refuse_marks(
        column,
        where,
        f"{choice}. If it is a level like any other, state this with `categories`",
    )
    return column


def _refuse_marks(column: pl.Series, where: str, choice: str) -> None:
    """Refuse words that stand for no value, such as NA."""
    marks = column.str.to_lowercase().is_in([*NOTHING])
    if marks.any():
        row = int(marks.arg_max() or 0)
        raise TableError(
            f"{where} holds '{column[row]}' in row {row + 1}, as if there were no value: {choice}."
        )


def _without_codes(column: pl.Series, where: str) -> pl.Series:
    """A column of numbers. Leading zeros are those of codes, which would be lost."""
    coded = column.filter(column.str.contains(r"^0\d+$"))
    if len(coded):
        raise TableError(
            f"{where} has leading zeros, such as {coded[0]}, as codes have: say with `categories` that "
            "it is a category, or with `numbers` that it is a number."
        )
    return column


def _refuse_disguises(column: pl.Series, where: str) -> None:
    """Refuse text that looks like numbers or dates: as categories, they would lose their order."""
    looks = disguise_of(column.unique().to_list())
    if looks == "numbers":
        raise TableError(
            f"{where} holds numbers that are written as text, such as '{column[0]}': write them with "
            "digits and a decimal point alone, give `decimal_comma` or `decimal_point` if the other "
            "sign groups thousands, or `categories` if they are categories."
        )
    if looks == "dates":
        raise TableError(
            f"{where} holds dates such as '{column[0]}', which can be read in several ways: say with "
            "`dates` that they are dates and with `date_format` how they are written, such as "
            "'%d.%m.%Y' or '%m/%d/%Y', or give `categories` if they are categories."
        )


def _plain(column: pl.Series, where: str) -> pl.Series:
    """A column of Parquet, whose type states its kind."""
    if column.dtype.is_numeric():
        return _numbers(column, where)
    if isinstance(
        column.dtype, pl.Boolean | pl.String | pl.Categorical | pl.Enum | pl.Date | pl.Datetime
    ):
        return column
    if isinstance(column.dtype, pl.Duration | pl.Time):
        raise TableError(
            f"{where} holds durations or times of day: turn them into numbers first, such as hours."
        )
    raise TableError(f"{where} must hold numbers, dates, truth values or text.")


def _are_truths(column: pl.Series) -> bool:
    return bool(column.str.to_lowercase().is_in(list(TRUTHS)).all())


def _looks_numeric(column: pl.Series) -> pl.Series:
    return column.cast(pl.Float64, strict=False).is_not_null()


def _numbers(column: pl.Series, where: str) -> pl.Series:
    """Finite numbers, whole ones as such."""
    column = column.cast(pl.Int64) if column.dtype == pl.Boolean else column
    text = column.dtype == pl.String
    if not (text or column.dtype.is_numeric()):
        raise TableError(f"{where} must hold numbers.")
    if text and _are_truths(column):
        return column.str.to_lowercase().replace_strict(TRUTHS, return_dtype=pl.Int64)
    values = column.cast(pl.Float64, strict=False)
    _refuse(
        values.is_null(),
        where,
        "must hold numbers: row {} does not. Correct it, or state that the column is a category or a date.",
    )
    _refuse(~values.is_finite(), where, "holds NaN or infinity in row {}.")
    whole = column.cast(pl.Int64, strict=False)
    return whole if (text or column.dtype.is_integer()) and not whole.is_null().any() else values


def _refuse(wrong: pl.Series, where: str, sentence: str) -> None:
    place = wrong.arg_max()
    if place is not None and wrong.any():
        raise TableError(f"{where} {sentence.format(place + 1)}")


def parse_dates(column: pl.Series, where: str, date_format: str | None = None) -> pl.Series:
    """Dates as they are written, in ISO 8601 unless a format is given."""
    if isinstance(column.dtype, pl.Date | pl.Datetime):
        return column
    since = date_format in SINCE_1970 and column.dtype.is_numeric()
    if column.dtype != pl.String and not since:
        raise TableError(f"{where} must hold dates, {LIKE}.")
    read, like = _reader(date_format)
    known: dict[object, int] = {}  # the same text is the same date
    for row, cell in enumerate(column.to_list()):
        if cell in known:
            continue
        try:
            known[cell] = nanoseconds_of(read(cell))
        except (ValueError, OverflowError):
            raise TableError(f"{where} must hold dates, {like}: row {row + 1} does not.") from None
    instants = np.array([known[cell] for cell in column], dtype=np.int64).astype("datetime64[ns]")
    return pl.Series(column.name, instants)


def _reader(date_format: str | None) -> tuple[Callable[[object], object], str]:
    """How a cell is read, and how one that can be read looks."""
    if date_format is None:
        return lambda cell: cell, f"{LIKE}, or written as `date_format` says"
    per = SINCE_1970.get(date_format)
    if per is not None:
        return (
            lambda cell: EPOCH + timedelta(seconds=float(cell) / per),
            f"{date_format} since 1970",
        )
    example = datetime(2024, 12, 31, 15, 30).strftime(date_format)
    return lambda cell: datetime.strptime(cell, date_format), f"written like {example}"
