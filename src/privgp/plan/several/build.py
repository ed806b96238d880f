"""From public inputs and a budget to a plan for several outputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from privgp.gp.threads import one_thread
from privgp.plan.build import Budget, Question, plan_of, task_of
from privgp.plan.choice import Task, best_sums
from privgp.plan.several.arguments import checked_shares, factors
from privgp.plan.several.plan import Compared, JointPlan, parameters_of
from privgp.plan.strategy import OutputSums, Strategy
from privgp.privacy.budget import check_budget
from privgp.privacy.noise import GAUSSIAN, LAPLACE, Noise
from privgp.types import Array, Integers


@dataclass(frozen=True)
class SharedBudget(Budget):
    """A budget of which one output has its share: its noise is larger by one over its factor."""

    shares: tuple[float, ...]
    place: int

    def std_for(self, change: float) -> float:
        return super().std_for(change) / factors(self.shares, GAUSSIAN)[self.place]

    def noise_of(self, strategy: Strategy) -> Noise:
        noise = super().noise_of(strategy)
        return noise.resized(noise.size, 1.0 / factors(self.shares, strategy.law)[self.place])


def make_joint_plan(
    X: Array,
    questions: Sequence[Question],
    budget: Budget,
    shares: tuple[float, ...],
    people: Integers | None = None,
) -> JointPlan:
    """Choose the measurement of every output, and the noise for all of them together.

    ``questions``: one per output, which differ in bounds, kernel and noise variance alone.
    """
    tasks = [
        task_of(X, question, SharedBudget(budget.epsilon, budget.delta, shares, place), people)
        for place, question in enumerate(questions)
    ]
    strategies, compared = _chosen(tasks, questions[0].mechanism, budget.delta)
    parts = [plan_of(task, sums) for task, sums in zip(tasks, strategies, strict=True)]
    return JointPlan.of((budget.epsilon, budget.delta), parts, shares, compared)


def _chosen(
    tasks: Sequence[Task], mechanism: str, delta: float
) -> tuple[list[OutputSums], Compared | None]:
    """The measurements with the noise distribution that leaves less error, the mean of logarithms
    over the outputs; and the other where both were compared."""
    if mechanism != "auto" or delta == 0:  # nothing to compare with
        law = LAPLACE if mechanism == "auto" else mechanism
        return [best_sums(task, law) for task in tasks], None
    sums, left = {}, {}
    for law in (GAUSSIAN, LAPLACE):
        sums[law] = [best_sums(task, law) for task in tasks]
        each = [task.left_by(own) for task, own in zip(tasks, sums[law], strict=True)]
        left[law] = 0.5 * float(np.mean(each))  # halved: they are logarithms of variances
    best, worse = sorted(left, key=lambda law: left[law])
    return sums[best], Compared(worse, float(np.exp(left[worse] - left[best])))


def planned_again(plan: JointPlan, epsilon: float) -> JointPlan:
    """The plan that a model with this epsilon makes of the same inputs, groups and parameters.

    It lacks a fingerprint: to carry it out, plan with a model that has this epsilon.
    """
    made = plan.made_for
    if made is None:
        raise ValueError("only a plan that a model made with plan(X) can be made again.")
    check_budget(epsilon, plan.delta, pure=True)
    asked = replace(made.parameters, epsilon=float(epsilon))
    questions = [
        Question(
            y_bounds=own.y_bounds,  # type: ignore[arg-type]
            kernel=own.kernel,
            noise_variance=own.noise_variance,  # type: ignore[arg-type]
            targets=own.targets,
            learned=own.hyperparameters == "learned",
            mechanism=own.mechanism,
        )
        for own in parameters_of(asked)
    ]
    shares = checked_shares(asked.shares, len(questions))
    people, X = plan.people_and_inputs()
    with one_thread():
        again = make_joint_plan(X, questions, Budget(asked.epsilon, plan.delta), shares, people)
    return replace(again, output_names=plan.output_names, made_for=replace(made, parameters=asked))
