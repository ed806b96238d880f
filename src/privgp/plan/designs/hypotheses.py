"""The starting models turned into what the noise-aware design works on, and its exact error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular
from sklearn.gaussian_process.kernels import Kernel

from privgp.gp.kernels.evaluate import evaluate, total_variance
from privgp.gp.priors import Hyperparameters, Prior
from privgp.gp.smoothers import Nystrom, nystrom
from privgp.plan.designs.noise_aware import Hypothesis
from privgp.plan.strategy import OutputSums
from privgp.types import Array, Integers

BLOCK_ENTRIES = 2**21
EXACT_INPUTS = 3000  # up to here a certificate uses the whole kernel


class Weighed(Protocol):
    def masses(self) -> tuple[Array, Array]:
        """Sums of the row weights, and of their squares, at every input."""


@dataclass(frozen=True)
class Masses:
    """Weights of rows that are not counted one by one.

    Attributes
    ----------
    sums, squares : (inputs,), of the row weights and of their squares

    """

    sums: Array
    squares: Array

    def masses(self) -> tuple[Array, Array]:
        """Sums of the row weights, and of their squares, at every input."""
        return self.sums, self.squares


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
