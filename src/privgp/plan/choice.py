"""Every kind of strategy, and those that compete for sums of outputs at public inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from privgp.gp.priors import Hyperparameters, Prior
from privgp.gp.smoothers import Nystrom, Smoother, exact_smoother
from privgp.plan.bins.bins import Bins, HalvedBins
from privgp.plan.designs.hypotheses import design_models, factors_of, hypotheses_for
from privgp.plan.designs.noise_aware import Hypothesis, aware_design, explained, gain
from privgp.plan.designs.partition import partition
from privgp.plan.designs.workload import design
from privgp.plan.strategy import GroupSums, OutputSums, strategy_for_rows, strategy_of_groups
from privgp.plan.streamed.columns import StreamedSums
from privgp.privacy.noise import PURE
from privgp.types import Array, Integers

if TYPE_CHECKING:
    from privgp.plan.build import Budget

NODES = 512  # up to this many distinct inputs nothing is approximated
MAX_RANK = 100
AnyStrategy = OutputSums | GroupSums | StreamedSums | Bins | HalvedBins  # what a plan can hold


@dataclass(frozen=True)
class Task:
    """What a measurement is chosen for; ``energy``: whether energies are measured too."""

    priors: tuple[Prior, ...]
    inputs: Array
    index: Integers
    nodes: Integers
    people: Integers | None
    targets: Array
    weights: Array
    width: float
    energy: bool

    @cached_property
    def factors(self) -> list[Nystrom]:
        """The low-rank factors of the design's models; the first is the starting model's."""
        return factors_of(design_models(self.priors), self.inputs, self.nodes)

    @cached_property
    def single(self) -> list[Hypothesis]:
        """The hypotheses where every row has the weight 1."""
        unit = np.ones((1, len(self.inputs)))
        return self.hypotheses(
            strategy_for_rows(unit, self.index, None, energy=False, equal_weights=False)
        )

    def hypotheses(self, strategy: OutputSums) -> list[Hypothesis]:
        models = design_models(self.priors)
        goal = self.targets, self.weights
        return hypotheses_for(models, self.inputs, self.nodes, strategy, *goal, self.factors)

    def for_weights_of(self, strategy: OutputSums) -> list[Hypothesis]:
        return self.single if np.all(strategy.row_weights == 1.0) else self.hypotheses(strategy)

    def left_by(self, strategy: OutputSums, budget: Budget) -> float:
        """The weighted posterior variance at the targets after this measurement."""
        found = self.for_weights_of(strategy)
        noise = (budget.noise_of(strategy).std * 0.5 * self.width) ** 2
        return sum(h.weight * h.total for h in found) - explained(strategy.matrix, found, noise)


def weighted_sums(task: Task, budget: Budget, law: str) -> tuple[OutputSums, float]:
    """The noise-aware design; with several rows per person, redone once for the weights it gave."""
    index, people = task.index, task.people
    noise = (budget.noise_for(1, 2.0, 0.0).std * 0.5 * task.width) ** 2
    unit = np.ones((1, len(task.inputs)))
    several = people is not None and len(np.unique(people)) < len(people)
    strategy = strategy_for_rows(unit, index, people, energy=task.energy, equal_weights=False)
    counts, raw = np.bincount(index).astype(float), task.priors[0].start
    goal = task.inputs, counts, task.targets, task.weights
    for _ in range(2 if several else 1):
        B = aware_matrix(task.for_weights_of(strategy), raw, *goal, noise)
        strategy = strategy_for_rows(B, index, people, energy=task.energy, equal_weights=False)
    return strategy, task.left_by(strategy, budget)


def group_sums(task: Task, budget: Budget, law: str) -> tuple[OutputSums, float]:
    """Sums over groups of inputs, which pure epsilon protects however small delta is."""
    unit = np.ones((1, len(task.inputs)))
    one = strategy_of_groups(unit, task.index, task.people, energy=task.energy, law=law)
    noise = (budget.noise_of(one).std * 0.5 * task.width) ** 2
    B, _ = partition(task.for_weights_of(one), one.per_input(one.row_weights), noise)
    strategy = strategy_of_groups(B, task.index, task.people, energy=task.energy, law=law)
    return strategy, task.left_by(strategy, budget)


# What competes: with pure noise or not, and the measurement with what it leaves unknown.
Planner = Callable[[Task, "Budget", str], tuple[OutputSums, float]]
COMPETING: tuple[tuple[bool, Planner], ...] = ((False, weighted_sums), (True, group_sums))


def best_sums(task: Task, budget: Budget, law: str) -> tuple[OutputSums, float]:
    """The measurement with this noise that leaves the least unknown, and how much that is."""
    tried = [planned(task, budget, law) for pure, planned in COMPETING if pure == (law in PURE)]
    return min(tried, key=lambda each: each[1])


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
    B = aware_design(hypotheses, noise, _useful_rank(hypotheses[0], noise, most))
    if noise < raw.noise_variance and len(inputs) <= NODES:
        # With hardly any noise the predictions themselves are what to measure.
        direct = design(smoother_of(raw, inputs, counts, targets).weights, "trace", weights)
        if gain(direct.strategy, hypotheses, noise)[0] > gain(B, hypotheses, noise)[0]:
            B = direct.strategy
    return B


def smoother_of(model: Hyperparameters, inputs: Array, counts: Array, targets: Array) -> Smoother:
    """The exact smoother of a model, on its mapped inputs."""
    mapped, goal = model.input_map(inputs), model.input_map(targets)
    return exact_smoother(model.kernel, model.noise_variance, mapped, counts, goal)


def _useful_rank(hypothesis: Hypothesis, noise: float, most: int) -> int:
    """How many directions of the signal rise above a hundredth of the noise, at most ``most``."""
    powers, rows = hypothesis.spectrum[0], len(hypothesis.factor)
    useful = int(np.count_nonzero(powers * rows / 50.0 > 0.01 * noise))
    return int(np.clip(useful, min(16, rows), min(most, rows)))
