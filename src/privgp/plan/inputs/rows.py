"""Rows of public inputs that need not be in memory together. They are worked on in chunks whose edges
depend on the rows alone, never on who works on them: blocks for workers are runs of whole chunks."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import pairwise
from operator import add
from typing import Any, Protocol, Self, TypeVar

import numpy as np

from privgp.engine.local import Engine
from privgp.gp.threads import one_thread
from privgp.types import Array, Integers

BLOCK = 2048  # rows of a chunk: its kernel values stay in the processor's cache
LARGEST = 2**16  # rows of a chunk that holds whole people
STREAMED = 20_000  # past this many rows they are streamed on their own
MANY = 2**18  # rows of a block at most
PER_WORKER = 4  # blocks, so that none waits long for the last

Value = TypeVar("Value")


@dataclass(frozen=True, repr=False)
class Chunk:
    """Some rows that are worked on together.

    Attributes
    ----------
    place : place of its first row among all
    inputs : (rows, columns), public
    people : (rows,), equal for two rows of one person, ascending; None: every row is a person

    """

    place: int
    inputs: Array
    people: Integers | None = None

    @property
    def mark(self) -> int:
        """A number that other inputs, people or places would not have; marks are added modulo 2**64."""
        people = b"" if self.people is None else self.people.tobytes()
        digest = blake2b(self.inputs.tobytes() + people, digest_size=8, salt=_salt(self.place))
        return int.from_bytes(digest.digest(), "little")


def _salt(place: int) -> bytes:
    return place.to_bytes(16, "little")


class Rows(Protocol):
    """Public inputs, all of the same number of columns, in an order that never changes.

    Attributes
    ----------
    count : number of rows that are used
    total : number of all rows, as people may have too many
    columns : coordinates of a row
    persons : how many people they are of; None: every row is one

    """

    @property
    def count(self) -> int: ...
    @property
    def total(self) -> int: ...
    @property
    def columns(self) -> int: ...
    @property
    def persons(self) -> int | None: ...
    def chunks(self) -> Iterator[Chunk]: ...
    def parts(self, number: int) -> Sequence[Self]:
        """Runs of whole chunks, about this many; each can be sent to a worker."""

    def take(self, places: Integers, engine: Engine) -> Array:
        """The rows at these ascending places, (places, columns)."""


@dataclass(frozen=True, repr=False)
class ArrayRows:
    """Rows in memory; see ``Rows``.

    Attributes
    ----------
    array : (rows, columns)
    place : place of the first among all
    size : size of chunks

    """

    array: Array
    place: int = 0
    size: int = BLOCK

    @property
    def count(self) -> int:
        return len(self.array)

    @property
    def total(self) -> int:
        return len(self.array)

    @property
    def columns(self) -> int:
        return int(self.array.shape[1])

    @property
    def persons(self) -> None:
        return None

    def chunks(self) -> Iterator[Chunk]:
        for first in range(0, len(self.array), self.size):
            here = np.ascontiguousarray(self.array[first : first + self.size])
            yield Chunk(self.place + first, here)

    def ranges(self, number: int) -> list[tuple[int, int]]:
        """(first, stop) of about ``number`` runs of whole chunks."""
        return [
            (self.size * first, min(self.size * stop, self.count))
            for first, stop in runs(-(-self.count // self.size), number)
        ]

    def parts(self, number: int) -> list[Self]:
        """Runs of whole chunks, about this many."""
        return [
            replace(self, array=self.array[first:stop], place=self.place + first)
            for first, stop in self.ranges(number)
        ]

    def take(self, places: Integers, engine: Engine) -> Array:
        return self.array[places]


@dataclass(frozen=True, repr=False)
class PeopleRows:
    """Rows in memory, sorted by people, with whole people in every chunk; see ``Rows``.

    Attributes
    ----------
    array : (rows, columns), sorted
    codes : (rows,), of people, ascending
    places : (rows,), where each row was
    edges : (chunks + 1,), of chunks among all sorted rows
    unsorted : all rows as they were, those that were dropped too; None in a part

    """

    array: Array
    codes: Integers
    places: Integers
    edges: Integers
    unsorted: Array | None = None

    @classmethod
    def of(cls, array: Array, codes: Integers, most: int) -> Self:
        """All rows, but those beyond a person's first ``most``.

        Parameters
        ----------
        array
            (rows, columns).
        codes
            (rows,), the person of every row.
        most
            Rows of one person that are used.

        """
        order = sort_by_person(codes, most)
        edges = chunk_edges(codes[order], len(codes))
        return cls(array[order], codes[order], order, edges, array)

    @property
    def count(self) -> int:
        return len(self.array)

    @property
    def total(self) -> int:
        return self.count if self.unsorted is None else len(self.unsorted)

    @property
    def columns(self) -> int:
        return int(self.array.shape[1])

    @property
    def persons(self) -> int:
        return len(np.unique(self.codes))

    def chunks(self) -> Iterator[Chunk]:
        for first, stop in zip(self.edges[:-1], self.edges[1:], strict=True):
            here = slice(first - self.edges[0], stop - self.edges[0])
            yield Chunk(int(first), self.array[here], self.codes[here])

    def ranges(self, number: int) -> list[tuple[int, int]]:
        """(first, stop) of about ``number`` runs of whole chunks."""
        chunks, edges = runs(len(self.edges) - 1, number), self.edges - self.edges[0]
        return [(int(edges[first]), int(edges[stop])) for first, stop in chunks]

    def parts(self, number: int) -> list[Self]:
        """Runs of whole chunks, about this many."""
        each = zip(runs(len(self.edges) - 1, number), self.ranges(number), strict=True)
        return [
            replace(
                self,
                array=self.array[start:end],
                codes=self.codes[start:end],
                places=self.places[start:end],
                edges=self.edges[first : stop + 1],
                unsorted=None,
            )
            for (first, stop), (start, end) in each
        ]

    def take(self, places: Integers, engine: Engine) -> Array:
        assert self.unsorted is not None
        return self.unsorted[places]


def runs(chunks: int, number: int) -> list[tuple[int, int]]:
    """About ``number`` runs of as many chunks each, (first, stop)."""
    number = max(1, min(chunks, number))
    edges = [chunks * place // number for place in range(number + 1)]
    return list(pairwise(edges))


def sort_by_person(codes: Integers, most: int) -> Integers:
    """Places of rows, person by person, at most the first ``most`` of each.

    Parameters
    ----------
    codes
        (rows,), the person of every row.
    most
        Rows of one person that are used.

    """
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    rank = np.arange(len(order)) - np.repeat(starts, np.diff(np.append(starts, len(order))))
    return np.asarray(order[rank < most])


def people_bits(rows: int) -> int:
    """How many leading bits of a code say the chunk: about half of ``BLOCK`` rows in each."""
    return max(0, int(np.ceil(np.log2(max(1, rows) / (BLOCK // 2)))))


def chunk_of(codes: Integers, rows: int) -> Integers:
    """The chunk of every code, of ``2**people_bits``: codes are evenly spread from 0 to 2**62."""
    return np.asarray(codes >> (62 - people_bits(rows)))


def chunk_edges(ordered: Integers, rows: int) -> Integers:
    """The edges of chunks among ascending codes, both ends included, (chunks + 1,).

    Parameters
    ----------
    ordered
        Ascending codes.
    rows
        How many there are in the table, which decides how many chunks there are.

    Raises
    ------
    ValueError
        A chunk would have more than 65,536 rows, as a person has too many.

    """
    chunks = chunk_of(ordered, rows)
    inner = np.flatnonzero(chunks[1:] != chunks[:-1]) + 1
    edges = np.concatenate([[0], inner, [len(ordered)]])
    if np.diff(edges).max() > LARGEST:
        raise ValueError(f"a person has too many rows: declare most_rows of at most {LARGEST}.")
    return edges


@dataclass(frozen=True, repr=False)
class Marking:
    """The mark of a chunk, by which a plan knows the rows it was made for."""

    def __call__(self, chunk: Chunk) -> int:
        return chunk.mark


def mark_rows(rows: Rows, engine: Engine) -> str:
    """The mark of all rows together, as text: 16 hexadecimal digits.

    It depends on inputs, people and places, never on who worked on which block.
    """
    blocks = rows.parts(block_number(rows.count, engine))
    return mark_text(sum_blocks(Marking(), add, blocks, engine))


def mark_text(mark: int) -> str:
    """A mark as 16 hexadecimal digits."""
    return f"{mark % 2**64:016x}"


def sample(rows: Rows, most: int, engine: Engine) -> Array:
    """All rows, or ``most`` of them drawn with a fixed public seed, in order.

    Parameters
    ----------
    rows
        Public.
    most
        How many at most.
    engine
        The workers that look them up.

    """
    count = rows.total
    if count <= most:
        return rows.take(np.arange(count), engine)
    places = np.random.default_rng(0).choice(count, most, replace=False, shuffle=False)
    return rows.take(np.sort(places), engine)


def block_number(count: int, engine: Engine) -> int:
    """How many blocks this many rows are worked on in."""
    return max(PER_WORKER * engine.workers, -(-count // MANY))


@dataclass(frozen=True, repr=False)
class Folded:
    """``function`` of every chunk of a block, added up by ``plus``; on one thread of BLAS.

    Attributes
    ----------
    function : function of a chunk
    plus : function of two results

    """

    function: Callable[[Any], Any]
    plus: Callable[[Any, Any], Any]

    def __call__(self, block: Any) -> Any:
        total = None
        with one_thread():
            for chunk in block.chunks():
                part = self.function(chunk)
                total = part if total is None else self.plus(total, part)
        return total


def sum_blocks(
    function: Callable[[Any], Value],
    plus: Callable[[Value, Value], Value],
    blocks: Sequence[Any],
    engine: Engine,
    watch: Any = None,
) -> Value:
    """The sum of a function of all chunks; the engine may add them up in any order.

    Parameters
    ----------
    function
        Function of a chunk.
    plus
        Function of two results; associative and commutative, exactly.
    blocks
        Runs of chunks.
    engine
        The workers.
    watch
        Is called with how many blocks of how many are done.

    Raises
    ------
    ValueError
        There are no blocks.

    """
    total: Value | None = None
    for part in engine.map(Folded(function, plus), blocks, watch):
        total = part if total is None else plus(total, part)
    if total is None:
        raise ValueError("there are no rows.")
    return total
