"""Outcomes planned together: from public facts about rows and a budget to the parts of a plan."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np

from privgp.gp.arithmetic import rounding
from privgp.gp.measurement import Measurement
from privgp.plan.bins.build import PrivateInputs
from privgp.plan.build import Budget, PublicInputs, Question
from privgp.plan.choice import AnyStrategy
from privgp.plan.inputs.tally import Tally
from privgp.plan.part import Part
from privgp.plan.strategy import NOT_TOGETHER, Strategy
from privgp.privacy.noise import GAUSSIAN, LAWS, PURE, Noise
from privgp.privacy.sensitivity import LARGEST_FACTOR
from privgp.types import Array, Integers, Positive


@dataclass(frozen=True)
class JointSums:
    """The numbers ``(a_1 t_1, ..., a_K t_K)``, with t_k what part k measures of outcome k.

    ``parts``: one per outcome, of the same rows and people and for the same noise distribution
    ``factors``: a_k; noise of one size on all numbers is noise of ``1 / a_k`` times that size on t_k
    """

    parts: tuple[AnyStrategy, ...]
    factors: tuple[Positive, ...]

    def check(self) -> None:
        """Refuse what the bounds of the sensitivity do not cover, as only a file can hold it."""
        fits = 1 <= len(self.parts) == len(self.factors)
        if not fits or not 0.0 < min(self.factors) <= max(self.factors) <= LARGEST_FACTOR:
            raise ValueError(NOT_TOGETHER)
        for part in self.parts:
            part.check()
        first, *others = self.parts
        for part in others:
            alike = (part.law, part.rows) == (first.law, first.rows)
            alike = alike and part.people_count == first.people_count
            if not alike or not _same(part.people, first.people):
                raise ValueError(NOT_TOGETHER)

    @property
    def law(self) -> str:
        return self.parts[0].law

    @property
    def people(self) -> Integers | None:
        return self.parts[0].people

    @property
    def rows(self) -> int:
        return self.parts[0].rows

    @property
    def distinct_inputs(self) -> int | None:
        return self.parts[0].distinct_inputs

    @property
    def tally(self) -> Tally | None:
        """What every row of the parts stands for, where there are many rows."""
        return getattr(self.parts[0], "tally", None)

    @property
    def people_count(self) -> int | None:
        """How many people there are, where all rows of one are protected together."""
        return self.parts[0].people_count

    @property
    def change(self) -> tuple[float, ...]:
        """By how much a person changes each outcome in [-1, 1] at most."""
        return tuple(part.change for part in self.parts)

    @property
    def size(self) -> int:
        return sum(part.size for part in self.parts)

    def sensitivity(self) -> float:
        """How far one person, all of whose outcomes may change, can move the exact numbers: the norm
        of ``a_k`` times what moves part k most."""
        moved = [a * part.sensitivity() for a, part in zip(self.factors, self.parts, strict=True)]
        return self._norm(moved) * (1.0 + rounding(len(moved) + 4))

    def float_error(self) -> float:
        """Twice those of the parts: multiplying rounds once more, by less than the sums did."""
        errors = [2.0 * a * p.float_error() for a, p in zip(self.factors, self.parts, strict=True)]
        return self._norm(errors) * (1.0 + 1e-9)

    def worst_neighbours(self) -> tuple[Array, Array]:
        """Equal outcomes except for all those of the person who can move the measurement most."""
        reach = [a * part.reach() for a, part in zip(self.factors, self.parts, strict=True)]
        order = 1 if self.law in PURE else 2
        person = int(np.argmax(np.linalg.norm(reach, order, axis=0)))
        ends = [part.of_person(person).worst_neighbours() for part in self.parts]
        low, high = (
            np.concatenate([a * t for a, t in zip(self.factors, each, strict=True)])
            for each in zip(*ends, strict=True)
        )
        return low, high

    def read(
        self, numbers: Array, noise: Noise, half_width: Sequence[float]
    ) -> tuple[Measurement, ...]:
        """What released numbers say of every outcome, in its own units."""
        ends = np.cumsum([part.size for part in self.parts])[:-1]
        pieces = zip(
            self.parts, np.split(numbers, ends), self.factors, self.noises(noise), half_width,
            strict=True,
        )  # fmt: skip
        return tuple(part.read(piece / a, own, half) for part, piece, a, own, half in pieces)

    def noises(self, noise: Noise) -> tuple[Noise, ...]:
        """The noise in what every part measures, for this noise in all numbers."""
        pairs = zip(self.parts, self.factors, strict=True)
        return tuple(noise.with_size(part.size, 1.0 / a) for part, a in pairs)

    def _norm(self, values: Sequence[float]) -> float:
        return float(np.linalg.norm(values, 1 if self.law in PURE else 2))


def factors(shares: Sequence[float], law: str) -> tuple[float, ...]:
    """What the numbers of every output are multiplied by before noise of one size is added.

    Their norm is 1, in the norm in which sensitivities of this law are: Euclidean, or the sum of
    absolute values for pure noise. So one output alone would have the factor 1.
    """
    scaled = [share / max(shares) for share in shares]
    norm = math.fsum(scaled) if law in PURE else math.hypot(*scaled)
    return tuple(share / norm for share in scaled)


def _same(first: Integers | None, second: Integers | None) -> bool:
    if first is None or second is None:
        return first is second
    return np.array_equal(first, second)


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


PlannedRows = PublicInputs | PrivateInputs  # what a plan is made for: public facts about the rows


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
