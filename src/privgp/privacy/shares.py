"""One budget for several numbers that are measured one after the other, each with its share.

Number t is measured with multiplier ``c_t = c / sqrt(w_t)``, shares ``w_t`` adding up to at most 1, so
``sum 1/c_t^2 <= 1/c^2`` whatever is asked: docs/proofs/bayes.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real

from privgp.privacy.noise import GaussianNoise, lattice_multiplier, scaled_noise

SMALLEST_SHARE = 1e-6


def budget_shares(numbers: Sequence[float]) -> tuple[float, ...]:
    """Positive shares that add up to 1, from positive numbers."""
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
    """The noise of every number, so that all together are (epsilon, delta)-private.

    ``sensitivity``: the most one person moves any one of the numbers, float error included. The
    lattice adds to delta what it adds for that many numbers together; each gets an equal part.
    """
    size = len(shares)
    whole, depth, slack = lattice_multiplier(epsilon, delta, size)
    whole_up = whole * (1.0 + 2.0**-40)
    parts = tuple(
        scaled_noise(whole_up / math.sqrt(share), 1, sensitivity, 0.0, depth, slack / size)
        for share in shares
    )
    if math.fsum(part.multiplier**-2.0 for part in parts) > whole**-2.0:
        raise ValueError("the shares of the budget add up to more than the whole.")
    return parts
