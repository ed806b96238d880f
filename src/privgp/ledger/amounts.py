"""Amounts as whole numbers of 1e-40, rounded up: no spending is so small that it costs nothing.

An epsilon or a delta is read as the decimal it is written as, so that ten times 0.1 is 1. The float
may be larger by half a unit in its last place: docs/proofs/ledger.md says who pays for that."""

import math
from fractions import Fraction

from scipy.special import log_expit, ndtri_exp

UNIT = 10**40
MOST = 10**12 * UNIT
SMALL = 0.01  # below, the quantile is computed from a difference that cancels


def up(value: Fraction) -> int:
    """A number that is not negative, in units of 1e-40, rounded up; ValueError above 1e12."""
    amount = math.ceil(value * UNIT)
    if value < 0 or amount > MOST:
        raise ValueError("a charge must lie between 0 and 1e12.")
    return amount


def decimal(value: float) -> int:
    """An epsilon or a delta in units of 1e-40, by its shortest decimal."""
    if not math.isfinite(value):
        raise ValueError("a charge must be finite.")
    return up(Fraction(repr(float(value))))


def mu_square(noise_multiplier: float) -> int:
    """``mu^2 = 1 / c^2`` of a Gaussian mechanism in units of 1e-40, of the very float c."""
    if not 0 < noise_multiplier < math.inf:
        raise ValueError("a noise multiplier must be positive and finite.")
    return up(1 / Fraction(noise_multiplier) ** 2)


def mu_square_of_pure(epsilon: float) -> int:
    """``mu^2`` of the least Gaussian mechanism that an epsilon-private step is a post-processing
    of.

    ``mu = 2 Phi^-1(e^eps / (1 + e^eps))``, at most ``sqrt(pi / 2) eps``; in units of 1e-40.
    """
    if not 0 <= epsilon < math.inf:
        raise ValueError("a charge must be finite.")
    most = Fraction(math.pi) / 2 * Fraction(epsilon) ** 2 * (1 + Fraction(1, 10**12))
    if epsilon < SMALL:
        return up(most)
    mu = -2.0 * float(ndtri_exp(log_expit(-epsilon))) * (1.0 + 1e-9)
    return up(min(most, Fraction(mu) ** 2))


def below(amount: int) -> float:
    """The amount as a float that is not larger."""
    exact = Fraction(amount, UNIT)
    near = float(exact)
    return near if Fraction(near) <= exact else math.nextafter(near, -math.inf)


def decimal_below(amount: int) -> float:
    """The amount as a float whose decimal is not larger: charged again, it fits."""
    near = float(Fraction(amount, UNIT))
    while Fraction(repr(near)) * UNIT > amount:
        near = math.nextafter(near, -math.inf)
    return near


def above(amount: int) -> float:
    """The amount as a float that is not smaller."""
    return -below(-amount)
