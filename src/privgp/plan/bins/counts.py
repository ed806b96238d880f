"""How many records each bin holds: a weak public prior, and what a noisy measurement leaves of it."""

from __future__ import annotations

from numbers import Integral

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.optimize import nnls
from sklearn.gaussian_process.kernels import Matern

from privgp.gp.kernels.evaluate import evaluate, variance
from privgp.gp.kernels.integral import integral_gram
from privgp.gp.measurement import Functionals
from privgp.gp.priors import Hyperparameters
from privgp.plan.bins.bins import Bins, Grid
from privgp.plan.labels import outcome_model
from privgp.types import Array, Pair, UserData

# How uneven counts may be: their prior std over the even count, and the share of its square that
# is smooth over the domain (the rest is independent from bin to bin). The first is what plans take.
UNEVENNESS = ((1.0, 0.8), (0.3, 0.8), (2.0, 0.8), (1.0, 0.3), (2.0, 0.3), (4.0, 0.1), (16.0, 0.01))
LEAST_SHARE = 1e-3  # of the even count, so that no bin is taken for certainly empty


def count_prior(bins: Bins, std: float, smooth_share: float) -> tuple[Array, Array]:
    """Mean, (bins,), and covariance, (bins, bins), of the counts beforehand.

    Parameters
    ----------
    bins
        With the number of records, which is public.
    std
        How uneven counts may be, relative to the even count.
    smooth_share
        The share of that variance that is smooth over the domain.

    """
    even = bins.rows / bins.count
    places = (bins.centres() - bins.low) / (bins.high - bins.low)
    smooth = evaluate(Matern(np.sqrt(len(bins.shape) / 12.0), nu=1.5), places)
    covariance = smooth_share * smooth
    covariance.flat[:: bins.count + 1] += 1.0 - smooth_share
    return np.full(bins.count, even), (std * even) ** 2 * covariance


def counts_after_noise(bins: Bins, noise_std: float, noisy: Array | None) -> tuple[Array, Array]:
    """Mean and covariance of the true counts given ``B n`` plus noise and that they sum to the
    rows.

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
    B = np.vstack([bins.matrix, np.ones(bins.count)])
    choices = []
    for std, smooth_share in UNEVENNESS:
        mean, covariance = count_prior(bins, std, smooth_share)
        CB = covariance @ B.T
        S = B @ CB
        exact = 1e-9 * S[-1, -1]
        S.flat[:: len(S) + 1] += np.append(np.full(len(bins.matrix), noise_std**2), exact)
        factor = cho_factor(S)
        left = covariance - CB @ cho_solve(factor, CB.T)
        if noisy is None:
            return mean, left
        off = np.append(noisy, bins.rows) - B @ mean
        solved = cho_solve(factor, off)
        evidence = -0.5 * float(off @ solved) - float(np.log(np.diag(factor[0])).sum())
        # The sum is known and is no evidence: its own scale must not count.
        evidence += 0.5 * float(np.log(S[-1, -1]))
        choices.append((evidence, mean, covariance, left))
    assert noisy is not None
    _, mean, covariance, left = max(choices, key=lambda choice: choice[0])
    return _most_plausible(bins, noise_std, noisy, mean, covariance), left


def _most_plausible(
    bins: Bins, noise_std: float, noisy: Array, mean: Array, covariance: Array
) -> Array:
    """The most plausible counts that are not negative, by non-negative least squares.

    An estimate cut off at zero would move records from full bins to empty ones.
    """
    root = np.linalg.cholesky(covariance)
    prior = solve_triangular(root, np.eye(bins.count), lower=True)
    total = np.full((1, bins.count), 1e3 / noise_std)
    rows = np.vstack([bins.matrix / noise_std, total, prior])
    goal = np.concatenate([noisy / noise_std, [1e3 * bins.rows / noise_std], prior @ mean])
    counts = np.maximum(nnls(rows, goal)[0], LEAST_SHARE * bins.rows / bins.count)
    return np.asarray(counts * (bins.rows / counts.sum()))


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
        energy_total=float(bins.rows),
        energy_gram=np.diag(np.kron(counts, shares)),
        energy_cross=weights.T,
        energy_noise_gram=noise_gram,
        fixed_gram=0.5 * (fixed + fixed.T),
        scatter=scatter,
        shares=shares,
    )
    return found if unit is None else found.in_units(unit)


BINS = (64, 20, 8, 5, 4)  # per input at most, for one to five inputs
FINE_BINS, MANY = (128, 24, 8, 5, 4), 5000  # the same for at least this many points
PER_POINT = 0.4  # bins per point and unit of epsilon at most: in more, noise drowns the points
MOST_BINS = 1600
LEAST_TOLD = 0.5  # points in a bin: fewer are not told from none
REPLACED = 2.0  # counts that one replaced point changes, by 1 each
NODES = (4, 2, 1, 1, 1)  # of Gauss-Legendre in either half of a bin, for one to five inputs


def bins_per_input(bins: UserData, inputs: int, points: int, epsilon: float) -> tuple[int, ...]:
    """How many bins every input has: as declared, else by the public number of points and the budget."""
    if inputs > len(BINS):
        raise ValueError(f"a density is over at most {len(BINS)} inputs, got x_bounds of {inputs}.")
    if bins is None:
        most = (FINE_BINS if points >= MANY else BINS)[inputs - 1]
        useful = int((PER_POINT * points * epsilon) ** (1.0 / inputs))
        return (min(most, max(2, useful)),) * inputs
    whole = isinstance(bins, Integral) and not isinstance(bins, bool)
    if not whole or not bins >= 2 or int(bins) ** inputs > MOST_BINS:
        raise ValueError(
            f"bins must be a whole number of at least 2 per input, at most {MOST_BINS} together."
        )
    return (int(bins),) * inputs


def cell_volume(grid: Grid) -> float:
    """The length, area or volume of a bin."""
    return float(np.prod(grid.widths))


def quadrature(grid: Grid) -> tuple[Array, Array]:
    """Points and weights that integrate over the domain: Gauss and Legendre's in the halves of every
    bin, as functions of the model are smooth but at the centres of bins."""
    x, w = np.polynomial.legendre.leggauss(NODES[len(grid.shape) - 1])
    axes, weights = [], []
    for low, high, count in zip(grid.low, grid.high, grid.shape, strict=True):
        half = (high - low) / (2 * count)
        starts = low + half * np.arange(2 * count)
        axes.append((starts[:, None] + 0.5 * half * (x + 1.0)).ravel())
        weights.append(np.tile(0.5 * half * w, 2 * count))
    points = np.stack([each.ravel() for each in np.meshgrid(*axes, indexing="ij")], axis=1)
    product = np.meshgrid(*weights, indexing="ij")
    return points, np.prod([each.ravel() for each in product], axis=0)


def count_bounds(points: int) -> Pair:
    """Bounds of a count: 0 and the least power of two that is not below the number of points."""
    return 0.0, float(2 ** max(1, int(points - 1).bit_length()))
