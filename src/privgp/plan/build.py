"""From public inputs and a budget to a Plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from privgp.gp.functionals import Functionals
from privgp.gp.input_maps import collapse
from privgp.gp.priors import Hyperparameters, Prior
from privgp.gp.smoothers import Nystrom, Smoother, choose_nodes, exact_smoother
from privgp.plan.designs.hypotheses import design_models, factors_of, hypotheses_for
from privgp.plan.designs.noise_aware import Hypothesis, aware_design, explained, gain
from privgp.plan.designs.partition import partition
from privgp.plan.designs.workload import design
from privgp.plan.inputs.start import starting_priors
from privgp.plan.kinds import Outputs, Records, Unbiased
from privgp.plan.plan import Plan
from privgp.plan.strategy import (
    Crowd,
    OutputSums,
    Strategy,
    noise_of,
    strategy_for_rows,
    strategy_of_groups,
)
from privgp.privacy.noise import GAUSSIAN, LAPLACE, Noise, gaussian_noise
from privgp.types import Array, Integers

NODES = 512  # up to this many distinct inputs nothing is approximated
MAX_RANK = 100
Goal = tuple[Array, Array]  # the targets, and how much each counts


@dataclass(frozen=True)
class Budget:
    """What may be spent."""

    epsilon: float
    delta: float

    @property
    def unit_std(self) -> float:
        """Std of the Gaussian noise that hides one output in [-1, 1]."""
        return gaussian_noise(self.epsilon, self.delta, 1, 2.0, 0.0).std

    def noise_of(self, strategy: Strategy) -> Noise:
        """The noise that hides one person in this measurement."""
        return noise_of(strategy, self.epsilon, self.delta)


@dataclass(frozen=True)
class Question:
    """What is to be learned: everything public that a plan needs besides inputs and budget.

    ``ranked``: design also for a given kernel on ranked inputs, as is done for the default one, so
    that the measurement serves kernels other than the one it is planned for.
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

    @property
    def half_width(self) -> float:
        return 0.5 * (self.y_bounds[1] - self.y_bounds[0])

    @property
    def energy(self) -> bool:
        """Whether hyperparameters are learned, for which the energy is measured too."""
        return self.learned and self.reconstruct == "posterior"

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


def make_plan(X: Array, question: Question, budget: Budget, people: Integers | None = None) -> Plan:
    """Choose the measurement. Sees inputs, never outputs."""
    priors = starting_priors(X, question, learned=question.energy)
    inputs, index = collapse(X)
    counts, start = np.bincount(index).astype(float), priors[0].start
    nodes = choose_nodes(start.kernel, start.input_map(inputs), NODES)
    goal = question.goal(inputs, counts)
    task = _Task(question, budget, priors, inputs, index, counts, nodes, people, goal)
    rival, kind = None, Outputs(inputs, nodes)
    if question.objective != "posterior":
        strategy, kind = _linear_strategy(task)
    elif question.reconstruct == "posterior":
        strategy, rival = _posterior_strategy(task)
    else:
        raise ValueError(
            "reconstruct='unbiased' needs objective 'trace', 'max' or 'logdet', not 'posterior'."
        )
    measured = functionals(strategy, task.factors[0])
    return question.plan(budget, strategy, measured, priors, goal, kind, rival)


@dataclass(frozen=True)
class _Task:
    """What a measurement is chosen for."""

    question: Question
    budget: Budget
    priors: tuple[Prior, ...]
    inputs: Array
    index: Integers
    counts: Array
    nodes: Integers
    people: Integers | None
    goal: Goal

    @cached_property
    def factors(self) -> list[Nystrom]:
        """The low-rank factors of the design's models; the first is the starting model's."""
        return factors_of(design_models(self.priors), self.inputs, self.nodes)

    @cached_property
    def _of_equal_rows(self) -> list[Hypothesis]:
        return self._of(Crowd(self.counts))

    def _of(self, rows: Crowd | OutputSums) -> list[Hypothesis]:
        models = design_models(self.priors)
        return hypotheses_for(models, self.inputs, self.nodes, rows, *self.goal, self.factors)

    def hypotheses(self, strategy: OutputSums) -> list[Hypothesis]:
        """The models of what is measured with these weights of rows."""
        equal = np.all(strategy.row_weights == 1.0)
        return self._of_equal_rows if equal else self._of(strategy)

    def left_by(self, strategy: OutputSums) -> float:
        """The weighted posterior variance at the targets after this measurement."""
        hypotheses = self.hypotheses(strategy)
        noise = (self.budget.noise_of(strategy).std * self.question.half_width) ** 2
        prior = sum(h.weight * h.total for h in hypotheses)
        return prior - explained(strategy.matrix, hypotheses, noise)


