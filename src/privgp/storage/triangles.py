"""Lower triangles, row after row: they grow without being copied."""

import math
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from privgp.types import Array


@dataclass(frozen=True)
class Triangle:
    """``rows``: the first of length 1, each one longer than the one before."""

    rows: tuple[Array, ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, packed: Array) -> Self:
        size = (math.isqrt(8 * len(packed) + 1) - 1) // 2
        if entries(size) != len(packed):
            raise ValueError("these numbers are no triangle.")
        return cls(tuple(packed[entries(i) : entries(i + 1)] for i in range(size)))

    @property
    def size(self) -> int:
        return len(self.rows)

    def packed(self, first: int = 0) -> Array:
        """The rows from the first on, one after the other."""
        return np.concatenate([*self.rows[first:], np.empty(0)])

    def square(self) -> Array:
        """The whole matrix, zeros above the diagonal."""
        full = np.zeros((self.size, self.size))
        for place, row in enumerate(self.rows):
            full[place, : place + 1] = row
        return full

    def extended(self, lower: Array) -> Self:
        """With further rows of the square matrix, (new, old + new)."""
        added = (row[: self.size + i + 1].copy() for i, row in enumerate(lower))
        return type(self)((*self.rows, *added))


NO_ROWS = Triangle()


def entries(rows: int) -> int:
    return rows * (rows + 1) // 2
