"""What will be measured: a public matrix on public inputs, and how far one person can move it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Annotated, Protocol

import numpy as np

from privgp.gp.measurement import Measurement
from privgp.gp.rounding import rounding
from privgp.privacy.noise import GAUSSIAN, LAPLACE, NOT_PURE, PURE, AnyNoise, Noise, noise_for
from privgp.privacy.sensitivity import (
    ENUMERATED_ROWS,
    MAX_ENERGY_WEIGHT,
    MAX_TOTAL_ENERGY_WEIGHT,
    absolute_sums,
    column_norms,
    many_row_sensitivity,
    person_norms,
    single_row_sensitivity,
    total_sensitivity,
)
from privgp.types import Array, Integers

# With several rows per person the energy row costs budget; this weight costs 3% of the noise.
SHARED_ENERGY_WEIGHT = 0.5


class Strategy(Protocol):
    """What will be measured. The vault knows how to compute it from private values.

    ``law``: of the noise that will be added, which decides the norm of the two bounds
    ``people``: (rows,), whose outputs are protected together, or None when every row is a person
    ``energy_weight``: of the sum of squared outputs, 0 when it is not measured
    """

    @property
    def law(self) -> str: ...
    @property
    def people(self) -> Integers | None: ...
    @property
    def energy_weight(self) -> float: ...
    @property
    def matrix(self) -> Array: ...
    @property
    def rows(self) -> int: ...
    @property
    def distinct_inputs(self) -> int | None:
        """How many distinct public inputs there are; None where they are private or not counted."""

    @property
    def size(self) -> int:
        """How many numbers are measured."""

    def sensitivity(self) -> float:
        """How far one person, whose outputs lie in [-1, 1], can move the exact measurement."""

    def float_error(self) -> float:
        """Bound of the rounding error of the computed measurement."""

    def furthest(self) -> tuple[Array, Array]:
        """Two exact measurements of neighbouring datasets, as far apart as any: for audits."""

    def sum_std(self, noise_std: float) -> float:
        """Std of the noise on a sum of outputs, for noise of this std on every measured number."""

    def read(self, numbers: Array, noise: Noise, half_width: float) -> Measurement:
        """What released numbers say, in units of y."""


@dataclass(frozen=True)
class OutputSums:
    """The measurement ``(B s, w sum e_i u_i^2)`` with ``s`` the weighted sums of outputs per input.

    ``matrix``: B, (measured, inputs)
    ``index``: (rows,), the distinct input of every row
    ``row_weights``: (rows,), the factor of every output in its sum
    ``people``: (rows,), whose outputs are protected together, or None when every row is a person
    ``energy_weight``: w, 0 when energies are not measured
    ``energy_shares``: (rows,), the factors e_i
    """

    matrix: Array
    index: Integers
    row_weights: Array
    people: Integers | None
    energy_weight: float
    energy_shares: Array
    law: Annotated[str, NOT_PURE] = GAUSSIAN

    @property
    def size(self) -> int:
        return self.measured + int(self.energy_weight > 0)

    def per_input(self, values: Array) -> Array:
        """Sums of a public value per row at every distinct input."""
        return np.bincount(self.index, values, minlength=self.matrix.shape[1]).astype(float)

    def masses(self) -> tuple[Array, Array]:
        """Sums of the row weights, and of their squares, at every distinct input."""
        g = self.row_weights
        return self.per_input(g), self.per_input(g * g)

    @property
    def rows(self) -> int:
        return len(self.index)

    @property
    def distinct_inputs(self) -> int:
        return int(self.matrix.shape[1])

    @property
    def measured(self) -> int:
        """How many sums are measured; the energy is not among them."""
        return int(self.matrix.shape[0])

    def check(self) -> None:
        """Refuse what the bounds of the sensitivity do not cover, as only a file can hold it."""
        rows, people = self.index.size, self.people
        per_row = (self.index, self.row_weights, self.energy_shares)
        if self.matrix.ndim != 2 or rows < 1 or any(each.shape != (rows,) for each in per_row):
            raise ValueError("the parts of a measurement are not of one length.")
        if self.index.min() < 0 or self.index.max() >= self.distinct_inputs:
            raise ValueError("a row has no input.")
        if not (self.row_weights.min() >= 0.0 and self.energy_weight >= 0.0):
            raise ValueError("a weight is negative.")
        if not (self.energy_shares.min() >= 0.0 and self.energy_shares.max() <= 1.0):
            raise ValueError("a share is none.")
        if people is None:
            return
        if people.shape != (rows,) or people.min() < 0 or people.max() >= rows:
            raise ValueError("a row has no person.")
        if np.any(self.person_weights()[people] != self.row_weights):
            raise ValueError("the rows of a person have several weights.")

    def sensitivity(self) -> float:
        """How far one person can move the exact measurement, in the Euclidean norm."""
        if self.people is None:
            norms = column_norms(self.matrix)[self.index] * self.row_weights
            return single_row_sensitivity(float(norms.max(initial=0.0)), self.energy_weight)
        counts = np.bincount(self.people)
        norms = person_norms(self.matrix, self.index, self.people) * self.person_weights()
        shares = np.bincount(self.people, self.energy_shares) * (1.0 + rounding(len(self.index)))
        alone = counts == 1
        one = several = 0.0
        if alone.any():
            one = single_row_sensitivity(float(norms[alone].max()), self.energy_weight)
        if not alone.all():
            several = many_row_sensitivity(
                float(norms[~alone].max()), self.energy_weight, float(shares[~alone].max())
            )
        return max(one, several)

    def person_weights(self) -> Array:
        """The row weight of every person (the same for all of their rows)."""
        if self.people is None:
            return self.row_weights
        weights = np.zeros(int(self.people.max()) + 1)
        weights[self.people] = self.row_weights
        return weights

    def float_error(self) -> float:
        """Bound of the rounding error of the computed measurement, in the Euclidean norm."""
        per_row, energy = self._float_errors()
        return float(np.hypot(np.linalg.norm(per_row), energy)) * (1.0 + 1e-9)

    def _float_errors(self) -> tuple[Array, float]:
        """For every sum, and for the energy: sums of ``rows`` outputs, then of ``inputs`` products."""
        rows, inputs = len(self.index), self.matrix.shape[1]
        mass = self.per_input(self.row_weights)
        per_row: Array = rounding(rows + inputs + 4) * (np.abs(self.matrix) @ mass)
        energy = rounding(rows + 4) * self.energy_weight * float(self.energy_shares.sum())
        return per_row, energy

    def furthest(self) -> tuple[Array, Array]:
        """Equal outputs but for the person who can move the measurement most."""
        people = np.arange(self.rows) if self.people is None else self.people
        norms = person_norms(self.matrix, self.index, people) * self.person_weights()
        rows = np.flatnonzero(people == int(np.argmax(norms)))
        signs = np.zeros(self.rows)
        signs[rows] = self._worst_signs(rows)
        moved = self.matrix @ self.per_input(self.row_weights * signs)
        energy = self.energy_weight * float(self.energy_shares[rows].sum())
        end = [energy] if self.energy_weight > 0 else []
        return np.append(-moved, end), np.append(moved, end)

    def _worst_signs(self, rows: Integers) -> Array:
        """The signs of one person's outputs that move the measurement most (all +1 for many rows)."""
        if len(rows) > ENUMERATED_ROWS:
            return np.ones(len(rows))
        signs = np.array(list(product((1.0, -1.0), repeat=len(rows))))
        moved = self.matrix[:, self.index[rows]] @ signs.T
        return np.asarray(signs[int(np.argmax(np.square(moved).sum(axis=0)))])

    def sum_std(self, noise_std: float) -> float:
        return noise_std

    def read(self, numbers: Array, noise: Noise, half_width: float) -> Measurement:
        return read_sums(numbers, self.energy_weight, noise, half_width)


