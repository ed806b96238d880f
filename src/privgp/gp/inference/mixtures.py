"""A mixture of normal distributions at every point, and its quantiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr, ndtri

from privgp.types import Array

STEPS = 60  # at most
CLOSE = 1e-8  # of the std: a step as small as this is the last one
SHORT = 1e-3  # of the least std of a component: after such a step about its cube is left
LEAST_INSIDE = 1e-6
DENSITY = 1.0 / np.sqrt(2.0 * np.pi)


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

        Each lies between the least and the largest quantile of a component.
        """
        std = np.sqrt(np.maximum(self.variances, 1e-300))
        each = [self.means + ndtri(level) * std for level in levels]
        return np.array(
            [
                self._find(level, one.min(axis=0), one.max(axis=0))
                for level, one in zip(levels, each, strict=True)
            ]
        )

    def quantiles_within(self, levels: Sequence[float], low: float, high: float) -> Array:
        """The same of what is known to lie in [low, high].

        If less than 1e-6 of the mixture lies inside, its quantiles are clipped instead.
        """
        first, last = self.below(low), self.below(high)
        inside, ends = last - first, np.full((2, len(first)), ((low,), (high,)))
        out = np.array([self._find(first + level * inside, *ends) for level in levels])
        if np.all(inside > LEAST_INSIDE):
            return out
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

    def _find(self, level: Array | float, low: Array, high: Array) -> Array:
        """Where the share below is ``level``, between two ends: Halley's steps, halvings where these leave
        the ends, (points,)."""
        std = np.sqrt(np.maximum(self.variances, 1e-300))
        level, open_ = np.broadcast_to(level, low.shape), np.arange(len(low))
        low, high, weights = low.copy(), high.copy(), self.weights
        mean = self.mean
        spread = np.sqrt(weights @ (self.variances + np.square(self.means - mean)))
        safe = np.clip(level, 1e-12, 1.0 - 1e-12)
        out = np.clip(mean + ndtri(safe) * spread, low, high)
        centres, rates = self.means, 1.0 / std
        for _ in range(STEPS):
            x = out[open_]
            z = (x - centres) * rates
            excess = weights @ ndtr(z) - level[open_]
            density = np.exp(-0.5 * z * z) * rates
            slope = weights @ density * DENSITY
            bend = -(weights @ (density * z * rates)) * DENSITY
            low[open_] = np.where(excess < 0.0, x, low[open_])
            high[open_] = np.where(excess < 0.0, high[open_], x)
            step = excess / np.maximum(slope, 1e-300)
            # Halley's step, between half and twice as far as Newton's
            turn = 1.0 - 0.5 * step * bend / np.maximum(slope, 1e-300)
            moved = x - step / np.clip(turn, 0.5, 2.0)
            a, b = low[open_], high[open_]
            inside = (moved >= a) & (moved <= b)
            moved = np.where(inside, moved, 0.5 * (a + b))
            out[open_] = moved
            length = np.abs(moved - x)
            # a mixture of certain values has no slope: halved until nothing lies between
            steep = slope * spread[open_] > LEAST_INSIDE
            far = length > np.where(steep, CLOSE, 1e-12) * spread[open_]
            far &= ~(inside & steep & (length * rates.max(axis=0) < SHORT))
            if not np.any(far):
                break
            open_, centres, rates = open_[far], centres[:, far], rates[:, far]
        return np.asarray(out)
