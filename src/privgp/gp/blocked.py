"""Cholesky factors, triangular solves and products whose rounding errors grow slowly.

Every sum of products of length n is split into runs of 64 terms. A run may be added up in any order,
the runs are added up one after the other, so the relative error is gamma_(64 + n / 64) instead of
gamma_n. Proof: docs/proofs/path_rounding.md.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from privgp.gp.rounding import rounding
from privgp.types import Array

RUN = 64


def sum_error(length: int) -> float:
    """gamma: the relative error of a blocked sum of products of this length, with a few to spare."""
    return rounding(RUN + math.ceil(length / RUN) + 4)


def multiply_by_blocks(A: Array, B: Array) -> Array:
    """A B, (rows of A, columns of B), run by run.

    The relative error of an entry is at most ``sum_error`` of the inner length, times ``|A|
    |B|``.
    """
    out = np.zeros((A.shape[0], B.shape[1]))
    for start in range(0, A.shape[1], RUN):
        out += A[:, start : start + RUN] @ B[start : start + RUN]
    return out


def solve_by_blocks(lower: Array, right: Array) -> Array:
    """The solution X of ``lower X = right``, (rows, columns), by blocked forward substitution.

    Parameters
    ----------
    lower
        (rows, rows), lower triangular; what stands above the diagonal is not read.
    right
        (rows, columns).

    """
    out = np.array(right, dtype=np.float64)
    for start in range(0, len(lower), RUN):
        stop = min(start + RUN, len(lower))
        triangle = lower[start:stop, start:stop]
        out[start:stop] = solve_triangular(
            triangle, out[start:stop], lower=True, check_finite=False
        )
        out[stop:] -= lower[stop:, start:stop] @ out[start:stop]
    return out


def cholesky_by_blocks(matrix: Array) -> Array:
    """L with ``L L^T = matrix``, lower triangular, every sum blocked.

    Parameters
    ----------
    matrix
        (rows, rows), symmetric and positive definite.

    Raises
    ------
    numpy.linalg.LinAlgError
        It is not positive definite.

    """
    out = np.array(matrix, dtype=np.float64)
    for start in range(0, len(out), RUN):
        stop = min(start + RUN, len(out))
        corner = cholesky(out[start:stop, start:stop], lower=True, check_finite=False)
        out[start:stop, start:stop] = corner
        below = solve_triangular(corner, out[stop:, start:stop].T, lower=True, check_finite=False).T
        out[stop:, start:stop] = below
        out[stop:, stop:] -= below @ below.T
        out[start:stop, stop:] = 0.0
    return out
