"""From public facts and a budget to a plan for several outcomes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from privgp.gp.threads import one_thread
from privgp.plan.bins.build import GRIDS, make_records_plan
from privgp.plan.build import Budget, Question, make_plan, plan_of, task_of
from privgp.plan.choice import best_sums
from privgp.plan.inputs.tally import Tally
from privgp.plan.plan import Plan
from privgp.plan.several.arguments import check_output_shares, factors
from privgp.plan.several.plan import Compared, JointPlan
from privgp.plan.strategy import Strategy
from privgp.privacy.budget import check_budget
from privgp.privacy.noise import GAUSSIAN, LAPLACE, Noise
from privgp.types import Array, Integers, Pair

Planner = Callable[[str], tuple[Plan, float]]


@dataclass(frozen=True)
class SharedBudget(Budget):
    """A budget of which one outcome has its share: its noise is larger by one over its factor."""

    shares: tuple[float, ...]
    place: int

    @property
    def unit_std(self) -> float:
        return super().unit_std / factors(self.shares, GAUSSIAN)[self.place]

    def noise_of(self, strategy: Strategy) -> Noise:
        noise = super().noise_of(strategy)
        return noise.with_size(noise.size, 1.0 / factors(self.shares, strategy.law)[self.place])


class PlannedRows(Protocol):
    """What a joint plan is made for: the public facts about the rows."""

    def distributions(self, mechanism: str, delta: float) -> tuple[str, ...]:
        """The noise distributions to compare."""

    def plan(self, question: Question, budget: Budget, earlier: Any = None) -> Plan:
        """The plan for one outcome alone."""

    def planner(self, question: Question, budget: Budget, earlier: Any = None) -> Planner:
        """Plans for one outcome, by noise distribution, each with the logarithm of its error.
        ``earlier``: what was measured of the outcome before, if anything."""


@dataclass(frozen=True)
class PublicInputs:
    """Rows whose inputs are public. ``people``: (rows,), whose they are, or None; ``tally``: of many rows,
    where X has one row for each of its cells."""

    X: Array
    people: Integers | None
    tally: Tally | None = None

    @classmethod
    def tallied(cls, tally: Tally) -> PublicInputs:
        """Many rows, whose people are told apart by a number each."""
        people = None if tally.people is None else np.arange(tally.people)
        return cls(tally.coordinates, people, tally)

    def distributions(self, mechanism: str, delta: float) -> tuple[str, ...]:
        if mechanism != "auto":
            return (mechanism,)
        return (LAPLACE,) if delta == 0 else (GAUSSIAN, LAPLACE)

    def plan(self, question: Question, budget: Budget, earlier: Any = None) -> Plan:
        return make_plan(self.X, question, budget, self.people, earlier, self.tally)

    def planner(self, question: Question, budget: Budget, earlier: Any = None) -> Planner:
        task = task_of(self.X, question, budget, self.people, earlier, self.tally)

        def plan(law: str) -> tuple[Plan, float]:
            sums = best_sums(task, law)
            return plan_of(task, sums), 0.5 * task.log_variance_left(sums)  # halved: of a variance

        return plan


@dataclass(frozen=True)
class PrivateInputs:
    """Private records on a declared domain. ``people``: whether all records of one person are
    protected together; ``count`` is then of people."""

    count: int
    x_bounds: tuple[Pair, ...]
    people: bool

    def distributions(self, mechanism: str, delta: float) -> tuple[str, ...]:
        if mechanism != "auto":
            return (mechanism,)
        if len(self.x_bounds) not in GRIDS:  # features are measured with Gaussian noise alone
            return (GAUSSIAN,)
        return (LAPLACE,) if delta == 0 else (GAUSSIAN, LAPLACE)

    def plan(self, question: Question, budget: Budget, earlier: Any = None) -> Plan:
        made = make_records_plan(self.count, self.x_bounds, question, budget, people=self.people)
        again: Plan = made if earlier is None else earlier.repeat_measurement(made)
        return again

    def planner(self, question: Question, budget: Budget, earlier: Any = None) -> Planner:
        def plan(law: str) -> tuple[Plan, float]:
            made = self.plan(replace(question, mechanism=law), budget, earlier)
            return made, float(np.log(made.starting_error))

        return plan


def make_joint_plan(
    rows: PlannedRows,
    questions: Sequence[Question],
    budget: Budget,
    shares: tuple[float, ...],
    earlier: Sequence[Any] = (),
) -> JointPlan:
    """Choose the measurement of every outcome, and the noise for all of them together.

    Taken is the noise distribution with the least error, the mean of logarithms over the outcomes.
    ``earlier``: what was measured of each before, if anything.
    """
    known = earlier or (None,) * len(questions)
    planners = [
        rows.planner(question, SharedBudget(budget.epsilon, budget.delta, shares, place), own)
        for place, (question, own) in enumerate(zip(questions, known, strict=True))
    ]
    laws = {own.law for own in earlier if own.law is not None}
    plans: dict[str, list[Plan]] = {}
    left: dict[str, float] = {}
    for law in laws or rows.distributions(questions[0].mechanism, budget.delta):
        each = [planner(law) for planner in planners]
        plans[law] = [plan for plan, _ in each]
        left[law] = float(np.mean([error for _, error in each]))
    best, *others = sorted(left, key=lambda law: left[law])
    compared = None
    if others:
        compared = Compared(others[0], float(np.exp(left[others[0]] - left[best])))
    return JointPlan.of((budget.epsilon, budget.delta), plans[best], shares, compared)


def plan_again(plan: JointPlan, epsilon: float) -> JointPlan:
    """The plan that a model with this epsilon makes of the same inputs, groups and parameters.

    It lacks a fingerprint: to carry it out, plan with a model that has this epsilon.
    """
    made = plan.made_for
    if made is None:
        raise ValueError("only a plan that a model made with plan(X) can be made again.")
    check_budget(epsilon, plan.delta, pure=True)
    asked = replace(made.parameters, epsilon=float(epsilon))
    questions = [
        Question(y_bounds=part.y_bounds, exposures=part.exposures, **own.asks())
        for part, own in zip(plan.parts, asked.parts(), strict=True)
    ]
    shares = check_output_shares(asked.shares, len(questions))
    with one_thread():
        again = make_joint_plan(
            rows_of_plan(plan), questions, Budget(asked.epsilon, plan.delta), shares
        )
    return replace(again, output_names=plan.output_names, made_for=replace(made, parameters=asked))


def rows_of_plan(plan: JointPlan) -> PlannedRows:
    """The public facts about the rows that a plan was made for."""
    strategy = plan.strategy
    if plan.x_bounds is not None:
        return PrivateInputs(strategy.rows, plan.x_bounds, strategy.whole_people)
    held: Any = strategy.parts[0]
    return PublicInputs(*plan.inputs_and_people(), held.tally)
