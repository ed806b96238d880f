"""Blocks worked on in this process, one after the other or on threads."""

import math
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np

from privgp.types import Array, Integers

LIMB = 40  # bits of the upper part; the lower one has one more for the rest of the upper's rounding
SPAN = 2 * LIMB + 1
MOST_TERMS = 2**22  # sums of this many terms cannot overflow
MOST_TOP = 400  # beyond, powers of two and their inverses leave the range of numbers


@dataclass(frozen=True)
class Lattice:
    """Numbers of at most ``2**top`` as multiples of ``2**(top - 81)``: an upper and a lower
    integer.

    Attributes
    ----------
    top : the exponent

    """

    top: int

    @classmethod
    def for_size(cls, most: float) -> "Lattice":
        """The finest lattice for numbers of at most this size.

        Raises
        ------
        ValueError
            The size is not finite or far beyond what can be split.

        """
        top = math.frexp(most)[1] if 0.0 < most < math.inf else MOST_TOP + 1
        if abs(top) > MOST_TOP:
            raise ValueError("the measurement of some rows is not finite: choose other units.")
        return cls(top)

    @property
    def step(self) -> float:
        """The distance of neighbouring lattice points."""
        return 2.0 ** (self.top - SPAN)

    def split(self, numbers: Array) -> Integers:
        """The nearest lattice points, (2, *shape) of int64: off by at most half a step.

        Sums of up to 2^22 such parts are exact, in any order.
        """
        out = np.empty((2, *numbers.shape), dtype=np.int64)
        upper = np.rint(numbers * 2.0 ** (LIMB - self.top))
        out[0] = upper
        upper *= 2.0 ** (self.top - LIMB)
        rest = np.subtract(numbers, upper, out=upper)  # exact
        rest *= 2.0 ** (SPAN - self.top)
        out[1] = np.rint(rest, out=rest)
        return out

    def join(self, parts: Integers) -> Array:
        """The number of a sum of split numbers t: off by at most a step and three roundings of t.

        Parameters
        ----------
        parts
            (2, *shape), added up as integers.

        """
        width = SPAN - LIMB
        carried = (parts[1] + (1 << (width - 1))) >> width
        upper = (parts[0] + carried) * 2.0 ** (self.top - LIMB)
        lower = (parts[1] - (carried << width)) * self.step
        return np.asarray(upper + lower, dtype=np.float64)


def whole_multiples(numbers: Array, bits: int) -> Integers:
    """Numbers as whole multiples of ``2**-bits``, rounded down, each separately."""
    return np.floor(numbers * 2.0**bits).astype(np.int64)


Block = TypeVar("Block")
Part = TypeVar("Part")
Watch = Callable[[int, int], None]  # is told how many blocks of how many are done


class Engine(Protocol):
    """The workers that compute a function of blocks of rows.

    The function must be pure: blocks may be computed in any order, anywhere, and again when they
    are lost.
    """

    @property
    def workers(self) -> int: ...
    def map(
        self, function: Callable[[Block], Part], blocks: Sequence[Block], watch: Watch | None = None
    ) -> Iterator[Part]:
        """The function of every block, in whatever order they are done.

        Parameters
        ----------
        function
            Pure; on a cluster it is sent to workers.
        blocks
            The arguments, one at a time.
        watch
            Is called with how many blocks of how many are done.

        """


@dataclass(frozen=True)
class Serial:
    """One block after the other."""

    workers: int = 1

    def map(
        self, function: Callable[[Block], Part], blocks: Sequence[Block], watch: Watch | None = None
    ) -> Iterator[Part]:
        """The function of one block after the other, in order; see ``Engine``."""
        for done, block in enumerate(blocks, 1):
            yield function(block)
            if watch is not None:
                watch(done, len(blocks))


@dataclass(frozen=True)
class Threads:
    """As many threads as this process has processors."""

    workers: int = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2

    def map(
        self, function: Callable[[Block], Part], blocks: Sequence[Block], watch: Watch | None = None
    ) -> Iterator[Part]:
        """The function of every block on threads, a few at a time; see ``Engine``."""
        coming, waiting, done = iter(blocks), set[Future[Part]](), 0
        with ThreadPoolExecutor(self.workers) as pool:
            try:
                while True:
                    for block in coming:
                        waiting.add(pool.submit(function, block))
                        if len(waiting) > self.workers:  # few blocks are in memory at a time
                            break
                    if not waiting:
                        return
                    finished, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                    for future in finished:
                        yield future.result()
                        done += 1
                        if watch is not None:
                            watch(done, len(blocks))
            finally:
                for future in waiting:
                    future.cancel()
