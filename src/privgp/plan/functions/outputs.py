"""How far one output moves a whole posterior-mean function, in the norm of its kernel.
With ``K' = k(X, X)`` and ``K = K' + s^2 I`` it is ``f = k(., X) K^-1 y``; an output that changes by
d moves it by at most ``d max_j sqrt([K^-1 K' K^-1]_jj)``. Proof: docs/proofs/function.md."""

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from sklearn.gaussian_process.kernels import Kernel

from privgp.gp.arithmetic import rounding
from privgp.gp.kernels.evaluate import diagonal, evaluate, mean_variance
from privgp.gp.smoothers import JITTERS, stable_cholesky
from privgp.privacy.noise import GaussianNoise, gaussian_noise
from privgp.privacy.sensitivity import column_norms
from privgp.types import Array, Positive, added_field


def dominance(kernel: Kernel, noise_variance: float | Array, inputs: Array, counts: Array) -> float:
    """The dominance of K for ``counts`` rows per input, rounded down; not positive if K has none.

    Parameters
    ----------
    kernel, noise_variance
        Kernel and noise variance of K; the latter may be one number per input.
    inputs
        (inputs, columns), distinct.
    counts
        (inputs,).

    """
    v = diagonal(kernel, inputs)
    sums = np.abs(evaluate(kernel, inputs)) @ counts  # the diagonal once, others in full
    sums *= 1.0 + rounding(len(inputs) + 64)
    largest = float(v.max()) + float(np.max(noise_variance))
    return float(np.min(2.0 * v + noise_variance - sums)) - rounding(8) * largest


def inducing_limit(variance: float, noise_variance: float) -> float:
    """``sqrt(v / (v + s^2)) / s``: how far one unit of output moves a function through inducing inputs.

    It holds for any rows and any inducing inputs. Varah's bound of their inverse kernel matrix, which
    the papers suggest, is never less.

    Parameters
    ----------
    variance
        The largest k(x, x) of an input.
    noise_variance
        s^2, of an output about the function.

    """
    share = variance / (variance + noise_variance)
    return float(np.sqrt(share / noise_variance)) * (1.0 + rounding(8))


def varah_limit(dominance: float) -> float:
    """``1 / dominance``, at least the infinity norm of K^-1; refuses what is not dominant."""
    if not (np.isfinite(dominance) and dominance > 0):
        raise ValueError(
            "K is not strictly diagonally dominant, so Varah's bound does not apply: use "
            "sensitivity='exact', a shorter lengthscale, or a larger noise_variance."
        )
    return (1.0 / dominance) * (1.0 + rounding(4))


SENSITIVITIES = ("exact", "infinity", "nonnegative", "varah")
MAX_POINTS = 20_000
BLOCK = 256
NOT_DEFINITE = "the kernel matrix is not positive definite: raise noise_variance."


