"""Private outcomes summed over the cells of a tally, where the rows are: whole numbers, so that any engine
adds them up alike. Proof: docs/proofs/engine.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import shake_256
from secrets import token_bytes
from typing import Any

import numpy as np

from privgp.engine.workers import Engine, Watch, whole_multiples
from privgp.gp.arithmetic import one_thread
from privgp.plan.inputs.blocks import Blocks, sum_parts
from privgp.plan.inputs.tally import Places, Tally, keys_of, sum_columns
from privgp.tables.files import Files
from privgp.types import Array, Integers, Pair
from privgp.vault.validate import check_outputs, clip_outputs
from privgp.vault.values import Sealed, unseal


@dataclass(frozen=True, repr=False)
class Key:
    """The secret behind masks, new for every pass; only the custodian and the workers' tasks have
    it.

    Attributes
    ----------
    secret : 32 random bytes

    """

    secret: bytes

    @classmethod
    def new(cls) -> Key:
        """A key of fresh cryptographic randomness."""
        return cls(token_bytes(32))

    def mask(self, place: int, shape: tuple[int, ...]) -> Integers:
        """Uniform integers, other ones for every place, by SHAKE-256.

        Parameters
        ----------
        place
            Place of the part of the sum, never used twice with one key.
        shape
            Shape of the mask.

        """
        stream = shake_256(self.secret + place.to_bytes(8, "little"))
        count = int(np.prod(shape))
        return np.frombuffer(stream.digest(8 * count), dtype="<i8").reshape(shape)


@dataclass(frozen=True, repr=False)
class Masked:
    """Integers plus the masks of these places, modulo 2**64.

    Attributes
    ----------
    numbers : masked
    places : the places whose masks are in them

    """

    numbers: Integers
    places: list[int]

    @classmethod
    def of(cls, numbers: Integers, place: int, key: Key) -> Masked:
        """Private integers with the mask of one place."""
        return cls(numbers + key.mask(place, numbers.shape), [place])

    def __add__(self, other: Masked) -> Masked:
        """The sum of both; it takes over this one's list."""
        self.places.extend(other.places)
        return Masked(self.numbers + other.numbers, self.places)

    def unmask(self, key: Key) -> Integers:
        """The sum without masks: private."""
        total = self.numbers.copy()
        for place in self.places:
            total -= key.mask(place, total.shape)
        return total


LATE = "the rows changed after noise was drawn, or cannot be read: count the budget as spent, and plan again."
CHANGED = "the rows are not those that the plan was made for: plan again. Nothing was spent."


@dataclass(frozen=True)
class Encoding:
    """How an outcome becomes numbers in [-1, 1] that are summed.

    Attributes
    ----------
    bounds : pair
        The declared bounds of a number.
    classes : int
        Of a label that has three or more, whose places are then the values; 2 for all others.

    """

    bounds: Pair
    classes: int = 2

    @property
    def columns(self) -> int:
        """How many sums there are: of a number and of its square, or of every class."""
        return 2 if self.classes == 2 else self.classes

    def encode(self, values: Array, bits: int, cells: Integers) -> Integers:
        """Whole multiples of ``2**-bits``, (rows, columns), each a function of its row alone.

        Parameters
        ----------
        values : array, (rows,)
            Private.
        bits : int
            Behind the point.
        cells : array, (rows,)
            The place of every row's cell in the tally, public.

        """
        if self.classes == 2:
            u = clip_outputs(values, len(values), self.bounds)
            rounded = whole_multiples(u, bits)
            v = rounded * 2.0**-bits  # whose square is never too small for a float
            return np.column_stack([rounded, whole_multiples(v * v, bits)])
        each = np.equal.outer(values, np.arange(self.classes, dtype=np.float64))
        return np.where(each, 1, -1).astype(np.int64) << bits


@dataclass(frozen=True, kw_only=True)
class ResidualEncoding(Encoding):
    """How what a number is above or below a public curve, clipped to ``bounds``, is summed.

    Attributes
    ----------
    within : pair
        The declared bounds of the number itself.
    curve : array, (cells,)
        The curve in every cell of the tally.

    """

    within: Pair
    curve: Array

    def encode(self, values: Array, bits: int, cells: Integers) -> Integers:
        """See ``Encoding``."""
        y = np.clip(check_outputs(values, len(values)), *self.within)
        return super().encode(np.clip(y - self.curve[cells], *self.bounds), bits, cells)


@dataclass(frozen=True, repr=False)
class Totals:
    """The sums of one outcome over the cells of a tally. Private.

    Attributes
    ----------
    sums : array, (cells, columns)
        Multiples of ``2**-bits``.
    bits : int
        Behind the point.
    rows : int
        How many rows were summed.
    encoding : Encoding
        How values became numbers.
    again : callable
        Sums the same outcome in another way, by another pass.

    """

    sums: Integers
    bits: int
    rows: int
    encoding: Encoding
    again: Callable[[Encoding], Sealed]

    def residuals(self, curve: Array, width: float) -> Sealed:
        """The sums of residuals about a public curve, (cells,), which are clipped to +-width."""
        kind = ResidualEncoding((-width, width), within=self.encoding.bounds, curve=curve)
        try:
            return self.again(kind)
        except ValueError:
            raise RuntimeError(LATE) from None

    def check(self, tally: Tally | None, bounds: Pair, columns: int) -> Array:
        """The sums as numbers, (cells, columns), if they are of this tally, bounds and kind."""
        same = tally is not None and (len(tally.keys), tally.rows) == (len(self.sums), self.rows)
        if not same or self.encoding.columns != columns or self.encoding.bounds != tuple(bounds):
            raise ValueError(CHANGED)
        return np.asarray(self.sums * 2.0**-self.bits, dtype=np.float64)


