"""The same results with one process or two: every task has its own seed and one BLAS thread."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import TypeVar

from privgp.gp.arithmetic import one_thread

Task = TypeVar("Task")
Answer = TypeVar("Answer")
MOST_PROCESSES = 2


def processes() -> int:
    """How many processes to use: two where the machine has them."""
    allowed = (
        os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
    )
    return min(MOST_PROCESSES, len(allowed))


def for_each(
    work: Callable[[Task], Answer],
    tasks: Sequence[Task],
    done: Callable[[int], None] = lambda count: None,
    workers: int | None = None,
) -> list[Answer]:
    """``[work(task) for task in tasks]`` in order, in two processes where that is worth it.

    ``work`` is a function of a module, so that another process can find it; ``done`` hears how many
    are finished.
    """
    workers = min(len(tasks), processes() if workers is None else workers)
    answers = []
    if workers <= 1:
        with one_thread():
            for task in tasks:
                answers.append(work(task))
                done(len(answers))
        return answers
    with ProcessPoolExecutor(workers, get_context("spawn"), _leave_interrupts_alone) as pool:
        try:
            for answer in pool.map(_alone, [(work, task) for task in tasks]):
                answers.append(answer)
                done(len(answers))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return answers


def _leave_interrupts_alone() -> None:
    """An interrupt is for the first process, which stops the others and says so once."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _alone(job: tuple[Callable[[Task], Answer], Task]) -> Answer:
    work, task = job
    with one_thread():
        return work(task)
