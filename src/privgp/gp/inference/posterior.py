"""The Gaussian process given noisy linear measurements: mean and covariance anywhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import cho_solve, solve_triangular

from privgp.gp.functionals import Functionals
from privgp.gp.inference.evidence import condition
from privgp.gp.inference.mixtures import Mixture
from privgp.gp.measurement import Measurement
from privgp.gp.priors import Hyperparameters
from privgp.types import Array

BLOCK_ENTRIES = 2**21


@dataclass(frozen=True)
class Component:
    """The posterior under one model: f(x) has mean ``k(x, Z) mean_weights`` and variance
    ``k(x, x) - |half k(Z, x)|^2``. ``mean_weights``: (nodes,); ``half``: (measured, nodes);
    ``factor``: Cholesky factor of cov(t); ``noise_variances``: (measured,), of the noise for privacy."""

    model: Hyperparameters
    nodes: Array
    mean_weights: Array
    half: Array
    factor: Array
    noise_variances: Array

    def covariances(self, X: Array) -> Iterator[tuple[slice, Array]]:
        """k(x, Z) for every block of rows of X."""
        step = max(1, BLOCK_ENTRIES // max(len(self.nodes), 1))
        for first in range(0, len(X), step):
            rows = slice(first, first + step)
            yield rows, self.model.covariance(X[rows], self.nodes)

    def blocks(self, X: Array) -> Iterator[tuple[slice, Array, Array]]:
        """Mean and variance of f for every block of rows of X."""
        for rows, cross in self.covariances(X):
            prior = self.model.variances(X[rows])
            left = prior - np.square(cross @ self.half.T).sum(axis=1)
            yield rows, cross @ self.mean_weights, np.maximum(left, 0.0)


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

    def mixture(self, X: Array) -> Mixture:
        """The distribution of f at every row of X."""
        means, variances = np.empty((2, len(self.components), len(X)))
        for i, c in enumerate(self.components):
            for rows, mean, variance in c.blocks(X):
                means[i, rows], variances[i, rows] = mean + self.centre, variance
        weights = np.array([c.model.weight for c in self.components])
        noises = np.array([c.model.noise_variance for c in self.components])
        return Mixture(means, variances, weights / weights.sum(), noises)

    def mean_and_variance(self, X: Array) -> tuple[Array, Array]:
        """Mean and variance of f at every row of X."""
        mean, square = np.zeros(len(X)), np.zeros(len(X))
        for c in self.components:
            for rows, m, v in c.blocks(X):
                mean[rows] += c.model.weight * m
                square[rows] += c.model.weight * (v + m * m)
        return mean + self.centre, np.maximum(square - mean * mean, 0.0)

    def privacy_variance(self, X: Array) -> Array:
        """The part of the variance at every row of X that the noise for privacy makes."""
        out = np.zeros(len(X))
        for c in self.components:
            for rows, cross in c.covariances(X):
                W = solve_triangular(c.factor, c.half @ cross.T, lower=True, trans="T")
                out[rows] += c.model.weight * (c.noise_variances @ np.square(W))
        return out

    def mean_and_covariance(self, X: Array) -> tuple[Array, Array]:
        """Mean of f at the rows of X and their full covariance matrix."""
        mean, square = np.zeros(len(X)), np.zeros((len(X), len(X)))
        for c in self.components:
            cross = np.vstack([block for _, block in c.covariances(X)])
            m = cross @ c.mean_weights
            half = cross @ c.half.T
            mean += c.model.weight * m
            square += c.model.weight * (c.model.covariance(X) - half @ half.T + np.outer(m, m))
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
                nodes=functionals.nodes,
                mean_weights=functionals.weights.T @ given.solved,
                half=half,
                factor=given.factor,
                noise_variances=given.noise_variances,
            )
        )
    return Posterior(tuple(components), centre)


def mean_map(
    functionals: Functionals, measurement: Measurement, model: Hyperparameters, X: Array
) -> Array:
    """W with posterior mean ``W t`` at the rows of X under one model, (rows, measured)."""
    given = condition(functionals, replace(measurement, is_laplace=False), model)
    cross = model.covariance(X, functionals.nodes) @ functionals.weights.T
    return np.asarray(cho_solve((given.factor, True), cross.T, check_finite=False).T)
