"""Types used throughout, and what a declaration says besides: files are checked against it.
``Annotated[Array, "rows columns"]`` names the axes of an array. Axes of one name have one length in
all of a file, or in all of an object whose class has ``_own_axes``; ``*`` is any length."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

# Not NDArray, which is an alias of its own since NumPy 2.5: files are read by what these are.
Array = np.ndarray[tuple[Any, ...], np.dtype[np.float64]]  # unless a docstring says otherwise
Random = np.random.Generator | None  # of a simulation; None: the noise that protects
Cells = np.ndarray[tuple[Any, ...], np.dtype[Any]]  # of a column of a table, of whichever type
Integers = np.ndarray[tuple[Any, ...], np.dtype[np.int64]]
STAMP = "SIMULATION, not for release"  # on whatever is shown, drawn or written of a simulation


@dataclass(frozen=True)
class Within:
    """Bounds of a number in a file, both included.

    Attributes
    ----------
    low, high : the bounds
    infinite : whether infinity is allowed too

    """

    low: float = -math.inf
    high: float = math.inf
    infinite: bool = False


def added_field(default: Any, *, silent: bool = False) -> Any:
    """A field that is absent from older files: a file without it has this value.

    Parameters
    ----------
    default
        The value; it must mean what files of the versions before meant.
    silent
        Whether fingerprints leave the default out, whatever its type.

    """
    return field(default=default, metadata={"later": True, "silent": silent})


Positive = Annotated[float, Within(math.ulp(0.0))]
NotNegative = Annotated[float, Within(0.0)]
Share = Annotated[float, Within(0.0, 1.0)]
Count = Annotated[int, Within(1, 10**9)]
Exponent = Annotated[int, Within(-2000, 2000)]  # of a power of two
Seed = Annotated[int, Within(0, 2**31)]
Pair = tuple[float, float]


class InFiles(Protocol):
    """Columns of a table in files, as ``open_table`` gives them."""

    @property
    def files(self) -> Any: ...


Table = (
    ArrayLike | InFiles
)  # rows of inputs: an array, a Polars or pandas table, or inputs in files
Column = ArrayLike | InFiles  # one value per row: an array, a Series, a list, or a column in files
Bounds = Sequence[float] | Sequence[Sequence[float]] | Array  # (low, high), or one such pair each
UserData = Any
"""Rows or a column as a user hands them in, before any check: an array, a list, a data frame or series of
any library that narwhals reads, columns of ``open_table``, or something else that is then refused."""
RandomState = int | np.random.RandomState | None  # of simulations; None: the noise that protects
