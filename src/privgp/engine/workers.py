"""Blocks worked on in this process, one after the other or on threads, or by the workers of a
``dask.distributed`` scheduler (extra ``dask``)."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar
from uuid import uuid4

import numpy as np

from privgp.types import Array, Integers

if TYPE_CHECKING:
    from distributed import Client
    from distributed import Future as Remote


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


TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # names of glibc's settings
ANSWER = 5  # seconds that a scheduler has to answer
_clients: dict[str, Client] = {}  # of schedulers that were given by their address
KEPT, USUAL = 2**28, 2**17  # bytes
MISSING = "engine needs the package distributed: install privgp with the extra 'dask'."
WRONG = "engine must be None, a dask.distributed Client or a scheduler's address such as tcp://host:8786."
LOST = "the workers of the cluster were lost before all blocks were done. Nothing was released."


@contextmanager
def keep_memory() -> Iterator[None]:
    """Let the process keep freed memory while a block is worked on. Dask tells the C library of its
    workers to hand all of it back at once, and getting it again for every array takes most of the time.
    """
    try:
        library = ctypes.CDLL(None)
        library.mallopt(TRIM_THRESHOLD, KEPT)
        library.mallopt(MMAP_THRESHOLD, KEPT)
    except (OSError, AttributeError):  # another C library
        yield
        return
    try:
        yield
    finally:
        asked = os.environ.get("MALLOC_TRIM_THRESHOLD_", "")
        library.mallopt(TRIM_THRESHOLD, int(asked) if asked.isdigit() else USUAL)
        library.mallopt(MMAP_THRESHOLD, USUAL)
        library.malloc_trim(0)


@dataclass(frozen=True, repr=False)
class Quiet(Generic[Block]):
    """A block whose representation shows nothing of it."""

    block: Block


@dataclass(frozen=True, repr=False)
class Refused:
    """Why a block could not be computed, in a sentence without private values."""

    sentence: str


@dataclass(frozen=True, repr=False)
class Task(Generic[Block, Part]):
    """A function of a block that says nothing of either.

    A failure comes back as a sentence, since workers log the arguments and the text of every
    exception.
    """

    function: Callable[[Block], Part]

    def __call__(self, quiet: Quiet[Block]) -> Part | Refused:
        """The result, or why there is none."""
        try:
            with keep_memory():
                return self.function(quiet.block)
        except ValueError as problem:
            return Refused(str(problem))
        except Exception as problem:
            return Refused(f"a block of rows could not be computed ({type(problem).__name__}).")


@dataclass(frozen=True)
class Cluster:
    """All workers that a client of Dask's scheduler sees.

    Attributes
    ----------
    client : a client of ``dask.distributed``, connected

    """

    client: Client

    @property
    def workers(self) -> int:
        """How many threads all workers have together."""
        threads: dict[str, int] = self.client.nthreads()  # type: ignore[no-untyped-call]
        return max(1, sum(threads.values()))

    def map(
        self, function: Callable[[Block], Part], blocks: Sequence[Block], watch: Watch | None = None
    ) -> Iterator[Part]:
        """The function of every block, in the order in which they are done; see ``Engine``.

        Raises
        ------
        ValueError
            The function refused a block.
        RuntimeError
            Workers were lost too often.

        """
        from distributed import as_completed

        task = Task(function)
        # Separate names, so that nothing is taken from an earlier call.
        names = [f"privgp-block-{uuid4().hex}" for _ in blocks]
        futures = self.client.map(task, [Quiet(block) for block in blocks], key=names, pure=False)
        finished: Iterator[Remote[Part | Refused]] = as_completed(  # type: ignore[no-untyped-call]
            futures, loop=self.client.loop
        )
        try:
            for done, future in enumerate(finished, 1):
                yield _result(future)
                future.release()  # type: ignore[no-untyped-call]
                if watch is not None:
                    watch(done, len(blocks))
        finally:
            self.client.cancel(futures)  # type: ignore[no-untyped-call]


def _result(future: Remote[Part | Refused]) -> Part:
    try:
        result = future.result()
    except Exception:  # Dask's own: a worker was lost too often
        raise RuntimeError(LOST) from None
    if isinstance(result, Refused):
        raise ValueError(result.sentence)
    return result


def engine_of(given: Client | Engine | str | None) -> Engine:
    """Threads for None, or the cluster of a client or of a scheduler's address.

    Parameters
    ----------
    given
        None, an engine, a ``dask.distributed.Client``, or an address such as "tcp://host:8786";
        a client for an address is made once and kept.

    Raises
    ------
    ValueError
        It is something else, ``distributed`` is not installed, or no scheduler answers.

    """
    if given is None:
        return Threads()
    if isinstance(given, Serial | Threads | Cluster):
        return given
    try:
        from distributed import Client
    except ImportError:
        raise ValueError(MISSING) from None
    if isinstance(given, Client):
        return Cluster(given)
    if not isinstance(given, str) or "://" not in given:
        raise ValueError(WRONG)
    held = _clients.get(given)
    if held is None or held.status != "running":
        try:
            held = Client(  # type: ignore[no-untyped-call]
                given, timeout=ANSWER, set_as_default=False
            )
        except Exception:
            raise ValueError(f"no scheduler answers at {given}.") from None
        _clients[given] = held
    return Cluster(held)
