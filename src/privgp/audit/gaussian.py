"""The best attack on a measurement whose noise is known: a threshold on one number.

Two neighbouring datasets give two exact measurements; the noise in every number is independent. No
attack does better than a threshold on the likelihood ratio. With pure noise the threshold is the
ratio beyond the second measurement: with Laplace noise the largest there is, so that the attack
attains what pure epsilon allows. Statistics: docs/proofs/audit.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import singledispatch
from itertools import product
from typing import Any

import numpy as np

from privgp.audit.progress import Callback, part
from privgp.audit.promises import Promise
from privgp.audit.result import TradeOff, from_errors
from privgp.plan.bins.bins import Bins, HalvedBins
from privgp.plan.strategy import OutputSums
from privgp.plan.streamed.columns import StreamedSums
from privgp.privacy.noise import Noise
from privgp.privacy.sensitivity import ENUMERATED_ROWS, person_norms
from privgp.types import Array, Integers
from privgp.vault.measure import exact
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


@singledispatch
def worst_neighbours(strategy: Any) -> tuple[Array, Array]:
    """Two exact measurements of neighbouring datasets: the furthest apart that there are."""
    raise TypeError("no worst neighbours are known of this strategy.")


@worst_neighbours.register
def _(strategy: OutputSums) -> tuple[Array, Array]:
    """Equal outputs but for the person who can move the measurement most."""
    people = np.arange(strategy.rows) if strategy.people is None else strategy.people
    norms = person_norms(strategy.matrix, strategy.index, people) * strategy.person_weights()
    rows = np.flatnonzero(people == int(np.argmax(norms)))
    signs = _worst_signs(strategy, rows)
    outputs = np.zeros(strategy.rows)
    outputs[rows] = signs
    return exact(strategy, -outputs, (-1.0, 1.0)), exact(strategy, outputs, (-1.0, 1.0))


@worst_neighbours.register
def _(strategy: StreamedSums) -> tuple[Array, Array]:
    """Equal outputs but for the row with the largest column."""
    energy = [strategy.energy_weight] if strategy.energy_weight > 0 else []
    return np.append(-strategy.worst, energy), np.append(strategy.worst, energy)


@worst_neighbours.register
def _(bins: HalvedBins) -> tuple[Array, Array]:
    """A record that stays in its bin: but for the small energy it moves as far as any, and few
    numbers at once, which an attack sees best."""
    B, w = bins.matrix, bins.energy_weight
    worst = B[:, int(np.argmax(np.abs(B).sum(axis=0)))]
    nothing, energy = np.zeros_like(worst), [w] if w > 0 else []
    return np.concatenate([nothing, worst, energy]), np.concatenate([worst, nothing, energy])


@worst_neighbours.register
def _(bins: Bins) -> tuple[Array, Array]:
    """What one record adds, twice: of all pairs of records the two furthest apart.

    Outputs at the ends and the middle of their bounds suffice: the move is convex in their squares.
    """
    B, w = bins.matrix, bins.energy_weight
    gram, best = B.T @ B, (-1.0, 0, 0, 0.0, 0.0)
    squares = np.diag(gram)
    for u, v in product((-1.0, 0.0, 1.0), repeat=2):
        moved = (1.0 + u * u) * squares[:, None] + (1.0 + v * v) * squares[None, :]
        moved = moved - 2.0 * (1.0 + u * v) * gram + w**2 * (u * u - v * v) ** 2
        i, j = divmod(int(np.argmax(moved)), bins.count)
        best = max(best, (float(moved[i, j]), i, j, u, v))
    _, i, j, u, v = best
    first, second = (
        np.concatenate([B[:, k], B[:, k] * x, [w * x * x]]) for k, x in ((i, u), (j, v))
    )
    return first, second


def _worst_signs(strategy: OutputSums, rows: Integers) -> Array:
    """The signs of one person's outputs that move the measurement most (all +1 for many rows)."""
    if len(rows) > ENUMERATED_ROWS:
        return np.ones(len(rows))
    signs = np.array(list(product((1.0, -1.0), repeat=len(rows))))
    moved = strategy.matrix[:, strategy.index[rows]] @ signs.T
    return np.asarray(signs[int(np.argmax(np.square(moved).sum(axis=0)))])
