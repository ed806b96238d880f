"""Public rows reduced to cells of a fine grid: how many rows are in each, and where.

Everything that is planned or measured of many rows is a function of their tally. One pass counts rows, and
another sums their outputs: both are grouped sums of whole numbers. Proof: docs/proofs/engine.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from privgp.engine.workers import Engine, whole_multiples
from privgp.plan.inputs.grid import (
    BINS,
    PARTS,
    Axis,
    Grid,
    Limits,
    even_axis,
    fine_axis,
    step_count,
    whole_axis,
)
from privgp.plan.inputs.inputs import Inputs
from privgp.storage.codec import Leaf, Leaves
from privgp.types import Array, Integers, added_field

# How many rows a person may have, each of which then counts one over it: few numbers, so that few cells
# are distinguished by them.
LADDER = np.array(sorted({m * 2**j for j in range(31) for m in (4, 5, 6, 7)} | {1, 2, 3}))
Rungs = NDArray[np.int8]  # the rung of every row's person
CLASSES = 128  # more than there are
MOST_PLACES = 2**24  # of tables in which keys are looked up
RUNGS = 16  # classes of sample weights that cells are distinguished by
SPARSE = 4  # as many numbers as rows, up to which people are counted without sorting
NARROW, ROUNDS = 64, 8  # bins that nearly all rows lie in at least; passes until they do
NOT_TOGETHER = "the parts do not belong together."
MOST_ROWS = 2**32
MOST_EXACT = 2**15  # numbers of cells that are held with all of their digits


@dataclass(frozen=True, repr=False)
class Places:
    """The place of every key among ascending ones: looked up in tables, where these are not too large.

    A key is its upper part times 128 plus its lower one. Each part that occurs gets a number, and so does
    each pair of them that occurs.

    Attributes
    ----------
    keys : array, (keys,)
        Ascending.
    parts : tuple of array, optional
        The number of every upper part, of every lower part, and of every pair; -1 for those that do not
        occur. None: keys are searched for.

    """

    keys: Integers
    parts: tuple[Integers, Integers, Integers] | None = None

    @classmethod
    def of(cls, keys: Integers) -> Self:
        """The places of these keys, some of which may be equal, in any order."""
        largest = int(keys.max(initial=-1)) // CLASSES
        if not 0 <= largest < MOST_PLACES:
            return cls(np.unique(keys))
        upper, uppers = _number(keys // CLASSES, largest + 1)
        lower, lowers = _number(keys % CLASSES, CLASSES)
        if len(uppers) * len(lowers) > MOST_PLACES:
            return cls(np.unique(keys))
        pairs = upper[keys // CLASSES] * len(lowers) + lower[keys % CLASSES]
        table, found = _number(pairs, len(uppers) * len(lowers))
        own = uppers[found // len(lowers)] * CLASSES + lowers[found % len(lowers)]
        return cls(own, (upper, lower, table))

    def find(self, keys: Integers) -> Integers:
        """The place of every key; -1 where it is not among those."""
        if self.parts is None:
            places = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
            return np.where(self.keys[places] == keys, places, -1) if len(self.keys) else keys
        upper, lower, table = self.parts
        high = np.minimum(keys // CLASSES, len(upper) - 1)
        first, second = upper[high], lower[keys % CLASSES]
        known = (first >= 0) & (second >= 0) & (high == keys // CLASSES)
        pairs = first * (int(lower.max()) + 1) + second
        return np.where(known, table[np.where(known, pairs, 0)], -1)


def _number(values: Integers, count: int) -> tuple[Integers, Integers]:
    """A number for each of ``count`` values that occurs, -1 for others, and the values by number."""
    occurs = np.zeros(count, dtype=bool)
    occurs[values] = True
    found = np.flatnonzero(occurs)
    table = np.full(count, -1, dtype=np.int64)
    table[found] = np.arange(len(found))
    return table, found


def sum_columns(index: Integers, columns: Integers, count: int) -> Integers:
    """Exact sums of whole numbers (rows, columns) over the rows of each of ``count`` places."""
    total = np.zeros((columns.shape[1], count), dtype=np.int64)
    for own, column in zip(total, columns.T, strict=True):
        np.add.at(own, index, column)
    return np.ascontiguousarray(total.T)


@dataclass(frozen=True)
class Grouped:
    """Sums over the rows of every cell that has some.

    Attributes
    ----------
    keys : array, (cells,)
        Which cells they are, ascending; of people, also how many rows each has.
    sums : array, (cells, columns)
        Rows, places along every input, and exposures, as whole numbers.
    lows, highs : array, (cells, inputs)
        The least and the largest number along every input.

    """

    keys: Integers
    sums: Integers
    lows: Array
    highs: Array

    @classmethod
    def of(cls, keys: Integers, sums: Integers, lows: Array, highs: Array) -> Self:
        """From rows, or from parts of cells."""
        places = Places.of(keys)
        index, shape = places.find(keys), (len(places.keys), lows.shape[1])
        least, most = np.full(shape, np.inf), np.full(shape, -np.inf)
        for column in range(shape[1]):
            np.minimum.at(least[:, column], index, lows[:, column])
            np.maximum.at(most[:, column], index, highs[:, column])
        return cls(places.keys, sum_columns(index, sums, shape[0]), least, most)

    def __add__(self, other: Grouped) -> Grouped:
        return Grouped.of(
            np.concatenate([self.keys, other.keys]),
            np.concatenate([self.sums, other.sums]),
            np.concatenate([self.lows, other.lows]),
            np.concatenate([self.highs, other.highs]),
        )


class Source(Protocol):
    """Rows of public inputs, wherever they are. What they hold is summed there."""

    @property
    def count(self) -> int:
        """Rows that are used."""

    @property
    def persons(self) -> int | None:
        """People whose rows they are; None: every row is a person."""

    @property
    def kinds(self) -> Inputs | None:
        """What the columns are; None: numbers."""

    @property
    def exposures(self) -> tuple[float, ...]:
        """The largest of every exposure that counts are counted over."""

    @property
    def has_weights(self) -> bool:
        """Whether the last of the exposures are sample weights."""

    @property
    def variety(self) -> int:
        """By how many classes of people and of weights rows of one place are distinguished."""

    def limits(self, engine: Engine) -> Limits: ...
    def histograms(self, axes: Sequence[Axis], engine: Engine) -> Integers:
        """Rows in every bin along each input, (inputs, bins)."""

    def group(self, grid: Grid, engine: Engine) -> Grouped: ...


@dataclass(frozen=True)
class Tally:
    """Rows by the cells of a grid. All of it is public.

    Attributes
    ----------
    grid : Grid
        The cells.
    keys : array, (cells,)
        Those that hold rows.
    counts : array, (cells,)
        How many.
    numbers : array, (cells, inputs)
        The mean input of each: the input itself where all of its rows have it.
    each : array, (cells,)
        At least as many rows as every person with rows in the cell has; 1 where every row is a person.
    people : int, optional
        How many people there are; None: every row is one.
    exposures : array, (cells, counts), optional
        The mean exposure of every count.
    inputs : Inputs, optional
        What the columns are; None: numbers.
    row_weights : array, (cells,), optional
        The mean sample weight of every cell, over the largest weight; None: 1 each.

    """

    grid: Grid
    keys: Integers
    counts: Integers
    numbers: Array
    each: Integers
    people: int | None = added_field(None)
    exposures: Array | None = added_field(None)
    inputs: Inputs | None = added_field(None)
    row_weights: Array | None = added_field(None)

    def check(self) -> None:
        """Refuse parts that do not belong together, as only a file can have them."""
        cells = (len(self.keys),)
        fits = (
            self.keys.shape == self.counts.shape == self.each.shape == cells != (0,)
            and self.numbers.shape == (*cells, len(self.grid.axes))
            and bool(np.all(np.diff(self.keys) > 0))
            and bool(np.all(self.counts >= 1))
            and int(self.keys[0]) >= 0
            and bool(np.all(self.keys % CLASSES < len(LADDER)) or self.people is None)
            and self.rows <= MOST_ROWS
            and (self.people is not None or bool(np.all(self.each == 1)))
            and (self.people is None or np.array_equal(self.each, LADDER[self.keys % CLASSES]))
            and (self.row_weights is None or _are_shares(self.row_weights, cells))
        )
        if not fits:
            raise ValueError(NOT_TOGETHER)

    @property
    def rows(self) -> int:
        """How many rows are used."""
        return int(self.counts.sum())

    @property
    def units(self) -> int:
        """How many people there are."""
        return self.rows if self.people is None else self.people

    @property
    def coordinates(self) -> Array:
        """Where the kernel has every cell, (cells, columns)."""
        return self.numbers if self.inputs is None else self.inputs.coordinates(self.numbers)

    @property
    def weights(self) -> Array:
        """How much a row of every cell counts: all rows of a person at most 1 together, (cells,)."""
        shares = 1.0 / self.each
        return shares if self.row_weights is None else shares * self.row_weights

    def sample(self, most: int) -> Array:
        """About ``most`` rows, evenly taken in the order of the cells, (rows, columns)."""
        rows = self.rows
        taken = rows if rows <= most else most
        places = ((np.arange(taken) + 0.5) * (rows / taken)).astype(np.int64)
        return self.coordinates[np.searchsorted(np.cumsum(self.counts), places, side="right")]

    @property
    def cells(self) -> Integers:
        """The step of every cell along each input, (cells, inputs)."""
        people, weights = self.people is not None, self.row_weights is not None
        return self.grid.cells(
            self.keys // ((CLASSES if people else 1) * (RUNGS if weights else 1))
        )

    @property
    def bits(self) -> int:
        """Bits behind the point of a number in [-1, 1], such that sums over all rows fit 63 bits."""
        return fraction_bits(self.rows)


def fraction_bits(rows: int) -> int:
    """``2**bits * rows <= 2**62``, and at most 40."""
    return min(40, 62 - rows.bit_length())


def tally_rows(source: Source, engine: Engine) -> Tally:
    """Reduce rows to cells of a fine grid, by a few passes over public columns.

    Parameters
    ----------
    source : Source
        The rows.
    engine : Engine
        The workers that read them.

    """
    if not 1 <= source.count <= MOST_ROWS:
        raise ValueError(f"there must be between 1 and {MOST_ROWS:,} rows.")
    return tally_of(source, find_grid(source, engine), engine)


def find_grid(source: Source, engine: Engine) -> Grid:
    """A grid of cells that hold about equally many rows along every input."""
    limits = source.limits(engine)
    few, steps = limits.few, step_count(limits, source.variety)
    ends = list(zip(limits.low.tolist(), limits.high.tolist(), strict=True))
    if few.all():
        return Grid(tuple(whole_axis(*pair) for pair in ends))
    bins = [even_axis(*pair) for pair in ends]
    for _ in range(ROUNDS):
        counts = source.histograms(bins, engine)
        narrow = [_most(own) for own in counts]
        wide = [stop - first >= NARROW for first, stop in narrow]
        if np.all(few | wide):
            break
        bins = [_closer(axis, *most) for axis, most in zip(bins, narrow, strict=True)]
    axes = []
    for pair, is_few, axis, own in zip(ends, few, bins, counts, strict=True):
        edges = np.linspace(axis.knots[0], axis.knots[-1], BINS + 1)
        axes.append(whole_axis(*pair) if is_few else fine_axis(pair, edges, own, steps))
    return Grid(tuple(axes))


def _most(counts: Integers) -> tuple[int, int]:
    """The bins between which all but the outermost hundredths of the rows lie."""
    total = np.cumsum(counts)
    first, last = np.searchsorted(total, [0.01 * total[-1], 0.99 * total[-1]])
    return int(first), int(last) + 1


def _closer(axis: Axis, first: int, stop: int) -> Axis:
    """Bins about nearly all rows, where these lie in few of them: rows beyond are counted in the outermost."""
    if stop - first >= NARROW:
        return axis
    edges = np.linspace(axis.knots[0], axis.knots[-1], BINS + 1)
    width = edges[1] - edges[0]
    low, high = edges[first] - width, edges[stop] + width
    finer = low < high and np.isfinite(BINS / (high - low)) and high - low > 1e-9 * abs(low)
    return Axis(np.array([low, high]), np.array([BINS])) if finer else axis


def tally_of(source: Source, grid: Grid, engine: Engine, *, exact: bool = False) -> Tally:
    """The tally of rows on a grid.

    Parameters
    ----------
    source : Source
        The rows.
    grid : Grid
        The cells.
    engine : Engine
        The workers that read them.
    exact : bool
        Whether the means of many cells are numbers of all digits, as earlier versions had them.

    """
    found, people = source.group(grid, engine), source.persons
    counts, inputs = found.sums[:, 0], len(grid.axes)
    means = grid.means(found.sums[:, 1 : 1 + inputs], counts)
    numbers = np.where(found.lows == found.highs, found.lows, means)
    numbers = np.clip(numbers, found.lows, found.highs)
    exposures = weights = None
    if source.exposures:
        scale = np.array(source.exposures) / 2.0 ** fraction_bits(source.count)
        mean = (found.sums[:, 1 + inputs :] + 0.5) / counts[:, None] * scale
        exposures = np.minimum(mean, np.array(source.exposures))
    if source.has_weights:
        assert exposures is not None
        weights = exposures[:, -1] / source.exposures[-1]
        exposures = exposures[:, :-1] if len(source.exposures) > 1 else None
    ones = np.ones(len(counts), dtype=np.int64)
    each = ones if people is None else LADDER[found.keys % CLASSES]
    held = exposures, source.kinds, weights
    made = Tally(grid, found.keys, counts, numbers, each, people, *held)
    if exact or numbers.size <= MOST_EXACT:
        return made
    return replace(made, numbers=grid.join(made.cells, grid.split(made.cells, numbers)))


def is_in_parts(tally: Tally) -> bool:
    """Whether the means of cells are in the middle of parts of their steps."""
    grid, cells, numbers = tally.grid, tally.cells, tally.numbers
    found = grid.join(cells, grid.split(cells, numbers))
    return numbers.size > MOST_EXACT and np.array_equal(found, numbers)


@dataclass(frozen=True)
class _File:
    """How files hold a tally.

    Attributes
    ----------
    numbers : array, (cells, inputs)
        Zeros where ``parts`` tell them.
    parts : array, (cells, inputs), optional
        In which of 256 parts of its step the mean input of every cell is.

    """

    grid: Grid
    keys: Integers
    counts: Integers
    numbers: Array
    each: Integers
    people: int | None = added_field(None)
    exposures: Array | None = added_field(None)
    inputs: Inputs | None = added_field(None)
    row_weights: Array | None = added_field(None)
    parts: Integers | None = added_field(None)

    @classmethod
    def of(cls, tally: Tally) -> Self:
        held = {each.name: getattr(tally, each.name) for each in fields(tally)}
        if not is_in_parts(tally):
            return cls(**held)
        parts = tally.grid.split(tally.cells, tally.numbers)
        return cls(**{**held, "numbers": np.zeros_like(tally.numbers)}, parts=parts)

    def read(self) -> Tally:
        tally = Tally(**{each.name: getattr(self, each.name) for each in fields(Tally)})
        if self.parts is None:
            return tally
        tally.check()
        cells = tally.cells
        if self.parts.shape != cells.shape or not np.all((self.parts >= 0) & (self.parts < PARTS)):
            raise ValueError(NOT_TOGETHER)
        return replace(tally, numbers=self.grid.join(cells, self.parts))


_File.__name__ = Tally.__name__  # its name in files
TALLIES: Leaves = {Tally: Leaf(_File, _File.of, _File.read)}


def _are_shares(weights: Array, shape: tuple[int, ...]) -> bool:
    return weights.shape == shape and bool(np.all((weights > 0.0) & (weights <= 1.0)))


def find_rungs(weights: Array) -> Integers:
    """The class of every row's sample weight, (rows,): rows of different classes lie in different cells.

    Up to 16 weights are distinguished. Beyond that, those in one sixteenth of all rows are alike, and each
    counts as the mean of its cell.

    Parameters
    ----------
    weights : array, (rows,)
        Positive.

    """
    values = np.unique(weights)
    if len(values) > RUNGS:
        values = np.unique(np.quantile(weights, (np.arange(RUNGS) + 1) / RUNGS, method="higher"))
    return np.searchsorted(values, weights).astype(np.int64)


@dataclass(frozen=True)
class People:
    """Whose rows they are, as far as it matters: how many rows their person has.

    Attributes
    ----------
    classes : array, (rows,)
        The rung of the ladder; -1 for rows that are not used.
    persons : int
        How many people there are.
    variety : int
        How many rungs of the ladder there are rows on.

    """

    classes: Rungs
    persons: int
    variety: int

    @classmethod
    def of(cls, codes: Integers, most: int | None) -> Self:
        """From a code of every row's person.

        Parameters
        ----------
        codes : array, (rows,)
            Equal for rows of one person.
        most : int, optional
            Rows of a person that are used, the first ones; None: all.

        """
        whose = _compact(codes)
        counts = np.bincount(whose)
        used = counts if most is None else np.minimum(counts, most)
        rungs = np.searchsorted(LADDER, used).astype(np.int8)
        classes = rungs[whose]
        if most is not None:
            classes[_beyond(whose, counts, most)] = -1
        there = counts > 0
        return cls(classes, int(np.count_nonzero(there)), len(np.unique(rungs[there])))

    @property
    def used(self) -> int:
        """How many rows are used."""
        return int(np.count_nonzero(self.classes >= 0))


def _compact(codes: Integers) -> Integers:
    """Small whole numbers from 0 on, equal for equal codes, (rows,)."""
    low, high = int(codes.min(initial=0)), int(codes.max(initial=0))
    if high - low < SPARSE * len(codes):
        return codes - low
    return np.unique(codes, return_inverse=True)[1]


def _beyond(whose: Integers, counts: Integers, most: int) -> Integers:
    """The rows of every person after the first ``most``."""
    many = np.flatnonzero(counts[whose] > most)
    order = many[np.argsort(whose[many], kind="stable")]
    each = counts[counts > most]
    rank = np.arange(len(order)) - np.repeat(np.cumsum(each) - each, each)
    return order[rank >= most]


def key_rows(
    grid: Grid,
    numbers: Array,
    classes: Rungs | None,
    exposures: Array,
    bits: int,
    rungs: Integers | None = None,
) -> tuple[Integers, Integers, Array]:
    """The key of every row that is used, what it adds to sums, and its numbers.

    Parameters
    ----------
    grid : Grid
        The cells.
    numbers : array, (rows, inputs)
        Public inputs.
    classes : array, (rows,), optional
        As in ``People``.
    exposures : array, (rows, counts)
        Between 0 and 1.
    bits : int
        Of exposures behind the point.
    rungs : array, (rows,), optional
        As ``find_rungs`` has them.

    """
    places = grid.places(numbers)
    keys, counted = keys_of(grid, places, classes, rungs)
    parts = (
        np.ones(len(keys), dtype=np.int64),
        grid.offsets(places),
        whole_multiples(exposures, bits),
    )
    sums = np.column_stack(parts)
    if counted is not None:
        keys, sums, numbers = keys[counted], sums[counted], numbers[counted]
    return keys, sums, numbers


def keys_of(
    grid: Grid, places: Sequence[Array], classes: Rungs | None, rungs: Integers | None = None
) -> tuple[Integers, Integers | None]:
    """The key of every row, and the rows that are used; None: all."""
    keys = grid.keys(places)
    keys = keys if rungs is None else keys * RUNGS + rungs
    if classes is None:
        return keys, None
    return keys * CLASSES + classes, np.flatnonzero(classes >= 0)
