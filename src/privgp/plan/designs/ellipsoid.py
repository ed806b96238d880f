"""The smallest ellipsoid about centred columns, by its dual: D-optimal weights.

``max log det sum_i w_i a_i a_i^T`` over weights on the simplex; any w has a certified distance from
the best, so the solver may stop anywhere. See docs/proofs/designs.md.
"""

from __future__ import annotations

import numpy as np
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
