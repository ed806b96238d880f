"""Sums over cells of rows that stream past: every row is in one cell, that of the nearest centre.

A pass over chunks of rows costs little more than reading them. Proof: docs/proofs/cells.md.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.sparse import csc_array

from privgp.engine.lattice import Lattice
from privgp.gp.functionals import Functionals, sums_of_parts
from privgp.plan.cells import Cells
from privgp.plan.inputs.rows import LARGEST, Chunk
from privgp.plan.streamed.columns import Adding, RowColumns, Totals
from privgp.privacy.noise import LAPLACE
from privgp.types import Array


@dataclass(frozen=True)
class CellColumns(RowColumns):
    """1 for the cell of a row and 0 for all others.

    Attributes
    ----------
    cells : Cells
        Made of public inputs.

    """

    law: ClassVar[str] = LAPLACE
    cells: Cells

    @property
    def sum_count(self) -> int:
        return self.cells.count

    @property
    def at_nodes(self) -> Array:
        return self.cells.matrix

    def check(self) -> None:
        """Cells check themselves when they are made."""

    def at(self, X: Array) -> tuple[Array, Array]:
        """Columns (measured, rows), and the same by parts, (parts, rows)."""
        parts = np.equal.outer(np.arange(len(self.cells.cells)), self.cells.find(X)).astype(float)
        return self.at_nodes @ parts, parts

    def lattice(self, name: str) -> Lattice:
        """Counts and sums of outputs in [-1, 1] over a chunk."""
        return Lattice.for_size(2.0 * LARGEST)

    def chunk(self, chunk: Chunk, *, whole: bool, change: float) -> tuple[csc_array, Array, Adding]:
        if chunk.people is not None:
            raise ValueError("sums over cells of many rows protect rows, not people.")
        parts = self.cells.find(chunk.inputs)
        ones, rows = np.ones(len(parts)), len(parts)
        owner = self.cells.cells[parts]
        B = csc_array((ones, owner, np.arange(rows + 1)), shape=(self.sum_count, rows))
        counted = {"absolute": np.bincount(owner, minlength=self.sum_count).astype(float)}
        if whole:
            each = np.bincount(parts, minlength=len(self.cells.cells))
            counted |= {"parts": each.astype(float)}
        first = np.zeros(self.sum_count)
        first[owner[0]] = 1.0
        added = Adding(
            rows=rows,
            persons=rows,
            chunks=1,
            mark=chunk.mark,
            longest=rows,
            largest=1.0,
            place=chunk.place,
            worst=first,
            sums={name: self.lattice(name).split(part) for name, part in counted.items()},
        )
        return B, ones, added

    def functionals(self, totals: Totals, seen: Array) -> Functionals:
        """Every part of a cell stands for its rows."""
        return sums_of_parts(self.at_nodes, self.cells.centres, totals.parts)
