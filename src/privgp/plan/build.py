"""From public inputs and a budget to a Plan."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from privgp.gp.functionals import Functionals
from privgp.gp.input_maps import collapse
from privgp.gp.smoothers import Nystrom, Smoother, choose_nodes, nystrom
from privgp.plan.choice import NODES, Task, best_sums, smoother_of
from privgp.plan.designs.workload import design
from privgp.plan.inputs.start import starting_priors
from privgp.plan.outputs import Outputs, Unbiased
from privgp.plan.plan import Plan
from privgp.plan.strategy import OutputSums, Strategy, noise_of, strategy_for_rows
from privgp.privacy.noise import GAUSSIAN, LAPLACE, PURE, AnyNoise, GaussianNoise, gaussian_noise
from privgp.types import Array, Integers


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
        task = Task(priors, inputs, index, nodes, people, targets, weights, width, learned)
        factor = task.factors[0]
        auto = question.mechanism == "auto"
        law = LAPLACE if auto else question.mechanism
        if budget.delta == 0:  # nothing Gaussian to compare with
            strategy, _ = best_sums(task, budget, law)
        else:
            strategy, left = best_sums(task, budget, GAUSSIAN)
            if law in PURE:
                sums, left_by_sums = best_sums(task, budget, law)
                if not auto or left_by_sums < left:
                    strategy, rival = sums, strategy
    else:
        factor = nystrom(start.kernel, start.input_map(inputs), nodes)
        reach = smoother_of(start, inputs, counts, targets)
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
