"""Every kind of strategy, and those that compete for sums of outputs at public inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array
from scipy.spatial import KDTree

from privgp.gp.kernels.evaluate import evaluate
from privgp.gp.priors import Hyperparameters, Prior, spreads
from privgp.gp.smoothers import Nystrom, Smoother, exact_smoother, node_smoother
from privgp.plan.bins.bins import Bins, HalvedBins, PeopleBins, PeopleHalvedBins
from privgp.plan.cells import partition
from privgp.plan.designs.earlier import Earlier, hypotheses_after_earlier, relative
from privgp.plan.designs.noise_aware import (
    Hypothesis,
    Masses,
    Weighed,
    aware_design,
    design_models,
    factors_of,
    gain,
    hypotheses_for,
    log_variance_left,
    several_scales,
)
from privgp.plan.designs.workload import design
from privgp.plan.features import Features, PeopleFeatures
from privgp.plan.inputs.tally import Tally
from privgp.plan.labels import ROOT_TWO, ClassGroupSums, ClassSums
from privgp.plan.strategy import (
    EqualRows,
    GroupSums,
    OutputSums,
    strategy_for_rows,
    strategy_of_groups,
)
from privgp.privacy.noise import PURE
from privgp.privacy.sensitivity import column_norms
from privgp.types import Array, Integers

if TYPE_CHECKING:
    from privgp.plan.build import Budget, Question

NODES = 512  # up to this many distinct inputs nothing is approximated
MAX_RANK = 100
SAMPLE = 800  # the largest number of inputs on which measurements are compared
SAMPLED_NODES = 400  # the largest number of nodes among them
# What a plan can hold.
OfRecords = Bins | HalvedBins | Features | PeopleBins | PeopleHalvedBins | PeopleFeatures
AnyStrategy = OutputSums | GroupSums | ClassSums | ClassGroupSums | OfRecords
Goal = tuple[Array, Array]  # the targets, and how much each counts


@dataclass(frozen=True)
class Task:
    """What a measurement is chosen for. ``counts``: (inputs,), of rows, or of what they hold."""

    question: Question
    budget: Budget
    priors: tuple[Prior, ...]
    inputs: Array
    index: Integers
    counts: Array
    nodes: Integers
    people: Integers | None
    goal: Goal
    earlier: Earlier | None = None  # measurements that this one builds on
    groups: Integers | None = None  # the cell of every input, where cells are measured
    cells: int | None = None  # in which rows were gathered, so that inputs are their parts
    tally: Tally | None = None  # of many rows: what every entry of ``index`` stands for

    @property
    def strategy_arguments(self) -> dict[str, Any]:
        """What strategies are made with."""
        question, counts = self.question, self.question.exposures
        expected = None if counts is None else counts.expected
        asked = {"energy": question.energy, "change": question.change, "expected": expected}
        return {**asked, "tally": self.tally, "scatter": self.scatter, "weights": question.weights}

    @property
    def scatter(self) -> Array | None:
        """The noise variance of every row over the model's, (rows,); None where it is one for all."""
        each = self.question.row_noise
        return None if each is None else each / self.priors[0].start.noise_variance

    @property
    def crowd(self) -> EqualRows:
        """The rows, each with weight 1."""
        each = self.scatter
        if each is None:
            return EqualRows(self.counts)
        return EqualRows(self.counts, np.bincount(self.index, each).astype(float))

    @cached_property
    def factors(self) -> list[Nystrom]:
        """The low-rank factors of the design's models; the first is the starting model's."""
        return factors_of(design_models(self.priors), self.inputs, self.nodes)

    @property
    def interpolation(self) -> Nystrom | None:
        """The values at all inputs from those at the nodes; None where every input is a node of many."""
        exact = self.tally is not None or self.question.each
        every = exact and len(self.nodes) == len(self.inputs)
        return None if every else self.factors[0]

    @cached_property
    def _of_equal_rows(self) -> list[Hypothesis]:
        return self._of(self.crowd)

    def _of(self, rows: EqualRows | OutputSums) -> list[Hypothesis]:
        if self.earlier is not None:
            return self._after_earlier(self.inputs, self.nodes, rows, *self.goal)
        models = design_models(self.priors)
        return hypotheses_for(models, self.inputs, self.nodes, rows, *self.goal, self.factors)

    def hypotheses(self, strategy: OutputSums) -> list[Hypothesis]:
        """The models of what is measured with these weights of rows."""
        equal = np.all(strategy.row_weights == 1.0)
        return self._of_equal_rows if equal else self._of(strategy)

    @cached_property
    def sample(self) -> slice:
        """The inputs on which measurements are compared."""
        return slice(0, None, -(-len(self.inputs) // SAMPLE))

    @cached_property
    def nearest_in_sample(self) -> Integers:
        """For every input the nearest one of the sample."""
        scaled = self.inputs / spreads(self.inputs)
        if len(scaled) <= SAMPLE:
            return np.arange(len(scaled))
        return np.asarray(KDTree(scaled[self.sample]).query(scaled)[1])

    @cached_property
    def _scales_of_equal_rows(self) -> list[Hypothesis]:
        return self._scales_of(self.crowd)

    def _scales_of(self, rows: EqualRows | OutputSums) -> list[Hypothesis]:
        inputs, (targets, weights) = self.inputs[self.sample], self.goal
        every = slice(0, None, -(-len(targets) // SAMPLE))
        goal = inputs if targets is self.inputs else targets[every]
        nodes = np.arange(len(inputs))[:: -(-len(inputs) // SAMPLED_NODES)]
        masses, squares = rows.masses()
        ratio = masses.sum() / masses[self.sample].sum()
        sampled = Masses(ratio * masses[self.sample], ratio * squares[self.sample])
        if self.earlier is not None:
            return self._after_earlier(inputs, nodes, sampled, goal, weights[every])
        models = design_models(self.priors)
        models = several_scales(models) if self.question.adapts else models
        return hypotheses_for(models, inputs, nodes, sampled, goal, weights[every], whole=True)

    def _after_earlier(
        self, inputs: Array, nodes: Integers, rows: Weighed, targets: Array, weights: Array
    ) -> list[Hypothesis]:
        assert self.earlier is not None
        factors = factors_of(self.earlier.models_to_serve, inputs, nodes)
        return hypotheses_after_earlier(self.earlier, inputs, rows, targets, weights, factors)

    def scales(self, strategy: OutputSums) -> list[Hypothesis]:
        """The same with shorter and longer lengthscales, on the sample."""
        equal = np.all(strategy.row_weights == 1.0)
        return self._scales_of_equal_rows if equal else self._scales_of(strategy)

    def log_variance_left(self, strategy: OutputSums) -> float:
        """What this measurement leaves unknown at the targets, see ``log_variance_left``."""
        noise = (self.budget.noise_of(strategy).std * self.question.half_width) ** 2
        return log_variance_left(strategy.matrix[:, self.sample], self.scales(strategy), noise)


def design_weights(task: Task, law: str) -> OutputSums:
    """The noise-aware design; with several rows per person, redone once for the weights it gave."""
    index, people, asked = task.index, task.people, task.strategy_arguments
    unit = task.budget.std_for(task.question.change)
    unit *= 1.0 if task.question.classes == 2 else ROOT_TWO
    noise = (unit * task.question.half_width) ** 2
    several = task.tally is None and people is not None and len(np.unique(people)) < len(people)
    strategy = strategy_for_rows(np.ones((1, len(task.inputs))), index, people, **asked)
    start = task.priors[0].start
    for _ in range(2 if several else 1):
        hypotheses = task.hypotheses(strategy)
        if task.earlier is not None:
            hypotheses = relative(hypotheses)
        B = aware_matrix(hypotheses, start, task.inputs, task.counts, *task.goal, noise)
        strategy = strategy_for_rows(B, index, people, **asked)
    return of_every_class(strategy, task.question.classes)


def group_sums(task: Task, law: str) -> OutputSums:
    """Sums over groups of inputs, which pure epsilon protects however small delta is."""
    index, people = task.index, task.people
    asked = task.strategy_arguments
    unit = np.ones((1, len(task.inputs)))
    classes = task.question.classes
    one = of_every_class(strategy_of_groups(unit, index, people, law=law, **asked), classes)
    if task.groups is not None:
        cells = indicators(task.groups).toarray()
        return of_every_class(strategy_of_groups(cells, index, people, law=law, **asked), classes)
    noise = (task.budget.noise_of(one).std * task.question.half_width) ** 2
    scales = task.scales(one)

    def left(groups: Integers) -> float:
        return log_variance_left(indicators(groups), scales, noise)

    sampled = partition(scales, one.masses()[0][task.sample], left)
    B = indicators(sampled[task.nearest_in_sample]).toarray()
    return of_every_class(strategy_of_groups(B, index, people, law=law, **asked), classes)


def indicators(groups: Integers) -> csr_array:
    """One row of ones and zeros per group, (groups, inputs)."""
    inputs = len(groups)
    return csr_array((np.ones(inputs), (groups, np.arange(inputs))))


# What competes, and whether with pure noise.
Planner = Callable[[Task, str], OutputSums]
COMPETING: tuple[tuple[bool, Planner], ...] = ((False, design_weights), (True, group_sums))


def best_sums(task: Task, law: str) -> OutputSums:
    """The measurement with this noise that leaves the least unknown."""
    tried = [planned(task, law) for pure, planned in COMPETING if pure == (law in PURE)]
    return tried[0] if len(tried) == 1 else min(tried, key=task.log_variance_left)


def aware_matrix(
    hypotheses: Sequence[Hypothesis],
    raw: Hyperparameters,
    inputs: Array,
    counts: Array,
    targets: Array,
    weights: Array,
    noise: float,
    most: int = MAX_RANK,
) -> Array:
    """The noise-aware design for ``counts`` rows at every input, (measured, inputs)."""
    powers, rows = hypotheses[0].spectrum[0], len(hypotheses[0].factor)
    # As many numbers as directions of the signal rise above a hundredth of the noise.
    useful = int(np.count_nonzero(powers * rows / 50.0 > 0.01 * noise))
    B = aware_design(hypotheses, noise, int(np.clip(useful, min(16, rows), min(most, rows))))
    if noise < raw.noise_variance and len(inputs) <= NODES:
        # With hardly any noise the predictions themselves are what to measure.
        direct = design(smoother_of(raw, inputs, counts, targets).weights, "trace", weights)
        if gain(direct.strategy, hypotheses, noise)[0] > gain(B, hypotheses, noise)[0]:
            B = direct.strategy
    return B


def smoother_of(
    model: Hyperparameters,
    inputs: Array,
    counts: Array,
    targets: Array,
    noise: Array | None = None,
    nodes: Integers | None = None,
) -> Smoother:
    """The smoother of a model, on its mapped inputs.

    Parameters
    ----------
    model : Hyperparameters
        Of the function.
    inputs, counts : array
        (inputs, columns) and (inputs,), of the rows.
    targets : array, (targets, columns)
        Where it is predicted.
    noise : array, (inputs,), optional
        Variances by input, where they differ.
    nodes : array of int, optional
        The inputs through which the function is known (DTC); None: all, and the smoother is exact.

    """
    mapped, goal = model.input_map(inputs), model.input_map(targets)
    variance = np.asarray(model.noise_variance if noise is None else noise)
    if nodes is None:
        return exact_smoother(model.kernel, variance, mapped, counts, goal)
    cross = evaluate(model.kernel, mapped[nodes], mapped)
    gram = (cross * (counts / variance)) @ cross.T
    found = node_smoother(model.kernel, mapped[nodes], gram, goal)
    return Smoother(found.weights @ cross / variance, found.variance, 0.0)


def of_every_class(strategy: OutputSums, classes: int) -> OutputSums:
    """The same sums for every class; of two classes, one says it all."""
    if classes == 2:
        return strategy
    pure, people = strategy.law in PURE, strategy.people
    kind = ClassGroupSums if pure else ClassSums
    parts = {each.name: getattr(strategy, each.name) for each in fields(strategy)}
    if people is not None and not pure and strategy.tally is None:
        # everybody moves as far as one row would
        moved = column_norms(strategy.matrix)[strategy.index] * strategy.row_weights
        norms = np.bincount(people, moved)
        parts["row_weights"] = strategy.row_weights / np.maximum(norms, 1.0)[people]
    return kind(**parts, classes=classes)
