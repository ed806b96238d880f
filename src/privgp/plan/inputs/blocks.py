"""Public rows in blocks, in memory or in files, and their sums: see ``Source``.

Blocks are worked on anywhere and in any order. Only sums of whole numbers, least and largest numbers come
back, so the result does not depend on how rows are cut into blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from operator import add
from typing import Any, Self

import numpy as np

from privgp.engine.workers import Engine, Watch
from privgp.gp.arithmetic import one_thread
from privgp.plan.inputs.files import numbers as plain_numbers
from privgp.plan.inputs.files import read_numbers
from privgp.plan.inputs.grid import BINS, Axis, Grid, Limits
from privgp.plan.inputs.inputs import Inputs
from privgp.plan.inputs.tally import Grouped, People, Rungs, find_rungs, fraction_bits, key_rows
from privgp.question.rules import Beside
from privgp.tables.files import READ, Files
from privgp.types import Array, Integers

Read = Callable[[Any], Any]
STREAMED = 20_000  # past this many rows they are tallied where they are
BATCH = 2**16  # rows that are worked on at a time
PER_WORKER = 4  # blocks, so that none waits long for the last


@dataclass(frozen=True, repr=False)
class Batch:
    """Some rows of a block.

    Attributes
    ----------
    first : int
        The place of the first among the rows of the block.
    numbers : array, (rows, inputs)
        Public inputs.
    classes : array, (rows,), optional
        How many rows their people have, as in ``People``.
    exposures : array, (rows, counts)
        Between 0 and 1.
    held : object
        What was read of other columns.
    rungs : array, (rows,), optional
        Classes of sample weights.

    """

    first: int
    numbers: Array
    classes: Rungs | None
    exposures: Array
    held: Any = None
    rungs: Integers | None = None

    @property
    def rows(self) -> slice:
        """Which rows of the block they are."""
        return slice(self.first, self.first + len(self.numbers))


def runs(batches: int, number: int) -> list[tuple[int, int]]:
    """About ``number`` runs of as many batches each, (first, stop)."""
    number = max(1, min(batches, number))
    return list(pairwise(batches * place // number for place in range(number + 1)))


def block_number(count: int, engine: Engine) -> int:
    """How many blocks this many rows are worked on in."""
    return max(PER_WORKER * engine.workers, -(-count // READ))


@dataclass(frozen=True, repr=False)
class ArrayInputs:
    """Inputs in memory, (rows, inputs); ``first``: the place of the first of them."""

    numbers: Array
    kinds: Inputs | None = None
    first: int = 0

    @property
    def rows(self) -> int:
        return len(self.numbers)

    def read(
        self, first: int, stop: int, others: Sequence[str], read: Read | None
    ) -> tuple[Array, Array | None]:
        """The inputs of a range of rows, and what is read of other columns."""
        return self.numbers[first - self.first : stop - self.first], None

    def part(self, first: int, stop: int) -> Self:
        """What a worker needs to read this range, whose places stay as they are."""
        return replace(self, numbers=self.numbers[first:stop], first=first)


@dataclass(frozen=True, repr=False)
class FileColumns:
    """Inputs in files, which the worker on a block reads."""

    files: Files
    names: tuple[str, ...]
    kinds: Inputs | None = None

    @property
    def rows(self) -> int:
        return self.files.rows

    def read(
        self, first: int, stop: int, others: Sequence[str], read: Read | None
    ) -> tuple[Array, Array | None]:
        inputs, held = [], []
        wanted = list(dict.fromkeys([*self.names, *others]))
        for _, path, frame in self.files.batches(wanted, first, stop):
            if self.kinds is None:
                inputs.append(plain_numbers(frame, self.names, path))
            else:
                inputs.append(read_numbers(frame, self.kinds, path))
            if read is not None:
                held.append(read(frame))
        return np.concatenate(inputs), np.concatenate(held) if held else None

    def part(self, first: int, stop: int) -> Self:
        return self


Held = ArrayInputs | FileColumns  # where inputs are read from


@dataclass(frozen=True, repr=False)
class Blocks:
    """Rows that are read in blocks; see ``Source``.

    Attributes
    ----------
    held : Held
        The inputs.
    people : People, optional
        Whose rows they are; None: every row is a person.
    exposed : array, (rows, counts), optional
        What counts are counted over, and sample weights last.
    first, stop : int
        The range of rows of a block.
    exposures : tuple of float
        The largest exposure of every count.
    rungs : array, (rows,), optional
        Classes of sample weights; None: rows have none.

    """

    held: Held
    people: People | None = None
    exposed: Array | None = None
    first: int = 0
    stop: int = -1
    exposures: tuple[float, ...] = ()
    rungs: Integers | None = None

    @classmethod
    def of(cls, held: Held, people: People | None = None, beside: Beside | None = None) -> Self:
        """All rows, and the public numbers beside their inputs."""
        beside = Beside() if beside is None else beside
        exposed = beside.columns
        largest = () if exposed is None else tuple(exposed.max(axis=0).tolist())
        rungs = None if beside.weights is None else find_rungs(beside.weights)
        return cls(held, people, exposed, 0, held.rows, largest, rungs)

    @property
    def has_weights(self) -> bool:
        return self.rungs is not None

    @property
    def variety(self) -> int:
        weights = 1 if self.rungs is None else len(np.unique(self.rungs))
        return weights if self.people is None else weights * self.people.variety

    @property
    def count(self) -> int:
        return self.stop - self.first if self.people is None else self.people.used

    @property
    def persons(self) -> int | None:
        return None if self.people is None else self.people.persons

    @property
    def kinds(self) -> Inputs | None:
        return self.held.kinds

    def parts(self, engine: Engine) -> list[Self]:
        """Ranges of rows, which can be sent to workers."""
        each = runs(-(-self.stop // BATCH), block_number(self.stop, engine))
        return [self._part(BATCH * first, min(BATCH * stop, self.stop)) for first, stop in each]

    def _part(self, first: int, stop: int) -> Self:
        people, exposed = self.people, self.exposed
        if people is not None:
            people = replace(people, classes=people.classes[first:stop])
        if exposed is not None:
            exposed = exposed[first:stop]
        rungs = None if self.rungs is None else self.rungs[first:stop]
        here = replace(self, first=first, stop=stop, rungs=rungs)
        return replace(here, held=self.held.part(first, stop), people=people, exposed=exposed)

    def batches(self, others: Sequence[str] = (), read: Read | None = None) -> Iterator[Batch]:
        """The rows of a block, some at a time: many are read together, and worked on in the processor's cache.

        Parameters
        ----------
        others : sequence of str
            Names of other columns, which may be private.
        read : callable, optional
            From a frame to one value per row.

        """
        for start in range(self.first, self.stop, READ):
            numbers, held = self.held.read(start, min(start + READ, self.stop), others, read)
            for place in range(0, len(numbers), BATCH):
                within = slice(place, place + BATCH)
                yield self._batch(
                    start + place, numbers[within], None if held is None else held[within]
                )

    def _batch(self, first: int, numbers: Array, held: Array | None) -> Batch:
        """These rows with what is known of them beside their inputs."""
        here = slice(first - self.first, first - self.first + len(numbers))
        classes = None if self.people is None else self.people.classes[here]
        exposures = np.zeros((len(numbers), 0))
        if self.exposed is not None:
            exposures = self.exposed[here] * (1.0 / np.array(self.exposures))
        rungs = None if self.rungs is None else self.rungs[here]
        return Batch(here.start, numbers, classes, exposures, held, rungs)

    def limits(self, engine: Engine) -> Limits:
        found: Limits = self._sum(_limits, engine)
        return found

    def histograms(self, axes: Sequence[Axis], engine: Engine) -> Integers:
        found: Integers = self._sum(Counting(tuple(axes)), engine)
        return found

    def group(self, grid: Grid, engine: Engine) -> Grouped:
        function = Grouping(grid, fraction_bits(self.count))
        found: Grouped = sum_parts(function, self.parts(engine), engine)
        return found

    def _sum(self, function: Callable[[Batch], object], engine: Engine) -> Any:
        return sum_parts(partial(fold, function), self.parts(engine), engine)


def fold(function: Callable[[Batch], object], block: Blocks) -> Any:
    """The sum of a function of all batches of a block."""
    total = None
    with one_thread():
        for batch in block.batches():
            part = function(batch)
            total = part if total is None else add(total, part)
    return total


def sum_parts(
    function: Callable[[Any], Any],
    blocks: Sequence[Any],
    engine: Engine,
    watch: Watch | None = None,
) -> Any:
    """The sum of a function of all blocks, in whatever order they are done."""
    total = None
    for part in engine.map(function, blocks, watch):
        total = part if total is None else add(total, part)
    return total


def _limits(batch: Batch) -> Limits:
    return Limits.of(batch.numbers)


@dataclass(frozen=True, repr=False)
class Counting:
    """Rows in every bin along each input, (inputs, bins)."""

    axes: tuple[Axis, ...]

    def __call__(self, batch: Batch) -> Integers:
        found = []
        for axis, column in zip(self.axes, batch.numbers.T, strict=True):
            grid = Grid((axis,))
            keys = grid.keys(grid.places(column[:, None]))
            found.append(np.bincount(keys, minlength=BINS))
        return np.array(found)


@dataclass(frozen=True, repr=False)
class Grouping:
    """Public sums over the rows of every cell."""

    grid: Grid
    bits: int

    def __call__(self, block: Blocks) -> Grouped:
        parts = [
            key_rows(self.grid, b.numbers, b.classes, b.exposures, self.bits, b.rungs)
            for b in block.batches()
        ]
        keys, sums, numbers = map(np.concatenate, zip(*parts, strict=True))
        return Grouped.of(keys, sums, numbers, numbers)
