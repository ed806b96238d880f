"""From public inputs and a budget to a Plan."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.spatial import KDTree
from sklearn.gaussian_process.kernels import Kernel

from privgp.gp.functionals import Functionals
from privgp.gp.input_maps import collapse, spreads
from privgp.gp.priors import Hyperparameters, Prior
from privgp.gp.smoothers import Nystrom, choose_nodes
from privgp.plan.cells import MOST_CELLS, Cells, cell_count, means
from privgp.plan.choice import NODES, Goal, Task, best_sums, smoother_of
from privgp.plan.counts.exposures import Exposures
from privgp.plan.counts.rates import Rates
from privgp.plan.designs.earlier import Earlier
from privgp.plan.designs.workload import design
from privgp.plan.inputs.inputs import Inputs
from privgp.plan.inputs.start import initial_priors
from privgp.plan.kinds import Outputs, Records, Unbiased
from privgp.plan.plan import Plan
from privgp.plan.strategy import OutputSums, Strategy, noise_of, strategy_for_rows
from privgp.privacy.noise import GAUSSIAN, LAPLACE, PURE, Noise, gaussian_noise
from privgp.privacy.sensitivity import WHOLE, scale_change
from privgp.types import Array, Integers

SEARCHED = 40  # up to this many numbers, groups of inputs are searched for
NODES_PER_INPUT, NODES_PER_CELL = (
    48,
    6,
)  # whichever are more carry the function where numbers are few


@dataclass(frozen=True)
class Budget:
    """What may be spent."""

    epsilon: float
    delta: float

    @property
    def unit_std(self) -> float:
        """Std of the Gaussian noise that hides one output in [-1, 1]."""
        return gaussian_noise(self.epsilon, self.delta, 1, WHOLE, 0.0).std

    def std_for(self, change: float) -> float:
        """Std of the Gaussian noise that hides a number which a person changes by this much."""
        return self.unit_std * change / WHOLE

    def noise_of(self, strategy: Strategy) -> Noise:
        """The noise that hides one person in this measurement."""
        return noise_of(strategy, self.epsilon, self.delta)

    def sum_variance(self, question: Question) -> float:
        """The least variance of the noise on a sum that every output is in one of."""
        classes = 2.0 if question.classes > 2 else 1.0
        laplace = 2.0 * (classes * question.change / self.epsilon) ** 2
        if question.mechanism != GAUSSIAN:
            return laplace
        return classes * self.std_for(question.change) ** 2


@dataclass(frozen=True)
class Question:
    """What is to be learned: everything public that a plan needs besides inputs and budget.

    ``ranked``: design also for a given kernel on ranked inputs, as is done for the default one, so
    that the measurement serves kernels other than the one it is planned for. ``squares``: whether
    squared outputs tell more than outputs, as those of labels do not. ``max_change``: how much one
    person can change one output; ``exposures``: given where outputs are counts; ``classes``: of labels;
    ``inputs``: what the columns are, where they are not all numbers; ``inducing``: how many inputs, or
    which points, carry the function. None: a usual number.
    """

    y_bounds: tuple[float, float]
    kernel: Kernel | None = None
    noise_variance: float | None = None
    targets: Array | None = None
    objective: str = "posterior"
    reconstruct: str = "posterior"
    learned: bool = True
    mechanism: str = "auto"
    ranked: bool = False
    squares: bool = True
    max_change: float | None = None
    exposures: Exposures | None = None
    classes: int = 2
    inputs: Inputs | None = None
    inducing: int | Array | None = None

    def nodes(self, model: Hyperparameters, inputs: Array, cells: int) -> Integers:
        """Which inputs carry the function: as many as asked for, or those nearest to given points.

        Where many models are averaged over, several for each of the cells that the budget can tell apart.
        """
        if isinstance(self.inducing, np.ndarray):
            scaled = spreads(inputs)
            nearest = KDTree(inputs / scaled).query(self.inducing / scaled)[1]
            return np.unique(nearest).astype(np.int64)
        count = max(NODES, MOST_CELLS) if self.inducing is None else self.inducing
        if self.inducing is None and len(inputs) > MOST_CELLS:
            count = NODES
        many_models = self.adapts and self.mechanism != GAUSSIAN
        if self.inducing is None and many_models and cells <= SEARCHED:
            count = min(count, max(NODES_PER_INPUT * inputs.shape[1], NODES_PER_CELL * cells))
        return choose_nodes(model.kernel, model.input_map(inputs), count)

    @property
    def change(self) -> float:
        """By how much a person changes an output scaled to [-1, 1] at most."""
        return scale_change(self.max_change, self.y_bounds)

    @property
    def half_width(self) -> float:
        return 0.5 * (self.y_bounds[1] - self.y_bounds[0])

    @property
    def adapts(self) -> bool:
        """Whether hyperparameters are learned from the measurement."""
        return self.learned and self.reconstruct == "posterior"

    @property
    def energy(self) -> bool:
        """Whether the sum of squared outputs is measured, for the sake of learning."""
        return self.adapts and self.squares

    @property
    def of_records(self) -> dict[str, Any]:
        """How records with such outputs are summed: how many classes have sums of their own, whether
        squares of outputs are summed too, the unit of rates where outputs are counts, and how many
        bins or features there are at most."""
        one, unit = self.classes == 2, None if self.exposures is None else self.exposures.unit
        energy, classes = one and unit is None, 1 if one else self.classes
        return {"classes": classes, "energy": energy, "unit": unit, "most": self.inducing}

    def kind(self, inputs: Array, nodes: Integers, cells: int | None = None) -> Outputs:
        """What is planned at these inputs, of which ``nodes`` carry the function; ``cells``: how many of
        these were made of the inputs, if any."""
        counts = self.exposures
        if counts is None:
            return Outputs(inputs, nodes, cells=cells)
        return Rates(inputs, nodes, cells=cells, rate=counts.unit)

    def goal(self, inputs: Array, counts: Array) -> Goal:
        """The targets; the inputs where none were given."""
        if self.targets is None:
            return inputs, counts
        return self.targets, np.ones(len(self.targets))

    def plan(
        self,
        budget: Budget,
        strategy: Any,
        functionals: Functionals,
        priors: tuple[Prior, ...],
        goal: Goal,
        kind: Outputs | Records,
        rival: Any = None,
    ) -> Plan:
        """The plan of a measurement, with the noise that hides one person."""
        return Plan(
            epsilon=budget.epsilon,
            delta=budget.delta,
            y_bounds=self.y_bounds,
            objective=self.objective,
            reconstruct=self.reconstruct,
            targets=goal[0],
            target_weights=goal[1],
            strategy=strategy,
            functionals=functionals,
            noise=budget.noise_of(strategy),
            priors=priors,
            kind=kind,
            rival=rival,
        )


def make_plan(
    X: Array,
    question: Question,
    budget: Budget,
    people: Integers | None = None,
    earlier: Earlier | None = None,
) -> Plan:
    """Choose the measurement. Sees inputs, never outputs. ``earlier``: what is known already."""
    task = task_of(X, question, budget, people, earlier)
    if question.objective != "posterior":
        strategy, kind = _linear_strategy(task)
        return plan_of(task, strategy, kind)
    if question.reconstruct == "posterior":
        strategy, rival = _posterior_strategy(task)
        return plan_of(task, strategy, rival=rival)
    raise ValueError(
        "reconstruct='unbiased' needs objective 'trace', 'max' or 'logdet', not 'posterior'."
    )


def task_of(
    X: Array,
    question: Question,
    budget: Budget,
    people: Integers | None,
    earlier: Earlier | None = None,
) -> Task:
    """What a measurement at these inputs is chosen for."""
    if earlier is None:
        priors = initial_priors(X, question, learned=question.adapts)
    else:
        priors = earlier.priors
    rows = gather(X, question, budget, people)
    inputs, index = rows.inputs, rows.index
    counts, start = np.bincount(index).astype(float), priors[0].start
    sizes = counts
    if question.exposures is not None:
        sizes = np.bincount(index, question.exposures.expected)
    nodes = question.nodes(start, inputs, rows.wanted)
    goal = question.goal(inputs, counts)
    places = inputs, index, sizes, nodes
    cells = rows.groups, rows.cells
    return Task(question, budget, priors, *places, people, goal, earlier, *cells)


@dataclass(frozen=True)
class Gathered:
    """The inputs that a plan is made for, and which of them every row has.

    Attributes
    ----------
    inputs : array, (inputs, columns)
        Distinct inputs, or the parts of cells.
    index : array, (rows,)
        The input of every row.
    groups : array, (inputs,), optional
        The cell of every input; None where groups of inputs are yet to be chosen.
    wanted : int
        How many cells the budget can tell apart.
    cells : int, optional
        How many cells there are, where inputs are their parts.

    """

    inputs: Array
    index: Integers
    wanted: int
    groups: Integers | None = None
    cells: int | None = None


def gather(X: Array, question: Question, budget: Budget, people: Integers | None) -> Gathered:
    """Few distinct inputs as they are; many as the parts of cells, of which there are as many as the budget
    can tell apart."""
    inputs, index = collapse(X)
    if question.objective != "posterior" or len(inputs) <= SEARCHED:
        return Gathered(inputs, index, len(inputs))
    rows = len(X) if people is None else int(people.max()) + 1
    dimensions = X.shape[1] if question.inputs is None else question.inputs.dimensions
    count = cell_count(rows, dimensions, budget.sum_variance(question))
    if count <= SEARCHED or len(inputs) <= count:
        return Gathered(inputs, index, count)
    scales = spreads(X) if question.inputs is None else question.inputs.scales(X)
    cells = Cells.of(X, scales, count)
    if len(inputs) <= NODES:  # nothing is approximated
        groups = np.unique(cells.cells[cells.find(inputs)], return_inverse=True)[1]
        return Gathered(inputs, index, count, groups)
    parts, index = np.unique(cells.find(X), return_inverse=True)
    groups = np.unique(cells.cells[parts], return_inverse=True)[1]
    return Gathered(means(X, index), index, count, groups, int(groups.max()) + 1)


def plan_of(
    task: Task, strategy: OutputSums, kind: Outputs | None = None, rival: OutputSums | None = None
) -> Plan:
    """The plan of a measurement that was chosen for a task."""
    kind = kind or task.question.kind(task.inputs, task.nodes, task.cells)
    measured = functionals(strategy, task.factors[0])
    plan = task.question.plan(task.budget, strategy, measured, task.priors, task.goal, kind, rival)
    return plan if task.earlier is None else replace(plan, earlier=task.earlier)


def _posterior_strategy(task: Task) -> tuple[OutputSums, OutputSums | None]:
    """The measurement that leaves less error, and the other where both were compared."""
    auto = task.question.mechanism == "auto"
    law = LAPLACE if auto else task.question.mechanism
    if task.budget.delta == 0:  # nothing Gaussian to compare with
        return best_sums(task, law), None
    gaussian = best_sums(task, GAUSSIAN)
    if law in PURE:
        pure = best_sums(task, law)
        if not auto or task.log_variance_left(pure) < task.log_variance_left(gaussian):
            return pure, gaussian
    return gaussian, None


def _linear_strategy(task: Task) -> tuple[OutputSums, Outputs]:
    """The least noise on the posterior mean at the targets, as the papers have it."""
    question, (targets, weights) = task.question, task.goal
    smoother = smoother_of(task.priors[0].start, task.inputs, task.counts, targets)
    linear = design(smoother.weights, question.objective, weights)
    equal = question.reconstruct == "unbiased"
    strategy = strategy_for_rows(
        linear.strategy,
        task.index,
        task.people,
        energy=question.energy,
        equal_weights=equal,
        change=question.change,
    )
    unbiased = None
    if equal:  # undo what people with several rows scaled the design down by
        norm = float(np.linalg.norm(strategy.matrix))
        scale = float(np.linalg.norm(linear.strategy)) / norm if norm > 0 else 1.0
        reconstruction = linear.reconstruction * scale
        unbiased = Unbiased(reconstruction, smoother.variance, smoother.jitter)
    return strategy, Outputs(task.inputs, task.nodes, unbiased, linear.gap)


def functionals(strategy: OutputSums, factor: Nystrom) -> Functionals:
    """Describe a strategy on the distinct inputs that ``factor`` was made from."""
    B, J = strategy.matrix, factor.interpolation
    per_input = strategy.per_input
    g, e = strategy.row_weights, strategy.energy_shares
    if strategy.expected is not None:  # no energy is measured of counts
        e = strategy.expected
    mass, squares = strategy.masses()
    unexplained = np.zeros_like(B)
    if factor.chosen.size < B.shape[1]:
        variance = float(np.square(factor.factor[0]).sum() + factor.residual[0])
        unexplained = B * (mass * np.sqrt(factor.residual / variance))
    return Functionals(
        nodes=factor.nodes,
        weights=(B * mass) @ J.T,
        noise_gram=(B * squares) @ B.T,
        residual_gram=unexplained @ unexplained.T,
        energy_total=float(e.sum()),
        energy_gram=(J * per_input(e)) @ J.T,
        energy_cross=J @ (per_input(e * g)[:, None] * B.T),
        energy_noise_gram=(B * per_input(e * g * g)) @ B.T,
    )
