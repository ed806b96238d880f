"""The best Gaussian measurement under the prior: least posterior error at the targets.

Measured is ``t = B s + noise`` of variance ``lambda`` per row, where ``s`` are the (weighted) sums
of outputs at the distinct inputs. What the measurement explains of the targets,
``F(B) = tr cov(f*, t) cov(t)^-1 cov(t, f*)``, is concave in ``P = B^T B``, and the columns of B
may have norm 1. So any B has a certified distance from the best: see docs/proofs/aware.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import cho_solve, cholesky, eigvalsh, solve_triangular
from scipy.optimize import minimize
from scipy.sparse import issparse
from sklearn.gaussian_process.kernels import Kernel

from privgp.gp.kernels.evaluate import evaluate, total_variance
from privgp.gp.priors import Hyperparameters, Prior
from privgp.gp.smoothers import Nystrom, nystrom
from privgp.plan.strategy import EqualRows, OutputSums
from privgp.types import Array, Integers

BLOCK_ENTRIES = 2**21
EXACT_INPUTS = 3000  # up to here a certificate uses the whole kernel


Weighed = OutputSums | EqualRows  # what tells how much of the function every input holds


def design_models(priors: Sequence[Prior]) -> list[Hyperparameters]:
    """The models a measurement should serve: on inputs as they are and as ranked as they get."""
    return [prior.start for prior in (priors if len(priors) < 3 else (priors[0], priors[-1]))]


FACTORS = (1.0, 0.5, 2.0, 0.25)


def several_scales(models: Sequence[Hyperparameters]) -> list[Hyperparameters]:
    """The models with shorter and longer lengthscales, weighted as the prior weights them.

    Each model comes with 1, 1/2, 2 and 1/4 of its lengthscales.
    """
    shares = np.exp(-0.5 * np.square(np.log(FACTORS)))
    shares /= shares.sum() * len(models)
    return [
        replace(model, kernel=scale_lengthscales(model.kernel, factor), weight=float(share))
        for factor, share in zip(FACTORS, shares, strict=True)
        for model in models
    ]


def scale_lengthscales(kernel: Kernel, factor: float) -> Kernel:
    """The kernel with every free lengthscale multiplied by a factor."""
    logs = [
        np.full(p.n_elements, np.log(factor) if p.name.endswith("length_scale") else 0.0)
        for p in kernel.hyperparameters
        if not p.fixed
    ]
    return kernel.clone_with_theta(kernel.theta + np.concatenate(logs)) if logs else kernel


def hypotheses_for(
    models: Sequence[Hyperparameters],
    inputs: Array,
    chosen: Integers,
    strategy: Weighed,
    targets: Array,
    target_weights: Array,
    factors: Sequence[Nystrom] | None = None,
    *,
    whole: bool = False,
) -> list[Hypothesis]:
    """One hypothesis per model, through the low-rank factor of the chosen inputs.

    The factor leaves out a positive semidefinite residual of the prior, so a floor certified
    with it is a floor for the whole prior too: see docs/proofs/aware.md.

    Parameters
    ----------
    models
        With their weights.
    inputs
        (inputs, columns), distinct.
    chosen
        Places of the inputs that the factor goes through.
    strategy
        How rows at the inputs are weighed.
    targets
        (targets, columns).
    target_weights
        (targets,).
    factors
        These factors, if they are known already.
    whole
        Whether the prior variance at the targets counts what the factor leaves out.

    """
    mass, squares = strategy.masses()
    out = []
    for model, factor in zip(models, factors or factors_of(models, inputs, chosen), strict=True):
        if targets is inputs:
            reach = factor.factor
        else:
            cross = evaluate(model.kernel, factor.nodes, model.input_map(targets))
            reach = solve_triangular(factor.root, cross, lower=True, check_finite=False).T
        weighted = reach * np.sqrt(target_weights)[:, None]
        gram = weighted.T @ weighted
        total = total_variance(model.kernel, model.input_map(targets), target_weights)
        out.append(
            Hypothesis(
                factor=factor.factor * mass[:, None],
                noise=model.noise_variance * squares,
                gram=gram,
                total=total if whole else float(np.trace(gram)),
                weight=model.weight / sum(m.weight for m in models),
            )
        )
    return out


def factors_of(models: Sequence[Hyperparameters], inputs: Array, chosen: Integers) -> list[Nystrom]:
    """The low-rank factor of every model's covariance through the chosen inputs.

    Parameters
    ----------
    models
        Each with its own input map.
    inputs
        (inputs, columns).
    chosen
        Places among the inputs.

    """
    return [nystrom(model.kernel, model.input_map(inputs), chosen) for model in models]


def exact_certificate(
    models: Sequence[Hyperparameters],
    inputs: Array,
    strategy: OutputSums,
    targets: Array,
    target_weights: Array,
    noise: float,
) -> tuple[float, Array | None]:
    """The posterior error at the targets without low rank, averaged over the models.

    Parameters
    ----------
    models
        Equally weighted.
    inputs
        (inputs, columns), distinct.
    strategy
        The sums to measure.
    targets
        (targets, columns).
    target_weights
        (targets,).
    noise
        Lambda, the noise variance of every measured number.

    Returns
    -------
    error : float
        The weighted posterior variance.
    slope : Array or None
        G, (inputs, inputs), which certifies it; None if there are more than 3,000 inputs.

    """
    B = strategy.matrix
    mass, squares = strategy.masses()
    A = B * mass
    hold = len(inputs) <= EXACT_INPUTS
    error, slope = 0.0, np.zeros((len(inputs), len(inputs))) if hold else None
    for model in models:
        mapped, goal = model.input_map(inputs), model.input_map(targets)
        covariance = _through_kernel(A, model, mapped, mapped) * mass
        covariance += model.noise_variance * B * squares  # cov(t, s), (measured, inputs)
        S = covariance @ B.T
        S.flat[:: len(S) + 1] += noise
        L = cholesky(0.5 * (S + S.T), lower=True, check_finite=False)
        error += total_variance(model.kernel, goal, target_weights)
        step = max(1, BLOCK_ENTRIES // len(inputs))
        for first in range(0, len(targets), step):
            rows = slice(first, first + step)
            cross = evaluate(model.kernel, goal[rows], mapped) * mass
            W = cho_solve((L, True), B @ cross.T, check_finite=False).T
            error -= float(target_weights[rows] @ np.einsum("ij,ij->i", W, cross @ B.T))
            if slope is not None:
                cross -= W @ covariance
                slope += (cross.T * target_weights[rows]) @ cross
    return error / len(models), None if slope is None else slope / len(models)


def _through_kernel(A: Array, model: Hyperparameters, X: Array, Z: Array) -> Array:
    """A k(X, Z), the kernel matrix in blocks of columns."""
    step = max(1, BLOCK_ENTRIES // len(X))
    blocks = [A @ evaluate(model.kernel, X, Z[i : i + step]) for i in range(0, len(Z), step)]
    return np.hstack(blocks)


CHEAP_ENTRIES = 20_000


@dataclass(frozen=True)
class Hypothesis:
    """One set of hyperparameters under which the measurement should be good.

    Attributes
    ----------
    factor : (inputs, rank), the sums' signal covariance is ``factor factor^T``
    noise : (inputs,), the sums' noise variance
    gram : (rank, rank), ``F*^T W F*`` with F* the targets' factor and W their weights
    total : the weighted prior variance at the targets
    weight : its share in the average

    """

    factor: Array
    noise: Array
    gram: Array
    total: float
    weight: float = 1.0

    @cached_property
    def spectrum(self) -> tuple[Array, Array]:
        """Eigenvalues of ``factor^T factor``, ascending, and its eigenvectors as columns."""
        values, vectors = np.linalg.eigh(self.factor.T @ self.factor)
        return values, vectors


@dataclass(frozen=True)
class Certificate:
    """How near a strategy is to the best.

    Attributes
    ----------
    error : the average weighted posterior variance at the targets under the hypotheses
    floor : no strategy with columns of norm at most 1 has less

    """

    error: float
    floor: float

    @property
    def gap(self) -> float:
        """The relative distance from the floor, in std; infinite if the floor is 0."""
        return float(np.sqrt(self.error / self.floor) - 1.0) if self.floor > 0 else np.inf


def aware_design(
    hypotheses: Sequence[Hypothesis], noise: float, rank: int, *, max_iterations: int = 200
) -> Array:
    """A strategy with unit columns that (nearly) maximises the average gain.

    L-BFGS over column-normalised matrices. ``certify`` computes how near it came; privacy does
    not depend on it.

    Parameters
    ----------
    hypotheses
        The search starts from the first one.
    noise
        Lambda, the noise variance of every measured number.
    rank
        How many numbers are measured.
    max_iterations
        Largest number of steps of L-BFGS.

    Returns
    -------
    Array
        B, (rank, inputs).

    """
    B = _initial_strategy(hypotheses[0], noise, rank)
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

    # A tight certificate needs more steps than a good design, so they are taken where they are cheap.
    tolerance = 1e-9 if B.size <= CHEAP_ENTRIES else 1e-6
    options = {"maxiter": max_iterations, "maxcor": 8, "ftol": tolerance, "gtol": 1e-12}
    result = minimize(objective, B.ravel(), jac=True, method="L-BFGS-B", options=options)
    V = result.x.reshape(shape)
    return np.asarray(V / np.linalg.norm(V, axis=0))


def gain(B: Array, hypotheses: Sequence[Hypothesis], noise: float) -> tuple[float, Array]:
    """F(B), averaged over the hypotheses, and its gradient, of B's shape.

    Parameters
    ----------
    B
        (measured, inputs).
    hypotheses
        With weights.
    noise
        Lambda.

    """
    value, gradient = 0.0, np.zeros_like(B)
    for h in hypotheses:
        U, L = _factor_measurement(B, h, noise)
        H = cho_solve((L, True), U @ h.gram, check_finite=False)
        value += h.weight * float(np.vdot(H, U))
        Q = cho_solve((L, True), U @ H.T, check_finite=False).T
        Q *= 2.0 * h.weight
        gradient += (2.0 * h.weight * H - Q @ U) @ h.factor.T
        pull = Q @ B
        pull *= h.noise
        gradient -= pull
    return value, gradient


def log_variance_left(B: Any, hypotheses: Sequence[Hypothesis], noise: float) -> float:
    """The weighted mean of the logarithms of what a measurement leaves unexplained.

    Logarithms, so that the roughest hypotheses, under which little can be learned, do not rule.

    Parameters
    ----------
    B
        (measured, inputs); or sparse, of ones, with every input in one row.
    hypotheses
        With weights.
    noise
        Lambda.

    """
    value = 0.0
    for h in hypotheses:
        U = B @ h.factor
        S = U @ U.T
        S += np.diag(B @ h.noise) if issparse(B) else (B * h.noise) @ B.T
        S.flat[:: len(S) + 1] += noise
        L = cholesky(S, lower=True, overwrite_a=True, check_finite=False)
        told = float(np.vdot(cho_solve((L, True), U @ h.gram, check_finite=False), U))
        value += h.weight * float(np.log(max(h.total - told, 1e-12 * h.total)))
    return value


def certify(
    B: Array, error: float, slope: Array, noise: float, *, is_root: bool = False
) -> Certificate:
    """The floor that no strategy can beat, from the linearisation of the concave gain at B^T B.

    Parameters
    ----------
    B
        (measured, inputs), columns of norm at most 1.
    error
        That it leaves.
    slope
        G = E^T E summed over targets and hypotheses, (inputs, inputs), with E what the
        measurement leaves unexplained of cov(f*, s); or E itself, (rank, inputs).
    noise
        Lambda.
    is_root
        Whether ``slope`` is E.

    Notes
    -----
    For any n > 0, ``max F <= F(B) + [(sum n) lambda_max(diag(n)^-1/2 G diag(n)^-1/2) - tr B G
    B^T] / noise``; at the best B, with ``(B G)_i = n_i b_i``, the choice ``n_i = |(B G)_i|``
    makes the bracket vanish. docs/proofs/aware.md.

    """
    BG = (B @ slope.T) @ slope if is_root else B @ slope
    attained = float(np.vdot(B, BG))
    size = np.linalg.norm(slope, axis=0) if is_root else np.sqrt(np.diag(slope))
    if not size.max() > 0:
        return Certificate(error, error)
    # Away from the best B the aligned part of (B G)_i is the better guess for columns that matter.
    guesses = [np.linalg.norm(BG, axis=0), np.abs(np.einsum("ij,ij->j", B, BG)), size]
    bound = min(_linear_limit(n, slope, is_root) for n in guesses if n.max() > 0)
    ceiling = max((bound - attained) / noise, 0.0)
    return Certificate(error, max(error - ceiling, 0.0))


def _linear_limit(n: Array, slope: Array, is_root: bool) -> float:
    """(sum n) lambda_max(diag(n)^-1/2 G diag(n)^-1/2), which no tr(G P) with diag(P) <= 1 exceeds."""
    n = np.maximum(n, 1e-9 * n.max())
    scaled = slope / np.sqrt(n) if is_root else slope / np.sqrt(np.outer(n, n))
    gram = scaled @ scaled.T if is_root else scaled
    last = len(gram) - 1
    largest = eigvalsh(gram, subset_by_index=(last, last), check_finite=False)[0]
    return float(n.sum() * largest)


def residual_factors(B: Array, hypotheses: Sequence[Hypothesis], noise: float) -> Array:
    """E of every hypothesis stacked, rotated so that E^T E is unchanged: (ranks, inputs)."""
    parts = []
    for h in hypotheses:
        U, L = _factor_measurement(B, h, noise)
        W = cho_solve((L, True), U, check_finite=False).T
        E = h.factor.T - W @ (U @ h.factor.T + B * h.noise)
        values, vectors = np.linalg.eigh(h.gram)
        parts.append((vectors * np.sqrt(np.maximum(h.weight * values, 0.0))).T @ E)
    return np.vstack(parts)


def _factor_measurement(B: Array, h: Hypothesis, noise: float) -> tuple[Array, Array]:
    """U = B factor and the Cholesky factor of cov(t)."""
    U = B @ h.factor
    scaled = B * np.sqrt(h.noise)
    S = U @ U.T + scaled @ scaled.T
    S.flat[:: len(S) + 1] += noise
    return U, cholesky(S, lower=True, overwrite_a=True, check_finite=False)


def _initial_strategy(h: Hypothesis, noise: float, rank: int) -> Array:
    """Principal directions of the signal, the stronger the louder, with unit columns."""
    values, vectors = h.spectrum
    rank = min(rank, len(values))
    values, vectors = np.maximum(values[-rank:], 0.0), vectors[:, -rank:]
    directions = h.factor @ vectors / np.sqrt(np.maximum(values, 1e-300))
    floor = float(h.noise.mean()) + noise / len(h.noise)
    B = (directions * np.sqrt(values / (values + floor))).T
    spare = np.random.default_rng(0).standard_normal(B.shape)
    B += 1e-3 * np.abs(B).max() * spare
    return np.asarray(B / np.linalg.norm(B, axis=0))


def gaussian_floor(B: Array, hypotheses: Sequence[Hypothesis], noise: float) -> float:
    """The error below which no Gaussian measurement can go, certified from this one."""
    error = sum(h.weight * h.total for h in hypotheses) - gain(B, hypotheses, noise)[0]
    return certify(B, error, residual_factors(B, hypotheses, noise), noise, is_root=True).floor
