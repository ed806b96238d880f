"""Links: how a function without bounds gives the mean of an outcome that has them.

An outcome at f has mean ``g(f)`` and variance ``V(f)``: a label is 1 with probability g(f), a count is
Poisson with mean g(f). Every g grows with f, so quantiles of f give quantiles of g(f).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.special import expit, logit, ndtr, ndtri

from privgp.types import Array

POINTS, _WEIGHTS = np.polynomial.hermite_e.hermegauss(16)
SHARES = _WEIGHTS / _WEIGHTS.sum()
MOST_LOG = 50.0  # so that no power of e overflows when it is squared


@dataclass(frozen=True)
class Link:
    """A growing function g from the whole line to the mean of an outcome.

    All functions act entry by entry.

    Attributes
    ----------
    name : "logit", "probit" or "log"
    mean, slope : g and its derivative
    variance : V, of an outcome about its mean, as a function of f
    inverse : inverse of g
    reach : how far a line may be followed away from where it was fitted, in units of f

    """

    name: str
    mean: Callable[[Array], Array]
    slope: Callable[[Array], Array]
    variance: Callable[[Array], Array]
    inverse: Callable[[Array], Array]
    reach: float = np.inf

    def about(self, level: float) -> Link:
        """The same link for a function that is 0 where this one's is ``level``."""
        g, slope, variance = (
            partial(_shift, each, level) for each in (self.mean, self.slope, self.variance)
        )
        return Link(self.name, g, slope, variance, partial(_back, self.inverse, level), self.reach)

    def average(self, mean: Array, variance: Array) -> Array:
        """E g(f) for normal f, by Gauss-Hermite quadrature.

        Parameters
        ----------
        mean, variance
            Mean and variance of f, arrays of any one shape.

        """
        return _average(self.mean, mean, variance)

    def average_square(self, mean: Array, variance: Array) -> Array:
        """E g(f)^2 for normal f; arguments as in ``average``."""
        return _average(lambda f: self.mean(f) ** 2, mean, variance)

    def average_slope(self, mean: Array, variance: Array) -> Array:
        """E g'(f) for normal f; arguments as in ``average``."""
        return _average(self.slope, mean, variance)

    def average_variance(self, mean: Array, variance: Array) -> Array:
        """E V(f) for normal f; arguments as in ``average``."""
        return _average(self.variance, mean, variance)


def _shift(g: Callable[[Array], Array], level: float, f: Array) -> Array:
    return g(f + level)


def _back(inverse: Callable[[Array], Array], level: float, mean: Array) -> Array:
    return inverse(mean) - level


def _average(g: Callable[[Array], Array], mean: Array, variance: Array) -> Array:
    """E g(f) for normal f, by Gauss-Hermite quadrature; of any shape."""
    std = np.sqrt(np.maximum(variance, 0.0))
    return np.asarray(sum(w * g(mean + x * std) for x, w in zip(POINTS, SHARES, strict=True)))


# The variance of a label. Both links have p(-f) = 1 - p(f), so nothing is lost near 1.
def _logit_variance(f: Array) -> Array:
    return np.asarray(expit(f) * expit(-f))


def _probit_variance(f: Array) -> Array:
    return np.asarray(ndtr(f) * ndtr(-f))


def _density(f: Array) -> Array:
    return np.asarray(np.exp(-0.5 * f * f) / np.sqrt(2.0 * np.pi))


def _power(f: Array) -> Array:
    return np.asarray(np.exp(np.clip(f, -MOST_LOG, MOST_LOG)))


LOGIT = Link("logit", expit, _logit_variance, _logit_variance, logit)
PROBIT = Link("probit", ndtr, _density, _probit_variance, ndtri)
LOG = Link("log", _power, _power, _power, np.log, 2.0)
LINKS = {link.name: link for link in (LOGIT, PROBIT, LOG)}
LABEL_LINKS = (LOGIT.name, PROBIT.name)
