"""Outcomes planned together: from public facts about rows and a budget to the parts of a plan."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Protocol

import numpy as np

from privgp.plan.bins.build import GRIDS, make_records_part
from privgp.plan.build import Budget, Question, make_part, part_of, task_of
from privgp.plan.choice import best_sums
from privgp.plan.inputs.tally import Tally
from privgp.plan.joint import factors
from privgp.plan.part import Part
from privgp.plan.strategy import Strategy
from privgp.privacy.noise import GAUSSIAN, LAPLACE, LAWS, Noise
from privgp.types import Array, Integers, Pair, Positive

Planner = Callable[[str], tuple[Part, float]]


@dataclass(frozen=True)
class Compared:
    """What the other noise distribution would have been: its ``law``, and its expected error as a
    multiple of the plan's, the geometric mean over the outputs."""

    law: Annotated[str, tuple(LAWS)]
    error: Positive


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
    """What a plan is made for: the public facts about the rows."""

    @property
    def count(self) -> int:
        """How many rows, records or people there are."""

    def distributions(self, mechanism: str, delta: float) -> tuple[str, ...]:
        """The noise distributions to compare."""

    def plan(self, question: Question, budget: Budget, earlier: Any = None) -> Part:
        """The part for one outcome alone."""

    def planner(self, question: Question, budget: Budget, earlier: Any = None) -> Planner:
        """Parts for one outcome, by noise distribution, each with the logarithm of its error.
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

    @property
    def count(self) -> int:
        return len(self.X)

    def distributions(self, mechanism: str, delta: float) -> tuple[str, ...]:
        if mechanism != "auto":
            return (mechanism,)
        return (LAPLACE,) if delta == 0 else (GAUSSIAN, LAPLACE)

    def plan(self, question: Question, budget: Budget, earlier: Any = None) -> Part:
        return make_part(self.X, question, budget, self.people, earlier, self.tally)

    def planner(self, question: Question, budget: Budget, earlier: Any = None) -> Planner:
        task = task_of(self.X, question, budget, self.people, earlier, self.tally)

        def plan(law: str) -> tuple[Part, float]:
            sums = best_sums(task, law)
            return part_of(task, sums), 0.5 * task.log_variance_left(sums)  # halved: of a variance

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

    def plan(self, question: Question, budget: Budget, earlier: Any = None) -> Part:
        made = make_records_part(self.count, self.x_bounds, question, budget, people=self.people)
        again: Part = made if earlier is None else earlier.repeat_measurement(made)
        return again

    def planner(self, question: Question, budget: Budget, earlier: Any = None) -> Planner:
        def plan(law: str) -> tuple[Part, float]:
            made = self.plan(replace(question, mechanism=law), budget, earlier)
            return made, float(np.log(made.starting_error))

        return plan


def plan_parts(
    rows: PlannedRows,
    questions: Sequence[Question],
    budget: Budget,
    shares: tuple[float, ...],
    earlier: Sequence[Any] = (),
) -> tuple[list[Part], Compared | None]:
    """Choose the measurement of every outcome, all with one noise distribution.

    The noise distribution with the least error is taken, the mean of logarithms over the outcomes.

    Parameters
    ----------
    rows : PlannedRows
        What is public about the rows.
    questions : sequence of Question
        One per outcome.
    budget : Budget
        Of all outcomes together.
    shares : tuple of float
        The share of every outcome.
    earlier : sequence
        What was measured of each before, if anything.

    """
    if len(questions) == 1:
        return [rows.plan(questions[0], budget, *earlier)], None
    known = earlier or (None,) * len(questions)
    planners = [
        rows.planner(question, SharedBudget(budget.epsilon, budget.delta, shares, place), own)
        for place, (question, own) in enumerate(zip(questions, known, strict=True))
    ]
    laws = {own.law for own in earlier if own.law is not None}
    parts: dict[str, list[Part]] = {}
    left: dict[str, float] = {}
    for law in laws or rows.distributions(questions[0].mechanism, budget.delta):
        each = [planner(law) for planner in planners]
        parts[law] = [part for part, _ in each]
        left[law] = float(np.mean([error for _, error in each]))
    best, *others = sorted(left, key=lambda law: left[law])
    compared = None
    if others:
        compared = Compared(others[0], float(np.exp(left[others[0]] - left[best])))
    return [replace(part, rival=None) for part in parts[best]], compared
