"""What input columns are: as options say it, and cells read accordingly."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from privgp.command.errors import Refusal, list_names
from privgp.command.io.cells.dates import parse_dates
from privgp.tables.kinds import level
from privgp.tables.texts import disguise_of
from privgp.vault.values import NOTHING

Kinds = Mapping[str, str]  # the kind of every column that is known, by its name
NUMBERS = ("number", "periodic", "place")
TEXTS = ("category", "date", "boolean")
ISO = r"^\s*\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}.*)?\s*$"
TRUTHS = {"true": 1, "false": 0}
FILL_IN = "fill it in, or leave the row out"


def columns_from_options(
    inputs: Sequence[str],
    dates: str | None,
    categories: str | None,
    places: str | None,
    periodic: str | None,
    booleans: str | None,
    crs: str | None,
    numbers: str | None = None,
) -> dict[Any, Any] | None:
    """``columns`` of a model from the options --dates, --categories, --places, --periodic, --booleans
    and --numbers."""
    columns: dict[Any, Any] = {name: "date" for name in _names(dates, "--dates")}
    columns |= dict.fromkeys(_names(numbers, "--numbers"), "number")
    columns |= dict.fromkeys(_names(booleans, "--booleans"), "boolean")
    for entry in _names(categories, "--categories"):
        name, equals, levels = entry.partition("=")
        if equals and not all(levels.split("|")):
            raise Refusal("--categories must be such as region or region=north|south.")
        columns[name] = ("category", levels.split("|")) if equals else "category"
    for entry in _names(periodic, "--periodic"):
        name, _, period = entry.partition("=")
        try:
            columns[name] = ("periodic", float(period))
        except ValueError:
            raise Refusal(
                "--periodic must name columns with their periods, such as hour=24."
            ) from None
    place = tuple(_names(places, "--places"))
    if place:
        if len(place) != 2:
            raise Refusal(
                "--places must name two columns: latitude and longitude, such as lat,lon."
            )
        columns[place] = ("place", crs)
    elif crs is not None:
        raise Refusal("--crs is for --places only.")
    mentioned = [name for key in columns for name in (key if isinstance(key, tuple) else (key,))]
    for name in mentioned:
        if name not in inputs:
            raise Refusal(f"'{name}' is not among the --inputs, {list_names(inputs)}.")
        if mentioned.count(name) > 1:
            raise Refusal(f"The column '{name}' is said to be two things.")
    return columns or None


def kinds_of(columns: Any) -> dict[str, str]:
    """The kind of every column, from ``columns`` of a model or from what its file says."""
    if columns is None:
        return {}
    if hasattr(columns, "columns"):
        return {name: each.kind for each in columns.columns for name in each.names}
    return {
        name: said if isinstance(said, str) else said[0]
        for key, said in columns.items()
        for name in (key if isinstance(key, tuple) else (key,))
    }


def levels_of(columns: Any) -> dict[str, list[str]]:
    """The levels of the categories, from ``columns`` of a model or from what its file says."""
    if columns is None:
        return {}
    if hasattr(columns, "columns"):
        return {
            each.names[0]: [*each.levels] for each in columns.columns if each.kind == "category"
        }
    listed = {key: said for key, said in columns.items() if isinstance(said, tuple | list)}
    return {key: [*map(level, said[1])] for key, said in listed.items() if said[0] == "category"}


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
    """A public column of its kind; where that is not known, of the one that it plainly is. ``choice``:
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
            raise Refusal(f"{where} must hold text or whole numbers, to be a {kind}.")
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
        f"{choice}. If it is a level like any other, say so with --categories",
    )
    return column


def _refuse_marks(column: pl.Series, where: str, choice: str) -> None:
    """Refuse words that stand for no value, such as NA."""
    marks = column.str.to_lowercase().is_in([*NOTHING])
    if marks.any():
        row = int(marks.arg_max() or 0)
        raise Refusal(
            f"{where} holds '{column[row]}' in row {row + 1}, as if there were no value: {choice}."
        )


