"""A prediction as a linear map of the outputs, and low-rank factors of a kernel."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.linalg import cho_factor, cho_solve, cholesky, solve_triangular
from sklearn.gaussian_process.kernels import Kernel

from privgp.gp.kernels.evaluate import diagonal, evaluate, mean_variance
from privgp.types import Array, Integers

JITTERS = (0.0, 1e-12, 1e-10, 1e-8, 1e-6)
PIVOTS_PER_BLOCK = 32


@dataclass(frozen=True)
class Smoother:
    """Weights ``C`` (targets, inputs) of the posterior mean ``C s`` on the sums of outputs per
    input.

    Attributes
    ----------
    weights : C
    variance : (targets,), the posterior variance there
    jitter : the number added to the diagonal of K for its Cholesky factor to exist; it is part
        of the predictor that is released

    """

    weights: Array
    variance: Array
    jitter: float


def exact_smoother(
    kernel: Kernel, noise_variance: float | Array, X: Array, counts: Array, targets: Array
) -> Smoother:
    """The exact GP posterior mean at the targets as a linear map of the outputs.

    With sums s of the outputs per input, ``C = k_* (K' + s^2 D^-1)^-1 D^-1``, D = diag(counts).

    Parameters
    ----------
    kernel
        Kernel of the function.
    noise_variance
        Variance of an output about it, or one for the outputs at every input.
    X
        (inputs, columns), distinct.
    counts
        (inputs,), how many outputs there are at each of them.
    targets
        (targets, columns).

    Raises
    ------
    ValueError
        The kernel matrix is not positive definite even with jitter.

    """
    scale = mean_variance(kernel, X)
    for jitter in JITTERS:
        K = evaluate(kernel, X).T  # symmetric: Fortran order without a copy
        K.flat[:: len(K) + 1] += noise_variance / counts + jitter * scale
        try:
            factor = cho_factor(K, lower=True, overwrite_a=True, check_finite=False)
        except np.linalg.LinAlgError:
            continue
        cross = evaluate(kernel, X, targets)
        residual = diagonal(kernel, targets) - np.square(
            solve_triangular(factor[0], cross, lower=True, check_finite=False)
        ).sum(axis=0)
        weights = cho_solve(factor, cross, overwrite_b=True, check_finite=False).T
        weights /= counts
        return Smoother(weights, np.maximum(residual, 0.0), jitter * scale)
    raise ValueError(
        "the kernel matrix is not positive definite even with jitter: "
        "give a larger noise_variance or a kernel with a shorter lengthscale."
    )


@dataclass(frozen=True)
class Nystrom:
    """``k(X, X) = factor factor^T + residual`` with a positive semidefinite residual.

    Attributes
    ----------
    nodes : the chosen rows of X
    chosen : (nodes,), their places
    factor : (rows, nodes)
    residual : (rows,), its diagonal
    root : (nodes, nodes), the lower Cholesky factor of the nodes' covariance

    """

    nodes: Array
    chosen: Integers
    factor: Array
    residual: Array
    root: Array = field(repr=False)

    @cached_property
    def interpolation(self) -> Array:
        """The weights that carry values at the nodes to the rows, (nodes, rows)."""
        if self.chosen.size == len(self.factor):
            return np.eye(len(self.factor))
        back = solve_triangular(self.root, self.factor.T, lower=True, trans="T", check_finite=False)
        return np.asarray(back)


def choose_nodes(kernel: Kernel, X: Array, count: int) -> Integers:
    """Rows of X that explain the kernel best: Cholesky pivoted in blocks on the residual variance.

    Within a block points are drawn in proportion to the residual, from a fixed public seed.

    Parameters
    ----------
    kernel
        Kernel of the function.
    X
        (rows, columns), public.
    count
        How many to choose; fewer if the rest is explained.

    Returns
    -------
    Integers
        Their places, sorted.

    """
    n = X.shape[0]
    if count >= n:
        return np.arange(n)
    rng = np.random.default_rng(0)
    chosen = np.empty(0, dtype=np.int64)
    factor = np.empty((n, count))
    residual = diagonal(kernel, X)
    scale = float(residual.max())
    floor = 1e-9 * scale
    while chosen.size < count and np.count_nonzero(residual > floor) > 0:
        open_rows = np.flatnonzero(residual > floor)
        size = min(PIVOTS_PER_BLOCK, count - chosen.size, open_rows.size)
        share = residual[open_rows] / residual[open_rows].sum()
        block = rng.choice(open_rows, size=size, replace=False, p=share)
        before = factor[:, : chosen.size]
        columns = evaluate(kernel, X, X[block]) - before @ before[block].T
        L = stable_cholesky(columns[block], scale)
        new = solve_triangular(L, columns.T, lower=True, check_finite=False).T
        factor[:, chosen.size : chosen.size + size] = new
        residual = np.maximum(residual - np.square(new).sum(axis=1), 0.0)
        residual[block] = 0.0
        chosen = np.concatenate([chosen, block])
    return np.sort(chosen)


def nystrom(kernel: Kernel, X: Array, chosen: Integers) -> Nystrom:
    """The low-rank factor of k(X, X) through the rows ``chosen``; exact when they are all rows.

    Parameters
    ----------
    kernel
        Kernel of the function.
    X
        (rows, columns).
    chosen
        Places of the nodes among the rows.

    """
    nodes = X[chosen]
    L = stable_cholesky(evaluate(kernel, nodes))
    cross = evaluate(kernel, nodes, X)
    half = solve_triangular(L, cross, lower=True, check_finite=False)
    residual = np.maximum(diagonal(kernel, X) - np.square(half).sum(axis=0), 0.0)
    return Nystrom(nodes, chosen, half.T, residual, L)


def stable_cholesky(K: Array, scale: float | None = None) -> Array:
    """Lower Cholesky factor of K plus the least jitter that makes it exist.

    Parameters
    ----------
    K
        (n, n), symmetric.
    scale
        Unit of the jitter; the largest diagonal entry by default.

    Raises
    ------
    ValueError
        Even a jitter of 1e-6 is too little.

    """
    scale = float(np.diag(K).max()) if scale is None else scale
    for jitter in JITTERS[1:]:
        try:
            return np.asarray(
                cholesky(K + jitter * scale * np.eye(len(K)), lower=True, check_finite=False)
            )
        except np.linalg.LinAlgError:
            continue
    raise ValueError("the kernel matrix of the inducing points is not positive definite.")


@dataclass(frozen=True)
class InducingSmoother:
    """``C = W k(Z, X) Lambda^-1``, kept as the factor W.

    DTC: Lambda = s^2 I. FITC: Lambda = diag(s^2 + k(x, x) - k(x, Z) k(Z, Z)^-1 k(Z, x)), the
    variance of an output given the function at Z.

    Attributes
    ----------
    weights : W, (targets, nodes)
    variance : (targets,), of f there

    """

    weights: Array
    variance: Array


def node_smoother(kernel: Kernel, nodes: Array, gram: Array, targets: Array) -> InducingSmoother:
    """``W = k(X*, Z) (k(Z, Z) + gram)^-1`` and the variance of f at the targets.

    Parameters
    ----------
    kernel
        Kernel of the function.
    nodes
        Z, (nodes, columns).
    gram
        ``k(Z, X) Lambda^-1 k(X, Z)``, (nodes, nodes).
    targets
        X*, (targets, columns).

    """
    L = stable_cholesky(evaluate(kernel, nodes))
    half = solve_triangular(L, gram, lower=True, check_finite=False)
    inner = solve_triangular(L, half.T, lower=True, check_finite=False)
    inner = 0.5 * (inner + inner.T)
    inner.flat[:: len(inner) + 1] += 1.0
    factor = cholesky(inner, lower=True, check_finite=False)
    reach = solve_triangular(L, evaluate(kernel, nodes, targets), lower=True, check_finite=False)
    solved = solve_triangular(factor, reach, lower=True, check_finite=False)
    variances = (
        diagonal(kernel, targets) - np.square(reach).sum(axis=0) + np.square(solved).sum(axis=0)
    )
    back = solve_triangular(factor, solved, lower=True, trans="T", check_finite=False)
    weights = solve_triangular(L, back, lower=True, trans="T", check_finite=False).T
    return InducingSmoother(weights, np.maximum(variances, 0.0))
