"""The error to expect of a measurement: over the models it was planned for, and over all of a prior;
and the least epsilon for an error.

Everything here is computed from public numbers, before anything private is read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import TYPE_CHECKING, Self

import numpy as np
from scipy.linalg import cho_solve, solve_triangular
from scipy.special import logsumexp, ndtri
from scipy.stats import qmc
from sklearn.gaussian_process.kernels import ConstantKernel

from privgp.gp.arithmetic import one_thread
from privgp.gp.inference.evidence import condition
from privgp.gp.inference.posterior import posterior
from privgp.gp.kernels.evaluate import evaluate, mean_variance
from privgp.gp.priors import Hyperparameters, rougher
from privgp.gp.smoothers import exact_smoother, node_smoother
from privgp.privacy.budget import MAX_EPSILON
from privgp.types import Array

if TYPE_CHECKING:
    from privgp.plan.part import Part
    from privgp.plan.plan import Plan

MOST_TARGETS = 1500  # at which an error is averaged over models
RANGE_TARGETS = 300  # at which it is found for every draw of the prior
DRAWS = 32
MEASUREMENTS = 32  # draws of what is measured under every model
BLOCK_ENTRIES = 2**22
EXACT_INPUTS = 1500
LEAST_EPSILON = 1e-6  # nothing useful is measured with less
STEP = 4.0
CLOSE = 1.01


def models_of(plan: Part) -> list[tuple[float, Hyperparameters]]:
    """The models that the error is averaged over, with their weights, which sum to 1.

    Where hyperparameters are learned, those the measurement was chosen for; else the given one.
    """
    models = plan.kind.models(plan.priors) if plan.learns else [plan.start]
    if plan.earlier is not None:
        models = [*plan.earlier.plausible] or models
    total = sum(model.weight for model in models)
    return [(model.weight / total, replace(model, weight=1.0)) for model in models]


def draws_of(plan: Part) -> Iterator[Hyperparameters]:
    """Models from the prior of the hyperparameters, all input maps in turn, on a fixed set.

    None varies more than a function between the bounds can: its variance, and that of outputs about
    it, is at most the square of their half width, or what the plan started with if that is more.
    """
    if plan.earlier is not None and plan.earlier.plausible:  # which were left
        yield from plan.earlier.plausible
        return
    size = plan.priors[0].size
    uniform = qmc.Halton(max(size, 1), scramble=True, rng=np.random.default_rng(0)).random(DRAWS)
    most = plan.half_width**2
    for place, z in enumerate(ndtri(uniform)[:, :size]):
        prior = plan.priors[place % len(plan.priors)]
        yield _limit(prior.at(z), prior.start, most, plan.functionals.nodes)


def _limit(
    model: Hyperparameters, start: Hyperparameters, most: float, nodes: Array
) -> Hyperparameters:
    """The model with variances of the function and of outputs about it that fit the bounds."""
    kernel, noise = model.kernel, min(model.noise_variance, max(most, start.noise_variance))
    size, usual = (mean_variance(k, nodes) for k in (kernel, start.kernel))
    excess = size / max(most, usual)
    if excess > 1.0:
        kernel = ConstantKernel(1.0 / excess, "fixed") * kernel
    return replace(model, kernel=kernel, noise_variance=noise)


def variances_under(plan: Part, model: Hyperparameters, X: Array) -> Array:
    """Variance of f about the release at the rows of X, if f and outputs follow this model."""
    line = posterior(*plan.together(model), [replace(model, weight=1.0)], 0.0)
    return line.mean_and_variance(X)[1]


@dataclass(frozen=True)
class _Known:
    """What is known of f at some rows if a model holds: with t measured, ``rows @ t``.

    ``factor``: Cholesky factor of cov(t); ``left``: the variance of f about that; ``start``: the first
    of t, which are known already.
    """

    factor: Array
    rows: Array
    left: Array
    start: Array

    @classmethod
    def of(cls, plan: Part, model: Hyperparameters, X: Array) -> Self:
        measured, given = plan.together(model)
        factor = condition(measured, given, model).factor
        cross = measured.carry(model.covariance(measured.nodes, X)).T
        rows = cho_solve((factor, True), cross.T, check_finite=False).T
        left = model.variances(X) - np.einsum("ij,ij->i", rows, cross)
        before = 0 if plan.earlier is None else len(plan.earlier.values)
        return cls(factor, rows, np.maximum(left, 0.0), given.values[:before])

    def log_density(self, t: Array) -> Array:
        """Every column of t, given what is known of it, up to a constant."""
        new = slice(len(self.start), None)
        half = solve_triangular(self.factor, t, lower=True, check_finite=False)[new]
        logs = np.log(np.diag(self.factor)[new])
        return np.asarray(-0.5 * np.square(half).sum(axis=0) - logs.sum())

    def draws(self, normal: Array) -> Array:
        """What may be measured, from independent standard normals, a column each."""
        if len(self.start):
            before = self.factor[: len(self.start), : len(self.start)]
            fixed = solve_triangular(before, self.start, lower=True, check_finite=False)
            normal = np.vstack([np.tile(fixed[:, None], normal.shape[1]), normal])
        return np.asarray(self.factor @ normal)


def average_variances(plan: Part, X: Array) -> Array:
    """Variance of f about the best prediction of someone who only knows that one of the models that
    the plan was made for holds: ``sum_j p_j (left_j + E (m_j - m)^2)``.

    ``m_j`` is the mean if model j holds, ``m`` the mean over all, weighted by what was measured; the
    expectation is one over fixed draws of that.
    """
    weights, models = zip(*models_of(plan), strict=True)
    step = max(1, BLOCK_ENTRIES // len(plan.functionals.nodes))
    with one_thread():
        blocks = [
            _mixture_variances(
                np.array(weights), [_Known.of(plan, model, X[i : i + step]) for model in models]
            )
            for i in range(0, len(X), step)
        ]
    return np.concatenate(blocks) if blocks else np.zeros(0)


def _mixture_variances(weights: Array, models: Sequence[_Known]) -> Array:
    out = np.asarray(weights @ [model.left for model in models])
    if len(models) == 1:
        return out
    unknown = len(models[0].factor) - len(models[0].start)
    normal = np.random.default_rng(0).standard_normal((unknown, MEASUREMENTS))
    for weight, true in zip(weights, models, strict=True):
        t = true.draws(normal)
        logs = np.array([model.log_density(t) for model in models]) + np.log(weights)[:, None]
        shares = np.exp(logs - logsumexp(logs, axis=0))
        missed = true.rows @ t
        for share, model in zip(shares, models, strict=True):
            missed -= model.rows @ (t * share)
        out += weight * np.square(missed).mean(axis=1)
    return out


def variances_by_draw(plan: Part, X: Array) -> Array:
    """The same for every draw of the prior, (draws, rows of X)."""
    with one_thread():
        return np.array([variances_under(plan, model, X) for model in draws_of(plan)])


def some_targets(plan: Part, most: int) -> tuple[Array, Array]:
    """``most`` targets or fewer, evenly picked, and their shares of the whole weight."""
    every = slice(0, None, -(-len(plan.targets) // most))
    weights = plan.target_weights[every]
    if not weights.sum() > 0.0:  # those that count were not picked
        every, weights = slice(None), plan.target_weights
    return plan.targets[every], weights / weights.sum()


def expected_std(plan: Part, X_new: Array, prior_range: float | None = None) -> Array:
    """Std of f about the release at the rows of X_new; see ``Plan.expected_std``."""
    X_new, columns = np.asarray(X_new, dtype=float), plan.functionals.nodes.shape[1]
    X_new = X_new[:, None] if X_new.ndim == 1 and columns == 1 else X_new
    if X_new.ndim != 2 or X_new.shape[1] != columns:
        raise ValueError(f"X_new must have {columns} columns.")
    if prior_range is None:
        return np.sqrt(average_variances(plan, X_new))
    if not 0 < prior_range < 1:
        raise ValueError(f"prior_range must lie between 0 and 1, got {prior_range}.")
    tail = 0.5 * (1.0 - prior_range)
    stds = np.sqrt(variances_by_draw(plan, X_new))
    return np.asarray(np.quantile(stds, [tail, 1.0 - tail], axis=0))


def expected_error(plan: Part) -> float:
    """Root mean square over the targets and the models, of a posterior."""
    targets, shares = some_targets(plan, MOST_TARGETS)
    return float(np.sqrt(shares @ average_variances(plan, targets)))


def rough_error(plan: Part) -> float | None:
    """The error if the function is rough: its kernel has smoothness 1/2, all else as the plan starts with.

    None where the kernel is not the default one, or is not learned.
    """
    rough = rougher(plan.priors[0]) if plan.learns else ()
    if not rough:
        return None
    targets, shares = some_targets(plan, RANGE_TARGETS)
    with one_thread():
        return float(np.sqrt(shares @ variances_under(plan, rough[0].start, targets)))


def error_range(plan: Part) -> tuple[float, float]:
    """The 5% and 95% quantiles of the root mean square over draws of the prior."""
    targets, shares = some_targets(plan, RANGE_TARGETS)
    low, high = np.quantile(np.sqrt(variances_by_draw(plan, targets) @ shares), (0.05, 0.95))
    return float(low), float(high)


def error_without_privacy(plan: Part) -> float:
    """What the expected error would be, had the outputs themselves been published."""
    if plan.unbiased is not None:
        return plan.weighted(np.sqrt(plan.unbiased.variance))
    targets, shares = some_targets(plan, MOST_TARGETS)
    with one_thread():
        squares = [
            weight * float(shares @ plan.kind.variances_without_noise(plan, model, targets))
            for weight, model in models_of(plan)
        ]
    return float(np.sqrt(sum(squares)))


def variances_beyond_rows(
    model: Hyperparameters, inputs: Array, counts: Array, nodes: Array, targets: Array
) -> Array:
    """The variance of f at the targets given ``counts`` outputs at every input.

    Through the nodes where there are many inputs.
    """
    mapped, goal = model.input_map(inputs), model.input_map(targets)
    kernel, noise = model.kernel, model.noise_variance
    if len(inputs) <= EXACT_INPUTS:
        return exact_smoother(kernel, noise, mapped, counts, goal).variance
    nodes = model.input_map(nodes)
    cross = evaluate(kernel, nodes, mapped)
    return node_smoother(kernel, nodes, (cross * (counts / noise)) @ cross.T, goal).variance


def check_error(error: object) -> float:
    """Refuse what is no error to ask for."""
    if isinstance(error, bool) or not isinstance(error, Real) or not 0 < float(error) < math.inf:
        raise ValueError("error must be a positive number.")  # unquoted: it may be y by mistake
    return float(error)


def least_epsilon(plan_at: Callable[[float], Plan], error: float) -> float:
    """The least epsilon, within 1%, at which the plan expects at most this error.

    From 1 in steps of a factor of 4 to where the answer changes, then by halving the factor between.
    The error falls with epsilon except for small steps where the choice of groups changes; the epsilon
    that is returned was planned for and expects at most ``error``. Never less than 1e-6. ValueError
    if the largest epsilon is not enough.
    """

    def reaches_error(epsilon: float) -> bool:
        return bool(np.all(plan_at(epsilon).expected_error() <= error))

    enough = short = 1.0
    if reaches_error(1.0):
        while short >= enough:
            short = max(LEAST_EPSILON, enough / STEP)
            if reaches_error(short):
                enough = short
                if enough == LEAST_EPSILON:
                    return enough
    else:
        while enough <= short:
            if short == MAX_EPSILON:
                raise ValueError(_explain_limit(plan_at(MAX_EPSILON), error))
            enough = min(MAX_EPSILON, short * STEP)
            if not reaches_error(enough):
                short = enough
    while enough > CLOSE * short:
        middle = math.sqrt(short * enough)
        if reaches_error(middle):
            enough = middle
        else:
            short = middle
    return enough


def _explain_limit(plan: Plan, error: float) -> str:
    least, without = (
        ", ".join(f"{each:.4g}" for each in np.atleast_1d(errors))
        for errors in (plan.expected_error(), plan.error_without_privacy())
    )
    return (
        f"no epsilon reaches an expected error of {error:g}: at the largest that is accepted, "
        f"{MAX_EPSILON:g}, it is {least}, and without privacy it would be {without}."
    )
