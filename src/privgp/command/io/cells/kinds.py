"""What input columns are: as options say it, and cells read accordingly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from privgp.command.errors import Refusal, listed
from privgp.gp.columns.dates import instants_of

Kinds = Mapping[str, str]  # the kind of every column that is known, by its name
NUMBERS = ("number", "periodic", "place")
ISO = r"^\s*\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}.*)?\s*$"
TRUTHS = {"true": 1, "false": 0}
FILL_IN = "fill it in, or leave the row out"


def declared_columns(
    inputs: Sequence[str],
    dates: str | None,
    categories: str | None,
    places: str | None,
    periodic: str | None,
    booleans: str | None,
    crs: str | None,
) -> dict[Any, Any] | None:
    """``columns`` of a model from the options --dates, --categories, --places, --periodic, --booleans."""
    columns: dict[Any, Any] = {name: "date" for name in _names(dates, "--dates")}
    columns |= {name: "boolean" for name in _names(booleans, "--booleans")}
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
            raise Refusal(f"'{name}' is not among the --inputs, {listed(inputs)}.")
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


def typed(
    column: pl.Series,
    where: str,
    kind: str | None,
    before: int = 0,
    *,
    is_csv: bool = True,
    choice: str = FILL_IN,
) -> pl.Series:
    """A public column of its kind; where that is not known, of the one that it plainly is. ``choice``:
    what may be done about missing values."""
    text = column.dtype == pl.String
    column = column.str.strip_chars() if text else column
    missing = column.is_null() | (column == "") if text else column.is_null()
    _refuse(missing, where, f"has no value in row {{}}: {choice}.", before)
    if kind in NUMBERS:
        return _numbers(column, where, before)
    if kind == "date":
        return _dates(column, where, before)
    if kind in ("category", "boolean"):
        kinds = pl.Boolean | pl.Categorical | pl.Enum
        plain = text or column.dtype.is_integer() or isinstance(column.dtype, kinds)
        if not plain:
            raise Refusal(f"{where} must hold text or whole numbers, to be a {kind}.")
        return column
    if not (text and is_csv):
        return _plain(column, where, before)
    if _are_truths(column):
        return _numbers(column, where, before).cast(pl.Boolean)
    if column.str.contains(ISO).all():
        return _dates(column, where, before)
    return column if not _looks_numeric(column).any() else _numbers(column, where, before)


def _plain(column: pl.Series, where: str, before: int) -> pl.Series:
    """A column of Parquet, whose type says what it is."""
    if column.dtype.is_numeric():
        return _numbers(column, where, before)
    if isinstance(
        column.dtype, pl.Boolean | pl.String | pl.Categorical | pl.Enum | pl.Date | pl.Datetime
    ):
        return column
    raise Refusal(f"{where} must hold numbers, dates, truth values or text.")


def _are_truths(column: pl.Series) -> bool:
    return bool(column.str.to_lowercase().is_in(list(TRUTHS)).all())


def _looks_numeric(column: pl.Series) -> pl.Series:
    return column.cast(pl.Float64, strict=False).is_not_null()


def _numbers(column: pl.Series, where: str, before: int) -> pl.Series:
    """Finite numbers, whole ones as such."""
    column = column.cast(pl.Int64) if column.dtype == pl.Boolean else column
    text = column.dtype == pl.String
    if not (text or column.dtype.is_numeric()):
        raise Refusal(f"{where} must hold numbers.")
    if text and _are_truths(column):
        return column.str.to_lowercase().replace_strict(TRUTHS, return_dtype=pl.Int64)
    values = column.cast(pl.Float64, strict=False)
    _refuse(values.is_null(), where, "must hold numbers: row {} does not.", before)
    _refuse(~values.is_finite(), where, "holds NaN or infinity in row {}.", before)
    whole = column.cast(pl.Int64, strict=False)
    return whole if (text or column.dtype.is_integer()) and not whole.is_null().any() else values


def _dates(column: pl.Series, where: str, before: int) -> pl.Series:
    if isinstance(column.dtype, pl.Date | pl.Datetime):
        return column
    if column.dtype != pl.String:
        raise Refusal(f"{where} must hold dates, such as 2024-05-31 or 2024-05-31T12:00+02:00.")
    instants = np.full(column.len(), np.datetime64("NaT"), dtype="datetime64[ns]")
    for row, cell in enumerate(column.to_list()):
        try:
            instants[row] = instants_of(np.array([cell], dtype=object))[0]
        except (ValueError, OverflowError):
            raise Refusal(
                f"{where} must hold dates, such as 2024-05-31 or 2024-05-31T12:00+02:00: row "
                f"{before + row + 1} does not."
            ) from None
    return pl.Series(column.name, instants)


def _refuse(wrong: pl.Series, where: str, sentence: str, before: int) -> None:
    place = wrong.arg_max()
    if place is not None and wrong.any():
        raise Refusal(f"{where} {sentence.format(before + place + 1)}")


def _names(text: str | None, option: str) -> list[str]:
    if text is None:
        return []
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise Refusal(f"{option} must be names of columns separated by commas.")
    bare = [name.partition("=")[0] for name in names]
    if len({*bare}) != len(bare):
        raise Refusal(f"{option} names a column twice.")
    return names
