"""How much every count counts over: public exposures, and the rate that rates are told as multiples of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from privgp.types import Array, Pair, UserData

LARGEST = 1e50
MOST_WEIGHT, MOST_RATIO = 1e50, 1e6  # of sample weights, and of the largest over the least


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


def check_weights(weights: object, rows: int) -> Array | None:
    """Public sample weights, (rows,); None: all rows count alike."""
    if weights is None:
        return None
    try:
        values = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError("sample_weight must be numbers.") from None
    if values.shape != (rows,):
        raise ValueError(f"sample_weight must be one number for each of the {rows} rows of X.")
    if not np.all((values > 0.0) & (values <= MOST_WEIGHT)):
        raise ValueError(
            "sample_weight must be positive and finite in every row: leave out rows of weight zero."
        )
    if values.max() > MOST_RATIO * values.min():
        raise ValueError(
            f"sample_weight must not differ by more than a factor of {MOST_RATIO:g}: the rows with the "
            "smallest weights would count nothing."
        )
    return values
