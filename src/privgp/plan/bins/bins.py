"""Bins over a declared domain: what is measured when inputs are private too.

Every record falls into one bin of a regular grid. For Gaussian noise ``B n``, ``B s`` and one energy
are measured, with n the counts, s the sums of outputs per bin and B a public matrix whose columns,
one per bin, have norms of at most 1 and no negative inner products. For Laplace noise ``(n + s) / 2``
and ``(n - s) / 2``, to which a record adds two numbers that are not negative and sum to 1. How far
one record can move that: docs/proofs/records.md and docs/proofs/records_laplace.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import product
from typing import Annotated, ClassVar

import numpy as np

from privgp.gp.kernels.quadrature import gauss
from privgp.gp.measurement import Measurement
from privgp.gp.rounding import rounding
from privgp.privacy.noise import GAUSSIAN, LAPLACE, NOT_PURE, PURE, Noise
from privgp.privacy.sensitivity import absolute_sums, column_norms
from privgp.types import Array

# The largest weight at which the energy is free: between two bins 3 + w^2 must not exceed 4.
ENERGY_WEIGHT = 1.0
# With Laplace noise an energy is not free: weight w makes all noise larger by w / 2.
PURE_ENERGY_WEIGHTS = (0.05, 0.25)
MOST_NODES = 400  # in all, where a bin has more than one


@dataclass(frozen=True)
class Bins:
    """A regular grid and what is measured on it with Gaussian noise: ``B n``, ``B s`` and an energy.

    ``low``, ``high``: (inputs,), the domain
    ``shape``: bins per input
    ``rows``: how many records there are
    ``matrix``: B, (measured, bins)
    ``energy_weight``: of the sum of squares, at most 1, and 0 when it is not measured
    """

    people: ClassVar[None] = None
    distinct_inputs: ClassVar[None] = None
    low: Array
    high: Array
    shape: tuple[int, ...]
    rows: int
    matrix: Array = field(repr=False)
    energy_weight: float = ENERGY_WEIGHT
    law: Annotated[str, NOT_PURE] = GAUSSIAN

    @property
    def count(self) -> int:
        return int(np.prod(self.shape))

    @property
    def size(self) -> int:
        """How many numbers are measured: two for every row of B, and the energy."""
        return 2 * len(self.matrix) + int(self.energy_weight > 0)

    def check(self) -> None:
        """Refuse what the bounds of the sensitivity do not cover, as only a file can hold it."""
        inputs = (len(self.shape),)
        if not inputs[0] or self.low.shape != inputs or self.high.shape != inputs or self.rows < 1:
            raise ValueError("the parts of a grid are not of one length.")
        if not np.all((self.low < self.high) & np.isfinite(self.high - self.low)):
            raise ValueError("a bound is not below the other.")
        if min(self.shape) < 1 or self.matrix.shape[1:] != (math.prod(self.shape),):
            raise ValueError("the matrix is not one of these bins.")
        if not 0.0 <= self.energy_weight <= ENERGY_WEIGHT:
            raise ValueError("the weight of the energy is out of range.")

    def sensitivity(self) -> float:
        """How far replacing one record, output in [-1, 1], can move the exact measurement.

        In the Euclidean norm: ``2 sqrt(N + rho)`` with N the largest squared column norm (at least 1)
        and -rho the least inner product of two columns, from the stored matrix and rounded up.
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

    def furthest(self) -> tuple[Array, Array]:
        """What one record adds, twice: of all pairs of records the two furthest apart.

        Outputs at the ends and the middle of their bounds suffice: the move is convex in their
        squares.
        """
        B, w = self.matrix, self.energy_weight
        gram, best = B.T @ B, (-1.0, 0, 0, 0.0, 0.0)
        squares = np.diag(gram)
        for u, v in product((-1.0, 0.0, 1.0), repeat=2):
            moved = (1.0 + u * u) * squares[:, None] + (1.0 + v * v) * squares[None, :]
            moved = moved - 2.0 * (1.0 + u * v) * gram + w**2 * (u * u - v * v) ** 2
            i, j = divmod(int(np.argmax(moved)), self.count)
            best = max(best, (float(moved[i, j]), i, j, u, v))
        _, i, j, u, v = best
        first, second = (
            np.concatenate([B[:, k], B[:, k] * x, [w * x * x] if w > 0 else []])
            for k, x in ((i, u), (j, v))
        )
        return first, second

    def sum_std(self, noise_std: float) -> float:
        """Std of the noise on every count, and on every sum of scaled outputs."""
        return noise_std

    def read(self, numbers: Array, noise: Noise, half_width: float) -> Measurement:
        """Released numbers as sums and counts."""
        count = len(self.matrix)
        sums, counts = self._sums_and_counts(numbers[:count], numbers[count : 2 * count])
        energy: tuple[float | None, float] = None, 0.0
        if self.energy_weight > 0:
            unit = half_width**2 / self.energy_weight
            energy = float(numbers[-1]) * unit, noise.std * unit
        return Measurement(sums * half_width, self.sum_std(noise.std) * half_width, *energy, counts)

    def _sums_and_counts(self, first: Array, second: Array) -> tuple[Array, Array]:
        return second, first

    def nodes(self) -> tuple[Array, Array]:
        """Points that stand for the records of each bin, bin after bin, and the share of each.

        Gauss-Legendre points: their average of f is the average over the bin, so that a kernel at
        them is the integral kernel.
        """
        inputs = len(self.shape)
        fit = [q for q in (3, 2) if self.count * q**inputs <= MOST_NODES]
        points, weights = gauss(fit[0] if fit else 1)
        offsets = np.stack(np.meshgrid(*[points - 0.5] * inputs, indexing="ij"), axis=-1)
        width = (self.high - self.low) / np.array(self.shape)
        inside = offsets.reshape(-1, inputs) * width
        middle = centres(self.low, self.high, self.shape)
        shares = weights
        for _ in range(inputs - 1):
            shares = np.asarray(np.kron(shares, weights), dtype=np.float64)
        return (middle[:, None, :] + inside).reshape(-1, inputs), shares

    def averaged(self, at_nodes: Array) -> Array:
        """Averages over bins of a vector, or along both axes of a matrix, given at the nodes."""
        shares = self.nodes()[1]
        parts = len(shares)
        if at_nodes.ndim == 1:
            return np.asarray(at_nodes.reshape(-1, parts) @ shares)
        half = at_nodes.reshape(len(at_nodes), -1, parts) @ shares
        return np.asarray(np.einsum("iaj,a->ij", half.reshape(self.count, parts, -1), shares))


