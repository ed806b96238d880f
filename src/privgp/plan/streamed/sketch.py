"""From rows that stream past, and inducing inputs, to a Plan: one pass once the columns are known.
Everything else works on a public sample: starting hyperparameters, inducing inputs and the design,
where every inducing input stands for the rows nearest to it. Sees inputs only."""

from dataclasses import dataclass, replace
from operator import add
from typing import Any

import numpy as np
from scipy.linalg import cho_solve

from privgp.engine.local import Engine, Lattice, Threads
from privgp.gp.input_maps import collapse, spreads
from privgp.gp.kernels.evaluate import evaluate, variance
from privgp.gp.priors import Hyperparameters, Prior
from privgp.gp.smoothers import node_smoother, stable_cholesky
from privgp.gp.threads import one_thread_of_loops
from privgp.plan.build import Budget, Question
from privgp.plan.choice import Goal, aware_matrix, indicators
from privgp.plan.designs.hypotheses import Masses, design_models, hypotheses_for, several_scales
from privgp.plan.designs.noise_aware import Hypothesis, log_variance_left
from privgp.plan.designs.partition import partition
from privgp.plan.designs.workload import design
from privgp.plan.inputs.rows import LARGEST, Chunk, Rows, block_number, sample, sum_blocks
from privgp.plan.inputs.start import initial_priors
from privgp.plan.kinds import Outputs, Unbiased
from privgp.plan.part import Part
from privgp.plan.streamed.columns import (
    RESIDUAL_ROWS,
    Columns,
    GroupColumns,
    Totals,
    spread_out,
)
from privgp.plan.streamed.sums import AnyColumns, strategy_of_columns
from privgp.privacy.noise import GAUSSIAN, LAPLACE, PURE, noise_for
from privgp.types import Array, UserData

SAMPLE = 8192  # rows from which scales and inducing inputs are chosen
MOST_MEASURED = 120  # sums: more cost time in proportion
TARGETS = 1024  # of these, where accuracy is reported unless targets are given
ROUNDS = 30  # of k-means
USUAL, MOST_USUAL = 75, 300  # inducing inputs: for each column, and in total


@dataclass(frozen=True)
class Sketch:
    """A plan except for its pass over the rows: what is measured of each row is fixed. ``people``:
    whether some rows may be one person's."""

    question: Question
    budget: Budget
    priors: tuple[Prior, ...]
    columns: AnyColumns
    seen: Array
    goal: Goal
    kind: Outputs
    people: bool = False

    def finish(self, totals: Totals) -> Part:
        """The plan, once the pass over the rows is done."""
        energy, change = self.question.energy, self.question.change
        asked: dict[str, Any] = {"energy": energy, "change": change, "people": self.people}
        strategy = strategy_of_columns(self.columns, totals, **asked)
        measured = self.columns.functionals(totals, self.seen)
        return self.question.part(
            self.budget, strategy, measured, self.priors, self.goal, self.kind
        )


def sketch_plan(
    rows: Rows,
    question: Question,
    budget: Budget,
    inducing: int | Array | None,
    engine: Engine | None = None,
) -> Sketch:
    """Choose what is measured of a row through inducing inputs."""
    engine = engine or Threads()
    if inducing is None:
        inducing = usual_inducing_count(rows.columns)
    seen = sample(rows, SAMPLE, engine)
    priors = initial_priors(seen, question, learned=question.adapts)
    Z = choose_inducing_inputs(seen, inducing) if isinstance(inducing, int) else inducing
    goal = goal_of(question, seen)
    kind = Outputs(Z, np.arange(len(Z)), design_gap=np.inf)
    if question.objective == "posterior":
        columns = InducingDesign(question, budget, priors, seen, Z, rows).best()
    else:
        if rows.persons is not None:
            raise ValueError("groups of many rows go with objective='posterior' only.")
        start = priors[0].start
        columns, unbiased, gap = _smoother_columns(question, rows, start, seen, Z, goal, engine)
        kind = replace(kind, unbiased=unbiased, design_gap=gap)
    return Sketch(question, budget, priors, columns, seen, goal, kind, rows.persons is not None)


def goal_of(question: Question, seen: Array) -> Goal:
    """The targets; some of the sampled rows where none were given."""
    inputs, index = collapse(spread_out(seen, TARGETS))
    return question.goal(inputs, np.bincount(index).astype(float))


