"""Varah's bound for inputs that are known only to lie apart, as the supplement of Smith et al. has it.

It holds for private outputs at such inputs. It does not protect the inputs themselves: a replaced input
changes the matrix too.
"""

from __future__ import annotations

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from privgp.gp.kernels.evaluate import evaluate, variance
from privgp.gp.kernels.registry import kind_of, parts


def falls_with_distance(kernel: Kernel) -> bool:
    """Whether k falls with every |x_j - x'_j|, as sums and products of such kernels do."""
    return all(kind_of(leaf).least_at is None for leaf in parts(kernel))


def separated_dominance(
    kernel: Kernel, noise_variance: float, separation: float, rows: int
) -> float:
    """A dominance that all inputs have whose one column is nowhere closer than ``separation``.

    With k falling in the distance, ``v + s^2 - 2 sum_m k(m separation)``, m up to half the rows:
    the m-th neighbour on either side is at least m times that away. Depends on no input.

    Parameters
    ----------
    kernel
        One that falls with the distance.
    noise_variance
        Variance of an output about the function.
    separation
        In units of the input.
    rows
        How many inputs there are.

    Raises
    ------
    ValueError
        The kernel does not fall with the distance, or a number is out of range.

    """
    if not (np.isfinite(separation) and separation > 0):
        raise ValueError(f"separation must be positive and finite, got {separation}.")
    if rows < 1:
        raise ValueError(f"rows must be at least 1, got {rows}.")
    if not falls_with_distance(kernel):
        raise ValueError("kernel must fall with the distance: ExpSineSquared does not.")
    v = variance(kernel)
    left, right = (rows - 1) // 2, rows // 2
    places = separation * np.arange(1.0, right + 1.0, dtype=np.float64)[:, None]
    values = np.abs(evaluate(kernel, np.zeros((1, 1)), places))[0] if right else np.empty(0)
    sums = values.sum() + values[:left].sum()
    # a little less, so that inputs exactly so far apart are not refused for rounding errors
    return float(v + noise_variance - sums - 1e-9 * (v + noise_variance))
