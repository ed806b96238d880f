"""Laplace noise on measured numbers, modelled exactly: expectation propagation.

Laplace noise of std sigma is mostly smaller than normal noise of the same std and now and then much
larger. For every measured number EP finds the normal noise, about a moved number, that stands for it
given all the others: a number that the others contradict counts less, the rest count more. The density
is log-concave, so variances stay positive; an iteration that has not converged costs accuracy only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, cholesky
from scipy.linalg.lapack import dpotri
from scipy.special import erfcx, log_ndtr

from privgp.types import Array

SHARES = (0.9,) * 6 + (0.5,) * 10 + (0.2,) * 20  # of the way, step by step
CLOSE = 0.01
LEAST = 1e-6  # times 1 / b^2: the precision of a number that all others contradict
_LOG_ROOT = 0.5 * np.log(2.0 * np.pi)


@dataclass(frozen=True)
class Sites:
    """Normal observations that stand for the measured ones.

    Attributes
    ----------
    values, variances : (measured,), the numbers and their noise
    factor : lower Cholesky factor of their covariance
    log_evidence : log evidence of the measured numbers

    """

    values: Array
    variances: Array
    factor: Array
    log_evidence: float


def find_sites(
    signal: Array, t: Array, noise_std: float, laplace: NDArray[np.bool_] | None = None
) -> Sites:
    """Sites of ``t = g + noise`` with g normal and Laplace noise.

    Parameters
    ----------
    signal
        (measured, measured), the covariance of g.
    t
        (measured,), the numbers.
    noise_std
        std of the noise on each.
    laplace
        (measured,), where the noise is Laplace noise, everywhere by default; numbers with
        normal noise are their own sites.

    Notes
    -----
    If expectation propagation has not settled, all noise is taken for normal: that costs
    accuracy, never privacy, as everything here is post-processing.

    """
    laplace = np.ones(len(t), dtype=bool) if laplace is None else laplace
    b = noise_std / np.sqrt(2.0)
    values, variances = t.copy(), np.full(len(t), noise_std**2)
    change = np.inf
    for share in SHARES:
        factor, mean, spread = _posterior(signal, values, variances)
        cavity, centre = _cavity(mean, spread, values, variances)
        _, slope, bend = _log_normaliser(t, centre, cavity, b)
        left = 1.0 + cavity * bend  # tilted variance over the cavity's
        precision = np.maximum(-bend / left, LEAST / b**2)
        shift = precision * centre + slope / left
        new = (1.0 - share) / variances + share * precision
        moved = ((1.0 - share) * values / variances + share * shift) / new
        change = np.abs(new * variances - 1.0)[laplace].max()
        values = np.where(laplace, moved, values)
        variances = np.where(laplace, 1.0 / new, variances)
        if change < CLOSE:
            break
    if not change < 10.0 * CLOSE:  # as normal noise, then
        values, variances = t, np.full(len(t), noise_std**2)
    factor, mean, spread = _posterior(signal, values, variances)
    cavity, centre = _cavity(mean, spread, values, variances)
    log_norm = _log_normaliser(t, centre, cavity, b)[0]
    both = cavity + variances
    half = cho_solve((factor, True), values, check_finite=False)
    evidence = -0.5 * float(values @ half) - float(np.log(np.diag(factor)).sum())
    evidence -= len(t) * _LOG_ROOT
    each = log_norm + _LOG_ROOT + 0.5 * np.log(both) + 0.5 * (centre - values) ** 2 / both
    evidence += float(np.sum(each[laplace]))
    return Sites(values, variances, factor, evidence)


def _posterior(signal: Array, values: Array, variances: Array) -> tuple[Array, Array, Array]:
    """The factor of cov(values), and mean and variance of every g given all of them."""
    S = signal.copy()
    S.flat[:: len(S) + 1] += variances
    factor = cholesky(S, lower=True, overwrite_a=True, check_finite=False)
    inverse = dpotri(factor, lower=1)[0]  # its lower half
    mean = values - variances * cho_solve((factor, True), values, check_finite=False)
    spread = variances - variances**2 * np.diag(inverse)
    return factor, mean, np.clip(spread, 1e-9 * variances, (1.0 - 1e-9) * variances)


def _cavity(mean: Array, spread: Array, values: Array, variances: Array) -> tuple[Array, Array]:
    """Variance and mean of every g given all the others."""
    cavity = 1.0 / (1.0 / spread - 1.0 / variances)
    return cavity, cavity * (mean / spread - values / variances)


def _log_normaliser(t: Array, centre: Array, cavity: Array, b: float) -> tuple[Array, Array, Array]:
    """Log of ``Z = E Laplace(t - g; b)`` for normal g, and its first two derivatives by the centre."""
    s = np.sqrt(cavity)
    d = t - centre
    alpha, beta = (d - cavity / b) / s, (-d - cavity / b) / s
    below, above = -d / b + log_ndtr(alpha), d / b + log_ndtr(beta)
    both = np.logaddexp(below, above)
    w = np.exp(below - both)
    root = np.sqrt(0.5)  # normal density over distribution function: no squares, which overflow
    hazard = (1.0 / erfcx(-root * alpha) + 1.0 / erfcx(-root * beta)) / (s * np.sqrt(0.5 * np.pi))
    log_norm = both + 0.5 * cavity / b**2 - np.log(2.0 * b)
    bend = 2.0 / b * w * (1.0 - w) * (2.0 / b - hazard)
    bend = np.clip(bend, -(1.0 - 1e-6) / cavity, 0.0)
    return log_norm, (2.0 * w - 1.0) / b, bend
