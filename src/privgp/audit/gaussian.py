"""The best attack on a measurement whose noise is known: a threshold on one number.

Two neighbouring datasets give two exact measurements; the noise in every number is independent. No
attack does better than a threshold on the likelihood ratio. With pure noise it is the ratio beyond
the second measurement, with Laplace noise the largest there is, so that the attack attains what
pure epsilon allows. Statistics: docs/proofs/audit.md."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from privgp.audit.progress import Callback, repeat_draws
from privgp.audit.promises import Promise
from privgp.audit.result import TradeOff, Trial
from privgp.privacy.noise import Noise
from privgp.types import Array, Random
from privgp.vault.noise import add_noise

BATCH_NUMBERS = 2**16


@dataclass(frozen=True)
class NoisyPair:
    """The exact measurements of two neighbouring datasets, and the noise that should hide which.

    Attributes
    ----------
    low, high : (numbers,), without noise, of public or simulated data
    noise : as a release would draw it
    promise : the guarantee that the noise should give

    """

    low: Array
    high: Array
    noise: Noise
    promise: Promise


def attack_pair(pair: NoisyPair, trial: Trial, noise_scale: float, rng: Random) -> TradeOff:
    """Attack by a threshold half-way along the difference, or with pure noise beyond its end.

    Numbers that are the same in both tell nothing, as the noise of each is independent: they are not
    drawn.

    Parameters
    ----------
    pair
        The measurements of the two datasets.
    trial
        How many draws, and how sure the bounds are.
    noise_scale
        Below 1 plants a fault, to see that it is found.
    rng
        For simulated noise; None for the noise that protects.

    """
    moved = pair.low != pair.high
    pair = replace(pair, low=pair.low[moved], high=pair.high[moved])
    statistic, threshold = _best_statistic(pair)
    size = len(pair.low)
    batch = min(trial.draws, max(1, BATCH_NUMBERS // size))
    noise, rounds = pair.noise.with_size(size * batch, noise_scale), -(-trial.draws // batch)

    def scores(which: int, tell: Callback) -> Array:
        tiled = np.tile(pair.high if which else pair.low, batch)

        def draw() -> Array:
            return statistic(add_noise(tiled, noise, rng).reshape(batch, size))

        drawn = repeat_draws(draw, rounds, "attacking with the best threshold", tell)
        return np.concatenate(drawn)[: trial.draws]

    return trial.test(scores, threshold, pair.promise, TradeOff.attack)


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
