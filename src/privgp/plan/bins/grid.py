"""A regular grid of bins over a box."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privgp.types import Array, Integers


@dataclass(frozen=True)
class Grid:
    """Bins between ``low`` and ``high``, (inputs,) each, ``shape``: bins per input."""

    low: Array
    high: Array
    shape: tuple[int, ...]

    @property
    def count(self) -> int:
        return int(np.prod(self.shape))

    def of(self, X: Array) -> Integers:
        """The bin of every row of X; points outside the box belong to the nearest bin."""
        shape = np.array(self.shape)
        place = (np.clip(X, self.low, self.high) - self.low) / (self.high - self.low) * shape
        cells = np.clip(np.floor(place).astype(np.int64), 0, shape - 1)
        return np.asarray(np.ravel_multi_index(tuple(cells.T), self.shape), dtype=np.int64)

    def corners(self, bins: Integers) -> tuple[Array, Array]:
        """The lower and the upper corners of these bins, (bins, inputs) each."""
        cells = np.column_stack(np.unravel_index(bins, self.shape))
        step = (self.high - self.low) / np.array(self.shape)
        low = self.low + cells * step
        return low, low + step
