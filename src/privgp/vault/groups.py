"""Sums of outputs per public bin, plus noise."""

from __future__ import annotations

from typing import Any

import numpy as np

from privgp.privacy.laplace import LaplaceNoise
from privgp.privacy.lattice import LatticeNoise
from privgp.types import Array, Integers
from privgp.vault.noise import add_noise
from privgp.vault.validate import clipped_outputs


def measure_sums(
    y: Any,
    bounds: tuple[float, float],
    index: Integers,
    noise: LatticeNoise | LaplaceNoise,
    random_state: np.random.Generator | None = None,
) -> Array:
    """Spend the budget once: the sum over every bin of the outputs scaled to [-1, 1], plus noise.

    ``index``: (rows,), the bin of every row, 0 ... noise.size - 1.
    """
    u = clipped_outputs(y, len(index), bounds)
    exact = np.bincount(index, u, minlength=noise.size).astype(float)
    return add_noise(exact, noise, random_state)
