"""Varah's bound of the sensitivity to outputs, which needs no inverse and may be declared. For a
strictly diagonally dominant K, ``||K^-1||_inf`` is at most 1 over the dominance,
``min_i (K_ii - sum_{j != i} |K_ij|)``. Inducing inputs need no dominance. Proof and scope: docs/proofs/function.md."""

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from privgp.gp.kernels.evaluate import diagonal, evaluate, variance
from privgp.gp.kernels.proved import falls_with_distance
from privgp.gp.rounding import rounding
from privgp.types import Array


def dominance(kernel: Kernel, noise_variance: float | Array, inputs: Array, counts: Array) -> float:
    """The dominance of K for ``counts`` rows per input, rounded down; not positive if K has none.

    Parameters
    ----------
    kernel, noise_variance
        Kernel and noise variance of K; the latter may be one number per input.
    inputs
        (inputs, columns), distinct.
    counts
        (inputs,).

    """
    v = diagonal(kernel, inputs)
    sums = np.abs(evaluate(kernel, inputs)) @ counts  # the diagonal once, others in full
    sums *= 1.0 + rounding(len(inputs) + 64)
    largest = float(v.max()) + float(np.max(noise_variance))
    return float(np.min(2.0 * v + noise_variance - sums)) - rounding(8) * largest


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


def inducing_bound(variance: float, noise_variance: float) -> float:
    """``sqrt(v / (v + s^2)) / s``: how far one unit of output moves a function through inducing inputs.

    It holds for any rows and any inducing inputs. Varah's bound of their inverse kernel matrix, which
    the papers suggest, is never less.

    Parameters
    ----------
    variance
        The largest k(x, x) of an input.
    noise_variance
        s^2, of an output about the function.

    """
    share = variance / (variance + noise_variance)
    return float(np.sqrt(share / noise_variance)) * (1.0 + rounding(8))


def varah_bound(dominance: float) -> float:
    """``1 / dominance``, at least the infinity norm of K^-1; refuses what is not dominant."""
    if not (np.isfinite(dominance) and dominance > 0):
        raise ValueError(
            "K is not strictly diagonally dominant, so Varah's bound does not apply: use "
            "sensitivity='exact', a shorter lengthscale, or a larger noise_variance."
        )
    return (1.0 / dominance) * (1.0 + rounding(4))
