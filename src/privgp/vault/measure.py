"""B y and its energy, plus noise: the only place where outputs meet a release."""

from __future__ import annotations

from typing import Any

import numpy as np

from privgp.gp.measurement import Measurement
from privgp.plan.strategy import Strategy
from privgp.privacy.laplace import LaplaceNoise
from privgp.privacy.lattice import LatticeNoise
from privgp.types import Array
from privgp.vault.noise import add_noise
from privgp.vault.validate import clipped_outputs


def measure(
    y: Any,
    bounds: tuple[float, float],
    strategy: Strategy,
    noise: LatticeNoise | LaplaceNoise,
    random_state: np.random.Generator | None = None,
) -> Measurement:
    """Spend the budget once: validate, clip, compute, add noise."""
    u = clipped_outputs(y, len(strategy.index), bounds)
    exact = exact_measurement(u, strategy)
    return released(exact, strategy.energy_weight, bounds, noise, random_state)


def released(
    exact: Array,
    energy_weight: float,
    bounds: tuple[float, float],
    noise: LatticeNoise | LaplaceNoise,
    random_state: np.random.Generator | None,
) -> Measurement:
    """Exact numbers, the energy last where it has a weight, plus noise, in units of y."""
    noisy = add_noise(exact, noise, random_state)
    half = 0.5 * bounds[1] - 0.5 * bounds[0]
    count = noise.size - int(energy_weight > 0)
    energy, energy_std = None, 0.0
    if energy_weight > 0:
        unit = half**2 / energy_weight
        energy, energy_std = float(noisy[count] * unit), noise.std * unit
    return Measurement(noisy[:count] * half, noise.std * half, energy, energy_std)


def exact_measurement(u: Array, strategy: Strategy) -> Array:
    """(B s, w sum e_i u_i^2) without noise: private."""
    exact = strategy.matrix @ strategy.per_input(strategy.row_weights * u)
    if strategy.energy_weight == 0:
        return exact
    energy = strategy.energy_weight * float(np.dot(strategy.energy_shares, u * u))
    return np.append(exact, energy)