@dataclass(frozen=True)
class HalvedBins(Bins):
    """The same with pure noise: ``(n + s) / 2`` and ``(n - s) / 2``, and an energy.

    A record adds two numbers that are not negative and sum to 1.
    """

    law: Annotated[str, PURE] = LAPLACE

    def sensitivity(self) -> float:
        """In the sum of absolute values: twice the largest column sum, plus the energy's weight."""
        sums = float(absolute_sums(self.matrix).max())
        return (2.0 * sums + self.energy_weight) * (1.0 + 4.0 * 2.0**-53)

    def float_error(self) -> float:
        """The bound in the sum of absolute values."""
        largest = float(absolute_sums(self.matrix).max()) + self.energy_weight
        return rounding(self.rows + self.count + 8) * self.rows * largest * (1.0 + 1e-9)

    def furthest(self) -> tuple[Array, Array]:
        """A record that stays in its bin: but for the small energy it moves as far as any, and few
        numbers at once, which an attack sees best."""
        B, w = self.matrix, self.energy_weight
        worst = B[:, int(np.argmax(np.abs(B).sum(axis=0)))]
        nothing, energy = np.zeros_like(worst), [w] if w > 0 else []
        return np.concatenate([nothing, worst, energy]), np.concatenate([worst, nothing, energy])

    def sum_std(self, noise_std: float) -> float:
        """Counts and sums are sum and difference of two numbers; their errors are uncorrelated."""
        return noise_std * float(np.sqrt(2.0))

    def _sums_and_counts(self, first: Array, second: Array) -> tuple[Array, Array]:
        return first - second, first + second


def pure_energy_weight(epsilon: float, rows: int) -> float:
    """The energy's weight with Laplace noise: the mean of u^2 is to be known to a twentieth.

    Its noise has a std of ``2 sqrt(2) / (epsilon w rows)``. Few records, for which that would be dear,
    know it less well; many, for which it is cheap, better.
    """
    return float(np.clip(60.0 / (epsilon * rows), *PURE_ENERGY_WEIGHTS))


def centres(low: Array, high: Array, shape: tuple[int, ...]) -> Array:
    """The centres of a regular grid's cells, the last input fastest, (cells, inputs)."""
    axes = [(np.arange(k) + 0.5) / k for k in shape]
    grids = np.meshgrid(*axes, indexing="ij")
    return np.asarray(low + np.column_stack([g.ravel() for g in grids]) * (high - low))
