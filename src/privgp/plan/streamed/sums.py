"""The strategies that measure sums over rows never held together, and what they tell of the function."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from privgp.engine.local import Lattice
from privgp.gp.rounding import rounding
from privgp.plan.inputs.rows import BLOCK, LARGEST
from privgp.plan.strategy import (
    CHANGED_TOTAL_SHARE,
    NOT_TOGETHER,
    Change,
    Sums,
    energy_weight,
)
from privgp.plan.streamed.columns import Columns, GroupColumns, Totals, person_weight
from privgp.privacy.noise import GAUSSIAN, LAPLACE, PURE
from privgp.privacy.sensitivity import (
    MAX_TOTAL_ENERGY_WEIGHT,
    WHOLE,
    many_row_sensitivity,
    single_row_sensitivity,
    total_sensitivity,
)
from privgp.types import Array, Integers, added_field

AnyColumns = Columns | GroupColumns
ENERGIES = Lattice.for_size(float(LARGEST))  # of sums of squares over a chunk


@dataclass(frozen=True)
class StreamedSums(Sums):
    """``(sum b(x_i) u_i, w sum e_i u_i^2)`` over rows never held together; see Totals. ``persons``: how
    many people they are of, e_i then one over a person's rows; None: every row is a person. ``mark``: of
    the rows, by which they are told from others."""

    law: ClassVar[str] = GAUSSIAN
    distinct_inputs: ClassVar[None] = None
    holds_rows: ClassVar[bool] = False
    columns: AnyColumns
    rows: int
    largest: float
    worst: Array
    absolute: Array
    energy_weight: float
    change: Change = added_field(WHOLE)
    persons: int | None = added_field(None)
    longest: int = added_field(BLOCK)
    mark: str = added_field("")

    def check(self) -> None:
        """Refuse parts that do not belong together, as only a file can have them."""
        columns, measured = self.columns, self.absolute.shape
        fits = (
            self.worst.shape == measured == (columns.sum_count,)
            and self.rows >= 1
            and (self.persons is None or 1 <= self.persons <= self.rows)
            and 1 <= self.longest <= LARGEST
            and self.largest > 0.0
            and self.energy_weight >= 0.0
            and np.all(self.absolute >= 0.0)
        )
        if not fits:
            raise ValueError(NOT_TOGETHER)
        columns.check()

    @property
    def people(self) -> Integers | None:
        """One number for each person, not for each row."""
        return None if self.persons is None else np.arange(self.persons)

    @property
    def size(self) -> int:
        return len(self.absolute) + int(self.energy_weight > 0)

    @property
    def matrix(self) -> Array:
        """The columns of rows at the places that carry the function, (measured, places)."""
        return self.columns.at_nodes

    def sensitivity(self) -> float:
        """How far one person, with outputs in [-1, 1], can move the exact measurement."""
        if self.persons is None:
            return single_row_sensitivity(self.largest, self.energy_weight, self.change)
        return many_row_sensitivity(self.largest, self.energy_weight, 1.0 + 2.0**-40, self.change)

    def float_error(self) -> float:
        """Bound of the rounding error of the computed measurement, as far as neighbours can differ by
        it: of the one chunk that holds their rows, and of the lattice."""
        error = rounding(self.longest + 8)
        per_number = (
            error * (1.0 + error) * self.absolute + 2.0 * self.columns.lattice("absolute").step
        )
        energy = self.energy_weight * (error * self.rows + 2.0 * ENERGIES.step)
        order = 1 if self.law in PURE else 2
        return float(np.linalg.norm(np.append(per_number, energy), order)) * (1.0 + 1e-9)

    def describe_inputs(self, count: int) -> str:
        return f"through {count} inducing inputs"

    def worst_neighbours(self) -> tuple[Array, Array]:
        """Equal outputs except for the person with the columns that reach furthest."""
        other = self.change - 1.0
        return self.with_energy(-self.worst, 1.0), self.with_energy(other * self.worst, other**2)


@dataclass(frozen=True)
class StreamedGroups(StreamedSums):
    """Sums over groups of rows, every row in one of them; protected by pure noise."""

    law: ClassVar[str] = LAPLACE
    columns: GroupColumns

    def sensitivity(self) -> float:
        """In the sum of absolute values. Each of a person's rows moves its own share of it."""
        moved = total_sensitivity(
            np.array([self.largest]), np.array([self.energy_weight]), self.change
        )
        return float(moved[0]) * (1.0 + 2.0**-40)


def strategy_of_columns(
    columns: AnyColumns,
    totals: Totals,
    *,
    energy: bool,
    change: float = WHOLE,
    people: bool = False,
) -> StreamedSums:
    """The energy is measured as far as it costs nothing, or little, beside columns of the largest
    reach. ``people``: whether some rows may be one person's."""
    pure = columns.law in PURE
    weight = _pure_weight(change) if pure else energy_weight(change)
    if people and not pure:
        weight = person_weight(change)
    else:
        weight *= totals.largest * (1.0 - 2.0**-50)
    of_rows = totals.rows, totals.largest, totals.worst, totals.absolute
    persons = totals.persons if people else None
    made = KINDS[columns.law]
    weight = weight if energy else 0.0
    return made(columns, *of_rows, weight, change, persons, totals.longest, totals.mark)


KINDS: dict[str, type[StreamedSums]] = {GAUSSIAN: StreamedSums, LAPLACE: StreamedGroups}


def _pure_weight(change: float) -> float:
    """The weight of the energy beside sums over groups under pure noise."""
    if change >= WHOLE:
        return MAX_TOTAL_ENERGY_WEIGHT
    return min(MAX_TOTAL_ENERGY_WEIGHT, CHANGED_TOTAL_SHARE / (WHOLE - change))
