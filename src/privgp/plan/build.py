"""From public inputs and a budget to a part of a plan."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
from scipy.spatial import KDTree
from sklearn.gaussian_process.kernels import ConstantKernel, Kernel, Matern

from privgp.gp.kernels.evaluate import signal_and_noise, split_noise
from privgp.gp.measurement import Functionals, without_zeros
from privgp.gp.priors import Hyperparameters, Prior, blend_ranks, collapse, prior_about, spreads
from privgp.gp.smoothers import Nystrom, choose_nodes
from privgp.plan.bins.counts import Records
from privgp.plan.cells import SEEN, Cells, cell_count, means
from privgp.plan.choice import NODES, Goal, Task, best_sums, smoother_of
from privgp.plan.designs.earlier import Earlier
from privgp.plan.designs.stages import residuals_for
from privgp.plan.designs.workload import design
from privgp.plan.inputs.inputs import Inputs, scale_widths
from privgp.plan.inputs.tally import Tally
from privgp.plan.parameters import Parameters
from privgp.plan.part import Outputs, Part, Rates, Unbiased
from privgp.plan.strategy import OutputSums, Strategy, effective_count, noise_of, strategy_for_rows
from privgp.privacy.noise import GAUSSIAN, LAPLACE, PURE, Noise, gaussian_noise
from privgp.privacy.sensitivity import WHOLE, scale_change
from privgp.question.parameters import RECONSTRUCTIONS
from privgp.question.rules import Exposures
from privgp.types import Array, Integers

if TYPE_CHECKING:
    from privgp.plan.inputs.inputs import Inputs

ROW_NOISE = "noise_variance must be one number, or one for each row of X, of which there are at most 20,000 in memory."
PEOPLE_OF_MANY_ROWS = "groups of many rows go with objective='posterior' only."
SEARCHED = 40  # up to this many numbers, groups of inputs are searched for
# Up to this many rows each has its own weights in weighted sums: weights of parts had 6% more error in four
# dimensions. Sums over cells lose nothing by parts.
MOST_WEIGHED = 8192
# Inputs that carry the function each, unless the budget can distinguish more cells.
MOST_NODES = 1500
# Whichever are more carry a function of one input where numbers are few. Maps keep all of their nodes:
# with fewer, a border on a map had 20% more error.
NODES_OF_A_LINE, NODES_PER_CELL = 48, 6
LEAST = 1000.0  # people times epsilon: below it the first of two stages tells too little


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
    squared outputs hold more information than outputs, as those of labels do not. ``max_change``: how much one
    person can change one output; ``exposures``: given where outputs are counts; ``classes``: of labels;
    ``inputs``: what the columns are, where they are not all numbers; ``inducing``: how many inputs, or
    which points, carry the function. None: a usual number. ``residuals``: whether a second stage measures
    residuals; ``weights``: (rows,), sample weights over the largest of them. None: 1 each, or those that a
    tally has. ``each``: whether every input has its own sum. ``row_noise``: (rows,), the noise variance
    of every output, where it differs by row. ``signal``: the default kernel's std over the usual one.
    ``max_weight``: the largest weight of a private record; None: records have no weights.
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
    residuals: str = "never"
    weights: Array | None = None
    each: bool = False
    row_noise: Array | None = None
    signal: float = 1.0
    max_weight: float | None = None

    @classmethod
    def of(cls, asked: Parameters, **own: object) -> Self:
        """What was asked of one output: parameters of the same names, and ``own`` in place of them."""
        same = [each.name for each in fields(cls) if hasattr(asked, each.name)]
        given: dict[str, Any] = {name: getattr(asked, name) for name in same}
        return cls(**given | asked.asks() | own)

    def nodes(self, model: Hyperparameters, inputs: Array, cells: int) -> Integers:
        """Which inputs carry the function: as many as asked for, or those nearest to given points.

        Where many models are averaged over, several for each of the cells that the budget can distinguish.
        """
        if self.each:
            return np.arange(len(inputs))
        if isinstance(self.inducing, np.ndarray):
            scaled = spreads(inputs)
            nearest = KDTree(inputs / scaled).query(self.inducing / scaled)[1]
            return np.unique(nearest).astype(np.int64)
        count = self.inducing or self._usual_nodes(inputs, cells)
        return choose_nodes(model.kernel, model.input_map(inputs), count)

    def _usual_nodes(self, inputs: Array, cells: int) -> int:
        """How many inputs carry the function where no number was asked for."""
        count = NODES if len(inputs) > max(MOST_NODES, cells) else len(inputs)
        many_models = self.adapts and self.mechanism != GAUSSIAN
        if many_models and inputs.shape[1] == 1 and cells <= SEARCHED:
            return min(count, max(NODES_OF_A_LINE, NODES_PER_CELL * cells))
        return count

    def weights_and_repeats(self, rows: int, tally: Tally | None) -> tuple[Array, Array]:
        """The sample weight of every row, over the largest, and how many rows each stands for."""
        ones = np.ones(rows)
        if tally is None:
            return ones if self.weights is None else self.weights, ones
        own = ones if tally.row_weights is None else tally.row_weights
        return own, tally.counts.astype(float)

    @property
    def most_weighed(self) -> float:
        """How many inputs a linear map of the outputs weighs separately; more are gathered in cells."""
        return math.inf if self.inducing is None else MOST_NODES

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
        return self.learned and RECONSTRUCTIONS[self.reconstruct].averages

    @property
    def energy(self) -> bool:
        """Whether the sum of squared outputs is measured, for the sake of learning."""
        return self.adapts and self.squares

    def allows_stages(self, information: float) -> bool:
        """Whether a second stage may measure residuals: it was asked for, or the first one can tell enough for
        it. ``information``: people times epsilon."""
        possible = (
            self.reconstruct == self.objective == "posterior"
            and self.exposures is None
            and self.squares
            and self.classes == 2
            and self.change >= WHOLE
        )
        expected = self.residuals == "auto" and self.adapts and information >= LEAST
        return possible and (self.residuals == "always" or expected)

    @property
    def of_records(self) -> dict[str, Any]:
        """How records with such outputs are summed: how many classes have their own sums, whether
        squares of outputs are summed too, the unit of rates where outputs are counts, how many bins or
        features there are at most, and whether records have weights."""
        one, unit = self.classes == 2, None if self.exposures is None else self.exposures.unit
        energy, classes = one and unit is None, 1 if one else self.classes
        found = {"classes": classes, "energy": energy, "unit": unit, "most": self.inducing}
        return {**found, "weighted": self.max_weight is not None}

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

    def part(
        self,
        budget: Budget,
        strategy: Any,
        functionals: Functionals,
        priors: tuple[Prior, ...],
        goal: Goal,
        kind: Outputs | Records,
        rival: Any = None,
    ) -> Part:
        """The plan of a measurement, with the noise that hides one person."""
        return Part(
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


def make_part(
    X: Array,
    question: Question,
    budget: Budget,
    people: Integers | None = None,
    earlier: Earlier | None = None,
    tally: Tally | None = None,
) -> Part:
    """Choose the measurement. Sees inputs, never outputs. ``earlier``: what is known already;
    ``tally``: of many rows, where X has one row for each of its cells."""
    task = task_of(X, question, budget, people, earlier, tally)
    if question.objective != "posterior":
        strategy, kind = _linear_strategy(task)
        return part_of(task, strategy, kind)
    strategy, rival = _posterior_strategy(task)
    gathered = task.cells is not None and tally is None
    if gathered and strategy.law not in PURE and MOST_NODES < len(X) <= MOST_WEIGHED:
        task = task_of(X, question, budget, people, earlier, cells=False)
        strategy = best_sums(task, GAUSSIAN)
    part = part_of(task, strategy, rival=rival)
    if earlier is not None or not question.allows_stages(strategy.units * budget.epsilon):
        return part
    return replace(
        part, residuals=residuals_for(question, budget, strategy, task.priors[0], task.inputs)
    )


def task_of(
    X: Array,
    question: Question,
    budget: Budget,
    people: Integers | None,
    earlier: Earlier | None = None,
    tally: Tally | None = None,
    *,
    cells: bool = True,
) -> Task:
    """What a measurement at these inputs is chosen for. ``cells``: whether many inputs are gathered in these."""
    seen = X if tally is None else tally.sample(SEEN)
    if question.row_noise is not None and (tally is not None or len(question.row_noise) != len(X)):
        raise ValueError(ROW_NOISE)
    if earlier is None:
        priors = initial_priors(seen, question, learned=question.adapts)
    else:
        priors = earlier.priors
    rows = gather(X, question, budget, people, tally, cells=cells)
    inputs, index = rows.inputs, rows.index
    start, (own, repeats) = priors[0].start, question.weights_and_repeats(len(X), tally)
    weighted = np.bincount(index, own * repeats).astype(float)
    sizes = weighted**2 / np.bincount(index, own * own * repeats)  # effective numbers of rows
    if question.exposures is not None:
        sizes = np.bincount(index, question.exposures.expected * own * repeats).astype(float)
    nodes = question.nodes(start, inputs, rows.wanted)
    goal = question.goal(inputs, weighted)
    places = inputs, index, sizes, nodes
    made = rows.groups, rows.cells
    return Task(question, budget, priors, *places, people, goal, earlier, *made, tally)


@dataclass(frozen=True)
class Gathered:
    """The inputs that a plan is made for, and which of them every row has.

    Attributes
    ----------
    inputs : array, (inputs, columns)
        Distinct inputs, or the parts of cells.
    index : array, (rows,)
        The input of every row.
    wanted : int
        How many cells the budget can distinguish, where cells are made.
    groups : array, (inputs,), optional
        The cell of every input; None where groups of inputs are yet to be chosen.
    cells : int, optional
        How many cells there are, where inputs are their parts.

    """

    inputs: Array
    index: Integers
    wanted: int
    groups: Integers | None = None
    cells: int | None = None


def gather(
    X: Array,
    question: Question,
    budget: Budget,
    people: Integers | None,
    tally: Tally | None = None,
    *,
    cells: bool = True,
) -> Gathered:
    """Few distinct inputs as they are, or all unless ``cells``; many as the parts of cells, of which there are
    as many as the budget can distinguish. ``tally``: what X stands for."""
    seen = X if tally is None else tally.sample(SEEN)
    noise = question.row_noise
    if question.objective != "posterior" and noise is not None:  # rows with one input and one noise
        inputs, index = collapse(np.column_stack([X, noise]))
        return Gathered(inputs[:, :-1].copy(), index, MOST_NODES)
    inputs, index = collapse(X)
    if question.each:
        return Gathered(inputs, index, MOST_NODES, np.arange(len(inputs)))
    linear = question.objective != "posterior"
    if len(inputs) <= (question.most_weighed if linear else SEARCHED) or not cells:
        return Gathered(inputs, index, min(len(inputs), MOST_NODES))
    rows: float = len(X) if people is None else int(people.max()) + 1
    rows = rows if tally is None else tally.units
    own, repeats = question.weights_and_repeats(len(X), tally)
    rows *= effective_count(own, repeats) / repeats.sum()
    dimensions = X.shape[1] if question.inputs is None else question.inputs.dimensions
    count = MOST_NODES if linear else cell_count(rows, dimensions, budget.sum_variance(question))
    if len(inputs) <= count:
        return Gathered(inputs, index, count, np.arange(len(inputs)))
    if count <= SEARCHED and (tally is None or len(inputs) <= NODES):  # groups are searched for
        return Gathered(inputs, index, count)
    scales = spreads(seen) if question.inputs is None else question.inputs.scales(seen)
    made = Cells.of(seen, scales, count)
    if len(inputs) <= NODES:  # nothing is approximated
        groups = np.unique(made.cells[made.find(inputs)], return_inverse=True)[1]
        return Gathered(inputs, index, count, groups)
    parts, index = np.unique(made.find(X), return_inverse=True)
    groups = np.unique(made.cells[parts], return_inverse=True)[1]
    return Gathered(means(X, index, own * repeats), index, count, groups, int(groups.max()) + 1)


def part_of(
    task: Task, strategy: OutputSums, kind: Outputs | None = None, rival: OutputSums | None = None
) -> Part:
    """The plan of a measurement that was chosen for a task."""
    kind = kind or task.question.kind(task.inputs, task.nodes, task.cells)
    measured = functionals(strategy, task.interpolation, task.inputs)
    part = task.question.part(task.budget, strategy, measured, task.priors, task.goal, kind, rival)
    return part if task.earlier is None else replace(part, earlier=task.earlier)


def _posterior_strategy(task: Task) -> tuple[OutputSums, OutputSums | None]:
    """The measurement that leaves less error, and the other where both were compared."""
    auto = task.question.mechanism == "auto"
    law = LAPLACE if auto else task.question.mechanism
    cells = task.tally is not None and task.groups is not None and law in PURE
    if task.question.each and law not in PURE:
        unit, people = np.eye(len(task.inputs)), task.people
        return strategy_for_rows(unit, task.index, people, **task.strategy_arguments), None
    cells = cells or task.question.each
    if task.budget.delta == 0 or cells:  # nothing Gaussian to compare with, or it would take long
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
    if task.tally is not None and task.people is not None:
        raise ValueError(PEOPLE_OF_MANY_ROWS)
    noise = None
    if question.row_noise is not None:
        noise = np.empty(len(task.inputs))
        noise[task.index] = question.row_noise
    nodes = None if question.inducing is None else task.nodes
    smoother = smoother_of(task.priors[0].start, task.inputs, task.counts, targets, noise, nodes)
    linear = design(smoother.weights, question.objective, weights)
    equal = RECONSTRUCTIONS[question.reconstruct].at_targets
    strategy = strategy_for_rows(
        linear.strategy,
        task.index,
        task.people,
        energy=question.energy,
        equal_weights=equal,
        change=question.change,
        weights=question.weights,
        scatter=task.scatter,
        tally=task.tally,
    )
    unbiased = None
    if equal:  # undo what people with several rows scaled the design down by
        norm = float(np.linalg.norm(strategy.matrix))
        scale = float(np.linalg.norm(linear.strategy)) / norm if norm > 0 else 1.0
        reconstruction = linear.reconstruction * scale
        unbiased = Unbiased(reconstruction, smoother.variance, smoother.jitter)
    return strategy, Outputs(task.inputs, task.nodes, unbiased, linear.gap, task.cells)


def functionals(
    strategy: OutputSums, factor: Nystrom | None, inputs: Array | None = None
) -> Functionals:
    """Describe a strategy on the distinct inputs that ``factor`` was made from; None: each of ``inputs`` carries
    the function itself, which leaves out nothing."""
    B, per_input, (mass, squares) = strategy.matrix, strategy.per_input, strategy.masses()
    g, e = strategy.row_weights, strategy.energy_shares
    if strategy.expected is not None:  # no energy is measured of counts
        e = strategy.expected
    nodes, weights, unknown = inputs, B * mass, np.zeros((len(B), len(B)))
    sums = without_zeros(B)
    shares, cross = per_input(e), per_input(e * g)[:, None] * B.T
    if factor is None:
        gram = np.diag(shares)
    else:
        nodes, J = factor.nodes, factor.interpolation
        weights, gram, cross = weights @ J.T, (J * shares) @ J.T, J @ cross
        if factor.chosen.size < B.shape[1]:
            own = np.square(factor.factor).sum(axis=1) + factor.residual
            constant = np.ptp(own) <= 1e-6 * own.max()
            variance = float(own[0] if constant else own.mean())
            unexplained = B * (mass * np.sqrt(factor.residual / variance))
            unknown = unexplained @ unexplained.T
    return Functionals(
        nodes=cast(Array, nodes),
        weights=weights,
        noise_gram=np.asarray(sums @ (B * squares).T),
        residual_gram=unknown,
        energy_total=strategy.add_up(e),
        energy_gram=gram,
        energy_cross=cross,
        energy_noise_gram=np.asarray(sums @ (B * per_input(e * g * g)).T),
    )


# Prior stds as shares of the bounds' width: of the function and of its constant, and of the noise.
SIGNAL_SHARE = 0.25
NOISE_SHARE = 0.15
# Stds of the logarithm of a rate about its level, and of that about the unit.
RATE_STD, LEVEL_STD = 0.5, 1.5
RANK_SHARES: tuple[float, ...] = (0.0, 0.4, 0.8)


def default_kernel(X: Array, width: float, inputs: Inputs | None = None) -> Kernel:
    """Matern 5/2 of std d/4 and lengthscale std * sqrt(D) per input, plus an unknown constant."""
    scales = default_scales(X, inputs)
    lengthscale = scales if len(scales) > 1 else float(scales[0])
    signal = (SIGNAL_SHARE * width) ** 2
    return ConstantKernel(signal) * Matern(lengthscale, nu=2.5) + ConstantKernel(signal, "fixed")


def rate_kernel(X: Array, inputs: Inputs | None = None) -> Kernel:
    """Matern 5/2 on the logarithm of the rate, plus its unknown level."""
    scales = default_scales(X, inputs)
    lengthscale = scales if len(scales) > 1 else float(scales[0])
    level = ConstantKernel(LEVEL_STD**2, "fixed")
    return ConstantKernel(RATE_STD**2) * Matern(lengthscale, nu=2.5) + level


def default_scales(X: Array, inputs: Inputs | None) -> Array:
    """Std * sqrt(D) of every input."""
    return spreads(X) * np.sqrt(X.shape[1]) if inputs is None else inputs.scales(X)


def initial_priors(X: Array, question: Question, *, learned: bool) -> tuple[Prior, ...]:
    """One prior per input map; a given kernel has one map, of the inputs as they are, or two.

    ``X`` are all rows, repeated inputs included: their spread and ranks set scales and maps.
    """
    kernel, width, inputs = question.kernel, 2.0 * question.half_width, question.inputs
    rates = question.exposures is not None
    if kernel is None and rates:
        kernel = rate_kernel(X, inputs)
    elif kernel is None:
        kernel = default_kernel(X, question.signal * width, inputs)
    else:
        kernel = kernel if inputs is None else inputs.kernel(kernel)
    if question.kernel is None:
        shares = RANK_SHARES if learned else RANK_SHARES[:1]
    else:
        shares = RANK_SHARES[::2] if question.ranked else RANK_SHARES[:1]
    plain = () if inputs is None else inputs.plain_coordinates
    widths = () if inputs is None else scale_widths(inputs)
    if len(plain) == X.shape[1]:
        shares = RANK_SHARES[:1]
    # of counts, the variance over the mean
    default = 1.0 if rates else (NOISE_SHARE * width) ** 2
    signal, noise = signal_and_noise(kernel, question.noise_variance, X.shape[1], default=default)
    white = split_noise(kernel)[1]
    noise_free = white is None or not white.hyperparameter_noise_level.fixed
    noise_free = noise_free and question.row_noise is None and not rates  # which are known
    models = (Hyperparameters(signal, noise, blend_ranks(X, share, plain)) for share in shares)
    return tuple(prior_about(model, noise_free=noise_free, widths=widths) for model in models)


Planner = Callable[[str], tuple[Part, float]]


@dataclass(frozen=True)
class PublicInputs:
    """Rows whose inputs are public. ``people``: (rows,), whose they are, or None; ``tally``: of many rows,
    where X has one row for each of its cells."""

    X: Array
    people: Integers | None
    tally: Tally | None = None

    @classmethod
    def of_tally(cls, tally: Tally) -> PublicInputs:
        """Many rows, whose people are distinguished by a number each."""
        people = None if tally.people is None else np.arange(tally.people)
        return cls(tally.coordinates, people, tally)

    @property
    def count(self) -> int:
        """How many rows, records or people there are."""
        return len(self.X)

    def outermost(self, inputs: Inputs | None) -> Array:
        """Where the kernel has the rows that reach furthest along every input; None where these are
        private."""
        numbers = self.X if inputs is None else inputs.unwrap(inputs.back(self.X))
        return np.asarray(self.X[np.unique([numbers.argmin(axis=0), numbers.argmax(axis=0)])])

    def distributions(self, mechanism: str, delta: float) -> tuple[str, ...]:
        """The noise distributions to compare."""
        if mechanism != "auto":
            return (mechanism,)
        return (LAPLACE,) if delta == 0 else (GAUSSIAN, LAPLACE)

    def plan(self, question: Question, budget: Budget, earlier: Any = None) -> Part:
        """The part for one outcome alone."""
        return make_part(self.X, question, budget, self.people, earlier, self.tally)

    def planner(self, question: Question, budget: Budget, earlier: Any = None) -> Planner:
        """Parts for one outcome, by noise distribution, each with the logarithm of its error.
        ``earlier``: what was measured of the outcome before, if anything."""
        task = task_of(self.X, question, budget, self.people, earlier, self.tally)

        def plan(law: str) -> tuple[Part, float]:
            sums = best_sums(task, law)
            return part_of(task, sums), 0.5 * task.log_variance_left(sums)  # halved: of a variance

        return plan
