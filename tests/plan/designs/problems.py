"""Workloads of designs, and what is measured of a design."""

from __future__ import annotations

from functools import cache

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from privgp.plan.designs.workload import Design, design
from privgp.types import Array

SEEDS = range(20)


KERNELS = {
    "rbf": lambda d: np.exp(-0.5 * d**2),
    "matern12": lambda d: np.exp(-d),
    "matern52": lambda d: (1 + 5**0.5 * d + 5 / 3 * d**2) * np.exp(-(5**0.5) * d),
}


def kernel(name: str, lengthscale: float, X: Array, Y: Array) -> Array:
    squares = np.square(X).sum(axis=1)[:, None] + np.square(Y).sum(axis=1) - 2 * X @ Y.T
    return np.asarray(KERNELS[name](np.sqrt(np.maximum(squares, 0.0)) / lengthscale))


def smoother(name: str, lengthscale: float, targets: Array, X: Array, inducing: int = 300) -> Array:
    """Weights of a GP posterior mean; through inducing inputs when there are many rows."""
    Z = X[:inducing]
    cross = kernel(name, lengthscale, Z, X)
    core = 0.1 * kernel(name, lengthscale, Z, Z) + cross @ cross.T
    core.flat[:: len(core) + 1] += 1e-8 * np.trace(core)
    factor = cho_factor(core)
    return kernel(name, lengthscale, targets, Z) @ cho_solve(factor, cross)


@cache
def problem(seed: int) -> Array:
    """20 workloads, 1 to 300 targets and 1 to 5000 rows, smoothers and Gaussian noise."""
    rng = np.random.default_rng(seed)
    P = int(np.exp(rng.uniform(0, np.log(300))))
    n = int(np.exp(rng.uniform(0, np.log(5000))))
    P, n = {0: (300, 5000), 1: (1, 5000), 2: (300, 1), 3: (100, 2000)}.get(seed, (P, n))
    if seed % 5 == 4:
        return rng.standard_normal((P, n))
    dimension = 1 + seed % 4
    targets, X = rng.random((P, dimension)), rng.random((n, dimension))
    name = ("rbf", "matern52", "matern12")[seed % 3]
    return smoother(name, (0.05, 0.3, 2.0)[seed // 3 % 3], targets, X)


@cache
def solved(seed: int, objective: str) -> Design:
    return design(problem(seed), objective)


def variances(d: Design) -> Array:
    return np.asarray(np.square(d.reconstruction).sum(axis=1))


def column_norm(d: Design) -> float:
    return float(np.linalg.norm(d.strategy, axis=0).max(initial=0.0))


def relative_error(d: Design, C: Array) -> float:
    return float(np.abs(d.reconstruction @ d.strategy - C).max() / np.abs(C).max())


def triangle(X: Array) -> Array:
    return np.asarray(np.linalg.qr(X, mode="r"))


@cache
def basis(seed: int) -> Array:
    """Orthonormal basis of the space of targets that problem ``seed`` reaches."""
    C = problem(seed)
    square = triangle(C.T).T if C.shape[1] > C.shape[0] else C
    U, S, _ = np.linalg.svd(square, full_matrices=False)
    return np.asarray(U[:, S / S[0] > 1e-10])


def log_volume(d: Design, basis: Array) -> float:
    """The log det of the noise covariance in the kept space, spanned by the orthonormal ``basis``."""
    return 2 * float(np.linalg.slogdet(basis.T @ d.reconstruction)[1])


def measure(d: Design, objective: str) -> float:
    """Twice the logarithm of the noise std, or of the volume, whichever the objective minimises."""
    if objective == "trace":
        return float(np.log(variances(d).sum()))
    if objective == "max":
        return float(np.log(variances(d).max()))
    return 2 * float(np.log(np.linalg.svd(d.reconstruction, compute_uv=False)).sum())
