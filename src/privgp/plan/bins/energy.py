"""How heavily to measure the sum of squared outputs where that costs accuracy.

With Laplace noise an energy of weight w makes all noise larger by w / 2. From the energy the scatter
of outputs about f is learned, and with it the width of their intervals. Too light an energy leaves the
scatter unknown, too heavy a one spends the budget on it. The weight taken makes the sum of two shares
least: that by which f's error grows, and that by which 90% intervals of outputs score worse.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privgp.gp.priors import Prior
from privgp.types import Array

WEIGHTS = np.geomspace(0.01, 0.3, 80)
STEPS = (-1.0, 0.0, 1.0)  # standard deviations of the prior
# A 90% interval whose std is wrong by a small share d has an interval score worse by the share
# z^2 d^2 / 2, z = 1.645; of a variance wrong by the share r that is z^2 r^2 / 8.
SCORE_LOSS = 1.645**2 / 8.0


@dataclass(frozen=True)
class Scatter:
    """The prior of the variance of outputs about f, in squared half-widths.

    Attributes
    ----------
    variances : low, middle and high ones, (3,)
    log_std : the prior std of their logarithm

    """

    variances: Array
    log_std: float

    @classmethod
    def of(cls, prior: Prior, half_width: float) -> Scatter:
        """From the prior of the hyperparameters; bounded outputs have no variance above 1."""
        log_std = float(prior.root[-1, -1]) if prior.noise_free else 0.0
        middle = prior.start.noise_variance / half_width**2
        return cls(np.minimum(1.0, middle * np.exp(log_std * np.array(STEPS))), log_std)


def energy_weight(
    epsilon: float, rows: int, scatter: Scatter, lightest: float, heaviest: float
) -> float:
    """The best weight of the energy for this many rows.

    Parameters
    ----------
    epsilon
        epsilon of the measurement.
    rows
        How many records there are.
    scatter
        The prior of the scatter.
    lightest, heaviest
        The variance of f to expect without an energy and with one of the largest
        weight, in squared half-widths.

    """
    growth = np.log1p(WEIGHTS / 2.0)
    power = np.log(heaviest / lightest) / growth[-1]
    error = lightest * np.exp(power * growth)
    lost = 0.5 * np.log(error) + score_lost(WEIGHTS, epsilon, rows, scatter, error)
    return float(WEIGHTS[np.argmin(lost)])


def score_lost(weights: Array, epsilon: float, rows: int, scatter: Scatter, error: Array) -> Array:
    """The share by which intervals of new outputs score worse for an uncertain scatter.

    A new output has variance ``s^2 + error``. Two things tell it: the prior, and the noisy mean
    square of the outputs, whose noise has the std ``sqrt(2) (2 + w) / (epsilon w rows)``.

    Parameters
    ----------
    weights
        w, (weights,).
    epsilon, rows, scatter
        As in ``energy_weight``.
    error
        (weights,), the variance of f for each of them.

    """
    noise = np.sqrt(2.0) * (2.0 + weights) / (epsilon * weights * rows)
    total = scatter.variances[:, None] + error
    measured = np.square(noise / total)
    before = np.square(scatter.log_std * scatter.variances[:, None] / total)
    return np.asarray(SCORE_LOSS * np.mean(measured * before / (measured + before), axis=0))
