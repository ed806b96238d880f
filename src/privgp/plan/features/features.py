"""Features of private inputs: what is measured where bins would be nearly all empty.

A record with features phi, of norm 1, and output u in [-1, 1] adds ``(a phi phi^T, phi u, w u^2)``: the
symmetric matrix as its lower triangle with sqrt(2) off the diagonal, so that its norm is kept. A record
with a label of K >= 3 classes adds ``(a phi phi^T, phi v_1, ..., phi v_K)``, v its indicators less 1/K
divided by their norm. How far one record can move that: docs/proofs/features.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np

from privgp.gp.features import FeatureMap, pack_symmetric, spread_points, unpack_symmetric
from privgp.gp.measurement import Measurement
from privgp.gp.rounding import rounding
from privgp.plan.bins.bins import Functions, RecordSums, about_even
from privgp.plan.strategy import MOST_RECORDS, NOT_TOGETHER, PEOPLE
from privgp.privacy.noise import GAUSSIAN, NOT_PURE, Noise
from privgp.privacy.sensitivity import LARGEST_FACTOR
from privgp.types import Array, added_field

ENERGY_WEIGHT = 1.0  # the largest at which the energy is free
MOST_FEATURES = 400
FURTHEST_POINTS = 512


@dataclass(frozen=True)
class Features(RecordSums, FeatureMap):
    """Sums of features of ``rows`` records, with Gaussian noise.

    Measured are their Gram matrix, the sums of their features times outputs, and an energy.

    Attributes
    ----------
    rows : how many records there are; public
    gram_weight : a, of the Gram matrix; free up to ``sqrt(1/2)``
    energy_weight : at most 1, and 0 when it is not measured
    law : distribution of the noise
    classes : K of labels, each with sums of its own and no energy; else 1

    """

    rows: int
    gram_weight: float
    energy_weight: float = ENERGY_WEIGHT
    law: Annotated[str, NOT_PURE] = GAUSSIAN
    classes: Functions = added_field(1, silent=True)

    @property
    def size(self) -> int:
        """How many numbers are measured."""
        k = len(self.matrix)
        return k * (k + 1) // 2 + k * self.classes + int(self.energy_weight > 0)

    def of_people(self) -> Features:
        """The same of as many people, each with the average of what their records add."""
        return PeopleFeatures(**vars(self))

    def check(self) -> None:
        """Refuse what the bounds of the sensitivity do not cover, as only a file can hold it.

        Raises
        ------
        ValueError
            Shapes, bounds or weights do not belong together.

        """
        inputs = (self.inducing.shape[-1],)
        fits = (
            self.low.shape == self.high.shape == inputs != (0,)
            and self.inducing.ndim == self.matrix.ndim == 2
            and np.all((self.low < self.high) & np.isfinite(self.high - self.low))
            and self.rows >= 1
            # so that no feature overflows or is 0/0, whatever the record
            and 1.0 / LARGEST_FACTOR <= self.lengthscale <= LARGEST_FACTOR
            and 1 <= len(self.matrix) <= MOST_FEATURES
            and self.matrix.shape[1] == len(self.inducing) >= 1
            and max(np.abs(self.matrix).max(), np.abs(self.inducing).max()) <= LARGEST_FACTOR
            and 0.0 < self.gram_weight <= LARGEST_FACTOR
            and 0.0 <= self.energy_weight <= ENERGY_WEIGHT
        )
        if not fits:
            raise ValueError(NOT_TOGETHER)
        self.check_energy(ENERGY_WEIGHT)

    def sensitivity(self) -> float:
        """How far replacing one record, output in [-1, 1], can move the exact measurement.

        In the Euclidean norm: 2 up to ``a^2 = 1/2``, then ``sqrt(2 a^2 + 2 + 1 / (2 a^2))``; and as
        computed norms exceed 1 by rounding, a little more.
        """
        self.check_energy(ENERGY_WEIGHT)
        weight = self.gram_weight**2
        square = 4.0 if weight <= 0.5 else 2.0 * weight + 2.0 + 0.5 / weight
        return float(np.sqrt(square)) * (1.0 + rounding(3 * len(self.matrix) + 24))

    def float_error(self) -> float:
        """Bound of the rounding error of the computed sums, whatever the records are.

        Absolute values of all addends sum to at most ``rows`` in the norm of each part.
        """
        parts = float(np.sqrt(self.gram_weight**2 + 1.0 + self.energy_weight**2))
        return rounding(self.rows * self.most_records + 12) * self.rows * parts * (1.0 + 1e-9)

    def worst_neighbours(self) -> tuple[Array, Array]:
        """The contributions of two records that are as far apart as any on a fine grid.

        Two outputs at the ends of their range, or labels of one class or of two, at places whose
        features have the product that moves most.
        """
        phi = self.at(spread_points(self.low, self.high, FURTHEST_POINTS, 2))
        products = np.clip(phi @ phi.T, -1.0, 1.0)
        # outcomes, and by how much the product of two features moves them further apart
        pairs = [([1.0], [-1.0], products), ([1.0], [1.0], -products)]
        if self.classes > 1:
            one, other, *_ = ((np.eye(self.classes) - 1.0 / self.classes) / self.spread).tolist()
            pairs = [(one, other, products / (self.classes - 1.0)), (one, one, -products)]
        each = [2.0 * self.gram_weight**2 * (1.0 - products**2) + 2.0 * more for *_, more in pairs]
        which, i, j = np.unravel_index(int(np.argmax(each)), np.shape(each))
        first, second, _ = pairs[which]
        return self._contribution(phi[i], first), self._contribution(phi[j], second)

    def _contribution(self, phi: Array, outcome: list[float]) -> Array:
        """What one record adds."""
        gram = self.gram_weight * pack_symmetric(np.outer(phi, phi))
        return self.with_energy(np.append(gram, np.kron(outcome, phi)), outcome[0] ** 2)

    @property
    def spread(self) -> float:
        """The norm of a label's indicators about the even share, which they are divided by."""
        return float(np.sqrt(1.0 - 1.0 / self.classes))

    def sum_std(self, noise_std: float) -> float:
        """Std of the noise on a sum of outputs, for noise of this std on every number."""
        std = super().sum_std(noise_std)
        return std if self.classes == 1 else self.spread * std

    def sums_and_counts(self, numbers: Array) -> tuple[Array, None]:
        """The sums of outputs, with several classes those of each about the even share; no counts."""
        if self.classes == 1:
            return numbers, None
        return self.spread * about_even(numbers.reshape(self.classes, -1)), None

    def read(self, numbers: Array, noise: Noise, half_width: float) -> Measurement:
        """The released numbers in units of y, with the noisy Gram matrix of the features."""
        k = len(self.matrix)
        triangle, rest = np.split(numbers, [k * (k + 1) // 2])
        gram = unpack_symmetric(triangle / self.gram_weight, k)
        return replace(super().read(rest, noise, half_width), gram=gram)


@dataclass(frozen=True)
class PeopleFeatures(Features):
    """``Features`` of people: all records of one are protected together. ``rows``: of people."""

    whole_people: ClassVar[bool] = True
    counted: ClassVar[str] = PEOPLE
    most_records: ClassVar[int] = MOST_RECORDS
