"""Cells: groups of rows that lie close together, as many as the budget can tell apart.

The rows are halved again and again, each time across the input along which they spread most, until
every part has about as many rows as asked for. So cells are small where rows are dense. A cell stands
for its rows by the mean of their inputs. Only public inputs are read, so cells cost no privacy:
docs/proofs/measure.md.
"""

from __future__ import annotations

import math

import numpy as np

from privgp.types import Array, Integers

MOST_CELLS = 1500  # whose covariances are handled as one matrix
LONGEST, SMOOTHNESS = 2.0, 2.5  # lengthscale over the usual one; of the Matern kernel
SIGNAL, SCATTER = (
    0.25,
    0.09,
)  # variances of the function and of outputs about it, outputs in [-1, 1]
FREQUENCIES = np.pi * np.geomspace(0.5, 4000.0, 600)


def cell_count(rows: float, dimensions: int, noise: float) -> int:
    """How many cells lose least, on average over functions from smooth to as rough as rows are dense.

    Few cells cannot follow a rough function; many cells have more noise in all than a smooth function
    needs. With m cells over a unit box, frequencies above that of the cells stay unknown, and all
    others are known up to white noise of level ``W = noise m / rows^2 + scatter / rows``:

        error^2(m, lengthscale) = sum over known of S W / (S + W) + sum over unknown of S,

    S the spectrum of a Matern kernel. Taken is the m with the least average of log error, over
    lengthscales from twice the usual one down to the distance between rows.

    Parameters
    ----------
    rows : float
        How many rows there are, or people where each person's rows count as one.
    dimensions : int
        How many inputs there are.
    noise : float
        The variance of the noise on a sum of outputs that are scaled to [-1, 1].

    """
    usual = math.sqrt(dimensions / 12.0)  # the std of even inputs, times the root of their number
    nearest = rows ** (-1.0 / dimensions)
    steps = max(1, int(2.0 * math.log2(LONGEST * usual / max(nearest, 1e-3))) + 1)
    factors = LONGEST * 2.0 ** (-0.5 * np.arange(steps))
    shares = 1.0 / (1.0 + 0.25 * np.log(factors) ** 2)
    counts = 2.0 ** np.arange(0.0, math.log2(max(MOST_CELLS, 2)) + 0.25, 0.25)
    level = noise * counts / rows**2 + SCATTER / rows
    known = np.pi * counts[:, None] ** (1.0 / dimensions) > FREQUENCIES
    score = np.zeros(len(counts))
    for factor, share in zip(factors, shares, strict=True):
        density, spectrum = _spectrum(dimensions, factor * usual)
        left = spectrum * level[:, None] / (spectrum + level[:, None])
        score += share * np.log(np.where(known, left, spectrum) @ density)
    return int(min(counts[np.argmin(score)], rows, MOST_CELLS))


def _spectrum(dimensions: int, lengthscale: float) -> tuple[Array, Array]:
    """The number of modes about every frequency, and the variance of each."""
    edges = np.concatenate([[0.0], 0.5 * (FREQUENCIES[1:] + FREQUENCIES[:-1]), FREQUENCIES[-1:]])
    ball = math.pi ** (0.5 * dimensions) / math.gamma(0.5 * dimensions + 1.0)
    modes = ball * np.diff(edges**dimensions) / (2.0 * math.pi) ** dimensions
    power = -(SMOOTHNESS + 0.5 * dimensions)
    spectrum = (2.0 * SMOOTHNESS / lengthscale**2 + FREQUENCIES**2) ** power
    return modes, SIGNAL * spectrum / float(spectrum @ modes)


def halved_cells(X: Array, scales: Array, count: int) -> Integers:
    """The cell of every row, (rows,): about ``count`` cells with about equally many rows each.

    Parameters
    ----------
    X : array, (rows, inputs)
        Public inputs. Rows with equal inputs are never parted, so there may be fewer cells.
    scales : array, (inputs,)
        Distances along every input are measured in these.
    count : int
        The number of cells.

    """
    cells = np.zeros(len(X), dtype=np.int64)
    scaled = X / scales
    parts, made = [(np.arange(len(X)), count)], 0
    while parts:
        rows, wanted = parts.pop()
        halves = _halves(scaled[rows], wanted) if wanted > 1 else None
        if halves is None:
            cells[rows], made = made, made + 1
            continue
        lower, share = halves
        parts += [(rows[~lower], wanted - share), (rows[lower], share)]
    return cells


def _halves(X: Array, wanted: int) -> tuple[Array, int] | None:
    """Which rows are in the lower half, and how many of the wanted cells it gets; None where all rows
    are equal. Cut across the longest side, at the rows' share of the cells."""
    share = wanted // 2
    for axis in np.argsort(-np.ptp(X, axis=0), kind="stable"):
        values = X[:, axis]
        place = min(max(round(len(values) * share / wanted), 1), len(values) - 1)
        cut = np.partition(values, place)[place]
        lower = values < cut
        if not lower.any():  # many rows at the lowest value
            lower = values <= cut
        if 0 < np.count_nonzero(lower) < len(values):
            return lower, int(np.clip(round(wanted * float(np.mean(lower))), 1, wanted - 1))
    return None


def centres(X: Array, cells: Integers) -> Array:
    """The mean input of every cell, (cells, inputs)."""
    counts = np.bincount(cells)
    return np.column_stack([np.bincount(cells, column) / counts for column in X.T])
