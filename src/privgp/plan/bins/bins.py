"""Bins over a declared domain: what is measured when inputs are private too.

Every record falls into one bin of a regular grid. For Gaussian noise ``B n``, ``B s`` and one energy
are measured, with n the counts, s the sums of outputs per bin and B a public matrix whose columns,
one per bin, have norms of at most 1 and no negative inner products. For pure noise ``(n + s) / 2``
and ``(n - s) / 2``, to which a record adds two numbers that are not negative and sum to 1. Labels of
K >= 3 classes have ``B N_k`` for every class instead, N_k its counts, with either noise. How far one
record can move that: docs/proofs/records.md and docs/proofs/records_laplace.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import product
from typing import Annotated, ClassVar

import numpy as np

from privgp.gp.arithmetic import rounding
from privgp.gp.kernels.integral import gauss
from privgp.gp.priors import Hyperparameters, Prior
from privgp.plan.labels import ROOT_TWO
from privgp.plan.strategy import MOST_RECORDS, NOT_TOGETHER, PEOPLE, Sums
from privgp.privacy.noise import GAUSSIAN, LAPLACE, NOT_PURE, PURE
from privgp.privacy.sensitivity import LARGEST_FACTOR, WHOLE, absolute_sums, column_norms
from privgp.question.outcomes import MOST_CLASSES
from privgp.types import Array, Integers, Within, added_field

Functions = Annotated[int, Within(1, MOST_CLASSES)]


MEAN_WEIGHT = 0.5  # of private weights between 0 and 1, before they are measured


class RecordSums(Sums):
    """Sums over records that are private with their inputs.

    ``classes``: of labels, each with its own sums; 1 where one function says it all. The total of
    ``weighted`` records is not known.
    """

    people: ClassVar[None] = None
    distinct_inputs: ClassVar[None] = None
    private_inputs: ClassVar[bool] = True
    whole_people: ClassVar[bool] = False
    counted: ClassVar[str] = "records"
    most_records: ClassVar[int] = 1
    classes: Functions = 1
    rows: int

    @property
    def people_count(self) -> int | None:
        return self.rows if self.whole_people else None

    @property
    def centre(self) -> float | None:
        return None if self.classes == 1 else 1.0 / self.classes

    @property
    def move(self) -> float:
        """How far one record moves sums of unit vectors, in the Euclidean norm."""
        return WHOLE if self.classes == 1 else ROOT_TWO

    @property
    def prior_total(self) -> float:
        """What all records count for together, as far as is known beforehand."""
        return self.rows * (MEAN_WEIGHT if self.weighted else 1.0)

    @property
    def weight_words(self) -> str:
        """What is taken for known of weights, in words; nothing where there are none."""
        if not self.weighted:
            return ""
        return (
            f" (by their private weights, if these are spread evenly, worth {self.prior_total:g})"
        )

    def sum_std(self, noise_std: float) -> float:
        return noise_std if self.classes == 1 else about_even_std(noise_std, self.classes)

    def check_energy(self, most: float) -> None:
        """Refuse a weight that the sensitivity does not cover."""
        if self.energy_weight > most:
            raise ValueError("the energy is free up to weight 1 only.")
        if self.classes > 1 and self.energy_weight > 0.0:
            raise ValueError("labels of several classes have no energy.")


class OfPeople:
    """People instead of records: all records of one are protected together."""

    whole_people: ClassVar[bool] = True
    counted: ClassVar[str] = PEOPLE
    most_records: ClassVar[int] = MOST_RECORDS


def about_even(blocks: Array) -> Array:
    """The sums of every class about an even share, one after the other, in units of half a label.

    ``blocks``: (classes, measured)
    """
    return np.asarray(2.0 * (blocks - blocks.mean(axis=0))).ravel()


def about_even_std(noise_std: float, classes: int) -> float:
    """Std of the noise on these, for noise of this std on every number."""
    return noise_std * (2.0 * float(np.sqrt(1.0 - 1.0 / classes)))


# The largest weight at which the energy is free: between two bins 3 + w^2 must not exceed 4.
ENERGY_WEIGHT = 1.0
MOST_NODES = 400  # in total, where a bin has more than one


@dataclass(frozen=True)
class Grid:
    """A regular grid of bins over a box, the last input fastest.

    Attributes
    ----------
    low, high : (inputs,), the corners of the box
    shape : bins per input

    """

    low: Array
    high: Array
    shape: tuple[int, ...]

    @property
    def count(self) -> int:
        """How many bins there are."""
        return int(np.prod(self.shape))

    @property
    def widths(self) -> Array:
        """The sides of a bin, (inputs,)."""
        return np.asarray((self.high - self.low) / np.array(self.shape))

    def of(self, X: Array) -> Integers:
        """The bin of every row of X, (rows,); points outside the box belong to the nearest bin."""
        shape = np.array(self.shape)
        place = (np.clip(X, self.low, self.high) - self.low) / (self.high - self.low) * shape
        cells = np.clip(np.floor(place).astype(np.int64), 0, shape - 1)
        return np.asarray(np.ravel_multi_index(tuple(cells.T), self.shape), dtype=np.int64)

    def corners(self, bins: Integers) -> tuple[Array, Array]:
        """The lower and the upper corners of these bins, (bins, inputs) each."""
        low = self.low + np.column_stack(np.unravel_index(bins, self.shape)) * self.widths
        return low, low + self.widths

    def centres(self) -> Array:
        """The centres of all bins, (bins, inputs)."""
        axes = [(np.arange(k) + 0.5) / k for k in self.shape]
        grids = np.meshgrid(*axes, indexing="ij")
        shares = np.column_stack([g.ravel() for g in grids])
        return np.asarray(self.low + shares * (self.high - self.low))


@dataclass(frozen=True)
class BinSums(Sums):
    """The sums of outputs over bins of public inputs.

    Attributes
    ----------
    law : distribution of the noise, either one
    index : (rows,), the bin of every row
    size : how many bins there are

    """

    law: str
    index: Integers
    size: int
    people: ClassVar[None] = None
    distinct_inputs: ClassVar[None] = None
    energy_weight = 0.0

    @property
    def rows(self) -> int:
        """How many outputs there are."""
        return len(self.index)

    @property
    def matrix(self) -> Array:
        """B: every sum is measured as it is."""
        return np.eye(self.size)

    def sensitivity(self) -> float:
        """One output, in [-1, 1], is in one sum: 2 in either norm."""
        return 2.0

    def float_error(self) -> float:
        """In the sum of absolute values, so in the Euclidean norm too."""
        return rounding(self.rows + 4) * self.rows

    def worst_neighbours(self) -> tuple[Array, Array]:
        """Equal outputs except for one in the first bin."""
        return -self.matrix[0], self.matrix[0]


@dataclass(frozen=True)
class Bins(RecordSums, Grid):
    """Sums over bins of ``rows`` records, with Gaussian noise: ``B n``, ``B s`` and an energy.

    Attributes
    ----------
    rows : how many records there are; public
    matrix : B, (measured, bins)
    energy_weight : at most 1, and 0 when it is not measured
    law : distribution of the noise
    classes : K of labels, whose ``B N_k`` are measured instead, without an energy; else 1
    weighted : whether every record counts by a private weight of at most 1

    """

    rows: int
    matrix: Array = field(repr=False)
    energy_weight: float = ENERGY_WEIGHT
    law: Annotated[str, NOT_PURE] = GAUSSIAN
    classes: Functions = added_field(1, silent=True)
    weighted: bool = added_field(False, silent=True)

    @property
    def blocks(self) -> int:
        """How many sums over every bin are measured: counts and sums, or one of each class."""
        return max(2, self.classes)

    @property
    def size(self) -> int:
        """How many numbers are measured."""
        return self.blocks * len(self.matrix) + int(self.energy_weight > 0)

    def count_std(self, noise_std: float) -> float:
        """Std of the noise on a count of records, for noise of this std on every number."""
        return noise_std * float(np.sqrt(self.classes))

    def of_people(self) -> Bins:
        """The same of as many people, each with the average of what their records add."""
        return PeopleBins(**vars(self))

    def check(self) -> None:
        """Refuse what the bounds of the sensitivity do not cover, as only a file can hold it.

        Raises
        ------
        ValueError
            Shapes, bounds or weights do not belong together.

        """
        inputs = (len(self.shape),)
        fits = (
            self.low.shape == self.high.shape == inputs != (0,)
            and np.all((self.low < self.high) & np.isfinite(self.high - self.low))
            and min(self.shape) >= 1
            and self.rows >= 1
            and self.matrix.shape[1:] == (math.prod(self.shape),)
            and np.abs(self.matrix).max(initial=0.0) <= LARGEST_FACTOR
            and 0.0 <= self.energy_weight <= ENERGY_WEIGHT
        )
        if not fits:
            raise ValueError(NOT_TOGETHER)
        self.check_energy(ENERGY_WEIGHT)

    def sensitivity(self) -> float:
        """How far replacing one record, output in [-1, 1] and weight in [0, 1], can move the exact measurement.

        In the Euclidean norm: ``2 sqrt(N + rho)``, of several classes ``sqrt(2 (N + rho))``, with N the
        largest squared column norm (at least 1) and -rho the least inner product of two columns, from
        the stored matrix and rounded up.
        """
        self.check_energy(ENERGY_WEIGHT)
        largest = max(1.0, float(column_norms(self.matrix).max()) ** 2)
        error = rounding(len(self.matrix) + 2) * largest
        least = float((self.matrix.T @ self.matrix).min()) - error
        return float(self.move * np.sqrt(largest + max(0.0, -least)) * (1.0 + 4.0 * 2.0**-53))

    def float_error(self) -> float:
        """Bound of the rounding error of the computed measurement, whatever bins the records are in.

        ``| |B| mass | <= rows * (largest column norm)`` for any masses that sum to the rows.
        """
        largest = max(1.0, float(column_norms(self.matrix).max()))
        terms = self.rows * self.most_records + self.count + 4 + 4 * self.weighted
        each = rounding(terms) * self.rows * largest
        return float(np.sqrt(3.0) * each) * (1.0 + 1e-9)

    def worst_neighbours(self) -> tuple[Array, Array]:
        """What one record adds, twice: of all pairs of records the two furthest apart.

        Outputs at the ends and the middle of their bounds suffice: the move is convex in their
        squares. Labels change between the first two classes, or not at all.
        """
        B, w = self.matrix, self.energy_weight
        gram, best = B.T @ B, (-1.0, 0, 0, 0.0, 0.0)
        squares = np.diag(gram)
        if self.classes > 1:
            apart = squares[:, None] + squares[None, :]
            moved = np.array([apart, apart - 2.0 * gram])
            same, one, other = np.unravel_index(int(np.argmax(moved)), moved.shape)
            return self._contribution(B[:, one], 0), self._contribution(B[:, other], 1 - int(same))
        for u, v in product((-1.0, 0.0, 1.0), repeat=2):
            moved = (1.0 + u * u) * squares[:, None] + (1.0 + v * v) * squares[None, :]
            moved = moved - 2.0 * (1.0 + u * v) * gram + w**2 * (u * u - v * v) ** 2
            i, j = divmod(int(np.argmax(moved)), self.count)
            best = max(best, (float(moved[i, j]), i, j, u, v))
        _, i, j, u, v = best
        first, second = (
            self.with_energy(np.append(B[:, k], B[:, k] * x), x * x) for k, x in ((i, u), (j, v))
        )
        return first, second

    def _contribution(self, column: Array, block: int) -> Array:
        """What a record adds in one block alone."""
        blocks = np.zeros((self.blocks, len(column)))
        blocks[block] = column
        return blocks.ravel()

    def sums_and_counts(self, numbers: Array) -> tuple[Array, Array]:
        """The sums of outputs and the counts, (measured,) each, from the numbers without an energy.

        With several classes the sums are those of every class about the even share.
        """
        blocks = numbers.reshape(self.blocks, -1)
        if self.classes > 1:
            return about_even(blocks), blocks.sum(axis=0)
        return self._of_number(*blocks)

    def _of_number(self, first: Array, second: Array) -> tuple[Array, Array]:
        """Sums and counts of numbers, from the two blocks that are measured of them."""
        return second, first

    def nodes(self) -> tuple[Array, Array]:
        """Points that represent the records of each bin, bin after bin, and the share of each.

        Gauss-Legendre points, so that f's average over them is that over the bin.

        Returns
        -------
        nodes : Array
            (bins * parts, inputs)
        shares : Array
            (parts,), which sum to 1, the same for all bins.

        """
        inputs = len(self.shape)
        fit = [q for q in (3, 2) if self.count * q**inputs <= MOST_NODES]
        points, weights = gauss(fit[0] if fit else 1)
        offsets = np.stack(np.meshgrid(*[points - 0.5] * inputs, indexing="ij"), axis=-1)
        inside = offsets.reshape(-1, inputs) * self.widths
        nodes = self.centres()[:, None, :] + inside
        shares = np.prod(np.meshgrid(*[weights] * inputs, indexing="ij"), axis=0)
        return nodes.reshape(-1, inputs), shares.ravel()

    def average_over_bins(self, at_nodes: Array) -> Array:
        """Averages over bins of a vector, or along both axes of a matrix, given at the nodes."""
        shares = self.nodes()[1]
        parts = len(shares)
        if at_nodes.ndim == 1:
            return np.asarray(at_nodes.reshape(-1, parts) @ shares)
        half = at_nodes.reshape(len(at_nodes), -1, parts) @ shares
        return np.asarray(np.einsum("iaj,a->ij", half.reshape(self.count, parts, -1), shares))


@dataclass(frozen=True)
class HalvedBins(Bins):
    """The same with pure noise: ``(n + s) / 2`` and ``(n - s) / 2``, and an energy."""

    law: Annotated[str, PURE] = LAPLACE

    def of_people(self) -> Bins:
        """The same of as many people, each with the average of what their records add."""
        return PeopleHalvedBins(**vars(self))

    def sensitivity(self) -> float:
        """In the sum of absolute values: twice the largest column sum, plus the energy's weight."""
        self.check_energy(np.inf)
        sums = float(absolute_sums(self.matrix).max())
        return (2.0 * sums + self.energy_weight) * (1.0 + 4.0 * 2.0**-53)

    def float_error(self) -> float:
        """The bound in the sum of absolute values."""
        largest = float(absolute_sums(self.matrix).max()) + self.energy_weight
        terms = self.rows * self.most_records + self.count + 8 + 4 * self.weighted
        return rounding(terms) * self.rows * largest * (1.0 + 1e-9)

    def worst_neighbours(self) -> tuple[Array, Array]:
        """Two records that stay in one bin, with outputs at either end.

        They move 2 of the 2 + w that a record can, and few numbers at once, which an attack sees
        best.
        """
        worst = self.matrix[:, int(np.argmax(np.abs(self.matrix).sum(axis=0)))]
        first, second = self._contribution(worst, 1), self._contribution(worst, 0)
        return self.with_energy(first, 1.0), self.with_energy(second, 1.0)

    def sum_std(self, noise_std: float) -> float:
        """Counts and sums are those of two numbers, or more; their errors are uncorrelated."""
        return about_even_std(noise_std, self.blocks)

    def count_std(self, noise_std: float) -> float:
        """Std of the noise on a count of records, for noise of this std on every number."""
        return noise_std * float(np.sqrt(self.blocks))

    def _of_number(self, first: Array, second: Array) -> tuple[Array, Array]:
        return first - second, first + second


@dataclass(frozen=True)
class PeopleBins(OfPeople, Bins):
    """``Bins`` of people: all records of one are protected together. ``rows``: of people."""


@dataclass(frozen=True)
class PeopleHalvedBins(OfPeople, HalvedBins):
    """``HalvedBins`` of people."""


DESIGN_SCALES = (-1.2, 0.0, 1.2)  # standard deviations of the prior's common lengthscale


def design_models(prior: Prior) -> list[Hyperparameters]:
    """Shorter, starting and longer lengthscales, all of them moved together, weighted equally.

    One model if the prior leaves nothing free.
    """
    if prior.size == 0:
        return [prior.start]
    free = [each for each in prior.start.kernel.hyperparameters if not each.fixed]
    moves = [each.name.endswith("length_scale") for each in free for _ in range(each.n_elements)]
    together = np.zeros(len(prior.centre))
    together[: len(moves)] = moves
    square = prior.size == len(prior.centre)
    solve = np.linalg.solve if square else lambda root, right: np.linalg.lstsq(root, right)[0]
    common = np.asarray(solve(prior.root, together), dtype=np.float64)
    return [prior.at(step * common) for step in DESIGN_SCALES]
