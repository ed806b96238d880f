"""Bins over a declared domain: what is measured when inputs are private too.

Every record falls into one bin of a regular grid. Measured are ``B n``, ``B s`` and one energy, with
n the counts, s the sums of outputs per bin and B a public matrix whose columns, one per bin, have
norms of at most 1 and no negative inner products. How far one record can move that:
docs/proofs/records.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from privgp.privacy.sensitivity import column_norms, rounding
from privgp.types import Array, Integers

# The largest weight at which the energy is free: between two bins 3 + w^2 must not exceed 4.
ENERGY_WEIGHT = 1.0


@dataclass(frozen=True)
class Bins:
    """A regular grid and what is measured on it.

    ``low``, ``high``: (inputs,), the domain; ``shape``: bins per input; ``rows``: how many records
    there are; ``matrix``: B, (measured, bins); ``energy_weight``: of the sum of squares, at most 1.
    """

    low: Array
    high: Array
    shape: tuple[int, ...]
    rows: int
    matrix: Array = field(repr=False)
    energy_weight: float = ENERGY_WEIGHT

    @property
    def count(self) -> int:
        return int(np.prod(self.shape))

    @property
    def size(self) -> int:
        """How many numbers are measured: of counts, of sums, and the energy."""
        return 2 * len(self.matrix) + 1

    def sensitivity(self) -> float:
        """How far replacing one record, output in [-1, 1], can move the exact measurement.

        ``2 sqrt(N + rho)`` with N the largest squared column norm (at least 1) and -rho the least
        inner product of two columns, both from the stored matrix and rounded up.
        """
        largest = max(1.0, float(column_norms(self.matrix).max()) ** 2)
        error = rounding(len(self.matrix) + 2) * largest
        least = float((self.matrix.T @ self.matrix).min()) - error
        if self.energy_weight > 1.0:
            raise ValueError("the energy is free up to weight 1 only.")
        return float(2.0 * np.sqrt(largest + max(0.0, -least)) * (1.0 + 4.0 * 2.0**-53))

    def float_error(self) -> float:
        """Bound of the rounding error of the computed measurement, whatever bins the records are in.

        ``| |B| mass | <= rows * (largest column norm)`` for any masses that sum to the rows.
        """
        largest = max(1.0, float(column_norms(self.matrix).max()))
        each = rounding(self.rows + self.count + 4) * self.rows * largest
        return float(np.sqrt(3.0) * each) * (1.0 + 1e-9)

    def of(self, X: Array) -> Integers:
        """The bin of every point of the domain."""
        shape = np.array(self.shape)
        place = (X - self.low) / (self.high - self.low) * shape
        cells = np.clip(np.floor(place).astype(np.int64), 0, shape - 1)
        return np.asarray(np.ravel_multi_index(tuple(cells.T), self.shape), dtype=np.int64)


def centres(low: Array, high: Array, shape: tuple[int, ...]) -> Array:
    """The centres of a regular grid's cells, the last input fastest, (cells, inputs)."""
    axes = [(np.arange(k) + 0.5) / k for k in shape]
    grids = np.meshgrid(*axes, indexing="ij")
    return np.asarray(low + np.column_stack([g.ravel() for g in grids]) * (high - low))
