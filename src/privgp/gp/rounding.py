"""The rounding of floating-point sums."""

from __future__ import annotations

UNIT_ROUNDOFF = 2.0**-53


def rounding(operations: int) -> float:
    """gamma_n: the relative error of a sum of products of this length, in any order."""
    return operations * UNIT_ROUNDOFF / (1.0 - operations * UNIT_ROUNDOFF)
