"""Renyi divergences: of posterior sample paths, composed, and turned into (epsilon, delta). A curve
bounds the divergence of order alpha on an open interval of orders, and is never evaluated outside.
Any order there gives a valid guarantee; none rests on the search. Proofs: docs/proofs/rdp.md."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from scipy.optimize import minimize_scalar

from privgp.types import Within

SMALLEST_STEP = 1e-4
LARGEST_ORDER = 1e9
UP = 1.0 + 1e-12
ROUNDED = 4.0 * 2.0**-52
GRID = 64


@dataclass(frozen=True)
class PathCurve:
    """The divergence between neighbouring distributions of ``paths`` posterior sample paths.

    With s^2 the kernel's variance, e^2 that of the extra noise, w = s^2 V / ((V + r^2)(s^2 +
    e^2)) and m = D / sqrt(s^2 + e^2), for 1 < a < 1 / w:

        D_a <= -log(1 - a (a - 1) w^2 / (1 - w)) / (2 (a - 1)) + a m^2 / (2 (1 - a w)).

    Attributes
    ----------
    influence : w, between 0 and 1
    shift : m, not negative
    paths : how many are drawn of one posterior
    covariance : "sharp", or "paper": the first term is theorem 3.1's, which is larger
    charge : the cost of rounding, the divergence of any order from 2 to ``charge_limit`` between
        drawn and guaranteed distribution divided by the order; see docs/proofs/path_rounding.md
    charge_limit : the largest order of that bound

    """

    influence: float
    shift: float
    paths: int = 1
    covariance: str = "sharp"
    charge: float = 0.0
    charge_limit: Annotated[float, Within(0.0, infinite=True)] = math.inf

    def __post_init__(self) -> None:
        if not (0.0 < self.influence < 1.0 and math.isfinite(self.shift) and self.shift >= 0):
            raise ValueError("a curve needs 0 < influence < 1 and a finite shift, not negative.")
        if self.paths < 1 or self.covariance not in ("sharp", "paper"):
            raise ValueError("a curve needs paths >= 1 and covariance 'sharp' or 'paper'.")
        if not (self.charge >= 0.0 and self.charge_limit >= 0.0):
            raise ValueError("a curve needs a charge and a limit that are not negative.")

    @property
    def limit(self) -> float:
        """Orders alpha must be less than this: 1 / w, rounded down, and where rounding is bounded."""
        return min((1.0 / self.influence) * (1.0 - 1e-12), max(self.charge_limit, 1.0))

    def at(self, order: float) -> float:
        """The bound of the divergence of this order, rounded up; infinite if none is known.

        Parameters
        ----------
        order
            a, above 1 and below ``limit``.

        """
        if not 1.0 < order < self.limit:
            raise ValueError(f"order must lie between 1 and {self.limit}, got {order}.")
        promised = self._divergence(order)
        if self.charge == 0.0 or promised == math.inf:
            return promised
        # Any step is valid; the best is near the one that makes both its costs equal.
        slope = promised * (2.0 + 1.0 / (order - 1.0))
        costs = order * (1.0 + order / (order - 1.0)) * self.charge
        guess = min(math.sqrt(costs / slope), 1.0) if slope > 0.0 else 1.0
        least = 1.01 * order / self.charge_limit if self.charge_limit > 0 else math.inf
        steps = (max(guess * factor, least) for factor in (0.25, 0.5, 1.0, 2.0, 4.0))
        return min(self._triangle_limit(order, step) for step in steps)

    def _triangle_limit(self, order: float, step: float) -> float:
        """From drawn to guaranteed law, to its neighbour, and back: two weak triangle inequalities.
        Orders grow by ``step``; the charge holds from 2 on, and divergences grow with the order."""
        first = max(order * (1.0 + step) / step, 2.0)
        second = order + step * (order - 1.0)
        main = second * (1.0 + step)
        last = max((main - 1.0) / step, 2.0)
        if not (main * self.influence < 1.0 - 1e-12 and max(first, last) <= self.charge_limit):
            return math.inf
        before = (order - step / (1.0 + step)) / (order - 1.0) * first * self.charge
        between = (1.0 + step / ((1.0 + step) * (second - 1.0))) * self._divergence(main)
        return (before + between + last * self.charge) * UP

    def _divergence(self, order: float) -> float:
        w = self.influence
        room = 1.0 - order * w - ROUNDED
        if not room > 0.0:
            return math.inf
        spread = _sharp(order, w) if self.covariance == "sharp" else _paper(order, w)
        return self.paths * (spread + 0.5 * order * self.shift * self.shift / room) * UP


@dataclass(frozen=True)
class GaussianCurve:
    """``a mu^2 / 2``: Gaussian mechanisms of noise multiplier 1 / mu together."""

    mu: float
    limit: ClassVar[float] = math.inf

    def at(self, order: float) -> float:
        """The divergence of this order, rounded up."""
        return 0.5 * order * self.mu**2 * UP


Curve = PathCurve | GaussianCurve


def influence_and_shift(
    *, sensitivity: float, influence: float, kernel_variance: float, extra_variance: float = 0.0
) -> tuple[float, float]:
    """The first two numbers of a curve, with extra GP noise added to each path.

    Parameters
    ----------
    sensitivity
        Sensitivity of the posterior mean, in units of y.
    influence
        V / (V + r^2) of the posterior.
    kernel_variance, extra_variance
        Variances of the function and of the extra noise, in squared units of y.

    Returns
    -------
    influence : float
        w, below 1.
    shift : float
        m, without units.

    """
    total = kernel_variance + extra_variance
    share = influence * (kernel_variance / total) * UP
    return min(share, math.nextafter(1.0, 0.0)), sensitivity / math.sqrt(total) * UP


def _sharp(order: float, w: float) -> float:
    """One eigenvalue above 1 and one below: what the covariances tell, at most."""
    inside = order * (order - 1.0) * w * w / (1.0 - w) + ROUNDED * min(1.0, order * w)
    return -math.log1p(-inside) / (2.0 * (order - 1.0)) if inside < 1.0 else math.inf


def _paper(order: float, w: float) -> float:
    """Theorem 3.1: 2 psi of t = w / (1 - w), both eigenvalues at the worse end."""
    t = w / (1.0 - w)
    half, step = 0.5 * math.log1p(t), 2.0 * (order - 1.0)
    above = half - (math.log1p(order * t) - math.log1p(t)) / step
    below = -half - math.log1p(-t * (order - 1.0)) / step
    return 2.0 * max(above, below)


def epsilon_for(curves: Sequence[Curve], delta: float, conversion: str = "sharp") -> float:
    """The least epsilon found that holds at this delta, over all orders; at least 0.

    Parameters
    ----------
    curves
        Those of all releases of the same records; divergences of a common order add.
    delta
        Between 0 and 1.
    conversion
        "sharp", ``D_a + log((a - 1) / a) - (log delta + log a) / (a - 1)``, or "paper",
        ``D_a - log(delta) / (a - 1)``.

    Notes
    -----
    Every order gives a valid epsilon: the search for the best one carries no part of the proof.

    """
    if not 0.0 < delta < 1.0:
        raise ValueError(f"delta must be above 0 and below 1, got {delta}.")
    if conversion not in ("sharp", "paper"):
        raise ValueError(f"conversion must be 'sharp' or 'paper', got {conversion!r}.")
    log_delta = math.log(delta)

    def epsilon(divergence: float, step: float) -> float:
        if conversion == "paper":
            return divergence - log_delta / step
        tail = math.log(step) - math.log1p(step)
        return divergence + tail - (log_delta + math.log1p(step)) / step

    return max(0.0, _least(epsilon, curves) * UP)


def delta_for(curves: Sequence[Curve], epsilon: float) -> float:
    """The least delta found that holds at this epsilon, over all orders; 1 if none is known.

    Parameters
    ----------
    curves
        Those of all releases of the same records; divergences of a common order add.
    epsilon
        Not negative.

    """

    def log_delta(divergence: float, step: float) -> float:
        tail = math.log(step) - math.log1p(step)
        return step * (divergence + tail - epsilon) - math.log1p(step)

    least = _least(log_delta, curves)
    return min(1.0, math.exp(least) * (1.0 + 1e-9)) if least < 0 else 1.0


def _least(value: Callable[[float, float], float], curves: Sequence[Curve]) -> float:
    """The least of ``value(D_alpha, alpha - 1)`` over the common interval: a grid, its best cell.
    Divergences of releases together, of a common order, add."""
    limit = min(curve.limit for curve in curves)
    last = min(limit - 1.0, LARGEST_ORDER)
    if not last > 0.0:  # rounding cannot be bounded
        return math.inf

    def limit_at(step: float) -> float:
        order = 1.0 + step
        if not 1.0 < order < limit:
            return math.inf
        return value(math.fsum(curve.at(order) for curve in curves), order - 1.0)

    first = min(SMALLEST_STEP, 1e-3 * last)
    near_the_end = last * (1.0 - np.geomspace(0.5, 1e-6, GRID // 4))
    steps = np.unique(np.concatenate([np.geomspace(first, last, GRID), near_the_end]))
    values = np.array([limit_at(float(step)) for step in steps])
    best = int(np.argmin(values))
    if not values[best] < math.inf:
        return math.inf
    low, high = steps[max(best - 1, 0)], steps[min(best + 1, len(steps) - 1)]
    refined = minimize_scalar(
        lambda t: limit_at(math.exp(t)),
        bounds=(math.log(low), math.log(high)),
        method="bounded",
        options={"xatol": 1e-10},
    )
    return min(float(values[best]), float(refined.fun))
