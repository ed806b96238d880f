"""The best attack on a measurement whose noise is known: a threshold on one number.

Two neighbouring datasets give two exact measurements; the noise is isotropic. The likelihood ratio is
then a monotone function of the measurement's projection on their difference, so no attack does
better than a threshold on it. With Laplace noise, clip the numbers to the two exact values before
projecting; when all of them lie beyond, the attack attains what pure epsilon allows. Statistics:
docs/proofs/audit.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import singledispatch
from itertools import product
from typing import Any

import numpy as np

from privgp.audit.progress import Callback, repeated
from privgp.audit.promises import Promise
from privgp.audit.result import TradeOff, Trial
from privgp.plan.bins.bins import Bins, HalvedBins
from privgp.plan.strategy import OutputSums
from privgp.plan.streamed.columns import StreamedSums
from privgp.privacy.noise import LAPLACE, Noise
from privgp.privacy.sensitivity import ENUMERATED_ROWS, person_norms
from privgp.types import Array, Integers, Random
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


def attack_pair(pair: NoisyPair, trial: Trial, noise_scale: float, rng: Random) -> TradeOff:
    """Threshold half-way along the difference (Laplace: at its end).

    ``rng``: for simulated noise; None for the real one. Many draws share one call of the sampler.
    """
    statistic, threshold = _best_statistic(pair)
    size = len(pair.low)
    batch = min(trial.draws, max(1, BATCH_NUMBERS // size))
    noise, rounds = pair.noise.resized(size * batch, noise_scale), -(-trial.draws // batch)

    def scores(which: int, tell: Callback) -> Array:
        tiled = np.tile(pair.high if which else pair.low, batch)

        def draw() -> Array:
            return statistic(add_noise(tiled, noise, rng).reshape(batch, size))

        drawn = repeated(draw, rounds, "attacking with the best threshold", tell)
        return np.concatenate(drawn)[: trial.draws]

    return trial.test(scores, threshold, pair.promise, TradeOff.attack)


def _best_statistic(pair: NoisyPair) -> tuple[Callable[[Array], Array], float]:
    """A monotone function of the likelihood ratio, of (draws, numbers), and where to cut it."""
    low, high = pair.low, pair.high
    moved = float(np.linalg.norm(high - low))
    if not moved > 0:
        raise ValueError("both datasets give the same measurement: choose neighbours that differ.")
    if pair.noise.law == LAPLACE:
        signs, ends = np.sign(high - low), (np.minimum(low, high), np.maximum(low, high))
        # A hair below the end, which sums of numbers cut off at their ends reach up to rounding.
        top = float(high @ signs) - 1e-9 * moved
        return lambda z: np.asarray(np.clip(z, *ends) @ signs), top
    direction = (high - low) / moved
    return lambda z: np.asarray(z @ direction), 0.5 * float((low + high) @ direction)


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
