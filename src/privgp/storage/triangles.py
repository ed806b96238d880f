"""Lower triangles, row after row: they grow without being copied."""

from __future__ import annotations

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
    def below(cls, matrix: Array) -> Self:
        """The lower triangle of a square matrix."""
        return cls(tuple(row[: i + 1] for i, row in enumerate(matrix)))

    @classmethod
    def of(cls, packed: Array) -> Self:
        """From all rows one after the other."""
        size = (math.isqrt(8 * len(packed) + 1) - 1) // 2
        if entries(size) != len(packed):
            raise ValueError("these numbers are no triangle.")
        return cls().extended(packed, size)

    @property
    def size(self) -> int:
        return len(self.rows)

    def packed(self, first: int = 0) -> Array:
        """The rows from the first on, one after the other."""
        return np.concatenate([*self.rows[first:], np.empty(0)])

    def extended(self, packed: Array, count: int) -> Self:
        """With ``count`` more rows, given one after the other."""
        ends = np.cumsum(np.arange(self.size + 1, self.size + count + 1))
        return type(self)((*self.rows, *np.split(packed, ends[:-1]))) if count else self

    def matrix(self) -> Array:
        """The square matrix with zeros above."""
        full = np.zeros((self.size, self.size))
        for place, row in enumerate(self.rows):
            full[place, : place + 1] = row
        return full


NO_ROWS = Triangle()


def entries(rows: int) -> int:
    """The number of entries of a triangle."""
    return rows * (rows + 1) // 2
