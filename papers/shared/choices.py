"""Probabilities of private choices, exactly: for figures and tests.

Of utilities ``u`` (larger is better) at scale s; gaps ``g_i = (max u - u_i) / s``.
"""

import numpy as np

from privgp.types import Array


def exponential_probabilities(utilities: Array, scale: float) -> Array:
    """Exponential mechanism: in proportion to ``exp(-g_i)``."""
    weights = np.exp(-_gaps(utilities, scale))
    return np.asarray(weights / weights.sum())


def permute_and_flip_probabilities(utilities: Array, scale: float) -> Array:
    """Permute-and-flip, the same as the largest of ``u_i`` plus exponential noise of this scale:
    ``exp(-g_i) integral over x in (0, 1) of prod over j != i of (1 - x exp(-g_j))``,
    the integral of a polynomial, for which Gauss's rule is exact."""
    weights = np.exp(-_gaps(utilities, scale))
    count = len(weights)
    nodes, shares = np.polynomial.legendre.leggauss(count // 2 + 1)
    factors = 1.0 - np.outer(0.5 * (nodes + 1.0), weights)  # (nodes, candidates)
    others = factors.prod(axis=1)[:, None] / factors
    return np.asarray(weights * (0.5 * shares @ others))


def _gaps(utilities: Array, scale: float) -> Array:
    return (np.max(utilities) - np.asarray(utilities, dtype=float)) / scale
