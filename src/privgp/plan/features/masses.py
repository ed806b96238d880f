"""Records as masses at a few points: what a noisy Gram matrix of features leaves unknown of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.linalg import cholesky, lapack
from sklearn.gaussian_process.kernels import Matern

from privgp.gp.features import spread_points
from privgp.gp.kernels.evaluate import evaluate
from privgp.gp.measurement import Functionals
from privgp.gp.priors import Hyperparameters
from privgp.plan.accuracy import variances_beyond_rows
from privgp.plan.bins.counts import UNEVENNESS
from privgp.plan.designs.noise_aware import Certificate
from privgp.plan.features.features import Features
from privgp.plan.kinds import Records
from privgp.plan.outcomes.links import outcome_model
from privgp.types import Array

if TYPE_CHECKING:
    from privgp.plan.part import Part


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
    return np.asarray(products + (TOTAL_PRECISION / noise_std) ** 2)


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
    points, even = even_points(features.low, features.high), features.rows / SUPPORT
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
        energy_total=float(features.rows),
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
        self, plan: Part, strategy: Any, noise: Any, model: Hyperparameters
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
        features: Any = plan.strategy
        return (
            f"{features.rows} {features.counted} with {len(features.matrix)} features of the inputs"
        )
