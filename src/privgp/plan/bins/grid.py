"""A regular grid of bins over a box, and the sums of outputs over its bins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from privgp.gp.measurement import Measurement
from privgp.gp.rounding import rounding
from privgp.plan.strategy import read_sums
from privgp.privacy.noise import Noise
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


@dataclass(frozen=True)
class BinSums:
    """The sum of the outputs over every bin that holds a public input; either law hides it.

    ``index``: (rows,), the bin of every row
    ``size``: how many bins there are
    """

    law: str
    index: Integers
    size: int
    people: ClassVar[None] = None
    distinct_inputs: ClassVar[None] = None
    energy_weight: ClassVar[float] = 0.0

    @property
    def rows(self) -> int:
        return len(self.index)

    @property
    def matrix(self) -> Array:
        return np.eye(self.size)

    def sensitivity(self) -> float:
        """One output, in [-1, 1], is in one sum: 2 in either norm."""
        return 2.0

    def float_error(self) -> float:
        """In the sum of absolute values, so in the Euclidean norm too."""
        return rounding(self.rows + 4) * self.rows

    def furthest(self) -> tuple[Array, Array]:
        """Equal outputs but for one in the first bin."""
        moved = np.eye(self.size)[0]
        return -moved, moved

    def sum_std(self, noise_std: float) -> float:
        return noise_std

    def read(self, numbers: Array, noise: Noise, half_width: float) -> Measurement:
        return read_sums(numbers, 0.0, noise, half_width)
