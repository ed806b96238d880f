"""Cells: groups of rows that lie close together, as many as the budget can distinguish.

One sum is measured of every cell. A cell consists of parts, and a part stands for its rows by the mean of
their inputs: so a sum is known to be one over an area and not over a point. Cells are small where rows are
dense. Only public inputs are read, so cells cost no privacy: docs/proofs/cells.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.spatial import KDTree

from privgp.gp.arithmetic import one_thread_of_loops
from privgp.plan.designs.noise_aware import Hypothesis
from privgp.types import Array, Integers

MOST_CELLS = 2500  # whose covariances are handled as one matrix
# More than this only where each holds that many rows: with fewer, they took longer and had no less error.
USUAL_CELLS, ROWS_OF_A_CELL = 1500, 400
SEEN = 2**15  # rows from which cells are made
ROUNDS, MOST_DISTANCES = 20, 2**29  # of k-means, and how many it may compute
PARTS, MOST_PARTS = 4, 800  # of a cell, and of all cells unless there are more of these
LONGEST, SMOOTHNESS = 2.0, 2.5  # lengthscale over the usual one; of the Matern kernel
# Variances of the function and of outputs about it, where outputs lie in [-1, 1].
SIGNAL, SCATTER = 0.25, 0.09
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
    most = np.clip(rows / ROWS_OF_A_CELL, USUAL_CELLS, MOST_CELLS)
    return int(min(counts[np.argmin(score)], rows, most))


def _spectrum(dimensions: int, lengthscale: float) -> tuple[Array, Array]:
    """The number of modes about every frequency, and the variance of each."""
    edges = np.concatenate([[0.0], 0.5 * (FREQUENCIES[1:] + FREQUENCIES[:-1]), FREQUENCIES[-1:]])
    ball = math.pi ** (0.5 * dimensions) / math.gamma(0.5 * dimensions + 1.0)
    modes = ball * np.diff(edges**dimensions) / (2.0 * math.pi) ** dimensions
    power = -(SMOOTHNESS + 0.5 * dimensions)
    spectrum = (2.0 * SMOOTHNESS / lengthscale**2 + FREQUENCIES**2) ** power
    return modes, SIGNAL * spectrum / float(spectrum @ modes)


@dataclass(frozen=True)
class Cells:
    """Which cell a row is in: that of the part whose centre is nearest.

    Attributes
    ----------
    centres : array, (parts, inputs)
        The mean input of every part.
    cells : array, (parts,)
        The cell that every part belongs to.
    scales : array, (inputs,)
        Distances along every input are measured in these.

    """

    centres: Array
    cells: Integers
    scales: Array

    @classmethod
    def of(cls, X: Array, scales: Array, count: int) -> Cells:
        """About ``count`` cells of rows with these public inputs, (rows, inputs)."""
        if len(X) > SEEN:
            X = X[np.random.default_rng(0).choice(len(X), SEEN, replace=False)]
        cells = gather(X / scales, halve(X / scales, count))
        each = int(np.clip(MOST_PARTS // (cells.max() + 1), 1, PARTS))
        parts = divide(X / scales, cells, each)
        return cls(means(X, parts), cells[np.unique(parts, return_index=True)[1]], scales)

    def find(self, X: Array) -> Integers:
        """The part of every row, (rows,)."""
        # made anew and never kept: its bytes hold places in memory, which a saved model must not show
        tree = KDTree(self.centres / self.scales)
        parts = np.asarray(tree.query(X / self.scales)[1], dtype=np.int64)
        if parts.max(initial=0) >= len(self.centres):  # nothing is near enough to be told
            raise ValueError("the cells of some rows are not finite: choose other units.")
        return parts


def gather(X: Array, cells: Integers) -> Integers:
    """The cells of rows (rows, inputs) after some rounds of k-means, which begins with these."""
    from sklearn.cluster import KMeans  # slow to import

    first = means(X, cells)
    if len(first) == len(X):
        return cells
    rounds = max(1, min(ROUNDS, MOST_DISTANCES // (len(first) * len(X))))
    with one_thread_of_loops():  # sums in one order
        found = KMeans(len(first), init=first, n_init=1, max_iter=rounds).fit(X).labels_
    return np.unique(found, return_inverse=True)[1]


def divide(X: Array, cells: Integers, each: int) -> Integers:
    """The part of every row, (rows,): at most ``each`` of every cell, those of one cell in a row."""
    parts, made = np.zeros(len(X), dtype=np.int64), 0
    for rows in np.split(np.argsort(cells), np.cumsum(np.bincount(cells))[:-1]):
        own = halve(X[rows], min(each, len(rows)))
        parts[rows], made = made + own, made + int(own.max()) + 1
    return parts


def halve(X: Array, count: int) -> Integers:
    """The cell of every row, (rows,): about ``count`` cells with about equally many rows each.

    Rows are halved again and again, across the input along which they spread most. Rows with equal inputs
    are never parted, so there may be fewer cells.
    """
    cells = np.zeros(len(X), dtype=np.int64)
    parts, made = [(np.arange(len(X)), count)], 0
    while parts:
        rows, wanted = parts.pop()
        halves = _halves(X[rows], wanted) if wanted > 1 else None
        if halves is None:
            cells[rows], made = made, made + 1
            continue
        lower, share = halves
        parts += [(rows[~lower], wanted - share), (rows[lower], share)]
    return cells


def _halves(X: Array, wanted: int) -> tuple[NDArray[np.bool_], int] | None:
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


def means(X: Array, cells: Integers, repeats: Array | None = None) -> Array:
    """The mean input of every cell, (cells, inputs); ``repeats``: how often every row is there."""
    weights, columns = np.bincount(cells, repeats), X.T if repeats is None else X.T * repeats
    return np.column_stack([np.bincount(cells, column) / weights for column in columns])


NUMBERS = (1, 2, 3, 4, 6, 8, 11, 16, 23, 32, 45, 64, 96)
COORDINATES = 24  # leading directions of the prior that tell inputs apart
PATIENCE = 2


def partition(
    hypotheses: Sequence[Hypothesis], mass: Array, left: Callable[[Integers], float]
) -> Integers:
    """The group of every input, (inputs,), such that the groups leave least to be explained.

    Groups are k-means clusters in the prior's own distance ``E (f(x) - f(x'))^2``, averaged over
    the hypotheses, of all rows or of those that tell of the targets. Their number is the best of
    a ladder, then of its neighbours between the rungs.

    Parameters
    ----------
    hypotheses
        With weights.
    mass
        (inputs,), the sum of row weights at every input.
    left
        The error that groups leave, from the group of every input.

    """
    places = _coordinates(hypotheses, mass)
    weights = mass, mass * _relevance(hypotheses, mass)
    found: dict[int, tuple[float, Integers]] = {}

    def evaluate_number(number: int) -> float:
        if number not in found:
            groups = [_groups(places, weight, number) for weight in weights]
            tries = [(left(g), g) for g in groups]
            found[number] = min(tries, key=lambda one: one[0])
        return found[number][0]

    ladder = [number for number in NUMBERS if number <= len(places)]
    best, worse = ladder[0], 0
    with one_thread_of_loops():  # for matrices this small, two threads only wait for each other
        for number in ladder:
            if evaluate_number(number) <= evaluate_number(best):
                best, worse = number, 0
            else:
                worse += 1
            if worse > PATIENCE:
                break
        for number in _between(best, ladder):
            best = number if evaluate_number(number) < evaluate_number(best) else best
    return found[best][1]


def _between(number: int, ladder: Sequence[int]) -> list[int]:
    """Half-way to the rungs below and above."""
    place = ladder.index(number)
    others = [*ladder[max(place - 1, 0) : place], *ladder[place + 1 : place + 2]]
    return [half for half in ((number + other) // 2 for other in others) if half not in ladder]


def _coordinates(hypotheses: Sequence[Hypothesis], mass: Array) -> Array:
    """Inputs as points whose squared distance is the prior's, except for its weak directions."""
    per_row = np.maximum(mass, 1e-300)[:, None]
    places = np.hstack(
        [_principal(np.sqrt(h.weight) * h.factor / per_row, mass) for h in hypotheses]
    )
    return _principal(places, mass)