@dataclass(frozen=True)
class GroupSums(OutputSums):
    """Sums over groups of inputs, every input in one of them; protected by pure noise."""

    law: Annotated[str, PURE] = LAPLACE

    def sensitivity(self) -> float:
        """How far one person can move the exact measurement, in the sum of absolute values."""
        sums = absolute_sums(self.matrix)[self.index] * self.row_weights
        moved = total_sensitivity(sums, self.energy_weight * self.energy_shares)
        if self.people is None:
            return float(moved.max(initial=0.0))
        together = np.bincount(self.people, moved)
        return float(together.max(initial=0.0)) * (1.0 + rounding(len(self.index)))

    def float_error(self) -> float:
        """Bound of the rounding error of the computed measurement, in the sum of absolute values."""
        per_row, energy = self._float_errors()
        return float(per_row.sum() + energy) * (1.0 + 1e-9)


def noise_of(strategy: Strategy, epsilon: float, delta: float) -> AnyNoise:
    """The least noise that hides one person in this measurement."""
    size = strategy.size, strategy.sensitivity(), strategy.float_error()
    return noise_for(strategy.law, epsilon, delta, *size)


def read_sums(numbers: Array, energy_weight: float, noise: Noise, half_width: float) -> Measurement:
    """Released sums, the energy last where it has a weight, in units of y."""
    if energy_weight == 0:
        return Measurement(numbers * half_width, noise.std * half_width, None, 0.0)
    unit = half_width**2 / energy_weight
    energy = float(numbers[-1] * unit), noise.std * unit
    return Measurement(numbers[:-1] * half_width, noise.std * half_width, *energy)


def strategy_for_rows(
    B: Array, index: Integers, people: Integers | None, *, energy: bool, equal_weights: bool
) -> OutputSums:
    """Scale a design with unit columns so that every person moves the measurement by at most 2.

    Each person's rows get a common weight of their own, unless ``equal_weights`` asks for one
    weight for all, as an unbiased release of ``C y`` needs.
    """
    rows = len(index)
    largest = float(column_norms(B).max(initial=0.0))
    if largest > 1.0:
        B = B / largest
    ones = np.ones(rows)
    if people is None:
        weight = MAX_ENERGY_WEIGHT if energy else 0.0
        return OutputSums(B, index, ones, None, weight, ones)
    counts = np.bincount(people)
    several = bool((counts > 1).any())
    weight = 0.0 if not energy else SHARED_ENERGY_WEIGHT if several else MAX_ENERGY_WEIGHT
    norms = person_norms(B, index, people)
    allowed = np.where(counts == 1, 1.0, np.sqrt(1.0 - weight**2 / 4.0) if several else 1.0)
    scale = np.minimum(1.0, allowed / np.maximum(norms, 1e-300))
    if equal_weights:
        B = B * float(scale.min())
        scale = np.ones(len(counts))
    shares = 1.0 / counts[people]
    return OutputSums(B, index, scale[people], people, weight, shares)


def strategy_of_groups(
    B: Array, index: Integers, people: Integers | None, *, energy: bool, law: str = LAPLACE
) -> GroupSums:
    """Sums over groups of inputs for pure noise: every person moves them by at most 2 in all.

    A person's k rows count 1/k each. The energy row costs nothing up to a weight of 1/2.
    """
    shares = np.ones(len(index)) if people is None else 1.0 / np.bincount(people)[people]
    weight = MAX_TOTAL_ENERGY_WEIGHT if energy else 0.0
    return GroupSums(B, index, shares, people, weight, shares, law)