@dataclass(frozen=True)
class FunctionModel:
    """The public part of a whole-function release, linear in the sums of outputs per input.

    Attributes
    ----------
    kernel : kernel of the posterior
    noise_variance : variance of an output about the function, the mean over rows if it differs
    inputs : (inputs, columns), distinct rows of X, or of X and the noise variance
    counts : (inputs,), of each
    nodes : (nodes, columns), inducing inputs; None for the exact posterior
    noise_variances : (inputs,), where it differs by row

    """

    kernel: Kernel
    noise_variance: Positive
    inputs: Annotated[Array, "inputs columns"]
    counts: Annotated[Array, "inputs"]
    nodes: Annotated[Array, "nodes columns"] | None = None
    noise_variances: Annotated[Array, "inputs"] | None = added_field(None)

    domain = None  # points anywhere are answered

    @property
    def columns(self) -> int:
        """How many inputs a point has."""
        return int(self.inputs.shape[1])

    @property
    def rows(self) -> int:
        """How many outputs there are."""
        return int(self.counts.sum())

    @property
    def noises(self) -> Array:
        """The noise variance of outputs at every input, (inputs,)."""
        if self.noise_variances is None:
            return np.full(len(self.inputs), self.noise_variance)
        return self.noise_variances

    @property
    def typical_variance(self) -> float:
        """k(x, x), averaged over the inputs if it varies."""
        return mean_variance(self.kernel, self.inputs)

    @cached_property
    def coefficients(self) -> Array:
        """A, (inputs, inputs): the posterior mean is ``k(., inputs) A s`` for sums s per input."""
        K = evaluate(self.kernel, self.inputs)
        for jitter in JITTERS:
            noisy = K + np.diag(self.noises / self.counts + jitter * self.typical_variance)
            try:
                factor = cho_factor(noisy, lower=True, overwrite_a=True, check_finite=False)
            except np.linalg.LinAlgError:
                continue
            return np.asarray(cho_solve(factor, np.diag(1.0 / self.counts), check_finite=False))
        raise ValueError(NOT_DEFINITE)

    @cached_property
    def node_factor(self) -> Array:
        """L, (nodes, nodes), lower triangular, with L L^T = k(Z, Z)."""
        assert self.nodes is not None
        return stable_cholesky(evaluate(self.kernel, self.nodes))

    @cached_property
    def node_rows(self) -> Array:
        """B = L^T alpha, (nodes, inputs): ``(s^2 I + V D V^T)^-1 V``, ``V = L^-1 k(Z, inputs)``.

        With noise variances by row, each column and its count are weighed by s^2 over its own.
        """
        V = self._whiten(self.inputs)
        share = self.noise_variance / self.noises
        gram = (V * (self.counts * share)) @ V.T
        gram.flat[:: len(gram) + 1] += self.noise_variance
        factor = cho_factor(gram, lower=True, check_finite=False)
        return np.asarray(cho_solve(factor, V, check_finite=False) * share)

    def _whiten(self, X: Array) -> Array:
        """``L^-1 k(Z, X)``, (nodes, points)."""
        assert self.nodes is not None
        cross = evaluate(self.kernel, self.nodes, X)
        return np.asarray(solve_triangular(self.node_factor, cross, lower=True, check_finite=False))

    def node_values(self, points: Array, numbers: Array) -> Array:
        """``k(points, Z) L^-T numbers``, (points,), in blocks of one shape."""
        out = np.empty(len(points))
        for start in range(0, len(points), BLOCK):
            part = points[start : start + BLOCK]
            padded = np.vstack([part, np.repeat(part[:1], BLOCK - len(part), axis=0)])
            out[start : start + BLOCK] = (numbers @ self._whiten(padded))[: len(part)]
        return out

    def noise_shape(self, points: Array) -> Array:
        """Std of ``G ~ GP(0, k)``, or through inducing inputs of GP(0, q), at points, (points,)."""
        if self.nodes is None:
            return np.sqrt(diagonal(self.kernel, points))
        return column_norms(self._whiten(points))

    def exact_norms(self) -> Array:
        """The norm of the function that one unit of output at an input adds, (inputs,)."""
        if self.nodes is not None:
            return column_norms(self.node_rows)
        A = self.coefficients
        moved: Array = np.einsum("ij,ij->j", A, evaluate(self.kernel, self.inputs) @ A)
        return np.sqrt(np.maximum(moved, 0.0))

    def norm(self, sensitivity: str, declared: float | None = None) -> float:
        """The bound of these norms that was asked for.

        Parameters
        ----------
        sensitivity
            "exact", "infinity", "nonnegative" or "varah".
        declared
            a dominance, for Varah's bound; the inputs must have it.

        Raises
        ------
        ValueError
            The inputs lie closer together than was declared, or K is not dominant.

        """
        if sensitivity == "exact":
            return float(self.exact_norms().max())
        if sensitivity == "varah" and self.nodes is not None:
            return inducing_limit(diagonal(self.kernel, self.inputs).max(), self.noises.min())
        if sensitivity == "varah":
            actual = dominance(self.kernel, self.noises, self.inputs, self.counts)
            if declared is not None and not actual >= declared:
                raise ValueError(
                    "dominance is too large: these inputs lie closer together than was declared."
                )
            bound = varah_limit(actual if declared is None else declared)
        else:
            infinity, nonnegative = papers_bounds(inverse_covariance(self))
            bound = infinity if sensitivity == "infinity" else nonnegative
        return float(np.sqrt(diagonal(self.kernel, self.inputs).max()) * bound)

    def noise(self, epsilon: float, delta: float, norm: float) -> GaussianNoise:
        """Noise for outputs scaled to [-1, 1]: for all points that will ever be asked for.

        Parameters
        ----------
        epsilon, delta
            The budget of all answers together.
        norm
            Half the sensitivity, in the norm of the kernel.

        """
        size = MAX_POINTS if self.nodes is None else len(self.nodes)
        rows = float(self.counts.sum())
        # ||error|| <= gamma sum_j mass_j ||b_j||, as in docs/proofs/measure.md
        error = rounding(int(rows) + len(self.inputs) + 4) * rows * norm
        return gaussian_noise(epsilon, delta, size, 2.0 * norm, error)


def inverse_covariance(model: FunctionModel) -> Array:
    """K^-1 over all rows, (rows, rows), equal inputs repeated."""
    times = model.counts.astype(np.int64)
    K = evaluate(model.kernel, np.repeat(model.inputs, times, axis=0))
    K.flat[:: len(K) + 1] += np.repeat(model.noises, times)
    try:
        factor = cho_factor(K, lower=True, check_finite=False)
    except np.linalg.LinAlgError:
        raise ValueError(NOT_DEFINITE) from None
    return np.asarray(cho_solve(factor, np.eye(len(K)), check_finite=False))


def papers_bounds(inverse: Array) -> tuple[float, float]:
    """(infinity norm, b) of K^-1: b is the largest sum of entries of one sign in a row."""
    infinity = np.abs(inverse).sum(axis=1).max()
    positive = np.maximum(inverse, 0.0).sum(axis=1).max()
    negative = np.maximum(-inverse, 0.0).sum(axis=1).max()
    return float(infinity), float(max(positive, negative))
