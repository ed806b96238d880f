"""What a budget may be and what is advised of it, the exact privacy curve of the Gaussian mechanism and the
least noise that meets a budget. For noise multiplier ``c`` (noise std over sensitivity), Balle and Wang (2018):
``delta(eps) = Phi(1/(2c) - eps c) - e^eps Phi(-1/(2c) - eps c)``."""

import math
from collections.abc import Callable
from functools import lru_cache
from numbers import Real

from scipy.optimize import brentq
from scipy.special import log_ndtr

MAX_EPSILON = 1e4
TINY_EPSILON = 1e-4  # below, the two terms of the curve cancel in float arithmetic
SAFETY = 1e-9
LARGEST_ROOT = 1e12


def check_budget(epsilon: float, delta: float, *, pure: bool = False) -> None:
    """Refuse an (epsilon, delta) that is no guarantee: 0 < epsilon <= 1e4, 0 <= delta < 1.

    Parameters
    ----------
    epsilon, delta
        Numbers as the caller gave them; booleans and texts are refused.
    pure
        Whether the mechanism can do without delta; others are refused delta = 0.

    Raises
    ------
    ValueError
        It names the parameter, its limits and the value, which is public.

    """
    for name, value, largest in (("epsilon", epsilon, MAX_EPSILON), ("delta", delta, 1.0)):
        if isinstance(value, bool) or not isinstance(value, Real):
            raise ValueError(f"{name} must be a number, got {type(value).__name__}.")
        if name == "delta" and value == 0:
            if pure:
                continue
            raise ValueError(
                "delta must be positive here, got 0: Laplace noise and private choices among "
                "candidates are private with delta = 0, this is not."
            )
        # compared as it came: integers can be larger than any float
        if not 0 < value <= largest or value == 1 == largest:
            limit = "above 0 and at most 10,000" if name == "epsilon" else "at least 0 and below 1"
            shown = value if abs(value) < 10**15 or value != value else "a huge number"
            raise ValueError(f"{name} must be {limit}, got {shown}.")


def gaussian_delta(epsilon: float, multiplier: float) -> float:
    """delta(epsilon) of the Gaussian mechanism, Balle and Wang (2018), theorem 8.

    For a tiny epsilon, where the terms cancel, delta(0) = erf(1 / (2 sqrt(2) c)) is returned
    instead: it is larger. Below 0 the curve is ``1 - e^eps + e^eps delta(-eps)``, which
    composition with pure steps needs.

    Parameters
    ----------
    epsilon
        a real number, which may be negative.
    multiplier
        c, the noise std over the sensitivity; infinite means no information at all.

    Returns
    -------
    float
        A probability, between 0 and 1.

    """
    if epsilon < 0:
        return -math.expm1(epsilon) + math.exp(epsilon) * gaussian_delta(-epsilon, multiplier)
    if multiplier == math.inf:
        return 0.0
    if epsilon < TINY_EPSILON:
        return math.erf(1.0 / (2.0 * math.sqrt(2.0) * multiplier))
    high = float(log_ndtr(0.5 / multiplier - epsilon * multiplier))
    low = epsilon + float(log_ndtr(-0.5 / multiplier - epsilon * multiplier))
    if low >= high:
        return 0.0
    return min(1.0, math.exp(high) * -math.expm1(low - high))


def gaussian_epsilon(delta: float, multiplier: float) -> float:
    """The least epsilon, rounded up, at which the Gaussian mechanism's delta is at most ``delta``.

    Parameters
    ----------
    delta
        Between 0 and 1.
    multiplier
        c, the noise std over the sensitivity.

    """
    return least_epsilon(lambda e: gaussian_delta(e, multiplier), delta) * (1.0 + SAFETY)


def least_epsilon(delta_at: Callable[[float], float], delta: float) -> float:
    """The least epsilon, rounded up, where a falling curve is at most ``delta``.

    Parameters
    ----------
    delta_at
        delta as a function of epsilon, falling.
    delta
        The value to reach.

    Returns
    -------
    float
        0 if the curve starts at or below ``delta``, infinite if it is still above at 1e12.

    Notes
    -----
    The root of ``brentq`` is raised until the curve itself is at most ``delta``, so the result
    never rests on the solver's tolerance.

    """
    if delta_at(0.0) <= delta:
        return 0.0
    high = 1.0
    while delta_at(high) > delta:
        high *= 2.0
        if high > LARGEST_ROOT:
            return math.inf
    root = float(brentq(lambda e: delta_at(e) - delta, 0.0, high, xtol=1e-14))
    while delta_at(root) > delta:
        root += SAFETY * max(1.0, root)
    return root


def gaussian_multiplier(epsilon: float, delta: float) -> float:
    """The least noise multiplier, rounded up, that is (epsilon, delta)-private.

    The value of dp-accounting, some 1e-11 too small, is raised until the curve itself, evaluated
    here, keeps the guarantee.

    Parameters
    ----------
    epsilon, delta
        The budget; delta must be positive.

    Returns
    -------
    float
        c: multiply it by the sensitivity (Euclidean norm) to get the noise std.

    """
    check_budget(epsilon, delta)
    return _least_multiplier(float(epsilon), float(delta))


@lru_cache(maxsize=1024)
def _least_multiplier(epsilon: float, delta: float) -> float:
    if epsilon < TINY_EPSILON:
        multiplier = 1.0 / (delta * math.sqrt(2.0 * math.pi))  # delta(0) <= 1 / (c sqrt(2 pi))
        if not math.isfinite(multiplier):
            raise ValueError(f"epsilon={epsilon:g}, delta={delta:g} are too small to calibrate.")
    else:
        from dp_accounting import get_sigma_gaussian  # slow to import

        multiplier = float(get_sigma_gaussian(epsilon, delta))
    multiplier *= 1.0 + SAFETY
    while gaussian_delta(epsilon, multiplier) > delta:
        multiplier *= 1.0 + SAFETY
    return multiplier


MUCH = 10.0


def advice(epsilon: float, delta: float, people: int, unit: str = "row") -> list[str]:
    """Sentences about a budget that protects little. ``people``: how many rows or people there are;
    ``unit``: which of them."""
    sentences = []
    if epsilon >= MUCH:
        sentences.append(
            f"Epsilon {epsilon:g} guarantees little: an attacker may become exp({epsilon:g}) times more "
            "certain of one value."
        )
    if delta * people >= 1.0:
        one_over = "1" if people == 1 else f"1/{people:,}"
        sentences.append(
            f"Delta {delta:g} is not below {one_over}, one over the number of {_plural(unit)}: a "
            f"mechanism that published one whole {unit} could keep this guarantee."
        )
    return sentences


def _plural(unit: str) -> str:
    return "people" if unit == "person" else f"{unit}s"
