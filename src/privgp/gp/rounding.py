"""The rounding of floating-point sums."""

from __future__ import annotations

import math

UNIT_ROUNDOFF = 2.0**-53


def rounding(operations: int) -> float:
    """gamma_n = n u / (1 - n u): the relative error of a sum of products of n terms, in any order.

    Returns
    -------
    float
        Infinite if n u >= 1, so that no bound is claimed for such a length.

    """
    lost = operations * UNIT_ROUNDOFF
    return lost / (1.0 - lost) if lost < 1.0 else math.inf