@dataclass(frozen=True, repr=False)
class AllTotals:
    """The sums of several outcomes, in their order. Private."""

    each: tuple[Totals, ...]


def sum_outcomes(
    data: Sealed,
    rows: Any,
    tally: Tally,
    encodings: Sequence[Encoding],
    engine: Engine,
    *,
    alone: bool,
    watch: Watch | None = None,
) -> Sealed:
    """Validate, clip and add up, in one pass: what ``measure`` takes of many rows. Nothing is released.
    Residuals about a first curve are added up by another pass, which refuses what changed between.

    Parameters
    ----------
    data : Sealed
        The outcomes of rows in memory, or where they are.
    rows : Source
        Where the rows are.
    tally : Tally
        Of the same rows; others are refused.
    encodings : sequence of Encoding
        One per outcome.
    engine : Engine
        The workers.
    alone : bool
        Whether the only outcome is measured alone.
    watch : callable, optional
        Is called with how many blocks of how many are done.

    """
    held = unseal(data)
    source: Any = held if hasattr(held, "sum_over") else ArrayOutcomes(rows, data)
    found: Integers = source.sum_over(tally, encodings, engine, watch)
    if not np.array_equal(found[:, 0], tally.counts):
        raise ValueError(CHANGED)
    ends = np.cumsum([1, *(each.columns for each in encodings)])
    parts = np.split(found, ends, axis=1)[1:-1]

    def again(kind: Encoding) -> Sealed:
        return sum_outcomes(data, rows, tally, [kind], engine, alone=True, watch=watch)

    each = tuple(
        Totals(part, tally.bits, tally.rows, encoding, again)
        for part, encoding in zip(parts, encodings, strict=True)
    )
    return Sealed(each[0] if alone else AllTotals(each), tally.rows)


@dataclass(frozen=True, repr=False)
class ArrayOutcomes:
    """Outcomes in memory beside rows in memory.

    Attributes
    ----------
    rows : Blocks
        The rows.
    data : Sealed
        One value per row, or one per row and outcome.

    """

    rows: Blocks
    data: Sealed

    def sum_over(
        self, tally: Tally, encodings: Sequence[Encoding], engine: Engine, watch: Watch | None
    ) -> Integers:
        """Rows, and sums of every outcome's columns, over the cells of a tally, (cells, 1 + columns)."""
        values = np.asarray(unseal(self.data), dtype=np.float64)
        values = values[:, None] if values.ndim == 1 else values
        blocks = [PrivateBlock(b, values[b.first : b.stop]) for b in self.rows.parts(engine)]
        return _sum(blocks, tally, encodings, engine, watch)


@dataclass(frozen=True, repr=False)
class FileOutcomes:
    """Outcomes in files, which the worker on a block reads; private, so they are handed on sealed.

    Attributes
    ----------
    rows : Blocks
        The rows.
    files : Files
        Refused if they changed since they were opened.
    names : tuple of str
        The private columns.
    read : callable
        From a frame to one value per row and outcome.

    """

    rows: Blocks
    files: Files
    names: tuple[str, ...]
    read: Any

    def sum_over(
        self, tally: Tally, encodings: Sequence[Encoding], engine: Engine, watch: Watch | None
    ) -> Integers:
        blocks = [
            PrivateBlock(b, names=self.names, read=self.read) for b in self.rows.parts(engine)
        ]
        found = _sum(blocks, tally, encodings, engine, watch)
        self.files.refuse_changes()
        return found


@dataclass(frozen=True, repr=False)
class PrivateBlock:
    """A block of rows with its outcomes, in memory or in files."""

    rows: Blocks
    values: Array | None = None
    names: tuple[str, ...] = ()
    read: Any = None


def _sum(
    blocks: Sequence[PrivateBlock],
    tally: Tally,
    encodings: Sequence[Encoding],
    engine: Engine,
    watch: Watch | None,
) -> Integers:
    key = Key.new()
    function = Summing(tally, tuple(encodings), key)
    masked: Masked = sum_parts(function, blocks, engine, watch)
    return masked.unmask(key)


@dataclass(frozen=True, repr=False)
class Summing:
    """The sums of a block, under a mask."""

    tally: Tally
    encodings: tuple[Encoding, ...]
    key: Key

    def __call__(self, block: PrivateBlock) -> Masked:
        columns = 1 + sum(each.columns for each in self.encodings)
        total = np.zeros((len(self.tally.keys), columns), dtype=np.int64)
        cells = Places.of(self.tally.keys)
        with one_thread():
            for batch in block.rows.batches(block.names, block.read):
                held = batch.held if block.values is None else block.values[batch.rows]
                values = np.asarray(held, dtype=np.float64).reshape(len(batch.numbers), -1)
                places = self.tally.grid.places(batch.numbers)
                keys, used = keys_of(self.tally.grid, places, batch.classes, batch.rungs)
                self._add(total, cells, keys, values, used)
        return Masked.of(total, block.rows.first, self.key)

    def _add(
        self,
        total: Integers,
        cells: Places,
        keys: Integers,
        values: Array,
        used: Integers | None,
    ) -> None:
        """Add a batch. All of its outcomes are checked, those of rows that are not used too."""
        pairs, index = zip(self.encodings, values.T, strict=True), cells.find(keys)
        encoded = np.column_stack([e.encode(column, self.tally.bits, index) for e, column in pairs])
        if used is not None:
            index, encoded = index[used], encoded[used]
        if np.any(index < 0):
            raise ValueError(CHANGED)
        total[:, 0] += np.bincount(index, minlength=len(total))
        total[:, 1:] += sum_columns(index, encoded, len(total))
