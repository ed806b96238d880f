"""Posteriors of many datasets at once, and paths of them: with one input, and with several.

Under the exponential kernel with one input the function is a Markov chain along the line. Its posterior
is exact in one pass over the sorted inputs and points and one pass back, for all datasets at once: the
paper's numbers of draws take seconds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from privgp.gp.kernels.evaluate import evaluate
from privgp.models.function.tune import ManyPosteriors, PriorDraws
from privgp.types import Array

NUGGET = 1e-8


@dataclass(frozen=True)
class LineDraws(PriorDraws):
    """Datasets of one input, and functions behind them."""

    def posteriors(self, kernel: Kernel) -> LinePosteriors:
        """Of the exponential kernel, whose lengthscale is read."""
        return LinePosteriors(self, float(kernel.length_scale))


@dataclass(frozen=True)
class FieldDraws(PriorDraws):
    """Datasets of several inputs, and functions behind them."""

    def posteriors(self, kernel: Kernel) -> FieldPosteriors:
        """Of any kernel of variance 1."""
        return FieldPosteriors(self, kernel)


class FieldPosteriors(ManyPosteriors):
    """Posteriors whose paths are drawn too."""

    def __init__(self, draws: PriorDraws, kernel: Kernel) -> None:
        super().__init__(draws, kernel)
        self._prior = evaluate(kernel, draws.points)
        self._prior.flat[:: len(self._prior) + 1] += NUGGET

    def deviations(self, ridge: float, repeats: int, rng: np.random.Generator) -> Array:
        """Paths less their mean, (draws, repeats, points), the kernel having variance 1."""
        half = self._crosses / np.sqrt(self._spectra + ridge)[:, None, :]
        root = np.linalg.cholesky(self._prior - half @ half.transpose(0, 2, 1))
        normals = rng.standard_normal((len(root), self._prior.shape[0], repeats))
        return np.asarray((root @ normals).transpose(0, 2, 1))


class LinePosteriors:
    """Posteriors of all draws under ``exp(-|x - x'| / l)``, for any ridge."""

    def __init__(self, draws: LineDraws, lengthscale: float) -> None:
        count, points = len(draws.truth), len(draws.points)
        where = np.hstack([np.tile(draws.points[:, 0], (count, 1)), draws.inputs[..., 0]])
        order = np.argsort(where, axis=1)
        outputs = np.hstack([np.zeros((count, points)), draws.outputs])
        gaps = np.diff(np.take_along_axis(where, order, axis=1), axis=1)
        # one row per step along the line, one column per draw
        self._decays = np.exp(-gaps / lengthscale).T
        self._outputs = np.take_along_axis(outputs, order, axis=1).T
        self._seen = (order >= points).T
        self._places = np.argsort(order, axis=1)
        self._points = points

    def at(self, ridge: float) -> tuple[Array, Array]:
        """Mean and variance at the points, each (draws, points)."""
        mean, variance = self._smooth(ridge)
        places = self._places[:, : self._points]
        return (
            np.take_along_axis(mean.T, places, axis=1),
            np.take_along_axis(variance.T, places, axis=1),
        )

    def effective_dimension(self, ridge: float) -> Array:
        """``tr K (K + r^2 I)^-1``, (draws,): the posterior variances at the inputs over r^2."""
        _, variance = self._smooth(ridge)
        return np.asarray((variance * self._seen).sum(axis=0) / ridge)

    def deviations(self, ridge: float, repeats: int, rng: np.random.Generator) -> Array:
        """Paths less their mean, (draws, repeats, points)."""
        _, variances = self._filter(ridge)
        gains, predicted = self._back(variances)
        kept = np.sqrt(np.maximum(variances[:-1] - gains**2 * predicted, 0.0))
        paths = rng.standard_normal((len(variances), variances.shape[1], repeats))
        paths[-1] *= np.sqrt(variances[-1])[:, None]
        for i in range(len(gains) - 1, -1, -1):
            paths[i] *= kept[i][:, None]
            paths[i] += gains[i][:, None] * paths[i + 1]
        places = self._places[:, None, : self._points]
        return np.take_along_axis(paths.transpose(1, 2, 0), places, axis=2)

    def _filter(self, ridge: float) -> tuple[Array, Array]:
        """Mean and variance at every step given the outputs up to there."""
        means, variances = np.empty_like(self._outputs), np.empty_like(self._outputs)
        mean, variance = np.zeros(means.shape[1]), np.ones(means.shape[1])
        for i, (seen, output) in enumerate(zip(self._seen, self._outputs, strict=True)):
            if i:
                decay = self._decays[i - 1]
                mean, variance = decay * mean, 1.0 - decay**2 * (1.0 - variance)
            gain = seen * variance / (variance + ridge)
            mean, variance = mean + gain * (output - mean), variance * (1.0 - gain)
            means[i], variances[i] = mean, variance
        return means, variances

    def _back(self, variances: Array) -> tuple[Array, Array]:
        """From a step's successor back to it: the gains, and the variances of the successors."""
        predicted = 1.0 - self._decays**2 * (1.0 - variances[:-1])
        return self._decays * variances[:-1] / predicted, predicted

    def _smooth(self, ridge: float) -> tuple[Array, Array]:
        """Mean and variance at every step given all outputs."""
        means, variances = self._filter(ridge)
        gains, predicted = self._back(variances)
        for i in range(len(gains) - 1, -1, -1):
            means[i] += gains[i] * (means[i + 1] - self._decays[i] * means[i])
            variances[i] += gains[i] ** 2 * (variances[i + 1] - predicted[i])
        return means, np.maximum(variances, 1e-12)
