"""Lower triangles as one array, row after row."""

from __future__ import annotations

import numpy as np

from privgp.types import Array


def triangle(rows: int) -> int:
    """How many numbers that many rows have."""
    return rows * (rows + 1) // 2


def split_rows(packed: Array, first: int, count: int) -> tuple[Array, ...]:
    """``count`` rows from the first on, as they stand one after the other."""
    ends = np.cumsum(np.arange(first + 1, first + count + 1))
    return tuple(np.split(packed, ends[:-1])) if count else ()
