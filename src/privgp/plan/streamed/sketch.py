"""From rows that stream past, and inducing inputs, to a Plan: one pass once the columns are known.

Everything but that pass works on a public sample: starting hyperparameters, inducing inputs and
the design, where every inducing input stands for the rows nearest to it. Sees inputs only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_solve, solve_triangular
from threadpoolctl import threadpool_limits

from privgp.gp.input_maps import collapse, spreads
from privgp.gp.kernels.evaluate import evaluate, variance
from privgp.gp.priors import Hyperparameters, Prior
from privgp.gp.smoothers import inducing_smoother, stable_cholesky
from privgp.plan.build import Budget, Question
from privgp.plan.choice import aware_matrix
from privgp.plan.designs.hypotheses import design_models, hypotheses_for
from privgp.plan.designs.workload import design
from privgp.plan.inputs.rows import Rows, in_blocks, sample
from privgp.plan.inputs.start import starting_priors
from privgp.plan.outputs import Outputs, Unbiased
from privgp.plan.plan import Plan
from privgp.plan.streamed.columns import Columns, Totals, streamed_functionals, streamed_strategy
from privgp.types import Array

SAMPLE = 8192  # rows from which scales and inducing inputs are chosen
RESIDUAL_ROWS = 2048  # of these, for what the inducing inputs leave out
MOST_MEASURED = 120  # sums: more cost time in proportion
TARGETS = 1024  # of these, where accuracy is reported unless targets are given
ROUNDS = 30  # of k-means


@dataclass(frozen=True)
class Crowd:
    """``counts`` rows at every input."""

    counts: Array

    def masses(self) -> tuple[Array, Array]:
        return self.counts, self.counts


@dataclass(frozen=True)
class Sketch:
    """A plan but for its pass over the rows: what is measured of each row is fixed."""

    question: Question
    budget: Budget
    priors: tuple[Prior, ...]
    columns: Columns
    seen: Array
    targets: Array
    target_weights: Array
    unbiased: Unbiased | None
    gap: float

    @property
    def y_bounds(self) -> tuple[float, float]:
        return self.question.y_bounds

    def finish(self, totals: Totals) -> Plan:
        """The plan, once the pass over the rows is done."""
        question, budget = self.question, self.budget
        learned = question.learned and question.reconstruct == "posterior"
        strategy = streamed_strategy(self.columns, totals, energy=learned)
        nodes = self.columns.nodes
        left = residual_gram(self.columns, self.seen, totals.rows)
        return Plan(
            epsilon=budget.epsilon,
            delta=budget.delta,
            y_bounds=question.y_bounds,
            objective=question.objective,
            reconstruct=question.reconstruct,
            targets=self.targets,
            target_weights=self.target_weights,
            strategy=strategy,
            functionals=streamed_functionals(self.columns, totals, left),
            noise=budget.noise_of(strategy),
            priors=self.priors,
            kind=Outputs(nodes, np.arange(len(nodes)), self.unbiased, self.gap),
        )


def sketch_plan(rows: Rows, question: Question, budget: Budget, inducing: int | Array) -> Sketch:
    """Choose inducing inputs and what is measured of a row."""
    width = question.y_bounds[1] - question.y_bounds[0]
    learned = question.learned and question.reconstruct == "posterior"
    seen = sample(rows, SAMPLE)
    priors = starting_priors(seen, width, question.kernel, question.noise_variance, learned=learned)
    start = priors[0].start
    nodes = choose_inducing(seen, inducing) if isinstance(inducing, int) else inducing
    targets = question.targets
    if targets is None:
        targets, index = collapse(_some(seen, TARGETS))
        weights = np.bincount(index).astype(float)
    else:
        weights = np.ones(len(targets))
    unbiased = None
    if question.objective == "posterior":
        columns = _aware_columns(priors, seen, nodes, rows.count, question, budget)
        gap = np.inf
    else:
        goal = targets, weights
        columns, unbiased, gap = _smoothing_columns(start, rows, seen, nodes, goal, question)
    return Sketch(question, budget, priors, columns, seen, targets, weights, unbiased, gap)


def _aware_columns(
    priors: tuple[Prior, ...],
    seen: Array,
    nodes: Array,
    count: int,
    question: Question,
    budget: Budget,
) -> Columns:
    """The noise-aware design for rows gathered at the inducing inputs, carried to all x by
    ``b(x) = B k(Z, Z)^-1 k(Z, x)`` and brought to norm 1."""
    width = question.y_bounds[1] - question.y_bounds[0]
    kernel = priors[0].start.kernel
    nearest = np.argmax(evaluate(kernel, nodes, seen), axis=0)
    counts = np.bincount(nearest, minlength=len(nodes)) * (count / len(seen))
    counts = np.maximum(counts, 1e-3 * count / len(nodes))
    noise = (budget.noise_for(1, 2.0, 0.0).std * 0.5 * width) ** 2
    goal = nodes if question.targets is None else question.targets
    weights = counts if question.targets is None else np.ones(len(goal))
    every = np.arange(len(nodes))
    found = hypotheses_for(design_models(priors), nodes, every, Crowd(counts), goal, weights)
    raw = priors[0].start
    B = aware_matrix(found, raw, nodes, counts, goal, weights, noise, MOST_MEASURED)
    L = stable_cholesky(evaluate(kernel, nodes))
    return Columns(kernel, nodes, cho_solve((L, True), B.T, check_finite=False).T, unit=True)


def _smoothing_columns(
    start: Hyperparameters,
    rows: Rows,
    seen: Array,
    nodes: Array,
    goal: tuple[Array, Array],
    question: Question,
) -> tuple[Columns, Unbiased | None, float]:
    """The least noise for the DTC smoother ``C = W k(Z, X) / s^2``, designed on sampled rows.

    The gap is certified if these are all rows.
    """
    kernel, noise = start.kernel, start.noise_variance
    targets, weights = goal

    def part(X: Array) -> Array:
        K = evaluate(kernel, nodes, X)
        return np.asarray(K @ K.T)

    gram = np.zeros((len(nodes), len(nodes)))
    for block in in_blocks(part, rows.blocks()):
        gram += block
    smoother = inducing_smoother(kernel, nodes, gram / noise, targets)
    some = _some(seen, RESIDUAL_ROWS)
    W = smoother.weights / noise
    found = design(W @ evaluate(kernel, nodes, collapse(some)[0]), question.objective, weights)
    S = np.linalg.pinv(found.reconstruction, rcond=1e-13) @ W
    columns = Columns(kernel, nodes, S, unit=False)
    unbiased = None
    if question.reconstruct == "unbiased":
        unbiased = Unbiased(found.reconstruction, smoother.variance, 0.0)
    return columns, unbiased, found.gap if len(some) == rows.count else np.inf


def residual_gram(columns: Columns, seen: Array, rows: int) -> Array:
    """``B (k(X, X) - q(X, X)) B^T / k(x, x)``: what sums over the rows hold beyond the function at Z.

    Estimated from sampled rows, pairs of different rows and rows with themselves apart.
    """
    prior = variance(columns.kernel)
    X = _some(seen, RESIDUAL_ROWS)
    B, K = columns.at(X)
    L = stable_cholesky(evaluate(columns.kernel, columns.nodes))
    half = solve_triangular(L, K, lower=True, check_finite=False)
    own = np.maximum(prior - np.square(half).sum(axis=0), 0.0)
    alone = (B * (own * rows / len(X))) @ B.T / prior
    if len(X) < 2:
        return np.asarray(alone)
    left = evaluate(columns.kernel, X) - half.T @ half
    np.fill_diagonal(left, 0.0)
    pairs = (rows / len(X)) * ((rows - 1) / (len(X) - 1)) / prior
    gram = alone + pairs * (B @ left @ B.T)
    values, vectors = np.linalg.eigh(0.5 * (gram + gram.T))
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)


def _some(seen: Array, most: int) -> Array:
    """At most ``most`` of the sampled rows, evenly spread over the sample."""
    if len(seen) <= most:
        return seen
    return seen[np.linspace(0, len(seen) - 1, most).astype(np.int64)]


def choose_inducing(seen: Array, count: int) -> Array:
    """``count`` centres of the rows (k-means on inputs scaled to their spread), without chance.

    What interpolation from the centres leaves out of a kernel matrix is bounded by how far rows are
    from them. All distinct inputs, if there are no more than that. Fewer, should centres coincide.
    """
    from sklearn.cluster import KMeans  # slow to import

    distinct = collapse(seen)[0]
    if len(distinct) <= count:
        return distinct
    middle, scale = seen.mean(axis=0), spreads(seen)
    means = KMeans(count, n_init=1, max_iter=ROUNDS, random_state=0)
    with threadpool_limits(1):  # sums in one order
        centres = means.fit((seen - middle) / scale).cluster_centers_
    return collapse(np.asarray(centres, dtype=np.float64) * scale + middle)[0]
