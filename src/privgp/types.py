"""Types used throughout, and what a declaration says besides: files are checked against it.
``Annotated[Array, "rows columns"]`` names the axes of an array. Axes of one name have one length in
all of a file, or in all of an object whose class has ``_own_axes``; ``*`` is any length."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from privgp.limits import Count as Count
from privgp.limits import Exponent as Exponent
from privgp.limits import NotNegative as NotNegative
from privgp.limits import Pair as Pair
from privgp.limits import Positive as Positive
from privgp.limits import Seed as Seed
from privgp.limits import Share as Share
from privgp.limits import Within as Within
from privgp.limits import added_field as added_field

# Not NDArray, which is an alias of its own since NumPy 2.5: files are read by what these are.
Array = np.ndarray[tuple[Any, ...], np.dtype[np.float64]]  # unless a docstring says otherwise
Random = np.random.Generator | None  # of a simulation; None: the noise that protects
Cells = np.ndarray[tuple[Any, ...], np.dtype[Any]]  # of a column of a table, of whichever type
Booleans = np.ndarray[tuple[Any, ...], np.dtype[np.bool_]]
Integers = np.ndarray[tuple[Any, ...], np.dtype[np.int64]]
STAMP = "SIMULATION, not for release"  # on whatever is shown, drawn or written of a simulation


class InFiles(Protocol):
    """Columns of a table in files, as ``open_table`` gives them."""

    @property
    def files(self) -> Any: ...


# Rows of inputs: an array, a Polars or pandas table, or inputs in files.
Table = ArrayLike | InFiles
Column = ArrayLike | InFiles  # one value per row: an array, a Series, a list, or a column in files
Bounds = Sequence[float] | Sequence[Sequence[float]] | Array  # (low, high), or one such pair each
UserData = Any
"""Rows or a column as a user hands them in, before any check: an array, a list, a data frame or series of
any library that narwhals reads, columns of ``open_table``, or something else that is then refused."""
RandomState = int | np.random.RandomState | None  # of simulations; None: the noise that protects


class Predicts(Protocol):
    """A fitted model."""

    def predict(self, X: UserData) -> UserData: ...
