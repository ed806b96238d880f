"""Noise on a lattice instead of floating-point noise, and what that costs: next to nothing.

The proved accounting is in docs/proofs/sample.md. With lattice spacing h, noise std sigma,
a = h / sigma and m numbers, the release is ``(eps + eta, delta_BW(eps) + m tau + delta0)``-private.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from privgp.privacy.budget import check_budget, gaussian_multiplier
from privgp.privacy.guarantee import EPSILON_SLACK
from privgp.types import Count, Exponent, Positive, Share

LATTICE_SAMPLER = (
    "discrete Gaussian on a lattice of powers of two (OpenDP), cryptographic randomness"
)
DELTA_SLACK = 2.0**-40
DEPTHS = (40, 50, 60)


@dataclass(frozen=True)
class LatticeNoise:
    """Isotropic Gaussian noise for ``size`` numbers on the multiples of ``2**exponent``.

    ``std``: noise standard deviation; ``multiplier``: std over the sensitivity that includes
    rounding to the lattice and float error; ``delta_slack``: m tau + delta0.
    """

    size: Count
    std: Positive
    exponent: Exponent
    multiplier: Positive
    delta_slack: Share


def lattice_noise(
    epsilon: float, delta: float, size: int, sensitivity: float, float_error: float
) -> LatticeNoise:
    """The least noise for which ``size`` numbers of this sensitivity are (epsilon, delta)-private."""
    check_budget(epsilon, delta)
    for depth in DEPTHS:
        ratio = 2.0 ** (1 - depth)  # a = h / sigma is at most this
        slack = size * ratio**2 / 16.0 + DELTA_SLACK * delta
        if slack < delta and _spill(epsilon, delta, size, ratio) <= EPSILON_SLACK * epsilon:
            multiplier = gaussian_multiplier(epsilon * (1.0 - EPSILON_SLACK), delta - slack)
            return scaled_noise(multiplier, size, sensitivity, float_error, depth, slack)
    raise ValueError(
        f"epsilon={epsilon:g}, delta={delta:g} are too small for {size} numbers on a lattice."
    )


def scaled_noise(
    multiplier: float,
    size: int,
    sensitivity: float,
    float_error: float,
    depth: int = DEPTHS[0],
    delta_slack: float = 0.0,
) -> LatticeNoise:
    """Noise with a given multiplier of the sensitivity after rounding to the lattice."""
    if not sensitivity > 0 or size < 1:
        raise ValueError(
            "nothing would be measured (its sensitivity is 0): choose targets nearer to the inputs "
            "or a longer lengthscale."
        )
    moved = sensitivity + 2.0 * float_error
    exponent = math.floor(math.log2(multiplier * moved)) - depth
    total = moved + math.sqrt(size) * 2.0**exponent
    std = multiplier * total * (1.0 + 2.0**-50)
    return LatticeNoise(size, std, exponent, multiplier, delta_slack)


def _spill(epsilon: float, delta: float, size: int, ratio: float) -> float:
    """eta: the bound of the log-ratio between rounded and lattice noise, but for probability delta0."""
    s = epsilon - math.log(DELTA_SLACK * delta)
    norm = math.sqrt(size) * (1.0 + ratio / 2.0) + math.sqrt(2.0 * s)
    return ratio**2 * norm**2 / 24.0 + 3.0 * size * math.exp(-19.7 / ratio**2)
