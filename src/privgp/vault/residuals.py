"""How well candidates predict held-out private outputs: the norm of residuals, and its sensitivity."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from privgp.privacy.residuals import Fold, ResidualBound
from privgp.types import Array, Integers
from privgp.vault.validate import clipped_outputs


def root_utilities(
    y: Any,
    bounds: tuple[float, float],
    rows: int,
    candidates: Iterable[tuple[Iterable[Fold], float]],
    people: Integers | None = None,
) -> tuple[Array, float]:
    """``-sqrt(||R u||^2 + noise^2)`` of every candidate (private), and their sensitivity (public).

    ``candidates``: for each its folds and the noise, a public number in units of half the bounds'
    width, in which u lies in [-1, 1]. The matrices that are multiplied are those that are bounded.
    """
    u = clipped_outputs(y, rows, bounds)
    utilities, largest = [], 0.0
    for folds, noise in candidates:
        bound, energy = ResidualBound(rows), 0.0
        for fold in folds:
            bound.add(fold)
            residuals = u[fold.test] - fold.weights @ np.bincount(
                fold.index, u[fold.train], minlength=fold.weights.shape[1]
            )
            energy += float(residuals @ residuals)
        utilities.append(-float(np.sqrt(energy + noise**2)))
        largest = max(largest, bound.sensitivity(noise, people))
    return np.array(utilities), largest
