"""Where private points lie: counts in the bins of a declared domain, and integrals over it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np

from privgp.plan.bins.bins import Grid
from privgp.plan.inputs.inputs import Inputs
from privgp.question.rules import LARGEST
from privgp.tables.table import Table
from privgp.types import Array, Integers, Pair, UserData

BINS = (64, 20, 8, 5, 4)  # per input at most, for one to five inputs
FINE_BINS, MANY = (128, 24, 8, 5, 4), 5000  # the same for at least this many points
PER_POINT = 0.4  # bins per point and unit of epsilon at most: in more, noise drowns the points
MOST_BINS = 1600
MOST_PLACES = 2**20  # of a grid in which bins are looked for
LEAST_EXPOSED = 1e-3  # of the mean exposure of a bin
LEAST_TOLD = 0.5  # points in a bin: fewer are not told from none
REPLACED = 2.0  # counts that one replaced point changes, by 1 each
NODES = (4, 3, 1, 1, 1)  # of Gauss-Legendre in either half of a bin, for one to five inputs


def bins_per_input(bins: UserData, inputs: int, points: int, epsilon: float) -> int:
    """How many bins every number has: as declared, else by the public number of points and the budget.

    Parameters
    ----------
    bins : int or None
        As declared.
    inputs : int
        How many inputs are numbers, dates or coordinates of places.
    points : int
        How many points there are for every combination of categories.
    epsilon : float
        The budget.

    """
    if inputs > len(BINS):
        raise ValueError(f"a density is over at most {len(BINS)} inputs, got x_bounds of {inputs}.")
    if bins is None:
        most = (FINE_BINS if points >= MANY else BINS)[inputs - 1] if inputs else 2
        useful = int((PER_POINT * points * epsilon) ** (1.0 / max(1, inputs)))
        return min(most, max(2, useful))
    whole = isinstance(bins, Integral) and not isinstance(bins, bool)
    if not whole or not bins >= 2 or int(bins) ** inputs > MOST_BINS:
        raise ValueError(
            f"bins must be a whole number of at least 2 per input, at most {MOST_BINS} together."
        )
    return int(bins)


@dataclass(frozen=True)
class PointBins(Grid):
    """The bins that private points are counted in.

    A category has one coordinate for every level, each with two bins. Only those of their
    combinations are used in which one level holds.

    Attributes
    ----------
    inputs : Inputs, optional
        What the columns are, where they are not all numbers.

    """

    inputs: Inputs | None = None

    @property
    def has_length(self) -> Any:
        """Whether a coordinate is a length, and not one of a category, (coordinates,)."""
        return lengths(self.inputs, len(self.shape))

    @cached_property
    def places(self) -> Integers:
        """The places in the grid of the bins that a point can lie in, (bins,), rising."""
        if self.inputs is None or self.has_length.all():
            return np.arange(self.count)
        if self.count > MOST_PLACES:
            raise ValueError("a density has at most about ten levels of all categories together.")
        numbers = self.inputs.back(self.centres())
        most = np.repeat(
            [c.most for c in self.inputs.columns], [c.name_count for c in self.inputs.columns]
        )
        same = self.of(self.inputs.coordinates(numbers)) == np.arange(self.count)
        return np.flatnonzero(same & np.all(numbers <= most, axis=1))

    @cached_property
    def nodes(self) -> Array:
        """Where the kernel has the centres of these bins, (bins, coordinates)."""
        found = self.centres()[self.places]
        if self.inputs is None or self.has_length.all():
            return found
        known = self.inputs.coordinates(self.inputs.back(found))
        return np.where(self.has_length, found, known)

    @property
    def volume(self) -> float:
        """The length, area or volume of a bin."""
        return float(np.prod(self.widths[self.has_length]))

    def find(self, X: Array) -> Integers:
        """The bin of every row of X, (rows,); -1 where it lies in none."""
        inside = np.all((self.low <= X) & (self.high >= X), axis=1)
        at = self.of(X)
        place = np.minimum(np.searchsorted(self.places, at), len(self.places) - 1)
        return np.where(inside & (self.places[place] == at), place, -1)

    def exposures(self, X: Array, amounts: Array) -> Array:
        """How much of what points are counted over lies in every bin, (bins,), and never nothing."""
        place = self.find(np.clip(X, self.low, self.high))
        kept = place >= 0
        found = np.bincount(place[kept], amounts[kept], len(self.places))
        if not found.sum() > 0.0:
            raise ValueError("exposure must be positive somewhere in the declared domain.")
        return np.asarray(np.maximum(found, LEAST_EXPOSED * found.mean()))

    def quadrature(self) -> tuple[Array, Array]:
        """Points and weights that integrate over the domain: Gauss and Legendre's in the halves of every
        bin, as functions of the model are smooth but at the centres of bins; a sum over categories."""
        axes, weights = [np.zeros(1)], [np.ones(1)]
        number = int(self.has_length.sum())
        x, w = np.polynomial.legendre.leggauss(NODES[number - 1])
        for place in np.flatnonzero(self.has_length):
            half = self.widths[place] / 2.0
            starts = self.low[place] + half * np.arange(2 * self.shape[place])
            axes.append((starts[:, None] + 0.5 * half * (x + 1.0)).ravel())
            weights.append(np.tile(0.5 * half * w, 2 * self.shape[place]))
        lattice = np.stack([each.ravel() for each in np.meshgrid(*axes, indexing="ij")], axis=1)
        product = np.meshgrid(*weights, indexing="ij")
        levels = np.unique(self.nodes[:, ~self.has_length], axis=0)
        points = np.empty((len(levels), len(lattice), len(self.shape)))
        points[:, :, self.has_length] = lattice[:, 1:]
        points[:, :, ~self.has_length] = levels[:, None]
        mass = np.prod([each.ravel() for each in product], axis=0)
        return points.reshape(-1, len(self.shape)), np.tile(mass, len(levels))


def lengths(inputs: Inputs | None, coordinates: int) -> Any:
    """Whether a coordinate is a length, and not one of a category, (coordinates,)."""
    if inputs is None:
        return np.ones(coordinates, dtype=bool)
    each = [
        column.width == column.name_count and column.most == np.inf for column in inputs.columns
    ]
    return np.repeat(each, inputs.widths)


def bins_of(
    bins: UserData, domain: Sequence[Pair], inputs: Inputs | None, points: int, epsilon: float
) -> PointBins:
    """The bins over a declared domain.

    Parameters
    ----------
    bins : int or None
        Per number, as declared.
    domain : sequence of (low, high)
        Of every coordinate.
    inputs : Inputs or None
        What the columns are, where they are not all numbers.
    points, epsilon
        The number of points and the budget.

    """
    low, high = np.array(domain).T
    has_length = lengths(inputs, len(low))
    levels = [c.most + 1 for c in (inputs.columns if inputs else ()) if c.most < np.inf]
    count = max(1, points // int(np.prod(levels)))
    each = bins_per_input(bins, int(has_length.sum()), count, epsilon)
    made = PointBins(low, high, tuple(np.where(has_length, each, 2).tolist()), inputs)
    if len(made.places) > MOST_BINS:
        raise ValueError(
            f"bins times the combinations of categories must be at most {MOST_BINS}: declare fewer bins."
        )
    return made


def count_bounds(points: int) -> Pair:
    """Bounds of a count: 0 and the least power of two that is not below the number of points."""
    return 0.0, float(2 ** max(1, int(points - 1).bit_length()))


def locate_exposure(given: UserData, inputs: Inputs | None, columns: int) -> tuple[Array, Array]:
    """Public places, where the kernel has them, and how much is at each.

    Parameters
    ----------
    given : table
        The inputs, and one more column with what is there, such as inhabitants; 1 for each without one.
    inputs : Inputs or None
        What the columns are, where they are not all numbers.
    columns : int
        How many inputs there are, if they are numbers.

    """
    table = Table.of(given)
    if table is None:
        raise ValueError("exposure must be a table of public places.")
    names = table.names[:columns] if inputs is None else inputs.names
    if inputs is not None and not table.named and len(table.names) >= len(names):
        table = Table((*names, *table.names[len(names) :]), table.cells)
    more = [name for name in table.names if name not in names]
    if len(more) > 1 or len(names) < (columns if inputs is None else 1):
        raise ValueError(
            "exposure must have the inputs and at most one more column: how much is at every place."
        )
    amounts = np.ones(len(table.cells[0]))
    try:
        if more:
            amounts = np.asarray(table.column(more[0]), dtype=np.float64)
        if inputs is None:
            cells = [np.asarray(table.column(name), dtype=np.float64) for name in names]
            places = np.column_stack(cells)
        else:
            places = inputs.locate_table(table)
    except (TypeError, ValueError):
        raise ValueError("exposure must hold numbers in every cell.") from None
    fits = np.all(np.isfinite(places)) and np.all((amounts >= 0.0) & (amounts <= LARGEST))
    if not fits:
        raise ValueError("exposure must hold finite numbers, and none that is negative.")
    return places, amounts
