"""Blocks worked on in this process, one after the other or on threads."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np

from privgp.types import Array, Integers


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
