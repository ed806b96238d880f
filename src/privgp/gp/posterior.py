"""The Gaussian process given noisy linear measurements: mean and covariance anywhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_solve, solve_triangular

from privgp.gp.changes import values
from privgp.gp.evidence import condition, fit
from privgp.gp.functionals import Functionals
from privgp.gp.kernels.evaluate import diagonal, evaluate
from privgp.gp.measurement import Measurement
from privgp.gp.priors import Hyperparameters
from privgp.types import Array

BLOCK_ENTRIES = 2**21


@dataclass(frozen=True)
class Component:
    """The posterior under one model: f(x) has mean ``k(x, Z) mean_weights`` and variance
    ``k(x, x) - |half k(Z, x)|^2``. ``mean_weights``: (nodes,); ``half``: (measured, nodes);
    ``factor``: Cholesky factor of cov(t); ``noise_std``: of every measured number."""

    model: Hyperparameters
    nodes: Array
    mean_weights: Array
    half: Array
    factor: Array
    noise_std: float
    changes: Array | None = None


@dataclass(frozen=True)
class Posterior:
    """A mixture of Gaussian processes, one component per model; deterministic and free to query."""

    components: tuple[Component, ...]
    centre: float

    @property
    def noise_variance(self) -> float:
        """The variance of an output about the function: the square of the expected std.

        The expected variance would be ruled by the least plausible, noisiest models.
        """
        typical = sum(c.model.weight * c.model.noise_variance**0.5 for c in self.components)
        return float(typical**2)

    def moments(self, X: Array) -> tuple[Array, Array, Array]:
        """Mean and variance of f at every row of X under every component, and their weights."""
        mean, variance = np.zeros((2, len(self.components), len(X)))
        index = {id(c): i for i, c in enumerate(self.components)}
        for c, rows, cross in self._blocks(X):
            v = diagonal(c.model.kernel, cross) - np.square(cross @ c.half.T).sum(axis=1)
            if c.model.changes:
                v += np.square(values(c.model.changes, X[rows])).sum(axis=1)
            mean[index[id(c)], rows] = cross @ c.mean_weights
            variance[index[id(c)], rows] = np.maximum(v, 0.0)
        return mean + self.centre, variance, np.array([c.model.weight for c in self.components])

    def mean_and_variance(self, X: Array) -> tuple[Array, Array]:
        """Mean and variance of f at every row of X."""
        mean, square = np.zeros(len(X)), np.zeros(len(X))
        for c, rows, cross in self._blocks(X):
            m = cross @ c.mean_weights
            v = diagonal(c.model.kernel, cross) - np.square(cross @ c.half.T).sum(axis=1)
            if c.model.changes:
                v += np.square(values(c.model.changes, X[rows])).sum(axis=1)
            mean[rows] += c.model.weight * m
            square[rows] += c.model.weight * (np.maximum(v, 0.0) + m * m)
        return mean + self.centre, np.maximum(square - mean * mean, 0.0)

    def privacy_variance(self, X: Array) -> Array:
        """The part of the variance at every row of X that the noise for privacy makes."""
        out = np.zeros(len(X))
        for c, rows, cross in self._blocks(X):
            W = solve_triangular(c.factor, c.half @ cross.T, lower=True, trans="T")
            out[rows] += c.model.weight * c.noise_std**2 * np.square(W).sum(axis=0)
        return out

    def _blocks(self, X: Array) -> Iterator[tuple[Component, slice, Array]]:
        """Every component with k(x, Z) for every block of rows of X."""
        for c in self.components:
            mapped = c.model.input_map(X)
            step = max(1, BLOCK_ENTRIES // max(len(c.nodes), 1))
            for first in range(0, len(X), step):
                rows = slice(first, first + step)
                cross = evaluate(c.model.kernel, mapped[rows], c.nodes)
                if c.model.changes:
                    cross = cross + values(c.model.changes, X[rows]) @ c.changes.T
                yield c, rows, cross

    def mean_and_covariance(self, X: Array) -> tuple[Array, Array]:
        """Mean of f at the rows of X and their full covariance matrix."""
        mean, square = np.zeros(len(X)), np.zeros((len(X), len(X)))
        for c in self.components:
            Z = c.model.input_map(X)
            cross = evaluate(c.model.kernel, Z, c.nodes)
            m = cross @ c.mean_weights
            half = cross @ c.half.T
            mean += c.model.weight * m
            square += c.model.weight * (
                evaluate(c.model.kernel, Z) - half @ half.T + np.outer(m, m)
            )
        return mean + self.centre, square - np.outer(mean, mean)


def posterior(
    functionals: Functionals,
    measurement: Measurement,
    models: Sequence[Hyperparameters],
    centre: float,
) -> Posterior:
    """Condition every model on the measurement."""
    components = []
    for model in models:
        given = condition(functionals, measurement, model)
        half = solve_triangular(given.factor, functionals.weights, lower=True, check_finite=False)
        components.append(
            Component(
                model=model,
                nodes=model.input_map(functionals.nodes),
                mean_weights=functionals.weights.T @ given.solved,
                half=half,
                factor=given.factor,
                noise_std=measurement.noise_std,
                changes=values(model.changes, functionals.nodes),
            )
        )
    return Posterior(tuple(components), centre)


def mean_map(
    functionals: Functionals, measurement: Measurement, model: Hyperparameters, X: Array
) -> Array:
    """W with posterior mean ``W t`` at the rows of X under one model, (rows, measured)."""
    nodes = model.input_map(functionals.nodes)
    result = fit(functionals, measurement, model.kernel, model.noise_variance, nodes)
    cross = evaluate(model.kernel, model.input_map(X), nodes) @ functionals.weights.T
    return np.asarray(cho_solve((result.factor, True), cross.T, check_finite=False).T)
