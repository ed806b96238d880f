"""Which setting to try next, given noisy scores: post-processing of what was measured."""

from collections.abc import Sequence

import numpy as np
from scipy.special import ndtr

from privgp.gp.surrogate import Surrogate
from privgp.types import Array

ACQUISITIONS = ("ei", "ucb")


def next_setting(
    surrogate: Surrogate, tried: Sequence[int], acquisition: str, exploration: float
) -> int:
    """The index of the most promising setting; the first is the one nearest to the middle."""
    if not tried:
        points = surrogate.points
        middle = 0.5 * (points.min(axis=0) + points.max(axis=0))
        return int(np.argmin(np.square(points - middle).sum(axis=1)))
    if acquisition == "ucb":
        return int(np.argmax(upper_bound(surrogate, exploration)))
    return int(np.argmax(expected_improvement(surrogate, tried)))


def upper_bound(surrogate: Surrogate, exploration: float) -> Array:
    """m(x) + sqrt(beta) s(x), ``exploration`` = sqrt(beta); (settings,)."""
    mean, std = surrogate.posterior()
    return np.asarray(mean + exploration * std)


def expected_improvement(surrogate: Surrogate, tried: Sequence[int]) -> Array:
    """E max(f(x) - best, 0), (settings,); ``best``: the largest posterior mean of those tried."""
    best = surrogate.posterior()[0][np.asarray(tried)].max()
    std = np.sqrt(np.maximum(surrogate.variances, 1e-24))
    z = (surrogate.means - best) / std
    density = np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi)
    return np.asarray(surrogate.weights @ (std * (z * ndtr(z) + density)))


def best_setting(surrogate: Surrogate) -> int:
    """The index of the largest mean, cut to the scores' [-1, 1], less one std."""
    mean, std = surrogate.posterior()
    return int(np.argmax(np.clip(mean, -1.0, 1.0) - std))
