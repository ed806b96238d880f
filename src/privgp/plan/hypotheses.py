"""The starting models turned into what the noise-aware design works on, and its exact error."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular

from privgp.plan.aware import Hypothesis
from privgp.plan.kernels import evaluate, variance
from privgp.plan.priors import Hyperparameters
from privgp.plan.smoothers import nystrom, stable_cholesky
from privgp.plan.strategy import Strategy
from privgp.types import Array, Integers

BLOCK_ENTRIES = 2**21


def hypotheses_for(
    models: Sequence[Hyperparameters],
    inputs: Array,
    chosen: Integers,
    strategy: Strategy,
    targets: Array,
    target_weights: Array,
) -> list[Hypothesis]:
    """One equally weighted hypothesis per model, through the low-rank factor of the chosen inputs.

    The factor leaves out a positive semidefinite residual of the prior, so a floor certified with
    it is a floor for the whole prior too: see docs/proofs/aware.md.
    """
    mass, squares = strategy_masses(strategy)
    out = []
    for model in models:
        mapped, goal = model.input_map(inputs), model.input_map(targets)
        factor = nystrom(model.kernel, mapped, chosen)
        if targets is inputs:
            reach = factor.factor
        else:
            L = stable_cholesky(evaluate(model.kernel, factor.nodes))
            cross = evaluate(model.kernel, factor.nodes, goal)
            reach = solve_triangular(L, cross, lower=True, check_finite=False).T
        gram = (reach.T * target_weights) @ reach
        out.append(
            Hypothesis(
                factor=factor.factor * mass[:, None],
                noise=model.noise_variance * squares,
                gram=gram,
                total=float(np.trace(gram)),
                weight=1.0 / len(models),
            )
        )
    return out


def strategy_masses(strategy: Strategy) -> tuple[Array, Array]:
    """Per distinct input, the sums of the row weights and of their squares."""
    g, size = strategy.row_weights, strategy.matrix.shape[1]
    return (
        np.bincount(strategy.index, g, minlength=size),
        np.bincount(strategy.index, g * g, minlength=size),
    )


def exact_error(
    models: Sequence[Hyperparameters],
    inputs: Array,
    strategy: Strategy,
    targets: Array,
    target_weights: Array,
    noise: float,
) -> float:
    """The weighted posterior variance at the targets, averaged over the models, without low rank."""
    mass, squares = strategy_masses(strategy)
    A = strategy.matrix * mass
    error = 0.0
    for model in models:
        mapped, goal = model.input_map(inputs), model.input_map(targets)
        S = _through_kernel(A, model, mapped, mapped) @ A.T
        S += model.noise_variance * ((strategy.matrix * squares) @ strategy.matrix.T)
        S.flat[:: len(S) + 1] += noise
        L = cholesky(0.5 * (S + S.T), lower=True, check_finite=False)
        cross = _through_kernel(A, model, mapped, goal)
        explained = float(np.vdot(cross * target_weights, cho_solve((L, True), cross)))
        error += variance(model.kernel) * float(target_weights.sum()) - explained
    return error / len(models)


def _through_kernel(A: Array, model: Hyperparameters, X: Array, Z: Array) -> Array:
    """A k(X, Z), the kernel matrix in blocks of columns."""
    step = max(1, BLOCK_ENTRIES // len(X))
    blocks = [A @ evaluate(model.kernel, X, Z[i : i + step]) for i in range(0, len(Z), step)]
    return np.hstack(blocks)
