"""Lattice noise: the only randomness that protects anybody."""

from functools import lru_cache
from typing import Any

import numpy as np
from opendp import measurements
from opendp.domains import atom_domain, vector_domain
from opendp.metrics import l1_distance, l2_distance
from opendp.mod import enable_features

from privgp.privacy.noise import GAUSSIAN, LAPLACE, Noise
from privgp.types import Array, Random

enable_features("contrib")


def add_noise(values: Array, noise: Noise, rng: Random = None) -> Array:
    """Round to the lattice and add the noise that protects; with a generator, simulate it.

    OpenDP's samplers are exact. They take NaN for 0, infinity for the largest number, and a
    wrong length without a word, so all three are refused here first. A simulation is ordinary
    floating-point noise of the same scale: reproducible, and not for release.

    Parameters
    ----------
    values
        (size,), private.
    noise
        How much, and on which lattice.
    rng
        Generator of a simulation; None for cryptographic randomness.

    Raises
    ------
    ValueError
        The values have a wrong size or are not finite; nothing was drawn.
    RuntimeError
        The sampler failed after noise was drawn: the budget counts as spent.

    """
    if values.shape != (noise.size,) or not np.all(np.isfinite(values)):
        raise ValueError("the measurement has a wrong size or is not finite; nothing was released.")
    if rng is not None:
        return np.asarray(values + SIMULATED[noise.law](rng, 0.0, noise.scale, noise.size))
    sampler = _sampler(noise.law, noise.size, noise.scale, noise.exponent)
    released = np.array(sampler(values.tolist()), dtype=float)
    if released.shape != (noise.size,) or not np.all(np.isfinite(released)):
        raise RuntimeError("the sampler failed after noise was drawn: count the budget as spent.")
    return released


@lru_cache(maxsize=16)
def _sampler(law: str, size: int, scale: float, exponent: int) -> Any:
    """Rounds numbers and adds noise. It holds no randomness itself: every call draws anew."""
    make, distance = PROTECTING[law]
    numbers = vector_domain(atom_domain(T=float, nan=False), size=size)
    return make(numbers, distance(T=float), scale=scale, k=exponent)


PROTECTING: dict[str, Any] = {
    GAUSSIAN: (measurements.make_gaussian, l2_distance),
    LAPLACE: (measurements.make_laplace, l1_distance),
}
SIMULATED: dict[str, Any] = {
    GAUSSIAN: np.random.Generator.normal,
    LAPLACE: np.random.Generator.laplace,
}
