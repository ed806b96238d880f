"""Lower triangles, row after row: they grow without being copied."""

import math
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from privgp.types import Array


@dataclass(frozen=True)
class Triangle:
    """A lower triangular matrix as its rows.

    Attributes
    ----------
    rows : the first of length 1, each one longer than the one before

    """

    rows: tuple[Array, ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, packed: Array) -> Self:
        """The triangle of numbers that stand row after row; ValueError if they do not make one."""
        size = (math.isqrt(8 * len(packed) + 1) - 1) // 2
        if entries(size) != len(packed):
            raise ValueError("these numbers are no triangle.")
        return cls(tuple(packed[entries(i) : entries(i + 1)] for i in range(size)))

    @property
    def size(self) -> int:
        """How many rows there are."""
        return len(self.rows)

    def pack_rows(self, first: int = 0) -> Array:
        """The rows from the first on, one after the other, as one vector."""
        return np.concatenate([*self.rows[first:], np.empty(0)])

    def square(self) -> Array:
        """The whole matrix, zeros above the diagonal."""
        full = np.zeros((self.size, self.size))
        for place, row in enumerate(self.rows):
            full[place, : place + 1] = row
        return full

    def grow(self, lower: Array) -> Self:
        """With further rows of the square matrix, (new, old + new), cut above the diagonal."""
        added = (row[: self.size + i + 1].copy() for i, row in enumerate(lower))
        return type(self)((*self.rows, *added))


NO_ROWS = Triangle()


def entries(rows: int) -> int:
    """How many numbers a triangle of this many rows has."""
    return rows * (rows + 1) // 2
