"""Released rates: the exponential of a Gaussian process, and counts that follow them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from scipy.special import betainc, log_ndtr, ndtr, pdtr

from privgp.gp.inference.linked import (
    CAUTION,
    Outcomes,
    Settled,
    Squares,
    average_over,
    cautious,
    learn_outcomes,
    settle,
)
from privgp.gp.inference.posterior import Component, Mixture, Posterior, posterior
from privgp.gp.links import LOG
from privgp.gp.measurement import Functionals, Measurement
from privgp.gp.priors import Hyperparameters, Prior
from privgp.types import Array

MOST = 1e3  # times the unit, which gives the middle of the bounds at the largest exposure
FAR = 8.0  # standard deviations


@dataclass(frozen=True)
class CountMixture:
    """Counts at one unit of exposure, as a mixture of negative binomial distributions.

    Attributes
    ----------
    means, variances : array, (components, points)
        A variance that is no larger than its mean is that of a Poisson distribution.
    weights : array, (components,)
        Of sum 1.

    """

    means: Array
    variances: Array
    weights: Array

    def below(self, counts: Array) -> Array:
        """The share of the mixture up to and including these counts, (points,)."""
        extra = np.maximum(self.variances - self.means, 0.0)
        poisson = extra <= 1e-9 * self.means
        size = self.means**2 / np.where(poisson, 1.0, extra)
        spread = betainc(size, counts + 1.0, size / (size + self.means))
        return np.asarray(self.weights @ np.where(poisson, pdtr(counts, self.means), spread))

    def quantiles(self, levels: Sequence[float]) -> Array:
        """At every point the least counts up to which the mixture has these shares, (levels, points)."""
        return np.array([self._least(np.full(self.means.shape[1], level)) for level in levels])

    def ends(self, levels: Sequence[float]) -> Array:
        """The ends of an interval at every point, (2, points): the least count up to which the mixture has
        the first share, and the least one with which the interval has the share between both."""
        first, last = levels
        low = self._least(np.full(self.means.shape[1], first))
        before = np.where(low > 0.0, self.below(np.maximum(low - 1.0, 0.0)), 0.0)
        return np.array([low, self._least(np.minimum(before + last - first, last))])

    def _least(self, level: Array) -> Array:
        """The least count up to which the mixture has this share, (points,)."""
        high = np.ceil((self.means + 40.0 * np.sqrt(self.variances) + 40.0).max(axis=0))
        low = np.full_like(high, -1.0)  # the count lies above low, and not above high
        for _ in range(int(np.log2(high.max() + 2.0)) + 2):
            middle = np.floor(0.5 * (low + high))
            enough = self.below(middle) >= level
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        return np.asarray(high)


@dataclass(frozen=True)
class RateMixture:
    """``unit`` times the exponential of a mixture of normal distributions at every point."""

    logs: Mixture
    unit: float

    def moments(self) -> tuple[Array, Array]:
        """Means and variances of the rate, or of the most it can be if that is less, under every
        component, (components, points)."""
        m, v = self.logs.means, np.maximum(self.logs.variances, 1e-300)
        std, most = np.sqrt(v), np.log(MOST)
        above = ndtr((m - most) / std)
        mean = np.exp(m + 0.5 * v + log_ndtr((most - m - v) / std)) + MOST * above
        square = np.exp(2.0 * (m + v) + log_ndtr((most - m - 2.0 * v) / std)) + MOST**2 * above
        below = most - m - 2.0 * v > FAR * std  # nothing is cut off
        with np.errstate(over="ignore"):
            spread = np.where(below, mean**2 * np.expm1(v), np.maximum(square - mean**2, 0.0))
        return self.unit * mean, self.unit**2 * spread

    @property
    def mean(self) -> Array:
        """The same for the rate at every point, (points,)."""
        return np.asarray(self.logs.weights @ self.moments()[0])

    def of_outputs(self, low: float, high: float) -> CountMixture:
        """The same for counts at one unit of exposure, which bounds of the data do not bind."""
        means, variances = self.moments()
        scatter = self.logs.noises[:, None] * means
        return CountMixture(means, variances + scatter, self.logs.weights)

    def below(self, value: float) -> Array:
        """The probability that the rate is at most a value, (points,)."""
        if not 0.0 < value < self.unit * MOST:
            return np.full(self.logs.means.shape[1], float(value > 0.0))
        return self.logs.below(float(np.log(value / self.unit)))

    def quantiles(self, levels: Sequence[float]) -> Array:
        return np.asarray(self.unit * np.minimum(LOG.mean(self.logs.quantiles(levels)), MOST))

    ends = quantiles


@dataclass(frozen=True)
class RatePosterior:
    """Rates per unit of exposure anywhere; ``logs``: of their logarithms as multiples of ``unit``."""

    without_link: ClassVar[None] = None
    logs: Posterior
    unit: float

    @property
    def components(self) -> tuple[Component, ...]:
        return self.logs.components

    def at_zero(self, functionals: Functionals) -> Array:
        """What would be measured if the logarithm were 0, about which plans have ``exp(f) ~ 1 + f``."""
        return np.asarray(functionals.weights.sum(axis=1))

    @property
    def noise_variance(self) -> float:
        """The variance of a count over its mean."""
        return self.logs.noise_variance

    def mixture(self, X: Array) -> RateMixture:
        return RateMixture(self.logs.mixture(X), self.unit)

    def rates(self, logs: Array) -> Array:
        """Rates whose logarithms as multiples of the unit are these."""
        return np.asarray(self.unit * np.minimum(LOG.mean(logs), MOST))

    def mean_at(self, X: Array) -> Array:
        """The mean of the rate at every row of X, (rows,)."""
        return self.mixture(X).mean

    def mean_and_variance(self, X: Array) -> tuple[Array, Array]:
        """Mean and variance of the rate at every row of X."""
        mixture = self.mixture(X)
        means, variances = mixture.moments()
        weights = mixture.logs.weights
        mean = weights @ means
        return mean, weights @ (variances + np.square(means - mean))

    def mean_and_covariance(self, X: Array) -> tuple[Array, Array]:
        """Mean of the rate at the rows of X and their full covariance matrix."""
        mean, square = np.zeros(len(X)), np.zeros((len(X), len(X)))
        total = sum(c.model.weight for c in self.components)
        means = self.mixture(X).moments()[0]
        for c, each in zip(self.components, means, strict=True):
            alone = replace(c, model=replace(c.model, weight=1.0))
            _, covariance = Posterior((alone,), 0.0).mean_and_covariance(X)
            share = c.model.weight / total
            mean += share * each
            square += share * np.outer(each, each) * LOG.mean(covariance)
        return mean, square - np.outer(mean, mean)

    def privacy_variance(self, X: Array) -> Array:
        """The part of the variance that the noise for privacy makes, to first order."""
        return self.logs.privacy_variance(X) * np.square(self.mean_and_variance(X)[0])


def _outcomes(functionals: Functionals, measurement: Measurement, dispersion: float) -> Outcomes:
    """Sums of counts whose variance is ``dispersion`` times their mean."""
    scattered = replace(functionals, noise_gram=dispersion * functionals.noise_gram)
    return Outcomes(scattered, measurement, LOG, measurement.centre or 0.0)


def learn_rates(
    functionals: Functionals,
    measurement: Measurement,
    priors: Sequence[Prior],
    squares: Squares | None = None,
) -> tuple[Hyperparameters, ...]:
    """Weighted models of the logarithm of the rate, most plausible first.

    ``squares``: given where the dispersion of counts is learned too.
    """
    start = priors[0].start

    def density(model: Hyperparameters, squares: Squares) -> Array:
        found = settle(_outcomes(functionals, measurement, model.noise_variance), model)
        line = posterior(found.functionals, found.measurement, (replace(model, weight=1.0),), 0.0)
        means, variances = RateMixture(line.mixture(squares.inputs), 1.0).moments()
        return squares.log_density(means[0], variances[0])

    try:
        if squares is None:
            return learn_outcomes(_outcomes(functionals, measurement, start.noise_variance), priors)
        scatter = cautious(density(start, squares))
        found = learn_outcomes(_outcomes(functionals, measurement, scatter), priors)
        logs = density(replace(found[0], noise_variance=scatter), squares)
        return average_over(found, logs)
    except np.linalg.LinAlgError:  # the budget is spent, so the prior must do
        return (start,)


def rate_posterior(
    functionals: Functionals,
    measurement: Measurement,
    models: Sequence[Hyperparameters],
    unit: float,
) -> RatePosterior:
    """The rate given noisy sums of counts. Models that cannot be conditioned are left out."""
    scatter = float(np.quantile([model.noise_variance for model in models], CAUTION))
    outcomes = _outcomes(functionals, measurement, scatter)
    components: list[Component] = []
    near: Settled | None = None
    astray: Posterior | None = None
    for model in models:
        starts: list[Settled | None] = [None] if near is None else [near, None]
        for start in starts:
            with suppress(np.linalg.LinAlgError):
                found = settle(outcomes, model, start)
                line = posterior(found.functionals, found.measurement, (model,), 0.0)
                if _holds(line, found):
                    near, components = found, [*components, *line.components]
                    break
                astray = astray or line
    if components:
        return RatePosterior(Posterior(tuple(components), 0.0), unit)
    if astray is None:
        raise np.linalg.LinAlgError("no model could be conditioned.")
    return RatePosterior(astray, unit)


def _holds(line: Posterior, found: Settled) -> bool:
    """Whether the solution lies where its line was fitted, not further off than lines reach."""
    mean = line.mixture(found.functionals.nodes).means[0]
    return bool(np.allclose(mean, found.mean, rtol=1e-6, atol=1e-3))