def _without_codes(column: pl.Series, where: str) -> pl.Series:
    """A column of numbers. Leading zeros are those of codes, which would be lost."""
    coded = column.filter(column.str.contains(r"^0\d+$"))
    if len(coded):
        raise Refusal(
            f"{where} has leading zeros, such as {coded[0]}, as codes have: say with --categories that "
            "it is a category, or with --numbers that it is a number."
        )
    return column


def _refuse_disguises(column: pl.Series, where: str) -> None:
    """Refuse text that looks like numbers or dates: as categories, they would lose their order."""
    looks = disguise_of(column.unique().to_list())
    if looks == "numbers":
        raise Refusal(
            f"{where} holds numbers that are written as text, such as '{column[0]}': write them with "
            "digits and a decimal point alone, give --decimal-comma or --decimal-point if the other "
            "sign groups thousands, or --categories if they are categories."
        )
    if looks == "dates":
        raise Refusal(
            f"{where} holds dates such as '{column[0]}', which can be read in several ways: say with "
            "--dates that they are dates and with --date-format how they are written, such as "
            "'%d.%m.%Y' or '%m/%d/%Y', or give --categories if they are categories."
        )


def _plain(column: pl.Series, where: str) -> pl.Series:
    """A column of Parquet, whose type says what it is."""
    if column.dtype.is_numeric():
        return _numbers(column, where)
    if isinstance(
        column.dtype, pl.Boolean | pl.String | pl.Categorical | pl.Enum | pl.Date | pl.Datetime
    ):
        return column
    if isinstance(column.dtype, pl.Duration | pl.Time):
        raise Refusal(
            f"{where} holds durations or times of day: turn them into numbers first, such as hours."
        )
    raise Refusal(f"{where} must hold numbers, dates, truth values or text.")


def _are_truths(column: pl.Series) -> bool:
    return bool(column.str.to_lowercase().is_in(list(TRUTHS)).all())


def _looks_numeric(column: pl.Series) -> pl.Series:
    return column.cast(pl.Float64, strict=False).is_not_null()


def _numbers(column: pl.Series, where: str) -> pl.Series:
    """Finite numbers, whole ones as such."""
    column = column.cast(pl.Int64) if column.dtype == pl.Boolean else column
    text = column.dtype == pl.String
    if not (text or column.dtype.is_numeric()):
        raise Refusal(f"{where} must hold numbers.")
    if text and _are_truths(column):
        return column.str.to_lowercase().replace_strict(TRUTHS, return_dtype=pl.Int64)
    values = column.cast(pl.Float64, strict=False)
    _refuse(values.is_null(), where, "must hold numbers: row {} does not.")
    _refuse(~values.is_finite(), where, "holds NaN or infinity in row {}.")
    whole = column.cast(pl.Int64, strict=False)
    return whole if (text or column.dtype.is_integer()) and not whole.is_null().any() else values


def _refuse(wrong: pl.Series, where: str, sentence: str) -> None:
    place = wrong.arg_max()
    if place is not None and wrong.any():
        raise Refusal(f"{where} {sentence.format(place + 1)}")


def split_list(text: str) -> list[str]:
    """Names between commas; one that has a comma itself stands in double quotes."""
    if '"' not in text:
        return [name.strip() for name in text.split(",")]
    try:
        return [name.strip() for name in next(csv.reader([text], skipinitialspace=True))]
    except csv.Error:
        raise Refusal("Names of columns must have no line breaks.") from None


def _names(text: str | None, option: str) -> list[str]:
    if text is None:
        return []
    names = split_list(text)
    if not all(names):
        raise Refusal(f"{option} must be names of columns separated by commas.")
    bare = [name.partition("=")[0] for name in names]
    if len({*bare}) != len(bare):
        raise Refusal(f"{option} names a column twice.")
    return names
