"""What a released function of numbers, counts or rates predicts, and how uncertain that is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import singledispatch
from numbers import Real
from typing import Any, Self, cast

import numpy as np

from privgp.plan.inputs.arguments import check_bounds
from privgp.plan.parameters import LabelParameters
from privgp.release.answers import Probabilities
from privgp.release.release import Release
from privgp.types import Array

ROWS = 8192  # at a time: every model of the mixture has a mean and a variance at each


@dataclass(frozen=True)
class ReleasedFunction:
    """The function of one outcome that is a number or a count.

    Attributes
    ----------
    answer : Posterior, RatePosterior or Cloaked
        What predicts.
    bounds : (low, high)
        The declared bounds of the outputs.
    noise_variance : float
        The expected variance of an output about the function; of a count, over its mean.
    is_rate : bool
        Whether outputs are counts, whose rate is predicted.
    at_targets : bool
        Whether values at targets were released.

    """

    answer: Any
    bounds: tuple[float, float]
    noise_variance: float
    is_rate: bool
    at_targets: bool

    @classmethod
    def of(cls, release: Release) -> Self:
        """The function of a release of one outcome."""
        (part,), (answer,) = release.parts, release.answers
        bounds = check_bounds("y_bounds", release.parameters.y_bounds)
        rate, at_targets = part.unit_rate is not None, part.at_targets is not None
        return cls(answer, bounds, part.noise_variance, rate, at_targets)

    def mean_and_std(self, X: Array, observation: bool) -> tuple[Array, Array]:
        """Mean and std of the function at every row of X, or of new outputs."""
        mean, variance = self.answer.mean_and_variance(X)
        return mean, np.sqrt(
            self._observation_variance(mean, variance) if observation else variance
        )

    def mean_and_covariance(self, X: Array, observation: bool) -> tuple[Array, Array]:
        """Mean of the function at the rows of X and the covariance matrix, or of new outputs."""
        mean, covariance = self.answer.mean_and_covariance(X)
        if observation:
            latent = np.diag(covariance).copy()
            np.fill_diagonal(covariance, self._observation_variance(mean, latent))
        return mean, covariance

    def interval(self, X: Array, levels: Sequence[float], observation: bool) -> tuple[Array, Array]:
        """The ends of an interval of the function, or of new outputs, at every row of X."""
        ends = np.empty((2, len(X)))
        for first in range(0, len(X), ROWS):
            rows = slice(first, first + ROWS)
            ends[:, rows] = self.quantiles(self.answer.mixture(X[rows]), levels, observation)
        return ends[0], ends[1]

    def quantiles(self, mixture: Any, levels: Sequence[float], observation: bool) -> Array:
        """For the function or for outputs: both lie within their bounds.

        An unbiased release may lie beyond them, and so may its intervals; rates are no outputs.
        """
        mixture = mixture.of_outputs(*self.bounds) if observation else mixture
        if self.is_rate:
            return np.asarray(mixture.ends(levels))
        if self.at_targets:
            return np.asarray(mixture.quantiles(levels))
        if observation:  # clipped, so that many may lie on a bound
            return np.asarray(np.clip(mixture.quantiles(levels), *self.bounds))
        return np.asarray(mixture.quantiles_within(levels, *self.bounds))

    def clip(self, values: Array) -> Array:
        """Values of the function, which lies within its bounds where it predicts anywhere."""
        if self.is_rate:
            return np.maximum(values, 0.0)
        return values if self.at_targets else np.clip(values, *self.bounds)

    def above(self, mixture: Any, threshold: float) -> Array:
        """The probability that the function exceeds a threshold, as ``quantiles`` has it, (rows,)."""
        if self.at_targets or self.is_rate:
            return np.asarray(1.0 - mixture.below(threshold))
        return np.asarray(mixture.above_within(threshold, *self.bounds))

    def privacy_share(self, X: Array) -> Array:
        """The share of the variance at every row that the noise for privacy makes: 0 to 1, (rows,)."""
        privacy, whole = self.answer.privacy_variance(X), self.answer.mean_and_variance(X)[1]
        return np.asarray(np.minimum(privacy / np.maximum(whole, np.finfo(float).tiny), 1.0))

    def _observation_variance(self, mean: Array, variance: Array) -> Array:
        """The variance of an output: at most (mean - low)(high - mean), as values in bounds have."""
        if self.is_rate:  # at one unit of exposure, whatever bounds the counts have
            return variance + self.noise_variance * mean
        low, high = self.bounds
        most = (mean - low) * (high - mean)
        return np.maximum(variance, np.minimum(variance + self.noise_variance, most))


def check_coverage(coverage: object) -> tuple[float, float]:
    """The levels of the ends of an interval with this probability, both inside of 0 and 1."""
    low = 0.5 * (1.0 - float(coverage)) if isinstance(coverage, Real) else 0.0
    if not 0.0 < low < 0.5 or 1.0 - low == 1.0:
        raise ValueError(f"coverage must lie between 0 and 1, got {coverage!r}.")
    return low, 1.0 - low


@singledispatch
def table_columns(
    asked: object, release: Release, X: Array, levels: Sequence[float], observation: bool
) -> dict[str, Array]:
    """What a table of predictions holds of one outcome, by the names of its columns.

    Parameters
    ----------
    asked : Parameters
        What was declared of the outcome.
    release : Release
        The release of this outcome alone.
    X : array (rows, columns)
        Rows as the kernel has them.
    levels : (low, high)
        The levels of the ends of intervals.
    observation : bool
        Whether intervals are those of new values of numbers and counts, not of their means.

    """
    function = ReleasedFunction.of(release)
    mean, std = function.mean_and_std(X, observation)
    low, high = function.interval(X, levels, observation)
    return {"mean": mean, "std": std, "low": low, "high": high}


@table_columns.register
def _(
    asked: LabelParameters, release: Release, X: Array, levels: Sequence[float], observation: bool
) -> dict[str, Array]:
    answer, classes = cast(Probabilities, release.answers[0]), np.array(asked.classes)
    probabilities, (low, high) = answer.at(X), answer.between(X, (levels[0], levels[1]))
    found = {"label": classes[np.argmax(probabilities, axis=1)]}
    for name, of_all in (("probability", probabilities), ("low", low), ("high", high)):
        each = zip(classes, of_all.T, strict=True)
        found |= {f"{name}_{label}": column for label, column in each}
    return found
