"""Floating-point arithmetic: the same bits in every process, and how much sums round.

Sums in matrix products are split among threads and follow the memory order of their factors, so
both are fixed wherever a release is computed or queried.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import fields, replace
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import scipy.linalg  # noqa: F401 - its BLAS must be loaded before the controller looks for it
from threadpoolctl import ThreadpoolController

from privgp.types import Array, Integers

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Record = TypeVar("Record", bound=DataclassInstance)

SMALL_ROWS = 1000
_lock = threading.Lock()
_inside: list[Any] = []  # the limiter that restores, then one entry per further caller


@cache
def _controller() -> ThreadpoolController:
    # Finding the libraries takes milliseconds, setting their threads microseconds.
    return ThreadpoolController()


@contextmanager
def one_thread() -> Iterator[None]:
    """Let BLAS use one thread here, also when several Python threads come and go.

    The limit belongs to the process: the first to enter sets it, the last to leave lifts it.
    """
    with _lock:
        _inside.append(None if _inside else _controller().limit(limits=1, user_api="blas"))
    try:
        yield
    finally:
        with _lock:
            if len(_inside) == 1:
                _inside[0].restore_original_limits()
            _inside.pop()


@cache
def _loops() -> ThreadpoolController:
    import sklearn.cluster  # noqa: F401 - slow; its OpenMP must be loaded before it is looked for

    return ThreadpoolController()


@contextmanager
def one_thread_of_loops() -> Iterator[None]:
    """One thread of BLAS and of OpenMP, which k-means sums with."""
    with one_thread(), _loops().limit(limits=1, user_api="openmp"):
        yield


def threads_for(rows: int) -> AbstractContextManager[None]:
    """One BLAS thread for small problems, for which several only wait for each other.

    Parameters
    ----------
    rows
        The size of the largest matrix.

    """
    return one_thread() if rows <= SMALL_ROWS else nullcontext()


def lay_out(record: Record) -> Record:
    """A copy of a dataclass with every array in C order, as ``privgp.load`` will find it."""
    arrays = {
        field.name: np.array(value, order="C")
        for field in fields(record)
        if isinstance(value := getattr(record, field.name), np.ndarray)
    }
    return replace(record, **arrays)


UNIT_ROUNDOFF = 2.0**-53


def rounding(operations: int) -> float:
    """gamma_n = n u / (1 - n u): the relative error of a sum of products of n terms, in any order.

    Returns
    -------
    float
        Infinite if n u >= 1, so that no bound is claimed for such a length.

    """
    lost = operations * UNIT_ROUNDOFF
    return lost / (1.0 - lost) if lost < 1.0 else math.inf


def add_rows(values: Array, groups: Integers) -> Array:
    """The sums of entries, or of rows, that are in one group, (groups, ...), one after the other.

    Parameters
    ----------
    values
        (entries, ...).
    groups
        (entries,), the group of each: 0 and up.

    """
    out = np.zeros((int(groups.max(initial=-1)) + 1, *values.shape[1:]))
    np.add.at(out, groups, values)
    return out
