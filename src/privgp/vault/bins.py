"""Counts, sums and one energy per bin, plus noise: the only place where private inputs are read."""

from __future__ import annotations

from typing import Any

import numpy as np

from privgp.gp.measurement import Measurement
from privgp.plan.bins.bins import Bins
from privgp.plan.strategy import LAPLACE
from privgp.privacy.laplace import LaplaceNoise
from privgp.privacy.lattice import LatticeNoise
from privgp.types import Array
from privgp.vault.noise import add_noise
from privgp.vault.validate import checked_inputs, clipped_outputs


def measure_records(
    X: Any,
    y: Any,
    bounds: tuple[float, float],
    bins: Bins,
    noise: LatticeNoise | LaplaceNoise,
    random_state: np.random.Generator | None = None,
) -> Measurement:
    """Spend the budget once: validate, project, clip, count, add noise."""
    inputs = np.clip(checked_inputs(X, len(bins.shape)), bins.low, bins.high)
    u = clipped_outputs(y, bins.rows, bounds)
    if len(inputs) != len(u):
        raise ValueError("X and y must have one row for each record.")
    released = add_noise(exact_records(inputs, u, bins), noise, random_state)
    half = 0.5 * bounds[1] - 0.5 * bounds[0]
    count = len(bins.matrix)
    first, second = released[:count], released[count : 2 * count]
    counts, sums = (first + second, first - second) if bins.law == LAPLACE else (first, second)
    energy, energy_std = None, 0.0
    if bins.energy_weight > 0:
        unit = half**2 / bins.energy_weight
        energy, energy_std = float(released[-1]) * unit, noise.std * unit
    return Measurement(
        sums * half, bins.recovered_std(noise.std) * half, energy, energy_std, counts
    )


def exact_records(inputs: Array, u: Array, bins: Bins) -> Array:
    """What is measured, without noise: private. The energy ``w sum u^2`` comes last.

    For Gaussian noise (B counts, B sums of u), for Laplace noise (B sums of (1 + u) / 2, B sums of
    (1 - u) / 2).
    """
    index = bins.of(inputs)
    laplace = bins.law == LAPLACE
    each = (0.5 + 0.5 * u, 0.5 - 0.5 * u) if laplace else (np.ones(len(u)), u)
    parts = [bins.matrix @ np.bincount(index, value, minlength=bins.count) for value in each]
    if bins.energy_weight > 0:
        parts.append(np.array([bins.energy_weight * float(np.dot(u, u))]))
    return np.concatenate(parts)