def _principal(places: Array, mass: Array) -> Array:
    """The coordinates along the leading principal directions."""
    count = min(COORDINATES, places.shape[1])
    size = places.shape[1]
    _, vectors = eigh(
        (places.T * mass) @ places, subset_by_index=(size - count, size - 1), check_finite=False
    )
    return np.asarray(places @ vectors)


def _relevance(hypotheses: Sequence[Hypothesis], mass: Array) -> Array:
    """How much an input tells of the targets: the weighted sum of squared covariances with them."""
    told = np.zeros(len(mass))
    for h in hypotheses:
        factor = h.factor / np.maximum(mass, 1e-300)[:, None]
        each = np.einsum("ij,ij->i", factor @ h.gram, factor)
        told += h.weight * np.maximum(each, 0.0) / max(float(each.max()), 1e-300)
    return told + 1e-6


def _groups(places: Array, mass: Array, number: int) -> Integers:
    if number == len(places):
        return np.arange(len(places))
    if number == 1:
        return np.zeros(len(places), dtype=np.int64)
    from sklearn.cluster import KMeans  # slow to import

    found = KMeans(number, n_init=1, random_state=0, max_iter=50)
    found.fit(places, sample_weight=mass)
    return np.asarray(np.unique(found.labels_, return_inverse=True)[1])
