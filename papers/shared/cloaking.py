"""The papers' cloaking as published, for comparison only: nothing here protects anybody.

The calibration is Hall's, ``c = sqrt(2 log(2 / delta)) / epsilon``; docs/proofs/calibrate.md says why
it must not be used. The data of the papers are public, so private values may be handled here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from privgp.gp.priors import collapse
from privgp.gp.smoothers import exact_smoother
from privgp.plan.designs.workload import design
from privgp.privacy.budget import gaussian_delta, gaussian_multiplier
from privgp.types import Array, Integers

LEARNING_RATE = 0.05  # of the papers' algorithm 1


def hall_multiplier(epsilon: float, delta: float) -> float:
    """Noise std over sensitivity as the papers have it."""
    return math.sqrt(2.0 * math.log(2.0 / delta)) / epsilon


def hall_delta(epsilon: float, delta: float) -> float:
    """The delta that Hall's formula really gives at this epsilon."""
    return gaussian_delta(epsilon, hall_multiplier(epsilon, delta))


def hall_text(epsilons: Sequence[float], delta: float) -> str:
    """Whether Hall's noise is enough for what it claims at these epsilons, and by how much."""
    enough = all(hall_delta(epsilon, delta) <= delta for epsilon in epsilons)
    each = "; ".join(
        f"at epsilon = {epsilon:g} its true delta is {hall_delta(epsilon, delta):.2g} where {delta:g} "
        f"is claimed, and its noise {hall_multiplier(epsilon, delta) / least:.2g} times the least that "
        "is enough"
        for epsilon, least in ((e, gaussian_multiplier(e, delta)) for e in epsilons)
    )
    return f"Hall's calibration is {'' if enough else 'NOT '}enough here: {each}."


@dataclass(frozen=True)
class Cloak:
    """A prediction ``C y`` and the shape of the papers' noise on it.

    ``mean``: (targets,), without noise; ``root``: (targets, rank), R with noise covariance
    ``(c d)^2 R R^T``.
    """

    mean: Array
    root: Array

    def noise_std(self, scale: float) -> Array:
        """Std of the noise at every target, for ``scale = c d``."""
        return np.asarray(scale * np.sqrt(np.square(self.root).sum(axis=1)))

    def release(self, scale: float, rng: np.random.Generator) -> Array:
        return np.asarray(self.mean + scale * self.root @ rng.standard_normal(self.root.shape[1]))


@dataclass(frozen=True)
class Workload:
    """The prediction ``C s``: C (targets, distinct inputs) on the sums of outputs per input."""

    matrix: Array
    index: Integers

    def mean(self, y: Array, centre: float) -> Array:
        """The posterior mean at the targets, the prior mean being the centre."""
        sums = np.bincount(self.index, y - centre, minlength=self.matrix.shape[1])
        return np.asarray(centre + self.matrix @ sums)


def workload(kernel: Kernel, noise_variance: float, X: Array, targets: Array) -> Workload:
    """What the papers call the cloaking matrix; equal inputs have one column."""
    inputs, index = collapse(X)
    counts = np.bincount(index).astype(float)
    return Workload(exact_smoother(kernel, noise_variance, inputs, counts, targets).weights, index)


def cloak(
    kernel: Kernel, noise_variance: float, X: Array, y: Array, targets: Array, centre: float
) -> Cloak:
    """The papers' cloaking: the log-determinant design, converged to 0.01 nats."""
    made = workload(kernel, noise_variance, X, targets)
    return Cloak(made.mean(y, centre), converged(made.matrix))


def converged(C: Array) -> Array:
    """R of the least log det R R^T, (targets, rank)."""
    return design(C, "logdet").reconstruction


def algorithm_1(C: Array, iterations: int, seed: int) -> Array:
    """R of the noise that the papers' algorithm 1 ends with, (targets, targets).

    Gradient steps on the weights from a random start, which need not have converged, and Delta
    without its square root, both as printed.
    """
    lambdas = np.asarray(np.random.default_rng(seed).uniform(0.1, 0.9, C.shape[1]))
    for _ in range(iterations):
        pulls = _pulls(C, lambdas)
        lambdas = np.maximum(lambdas + LEARNING_RATE * (pulls - 1.0), 0.0)
    delta = float(_pulls(C, lambdas).max())
    values, vectors = np.linalg.eigh((C * lambdas) @ C.T)
    return np.asarray(delta * vectors * np.sqrt(np.maximum(values, 0.0)))


def _pulls(C: Array, lambdas: Array) -> Array:
    """c_j^T M^+ c_j for every column, ``M = C diag(lambda) C^T``."""
    values, vectors = np.linalg.eigh((C * lambdas) @ C.T)
    kept = values > 1e-15 * values[-1]
    half = (vectors[:, kept] / np.sqrt(values[kept])).T @ C
    return np.asarray(np.einsum("ij,ij->j", half, half))
