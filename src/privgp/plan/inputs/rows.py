"""Rows of inputs that need not be in memory together: blocks, a public sample, and two threads."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np

from privgp.gp.threads import one_thread
from privgp.types import Array, Integers

BLOCK = 2048  # rows: a block of kernel values stays in the processor's cache
THREADS = 2

Block = TypeVar("Block")
Part = TypeVar("Part")


class Rows(Protocol):
    """Public inputs, all of the same number of columns, in an order that never changes."""

    @property
    def count(self) -> int: ...
    @property
    def columns(self) -> int: ...
    def blocks(self, size: int = BLOCK) -> Iterator[Array]:
        """All rows in order, as arrays of ``size`` rows (the last one may have fewer)."""

    def take(self, places: Integers) -> Array:
        """The rows at these ascending places."""


@dataclass(frozen=True)
class ArrayRows:
    array: Array

    @property
    def count(self) -> int:
        return len(self.array)

    @property
    def columns(self) -> int:
        return int(self.array.shape[1])

    def blocks(self, size: int = BLOCK) -> Iterator[Array]:
        for first in range(0, len(self.array), size):
            yield self.array[first : first + size]

    def take(self, places: Integers) -> Array:
        return self.array[places]


def sample(rows: Rows, most: int) -> Array:
    """All rows, or ``most`` of them drawn with a fixed public seed, in order."""
    if rows.count <= most:
        return rows.take(np.arange(rows.count))
    places = np.random.default_rng(0).choice(rows.count, most, replace=False, shuffle=False)
    return rows.take(np.sort(places))


def in_blocks(function: Callable[[Block], Part], blocks: Iterable[Block]) -> Iterator[Part]:
    """``function`` of every block, in order, on two threads; few blocks are in memory at a time."""
    with one_thread(), ThreadPoolExecutor(THREADS) as pool:
        waiting: deque[Future[Part]] = deque()
        for block in blocks:
            waiting.append(pool.submit(function, block))
            if len(waiting) > THREADS:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
