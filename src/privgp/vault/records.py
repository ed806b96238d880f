"""Counts, sums and one energy per bin, plus noise: the only place where private inputs are read."""

from __future__ import annotations

from typing import Any

import numpy as np

from privgp.plan.bins import Bins
from privgp.plan.strategy import Measurement
from privgp.privacy.lattice import LatticeNoise
from privgp.types import Array
from privgp.vault.sample import add_noise
from privgp.vault.validate import checked_inputs, clipped_outputs


def measure_records(
    X: Any,
    y: Any,
    bounds: tuple[float, float],
    bins: Bins,
    noise: LatticeNoise,
    random_state: np.random.Generator | None = None,
) -> Measurement:
    """Spend the budget once: validate, project, clip, count, add noise."""
    inputs = np.clip(checked_inputs(X, len(bins.shape)), bins.low, bins.high)
    u = clipped_outputs(y, bins.rows, bounds)
    if len(inputs) != len(u):
        raise ValueError("X and y must have one row for each record.")
    released = add_noise(exact_records(inputs, u, bins), noise, random_state)
    half = 0.5 * bounds[1] - 0.5 * bounds[0]
    unit = half**2 / bins.energy_weight
    count = len(bins.matrix)
    counts, sums, energy = released[:count], released[count:-1], float(released[-1])
    return Measurement(sums * half, noise.std * half, energy * unit, noise.std * unit, counts)


def exact_records(inputs: Array, u: Array, bins: Bins) -> Array:
    """(B counts, B sums of u, w sum u^2) without noise: private."""
    index = bins.of(inputs)
    counts = np.bincount(index, minlength=bins.count).astype(float)
    sums = np.bincount(index, u, minlength=bins.count)
    energy = bins.energy_weight * float(np.dot(u, u))
    return np.concatenate([bins.matrix @ counts, bins.matrix @ sums, [energy]])
