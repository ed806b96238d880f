"""The best Gaussian measurement under the prior: least posterior error at the targets.

Measured is ``t = B s + noise`` of variance ``lambda`` per row, where ``s`` are the (weighted) sums
of outputs at the distinct inputs. What the measurement explains of the targets,
``F(B) = tr cov(f*, t) cov(t)^-1 cov(t, f*)``, is concave in ``P = B^T B``, and the columns of B
may have norm 1. So any B has a certified distance from the best: see docs/proofs/aware.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_solve, cholesky
from scipy.optimize import minimize

from privgp.types import Array


@dataclass(frozen=True)
class Hypothesis:
    """One set of hyperparameters under which the measurement should be good.

    ``factor``: (inputs, rank), the sums' signal covariance is ``factor factor^T``;
    ``noise``: (inputs,), the sums' noise variance;
    ``gram``: (rank, rank), ``F*^T W F*`` with F* the targets' factor and W their weights;
    ``total``: the weighted prior variance at the targets; ``weight``: its share in the average.
    """

    factor: Array
    noise: Array
    gram: Array
    total: float
    weight: float = 1.0


@dataclass(frozen=True)
class Certificate:
    """How near a strategy is to the best.

    ``error``: the average weighted posterior variance at the targets under the hypotheses;
    ``floor``: no strategy with columns of norm at most 1 has less; ``gap``: relative distance in std.
    """

    error: float
    floor: float

    @property
    def gap(self) -> float:
        return float(np.sqrt(self.error / self.floor) - 1.0) if self.floor > 0 else np.inf


def aware_design(
    hypotheses: Sequence[Hypothesis], noise: float, rank: int, *, max_iterations: int = 100
) -> Array:
    """A strategy with unit columns that (nearly) maximises the average gain; ``noise`` is lambda.

    L-BFGS over column-normalised matrices. How near it came is what ``certify`` tells; privacy does
    not depend on it.
    """
    B = _starting_strategy(hypotheses[0], noise, rank)
    shape = B.shape
    total = sum(h.weight * h.total for h in hypotheses)

    def objective(flat: Array) -> tuple[float, Array]:
        V = flat.reshape(shape)
        norms = np.linalg.norm(V, axis=0)
        unit = V / norms
        value, gradient = gain(unit, hypotheses, noise)
        gradient -= unit * np.einsum("ij,ij->j", gradient, unit)
        gradient /= -total * norms
        return -value / total, gradient.ravel()

    options = {"maxiter": max_iterations, "maxcor": 8, "ftol": 1e-6, "gtol": 1e-12}
    result = minimize(objective, B.ravel(), jac=True, method="L-BFGS-B", options=options)
    V = result.x.reshape(shape)
    return np.asarray(V / np.linalg.norm(V, axis=0))


def gain(B: Array, hypotheses: Sequence[Hypothesis], noise: float) -> tuple[float, Array]:
    """F(B), averaged over the hypotheses, and its gradient."""
    value, gradient = 0.0, np.zeros_like(B)
    for h in hypotheses:
        U, L = _measured(B, h, noise)
        H = cho_solve((L, True), U @ h.gram, check_finite=False)
        value += h.weight * float(np.vdot(H, U))
        Q = cho_solve((L, True), U @ H.T, check_finite=False).T
        step = (H - Q @ U) @ h.factor.T
        step -= (Q @ B) * h.noise
        gradient += (2.0 * h.weight) * step
    return value, gradient


def certify(B: Array, hypotheses: Sequence[Hypothesis], noise: float) -> Certificate:
    """The floor that no strategy can beat, from the linearisation of the concave gain at B^T B.

    For any n > 0: ``max F <= F(B) + [(sum n) lambda_max(E diag(n)^-1 E^T) - |E B^T|_F^2] / noise``.
    """
    value, _ = gain(B, hypotheses, noise)
    total = sum(h.weight * h.total for h in hypotheses)
    E = np.vstack([np.sqrt(h.weight) * _unexplained(B, h, noise) for h in hypotheses])
    if E.shape[0] > E.shape[1]:
        E = np.linalg.qr(E, mode="r")
    attained = float(np.square(E @ B.T).sum())
    bound = _least_bound(E)
    ceiling = value + (bound - attained) / noise
    return Certificate(total - value, total - max(ceiling, value))


def _least_bound(E: Array, iterations: int = 40) -> float:
    """Min over n > 0 of (sum n) lambda_max(E diag(n)^-1 E^T), by a fixed-point iteration."""
    size = E.shape[0]
    rho = np.eye(size) / size
    best = np.inf
    for _ in range(iterations):
        n = np.sqrt(np.maximum(np.einsum("ij,ij->j", E, rho @ E), 0.0))
        if not n.max() > 0:
            return 0.0
        n = np.maximum(n, 1e-9 * n.max())
        R = (E / n) @ E.T
        candidate = float(n.sum() * np.linalg.eigvalsh(R)[-1])
        if candidate > best * (1 - 1e-6) and best < np.inf:
            return min(best, candidate)
        best = min(best, candidate)
        rho = R @ rho @ R
        rho /= np.trace(rho)
    return best


def _unexplained(B: Array, h: Hypothesis, noise: float) -> Array:
    """E = cov(f*, s) - W cov(s), rotated so that E^T E is unchanged: (rank, inputs)."""
    U, L = _measured(B, h, noise)
    W = cho_solve((L, True), U, check_finite=False).T
    E = h.factor.T - W @ (U @ h.factor.T + B * h.noise)
    values, vectors = np.linalg.eigh(h.gram)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))).T @ E)


def _measured(B: Array, h: Hypothesis, noise: float) -> tuple[Array, Array]:
    """U = B factor and the Cholesky factor of cov(t)."""
    U = B @ h.factor
    S = U @ U.T + (B * h.noise) @ B.T
    S.flat[:: len(S) + 1] += noise
    return U, cholesky(S, lower=True, overwrite_a=True, check_finite=False)


def _starting_strategy(h: Hypothesis, noise: float, rank: int) -> Array:
    """Principal directions of the signal, the stronger the louder, with unit columns."""
    values, vectors = np.linalg.eigh(h.factor.T @ h.factor)
    rank = min(rank, len(values))
    values, vectors = np.maximum(values[-rank:], 0.0), vectors[:, -rank:]
    directions = h.factor @ vectors / np.sqrt(np.maximum(values, 1e-300))
    floor = float(h.noise.mean()) + noise / len(h.noise)
    B = (directions * np.sqrt(values / (values + floor))).T
    spare = np.random.default_rng(0).standard_normal(B.shape)
    B += 1e-3 * np.abs(B).max() * spare
    return np.asarray(B / np.linalg.norm(B, axis=0))
