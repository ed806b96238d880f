"""Sums over rows that stream past, plus noise: a measurement in one pass over inputs and outputs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from privgp.engine.local import Engine, Threads
from privgp.gp.measurement import Measurement
from privgp.plan.inputs.rows import Chunk, Rows, block_number, sum_blocks
from privgp.plan.part import Part
from privgp.plan.streamed.columns import Adding, RowColumns, Totals
from privgp.plan.streamed.sums import ENERGIES
from privgp.types import Array, Pair, Random
from privgp.vault.masked import Key, Masked
from privgp.vault.measure import add_noise
from privgp.vault.validate import check_outputs, clip_outputs


class Outputs(Protocol):
    """Private outputs, one for each of some rows."""

    def beside(self, rows: Rows, number: int) -> Sequence["PrivateRows"]:
        """About this many blocks of rows with their outputs."""

    def chunks(self, rows: object) -> Iterator[tuple[Chunk, object]]:
        """Every chunk of a block with its outputs."""

    def refuse_changes(self) -> None:
        """Refuse outputs that were changed while they were read."""


@dataclass(frozen=True, repr=False)
class PrivateRows:
    """A block of rows with their outputs."""

    rows: Any
    held: Outputs

    def chunks(self) -> Iterator[tuple[Chunk, object]]:
        return self.held.chunks(self.rows)


@dataclass(frozen=True, repr=False)
class ArrayOutputs:
    """Outputs in memory, (rows,), in the order of the rows."""

    values: Array

    @classmethod
    def of(cls, y: Any, rows: Any) -> "ArrayOutputs":
        """Checked, and in the order in which rows are worked on."""
        values = check_outputs(y, rows.total)
        return cls(values if rows.persons is None else values[rows.places])

    def beside(self, rows: Any, number: int) -> list[PrivateRows]:
        if len(self.values) != rows.count:
            raise ValueError("y must have one value for each row of X.")
        each = zip(rows.parts(number), rows.ranges(number), strict=True)
        return [
            PrivateRows(part, ArrayOutputs(self.values[first:stop])) for part, (first, stop) in each
        ]

    def chunks(self, rows: Any) -> Iterator[tuple[Chunk, Array]]:
        first = 0
        for chunk in rows.chunks():
            yield chunk, self.values[first : first + len(chunk.inputs)]
            first += len(chunk.inputs)

    def refuse_changes(self) -> None:
        """They are in memory."""


@dataclass(frozen=True, repr=False)
class RowSums:
    """Sums over rows without noise, of which ``totals`` alone are public: those of the columns."""

    totals: Totals
    columns: RowColumns
    bounds: Pair
    masked: Masked
    key: Key

    def measure(self, plan: Part, random_state: Random = None) -> Measurement:
        """Spend the budget once: add the noise of a plan that was made of the totals."""
        private = self.masked.unmask(self.key)
        sums = self.columns.lattice("absolute").join(private[:, :-1])
        energy = float(ENERGIES.join(private[:, -1]))
        numbers = add_noise(plan.strategy.with_energy(sums, energy), plan.noise, random_state)
        half_width = 0.5 * self.bounds[1] - 0.5 * self.bounds[0]
        return plan.strategy.read(numbers, plan.noise, half_width)


def sum_rows(
    rows: Rows,
    outputs: Outputs,
    bounds: Pair,
    columns: RowColumns,
    *,
    engine: Engine | None = None,
    whole: bool = True,
    change: float = 2.0,
    watch: object = None,
) -> RowSums:
    """Validate, clip and add up, in one pass. A plan is made of the columns' public totals: of the very
    numbers that the outputs were multiplied by; of all of them if ``whole``. Nothing is released."""
    engine, key = engine or Threads(), Key.new()
    blocks = outputs.beside(rows, block_number(rows.count, engine))
    function = Measured(columns, bounds, whole, change, key)
    added, masked = sum_blocks(function, _plus, blocks, engine, watch)
    outputs.refuse_changes()
    return RowSums(columns.join_totals(added), columns, bounds, masked, key)


@dataclass(frozen=True, repr=False)
class Measured:
    """What a chunk adds: public totals, and ``B u`` and ``sum e u^2``, which are private."""

    columns: RowColumns
    bounds: Pair
    whole: bool
    change: float
    key: Key

    def __call__(self, part: tuple[Chunk, Any]) -> tuple[Adding, Masked]:
        chunk, y = part
        u = clip_outputs(y, len(chunk.inputs), self.bounds)
        B, shares, added = self.columns.chunk(chunk, whole=self.whole, change=self.change)
        sums = self.columns.lattice("absolute").split(B @ u)
        energy = ENERGIES.split(np.atleast_1d(np.dot(shares, u * u)))
        return added, Masked.of(np.hstack([sums, energy]), chunk.place, self.key)


def _plus(first: tuple[Adding, Masked], second: tuple[Adding, Masked]) -> tuple[Adding, Masked]:
    return first[0] + second[0], first[1] + second[1]
