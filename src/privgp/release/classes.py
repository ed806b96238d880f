"""What was released of labels: the probability of every class anywhere, and how uncertain it is.

Two classes have one function behind a link. More have one each, given the sums of their own class
alone: every one is a posterior on its own, and together they are moved so that they sum to 1, each in
proportion to its variance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from privgp.gp.inference.averages import mixture_draws
from privgp.gp.inference.linked import Outcomes
from privgp.gp.inference.posterior import Component, Posterior
from privgp.gp.links import Link
from privgp.gp.measurement import Functionals, Measurement
from privgp.types import Array

MIDDLE = 0.5  # of 0 and 1, about which labels are summed
LEAST = 1e-6  # of a probability among several
ROWS = 4096  # at a time: every model has a mean and a variance at each
FEW_ROWS, DRAWS = 512, 2000  # where every class has this many draws at each


def outcomes_of(functionals: Functionals, measurement: Measurement, link: Link) -> Outcomes:
    """What was measured of the labels of one class."""
    return Outcomes(functionals, measurement, link, measurement.centre or MIDDLE)


@dataclass(frozen=True)
class Probabilities:
    """``functions``: the one behind the link of the second of two classes, or one per class."""

    without_link: ClassVar[None] = None  # plans are for the probability itself
    functions: tuple[Posterior, ...]
    link: Link

    @property
    def components(self) -> tuple[Component, ...]:
        return tuple(part for each in self.functions for part in each.components)

    def at_zero(self, functionals: Functionals) -> float:
        """What would be measured of even probabilities."""
        return 0.0

    def at(self, X: Array) -> Array:
        """The probability of every class at the rows of X, (rows, classes)."""
        return np.concatenate([self._at(X[rows]) for rows in _blocks(X)])

    def _at(self, X: Array) -> Array:
        moments = [self._moments(function, X) for function in self.functions]
        if len(moments) == 1:
            second = moments[0][0]
            return np.column_stack([1.0 - second, second])
        mean, variance = (np.column_stack(each) for each in zip(*moments, strict=True))
        return _sum_to_one(mean, variance)

    def together(self, drawn: Array, X: Array) -> Array:
        """Draws of every function's probability at the rows of X, (rows, functions, draws), as draws of
        every class's, which sum to 1, (rows, classes, draws)."""
        if drawn.shape[1] == 1:
            return np.concatenate([1.0 - drawn, drawn], axis=1)
        moments = [self._moments(function, X)[1] for function in self.functions]
        return _sum_to_one(drawn, np.column_stack(moments)[:, :, None])

    def above(self, X: Array, threshold: float) -> Array:
        """The probability that each class's probability exceeds a threshold, (rows, classes)."""
        if not 0.0 < threshold < 1.0:
            classes = max(2, len(self.functions))
            return np.full((len(X), classes), float(threshold <= 0.0))
        return np.concatenate([self._above(X[rows], threshold) for rows in _blocks(X, FEW_ROWS)])

    def _above(self, X: Array, threshold: float) -> Array:
        if len(self.functions) == 1:
            mixture, at = self.functions[0].mixture(X), np.array([threshold, 1.0 - threshold])
            level, other = (float(each) for each in self.link.inverse(at))
            return np.column_stack([mixture.below(other), 1.0 - mixture.below(level)])
        rng = np.random.RandomState(0)
        each = [mixture_draws(f.mixture(X), DRAWS, rng) for f in self.functions]
        drawn = self.together(np.stack([self.link.mean(one) for one in each], axis=1), X)
        return np.asarray(np.mean(drawn > threshold, axis=2))

    def _moments(self, function: Posterior, X: Array) -> tuple[Array, Array]:
        """Mean and variance of the probability that one function gives."""
        mixture = function.mixture(X)
        first = mixture.weights @ self.link.average(mixture.means, mixture.variances)
        second = mixture.weights @ self.link.average_square(mixture.means, mixture.variances)
        return first, np.maximum(second - first**2, 0.0)

    def between(self, X: Array, levels: Sequence[float]) -> tuple[Array, Array]:
        """The ends, (rows, classes) each, of the interval between these levels."""
        ends = [self._between(X[rows], levels) for rows in _blocks(X)]
        low, high = (np.concatenate(each) for each in zip(*ends, strict=True))
        return low, high

    def _between(self, X: Array, levels: Sequence[float]) -> tuple[Array, Array]:
        each = [self.link.mean(f.mixture(X).quantiles(levels)) for f in self.functions]
        if len(each) == 1:
            low, high = each[0]
            return np.column_stack([1.0 - high, low]), np.column_stack([1.0 - low, high])
        low, high = (np.column_stack(ends) for ends in zip(*each, strict=True))
        together = self._at(X)  # that they sum to 1 may move one beyond its own interval
        return np.minimum(low, together), np.maximum(high, together)


def _sum_to_one(values: Array, variance: Array) -> Array:
    """Probabilities of classes, the second axis, moved in proportion to their variances."""
    missing = 1.0 - values.sum(axis=1, keepdims=True)
    total = np.maximum(variance.sum(axis=1, keepdims=True), 1e-300)
    moved = np.maximum(values + missing * variance / total, LEAST)
    return np.asarray(moved / moved.sum(axis=1, keepdims=True))


def _blocks(X: Array, size: int = ROWS) -> list[slice]:
    return [slice(first, first + size) for first in range(0, max(len(X), 1), size)]
