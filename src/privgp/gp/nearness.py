"""Which points are near known ones."""

from __future__ import annotations

import numpy as np
from scipy.spatial import cKDTree

from privgp.types import Array

NEAR = 0.08  # of the width of the inputs: the least distance that is far
FEW = 8  # inputs, of which none is near the others


def near_inputs(known: Array, points: Array) -> Array | None:
    """1 where a public input is nearby and 0 elsewhere, by the same rule for any number of inputs.

    Parameters
    ----------
    known : array (inputs, columns)
        The public inputs.
    points : array (points, columns)
        Where to ask.

    Returns
    -------
    array (points,), or None
        None where there are few inputs.

    """
    if len(known) < FEW:
        return None
    size = np.maximum(np.ptp(known, axis=0), 1e-300)
    return np.asarray(relative_distances(known / size, points / size) <= 1.0, dtype=np.float64)


def relative_distances(known: Array, points: Array) -> Array:
    """The distance of every point from the nearest known one, 1 where it is just near, (points,)."""
    tree = cKDTree(known)
    spacing = tree.query(known, k=2)[0][:, 1]
    reach = max(NEAR, 2.0 * float(np.quantile(spacing, 0.75)))
    return np.asarray(tree.query(points)[0] / reach)
