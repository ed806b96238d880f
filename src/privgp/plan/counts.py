"""How many records each bin holds: a weak public prior, and what a noisy measurement leaves of it."""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import log_ndtr
from sklearn.gaussian_process.kernels import Matern

from privgp.plan.bins import Bins, centres
from privgp.plan.functionals import Functionals
from privgp.plan.kernels import evaluate, variance
from privgp.plan.priors import Hyperparameters
from privgp.types import Array

SMOOTH_SHARE = 0.8  # of the counts' prior variance; the rest is independent from bin to bin
LEAST_SHARE = 1e-3  # of the even count, so that no bin is taken for certainly empty


def count_prior(bins: Bins) -> tuple[Array, Array]:
    """Mean and covariance of the counts beforehand: even, give or take as much, partly smooth."""
    even = bins.rows / bins.count
    places = (centres(bins.low, bins.high, bins.shape) - bins.low) / (bins.high - bins.low)
    smooth = evaluate(Matern(np.sqrt(len(bins.shape) / 12.0), nu=1.5), places)
    covariance = SMOOTH_SHARE * smooth
    covariance.flat[:: bins.count + 1] += 1.0 - SMOOTH_SHARE
    return np.full(bins.count, even), even**2 * covariance


def counts_given(bins: Bins, noise_std: float, noisy: Array | None) -> tuple[Array, Array]:
    """Mean and covariance of the true counts given ``B n`` plus noise and that they sum to the rows.

    Gaussian first, then not negative bin by bin. Without a measurement: the even counts, with the
    covariance that a measurement will leave.
    """
    mean, covariance = count_prior(bins)
    B = np.vstack([bins.matrix, np.ones(bins.count)])
    CB = covariance @ B.T
    S = B @ CB
    S.flat[:: len(S) + 1] += np.append(np.full(len(bins.matrix), noise_std**2), 1e-9 * S[-1, -1])
    gain = cho_solve(cho_factor(S), CB.T).T
    covariance = covariance - gain @ CB.T
    if noisy is None:
        return mean, covariance
    mean = mean + gain @ (np.append(noisy, bins.rows) - B @ mean)
    std = np.sqrt(np.maximum(np.diag(covariance), 1e-12 * mean.sum()))
    positive, spread = _not_negative(mean, std)
    shrink = spread / std
    positive = np.maximum(positive, LEAST_SHARE * bins.rows / bins.count)
    return positive * (bins.rows / positive.sum()), covariance * np.outer(shrink, shrink)


def _not_negative(centre: Array, std: Array) -> tuple[Array, Array]:
    """Mean and std of N(centre, std^2) given that it is not negative."""
    z = centre / std
    hazard = np.exp(-0.5 * z * z - 0.5 * np.log(2.0 * np.pi) - log_ndtr(z))
    share = np.clip(1.0 - hazard * (z + hazard), 1e-6, 1.0)
    return std * (z + hazard), std * np.sqrt(share)


def bin_functionals(
    bins: Bins,
    counts: Array,
    covariance: Array,
    model: Hyperparameters,
    squares: Array | None = None,
) -> Functionals:
    """The measured sums as functionals of f at the bins' centres.

    With ``counts`` expected in the bins, their ``covariance``, and F the values of f there:
    ``s = counts F + (n - counts) F + scatter``. The second term has covariance
    ``covariance * E[F F^T]``, entry by entry (``squares``; under ``model`` unless given); the third,
    of f within a bin and of outputs about f, ``counts (within + s^2)``.
    """
    nodes = centres(bins.low, bins.high, bins.shape)
    K = evaluate(model.kernel, nodes)
    B, A = bins.matrix, bins.matrix * counts
    noise_gram = A @ B.T
    within = _within(bins, model)
    fixed = B @ (covariance * (K if squares is None else squares)) @ B.T
    return Functionals(
        nodes=nodes,
        weights=A,
        noise_gram=noise_gram,
        residual_gram=within * noise_gram,
        energy_total=float(bins.rows),
        energy_gram=np.diag(counts),
        energy_cross=A.T,
        energy_noise_gram=noise_gram,
        fixed_gram=0.5 * (fixed + fixed.T),
    )


def _within(bins: Bins, model: Hyperparameters) -> float:
    """The share of f's variance between a record evenly in a bin and the bin's centre.

    Half the mean square difference: as much as a value varies about its bin's average.
    """
    half = 0.5 * (bins.high - bins.low) / np.array(bins.shape)
    corners = centres(-half, half, (4,) * len(bins.shape))
    cross = evaluate(model.kernel, corners, np.zeros((1, len(half))))
    return float(np.mean(1.0 - cross / variance(model.kernel)))
