"""Sums of labels of three or more classes: for every class the same sums over the rows that have it.

Every class has its own outputs ``u = 1`` where a row has the class and -1 where it has not. A changed
label moves two of them by 2 each. Two classes need one of them: ``OutputSums`` or ``GroupSums``.
Proof: docs/proofs/classes.md.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated

import numpy as np

from privgp.gp.rounding import UNIT_ROUNDOFF
from privgp.plan.strategy import NOT_TOGETHER, GroupSums, OutputSums
from privgp.privacy.noise import PURE
from privgp.privacy.sensitivity import WHOLE, column_norms
from privgp.types import Array, Within

MOST_CLASSES = 100
Several = Annotated[int, Within(3, MOST_CLASSES)]
ROOT_TWO = float(np.sqrt(2.0)) * (1.0 + 2.0 * UNIT_ROUNDOFF)


class OfEveryClass(OutputSums):
    """The sums of every class, one after the other."""

    classes: int

    @property
    def size(self) -> int:
        return self.classes * len(self.matrix)

    def check(self) -> None:
        super().check()
        if self.energy_weight > 0.0 or self.change != WHOLE:  # a label changes all the way
            raise ValueError(NOT_TOGETHER)

    def float_error(self) -> float:
        root = float(np.sqrt(self.classes)) * (1.0 + 2.0 * UNIT_ROUNDOFF)
        return super().float_error() * (self.classes if self.law in PURE else root)

    def worst_neighbours(self) -> tuple[Array, Array]:
        """One person's labels change between the first two classes."""
        first, second = super().worst_neighbours()
        rest = np.zeros(self.size - 2 * len(first))
        return np.concatenate([first, second, rest]), np.concatenate([second, first, rest])


@dataclass(frozen=True)
class ClassSums(OfEveryClass, OutputSums):
    """``OutputSums`` of every class."""

    classes: Several = 3

    def sensitivity(self) -> float:
        """How far one person can move the exact measurement, in the Euclidean norm.

        Rows of one person may move between different pairs of classes, so their norms are added.
        """
        norms = self.per_person(column_norms(self.matrix)[self.index] * self.row_weights)
        return 2.0 * ROOT_TWO * float(norms.max()) * (1.0 + 8.0 * UNIT_ROUNDOFF)


@dataclass(frozen=True)
class ClassGroupSums(OfEveryClass, GroupSums):
    """``GroupSums`` of every class; protected by pure noise."""

    classes: Several = 3

    def sensitivity(self) -> float:
        """How far one person can move the exact measurement, in the sum of absolute values."""
        return 2.0 * super().sensitivity()


def of_every_class(strategy: OutputSums, classes: int) -> OutputSums:
    """The same sums for every class; of two classes, one says it all."""
    if classes == 2:
        return strategy
    pure, people = strategy.law in PURE, strategy.people
    kind = ClassGroupSums if pure else ClassSums
    parts = {each.name: getattr(strategy, each.name) for each in fields(strategy)}
    if (
        people is not None and not pure and strategy.tally is None
    ):  # everybody moves as far as one row would
        moved = column_norms(strategy.matrix)[strategy.index] * strategy.row_weights
        norms = np.bincount(people, moved)
        parts["row_weights"] = strategy.row_weights / np.maximum(norms, 1.0)[people]
    return kind(**parts, classes=classes)
