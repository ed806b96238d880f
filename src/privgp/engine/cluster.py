"""Blocks worked on by the workers of a ``dask.distributed`` scheduler (extra ``dask``)."""

import ctypes
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import uuid4

from privgp.engine.local import Engine, Serial, Threads, Watch

Block = TypeVar("Block")
Part = TypeVar("Part")

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # names of glibc's settings
ANSWER = 5  # seconds that a scheduler has to answer
_clients: dict[str, Any] = {}  # of schedulers that were given by their address
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
class Task:
    """A function of a block that says nothing of either.

    A failure comes back as a sentence, since workers log the arguments and the text of every
    exception.
    """

    function: Callable[[Any], Any]

    def __call__(self, block: Any) -> tuple[bool, Any]:
        """Whether it worked, and the result or a sentence without private values."""
        try:
            with keep_memory():
                return True, self.function(block)
        except ValueError as problem:
            return False, str(problem)
        except Exception as problem:
            return False, f"a block of rows could not be computed ({type(problem).__name__})."


@dataclass(frozen=True, repr=False)
class Quiet:
    """A block whose representation shows nothing of it."""

    block: Any


@dataclass(frozen=True, repr=False)
class Unwrapped:
    """A task that is given blocks as ``Quiet`` ones."""

    task: Task

    def __call__(self, quiet: Quiet) -> tuple[bool, Any]:
        return self.task(quiet.block)


@dataclass(frozen=True)
class Cluster:
    """All workers that a client of Dask's scheduler sees.

    Attributes
    ----------
    client : a client of ``dask.distributed``, connected

    """

    client: Any

    @property
    def workers(self) -> int:
        """How many threads all workers have together."""
        return max(1, sum(map(int, self.client.nthreads().values())))

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

        waited: Any = as_completed
        task = Unwrapped(Task(function))
        # Separate names, so that nothing is taken from an earlier call.
        names = [f"privgp-block-{uuid4().hex}" for _ in blocks]
        futures = self.client.map(task, [Quiet(block) for block in blocks], key=names, pure=False)
        try:
            for done, future in enumerate(waited(futures, loop=self.client.loop), 1):
                yield _result(future)
                future.release()
                if watch is not None:
                    watch(done, len(blocks))
        finally:
            self.client.cancel(futures)


def _result(future: Any) -> Any:
    try:
        worked, result = future.result()
    except Exception:  # Dask's own: a worker was lost too often
        raise RuntimeError(LOST) from None
    if not worked:
        raise ValueError(result)
    return result


def engine_of(given: Any) -> Engine:
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
            made: Any = Client
            held = made(given, timeout=ANSWER, set_as_default=False)
        except Exception:
            raise ValueError(f"no scheduler answers at {given}.") from None
        _clients[given] = held
    return Cluster(held)
