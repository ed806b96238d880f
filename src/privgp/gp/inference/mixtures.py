"""A mixture of normal distributions at every point, and its quantiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr, ndtri

from privgp.types import Array

HALVINGS = 45
LEAST_INSIDE = 1e-6


@dataclass(frozen=True)
class Mixture:
    """A mixture of normal distributions at every point.

    Attributes
    ----------
    means, variances : (components, points)
    weights : (components,), which sum to 1
    noises : (components,), the variances of an output about the function

    """

    means: Array
    variances: Array
    weights: Array
    noises: Array

    @property
    def mean(self) -> Array:
        """At every point, (points,)."""
        return np.asarray(self.weights @ self.means)

    def of_outputs(self, low: float, high: float) -> Mixture:
        """The mixture of outputs in [low, high]: variances are at most (mean - low)(high - mean)."""
        most = (self.means - low) * (high - self.means)
        noisy = np.minimum(self.variances + self.noises[:, None], most)
        return replace(self, variances=np.maximum(self.variances, noisy))

    def below(self, values: Array | float) -> Array:
        """At every point the share of the mixture below a value there, (points,)."""
        std = np.sqrt(np.maximum(self.variances, 1e-300))
        return np.asarray(self.weights @ ndtr((values - self.means) / std))

    def quantiles(self, levels: Sequence[float]) -> Array:
        """At every point the values below which the mixture has these shares, (levels, points).

        By bisection between the least and the largest quantile of a component.
        """
        std = np.sqrt(np.maximum(self.variances, 1e-300))
        each = [self.means + ndtri(level) * std for level in levels]
        return np.array(
            [
                self._bisect(level, one.min(axis=0), one.max(axis=0))
                for level, one in zip(levels, each, strict=True)
            ]
        )

    def quantiles_within(self, levels: Sequence[float], low: float, high: float) -> Array:
        """The same of what is known to lie in [low, high].

        If less than 1e-6 of the mixture lies inside, its quantiles are clipped instead.
        """
        first, last = self.below(low), self.below(high)
        inside, ends = last - first, np.full((2, len(first)), ((low,), (high,)))
        out = [self._bisect(first + level * inside, *ends) for level in levels]
        # where next to nothing of the mixture lies inside, rounding would decide
        return np.where(inside > LEAST_INSIDE, out, np.clip(self.quantiles(levels), low, high))

    def above_within(self, value: float, low: float, high: float) -> Array:
        """At every point the share above a value of what is known to lie in [low, high], (points,).

        If less than 1e-6 of the mixture lies inside, its values are clipped instead.
        """
        if not low <= value < high:
            return np.full(self.means.shape[1], float(value < low))
        first, last, below = self.below(low), self.below(high), self.below(value)
        inside = last - first
        within = (last - below) / np.where(inside > LEAST_INSIDE, inside, 1.0)
        return np.clip(np.where(inside > LEAST_INSIDE, within, 1.0 - below), 0.0, 1.0)

    def _bisect(self, level: Array | float, low: Array, high: Array) -> Array:
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            below = self.below(middle) < level
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return np.asarray(0.5 * (low + high))
