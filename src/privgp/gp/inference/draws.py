"""Joint draws from a mixture of Gaussian processes: public randomness, which protects nothing."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import cholesky

from privgp.gp.inference.mixtures import Mixture
from privgp.gp.inference.posterior import Posterior
from privgp.gp.priors import of_one_kernel
from privgp.types import Array, Integers

JITTERS = (0.0, 1e-12, 1e-10, 1e-8, 1e-6)
Pick = Callable[[Array], Integers]  # from the weights of components to how many draws each has


def random_pick(count: int, rng: np.random.RandomState) -> Pick:
    """Components at random: what draws are by themselves, few of them too."""

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
    """Draws at every point by itself, (points, draws), in random order: for shares at a point, not for
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
