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
        for X, _ in _blocks(_arrays(self.source, self.names, None), size):
            yield X

    def with_outputs(self, output: str, size: int = BLOCK) -> Iterator[tuple[Array, Array]]:
        """The same blocks with their outputs, which are private."""
        for X, y in _blocks(_arrays(self.source, self.names, output), size):
            assert y is not None
            yield X, y

    def take(self, places: Integers) -> Array:
        found, before = [], 0
        for X, _ in _arrays(self.source, self.names, None):
            here = places[(places >= before) & (places < before + len(X))]
            found.append(X[here - before])
            before += len(X)
        return np.concatenate(found)


def file_rows(source: Source, names: list[str], output: str | None = None) -> FileRows:
    """Read the whole table once, check every cell that is asked for, and count the rows."""
    count = sum(len(X) for X, _ in _arrays(source, tuple(names), output))
    if count == 0:
        raise Refusal(f"'{source.path}' has a header but no rows.")
    return FileRows(source, tuple(names), count)


def _arrays(
    source: Source, names: tuple[str, ...], output: str | None
) -> Iterator[tuple[Array, Array | None]]:
    """Batches as numbers, as the table gives them."""
    before = 0
    wanted = [*names] if output is None else [*names, output]
    for frame in batches(source, wanted, BATCH):
        X = input_columns(frame, names, source, before).to_numpy().astype(np.float64)
        yield X, None if output is None else output_column(frame, output, source)
        before += frame.height


def _blocks(
    arrays: Iterator[tuple[Array, Array | None]], size: int
) -> Iterator[tuple[Array, Array | None]]:
    """The same rows in blocks of one size, whatever the batches were: equal bits in memory and file."""
    left: list[tuple[Array, Array | None]] = []
    held = 0
    for X, y in arrays:
        left.append((X, y))
        held += len(X)
        if held < size:
            continue
        whole, outputs = _joined(left)
        end = held - held % size
        for first in range(0, end, size):
            rows = slice(first, first + size)
            yield whole[rows], None if outputs is None else outputs[rows]
        left, held = [(whole[end:], None if outputs is None else outputs[end:])], held - end
    if held:
        yield _joined(left)


def _joined(parts: list[tuple[Array, Array | None]]) -> tuple[Array, Array | None]:
    outputs = [y for _, y in parts if y is not None]
    return np.concatenate([X for X, _ in parts]), np.concatenate(outputs) if outputs else None
