"""What rounding does to the law of sample paths, and the noise that hides it.

Units: the kernel is divided by its variance. The computed covariance of the values at all points is
that of the posterior plus a nugget, up to an error of relative size ``spread``; a second, smaller
nugget on a lattice hides the rounding of the values themselves. The laws that are really drawn then
differ from the guaranteed ones by a Renyi divergence of at most ``order * charge``. All of it is
public and known before any record is read. Proof: docs/proofs/path_rounding.md."""

import math
from dataclasses import dataclass

from privgp.gp.arithmetic import UNIT_ROUNDOFF, rounding
from privgp.gp.growing import RUN, sum_error

TARGET = 2.0**-17  # of the spread
LEAST_NUGGET = 2.0**-20
LATTICE_SHARE = 1.0 / 16.0  # of the nugget's variance
LATTICE_DEPTH = 40  # lattice noise of std t lies on multiples of at most 2^-40 t
NORMAL_DEPTH = 52  # normal numbers lies on multiples of 2^-52
MOST_SPREAD = 1.0 / 64.0
UP = 1.0 + 1e-9


@dataclass(frozen=True)
class PathPrecision:
    """Nuggets, and what is left to pay for rounding.

    Attributes
    ----------
    nugget : the variance of the noise in the factor, over the kernel's variance
    lattice_nugget : the variance of the lattice noise that is added last, over the kernel's
    charge : the divergence of order a between the drawn and the guaranteed distribution, divided
        by a, for a from 2 to ``charge_limit``
    charge_limit : the largest order with that bound; 0 if errors cannot be bounded

    """

    nugget: float
    lattice_nugget: float
    charge: float
    charge_limit: float


@dataclass(frozen=True)
class PathSizes:
    """The public numbers that rounding errors depend on.

    Attributes
    ----------
    records, points, paths : how many there are
    ridge : r^2, the noise variance over the kernel's
    extra : variance of the extra noise over the kernel's
    reach : half the width of the outputs' bounds over the kernel's std
    kernel_error : the error of a kernel value, as a share of the variance

    """

    records: int
    points: int
    paths: int
    ridge: float
    extra: float
    reach: float
    kernel_error: float


def path_precision(sizes: PathSizes) -> PathPrecision:
    """The nuggets that hide the rounding of sample paths, and what rounding still costs.

    Returns
    -------
    PathPrecision
        With an infinite charge if there are too many points or records for float64.

    Notes
    -----
    docs/proofs/path_rounding.md. Every number is an upper bound, rounded up.

    """
    m, total = sizes.points, 1.0 + sizes.extra
    gram, entry = gram_error(sizes), entry_error(sizes)
    nugget = max(LEAST_NUGGET * total, 2.0 * m * entry / TARGET) * UP
    lattice = LATTICE_SHARE * nugget
    spread = spread_error(sizes, nugget)
    if not (0.0 < gram <= 0.25 and spread <= MOST_SPREAD and nugget <= total):
        return PathPrecision(nugget, lattice, math.inf, 0.0)
    # Squared errors over the noise that hides them: per squared normal number, and per path.
    # Products, not powers: a number out of range becomes infinite, and is refused.
    largest_row, mean_off = 2.0 * total, mean_error(sizes)
    added_off = 4.0 * UNIT_ROUNDOFF * _outputs(sizes)
    per_normal = 2.0 * spread**2 + 2.0 * m * largest_row * rounding(m + 8) ** 2 / lattice
    mean = 3.0 * m * mean_off * mean_off / nugget
    added = m * added_off * added_off / lattice
    stepped = m * 2.0 ** (-2 * LATTICE_DEPTH)
    normals = m * m * largest_row * 2.0 ** (-2 * NORMAL_DEPTH) / lattice
    per_path = mean + 2.0 * spread**2 + 2.0 * (added + stepped + normals)
    numbers = m * sizes.paths
    charge = 1.5 * (1.3 * per_normal * numbers + sizes.paths * (per_path + 16.0 * stepped))
    return PathPrecision(nugget, lattice, charge * UP, 0.05 / math.sqrt(per_normal))


def gram_error(sizes: PathSizes) -> float:
    """How far ``R R^T`` is from ``K + r^2 I``, spectral norm over r^2; R is the stored factor."""
    n, diagonal = sizes.records, 1.0 + sizes.ridge
    error = n * sizes.kernel_error + 2.0 * UNIT_ROUNDOFF * diagonal
    return (error + 1.01 * n * sum_error(n) * diagonal) / sizes.ridge * UP


def solve_error(sizes: PathSizes) -> float:
    """The relative error of ``R^-1 b``, beside that of b."""
    n, ridge = sizes.records, sizes.ridge
    return 1.01 * sum_error(n) * math.sqrt(n * (1.0 + ridge)) / _root(sizes) * UP


def column_error(sizes: PathSizes) -> float:
    """The norm of the error of a computed column of ``R^-1 k(X, points)``, whose norm is below 1."""
    solved = solve_error(sizes)
    given = math.sqrt(sizes.records) * sizes.kernel_error / _root(sizes)
    return (given + solved * (1.0 + given)) / max(1.0 - solved, 0.5) * UP


def entry_error(sizes: PathSizes) -> float:
    """The error of one entry of the covariance: of its terms, and of factoring them."""
    total, column = 1.0 + sizes.extra, column_error(sizes)
    prior = total * (sizes.kernel_error + 8.0 * UNIT_ROUNDOFF)
    product = 1.01 * sum_error(sizes.records) * (1.0 + column) ** 2
    factored = 1.01 * rounding(2 * RUN + math.ceil(sizes.points / RUN) + 16) * 2.0 * total
    return (prior + 2.0 * column + column**2 + product + factored) * UP


def spread_error(sizes: PathSizes, nugget: float) -> float:
    """The Frobenius norm of the covariance's error relative to the covariance with its nugget."""
    m, gram = sizes.points, gram_error(sizes)
    shifted = math.sqrt(min(sizes.records, m)) * gram / (1.0 - min(gram, 0.5))
    return (m * entry_error(sizes) / nugget + shifted) * UP


def mean_error(sizes: PathSizes) -> float:
    """The error of the posterior mean at one point."""
    gram, solved, column = gram_error(sizes), solve_error(sizes), column_error(sizes)
    outputs = _outputs(sizes)
    shifted = gram / (2.0 * (1.0 - min(gram, 0.5))) * outputs
    computed = column + 1.02 * solved * (1.0 + column)
    product = sum_error(sizes.records) * (1.0 + column) * (1.0 + 1.02 * solved)
    return (shifted + (computed + product) * outputs) * UP


def _outputs(sizes: PathSizes) -> float:
    """A bound of the norm of ``R^-1 y``, and so of the posterior mean anywhere."""
    return math.sqrt(sizes.records) * sizes.reach / _root(sizes) * UP


def _root(sizes: PathSizes) -> float:
    """A lower bound of the least singular value of R, over the kernel's std."""
    return math.sqrt(sizes.ridge * (1.0 - min(gram_error(sizes), 0.25)))
