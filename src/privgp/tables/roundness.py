"""Whether bounds look declared or read off data: people declare round numbers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

CLOSE = 1e-6  # of the larger end: what rounding leaves of a number in other units
# Feet, inches, pounds, miles, kilometres an hour, turns, parts of an hour, kibibytes.
UNITS = (0.3048, 2.54, 0.45359237, 1.609344, 1.0 / 3.6, np.pi, 1.0 / 60.0, 1024.0)
LARGEST_LOGARITHM = 30.0


def _in_units(unit: float, number: float) -> float:
    return number / unit


def _power(base: float, number: float) -> float:
    return float(base**number) if abs(number) < LARGEST_LOGARITHM else np.nan


READINGS: tuple[Callable[[float], float], ...] = (
    lambda number: number,
    *(partial(_in_units, unit) for unit in UNITS),
    lambda number: number - 273.15,  # kelvin
    lambda number: (number - 32.0) / 1.8,  # degrees Fahrenheit
    lambda number: number * 1.8 + 32.0,
    lambda number: _power(np.e, number),  # logarithms
    lambda number: _power(10.0, number),
)


def are_round(low: float, high: float) -> bool:
    """Whether both bounds look declared, and not read off the data.

    They have at most three digits where their width has its first three: 61 and 198, not 61.4
    and 198.4; also in other units, or if the upper one is the last of this many whole numbers. It
    depends on the bounds alone.
    """
    if any(_round(read(low), read(high)) for read in READINGS):
        return True
    return float(high).is_integer() and any(
        _round(read(low), read(high + 1.0)) for read in READINGS
    )


def _round(low: float, high: float) -> bool:
    width = abs(high - low)
    if not 0.0 < width < np.inf:
        return False
    step = 10.0 ** (np.floor(np.log10(width * (1.0 + CLOSE))) - 2.0)
    slack = CLOSE * max(abs(low), abs(high), width)
    return all(
        abs(end - step * np.rint(end / step)) <= min(slack, 0.01 * step) for end in (low, high)
    )
