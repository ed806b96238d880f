"""Noise on a lattice instead of floating-point noise: how much a budget needs, and what it spends.

Gaussian noise with lattice spacing h, std s, ``a = h / s`` and m numbers is
``(eps + eta, delta_BW(eps) + m tau + delta0)``-private: docs/proofs/sample.md. Laplace noise is
pure: m numbers that move by at most ``Delta`` in the 1-norm move by ``Delta + m h`` once rounded to
the lattice, and scale b then gives exactly ``(Delta + m h) / b``: docs/proofs/binned.md.

Numbers measured one by one share a budget: number t has multiplier ``c_t = c / sqrt(w_t)``, shares
adding up to at most 1, so ``sum 1/c_t^2 <= 1/c^2`` whatever is asked: docs/proofs/bayes.md."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import ClassVar, get_args

import numpy as np

from privgp.privacy.budget import check_budget, gaussian_multiplier
from privgp.privacy.guarantee import EPSILON_SLACK, Event
from privgp.types import Array, Count, Exponent, Positive, Share

GAUSSIAN, LAPLACE = "gaussian", "laplace"
ON_LATTICE = "on a lattice of powers of two (OpenDP), cryptographic randomness"
GAUSSIAN_SAMPLER = f"discrete Gaussian {ON_LATTICE}"
LAPLACE_SAMPLER = f"discrete Laplace {ON_LATTICE}"
DELTA_SLACK = 2.0**-40
DEPTHS = (40, 50, 60)
SMALLEST_SHARE = 1e-6
SAME_NOISE = 1e-9  # the order of sums may change the last digits
# Beyond these, what underflows or overflows is no longer nothing: docs/proofs/measure.md.
LEAST_SENSITIVITY, LARGEST_SENSITIVITY = 1e-130, 1e130


@dataclass(frozen=True)
class GaussianNoise:
    """Independent Gaussian noise for ``size`` numbers, on the multiples of ``2**exponent``.

    Attributes
    ----------
    law, pure, sampler : the same for all noise of this kind
    size : how many numbers it is drawn for
    std : std of every number, in the numbers' own units
    exponent : the lattice spacing is ``2**exponent``
    multiplier : std over the sensitivity that includes rounding to the lattice and float error
    delta_slack : m tau + delta0, what the lattice adds to delta (docs/proofs/sample.md)

    """

    law: ClassVar[str] = GAUSSIAN
    pure: ClassVar[bool] = False
    sampler: ClassVar[str] = GAUSSIAN_SAMPLER
    size: Count
    std: Positive
    exponent: Exponent
    multiplier: Positive
    delta_slack: Share

    @property
    def scale(self) -> float:
        """The parameter of the distribution: the standard deviation."""
        return self.std

    @property
    def event(self) -> Event:
        """The cost of drawing it, for accountants."""
        return Event(noise_multipliers=(self.multiplier,), delta_slack=self.delta_slack)

    def describe(self) -> str:
        """Its name in sentences."""
        return "Gaussian noise"

    def log_density(self, errors: Array) -> Array:
        """The log-density of these errors up to a constant, elementwise; audits attack with it."""
        return np.asarray(-0.5 * np.square(errors / self.std))

    def with_size(self, size: int, factor: float = 1.0) -> GaussianNoise:
        """The same for another number of values, its std multiplied by ``factor``; for audits only."""
        return replace(self, size=size, std=self.std * factor)

    @classmethod
    def least(
        cls, epsilon: float, delta: float, size: int, sensitivity: float, float_error: float
    ) -> GaussianNoise:
        """The least noise of this kind for a budget, as ``gaussian_noise``."""
        return gaussian_noise(epsilon, delta, size, sensitivity, float_error)


@dataclass(frozen=True)
class LaplaceNoise:
    """Independent Laplace noise for ``size`` numbers, on the multiples of ``2**exponent``.

    Attributes
    ----------
    law, pure, sampler : the same for all noise of this kind
    size : how many numbers it is drawn for
    scale : b, the mean absolute error, in the numbers' own units
    exponent : the lattice spacing is ``2**exponent``
    epsilon : its cost; no delta is needed

    """

    law: ClassVar[str] = LAPLACE
    pure: ClassVar[bool] = True
    sampler: ClassVar[str] = LAPLACE_SAMPLER
    size: Count
    scale: Positive
    exponent: Exponent
    epsilon: Positive

    @property
    def std(self) -> float:
        """sqrt(2) b: what posteriors and plans use."""
        return math.sqrt(2.0) * self.scale

    @property
    def event(self) -> Event:
        """The cost of drawing it, for accountants."""
        return Event(pure_epsilons=(self.epsilon,))

    def describe(self) -> str:
        """Its name in sentences."""
        return "Laplace noise"

    def log_density(self, errors: Array) -> Array:
        """The log-density of these errors up to a constant, elementwise; audits attack with it."""
        return np.asarray(-np.abs(errors) / self.scale)

    def with_size(self, size: int, factor: float = 1.0) -> LaplaceNoise:
        """The same for another number of values, its scale times ``factor``; for audits only."""
        return replace(self, size=size, scale=self.scale * factor)

    @classmethod
    def least(
        cls, epsilon: float, delta: float, size: int, sensitivity: float, float_error: float
    ) -> LaplaceNoise:
        """The least noise of this kind for a budget, as ``laplace_noise``; delta is not used."""
        return laplace_noise(epsilon, size, sensitivity, float_error)


# Independent noise for ``size`` numbers on the multiples of ``2**exponent``; a new law is one more.
# ``pure``: it needs no delta, and sensitivities are sums of absolute values, not Euclidean norms;
# ``event``: what drawing it spends; ``least``: the least for a budget. For audits: ``log_density``, of
# the noise in every number, up to a constant; ``resized``, for another size, its scale multiplied.
Noise = GaussianNoise | LaplaceNoise
LAWS: dict[str, type[Noise]] = {kind.law: kind for kind in get_args(Noise)}
PURE = tuple(law for law, kind in LAWS.items() if kind.pure)
NOT_PURE = tuple(law for law, kind in LAWS.items() if not kind.pure)


def noise_for(
    law: str, epsilon: float, delta: float, size: int, sensitivity: float, float_error: float
) -> Noise:
    """The least noise of a distribution for which ``size`` numbers are (epsilon, delta)-private.

    Parameters
    ----------
    law
        "gaussian" or "laplace".
    epsilon, delta
        The budget; pure noise ignores delta.
    size
        How many numbers are measured.
    sensitivity
        How far one person moves the exact numbers, in the norm of the distribution: the
        sum of absolute values for pure noise, otherwise Euclidean.
    float_error
        a bound of the numbers' rounding error, in that norm.

    """
    return LAWS[law].least(epsilon, delta, size, sensitivity, float_error)


def gaussian_noise(
    epsilon: float, delta: float, size: int, sensitivity: float, float_error: float
) -> GaussianNoise:
    """The least Gaussian noise for which ``size`` numbers are (epsilon, delta)-private.

    Parameters
    ----------
    epsilon, delta
        The budget; delta must be positive.
    size
        How many numbers are measured.
    sensitivity
        How far one person moves the exact numbers, Euclidean norm.
    float_error
        a bound of the numbers' rounding error, Euclidean norm.

    Returns
    -------
    GaussianNoise
        Its std covers the float error twice and the rounding to the lattice once.

    Raises
    ------
    ValueError
        The budget is too small for a lattice, or nothing would be measured.

    """
    multiplier, depth, slack = lattice_multiplier(epsilon, delta, size)
    return noise_from_multiplier(multiplier, size, sensitivity, float_error, depth, slack)


def lattice_multiplier(epsilon: float, delta: float, size: int) -> tuple[float, int, float]:
    """The noise multiplier for numbers on a lattice, docs/proofs/sample.md.

    Parameters
    ----------
    epsilon, delta
        The budget for all numbers together.
    size
        How many numbers.

    Returns
    -------
    multiplier : float
        Noise std over the sensitivity after rounding.
    depth : int
        The spacing is at most 2^(1 - depth) standard deviations.
    slack : float
        What the lattice takes of delta.

    """
    check_budget(epsilon, delta)
    for depth in DEPTHS:
        ratio = 2.0 ** (1 - depth)  # a = h / sigma is at most this
        slack = size * ratio**2 / 16.0 + DELTA_SLACK * delta
        if slack < delta and _spill(epsilon, delta, size, ratio) <= EPSILON_SLACK * epsilon:
            multiplier = gaussian_multiplier(epsilon * (1.0 - EPSILON_SLACK), delta - slack)
            return multiplier, depth, slack
    numbers = "1 number" if size == 1 else f"{size} numbers"
    raise ValueError(
        f"epsilon={epsilon:g}, delta={delta:g} are too small for {numbers} on a lattice."
    )


def noise_from_multiplier(
    multiplier: float,
    size: int,
    sensitivity: float,
    float_error: float,
    depth: int = DEPTHS[0],
    delta_slack: float = 0.0,
) -> GaussianNoise:
    """Gaussian noise with a given multiplier of the sensitivity after rounding to the lattice.

    Parameters
    ----------
    multiplier
        Noise std over sensitivity.
    size, sensitivity, float_error
        As in ``gaussian_noise``.
    depth
        How many bits of the std lie above the lattice spacing.
    delta_slack
        The lattice's part of delta, as ``lattice_multiplier`` gave it.

    """
    moved = _distance_with_error(size, sensitivity, float_error)
    exponent = math.floor(math.log2(multiplier * moved)) - depth
    total = moved + math.sqrt(size) * 2.0**exponent
    std = multiplier * total * (1.0 + 2.0**-50)
    return GaussianNoise(size, std, exponent, multiplier, delta_slack)


def laplace_noise(
    epsilon: float, size: int, sensitivity: float, float_error: float
) -> LaplaceNoise:
    """The least Laplace noise for which ``size`` numbers are (epsilon, 0)-private.

    Parameters
    ----------
    epsilon
        The budget.
    size
        How many numbers are measured.
    sensitivity
        How far one person moves the exact numbers, in the sum of absolute values.
    float_error
        a bound of the numbers' rounding error in that norm.

    Notes
    -----
    Rounding to spacing h adds ``size * h`` to the sensitivity: docs/proofs/binned.md.

    """
    check_budget(epsilon, 0.0, pure=True)
    moved = _distance_with_error(size, sensitivity, float_error)
    exponent = math.floor(math.log2(moved / epsilon)) - DEPTHS[0]
    total = moved + size * 2.0**exponent
    return LaplaceNoise(size, total / epsilon * (1.0 + 2.0**-40), exponent, epsilon)


def budget_shares(numbers: Sequence[float]) -> tuple[float, ...]:
    """Positive shares that add up to 1, from positive numbers.

    Raises
    ------
    ValueError
        A number is missing, not positive or not finite, or its share is below 1e-6.

    """
    try:
        values = [float(number) for number in numbers if isinstance(number, Real)]
    except OverflowError:
        values = [math.inf]
    if len(values) != len(numbers) or not values or not all(0 < v < math.inf for v in values):
        raise ValueError("budget_split must hold positive numbers, one for every step.")
    largest = max(values)
    total = math.fsum(value / largest for value in values)
    parts = tuple(value / largest / total for value in values)
    if min(parts) < SMALLEST_SHARE:
        raise ValueError(f"budget_split has a share below {SMALLEST_SHARE:g} of the whole.")
    return parts


def noise_of_shares(
    epsilon: float, delta: float, shares: Sequence[float], sensitivity: float
) -> tuple[GaussianNoise, ...]:
    """The noise of every number measured one by one, so that all are (epsilon, delta)-private.

    The lattice adds to delta what it adds for that many numbers together; each gets an equal
    part.

    Parameters
    ----------
    epsilon, delta
        The budget of all numbers together.
    shares
        The part of 1/c^2 that each number spends; they add up to at most 1.
    sensitivity
        The most one person moves any one of them, float error included.

    Returns
    -------
    tuple of GaussianNoise
        One per share, each for a single number.

    Notes
    -----
    docs/proofs/bayes.md: number t has the multiplier ``c / sqrt(w_t)``.

    """
    size = len(shares)
    whole, depth, slack = lattice_multiplier(epsilon, delta, size)
    whole_up = whole * (1.0 + 2.0**-40)
    parts = tuple(
        noise_from_multiplier(whole_up / math.sqrt(share), 1, sensitivity, 0.0, depth, slack / size)
        for share in shares
    )
    if math.fsum(part.multiplier**-2.0 for part in parts) > whole**-2.0:
        raise ValueError("the shares of the budget add up to more than the whole.")
    return parts


def _distance_with_error(size: int, sensitivity: float, float_error: float) -> float:
    """How far computed numbers move, before they are rounded to the lattice."""
    if not sensitivity >= LEAST_SENSITIVITY or size < 1:
        raise ValueError(
            "nothing would be measured (its sensitivity is 0 or next to it): choose targets nearer to the inputs or "
            "a longer lengthscale."
        )
    moved = sensitivity + 2.0 * float_error
    if not sensitivity <= moved <= LARGEST_SENSITIVITY:
        raise ValueError("what would be measured is too large for its noise: choose other units.")
    return moved


def _spill(epsilon: float, delta: float, size: int, ratio: float) -> float:
    """eta: the bound of the log-ratio between rounded and lattice noise, except with probability delta0."""
    s = epsilon - math.log(DELTA_SLACK * delta)
    norm = math.sqrt(size) * (1.0 + ratio / 2.0) + math.sqrt(2.0 * s)
    return ratio**2 * norm**2 / 24.0 + 3.0 * size * math.exp(-19.7 / ratio**2)
