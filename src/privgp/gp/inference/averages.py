"""Weighted averages of a function over sets of points: few points stand for many."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cholesky
from scipy.sparse import csr_array

from privgp.gp.changes import values
from privgp.gp.inference.posterior import Mixture, Posterior
from privgp.gp.priors import Hyperparameters, of_one_kernel
from privgp.types import Array, Integers

JITTERS = (0.0, 1e-12, 1e-10, 1e-8, 1e-6)
Pick = Callable[[Array], Integers]  # from the weights of components to how many draws each has


def random_pick(count: int, rng: np.random.RandomState) -> Pick:
    """Components at random: what draws are on their own, few of them too."""

    def pick(weights: Array) -> Integers:
        return np.asarray(rng.multinomial(count, weights / weights.sum()))

    return pick


def even_pick(count: int) -> Pick:
    """As many draws of every component as its weight says: the least error of what they average to."""

    def pick(weights: Array) -> Integers:
        ends = np.round(count * np.cumsum(weights / weights.sum())).astype(np.int64)
        return np.diff(ends, prepend=0)

    return pick


def posterior_draws(post: Posterior, X: Array, pick: Pick, rng: np.random.RandomState) -> Array:
    """Joint draws of the function at the rows of X, (rows, draws), in random order.

    Parameters
    ----------
    post : Posterior
        The mixture. A component that has no draw costs nothing.
    X : array (rows, columns)
        Where the kernel has the rows.
    pick : Pick
        How many draws every component has.
    rng : RandomState
        Public randomness.

    """
    counts = pick(np.array([c.model.weight for c in post.components]))
    drawn = []
    for places in of_one_kernel([c.model for c in post.components]):
        used = [place for place in places if counts[place]]
        smooth = post.components[used[0]].model.smooth(X) if used else None
        for place in used:
            c = post.components[place]
            cross = c.model.covariance(X, c.nodes)
            half = cross @ c.half.T
            left = c.model.covariance(X, None, smooth) - half @ half.T
            drawn.append(normal_draws(cross @ c.mean_weights, left, int(counts[place]), rng))
    return shuffle(drawn, rng) + post.centre


def mixture_draws(mixture: Mixture, count: int, rng: np.random.RandomState) -> Array:
    """Draws at every point separately, (points, draws), in random order: for shares at a point, not for
    what several points have in common."""
    counts, order = even_pick(count)(mixture.weights), rng.permutation(count)
    of = np.repeat(np.arange(len(counts)), counts)[order]
    std = np.sqrt(np.maximum(mixture.variances, 0.0))
    return np.asarray((mixture.means[of] + std[of] * rng.standard_normal(count)[:, None]).T)


def normal_draws(mean: Array, covariance: Array, count: int, rng: np.random.RandomState) -> Array:
    """Draws of a normal distribution, (points, draws), whose covariance may be singular."""
    scale = max(float(np.max(np.diag(covariance), initial=0.0)), np.finfo(float).tiny)
    z = rng.standard_normal((len(mean), count))
    for jitter in JITTERS:
        moved = covariance + jitter * scale * np.eye(len(mean))
        try:
            root = cholesky(moved, lower=True, check_finite=False)
        except np.linalg.LinAlgError:
            continue
        return np.asarray(mean[:, None] + root @ z)
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(mean[:, None] + (vectors * np.sqrt(np.maximum(values, 0.0))) @ z)


def shuffle(parts: list[Array], rng: np.random.RandomState) -> Array:
    """Draws of all components in random order, (points, draws)."""
    drawn = np.concatenate(parts, axis=1)
    return np.asarray(drawn[:, rng.permutation(drawn.shape[1])])


FINE, COARSE = 4000, 1200  # points that means, and covariances between averages, are computed at
MOST_AVERAGES, FEW_VALUES = 3000, 3
FINEST = 2**12  # parts of the width of a set
BLOCK = 400  # points of neighbouring sets whose covariances are computed together


@dataclass(frozen=True)
class Cells:
    """Points and their shares in every average.

    Attributes
    ----------
    points : array (cells, columns)
        Centres of the points in a cell, which are of one average.
    shares : sparse array (averages, cells)
        Of sum 1 in every row.

    """

    points: Array
    shares: csr_array

    def blocks(self) -> Iterator[tuple[slice, slice]]:
        """Averages that are neighbours, and their cells, which are neighbours too."""
        ends, first = self.shares.indptr, 0
        while first < len(ends) - 1:
            last = first + 1
            while last < len(ends) - 1 and ends[last + 1] - ends[first] <= BLOCK:
                last += 1
            yield slice(first, last), slice(int(ends[first]), int(ends[last]))
            first = last


@dataclass(frozen=True)
class Sums:
    """Averages by as many cells as means need, and by fewer for covariances between averages.

    Attributes
    ----------
    fine, coarse : Cells
        The same where there are few points; then nothing is approximated.

    """

    fine: Cells
    coarse: Cells

    @classmethod
    def of(cls, points: Array, weights: Array, places: Integers) -> Sums:
        """Points become cells where there are too many: each the centre of points that lie close.

        Coordinates with at most three values, such as those of categories, are never averaged.

        Parameters
        ----------
        points : array (points, columns)
            Where the kernel has them.
        weights : array (points,)
            Not negative, with a positive sum in every average.
        places : array (points,)
            The average that every point is part of, 0 and on.

        Raises
        ------
        ValueError
            There are too many averages to compute their covariances.

        """
        kept = [j for j, x in enumerate(points.T) if _few_values(x)]
        order = np.argsort(places, kind="stable")
        points, weights, places = points[order], weights[order], places[order]
        fine = _cells(points, weights, places, kept, FINE)
        if len(fine.points) <= COARSE:
            return cls(fine, fine)
        averages = np.repeat(np.arange(fine.shares.shape[0]), np.diff(fine.shares.indptr))
        coarse = _cells(fine.points, fine.shares.data, averages, kept, COARSE)
        if len(coarse.points) > MOST_AVERAGES:
            raise ValueError(
                f"at most {MOST_AVERAGES:,} averages can be computed at once, times the combinations of "
                f"categories among their rows: these are {len(coarse.points):,}. Compute them in parts."
            )
        return cls(fine, coarse)


def _few_values(column: Array) -> bool:
    """Whether a column has at most three different values."""
    some = np.unique(column[: 100 * FEW_VALUES])
    return len(some) <= FEW_VALUES and len(np.unique(column)) <= FEW_VALUES


def posterior_averages(post: Posterior, sums: Sums) -> Iterator[tuple[int, Array, Array]]:
    """The place of every component, and the means and covariance matrix of the averages under it.

    Means and variances are those over the fine cells, covariances between averages those over the
    coarse ones. Components that share a kernel come one after the other.
    """
    fine, coarse = sums.fine, sums.coarse
    for places in of_one_kernel([c.model for c in post.components]):
        nodes = at_fine = at_coarse = None
        within = post.components[places[0]].model.smooth(coarse.points)
        alone = None
        if coarse is not fine:
            alone = _smooth_variances(post.components[places[0]].model, fine)
        for place in places:
            c = post.components[place]
            if c.nodes is not nodes:
                nodes, at_fine = c.nodes, c.model.smooth(fine.points, c.nodes)
                at_coarse = at_fine
                if coarse is not fine:
                    at_coarse = c.model.smooth(coarse.points, c.nodes)
            basis = fine.shares @ c.model.covariance(fine.points, c.nodes, at_fine)
            near = basis
            if coarse is not fine:
                near = coarse.shares @ c.model.covariance(coarse.points, c.nodes, at_coarse)
            half = near @ c.half.T
            K = c.model.covariance(coarse.points, None, within)
            prior = coarse.shares @ (coarse.shares @ K).T
            covariance = 0.5 * (prior + prior.T) - half @ half.T
            if alone is not None:
                heights = fine.shares @ values(c.model.changes, fine.points)
                left = alone + np.square(heights).sum(axis=1)
                left = left - np.square(basis @ c.half.T).sum(axis=1)
                # correlations of the coarse cells with variances of the fine ones
                before = np.maximum(np.diag(covariance), np.finfo(float).tiny)
                ratios = np.sqrt(np.maximum(left, 0.0) / before)
                covariance = covariance * np.outer(ratios, ratios)
            np.fill_diagonal(covariance, np.maximum(np.diag(covariance), 0.0))
            yield place, basis @ c.mean_weights + post.centre, covariance


def _smooth_variances(model: Hyperparameters, cells: Cells) -> Array:
    """The prior variance of every average without the changes of the model, (averages,)."""
    out = np.empty(cells.shares.shape[0])
    for averages, rows in cells.blocks():
        shares = cells.shares[averages, rows]
        K = model.smooth(cells.points[rows])
        out[averages] = (shares.multiply(shares @ K)).sum(axis=1)
    return out


def _cells(
    points: Array, weights: Array, places: Integers, kept: Sequence[int], most: int
) -> Cells:
    """At most this many cells where that is possible: the points, or parts of equal width of the box of
    every average. Points are in the order of their averages."""
    averages = int(places[-1]) + 1
    step = max(1, len(points) // (4 * most))  # some of the points may show that there are too many
    for rows in (step, 1):
        keys = _distinct(np.column_stack([places[::rows], points[::rows]]))
        if keys.max() + 1 > most:
            keys = _close_together(points, places, kept, most)
            break
    count = int(keys.max()) + 1
    mass = np.bincount(keys, weights, count)
    even = np.bincount(keys, minlength=count).astype(float)
    empty = mass <= 0.0
    use = np.where(empty[keys], 1.0, weights)
    total = np.where(empty, even, mass)
    centres = np.column_stack([np.bincount(keys, use * x, count) / total for x in points.T])
    first = np.full(count, len(keys), dtype=np.int64)
    np.minimum.at(first, keys, np.arange(len(keys)))
    of = places[first]
    order = np.argsort(of, kind="stable")
    shares = mass / np.bincount(of, mass, averages)[of]
    at = (of[order], np.arange(count))
    return Cells(centres[order], csr_array((shares[order], at), shape=(averages, count)))


def _close_together(points: Array, places: Integers, kept: Sequence[int], most: int) -> Integers:
    """The cell of every point, in the finest division of the averages' boxes that has few enough."""
    starts = np.flatnonzero(np.diff(places, prepend=-1))
    low = np.minimum.reduceat(points, starts)[places]
    width = np.maximum.reduceat(points, starts)[places] - low
    free = np.setdiff1d(np.arange(points.shape[1]), kept)
    scaled = ((points - low) / np.where(width > 0.0, width, 1.0))[:, free]
    fixed = _distinct(np.column_stack([places, points[:, [*kept]]]))

    def divide(parts: int) -> Integers:
        joined = fixed.copy()
        for column in scaled.T:
            joined = joined * parts + np.minimum(column * parts, parts - 1).astype(np.int64)
        return np.unique(joined, return_inverse=True)[1]

    # this many parts that cells cannot be distinguished by one number any more are never needed
    finest = int(
        2.0 ** (60.0 / max(len(free), 1)) / (fixed.max() + 1.0) ** (1.0 / max(len(free), 1))
    )
    top = max(2, min(finest, FINEST))
    fits, fails, tried, keys = 1, top, 2, divide(1)
    while fails - fits > 1:
        finer = divide(tried)
        if finer.max() + 1 > most:
            fails = tried
        else:
            fits, keys = tried, finer
        tried = min(2 * fits, fails - 1) if fails == top else (fits + fails) // 2
    return keys


def _distinct(rows: Array) -> Integers:
    """A number for every row, equal for equal rows, 0 and on."""
    keys = np.zeros(len(rows), dtype=np.int64)
    for column in rows.T:
        of_column = np.unique(column, return_inverse=True)[1]
        joined = keys * (int(of_column.max()) + 1) + of_column
        keys = np.unique(joined, return_inverse=True)[1]
    return keys
