"""A mixture of normal distributions at every point, and its quantiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr, ndtri

from privgp.types import Array

HALVINGS = 45


@dataclass(frozen=True)
class Mixture:
    """``means``, ``variances``: (components, points); ``weights``, ``noises``: (components,).

    ``weights`` sum to 1; ``noises`` are the variances of an output about the function.
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
        """The mixture of outputs in [low, high], which have variance (mean - low)(high - mean) at
        the most."""
        most = (self.means - low) * (high - self.means)
        noisy = np.minimum(self.variances + self.noises[:, None], most)
        return replace(self, variances=np.maximum(self.variances, noisy))

    def quantiles(self, levels: Sequence[float]) -> Array:
        """At every point the values below which the mixture has these shares, (levels, points).

        By bisection between the least and the largest quantile of a component.
        """
        std = np.sqrt(np.maximum(self.variances, 1e-300))
        out = []
        for level in levels:
            each = self.means + ndtri(level) * std
            low, high = each.min(axis=0), each.max(axis=0)
            for _ in range(HALVINGS):
                middle = 0.5 * (low + high)
                below = self.weights @ ndtr((middle - self.means) / std) < level
                low, high = np.where(below, middle, low), np.where(below, high, middle)
            out.append(0.5 * (low + high))
        return np.array(out)
