"""Quantiles of a mixture of normal distributions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import ndtr, ndtri

from privgp.types import Array

STEPS = 40


def quantiles(mean: Array, std: Array, weights: Array, levels: Sequence[float]) -> Array:
    """At every point the values below which the mixture has these shares, (levels, points).

    ``mean``, ``std``: (components, points); ``weights``: (components,), summing to 1. Bisection
    between the least and the largest quantile of a component, which enclose the mixture's.
    """
    std = np.maximum(std, 1e-300)
    out = []
    for level in levels:
        each = mean + ndtri(level) * std
        low, high = each.min(axis=0), each.max(axis=0)
        for _ in range(STEPS):
            middle = 0.5 * (low + high)
            below = weights @ ndtr((middle - mean) / std) < level
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        out.append(0.5 * (low + high))
    return np.array(out)
