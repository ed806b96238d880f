"""Features of private inputs: what is measured where bins would be nearly all empty.

A record with features phi, of norm 1, and output u in [-1, 1] adds ``(a phi phi^T, phi u, w u^2)``: the
symmetric matrix as its lower triangle with sqrt(2) off the diagonal, so that its norm is kept. A record
with a label of K >= 3 classes adds ``(a phi phi^T, phi v_1, ..., phi v_K)``, v its indicators less 1/K
divided by their norm. How far one record can move that: docs/proofs/features.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, cast

import numpy as np
from scipy.linalg import cholesky, lapack
from sklearn.gaussian_process.kernels import Matern

from privgp.gp.arithmetic import rounding
from privgp.gp.features import FeatureMap, pack_symmetric, spread_points, unpack_symmetric
from privgp.gp.kernels.evaluate import evaluate
from privgp.gp.measurement import Functionals, Measurement
from privgp.gp.priors import Hyperparameters
from privgp.plan.accuracy import variances_beyond_rows
from privgp.plan.bins.bins import Functions, OfPeople, RecordSums, about_even
from privgp.plan.bins.counts import UNEVENNESS, Records
from privgp.plan.designs.noise_aware import Certificate
from privgp.plan.labels import outcome_model
from privgp.plan.strategy import NOT_TOGETHER
from privgp.privacy.noise import GAUSSIAN, NOT_PURE, Noise
from privgp.privacy.sensitivity import LARGEST_FACTOR
from privgp.types import Array, added_field

if TYPE_CHECKING:
    from privgp.plan.part import Part


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
    weighted : whether every record counts by a private weight of at most 1

    """

    rows: int
    gram_weight: float
    energy_weight: float = ENERGY_WEIGHT
    law: Annotated[str, NOT_PURE] = GAUSSIAN
    classes: Functions = added_field(1, silent=True)
    weighted: bool = added_field(False, silent=True)

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
        return (
            rounding(self.rows * self.most_records + 12 + 4 * self.weighted)
            * self.rows
            * parts
            * (1.0 + 1e-9)
        )

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
class PeopleFeatures(OfPeople, Features):
    """``Features`` of people: all records of one are protected together. ``rows``: of people."""


SUPPORT = 512  # points that stand for records spread evenly
TOTAL_PRECISION = 1e3  # of the sum of all masses, which is known, against a measured number's


def precision_of(features: Features, phi: Array, noise_std: float) -> Array:
    """How well the Gram matrix and the number of records tell masses, (points, points).

    The inner products of what masses at these points add to it, over the noise variance.

    Parameters
    ----------
    features
        The features that are measured.
    phi
        (points, features), at the points.
    noise_std
        std of the noise on every number.

    """
    products = np.square(phi @ phi.T) * (features.gram_weight / noise_std) ** 2
    return np.asarray(products + total_precision(features, noise_std))


def total_precision(features: Features, noise_std: float) -> float:
    """How well the sum of all masses is known before the Gram matrix tells it; weights lie evenly between 0
    and 1 as far as is known."""
    if features.weighted:
        return 12.0 / features.rows**2
    return (TOTAL_PRECISION / noise_std) ** 2


def even_masses(features: Features, noise_std: float) -> tuple[Array, Array, Array]:
    """Evenly spread points, their masses, and the covariance that a measurement will leave of them.

    Parameters
    ----------
    features
        The features that are measured.
    noise_std
        std of the noise on every number.

    Returns
    -------
    points, masses, covariance : Array
        (points, inputs), (points,), (points, points).

    """
    points, even = even_points(features.low, features.high), features.prior_total / SUPPORT
    _, inverse = _even_places(len(features.low))
    precision = precision_of(features, features.at(points), noise_std) + inverse / even**2
    half, _ = lapack.dpotri(cholesky(precision, lower=True), lower=True)  # of the inverse
    return points, np.full(SUPPORT, even), np.tril(half) + np.tril(half, -1).T


def even_points(low: Array, high: Array) -> Array:
    """512 points that stand for records spread evenly over the domain, (points, inputs)."""
    return np.asarray(low + _even_places(len(low))[0] * (high - low))


