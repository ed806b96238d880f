"""One of many: the only thing that is learned from the utilities of candidates is who was chosen."""

from __future__ import annotations

from typing import Any

import numpy as np
from opendp import measurements
from opendp.domains import atom_domain, vector_domain
from opendp.measures import max_divergence, zero_concentrated_divergence
from opendp.metrics import linf_distance
from opendp.mod import enable_features

from privgp.privacy.selection import selection_scale
from privgp.types import Array

SELECTION_SAMPLER = (
    "permute-and-flip or exponential mechanism in exact rational arithmetic (OpenDP), "
    "cryptographic randomness"
)

enable_features("contrib")


def permute_and_flip(
    utilities: Array,
    sensitivity: float,
    epsilon: float,
    rng: np.random.Generator | None = None,
) -> int:
    """Which candidate has the (nearly) largest utility: epsilon-private, by permute-and-flip.

    ``sensitivity``: the most that one person can move any utility, float error included. ``rng``:
    reproducible and not for release: the largest of the utilities plus exponential noise.
    """
    scale = selection_scale(sensitivity, epsilon)
    if rng is not None:
        return _largest(_checked(utilities) + rng.exponential(scale, len(utilities)))
    return _draw(utilities, scale, max_divergence())


def exponential(
    utilities: Array,
    sensitivity: float,
    epsilon: float,
    rng: np.random.Generator | None = None,
) -> int:
    """The same by the exponential mechanism, which is never better; it is the papers' choice.

    OpenDP draws it exactly where its report is in concentrated divergence; the law of the draw, and
    so its pure epsilon, is that of the exponential mechanism at the same scale.
    """
    scale = selection_scale(sensitivity, epsilon)
    if rng is not None:
        return _largest(_checked(utilities) + rng.gumbel(0.0, scale, len(utilities)))
    return _draw(utilities, scale, zero_concentrated_divergence())


MECHANISMS = {"permute-and-flip": permute_and_flip, "exponential": exponential}


def _draw(utilities: Array, scale: float, divergence: Any) -> int:
    space = (
        vector_domain(atom_domain(T=float, nan=False)),
        linf_distance(T=float),
    )
    values = _checked(utilities)
    chosen = int(measurements.make_noisy_max(*space, divergence, scale=scale)(values.tolist()))
    if not 0 <= chosen < len(values):
        raise RuntimeError("the sampler failed after it drew: count the budget as spent.")
    return chosen


def _checked(utilities: Array) -> Array:
    """OpenDP takes infinity for the largest number, so refuse it first."""
    values = np.asarray(utilities, dtype=np.float64)
    if values.ndim != 1 or len(values) == 0 or not np.all(np.isfinite(values)):
        raise ValueError("the utilities of the candidates are not finite; nothing was released.")
    return values


def _largest(noisy: Array) -> int:
    return int(np.argmax(noisy))
