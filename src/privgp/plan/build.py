"""From public inputs and a budget to a Plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from privgp.gp.functionals import Functionals
from privgp.gp.input_maps import collapse
from privgp.gp.priors import Hyperparameters, Prior
from privgp.gp.smoothers import Nystrom, Smoother, choose_nodes, exact_smoother, nystrom
from privgp.plan.designs.hypotheses import design_models, factors_of, hypotheses_for
from privgp.plan.designs.noise_aware import Hypothesis, aware_design, explained, gain
from privgp.plan.designs.partition import partition
from privgp.plan.designs.workload import design
from privgp.plan.inputs.start import starting_priors
from privgp.plan.outputs import Outputs, Unbiased
from privgp.plan.plan import Plan
from privgp.plan.strategy import (
    OutputSums,
    Strategy,
    noise_of,
    strategy_for_rows,
    strategy_of_groups,
)
from privgp.privacy.noise import LAPLACE, PURE, AnyNoise, GaussianNoise, gaussian_noise
from privgp.types import Array, Integers

NODES = 512  # up to this many distinct inputs nothing is approximated
MAX_RANK = 100


@dataclass(frozen=True)
class Budget:
    """What may be spent."""

    epsilon: float
    delta: float

    def noise_for(self, size: int, sensitivity: float, float_error: float) -> GaussianNoise:
        return gaussian_noise(self.epsilon, self.delta, size, sensitivity, float_error)

    def noise_of(self, strategy: Strategy) -> AnyNoise:
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


def make_plan(X: Array, question: Question, budget: Budget, people: Integers | None = None) -> Plan:
    """Choose the measurement. Sees inputs, never outputs."""
    width = question.y_bounds[1] - question.y_bounds[0]
    learned = question.learned and question.reconstruct == "posterior"
    priors = starting_priors(
        X, width, question.kernel, question.noise_variance, learned=learned, ranked=question.ranked
    )
    inputs, index = collapse(X)
    counts = np.bincount(index).astype(float)
    targets = inputs if question.targets is None else question.targets
    weights = counts if question.targets is None else np.ones(len(targets))
    start = priors[0].start
    nodes = choose_nodes(start.kernel, start.input_map(inputs), NODES)

    rival: OutputSums | None = None
    reach: Smoother | None = None
    gap: float | None = None
    R: Array | None = None
    if question.objective == "posterior":
        task = _Task(priors, inputs, index, nodes, people, targets, weights, width, learned)
        factor = task.factors[0]
        auto = question.mechanism == "auto"
        law = LAPLACE if auto else question.mechanism
        if budget.delta == 0:  # nothing Gaussian to compare with
            strategy, _ = _pure_strategy(task, budget, law)
        else:
            strategy, left = _gaussian_strategy(task, budget)
            if law in PURE:
                sums, left_by_sums = _pure_strategy(task, budget, law)
                if not auto or left_by_sums < left:
                    strategy, rival = sums, strategy
    else:
        factor = nystrom(start.kernel, start.input_map(inputs), nodes)
        reach = _smoother(start, inputs, counts, targets)
        chosen = design(reach.weights, question.objective, weights)
        gap, R = chosen.gap, chosen.reconstruction
        equal = question.reconstruct == "unbiased"
        strategy = strategy_for_rows(
            chosen.strategy, index, people, energy=learned, equal_weights=equal
        )
    unbiased = None
    if question.reconstruct == "unbiased":
        if reach is None or R is None:
            raise ValueError(
                "reconstruct='unbiased' needs objective 'trace', 'max' or 'logdet', not 'posterior'."
            )
        scale = _scale_between(chosen.strategy, strategy.matrix)
        unbiased = Unbiased(R * scale, reach.variance, reach.jitter)
    return Plan(
        epsilon=budget.epsilon,
        delta=budget.delta,
        y_bounds=question.y_bounds,
        objective=question.objective,
        reconstruct=question.reconstruct,
        targets=targets,
        target_weights=weights,
        strategy=strategy,
        functionals=functionals(strategy, factor),
        noise=budget.noise_of(strategy),
        priors=priors,
        kind=Outputs(inputs, nodes, unbiased, gap),
        rival=rival,
    )


@dataclass(frozen=True)
class _Task:
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


def _gaussian_strategy(task: _Task, budget: Budget) -> tuple[OutputSums, float]:
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


def _pure_strategy(task: _Task, budget: Budget, law: str) -> tuple[OutputSums, float]:
    """Sums over groups of inputs, which pure epsilon protects however small delta is."""
    unit = np.ones((1, len(task.inputs)))
    one = strategy_of_groups(unit, task.index, task.people, energy=task.energy, law=law)
    noise = (budget.noise_of(one).std * 0.5 * task.width) ** 2
    B, _ = partition(task.for_weights_of(one), one.per_input(one.row_weights), noise)
    strategy = strategy_of_groups(B, task.index, task.people, energy=task.energy, law=law)
    return strategy, task.left_by(strategy, budget)


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
        direct = design(_smoother(raw, inputs, counts, targets).weights, "trace", weights)
        if gain(direct.strategy, hypotheses, noise)[0] > gain(B, hypotheses, noise)[0]:
            B = direct.strategy
    return B


def _smoother(model: Hyperparameters, inputs: Array, counts: Array, targets: Array) -> Smoother:
    """The exact smoother of a model, on its mapped inputs."""
    mapped, goal = model.input_map(inputs), model.input_map(targets)
    return exact_smoother(model.kernel, model.noise_variance, mapped, counts, goal)


def _useful_rank(hypothesis: Hypothesis, noise: float, most: int) -> int:
    """How many directions of the signal rise above a hundredth of the noise, at most ``most``."""
    powers, rows = hypothesis.spectrum[0], len(hypothesis.factor)
    useful = int(np.count_nonzero(powers * rows / 50.0 > 0.01 * noise))
    return int(np.clip(useful, min(16, rows), min(most, rows)))


def _scale_between(designed: Array, scaled: Array) -> float:
    """The factor by which a design was scaled down for people with several rows."""
    norm = float(np.linalg.norm(scaled))
    return float(np.linalg.norm(designed)) / norm if norm > 0 else 1.0


def functionals(strategy: OutputSums, factor: Nystrom) -> Functionals:
    """Describe a strategy on the distinct inputs that ``factor`` was made from."""
    B, J = strategy.matrix, factor.interpolation
    per_input = strategy.per_input
    g, e = strategy.row_weights, strategy.energy_shares
    mass, squares = per_input(g), per_input(g * g)
    variance = float(np.square(factor.factor[0]).sum() + factor.residual[0])
    unexplained = B * (mass * np.sqrt(factor.residual / variance))
    exact = factor.chosen.size == B.shape[1]
    if exact:  # the interpolation is the identity
        weights, energy_gram = B * mass, np.diag(per_input(e))
        energy_cross = per_input(e * g)[:, None] * B.T
    else:
        shared = J * np.sqrt(per_input(e))
        weights, energy_gram = (B * mass) @ J.T, shared @ shared.T
        energy_cross = J @ (per_input(e * g)[:, None] * B.T)
    return Functionals(
        nodes=factor.nodes,
        weights=weights,
        noise_gram=(B * squares) @ B.T,
        residual_gram=np.zeros((len(B), len(B))) if exact else unexplained @ unexplained.T,
        energy_total=float(e.sum()),
        energy_gram=energy_gram,
        energy_cross=energy_cross,
        energy_noise_gram=(B * per_input(e * g * g)) @ B.T,
    )
