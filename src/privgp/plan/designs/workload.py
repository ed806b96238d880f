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
from scipy.linalg import cho_factor, cho_solve, cholesky, solve_triangular

from privgp.types import Array

MULTIPLICATIVE_STEPS = 15
INTERIOR_STEPS = 40
GRADIENT_STEPS = 12


def optimal_weights(columns: Array, tolerance: float, max_iterations: int) -> Array:
    """D-optimal weights, (inputs,), of columns with ``columns @ columns.T = I``.

    Multiplicative steps, then Newton steps (interior point) on all columns while their equations
    are easy, then on a small active set to which the worst of the columns left out are added.

    Parameters
    ----------
    columns
        (rank, inputs).
    tolerance
        Certified distance from the best log det to stop at, in nats.
    max_iterations
        Largest number of all steps together; stopping early costs accuracy, never privacy.

    """
    rank, inputs = columns.shape
    share = max(tolerance / (20 * rank), 1e-12 * inputs)
    background = share / inputs
    random = np.random.default_rng(0)
    best, least = np.full(inputs, 1.0 / inputs), np.inf

    def leverage(w: Array) -> Array:
        nonlocal best, least
        d = square_norms(whiten(columns, w)[0])
        if (nats := _nats(d, w, rank)) < least:
            best, least = w, nats
        return d

    w = best
    for _ in range(min(MULTIPLICATIVE_STEPS, max_iterations)):
        d = leverage(w)
        if least <= tolerance:
            return best
        w = mix_evenly(w * (d / rank) ** 1.5, 1e-3)
    left = max_iterations - MULTIPLICATIVE_STEPS
    size = min(inputs, 4 * rank + 50)
    if left > 0 and size < inputs:
        w, used = _interior(columns, w, background, tolerance / 2, left, direct=False)
        w, left = mix_evenly(w, share), left - used
        leverage(w)
    active = np.zeros(inputs, dtype=bool)
    active[np.argsort(-w)[: size // 2]] = True
    active[random.choice(inputs, size - size // 2, replace=False, p=w)] = True
    while left > 0 and least > tolerance:
        start = mix_evenly(w[active], 1e-3)
        goal = max(tolerance / 2, 0.03 * least)
        steps = min(left, INTERIOR_STEPS)
        inner, used = _interior(columns[:, active], start, background, goal, steps, direct=True)
        left -= used + 1
        w = np.zeros(inputs)
        w[active] = inner
        d = leverage(mix_evenly(w, share))
        active = w > 1e-3 / active.sum()
        outside = np.flatnonzero((d > rank + 0.3 * tolerance) & ~active)
        if outside.size > size // 2:
            excess = d[outside] - rank
            outside = random.choice(outside, size // 2, replace=False, p=excess / excess.sum())
        active[outside] = True
        active[np.argmax(d)] = True
    return best


def _interior(
    columns: Array,
    w: Array,
    background: float,
    tolerance: float,
    max_iterations: int,
    *,
    direct: bool,
) -> tuple[Array, int]:
    """Primal-dual Newton steps for ``max log det G - r sum w``, w >= 0: (w, steps used).

    ``G = sum w a a^T + background I``, the background standing for columns that are left out. With
    ``K = columns^T G^-1 columns`` and slacks ``z = r - diag K >= 0`` a step solves
    ``(K o K + diag(z / w)) dw = mu / w - r + diag K``: directly, or by conjugate gradients for as
    long as a dozen of them will do.
    """
    rank = columns.shape[0]
    slack = None
    for step in range(max_iterations):
        H, _ = whiten(columns, w, background)
        d = square_norms(H)
        if _nats(d, w, rank) <= tolerance:
            return w / w.sum(), step
        z = np.maximum(rank - d, 0.01 * rank) if slack is None else slack
        mu = 0.1 * float(w @ z) / len(w)
        ridge = z / w + 1e-12 * d**2
        right = mu / w - rank + d
        change = _solve(H, ridge, right) if direct else _conjugate_gradients(H, d, ridge, right)
        if change is None or not np.isfinite(change).all():
            return w / w.sum(), step
        slack_change = (mu - z * change) / w - z
        length = min(_longest(w, change), _longest(z, slack_change))
        w, slack = w + length * change, z + length * slack_change
    return w / w.sum(), max_iterations


def _longest(x: Array, change: Array) -> float:
    """How far x > 0 may move along ``change``, at most 1."""
    return min(1.0, 0.98 / max(float((-change / x).max()), 1e-300))


def _solve(H: Array, ridge: Array, right: Array) -> Array | None:
    """Solve ``((H^T H) o (H^T H) + diag(ridge)) x = right``, unless rounding makes it singular."""
    K = H.T @ H
    K *= K
    K.flat[:: len(K) + 1] += ridge
    try:
        factor = cho_factor(K, lower=True, overwrite_a=True, check_finite=False)
    except np.linalg.LinAlgError:
        return None
    return np.asarray(cho_solve(factor, right, check_finite=False))


def _conjugate_gradients(H: Array, d: Array, ridge: Array, right: Array) -> Array | None:
    """The same without forming the matrix, or nothing when that would take many steps."""
    diagonal = d * d + ridge
    x = np.zeros_like(right)
    residual = right.copy()
    direction = residual / diagonal
    energy = start = float(residual @ direction)
    for _ in range(GRADIENT_STEPS):
        image = np.einsum("ij,ij->j", H, ((H * direction) @ H.T) @ H) + ridge * direction
        length = energy / float(direction @ image)
        x += length * direction
        residual -= length * image
        scaled = residual / diagonal
        energy, last = float(residual @ scaled), energy
        if energy <= 1e-3 * start:
            return x
        direction = scaled + (energy / last) * direction
    return None


def _nats(leverage: Array, w: Array, rank: int) -> float:
    """Certified distance from the best log det of weights w, leverage ``a_i^T (sum w a a^T)^-1 a_i``."""
    return rank * float(np.log(leverage.max() * w.sum() / rank))


def whiten(columns: Array, w: Array, background: float = 0.0) -> tuple[Array, Array]:
    """``L^-1 columns`` and L, the Cholesky factor of ``sum_i w_i a_i a_i^T + background I``."""
    X = columns * np.sqrt(w)
    G = X @ X.T
    G.flat[:: len(G) + 1] += background
    L = np.asarray(cholesky(G, lower=True, overwrite_a=True, check_finite=False))
    return np.asarray(solve_triangular(L, columns, lower=True, check_finite=False)), L


def mix_evenly(w: Array, share: float) -> Array:
    """The weights w scaled to the simplex, with a share of them spread evenly."""
    return np.asarray(w * ((1 - share) / w.sum()) + share / len(w))


def square_norms(X: Array) -> Array:
    """Squared norms of the columns of X, (columns,)."""
    return np.asarray(np.einsum("ij,ij->j", X, X))


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
