"""Rows of a table that is read as it is used: a batch at a time, several times over."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from privgp.command.errors import Refusal
from privgp.command.io.columns import input_columns, output_column
from privgp.command.io.tables import Source, batches
from privgp.plan.inputs.rows import BLOCK
from privgp.types import Array, Integers
from privgp.vault.stream import equal_blocks

BATCH = 32 * BLOCK


@dataclass(frozen=True)
class FileRows:
    """The inputs of a table, as privgp.plan.inputs.rows.Rows."""

    source: Source
    names: tuple[str, ...]
    count: int

    @property
    def columns(self) -> int:
        return len(self.names)

    def blocks(self, size: int = BLOCK) -> Iterator[Array]:
        for (X,) in equal_blocks(_arrays(self.source, self.names, None), size):
            yield X

    def with_outputs(self, output: str, size: int = BLOCK) -> Iterator[tuple[Array, Array]]:
        """The same blocks with their outputs, which are private."""
        return ((X, y) for X, y in equal_blocks(_arrays(self.source, self.names, output), size))

    def take(self, places: Integers) -> Array:
        taken, before = [], 0
        for (X,) in _arrays(self.source, self.names, None):
            here = places[(places >= before) & (places < before + len(X))]
            taken.append(X[here - before])
            before += len(X)
        return np.concatenate(taken)


def file_rows(source: Source, names: list[str], output: str | None = None) -> FileRows:
    """Read the whole table once, check every cell that is asked for, and count the rows."""
    count = sum(len(arrays[0]) for arrays in _arrays(source, tuple(names), output))
    if count == 0:
        raise Refusal(f"'{source.path}' has a header but no rows.")
    return FileRows(source, tuple(names), count)


def _arrays(
    source: Source, names: tuple[str, ...], output: str | None
) -> Iterator[tuple[Array, ...]]:
    """Inputs, and outputs if asked for, in batches as the table gives them."""
    before = 0
    for frame in batches(source, [*names] if output is None else [*names, output], BATCH):
        X = input_columns(frame, names, source, before).to_numpy().astype(np.float64)
        yield (X,) if output is None else (X, output_column(frame, output, source))
        before += frame.height
