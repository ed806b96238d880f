"""The papers' output: the non-private prediction plus noise at the targets, and what follows elsewhere."""

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Self

import numpy as np
from scipy.linalg import cho_solve

from privgp.gp.inference.evidence import condition
from privgp.gp.inference.mixtures import Mixture
from privgp.gp.inference.posterior import Posterior
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
