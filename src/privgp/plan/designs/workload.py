"""The least noise for a linear workload: trace, max and log-determinant designs.

Released is ``C s`` plus Gaussian noise of covariance proportional to M, where one person changes one
entry of s by at most 1, so every column of the workload C must satisfy ``c_i^T M^-1 c_i <= 1``.
Equivalently ``C = R B``: measure ``B s`` with unit noise, where B has columns of norm at most 1, and
reconstruct with R; then ``M = R R^T``. Privacy rests on the column norms of the stored B alone: the
solvers below may stop anywhere. What they reach is certified; see docs/proofs/designs.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import solve_triangular

from privgp.plan.designs.ellipsoid import mix_evenly, optimal_weights, square_norms, whiten
from privgp.types import Array

OBJECTIVES = ("trace", "max", "logdet")
RANK_CUTOFF = 1e-10


@dataclass(frozen=True)
class Design:
    """A factorisation ``reconstruction @ strategy`` of the workload with its certificate.

    Attributes
    ----------
    strategy : B (rank, inputs), columns of norm at most 1
    reconstruction : R (targets, rank)
    gap : how far the objective can be from its optimum, relative and in std for trace and max,
        in nats of log det M for logdet
    objective : the objective it was made for

    """

    strategy: Array
    reconstruction: Array
    gap: float
    objective: str


def design(
    C: ArrayLike,
    objective: str,
    weights: ArrayLike | None = None,
    *,
    tolerance: float = 0.01,
    max_iterations: int = 500,
) -> Design:
    """The design for the workload C that is best for ``objective``.

    Directions of the (weighted) workload below 1e-10 of the largest are dropped from the
    release.

    Parameters
    ----------
    C
        (targets, inputs), finite.
    objective
        "trace" minimises ``sum_p w_p var_p``, "max" minimises ``max_p w_p var_p``, "logdet"
        the volume of the noise, ``log det M``.
    weights
        (targets,), positive, all 1 by default.
    tolerance
        Certified excess to stop at, relative in variance, or in nats for logdet.
    max_iterations
        After which it stops anyway; that costs accuracy, never privacy.

    Raises
    ------
    ValueError
        An argument is not what it should be.

    """
    workload, root = _check_workload(C, objective, weights, tolerance, max_iterations)
    targets, inputs = workload.shape
    size = float(np.abs(workload).max()) or 1.0
    scaled = root[:, None] * (workload / size)
    rows = _row_space(scaled)
    if rows.shape[1] == 0:
        return Design(np.zeros((0, inputs)), np.zeros((targets, 0)), 0.0, objective)
    A = rows.T @ scaled
    if objective == "trace":
        B, F, gap = trace_design(A, tolerance, max_iterations)
    elif objective == "max":
        B, F, gap = max_design(A, rows, tolerance, max_iterations)
    else:
        B, F, gap = logdet_design(A, tolerance, max_iterations)
    return Design(B, (rows @ F) * (size / root)[:, None], gap, objective)


def trace_design(
    A: Array, tolerance: float = 0.01, max_iterations: int = 500
) -> tuple[Array, Array, float]:
    """``A = F B`` of least ``tr F F^T`` with unit columns of B: (B, F, gap in std).

    With v on the simplex and ``S`` the singular values of ``A diag(v)^1/2``, no factorisation
    has less variance than ``(tr S)^2``; ``M = (A diag(v) A^T)^1/2`` attains it at the best v.

    Parameters
    ----------
    A
        (rank, inputs), of full row rank.
    tolerance, max_iterations
        As in ``design``.

    """

    def evaluate(v: Array) -> tuple[float, list[Array]]:
        values, U = _root(A, v)
        total = float(values.sum())
        return total, [square_norms((U / np.sqrt(values)).T @ A) / total]

    (v,) = _ascend(evaluate, [A.shape[1]], 3.0, tolerance, max_iterations)
    U, S, _ = np.linalg.svd(_triangle((A * np.sqrt(v)).T).T)
    B, F = _unit_columns(*_split(U, S, A))
    return B, F, _excess(float(np.square(F).sum()), float(S.sum()) ** 2)


def max_design(
    A: Array, rows: Array, tolerance: float = 0.01, max_iterations: int = 500
) -> tuple[Array, Array, float]:
    """``A = F B`` of least ``max_p |rows_p F|^2`` with unit columns of B: (B, F, gap in std).

    With v and omega on the simplex and ``S`` the singular values of
    ``diag(omega)^1/2 rows A diag(v)^1/2``, no factorisation has a largest variance below ``(tr
    S)^2``.

    Parameters
    ----------
    A
        (rank, inputs), of full rank.
    rows
        (targets, rank), of full rank; the workload is ``rows @ A``.
    tolerance, max_iterations
        As in ``design``.

    """

    def evaluate(v: Array, omega: Array) -> tuple[float, list[Array]]:
        Q, T = np.linalg.qr(np.sqrt(omega)[:, None] * rows)
        values, U = _root(A, v, T)
        total = float(values.sum())
        noise = square_norms((U / np.sqrt(values)).T @ T @ A) / total
        variance = square_norms(((Q @ U) * np.sqrt(values)).T) / (omega * total)
        return total, [noise, variance]

    sizes = [A.shape[1], rows.shape[0]]
    v, omega = _ascend(evaluate, sizes, 1.5, tolerance, max_iterations)
    T = _triangle(np.sqrt(omega)[:, None] * rows)
    U, S, _ = np.linalg.svd(T @ _triangle((A * np.sqrt(v)).T).T)
    B, F = _split(U, S, T @ A)
    B, F = _unit_columns(B, solve_triangular(T, F, check_finite=False))
    return B, F, _excess(float(square_norms((rows @ F).T).max()), float(S.sum()) ** 2)


def logdet_design(
    A: Array, tolerance: float = 0.01, max_iterations: int = 500
) -> tuple[Array, Array, float]:
    """``A = F B`` of least ``log det F F^T`` with unit columns of B: (B, F, gap in nats).

    ``M = F F^T`` is the smallest ellipsoid about all ``+-a_i``, ``M = r sum_i w_i a_i a_i^T``
    with D-optimal w; it does not depend on the basis, so the columns are made orthonormal first:
    nearly dependent targets then cost no accuracy.

    Parameters
    ----------
    A
        (rank, inputs), of full row rank.
    tolerance, max_iterations
        As in ``design``.

    """
    rank = A.shape[0]
    Q, T = np.linalg.qr(A.T)
    columns = Q.T * A.any(axis=0)  # a column of zeros stays one, in spite of rounding
    w = optimal_weights(columns, 0.98 * tolerance, max_iterations)
    half, L = whiten(columns, rank * w)
    gap = float(np.maximum(0.0, rank * np.log(square_norms(half).max())))
    B, F = _unit_columns(half, T.T @ L)
    return B, F, gap


def _check_workload(
    C: ArrayLike, objective: str, weights: ArrayLike | None, tolerance: float, max_iterations: int
) -> tuple[Array, Array]:
    """The workload and the roots of the relative weights, or a ValueError that says what is wrong."""
    workload = np.asarray(C, dtype=np.float64)
    if workload.ndim != 2 or workload.size == 0:
        raise ValueError(
            f"C must be a matrix (targets, inputs) with at least one of each, "
            f"but has shape {workload.shape}."
        )
    if not np.isfinite(workload).all():
        raise ValueError("C has entries that are not finite: give finite weights.")
    if objective not in OBJECTIVES:
        raise ValueError(f"objective must be one of {', '.join(OBJECTIVES)}, not {objective!r}.")
    if not tolerance > 0:
        raise ValueError(f"tolerance must be positive, not {tolerance}.")
    if max_iterations < 1:
        raise ValueError(f"max_iterations must be at least 1, not {max_iterations}.")
    targets = workload.shape[0]
    if weights is None:
        return workload, np.ones(targets)
    w = np.asarray(weights, dtype=np.float64)
    if w.shape != (targets,):
        raise ValueError(f"weights must have shape ({targets},), one per target, not {w.shape}.")
    if not (np.isfinite(w).all() and (w > 0).all()):
        raise ValueError("weights must be finite and positive: leave out targets of weight 0.")
    return workload, np.sqrt(w / w.max())


def _row_space(C: Array) -> Array:
    """Orthonormal basis (targets, rank) of the columns of C, up to the rank cut-off."""
    wide = C.shape[1] > C.shape[0]
    U, S, _ = np.linalg.svd(_triangle(C.T).T if wide else C, full_matrices=False)
    return np.ascontiguousarray(U[:, RANK_CUTOFF * S[0] < S])


def _triangle(X: Array) -> Array:
    """R of ``X = Q R``."""
    return np.asarray(np.linalg.qr(X, mode="r"))


def _root(A: Array, v: Array, T: Array | None = None) -> tuple[Array, Array]:
    """Eigenvalues (floored) and vectors of ``(T A diag(v) A^T T^T)^1/2``."""
    X = A * np.sqrt(v)
    G = X @ X.T
    values, U = np.linalg.eigh(G if T is None else T @ G @ T.T)
    return np.sqrt(np.maximum(values, 1e-16 * values[-1])), U


def _split(U: Array, S: Array, A: Array) -> tuple[Array, Array]:
    """``A = F B`` with ``F F^T = U diag(S) U^T``, also when tiny S are wrong by rounding."""
    half = np.sqrt(np.maximum(S, 1e-13 * S[0]))
    return (U / half).T @ A, U * half


def _unit_columns(B: Array, F: Array) -> tuple[Array, Array]:
    """The same product with the largest column of B of norm 1."""
    norm = float(np.linalg.norm(B, axis=0).max())
    return B / norm, F * norm


def _excess(value: float, floor: float) -> float:
    """Relative distance in std of a variance from its lower bound."""
    return float(np.maximum(0.0, np.sqrt(value / floor) - 1.0))


def _ascend(
    evaluate: Callable[..., tuple[float, list[Array]]],
    sizes: Sequence[int],
    power: float,
    tolerance: float,
    max_iterations: int,
) -> list[Array]:
    """Maximise a nuclear norm over weights on simplices by ``w <- w ratio^power``.

    ``evaluate(*weights)`` gives the norm, whose square is a lower bound of the variance, and for every
    block the ratios by which its constraints exceed it (their w-average is 1): the product of the
    largest ratios bounds the relative gap. A small uniform share is mixed in after every step: it
    revives columns, keeps the matrices regular and costs a fraction of the tolerance.
    """
    share = min(max(tolerance / 20, 1e-6), 0.01)
    weights = [np.full(size, 1.0 / size) for size in sizes]
    best, least, previous = weights, np.inf, 0.0
    for _ in range(max_iterations):
        bound, ratios = evaluate(*weights)
        gap = float(np.prod([ratio.max() for ratio in ratios])) - 1.0
        if gap < least:
            best, least = weights, gap
        if gap <= 0.98 * tolerance:
            break
        if bound < (1 - share) * previous:
            power *= 0.7
        previous = bound
        weights = [mix_evenly(w * q**power, share) for w, q in zip(weights, ratios, strict=True)]
    return best
