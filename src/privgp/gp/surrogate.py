"""A Gaussian process on a finite set of settings that grows by one noisy score at a time.

It is averaged over hyperparameters: a fixed set of draws from a weak public prior, weighted by how
well each explains the scores. With ``V = L^-1 k(observed, settings)`` and ``a = L^-1 y`` a new score
at setting i adds one row to each:

    d^2 = k_t(i, i) + s^2,   v = k_t(i, .) / d,   a = (y - m_t(i)) / d
    m_{t+1} = m_t + a v,   k_{t+1}(x, x) = k_t(x, x) - v(x)^2,   log p -= a^2 / 2 + log d
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp, ndtri
from scipy.stats import qmc

from privgp.types import Array

DRAWS, FEWEST_DRAWS = 64, 8
MOST_NUMBERS = 2**25  # that the rows of all draws may hold, where fewer draws can help it
JITTER = 1e-10


@dataclass(frozen=True)
class Hyperprior:
    """Draws of hyperparameters, all equally plausible beforehand.

    Attributes
    ----------
    lengthscales : (draws, coordinates), in units of the unit cube
    stds : (draws,), of the function
    smoothness : (draws,), the Matern order (inf: squared exponential)
    mean_std : std of an unknown constant

    """

    lengthscales: Array
    stds: Array
    smoothness: Array
    mean_std: float


def robust_prior(coordinates: int, scores: int = 1, settings: int = 1) -> Hyperprior:
    """A weak prior for scores scaled to [-1, 1] over the unit cube.

    Lengthscales about 0.4 within a factor of two to three, together and each for itself; Matern
    3/2 and 5/2 by turns.

    Parameters
    ----------
    coordinates
        How many the settings have.
    scores, settings
        How many there will be; with many of them fewer draws are made, so that memory
        is enough.

    """
    draws = min(DRAWS, max(FEWEST_DRAWS, MOST_NUMBERS // (scores * settings)))
    uniform = qmc.Halton(coordinates + 2, scramble=True, rng=np.random.default_rng(1)).random(draws)
    z = ndtri(np.clip(uniform, 1e-9, 1 - 1e-9))
    return Hyperprior(
        lengthscales=0.4 * np.exp(0.8 * z[:, :1] + 0.3 * z[:, 2:]),
        stds=0.6 * np.exp(0.5 * z[:, 1]),
        smoothness=np.where(np.arange(draws) % 2 == 0, 1.5, 2.5),
        mean_std=1.0,
    )


def known_prior(coordinates: int, lengthscale: float, smoothness: float) -> Hyperprior:
    """One known kernel of variance 1 and mean 0.

    Parameters
    ----------
    coordinates
        How many the settings have.
    lengthscale
        The same along all of them.
    smoothness
        1.5, 2.5 or infinity.

    """
    scales = np.full((1, coordinates), float(lengthscale))
    return Hyperprior(scales, np.ones(1), np.full(1, float(smoothness)), 0.0)


class Surrogate:
    """The scores of settings given those observed so far.

    Parameters
    ----------
    points : (settings, coordinates), in the unit cube
    prior : draws of the hyperparameters

    Attributes
    ----------
    means, variances : (draws, settings), of the function
    log_evidence : (draws,), of the scores so far

    """

    def __init__(self, points: Array, prior: Hyperprior) -> None:
        self.points, self.prior = points, prior
        draws, count = len(prior.stds), len(points)
        top = prior.stds**2 + prior.mean_std**2
        self.means = np.zeros((draws, count))
        self.variances = np.repeat(top[:, None], count, axis=1)
        self.log_evidence = np.zeros(draws)
        self._rows = np.zeros((draws, 16, count))
        self._count = 0
        self._floor = JITTER * top

    def observe(self, place: int, value: float, noise_std: float) -> None:
        """Take in one score.

        Parameters
        ----------
        place
            Place of the setting among the points.
        value
            The noisy score.
        noise_std
            std of its noise; 0 if it is exact.

        """
        rows = self._rows[:, : self._count]
        row = self.prior_row(place) - np.matmul(rows[:, :, place][:, None, :], rows)[:, 0]
        spread = np.sqrt(np.maximum(self.variances[:, place], 0.0) + noise_std**2 + self._floor)
        row /= spread[:, None]
        step = (value - self.means[:, place]) / spread
        self.means = self.means + row * step[:, None]
        self.variances = np.maximum(self.variances - row * row, 0.0)
        self.log_evidence = self.log_evidence - 0.5 * step * step - np.log(spread)
        if self._count == self._rows.shape[1]:
            self._rows = np.concatenate([self._rows, np.zeros_like(self._rows)], axis=1)
        self._rows[:, self._count] = row
        self._count += 1

    @property
    def weights(self) -> Array:
        """How much each draw of the hyperparameters counts, (draws,)."""
        return np.asarray(np.exp(self.log_evidence - logsumexp(self.log_evidence)))

    def posterior(self) -> tuple[Array, Array]:
        """Mean and std at every setting, (settings,) each, averaged over the hyperparameters."""
        weights = self.weights
        mean = weights @ self.means
        square = weights @ (self.variances + np.square(self.means - mean))
        return mean, np.sqrt(np.maximum(square, 0.0))

    def prior_row(self, place: int) -> Array:
        """k(x_place, .) for every draw, (draws, settings)."""
        p = self.prior
        squares = np.square(self.points - self.points[place])
        r = np.sqrt(np.einsum("pc,hc->hp", squares, p.lengthscales**-2.0))
        out = np.empty_like(r)
        for order in np.unique(p.smoothness):
            rows = p.smoothness == order
            out[rows] = matern(r[rows], float(order))
        return np.asarray(out * p.stds[:, None] ** 2 + p.mean_std**2)


def matern(r: Array, order: float) -> Array:
    """The Matérn correlation at scaled distance r, of order 3/2, 5/2 or infinity."""
    if order == np.inf:
        return np.asarray(np.exp(-0.5 * r * r))
    if order == 1.5:
        a = np.sqrt(3.0) * r
        return np.asarray((1.0 + a) * np.exp(-a))
    if order == 2.5:
        a = np.sqrt(5.0) * r
        return np.asarray((1.0 + a + a * a / 3.0) * np.exp(-a))
    raise ValueError("smoothness must be 1.5, 2.5 or infinity.")
