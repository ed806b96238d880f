"""Inducing inputs, chosen from public inputs alone."""

from __future__ import annotations

import numpy as np
from threadpoolctl import threadpool_limits

from privgp.gp.input_maps import collapse, spreads
from privgp.types import Array

ROUNDS = 30


def choose_inducing(seen: Array, count: int) -> Array:
    """``count`` centres of the rows (k-means on inputs scaled to their spread), without chance.

    What interpolation from the centres leaves out of a kernel matrix is bounded by how far rows are
    from them. All distinct inputs, if there are no more than that. Fewer, should centres coincide.
    """
    from sklearn.cluster import KMeans  # slow to import

    distinct = collapse(seen)[0]
    if len(distinct) <= count:
        return distinct
    middle, scale = seen.mean(axis=0), spreads(seen)
    means = KMeans(count, n_init=1, max_iter=ROUNDS, random_state=0)
    with threadpool_limits(1):  # sums in one order
        centres = means.fit((seen - middle) / scale).cluster_centers_
    return collapse(np.asarray(centres, dtype=np.float64) * scale + middle)[0]