@dataclass(frozen=True)
class InducingDesign:
    """The choice between designs for rows that are gathered at the inducing inputs."""

    question: Question
    budget: Budget
    priors: tuple[Prior, ...]
    seen: Array
    nodes: Array
    rows: Rows

    @property
    def start(self) -> Hyperparameters:
        return self.priors[0].start

    def best(self) -> Columns:
        """The columns that leave least unknown of those with the laws that were asked for."""
        law, delta = self.question.mechanism, self.budget.delta
        if law in PURE or delta == 0:
            return self._groups(self._pure()[0])
        weighted, left = self._weigh_design(self._share())
        if self.rows.persons is not None:  # once more, for the weights that people get
            weighted, left = self._weigh_design(self._weight_by(weighted))
        if law == GAUSSIAN:
            return weighted
        matrix, left_by_groups = self._pure()
        return self._groups(matrix) if left_by_groups < left else weighted

    def _counts(self) -> Array:
        """About how many rows are nearest to each inducing input."""
        nearest = np.argmax(evaluate(self.start.kernel, self.nodes, self.seen), axis=0)
        counts = np.bincount(nearest, minlength=len(self.nodes)) * (
            self.rows.count / len(self.seen)
        )
        return np.asarray(np.maximum(counts, 1e-3 * self.rows.count / len(self.nodes)))

    def _share(self) -> float:
        """About what weight a row has beside others of its person."""
        persons = self.rows.persons
        return 1.0 if persons is None else persons / self.rows.count

    def _weight_by(self, columns: Columns) -> float:
        """The mean weight of rows in the first chunk, were these columns measured."""
        chunk = next(self.rows.parts(self.rows.count)[0].chunks())
        assert chunk.people is not None
        people = np.unique(chunk.people, return_inverse=True)[1]
        weights, _ = columns.weigh(columns.at(chunk.inputs)[0], people, self.question.change)
        return float(weights[people].mean())

    def _hypotheses(self, weight: float, *, scales: bool) -> list[Hypothesis]:
        counts, models = self._counts(), design_models(self.priors)
        if scales and self.question.adapts:
            models = several_scales(models)
        masses = Masses(counts * weight, counts * weight * weight)
        goal, every = self.question.goal(self.nodes, counts), np.arange(len(self.nodes))
        return hypotheses_for(models, self.nodes, every, masses, *goal, whole=scales)

    def _weigh_design(self, share: float) -> tuple[Columns, float]:
        """The noise-aware design, carried to all x by ``b(x) = B k(Z, Z)^-1 k(Z, x)`` and brought to
        norm 1, and what it leaves unknown."""
        noise = (self.budget.std_for(self.question.change) * self.question.half_width) ** 2
        counts = self._counts() * share
        goal = self.question.goal(self.nodes, counts)
        hypotheses = self._hypotheses(share, scales=False)
        B = aware_matrix(hypotheses, self.start, self.nodes, counts, *goal, noise, MOST_MEASURED)
        L = stable_cholesky(evaluate(self.start.kernel, self.nodes))
        matrix = cho_solve((L, True), B.T, check_finite=False).T
        left = log_variance_left(B, self._hypotheses(share, scales=True), noise)
        return Columns(self.start.kernel, self.nodes, matrix, unit=True), left

    def _pure(self) -> tuple[Array, float]:
        """Groups of inducing inputs, (groups, nodes), and what sums over them leave unknown."""
        share = self._share()
        unit = noise_for(LAPLACE, self.budget.epsilon, 0.0, 1, self.question.change, 0.0)
        noise = (unit.std * self.question.half_width) ** 2
        scales = self._hypotheses(share, scales=True)

        def left(groups: UserData) -> float:
            return log_variance_left(indicators(groups), scales, noise)

        groups = partition(scales, self._counts() * share, left)
        return indicators(groups).toarray(), left(groups)

    def _groups(self, matrix: Array) -> Columns:
        return GroupColumns(self.start.kernel, self.nodes, matrix, unit=False)


def _smoother_columns(
    question: Question,
    rows: Rows,
    start: Hyperparameters,
    seen: Array,
    Z: Array,
    goal: Goal,
    engine: Engine,
) -> tuple[Columns, Unbiased | None, float]:
    """The least noise for the DTC smoother ``C = W k(Z, X) / s^2``, designed on sampled rows."""
    kernel, noise = start.kernel, start.noise_variance
    targets, weights = goal

    squares = KernelSquares(kernel, Z)
    blocks = rows.parts(block_number(rows.count, engine))
    gram = squares.lattice.join(sum_blocks(squares, add, blocks, engine))
    smoother = node_smoother(kernel, Z, gram / noise, targets)
    some = spread_out(seen, RESIDUAL_ROWS)
    W = smoother.weights / noise
    linear = design(W @ evaluate(kernel, Z, collapse(some)[0]), question.objective, weights)
    S = np.linalg.pinv(linear.reconstruction, rcond=1e-13) @ W
    unbiased = None
    if question.reconstruct == "unbiased":
        unbiased = Unbiased(linear.reconstruction, smoother.variance, 0.0)
    gap = linear.gap if len(some) == rows.count else np.inf  # certified for all rows only
    return Columns(kernel, Z, S, unit=False), unbiased, gap


@dataclass(frozen=True, repr=False)
class KernelSquares:
    """``k(Z, X) k(X, Z)`` of a chunk of rows, on the lattice of their sum."""

    kernel: Any
    nodes: Array

    @property
    def lattice(self) -> Lattice:
        return Lattice.for_size(LARGEST * (2.0 * variance(self.kernel)) ** 2)

    def __call__(self, chunk: Chunk) -> Any:
        K = evaluate(self.kernel, self.nodes, chunk.inputs)
        return self.lattice.split(K @ K.T)


def usual_inducing_count(columns: int) -> int:
    """How many inducing inputs do for this many columns of inputs, unless a number is given."""
    return min(USUAL * columns, MOST_USUAL)


def choose_inducing_inputs(seen: Array, count: int) -> Array:
    """``count`` centres of the rows (k-means on inputs scaled to their spread), without chance.
    Fewer, if there are fewer distinct inputs or centres coincide."""
    from sklearn.cluster import KMeans  # slow to import

    distinct = collapse(seen)[0]
    if len(distinct) <= count:
        return distinct
    middle, scale = seen.mean(axis=0), spreads(seen)
    means = KMeans(count, n_init=1, max_iter=ROUNDS, random_state=0)
    with one_thread_of_loops():  # sums in one order
        centres = means.fit((seen - middle) / scale).cluster_centers_
    return collapse(np.asarray(centres, dtype=np.float64) * scale + middle)[0]
