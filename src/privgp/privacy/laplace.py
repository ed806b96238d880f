"""Laplace noise on a lattice: pure epsilon, nothing approximate.

With lattice spacing h and m numbers whose exact values move by at most ``Delta`` in the 1-norm, values
rounded to the lattice move by at most ``Delta + m h``, and discrete Laplace noise of scale b is then
exactly ``((Delta + m h) / b, 0)``-private. See docs/proofs/binned.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from privgp.privacy.budget import check_budget

DEPTH = 40

LAPLACE_SAMPLER = (
    "discrete Laplace on a lattice of powers of two (OpenDP), cryptographic randomness"
)


@dataclass(frozen=True)
class LaplaceNoise:
    """Independent Laplace noise of this scale for ``size`` numbers on the multiples of ``2**exponent``."""

    size: int
    scale: float
    exponent: int

    @property
    def std(self) -> float:
        return math.sqrt(2.0) * self.scale


def laplace_noise(
    epsilon: float, size: int, sensitivity: float, float_error: float
) -> LaplaceNoise:
    """The least noise for which ``size`` numbers are (epsilon, 0)-private.

    ``sensitivity``: of the exact numbers in the 1-norm; ``float_error``: bound of their rounding error
    in the same norm.
    """
    check_budget(epsilon, 0.0, pure=True)
    if not sensitivity > 0 or size < 1:
        raise ValueError("nothing would be measured: its sensitivity is 0.")
    moved = sensitivity + 2.0 * float_error
    exponent = math.floor(math.log2(moved / epsilon)) - DEPTH
    total = moved + size * 2.0**exponent
    return LaplaceNoise(size, total / epsilon * (1.0 + 2.0**-40), exponent)
