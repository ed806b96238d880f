"""The Gaussian process given noisy linear measurements: mean and covariance anywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self, cast

import numpy as np
from scipy.linalg import cho_solve, solve_triangular
from scipy.special import ndtr, ndtri

from privgp.gp.changes import values
from privgp.gp.inference.evidence import condition
from privgp.gp.kernels.evaluate import carry, constant_variance, diagonal
from privgp.gp.measurement import Functionals, Measurement
from privgp.gp.priors import Hyperparameters, of_one_kernel
from privgp.types import Array

BLOCK_ENTRIES = 2**21
MOST_KEPT = 2**17  # moments that are kept for the next question


@dataclass(frozen=True)
class Component:
    """The posterior under one model.

    f(x) has mean ``k(x, Z) mean_weights`` and variance ``k(x, x) - |half k(Z, x)|^2``.

    Attributes
    ----------
    model : with its weight in the mixture
    nodes : Z, (nodes, columns)
    mean_weights : (nodes,)
    weights : (measured, nodes), of the functionals
    factor : lower Cholesky factor of cov(t)
    noise_variances : (measured,), of the noise for privacy

    """

    model: Hyperparameters
    nodes: Array
    mean_weights: Array
    weights: Array
    factor: Array
    noise_variances: Array

    @cached_property
    def half(self) -> Array:
        """What variances need, and means do not, (measured, nodes)."""
        half = solve_triangular(self.factor, self.weights, lower=True, check_finite=False)
        return np.asarray(half)

    @cached_property
    def heights(self) -> Array:
        """The changes at the nodes, (changes, nodes)."""
        return values(self.model.changes, self.nodes).T

    @cached_property
    def _variance(self) -> float | None:
        """The prior variance without the changes, if it is the same everywhere."""
        return constant_variance(self.model.kernel)

    def variances(self, X: Array, half: Array) -> Array:
        """Variances of f at the rows of X, (rows,); ``half``: k(x, Z) times the transposed half."""
        left: Array | float | None = self._variance
        if left is None:
            left = diagonal(self.model.kernel, self.model.input_map(X))
        if self.model.changes:
            own = values(self.model.changes, X)
            left = left + np.einsum("ij,ij->i", own, own)
        return np.asarray(np.maximum(left - np.einsum("ij,ij->i", half, half), 0.0))


def mean_weights_of(c: Component) -> Array:
    """What k(x, Z) is multiplied with for the mean, (nodes, 1)."""
    return c.mean_weights[:, None]


@dataclass(frozen=True)
class Posterior:
    """A mixture of Gaussian processes, one component per model.

    It is post-processing of what was published: deterministic and free to query.

    Attributes
    ----------
    components : one per model
    centre : a constant that is added to every mean, in units of the outputs

    """

    components: tuple[Component, ...]
    centre: float

    @property
    def without_link(self) -> Self:
        """The posterior of the means of outputs, on whose scale measurements are planned."""
        return self

    def at_zero(self, functionals: Functionals) -> float:
        """What would be measured if the function were 0 everywhere."""
        return 0.0

    @property
    def noise_variance(self) -> float:
        """The variance of an output about the function: the square of the expected std.

        The expected variance would be ruled by the least plausible, noisiest models.
        """
        typical = sum(c.model.weight * c.model.noise_variance**0.5 for c in self.components)
        return float(typical**2)

    @cached_property
    def _of_one_kernel(self) -> list[list[int]]:
        """The places of the components, grouped by kernel, map and nodes."""
        nodes = [id(c.nodes) for c in self.components]
        groups = of_one_kernel([c.model for c in self.components])
        return [
            [i for i in places if nodes[i] == one]
            for places in groups
            for one in dict.fromkeys(nodes[i] for i in places)
        ]

    def blocks(self, X: Array) -> Iterator[slice]:
        """Rows of X, as many at a time as memory is for."""
        step = max(1, BLOCK_ENTRIES // max(len(self.components[0].nodes), 1))
        return (slice(first, first + step) for first in range(0, len(X), step))

    def products(
        self, X: Array, *weights_of: Callable[[Component], Array]
    ) -> Iterator[tuple[int, Component, list[Array]]]:
        """Every component, its place, and k(x, Z) times each of the weights that belong to it, (nodes,
        some), at the rows of X. A kernel is evaluated once for all that have it."""
        mapped: dict[object, tuple[Array, Array]] = {}
        for places in self._of_one_kernel:
            group = [self.components[i] for i in places]
            first, map_ = group[0], group[0].model.input_map
            if (key := (id(first.nodes), map_.key)) not in mapped:
                mapped[key] = map_(X), map_(first.nodes)
            weights = [[of(c) for c in group] for of in weights_of]
            joined = carry(first.model.kernel, *mapped[key], *map(np.hstack, weights))
            pairs = zip(joined, weights, strict=True)
            found = [
                np.hsplit(out, np.cumsum([w.shape[1] for w in each])[:-1]) for out, each in pairs
            ]
            for place, (i, c) in enumerate(zip(places, group, strict=True)):
                parts = [each[place] for each in found]
                if c.model.changes:
                    own = values(c.model.changes, X)
                    for out, each in zip(parts, weights, strict=True):
                        out += own @ (c.heights @ each[place])
                yield i, c, parts

    def _moments(self, X: Array) -> tuple[Array, Array]:
        """Means and variances at the rows of X under every component, (components, rows). The last few
        are kept, as a mean and its interval are asked for together."""
        known, kept = self.__dict__.get("_last", (None, None))
        if known is not None and np.array_equal(known, X):
            return cast(tuple[Array, Array], kept)
        means, variances = np.empty((2, len(self.components), len(X)))
        for i, c, (mean, half) in self.products(X, mean_weights_of, lambda c: c.half.T):
            means[i], variances[i] = mean[:, 0], c.variances(X, half)
        if means.size <= MOST_KEPT:
            self.__dict__["_last"] = X.copy(), (means, variances)
        return means, variances

    def mixture(self, X: Array) -> Mixture:
        """The distribution of f at every row of X."""
        means, variances = np.empty((2, len(self.components), len(X)))
        for rows in self.blocks(X):
            means[:, rows], variances[:, rows] = self._moments(X[rows])
        weights = np.array([c.model.weight for c in self.components])
        noises = np.array([c.model.noise_variance for c in self.components])
        return Mixture(means + self.centre, variances, weights / weights.sum(), noises)

    def mean_at(self, X: Array) -> Array:
        """The mean of f at every row of X, (rows,), as ``mean_and_variance`` has it, at less cost."""
        mean = np.zeros(len(X))
        for rows in self.blocks(X):
            means: list[Array] = [mean] * len(self.components)
            for i, _, (found,) in self.products(X[rows], mean_weights_of):
                means[i] = found[:, 0]
            for c, m in zip(self.components, means, strict=True):
                mean[rows] += c.model.weight * m
        return mean + self.centre

    def mean_and_variance(self, X: Array) -> tuple[Array, Array]:
        """Mean and variance of f at every row of X, (rows,) each."""
        mean, square = np.zeros(len(X)), np.zeros(len(X))
        for rows in self.blocks(X):
            for c, m, v in zip(self.components, *self._moments(X[rows]), strict=True):
                mean[rows] += c.model.weight * m
                square[rows] += c.model.weight * (v + m * m)
        return mean + self.centre, np.maximum(square - mean * mean, 0.0)

    def privacy_variance(self, X: Array) -> Array:
        """The part of the variance at every row of X that the noise for privacy makes, (rows,)."""
        out = np.zeros(len(X))
        for rows in self.blocks(X):
            each = np.empty((len(self.components), len(X[rows])))
            for i, c, (half,) in self.products(X[rows], lambda c: c.half.T):
                W = solve_triangular(c.factor, half.T, lower=True, trans="T")
                each[i] = c.model.weight * (c.noise_variances @ np.square(W))
            out[rows] = sum(each)
        return out

    def mean_and_covariance(self, X: Array) -> tuple[Array, Array]:
        """Mean of f at the rows of X, (rows,), and their full covariance matrix, (rows, rows)."""
        released, square = self.mean_at(X), np.zeros((len(X), len(X)))
        mean = released - self.centre
        for c in self.components:
            cross = c.model.covariance(X, c.nodes)
            m = cross @ c.mean_weights
            half = cross @ c.half.T
            square += c.model.weight * (c.model.covariance(X) - half @ half.T + np.outer(m, m))
        return released, square - np.outer(mean, mean)


def posterior(
    functionals: Functionals,
    measurement: Measurement,
    models: Sequence[Hyperparameters],
    centre: float,
) -> Posterior:
    """Condition every model on the measurement.

    Parameters
    ----------
    functionals, measurement
        The measured functionals, and their noisy values.
    models
        Their weights sum to 1.
    centre
        The middle of the outputs' bounds, which the measured outputs were taken about.

    """
    components: dict[int, Component] = {}
    for places in of_one_kernel(models):
        smooth = models[places[0]].smooth(functionals.nodes)
        for i in places:
            components[i] = _component(functionals, measurement, models[i], smooth)
    return Posterior(tuple(components[i] for i in range(len(models))), centre)


def _component(
    functionals: Functionals, measurement: Measurement, model: Hyperparameters, smooth: Array
) -> Component:
    given = condition(functionals, measurement, model, smooth)
    return Component(
        model=model,
        nodes=functionals.nodes,
        mean_weights=functionals.weights.T @ given.solved,
        weights=functionals.weights,
        factor=given.factor,
        noise_variances=given.noise_variances,
    )


def mean_map(
    functionals: Functionals, measurement: Measurement, model: Hyperparameters, X: Array
) -> Array:
    """W with posterior mean ``W t`` at the rows of X under one model, (rows, measured).

    Noise is taken for normal, so that the mean is linear in the numbers.
    """
    given = condition(functionals, replace(measurement, is_laplace=False), model)
    cross = model.covariance(X, functionals.nodes) @ functionals.weights.T
    return np.asarray(cho_solve((given.factor, True), cross.T, check_finite=False).T)


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
        # where almost no part of the mixture lies inside, rounding would decide
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
