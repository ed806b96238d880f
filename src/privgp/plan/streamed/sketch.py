"""From rows that stream past, and inducing inputs, to a Plan: one pass once the columns are known.
Everything else works on a public sample: starting hyperparameters, inducing inputs and the design,
where every inducing input stands for the rows nearest to it. Sees inputs only."""

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import cho_solve, solve_triangular
from threadpoolctl import threadpool_limits

from privgp.gp.input_maps import collapse, spreads
from privgp.gp.kernels.evaluate import evaluate, variance
from privgp.gp.priors import Hyperparameters, Prior
from privgp.gp.smoothers import inducing_smoother, stable_cholesky
from privgp.plan.build import Budget, Question
from privgp.plan.choice import Goal, aware_matrix
from privgp.plan.designs.hypotheses import design_models, hypotheses_for
from privgp.plan.designs.workload import design
from privgp.plan.inputs.rows import Rows, in_blocks, sample
from privgp.plan.inputs.start import starting_priors
from privgp.plan.kinds import Outputs, Unbiased
from privgp.plan.plan import Plan
from privgp.plan.strategy import Crowd
from privgp.plan.streamed.columns import Columns, Totals, streamed_functionals, streamed_strategy
from privgp.types import Array

SAMPLE = 8192  # rows from which scales and inducing inputs are chosen
RESIDUAL_ROWS = 2048  # of these, for what the inducing inputs leave out
MOST_MEASURED = 120  # sums: more cost time in proportion
TARGETS = 1024  # of these, where accuracy is reported unless targets are given
ROUNDS = 30  # of k-means


@dataclass(frozen=True)
class Sketch:
    """A plan but for its pass over the rows: what is measured of each row is fixed."""

    question: Question
    budget: Budget
    priors: tuple[Prior, ...]
    columns: Columns
    seen: Array
    goal: Goal
    kind: Outputs

    def finish(self, totals: Totals) -> Plan:
        """The plan, once the pass over the rows is done."""
        energy, change = self.question.energy, self.question.change
        strategy = streamed_strategy(self.columns, totals, energy=energy, change=change)
        left = residual_gram(self.columns, self.seen, totals.rows)
        measured = streamed_functionals(self.columns, totals, left)
        return self.question.plan(
            self.budget, strategy, measured, self.priors, self.goal, self.kind
        )


def sketch_plan(rows: Rows, question: Question, budget: Budget, inducing: int | Array) -> Sketch:
    """Choose inducing inputs and what is measured of a row."""
    seen = sample(rows, SAMPLE)
    priors = starting_priors(seen, question, learned=question.adapts)
    Z = choose_inducing(seen, inducing) if isinstance(inducing, int) else inducing
    inputs, index = collapse(_some(seen, TARGETS))
    goal = question.goal(inputs, np.bincount(index).astype(float))
    kind = Outputs(Z, np.arange(len(Z)), design_gap=np.inf)
    if question.objective == "posterior":
        columns = _aware_columns(question, budget, priors, seen, Z, rows.count)
    else:
        columns, unbiased, gap = _smoothing_columns(question, rows, priors[0].start, seen, Z, goal)
        kind = replace(kind, unbiased=unbiased, design_gap=gap)
    return Sketch(question, budget, priors, columns, seen, goal, kind)


def _aware_columns(
    question: Question, budget: Budget, priors: tuple[Prior, ...], seen: Array, Z: Array, rows: int
) -> Columns:
    """The noise-aware design for rows gathered at the inducing inputs, carried to all x by
    ``b(x) = B k(Z, Z)^-1 k(Z, x)`` and brought to norm 1."""
    start = priors[0].start
    nearest = np.argmax(evaluate(start.kernel, Z, seen), axis=0)
    counts = np.bincount(nearest, minlength=len(Z)) * (rows / len(seen))
    counts = np.maximum(counts, 1e-3 * rows / len(Z))
    noise = (budget.std_for(question.change) * question.half_width) ** 2
    goal, every = question.goal(Z, counts), np.arange(len(Z))
    hypotheses = hypotheses_for(design_models(priors), Z, every, Crowd(counts), *goal)
    B = aware_matrix(hypotheses, start, Z, counts, *goal, noise, MOST_MEASURED)
    L = stable_cholesky(evaluate(start.kernel, Z))
    return Columns(start.kernel, Z, cho_solve((L, True), B.T, check_finite=False).T, unit=True)


def _smoothing_columns(
    question: Question, rows: Rows, start: Hyperparameters, seen: Array, Z: Array, goal: Goal
) -> tuple[Columns, Unbiased | None, float]:
    """The least noise for the DTC smoother ``C = W k(Z, X) / s^2``, designed on sampled rows."""
    kernel, noise = start.kernel, start.noise_variance
    targets, weights = goal

    def part(X: Array) -> Array:
        K = evaluate(kernel, Z, X)
        return np.asarray(K @ K.T)

    gram = sum(in_blocks(part, rows.blocks()), np.zeros((len(Z), len(Z))))
    smoother = inducing_smoother(kernel, Z, gram / noise, targets)
    some = _some(seen, RESIDUAL_ROWS)
    W = smoother.weights / noise
    linear = design(W @ evaluate(kernel, Z, collapse(some)[0]), question.objective, weights)
    S = np.linalg.pinv(linear.reconstruction, rcond=1e-13) @ W
    unbiased = None
    if question.reconstruct == "unbiased":
        unbiased = Unbiased(linear.reconstruction, smoother.variance, 0.0)
    gap = linear.gap if len(some) == rows.count else np.inf  # certified for all rows only
    return Columns(kernel, Z, S, unit=False), unbiased, gap


def residual_gram(columns: Columns, seen: Array, rows: int) -> Array:
    """``B (k(X, X) - q(X, X)) B^T / k(x, x)``: what sums over the rows hold beyond the function at
    Z, estimated from sampled rows, pairs of different rows and rows with themselves apart."""
    prior, X = variance(columns.kernel), _some(seen, RESIDUAL_ROWS)
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
    places = np.linspace(0, len(seen) - 1, most).astype(np.int64)
    return seen if len(seen) <= most else seen[places]


def choose_inducing(seen: Array, count: int) -> Array:
    """``count`` centres of the rows (k-means on inputs scaled to their spread), without chance.
    Fewer, if there are fewer distinct inputs or centres coincide."""
    from sklearn.cluster import KMeans  # slow to import

    distinct = collapse(seen)[0]
    if len(distinct) <= count:
        return distinct
    middle, scale = seen.mean(axis=0), spreads(seen)
    means = KMeans(count, n_init=1, max_iter=ROUNDS, random_state=0)
    with threadpool_limits(1):  # sums in one order
        centres = means.fit((seen - middle) / scale).cluster_centers_
    return collapse(np.asarray(centres, dtype=np.float64) * scale + middle)[0]