def _posterior_strategy(task: _Task) -> tuple[OutputSums, OutputSums | None]:
    """The measurement that leaves less error, and the other where both were compared."""
    mechanism = task.question.mechanism
    if task.budget.delta == 0:  # nothing Gaussian to compare with
        return _laplace_strategy(task), None
    gaussian = _gaussian_strategy(task)
    if mechanism != GAUSSIAN:
        laplace = _laplace_strategy(task)
        if mechanism == LAPLACE or task.left_by(laplace) < task.left_by(gaussian):
            return laplace, gaussian
    return gaussian, None


def _gaussian_strategy(task: _Task) -> OutputSums:
    """The noise-aware design; with several rows per person, redone once for the weights it gave."""
    index, people, energy = task.index, task.people, task.question.energy
    noise = (task.budget.unit_std * task.question.half_width) ** 2
    several = people is not None and len(np.unique(people)) < len(people)
    strategy = strategy_for_rows(np.ones((1, len(task.inputs))), index, people, energy=energy)
    start = task.priors[0].start
    for _ in range(2 if several else 1):
        hypotheses = task.hypotheses(strategy)
        B = aware_matrix(hypotheses, start, task.inputs, task.counts, *task.goal, noise)
        strategy = strategy_for_rows(B, index, people, energy=energy)
    return strategy


def _laplace_strategy(task: _Task) -> OutputSums:
    """Sums over groups of inputs, which pure epsilon protects however small delta is."""
    index, people, energy = task.index, task.people, task.question.energy
    one = strategy_of_groups(np.ones((1, len(task.inputs))), index, people, energy=energy)
    noise = (task.budget.noise_of(one).std * task.question.half_width) ** 2
    B, _ = partition(task.hypotheses(one), one.per_input(one.row_weights), noise)
    return strategy_of_groups(B, index, people, energy=energy)


def _linear_strategy(task: _Task) -> tuple[OutputSums, Outputs]:
    """The least noise on the posterior mean at the targets, as the papers have it."""
    question, (targets, weights) = task.question, task.goal
    smoother = _smoother(task.priors[0].start, task.inputs, task.counts, targets)
    linear = design(smoother.weights, question.objective, weights)
    equal = question.reconstruct == "unbiased"
    strategy = strategy_for_rows(
        linear.strategy, task.index, task.people, energy=question.energy, equal_weights=equal
    )
    unbiased = None
    if equal:  # undo what people with several rows scaled the design down by
        norm = float(np.linalg.norm(strategy.matrix))
        scale = float(np.linalg.norm(linear.strategy)) / norm if norm > 0 else 1.0
        reconstruction = linear.reconstruction * scale
        unbiased = Unbiased(reconstruction, smoother.variance, smoother.jitter)
    return strategy, Outputs(task.inputs, task.nodes, unbiased, linear.gap)


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
    useful = int(
        np.count_nonzero(powers * rows / 50.0 > 0.01 * noise)
    )  # above a 100th of the noise
    B = aware_design(hypotheses, noise, int(np.clip(useful, min(16, rows), min(most, rows))))
    if noise < raw.noise_variance and len(inputs) <= NODES:
        # With hardly any noise the predictions themselves are what to measure.
        direct = design(_smoother(raw, inputs, counts, targets).weights, "trace", weights)
        if gain(direct.strategy, hypotheses, noise)[0] > gain(B, hypotheses, noise)[0]:
            B = direct.strategy
    return B


def _smoother(model: Hyperparameters, inputs: Array, counts: Array, targets: Array) -> Smoother:
    """The exact smoother of a model, on its mapped inputs."""
    mapped, goal = model.input_map(inputs), model.input_map(targets)
    return exact_smoother(model.kernel, model.noise_variance, mapped, counts, goal)


def functionals(strategy: OutputSums, factor: Nystrom) -> Functionals:
    """Describe a strategy on the distinct inputs that ``factor`` was made from."""
    B, J = strategy.matrix, factor.interpolation
    per_input = strategy.per_input
    g, e = strategy.row_weights, strategy.energy_shares
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
