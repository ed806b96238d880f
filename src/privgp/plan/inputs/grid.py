"""A fine grid over public inputs: which cell of it a row is in, by arithmetic that any engine does alike.

A number is moved by pieces of straight lines to a place between 0 and the number of steps, and rounded
down. Subtraction, multiplication, addition, the lesser of two numbers and rounding down have one result in
IEEE arithmetic, so NumPy, DuckDB and PostgreSQL put every row into the same cell.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privgp.types import Array, Booleans, Integers

# Shares of the rows below the ends of straight lines along one input.
SHARES = np.array([0.001, 0.01, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 0.99, 0.999])
BINS = 4096  # from which these are chosen
MOST_WHOLE = 1024  # whole numbers along one input that have a cell each
MOST_STEPS, LEAST_STEPS = 2**14, 4  # along one input
CELLS = 2**17  # about this many at most, unless whole numbers alone make more
LEAST_CELLS = 2**13  # of places, however many classes of rows they are divided by
MOST_KEYS = 2**46  # of a grid, so that floats in files hold them beside a class of people
FINE = 30  # bits of a place within the grid
PARTS = 256  # of a step, in one of which the mean of many cells is known
OTHER_UNITS = "the inputs of some rows are not finite: choose other units."
TOO_MANY = "the input columns have too many levels together: leave some of them out."


@dataclass(frozen=True)
class Axis:
    """One input: straight lines between ``knots``, each of this many whole steps.

    Attributes
    ----------
    knots : array, (pieces + 1,)
        Ascending.
    steps : array, (pieces,)
        Cells of equal width between two knots, at least one.

    """

    knots: Array
    steps: Integers

    def __post_init__(self) -> None:
        """Refuse lines that do not rise, as only a file can have them."""
        fits = (
            self.knots.ndim == 1
            and self.steps.shape == (len(self.knots) - 1,)
            and len(self.steps) >= 1
            and bool(np.all(self.steps >= 1))
            and bool(np.all(np.diff(self.knots) > 0.0))
            and bool(np.all(np.isfinite(self.factors)))
        )
        if not fits:
            raise ValueError(OTHER_UNITS)

    @property
    def factors(self) -> Array:
        """Steps per unit between two knots, (pieces,)."""
        with np.errstate(over="ignore", divide="ignore"):
            return np.asarray(self.steps / np.diff(self.knots))

    @property
    def count(self) -> int:
        return int(self.steps.sum())

    @property
    def is_whole(self) -> bool:
        """Whether every whole number has its own step."""
        return len(self.steps) == 1 and bool(
            self.factors[0] == 1.0 and self.knots[0] == np.floor(self.knots[0])
        )

    @property
    def fine(self) -> float:
        """So many parts of a step are distinguished in sums of places."""
        return float(2 ** (FINE - self.count.bit_length()))

    def place(self, numbers: Any, clip: Callable[[Any, float, float], Any]) -> Any:
        """Where numbers are on the grid, from 0 to the number of steps.

        Parameters
        ----------
        numbers : array or expression of an engine
            One number per row.
        clip : callable
            Moves numbers between two bounds.

        """
        pieces = zip(
            self.knots[:-1].tolist(), self.knots[1:].tolist(), self.factors.tolist(), strict=True
        )
        found: Any = 0.0
        for low, high, factor in pieces:
            found = found + (clip(numbers, low, high) - low) * factor
        return found

    def number(self, places: Array) -> Array:
        """The numbers at places on the grid."""
        ends = np.concatenate([[0.0], np.cumsum(self.steps)])
        return np.interp(places, ends, self.knots)


@dataclass(frozen=True)
class Grid:
    """The cells of all inputs together."""

    axes: tuple[Axis, ...]

    def __post_init__(self) -> None:
        """Refuse more cells than keys can distinguish."""
        product = 1
        for axis in self.axes:
            product *= axis.count
        if not self.axes or product > MOST_KEYS:
            raise ValueError(TOO_MANY)

    @property
    def strides(self) -> list[int]:
        """What a step along every input adds to a key."""
        counts = [axis.count for axis in self.axes]
        return [int(np.prod(counts[place + 1 :], dtype=np.int64)) for place in range(len(counts))]

    def places(self, numbers: Array) -> list[Array]:
        """The place of every row along each input, (rows,) each, from numbers (rows, inputs)."""
        return [
            axis.place(column, lambda x, low, high: np.minimum(np.maximum(x, low), high))
            for axis, column in zip(self.axes, numbers.T, strict=True)
        ]

    def keys(self, places: Sequence[Array]) -> Integers:
        """The cell of every row, (rows,)."""
        found = np.zeros(len(places[0]), dtype=np.int64)
        for axis, place, stride in zip(self.axes, places, self.strides, strict=True):
            found += np.minimum(np.floor(place).astype(np.int64), axis.count - 1) * stride
        return found

    def offsets(self, places: Sequence[Array]) -> Integers:
        """Places as whole numbers, which sums of are exact, (rows, inputs)."""
        pairs = zip(self.axes, places, strict=True)
        return np.column_stack([np.floor(p * axis.fine).astype(np.int64) for axis, p in pairs])

    def cells(self, keys: Integers) -> Integers:
        """The step of every cell along each input, (cells, inputs)."""
        pairs = zip(self.axes, self.strides, strict=True)
        return np.column_stack([keys // stride % axis.count for axis, stride in pairs])

    def split(self, cells: Integers, numbers: Array) -> Integers:
        """In which of 256 parts of their steps numbers are, (cells, inputs)."""
        within = np.column_stack(self.places(numbers)) - cells
        return np.clip(np.floor(within * PARTS), 0, PARTS - 1).astype(np.int64)

    def join(self, cells: Integers, parts: Integers) -> Array:
        """The numbers in the middle of parts of steps, (cells, inputs); whole numbers are exact."""
        places = cells + np.where([axis.is_whole for axis in self.axes], 0.0, (parts + 0.5) / PARTS)
        pairs = zip(self.axes, places.T, strict=True)
        return np.column_stack([axis.number(own) for axis, own in pairs])

    def means(self, sums: Integers, counts: Integers) -> Array:
        """The mean number of every cell, (cells, inputs), from sums of ``offsets``."""
        middle = 0.5 * (counts > 1)  # of what was rounded down
        pairs = zip(self.axes, sums.T, strict=True)
        return np.column_stack(
            [axis.number((own / counts + middle) / axis.fine) for axis, own in pairs]
        )


@dataclass(frozen=True)
class Limits:
    """The least and the largest number along every input, and whether all are whole; (inputs,) each."""

    low: Array
    high: Array
    whole: Booleans

    def __add__(self, other: Limits) -> Limits:
        low, high = np.minimum(self.low, other.low), np.maximum(self.high, other.high)
        return Limits(low, high, self.whole & other.whole)

    @classmethod
    def of(cls, numbers: Array) -> Limits:
        """The same for rows, (rows, inputs)."""
        whole = np.all(numbers == np.floor(numbers), axis=0)
        return cls(numbers.min(axis=0), numbers.max(axis=0), whole)

    @property
    def few(self) -> Booleans:
        """Which inputs are whole numbers that have a cell each."""
        with np.errstate(over="ignore"):
            width = self.high - self.low
        if not np.all(np.isfinite(width)):
            raise ValueError(OTHER_UNITS)
        return np.asarray(self.whole & (width < MOST_WHOLE) & (np.abs(self.low) < 2**52))


def whole_axis(low: float, high: float) -> Axis:
    """A cell for every whole number."""
    return Axis(np.array([low, high + 1.0]), np.array([int(high - low) + 1]))


def even_axis(low: float, high: float) -> Axis:
    """Bins of equal width."""
    if not low < high:  # a single number
        high = low + max(abs(low), 1.0)
    return Axis(np.array([low, high]), np.array([BINS]))


def fine_axis(limits: tuple[float, float], edges: Array, counts: Integers, steps: int) -> Axis:
    """Cells that hold about equally many rows, but none much wider than if all were alike.

    Parameters
    ----------
    limits : pair
        The least and the largest number.
    edges : array, (bins + 1,)
        Of bins.
    counts : array, (bins,)
        Rows in every bin.
    steps : int
        About how many cells.

    """
    total = np.concatenate([[0], np.cumsum(counts)])
    inner = edges[np.unique(np.searchsorted(total, SHARES * total[-1]))]
    low, high = limits
    high = high if high > low else even_axis(low, high).knots[1]
    knots = np.unique(np.concatenate([[low], inner[(inner > low) & (inner < high)], [high]]))
    below = np.interp(knots, edges, total)
    share = 0.75 * np.diff(below) / max(total[-1], 1) + 0.25 * np.diff(knots) / (high - low)
    return Axis(knots, np.maximum(1, np.rint(share * steps)).astype(np.int64))


def step_count(limits: Limits, variety: int = 1) -> int:
    """Cells along every input that is not whole, so that all inputs have about ``CELLS`` together.

    Parameters
    ----------
    limits : Limits
        Of the inputs.
    variety : int
        Into how many cells rows of one place are divided.

    """
    few = limits.few
    taken = float(np.prod(limits.high[few] - limits.low[few] + 1.0))
    left = max(max(CELLS / variety, LEAST_CELLS) / taken, 1.0) ** (
        1.0 / max(int(np.count_nonzero(~few)), 1)
    )
    return int(np.clip(left, LEAST_STEPS, MOST_STEPS))
