"""How many records each bin holds: a weak public prior, and what a noisy measurement leaves of it."""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.optimize import nnls
from sklearn.gaussian_process.kernels import Matern

from privgp.gp.kernels.evaluate import evaluate, variance
from privgp.gp.kernels.integral import integral_gram
from privgp.gp.measurement import Functionals
from privgp.gp.priors import Hyperparameters
from privgp.plan.bins.bins import Bins
from privgp.plan.labels import outcome_model
from privgp.types import Array

# How uneven counts may be: their prior std over the even count, and the share of its square that
# is smooth over the domain (the rest is independent from bin to bin). The first is what plans take.
UNEVENNESS = ((1.0, 0.8), (0.3, 0.8), (2.0, 0.8), (1.0, 0.3), (2.0, 0.3), (4.0, 0.1), (16.0, 0.01))
TOTAL_STD = 1.0  # of an unknown total over what is expected of it
LEAST_SHARE = 1e-3  # of the even count, so that no bin is taken for certainly empty


def count_prior(bins: Bins, even: float, std: float, smooth_share: float) -> tuple[Array, Array]:
    """Mean, (bins,), and covariance, (bins, bins), of the counts beforehand.

    Parameters
    ----------
    bins
        The grid, and whether the total is known.
    even
        The count of every bin if they were equal.
    std
        How uneven counts may be, relative to the even count.
    smooth_share
        The share of that variance that is smooth over the domain.

    """
    places = (bins.centres() - bins.low) / (bins.high - bins.low)
    smooth = evaluate(Matern(np.sqrt(len(bins.shape) / 12.0), nu=1.5), places)
    covariance = smooth_share * smooth
    covariance.flat[:: bins.count + 1] += 1.0 - smooth_share
    covariance = (std * even) ** 2 * covariance
    if bins.weighted:  # the total, too, is known from its measurement alone
        covariance += (TOTAL_STD * even) ** 2
    return np.full(bins.count, even), covariance


def counts_after_noise(bins: Bins, noise_std: float, noisy: Array | None) -> tuple[Array, Array]:
    """Mean and covariance of the true counts given ``B n`` plus noise and that they sum to the
    rows; the latter is not known where records have weights.

    As uneven beforehand as explains the measurement best, and not negative.

    Parameters
    ----------
    bins
        The grid, and the sums that were measured.
    noise_std
        std of the noise on every number of ``noisy``.
    noisy
        (measured,), B n plus noise; None before it is measured, which gives the even counts with
        the covariance that a measurement will leave.

    """
    known = not bins.weighted  # the total
    B = np.vstack([bins.matrix, np.ones((int(known), bins.count))])
    total = bins.prior_total if known else _total_after_noise(bins, noise_std, noisy)
    choices = []
    for std, smooth_share in UNEVENNESS:
        mean, covariance = count_prior(bins, total / bins.count, std, smooth_share)
        CB = covariance @ B.T
        S = B @ CB
        exact = np.full(int(known), 1e-9 * S[-1, -1])
        S.flat[:: len(S) + 1] += np.append(np.full(len(bins.matrix), noise_std**2), exact)
        factor = cho_factor(S)
        left = covariance - CB @ cho_solve(factor, CB.T)
        if noisy is None:
            return mean, left
        off = np.append(noisy, np.full(int(known), total)) - B @ mean
        solved = cho_solve(factor, off)
        evidence = -0.5 * float(off @ solved) - float(np.log(np.diag(factor[0])).sum())
        # A sum that is known is no evidence: its own scale must not count.
        evidence += 0.5 * float(np.log(S[-1, -1])) if known else 0.0
        choices.append((evidence, mean, covariance, left))
    assert noisy is not None
    _, mean, covariance, left = max(choices, key=lambda choice: choice[0])
    return _most_plausible(bins, noise_std, noisy, mean, covariance), left


def _total_after_noise(bins: Bins, noise_std: float, noisy: Array | None) -> float:
    """What all weights add up to, as the measurement tells it; what is expected before it."""
    if noisy is None:
        return bins.prior_total
    to_total = np.linalg.lstsq(bins.matrix.T, np.ones(bins.count))[0]
    std = noise_std * float(np.linalg.norm(to_total))
    return min(max(float(to_total @ noisy), std, LEAST_SHARE * bins.rows), float(bins.rows))


def _most_plausible(
    bins: Bins, noise_std: float, noisy: Array, mean: Array, covariance: Array
) -> Array:
    """The most plausible counts that are not negative, by non-negative least squares.

    An estimate cut off at zero would move records from full bins to empty ones.
    """
    root = np.linalg.cholesky(covariance)
    prior = solve_triangular(root, np.eye(bins.count), lower=True)
    sure = 0.0 if bins.weighted else 1e3 / noise_std
    rows = np.vstack([bins.matrix / noise_std, np.full((1, bins.count), sure), prior])
    goal = np.concatenate([noisy / noise_std, [sure * bins.rows], prior @ mean])
    counts = np.maximum(nnls(rows, goal)[0], LEAST_SHARE * mean)
    return counts if bins.weighted else np.asarray(counts * (bins.rows / counts.sum()))


def bin_functionals(
    bins: Bins,
    counts: Array,
    covariance: Array,
    model: Hyperparameters,
    squares: Array | None = None,
    unit: float | None = None,
) -> Functionals:
    """The measured sums as functionals of f, for records spread evenly within their bins.

    With F the averages of f over the bins: ``s = counts F + (n - counts) F + scatter``. The
    second term has covariance ``covariance * E[F F^T]``, entry by entry; the third, of f within
    a bin and of outputs about f, ``counts (k(x, x) - var F + s^2)``.

    Parameters
    ----------
    bins
        The grid, and the sums to measure.
    counts
        (bins,), expected in the bins.
    covariance
        (bins, bins), of the counts.
    model
        Model of f.
    squares
        E[F F^T], (bins, bins); under ``model`` by default.
    unit
        If outputs are counts, the rate that rates are multiples of.

    """
    model = outcome_model(model, unit)
    nodes, shares = bins.nodes()
    B, A = bins.matrix, bins.matrix * counts
    noise_gram = A @ B.T
    scatter, residual = B * np.sqrt(counts), 1.0
    if len(shares) == 1:  # small bins: the share of f's variance within them need not be exact
        width = bins.widths[None, :]
        average = integral_gram(model.kernel, np.zeros_like(width), width)[0, 0]
        residual = max(0.0, 1.0 - float(average) / variance(model.kernel))
        scatter = np.zeros_like(B)
    if squares is None:
        squares = bins.average_over_bins(evaluate(model.kernel, nodes))
    fixed = B @ (covariance * squares) @ B.T
    weights = np.asarray(np.kron(A, shares), dtype=np.float64)
    found = Functionals(
        nodes=nodes,
        weights=weights,
        noise_gram=noise_gram,
        residual_gram=residual * noise_gram,
        energy_total=float(counts.sum()) if bins.weighted else float(bins.rows),
        energy_gram=np.diag(np.kron(counts, shares)),
        energy_cross=weights.T,
        energy_noise_gram=noise_gram,
        fixed_gram=0.5 * (fixed + fixed.T),
        scatter=scatter,
        shares=shares,
    )
    return found if unit is None else found.in_units(unit)
