"""The best attack on a measurement whose noise is known: a threshold on one number.

Two neighbouring datasets give two exact measurements; the noise in every number is independent. No
attack does better than a threshold on the likelihood ratio. With pure noise the threshold is the
ratio beyond the second measurement: with Laplace noise the largest there is, so that the attack
attains what pure epsilon allows. Statistics: docs/proofs/audit.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from privgp.audit.progress import Callback, part
from privgp.audit.promises import Promise
from privgp.audit.result import TradeOff, from_errors
from privgp.privacy.noise import Noise
from privgp.types import Array
from privgp.vault.noise import add_noise

BATCH_NUMBERS = 2**16


@dataclass(frozen=True)
class NoisyPair:
    """The exact measurements of two neighbouring datasets, and the noise that should hide which."""

    low: Array
    high: Array
    noise: Noise
    promise: Promise


def attack_pair(
    pair: NoisyPair,
    draws: int,
    noise_scale: float,
    failure: float,
    rng: np.random.Generator | None,
    tell: Callback,
) -> TradeOff:
    """Threshold half-way along the difference (pure noise: beyond its end).

    ``rng``: for simulated noise; None for the real one. Many draws share one call of the sampler.
    """
    statistic, threshold = _best_statistic(pair)
    size = len(pair.low)
    batch = min(draws, max(1, BATCH_NUMBERS // size))
    noise, rounds = pair.noise.resized(size * batch, noise_scale), -(-draws // batch)

    def statistics(values: Array, tell: Callback) -> Array:
        tiled, parts = np.tile(values, batch), []
        for k in range(rounds):
            tell(k / rounds, "attacking with the best threshold")
            parts.append(statistic(add_noise(tiled, noise, rng).reshape(batch, size)))
        return np.concatenate(parts)[:draws]

    wrong = statistics(pair.low, part(tell, 0.0, 0.5)) > threshold
    missed = statistics(pair.high, part(tell, 0.5, 1.0)) < threshold
    return from_errors(pair.promise, int(wrong.sum()), int(missed.sum()), draws, failure)


def _best_statistic(pair: NoisyPair) -> tuple[Callable[[Array], Array], float]:
    """The logarithm of the likelihood ratio, of (draws, numbers), and where to cut it."""
    low, high, noise = pair.low, pair.high, pair.noise
    if not np.linalg.norm(high - low) > 0:
        raise ValueError("both datasets give the same measurement: choose neighbours that differ.")

    def ratio(z: Array) -> Array:
        return np.asarray((noise.log_density(z - high) - noise.log_density(z - low)).sum(axis=-1))

    if not noise.pure:
        return ratio, 0.0
    beyond = high + noise.std * np.sign(high - low)
    # A hair less, as a ratio that is constant there is so up to rounding.
    return ratio, float(ratio(beyond)) * (1.0 - 1e-9)
