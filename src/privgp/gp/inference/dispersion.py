"""How much counts scatter: the variance of a count over its mean, from a noisy sum of squares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from privgp.gp.priors import Hyperparameters
from privgp.types import Array, Integers

GRID = np.geomspace(0.1, 200.0, 301)  # of the variance of a count over its mean
PRIOR_MEAN, PRIOR_STD = 0.4, 1.0  # of its logarithm, which is 0 of a Poisson distribution
CAUTION = 0.8  # the quantile that the function is learned with: too little scatter bends it most


@dataclass(frozen=True)
class Squares:
    """What the measured sum of squares is of: ``sum e_i (y_i - middle)^2``, less the middle of the bounds.

    Attributes
    ----------
    inputs : array, (inputs, columns)
        The places of the rows.
    index : array, (rows,)
        The place of every row.
    expected : array, (rows,)
        What every count would be at the unit rate.
    shares : array, (rows,)
        The factors e_i.
    middle : float
        Of the bounds.
    energy, noise_std : float
        The measured sum, and the std of its noise.
    matrix : array, (measured, inputs)
        Of the sums of counts that were measured beside it.
    row_weights : array, (rows,)
        The factor of every count in these.
    values, sum_std : array, (measured,), and float
        These sums, and the std of their noise.
    repeats : array, (rows,)
        How many rows every entry above stands for.

    """

    inputs: Array
    index: Integers
    expected: Array
    shares: Array
    middle: float
    energy: float
    noise_std: float
    matrix: Array
    row_weights: Array
    values: Array
    sum_std: float
    repeats: Array

    def log_density(self, mean: Array, variance: Array) -> Array:
        """Of every dispersion of the grid, up to a constant, (grid,).

        With m_i the mean of a count, ``sum e_i (y_i - middle)^2`` is ``sum e_i (m_i - middle)^2``, plus
        ``2 sum e_i (m_i - middle) (y_i - m_i)``, which the measured sums of counts tell, plus what
        counts scatter about m_i.

        Parameters
        ----------
        mean, variance : array, (inputs,)
            Of the rate over its unit at every place.

        """
        e, g, B = self.shares, self.row_weights, self.matrix
        m, v = self.expected * mean[self.index], self.expected**2 * variance[self.index]
        off, ones = m - self.middle, self.repeats * e
        squares = ones * e

        def at_inputs(values: Array) -> Array:
            sums = np.bincount(self.index, values * self.repeats, minlength=B.shape[1])
            return np.asarray(sums, dtype=np.float64)

        told = B @ at_inputs(e * g * m * off)
        covariance = (B * at_inputs(g * g * m)) @ B.T + self.sum_std**2 * np.eye(len(B))
        carried = np.linalg.solve(covariance, told)
        crossed = float(carried @ (self.values - B @ at_inputs(g * m)))
        found = self.energy - float(ones @ (off**2 + v)) - 2.0 * crossed
        untold = max(float(squares @ (off**2 * m)) - float(carried @ told), 0.0)
        total, each, square = float(ones @ m), float(squares @ m), float(squares @ m**2)
        fourth = GRID * (1.0 + 6.0 * GRID * np.maximum(GRID - 1.0, 0.0)) * each
        spread = self.noise_std**2 + 2.0 * GRID**2 * square + fourth + 4.0 * GRID * untold
        logs = -0.5 * np.square((np.log(GRID) - PRIOR_MEAN) / PRIOR_STD)
        return np.asarray(logs - 0.5 * (found - GRID * total) ** 2 / spread - 0.5 * np.log(spread))


def cautious(logs: Array) -> float:
    """A dispersion that is rather too large than too small, from its log density."""
    return float(_quantiles(logs, np.array([CAUTION]))[0])


def average_over(models: Sequence[Hyperparameters], logs: Array) -> tuple[Hyperparameters, ...]:
    """The models, each with a dispersion of its own: together they have its distribution."""
    order = np.random.default_rng(4).permutation(len(models))
    weights = np.array([models[i].weight for i in order])
    levels = (np.cumsum(weights) - 0.5 * weights) / weights.sum()
    found = dict(zip(order.tolist(), _quantiles(logs, levels).tolist(), strict=True))
    return tuple(replace(model, noise_variance=found[i]) for i, model in enumerate(models))


def _quantiles(logs: Array, levels: Array) -> Array:
    shares = np.exp(logs - logs.max())
    below = np.cumsum(shares) - 0.5 * shares
    return np.asarray(np.exp(np.interp(levels, below / shares.sum(), np.log(GRID))))
