"""Instants as days since 1970-01-01 00:00 UTC, the same number whatever they are written in.

Without a time zone an instant counts as UTC. Whole days and nanoseconds are kept apart until the end,
so that every resolution of one instant rounds to the same number.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import numpy as np

from privgp.types import Array, Cells

SECOND = 10**9  # in nanoseconds
DAY = 86_400 * SECOND
# How many of the units of numpy's datetime64 are a second; the coarser ones are turned into seconds.
PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9, "ps": 10**12, "fs": 10**15}
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TEXT = re.compile(r"(.*?:\d\d:\d\d|.*T\d{6})[.,](\d+)(.*)")


def days_of(cells: Cells) -> Array:
    """Days since 1970 of datetime64 values or of instants of any other kind, one per cell.

    Parameters
    ----------
    cells
        An array; dates, datetimes, timestamps or ISO 8601 texts, without missing ones.

    Raises
    ------
    ValueError
        A cell is no instant.

    """
    if cells.dtype.kind == "M":
        return _days(*_parts(cells))
    parts = [_instant(cell) for cell in cells]
    seconds = np.array([part[0] for part in parts], dtype=np.int64)
    return _days(seconds, np.array([part[1] for part in parts], dtype=np.int64))


def nanoseconds_of(cell: object) -> int:
    """Nanoseconds since 1970 of one instant of any kind; ValueError before 1678 and after 2262."""
    seconds, rest = _instant(cell)
    ticks = seconds * SECOND + rest
    if abs(ticks) >= 2**63:
        raise ValueError("beyond what nanoseconds can tell")
    return ticks


def instants(days: Array) -> Cells:
    """Days since 1970 as datetime64 in microseconds."""
    whole = np.floor(days)
    rest = np.rint((days - whole) * 86_400e6).astype("timedelta64[us]")
    return np.asarray(whole.astype("datetime64[D]").astype("datetime64[us]") + rest)


def instant_text(cell: object) -> str:
    """The same text for one instant, whatever it is written in; ValueError if it is none."""
    return f"day {float(days_of(np.array([cell], dtype=object))[0])!r}"


def length_text(cell: timedelta | np.timedelta64) -> str:
    """The same text for one duration, whatever its type and unit."""
    return f"{np.timedelta64(cell).astype('timedelta64[ns]').astype(np.int64)} nanoseconds"


def _days(seconds: Cells, nanoseconds: Cells) -> Array:
    whole, rest = np.divmod(seconds, 86_400)
    return np.asarray(whole + (rest * SECOND + nanoseconds) / DAY, dtype=np.float64)


def _parts(cells: Cells) -> tuple[Cells, Cells]:
    """Whole seconds since 1970, and nanoseconds beyond them."""
    unit, count = np.datetime_data(cells.dtype)
    per = PER_SECOND.get(unit)
    if per is None:
        cells, per, count = cells.astype("datetime64[s]"), 1, 1
    ticks = cells.astype(np.int64)
    if count != 1:
        ticks = ticks * count
    seconds, rest = np.divmod(ticks, per)
    return seconds, rest * (SECOND // per) if per <= SECOND else rest // (per // SECOND)


def _instant(cell: object) -> tuple[int, int]:
    """The same of one date, datetime, timestamp or ISO 8601 text; ValueError for anything else."""
    if hasattr(cell, "to_datetime64"):  # a timestamp of pandas, which is a datetime too
        cell = cell.to_datetime64()
    if isinstance(cell, np.datetime64):
        seconds, rest = _parts(np.array([cell]))
        return int(seconds[0]), int(rest[0])
    nanoseconds = 0
    if isinstance(cell, str):
        text = cell.strip()
        found = TEXT.fullmatch(text)
        if found:
            text = found[1] + found[3]
            nanoseconds = int(Decimal(f"0.{found[2]}") * SECOND)
        cell = datetime.fromisoformat(text)
    if isinstance(cell, date) and not isinstance(cell, datetime):
        cell = datetime(cell.year, cell.month, cell.day)
    if not isinstance(cell, datetime):
        raise ValueError("not a date")
    if cell.tzinfo is None:
        cell = cell.replace(tzinfo=UTC)
    past = cell - EPOCH
    return past.days * 86_400 + past.seconds, past.microseconds * 1000 + nanoseconds
