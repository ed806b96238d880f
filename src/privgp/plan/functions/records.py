"""Posterior-mean functions of private records: how far one record moves them, and their noise.

The sensitivity, in the norm of the kernel, follows from the number of records, the declared domain
and the kernel alone. Noise is drawn through a growing factor L of the noise kernel at public points.
Privacy rests on ``L L^T >= k(points, points)``: with the nugget j^2 on the diagonal that is so if
``L L^T - k - j^2 I`` is smaller than j^2. This is computed from the rows as they are stored, and no
point is answered that would make it too large. Proofs: docs/proofs/function_records.md."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cholesky
from sklearn.gaussian_process.kernels import Kernel

from privgp.gp.arithmetic import UNIT_ROUNDOFF, rounding
from privgp.gp.growing import GrowingFactor
from privgp.gp.kernels.evaluate import variance
from privgp.gp.kernels.proved import rounding_error, values_by_differences
from privgp.privacy.noise import GaussianNoise, gaussian_noise
from privgp.privacy.posterior_mean import (
    CONSTANT,
    UP,
    PosteriorShape,
    mean_sensitivity,
    posterior_shape,
)
from privgp.types import Array, Count, Pair, Positive

RECORD_SENSITIVITIES = ("exact", "paper")
CELLS = 4000
NUGGET = 1e-8  # of the variance
MOST_POINTS = 4000
# What rounding hides of the residual, in units of the variance.
UNSEEN = MOST_POINTS * 1.01 * rounding(MOST_POINTS + 4)
TOO_FAR = "these points are too far away for the kernel to be computed."


@dataclass(frozen=True)
class DomainModel:
    """A Gaussian process on the declared domain of private inputs.

    Attributes
    ----------
    kernel : kernel of the posterior
    noise_variance : variance of an output about the function
    domain : one (low, high) per column

    """

    kernel: Kernel
    noise_variance: Positive
    domain: tuple[Pair, ...]

    @property
    def columns(self) -> int:
        """How many inputs a point has."""
        return len(self.domain)

    @property
    def widths(self) -> Array:
        """The sides of the domain, (columns,)."""
        return np.array([high - low for low, high in self.domain])

    def shape(self, records: int) -> PosteriorShape:
        """All that the sensitivity of a posterior of this many records depends on."""
        return posterior_shape(self.kernel, self.noise_variance, self.widths, records)


@dataclass(frozen=True)
class RecordsModel(DomainModel):
    """The public part of a whole-function release of private records.

    Attributes
    ----------
    rows : how many records there are

    """

    rows: Count

    nodes = None  # there are no inducing inputs

    def norm(self, sensitivity: str) -> float:
        """Half the sensitivity in the norm of the kernel, for outputs in [-1, 1].

        Parameters
        ----------
        sensitivity
            "exact", the least bound that is proved, or "paper".

        """
        shape = self.shape(self.rows)
        if sensitivity == "paper":
            bound = mean_sensitivity(shape, "paper").value
        else:
            bound = min(mean_sensitivity(shape).value, prior_norm_limit(shape))
            if shape.form == CONSTANT:  # the mean is the sum of the outputs over n + r^2
                bound = min(bound, 2.0 / (shape.records + shape.ridge) * UP)
        return 0.5 * bound / math.sqrt(variance(self.kernel)) * UP

    def noise(self, epsilon: float, delta: float, norm: float) -> GaussianNoise:
        """Noise for outputs scaled to [-1, 1]: for all points that will ever be asked for.

        Parameters
        ----------
        epsilon, delta
            The budget of all answers together.
        norm
            Half the sensitivity, in the norm of the kernel.

        """
        residual_room(self.kernel, self.widths)  # refuses kernels of too many parts
        return gaussian_noise(epsilon, delta, MOST_POINTS, 2.0 * norm, self.float_error())

    @property
    def typical_variance(self) -> float:
        """k(x, x)."""
        return variance(self.kernel)

    def noise_shape(self, points: Array) -> Array:
        """Std of ``G ~ GP(0, k)`` at points, (points,)."""
        return np.full(len(points), np.sqrt(variance(self.kernel)))

    def float_error(self) -> float:
        """A bound of the error of all coordinates that are ever computed, in Euclidean norm."""
        n, m, v, s2 = self.rows, MOST_POINTS, variance(self.kernel), self.noise_variance
        kernel = rounding_error(self.kernel, self.widths)
        solved, weights = self.weights_error()
        as_function = solved * weights / (2.0 * math.sqrt(s2))
        at_a_point = (rounding(n + 8) + 1.01 * kernel) * v * math.sqrt(n) * weights
        norm = math.sqrt(n / s2) / 2.0 + as_function
        # L (coordinates) = values + errors, |L^-1| at most:
        inverse = math.sqrt(2.0 / (NUGGET * v))
        substituted = rounding(m + 8) * 1.01 * math.sqrt(v)
        lost = inverse * math.sqrt(m) * substituted  # of the coordinates' own norm
        given = inverse * math.sqrt(m) * at_a_point
        return (as_function + given + 1.01 * lost * (norm + given)) * UP

    def weights_error(self) -> tuple[float, float]:
        """Bounds of |E| and of |weights|, where ``(K + s^2 I + E) weights = outputs``.

        Raises
        ------
        ValueError
            The noise variance is too small for that many records.

        """
        n, v, s2 = self.rows, variance(self.kernel), self.noise_variance
        kernel = rounding_error(self.kernel, self.widths)
        solved = n * kernel * v + (2.0 * UNIT_ROUNDOFF + 4.0 * n * rounding(3 * n + 8)) * (v + s2)
        if not solved < 0.5 * s2:
            raise ValueError("noise_variance is too small for exact weights of this many records.")
        return solved, math.sqrt(n) / (s2 - solved)


def prior_norm_limit(shape: PosteriorShape) -> float:
    """``2 sup (1 + c t) sqrt(v - t^2) / (v + r^2)``, t^2 <= v (1 - v), c = sqrt(n - 1) / r.

    For a kernel of variance 1 and outputs within 1 of their centre. Every v lies in one of 4,000
    cells; in a cell numerator and denominator take their own extremes.
    """
    c = math.sqrt((shape.records - 1) / shape.ridge)
    high = shape.largest_variance
    edges = np.geomspace(min(shape.least_variance, high), high, CELLS + 1)
    edges[0] *= 1.0 - 1e-12
    edges[-1] = high
    low, high_edge = edges[:-1], edges[1:]
    middle = np.clip(0.5, low, high_edge)
    most = np.sqrt(middle * (1.0 - middle))
    # (1 + c t) sqrt(v - t^2) has one top, at 2 c v / (1 + sqrt(1 + 8 c^2 v))
    top = 2.0 * c * high_edge / (1.0 + np.sqrt(1.0 + 8.0 * c * c * high_edge))
    t = np.minimum(top, most)
    # t is not quite the top: both factors are taken a little larger than at it
    values = (1.0 + c * t) * np.sqrt(np.maximum(high_edge - t * t, 0.0)) / (low + shape.ridge)
    return 2.0 * float(values.max()) * (1.0 + 1e-9)


def residual_room(kernel: Kernel, widths: Array) -> float:
    """How large the computed residual may be, so that the true one is at most half the nugget.

    Computing it errs by at most ``gamma |l_a| |l_b|`` an entry, the kernel by its own error,
    both times the number of points.

    Parameters
    ----------
    kernel
        With a proved error.
    widths
        (inputs,), the sides of the box that the points lie in.

    """
    unseen = UNSEEN + MOST_POINTS * rounding_error(kernel, widths)
    room = (0.5 * NUGGET - unseen) * variance(kernel)
    if not room > NUGGET / 16.0 * variance(kernel):
        raise ValueError("kernel has too many parts for its values to be exact enough.")
    return room


@dataclass(frozen=True)
class FactorRows:
    """Further rows of L.

    Attributes
    ----------
    points : (new, columns)
    lower : (new, old + new)
    residual : the squared residual of all rows up to these

    """

    points: Array
    lower: Array
    residual: float


class CheckedFactor:
    """L at the points asked so far; all of it is public.

    Parameters
    ----------
    kernel : kernel of the noise
    widths : (columns,), the sides of the box that the points lie in

    """

    def __init__(self, kernel: Kernel, widths: Array) -> None:
        self.kernel, self.points = kernel, np.empty((0, len(widths)))
        self._factor, self._residual = GrowingFactor(), 0.0
        self._room = residual_room(kernel, widths)

    def propose(self, points: Array) -> FactorRows:
        """The rows that further points add. Changes nothing.

        Parameters
        ----------
        points
            (new, columns).

        Raises
        ------
        ValueError
            They would leave too large a residual.

        """
        above = values_by_differences(self.kernel, self.points, points)
        own = values_by_differences(self.kernel, points, points)
        own.flat[:: len(own) + 1] += NUGGET * variance(self.kernel)
        side = self._factor.solve(above).T
        try:
            corner = cholesky(own - side @ side.T, lower=True)
        except (np.linalg.LinAlgError, ValueError):
            raise ValueError(TOO_FAR) from None
        beside = self._factor.times(side.T) - above
        within = side @ side.T + corner @ corner.T - own
        residual = self._residual + 2.0 * float(np.sum(beside**2)) + float(np.sum(within**2))
        if not np.sqrt(residual) <= self._room:
            raise ValueError(TOO_FAR)
        return FactorRows(points, np.hstack([side, corner]), residual)

    def holds(self) -> bool:
        """Whether the residual of all rows is as stated, and small enough."""
        lower, v = self._factor.times(np.eye(self._factor.size)), variance(self.kernel)
        apart = lower @ lower.T - values_by_differences(self.kernel, self.points, self.points)
        apart.flat[:: len(lower) + 1] -= NUGGET * v
        stated = math.sqrt(self._residual)
        return stated <= self._room and float(np.linalg.norm(apart)) <= stated + 2.0 * UNSEEN * v

    def accept(self, rows: FactorRows) -> None:
        """Make rows, as ``propose`` returned them, part of the factor."""
        self.catch_up(np.vstack([self.points, rows.points]), list(rows.lower), rows.residual)

    def catch_up(self, points: Array, rows: Sequence[Array], residual: float) -> None:
        """Take these rows as they were stored, the last of which belong to the last points.

        Parameters
        ----------
        points
            (points, columns), all of them.
        rows
            The rows of L, at least those that are lacking.
        residual
            Squared, of all rows.

        """
        missing = len(points) - self._factor.size
        if missing:
            lower = np.zeros((missing, len(points)))
            for place, row in enumerate(rows[len(rows) - missing :]):
                lower[place, : len(row)] = row
            self._factor.append(lower)
        self.points, self._residual = points, residual
