"""The papers' output: the non-private prediction plus noise at the targets, and what follows elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, ClassVar, Self

import numpy as np
from scipy.linalg import cho_solve

from privgp.gp.inference.averages import mixture_draws
from privgp.gp.inference.evidence import condition
from privgp.gp.inference.linked import Outcomes
from privgp.gp.inference.posterior import Component, Mixture, Posterior
from privgp.gp.links import Link
from privgp.gp.measurement import Functionals, Measurement
from privgp.gp.priors import Hyperparameters
from privgp.gp.smoothers import stable_cholesky
from privgp.plan.part import Part
from privgp.release.rates import RatePosterior
from privgp.types import Array, Integers, Positive


@dataclass(frozen=True)
class AtTargets:
    """``C y`` plus noise at the targets.

    Attributes
    ----------
    targets : (targets, columns)
    mean : (targets,), the released values
    model_variance : (targets,), of f about ``C y`` under the model
    noise_root : (targets, measured), with ``noise_root noise_root^T`` the covariance of the noise
    noise_variance : variance of an output about f

    """

    targets: Annotated[Array, "targets columns"]
    mean: Annotated[Array, "targets"]
    model_variance: Annotated[Array, "targets"]
    noise_root: Annotated[Array, "targets measured"]
    noise_variance: Positive

    @classmethod
    def of(cls, plan: Part, measurement: Measurement, centre: float) -> Self:
        assert plan.unbiased is not None
        R = plan.unbiased.reconstruction
        return cls(
            targets=plan.targets,
            mean=R @ measurement.values + centre,
            model_variance=plan.unbiased.variance,
            noise_root=R * measurement.noise_std,
            noise_variance=plan.start.noise_variance,
        )

    def find(self, X: Array) -> Integers:
        """The target that every row of X is, (rows,); -1 for a row that is none."""
        places = {row.tobytes(): i for i, row in enumerate(self.targets + 0.0)}
        return np.array([places.get(row.tobytes(), -1) for row in X + 0.0], dtype=np.int64)


@dataclass(frozen=True)
class Cloaked:
    """Values at the targets, and further points conditioned on them: post-processing.

    At a target it answers what was released. At another point x it answers
    ``k(x, T) k(T, T)^-1`` times the released values r, about the centre: what the model expects of f
    at x if f has these values at the targets T. Its variance is that of ``f(x)`` about this answer
    under the model, with the noise for privacy: with r = R t, a = k(x, T) k(T, T)^-1 R, S = cov(t),
    ``k(x, x) - 2 a cov(t, f(x)) + a S a^T``. At a target a is a row of R.

    Attributes
    ----------
    released : AtTargets
        The values at the targets.
    functionals : Functionals
        What was measured.
    measurement : Measurement
        Its noisy values.
    model : Hyperparameters
        The model that the values were made with.
    centre : float
        The middle of the outputs' bounds.

    """

    released: AtTargets
    functionals: Functionals
    measurement: Measurement
    model: Hyperparameters
    centre: float

    @property
    def noise_variance(self) -> float:
        """The variance of an output about the function."""
        return self.released.noise_variance

    @cached_property
    def _factor(self) -> Array:
        """The lower Cholesky factor of cov(t), (measured, measured)."""
        return condition(self.functionals, self.measurement, self.model).factor

    @cached_property
    def _target_factor(self) -> Array:
        """The lower Cholesky factor of k(T, T), (targets, targets)."""
        return stable_cholesky(self.model.covariance(self.released.targets))

    def _carry(self, X: Array, values: Array) -> Array:
        """Values at the targets, (targets, ...), carried to the rows of X, (rows, ...)."""
        at = self.released.find(X)
        out, new = values[at], at < 0
        if np.any(new):
            cross = self.model.covariance(self.released.targets, X[new])
            out[new] = cho_solve((self._target_factor, True), cross, check_finite=False).T @ values
        return np.asarray(out)

    def _root(self, X: Array) -> Array:
        """The noise for privacy at the rows of X as a linear map of unit noise, (rows, measured)."""
        return self._carry(X, self.released.noise_root)

    def mean_at(self, X: Array) -> Array:
        """The answer at every row of X, (rows,)."""
        at = self.released.find(X)
        carried = self.centre + self._carry(X, self.released.mean - self.centre)
        return np.where(at >= 0, self.released.mean[at], carried)

    def mean_and_variance(self, X: Array) -> tuple[Array, Array]:
        """The answer and the variance of f about it at every row of X, (rows,) each."""
        at = self.released.find(X)
        exact = self.released.model_variance[at] + self.privacy_variance(X)
        if np.all(at >= 0):
            return self.released.mean[at], exact
        a, cross = self._weights(X)
        variance = self.model.variances(X) - 2.0 * np.einsum("ij,ji->i", a, cross)
        variance += np.square(a @ self._factor).sum(axis=1)
        return self.mean_at(X), np.where(at >= 0, exact, np.maximum(variance, 0.0))

    def _weights(self, X: Array) -> tuple[Array, Array]:
        """a, (rows, measured), and cov(t, f(X)), (measured, rows)."""
        a = self._root(X) / self.measurement.noise_std
        f = self.functionals
        return a, f.weights @ self.model.covariance(f.nodes, X)

    def mixture(self, X: Array) -> Mixture:
        """The distribution of f at every row of X."""
        mean, variance = self.mean_and_variance(X)
        return Mixture(mean[None], variance[None], np.ones(1), np.array([self.noise_variance]))

    def mean_and_covariance(self, X: Array) -> tuple[Array, Array]:
        """The answers at the rows of X, (rows,), and the covariance of f about them, (rows, rows)."""
        a, cross = self._weights(X)
        both = a @ cross
        half = a @ self._factor
        covariance = self.model.covariance(X) - both - both.T + half @ half.T
        mean, variance = self.mean_and_variance(X)
        np.fill_diagonal(covariance, variance)
        return mean, covariance

    def privacy_variance(self, X: Array) -> Array:
        """The part of the variance that the noise for privacy makes, (rows,)."""
        return np.asarray(np.square(self._root(X)).sum(axis=1))


Answer = Cloaked | Posterior | RatePosterior  # what predicts a number, a count or a rate


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
