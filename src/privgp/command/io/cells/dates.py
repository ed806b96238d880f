"""Dates of a public column: in ISO 8601, or as --date-format says."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import polars as pl

from privgp.command.errors import Refusal
from privgp.tables.dates import EPOCH, nanoseconds_of

SINCE_1970 = {"seconds": 1, "milliseconds": 1000}  # words for --date-format: how many are a second
LIKE = "such as 2024-05-31 or 2024-05-31T12:00+02:00"


def parse_dates(column: pl.Series, where: str, date_format: str | None = None) -> pl.Series:
    """Dates as they are written, in ISO 8601 unless a format is given."""
    if isinstance(column.dtype, pl.Date | pl.Datetime):
        return column
    since = date_format in SINCE_1970 and column.dtype.is_numeric()
    if column.dtype != pl.String and not since:
        raise Refusal(f"{where} must hold dates, {LIKE}.")
    read, like = _reader(date_format)
    known: dict[Any, int] = {}  # the same text is the same date
    for row, cell in enumerate(column.to_list()):
        if cell in known:
            continue
        try:
            known[cell] = nanoseconds_of(read(cell))
        except (ValueError, OverflowError):
            raise Refusal(f"{where} must hold dates, {like}: row {row + 1} does not.") from None
    instants = np.array([known[cell] for cell in column], dtype=np.int64).astype("datetime64[ns]")
    return pl.Series(column.name, instants)


def check_date_format(date_format: str | None) -> None:
    if date_format is not None and date_format not in SINCE_1970 and "%" not in date_format:
        raise Refusal(
            "--date-format must be such as '%d.%m.%Y' or '%m/%d/%Y %I:%M %p', or one of "
            f"{', '.join(SINCE_1970)}."
        )


def _reader(date_format: str | None) -> tuple[Callable[[Any], Any], str]:
    """How a cell is read, and how one that can be read looks."""
    if date_format is None:
        return lambda cell: cell, f"{LIKE}, or written as --date-format says"
    per = SINCE_1970.get(date_format)
    if per is not None:
        return (
            lambda cell: EPOCH + timedelta(seconds=float(cell) / per),
            f"{date_format} since 1970",
        )
    example = datetime(2024, 12, 31, 15, 30).strftime(date_format)
    return lambda cell: datetime.strptime(cell, date_format), f"written like {example}"
