"""Records as points of a simplex: what every kind of sum over private records shares.

A record adds ``psi(x) (x) v`` with v not negative and of sum 1: of a label the indicator of its class, of
a label that is no class the even point, of a number u in [-1, 1] the point ``((1 + u) / 2, (1 - u) / 2)``.
A number, a count and labels of two classes have one function; K >= 3 classes have one each. Their K
blocks of sums give the counts as their sum, and every class about an even share, ``N_k - mean N``, whose
noise is not correlated with that of the counts. Proof: docs/proofs/records.md.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np

from privgp.plan.classes.sums import MOST_CLASSES, ROOT_TWO
from privgp.plan.strategy import Sums
from privgp.privacy.sensitivity import WHOLE
from privgp.types import Array, Within

Functions = Annotated[int, Within(1, MOST_CLASSES)]


class RecordSums(Sums):
    """Sums over records that are private with their inputs.

    ``classes``: of labels, each with sums of its own; 1 where one function says it all.
    """

    people: ClassVar[None] = None
    distinct_inputs: ClassVar[None] = None
    whole_people: ClassVar[bool] = False
    counted: ClassVar[str] = "records"
    most_records: ClassVar[int] = 1
    classes: Functions = 1
    rows: int

    @property
    def people_count(self) -> int | None:
        return self.rows if self.whole_people else None

    @property
    def centre(self) -> float | None:
        return None if self.classes == 1 else 1.0 / self.classes

    @property
    def move(self) -> float:
        """How far one record moves sums of unit vectors, in the Euclidean norm."""
        return WHOLE if self.classes == 1 else ROOT_TWO

    def sum_std(self, noise_std: float) -> float:
        return noise_std if self.classes == 1 else about_even_std(noise_std, self.classes)

    def check_energy(self, most: float) -> None:
        """Refuse a weight that the sensitivity does not cover."""
        if self.energy_weight > most:
            raise ValueError("the energy is free up to weight 1 only.")
        if self.classes > 1 and self.energy_weight > 0.0:
            raise ValueError("labels of several classes have no energy.")


def about_even(blocks: Array) -> Array:
    """The sums of every class about an even share, one after the other, in units of half a label.

    ``blocks``: (classes, measured)
    """
    return np.asarray(2.0 * (blocks - blocks.mean(axis=0))).ravel()


def about_even_std(noise_std: float, classes: int) -> float:
    """Std of the noise on these, for noise of this std on every number."""
    return noise_std * (2.0 * float(np.sqrt(1.0 - 1.0 / classes)))
