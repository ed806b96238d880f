"""What will be measured: a public matrix on public inputs, and how far one person can move it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privgp.gp.rounding import rounding
from privgp.privacy.sensitivity import (
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
GAUSSIAN, LAPLACE = "gaussian", "laplace"


@dataclass(frozen=True)
class Strategy:
    """The measurement ``(B s, w sum e_i u_i^2)`` with ``s`` the weighted sums of outputs per input.

    ``matrix``: B, (measured, inputs); ``index``: (rows,), the distinct input of every row;
    ``row_weights``: (rows,), the factor of every output in its sum; ``people``: (rows,), whose
    outputs are protected together, or None when every row is a person; ``energy_weight``: w, 0
    when energies are not measured; ``energy_shares``: (rows,), the factors e_i; ``law``: of the
    noise that will be added, which decides the norm that changes are measured in.
    """

    matrix: Array
    index: Integers
    row_weights: Array
    people: Integers | None
    energy_weight: float
    energy_shares: Array
    law: str = GAUSSIAN

    @property
    def size(self) -> int:
        """How many numbers are measured."""
        return self.measured + int(self.energy_weight > 0)

    def per_input(self, values: Array) -> Array:
        """Sums of a value per row at every distinct input."""
        return np.bincount(self.index, values, minlength=self.matrix.shape[1]).astype(float)

    def masses(self) -> tuple[Array, Array]:
        """Sums of the row weights, and of their squares, at every distinct input."""
        g = self.row_weights
        return self.per_input(g), self.per_input(g * g)

    @property
    def rows(self) -> int:
        return len(self.index)

    @property
    def measured(self) -> int:
        """How many sums are measured; the energy is not among them."""
        return int(self.matrix.shape[0])

    def sensitivity(self) -> float:
        """How far one person, whose outputs lie in [-1, 1], can move the exact measurement.

        In the Euclidean norm for Gaussian noise, in the sum of absolute values for Laplace noise.
        """
        if self.law == LAPLACE:
            return self._total_sensitivity()
        if self.people is None:
            norms = column_norms(self.matrix)[self.index] * self.row_weights
            return single_row_sensitivity(float(norms.max(initial=0.0)), self.energy_weight)
        counts = np.bincount(self.people)
        norms = person_norms(self.matrix, self.index, self.people) * self.person_weights()
        shares = np.bincount(self.people, self.energy_shares) * (1.0 + rounding(len(self.index)))
        alone = counts == 1
        return max(
            single_row_sensitivity(float(norms[alone].max(initial=0.0)), self.energy_weight)
            if alone.any()
            else 0.0,
            many_row_sensitivity(
                float(norms[~alone].max(initial=0.0)),
                self.energy_weight,
                float(shares[~alone].max(initial=0.0)),
            )
            if (~alone).any()
            else 0.0,
        )

    def _total_sensitivity(self) -> float:
        sums = absolute_sums(self.matrix)[self.index] * self.row_weights
        moved = total_sensitivity(sums, self.energy_weight * self.energy_shares)
        if self.people is None:
            return float(moved.max(initial=0.0))
        together = np.bincount(self.people, moved)
        return float(together.max(initial=0.0)) * (1.0 + rounding(len(self.index)))

    def person_weights(self) -> Array:
        """The row weight of every person (the same for all of their rows)."""
        if self.people is None:
            return self.row_weights
        weights = np.zeros(int(self.people.max()) + 1)
        weights[self.people] = self.row_weights
        return weights

    def float_error(self) -> float:
        """Bound of the rounding error of the computed measurement: the norm of its per-row bounds.

        The same norm as the sensitivity's.

        Sums of at most ``rows`` outputs, then of ``inputs`` products, in any order.
        """
        rows, inputs = len(self.index), self.matrix.shape[1]
        mass = self.per_input(self.row_weights)
        per_row = rounding(rows + inputs + 4) * (np.abs(self.matrix) @ mass)
        energy = rounding(rows + 4) * self.energy_weight * float(self.energy_shares.sum())
        if self.law == LAPLACE:
            return float(per_row.sum() + energy) * (1.0 + 1e-9)
        return float(np.hypot(np.linalg.norm(per_row), energy)) * (1.0 + 1e-9)


def strategy_for_rows(
    B: Array, index: Integers, people: Integers | None, *, energy: bool, equal_weights: bool
) -> Strategy:
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
        return Strategy(B, index, ones, None, weight, ones)
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
    return Strategy(B, index, scale[people], people, weight, shares)


def strategy_of_groups(
    B: Array, index: Integers, people: Integers | None, *, energy: bool
) -> Strategy:
    """Sums over groups of inputs for Laplace noise: every person moves them by at most 2 in all.

    A person's k rows count 1/k each. The energy row costs nothing up to a weight of 1/2.
    """
    shares = np.ones(len(index)) if people is None else 1.0 / np.bincount(people)[people]
    weight = MAX_TOTAL_ENERGY_WEIGHT if energy else 0.0
    return Strategy(B, index, shares, people, weight, shares, LAPLACE)
