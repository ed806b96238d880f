"""Where private points lie: counts in the bins of a declared domain, and integrals over it."""

from __future__ import annotations

from numbers import Integral

import numpy as np

from privgp.plan.bins.bins import Grid
from privgp.types import Array, Pair, UserData

BINS = (64, 20, 8, 5, 4)  # per input at most, for one to five inputs
FINE_BINS, MANY = (128, 24, 8, 5, 4), 5000  # the same for at least this many points
PER_POINT = 0.4  # bins per point and unit of epsilon at most: in more, noise drowns the points
MOST_BINS = 1600
LEAST_TOLD = 0.5  # points in a bin: fewer are not told from none
REPLACED = 2.0  # counts that one replaced point changes, by 1 each
NODES = (4, 2, 1, 1, 1)  # of Gauss-Legendre in either half of a bin, for one to five inputs


def bins_per_input(bins: UserData, inputs: int, points: int, epsilon: float) -> tuple[int, ...]:
    """How many bins every input has: as declared, else by the public number of points and the budget."""
    if inputs > len(BINS):
        raise ValueError(f"a density is over at most {len(BINS)} inputs, got x_bounds of {inputs}.")
    if bins is None:
        most = (FINE_BINS if points >= MANY else BINS)[inputs - 1]
        useful = int((PER_POINT * points * epsilon) ** (1.0 / inputs))
        return (min(most, max(2, useful)),) * inputs
    whole = isinstance(bins, Integral) and not isinstance(bins, bool)
    if not whole or not bins >= 2 or int(bins) ** inputs > MOST_BINS:
        raise ValueError(
            f"bins must be a whole number of at least 2 per input, at most {MOST_BINS} together."
        )
    return (int(bins),) * inputs


def cell_volume(grid: Grid) -> float:
    """The length, area or volume of a bin."""
    return float(np.prod(grid.widths))


def quadrature(grid: Grid) -> tuple[Array, Array]:
    """Points and weights that integrate over the domain: Gauss and Legendre's in the halves of every
    bin, as functions of the model are smooth but at the centres of bins."""
    x, w = np.polynomial.legendre.leggauss(NODES[len(grid.shape) - 1])
    axes, weights = [], []
    for low, high, count in zip(grid.low, grid.high, grid.shape, strict=True):
        half = (high - low) / (2 * count)
        starts = low + half * np.arange(2 * count)
        axes.append((starts[:, None] + 0.5 * half * (x + 1.0)).ravel())
        weights.append(np.tile(0.5 * half * w, 2 * count))
    points = np.stack([each.ravel() for each in np.meshgrid(*axes, indexing="ij")], axis=1)
    product = np.meshgrid(*weights, indexing="ij")
    return points, np.prod([each.ravel() for each in product], axis=0)


def count_bounds(points: int) -> Pair:
    """Bounds of a count: 0 and the least power of two that is not below the number of points."""
    return 0.0, float(2 ** max(1, int(points - 1).bit_length()))