@cache
def _even_places(inputs: int) -> tuple[Array, Array]:
    """Points of the unit box, and the inverse of the prior covariance of masses there over the square
    of the even mass."""
    places = spread_points(np.zeros(inputs), np.ones(inputs), SUPPORT, 0)
    std, share = UNEVENNESS[0]
    covariance = share * evaluate(Matern(np.sqrt(inputs / 12.0), nu=1.5), places)
    covariance.flat[:: SUPPORT + 1] += 1.0 - share
    return places, np.asarray(np.linalg.inv(std**2 * covariance), dtype=np.float64)


def feature_functionals(
    features: Features,
    points: Array,
    masses: Array,
    covariance: Array,
    squares: Array,
    unit: float | None = None,
) -> Functionals:
    """The measured sums as functionals of f, for ``masses`` records at each of the points.

    With F the values of f there: ``t = B masses F + B (n - masses) F + scatter``, B the
    features. The second term has covariance ``B (covariance * squares) B^T``; the third, of
    outputs about f, ``s^2 B masses B^T``.

    Parameters
    ----------
    features
        The features that are measured.
    points
        (points, inputs).
    masses
        (points,).
    covariance
        (points, points), of the masses.
    squares
        E[F F^T], (points, points).
    unit
        If outputs are counts, the rate that rates are multiples of.

    """
    B = features.at(points).T
    weights = np.ascontiguousarray(B * masses)
    gram = weights @ B.T
    gram = 0.5 * (gram + gram.T)
    fixed = B @ (covariance * squares) @ B.T
    found = Functionals(
        nodes=points,
        weights=weights,
        noise_gram=gram,
        residual_gram=np.zeros_like(gram),
        energy_total=float(masses.sum()) if features.weighted else float(features.rows),
        energy_gram=np.diag(masses),
        energy_cross=np.ascontiguousarray(weights.T),
        energy_noise_gram=gram,
        fixed_gram=0.5 * (fixed + fixed.T),
        scatter=np.zeros_like(weights),
        shares=np.ones(1),
    )
    return found if unit is None else found.in_units(unit)


def even_functionals(
    features: Features, noise_std: float, model: Hyperparameters, unit: float | None = None
) -> Functionals:
    """The same for records spread evenly, as uncertain as this noise leaves them.

    Parameters
    ----------
    features, unit
        As in ``feature_functionals``.
    noise_std
        std of the noise on every number.
    model
        Model of f, which E[F F^T] is taken from.

    """
    points, masses, covariance = even_masses(features, noise_std)
    squares = evaluate(outcome_model(model, unit).kernel, points)
    return feature_functionals(features, points, masses, covariance, squares, unit)


@dataclass(frozen=True)
class FeatureRecords(Records):
    """What is planned where inputs are private and many."""

    design_gap: ClassVar[float | None] = math.inf
    totals: ClassVar[str] = "smooth features of the inputs, multiplied in pairs and by the values"

    def functionals(
        self, plan: Part, strategy: Any, noise: Noise, model: Hyperparameters
    ) -> Functionals:
        """What is measured of f, for even records known as well as this noise allows."""
        return even_functionals(strategy, noise.std, model, self.unit)

    def variances_without_noise(self, plan: Part, model: Hyperparameters, targets: Array) -> Array:
        """The variance of f at the targets, were even records themselves published."""
        low, high = np.array(self.x_bounds).T
        points = even_points(low, high)
        even = np.full(SUPPORT, plan.rows / SUPPORT) * (self.unit or 1.0)
        return variances_beyond_rows(model, points, even, points, targets)

    def certificate(self, plan: Part, gaussian: Part) -> Certificate:
        """Refuse: no bound is known of how near features are to the best."""
        raise ValueError("a plan that measures features has no certificate of its error.")

    def describe_rows(self, plan: Part) -> str:
        """How many records are measured by how many features, in words."""
        features = cast(Features, plan.strategy)
        return (
            f"{features.rows} {features.counted}{features.weight_words} with {len(features.matrix)} features "
            "of the inputs"
        )
