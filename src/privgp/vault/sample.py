"""Lattice noise: the only randomness that protects anybody."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from opendp import measurements
from opendp.domains import atom_domain, vector_domain
from opendp.metrics import l1_distance, l2_distance
from opendp.mod import enable_features

from privgp.privacy.laplace import LaplaceNoise
from privgp.privacy.lattice import LatticeNoise
from privgp.types import Array

LATTICE_SAMPLER = (
    "discrete Gaussian on a lattice of powers of two (OpenDP), cryptographic randomness"
)
LAPLACE_SAMPLER = (
    "discrete Laplace on a lattice of powers of two (OpenDP), cryptographic randomness"
)

enable_features("contrib")


def add_lattice_noise(values: Array, noise: LatticeNoise) -> Array:
    """Round to the lattice and add discrete Gaussian noise with OpenDP's exact sampler.

    OpenDP takes NaN for 0, infinity for the largest number, and a wrong length without a word, so
    all three are refused here first.
    """
    if values.shape != (noise.size,) or not np.all(np.isfinite(values)):
        raise ValueError("the measurement has a wrong size or is not finite; nothing was released.")
    released = np.array(_sampler(noise.size, noise.std, noise.exponent)(values.tolist()), float)
    if released.shape != (noise.size,) or not np.all(np.isfinite(released)):
        raise RuntimeError("the sampler failed after noise was drawn: count the budget as spent.")
    return released


@lru_cache(maxsize=16)
def _sampler(size: int, std: float, exponent: int) -> Any:
    """OpenDP's mechanism. It holds no randomness of its own: every call draws anew."""
    space = (
        vector_domain(atom_domain(T=float, nan=False), size=size),
        l2_distance(T=float),
    )
    return measurements.make_gaussian(*space, scale=std, k=exponent)


def add_simulated_noise(values: Array, noise: LatticeNoise, rng: np.random.Generator) -> Array:
    """Ordinary floating-point noise of the same scale: reproducible, and not for release."""
    return np.asarray(values + noise.std * rng.standard_normal(noise.size))


def add_lattice_laplace(values: Array, noise: LaplaceNoise) -> Array:
    """Round to the lattice and add discrete Laplace noise with OpenDP's exact sampler."""
    if values.shape != (noise.size,) or not np.all(np.isfinite(values)):
        raise ValueError("the measurement has a wrong size or is not finite; nothing was released.")
    space = (
        vector_domain(atom_domain(T=float, nan=False), size=noise.size),
        l1_distance(T=float),
    )
    measure = measurements.make_laplace(*space, scale=noise.scale, k=noise.exponent)
    released = np.array(measure(values.tolist()), dtype=float)
    if released.shape != (noise.size,) or not np.all(np.isfinite(released)):
        raise RuntimeError("the sampler failed after noise was drawn: count the budget as spent.")
    return released


def add_simulated_laplace(values: Array, noise: LaplaceNoise, rng: np.random.Generator) -> Array:
    """Ordinary floating-point Laplace noise of the same scale: reproducible, and not for release."""
    return np.asarray(values + rng.laplace(0.0, noise.scale, noise.size))


def add_noise(
    values: Array, noise: LatticeNoise | LaplaceNoise, rng: np.random.Generator | None
) -> Array:
    """The noise that protects, of either law, or, with a generator, its simulation."""
    if isinstance(noise, LaplaceNoise):
        if rng is None:
            return add_lattice_laplace(values, noise)
        return add_simulated_laplace(values, noise, rng)
    if rng is None:
        return add_lattice_noise(values, noise)
    return add_simulated_noise(values, noise, rng)
