"""How much every count counts over: public exposures, and the rate that rates are told as multiples of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from privgp.types import Array, Pair, UserData

LARGEST = 1e50


@dataclass(frozen=True)
class Exposures:
    """``unit``: a rate that fits the bounds; ``expected``: (rows,), the counts that it would give."""

    unit: float
    expected: Array

    @classmethod
    def of(cls, exposure: Array, bounds: Pair, unit: float | None = None) -> Self:
        """At the unit rate, unless one is given, the largest exposure gives the middle of the bounds."""
        if unit is None:
            unit = (0.5 * bounds[0] + 0.5 * bounds[1]) / float(exposure.max())
        return cls(unit, exposure * unit)


def check_exposure(exposure: UserData, rows: int) -> Array:
    """One positive, finite number for every row; 1 where none are given. (rows,)"""
    if exposure is None:
        return np.ones(rows)
    try:
        values = np.asarray(exposure, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError("exposure must be numbers.") from None
    if values.shape != (rows,):
        raise ValueError(f"exposure must be one number for each of the {rows} rows of X.")
    if not np.all((values >= 1.0 / LARGEST) & (values <= LARGEST)):
        raise ValueError("exposure must be positive and finite in every row.")
    return values
