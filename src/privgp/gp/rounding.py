"""The rounding of floating-point sums."""

from __future__ import annotations

import math

UNIT_ROUNDOFF = 2.0**-53


def rounding(operations: int) -> float:
    """gamma_n: the relative error of a sum of products of this length, in any order; infinite where
    the length has no bound."""
    lost = operations * UNIT_ROUNDOFF
    return lost / (1.0 - lost) if lost < 1.0 else math.inf
