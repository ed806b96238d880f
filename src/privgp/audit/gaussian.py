"""The best attack on a measurement with noise of a known law: a threshold on one number.

Two neighbouring datasets give two exact measurements; the noise is isotropic. The likelihood ratio is
then a monotone function of the measurement's projection on their difference, so no attack does
better than a threshold on it. With Laplace noise the projection is of numbers cut off at the two
exact values; the event that all of them lie beyond attains what pure epsilon allows. Statistics:
docs/proofs/audit.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from privgp.audit.progress import Callback, part
from privgp.audit.promises import Promise
from privgp.audit.result import TradeOff, from_errors
from privgp.plan.bins.bins import Bins
from privgp.plan.strategy import LAPLACE, Strategy
from privgp.privacy.laplace import LaplaceNoise
from privgp.privacy.lattice import LatticeNoise
from privgp.privacy.sensitivity import ENUMERATED_ROWS, person_norms
from privgp.types import Array, Integers
from privgp.vault.noise import add_noise

BATCH_NUMBERS = 2**16


@dataclass(frozen=True)
class NoisyPair:
    """The exact measurements of two neighbouring datasets, and the noise that should hide which."""

    low: Array
    high: Array
    noise: LatticeNoise | LaplaceNoise
    promise: Promise


def attack_pair(
    pair: NoisyPair,
    draws: int,
    noise_scale: float,
    failure: float,
    rng: np.random.Generator | None,
    tell: Callback,
) -> TradeOff:
    """Threshold half-way along the difference (Laplace: at its end); ``rng`` for simulated noise,
    None for the real one."""
    statistic, threshold = _best_statistic(pair)
    errors = []
    for k, (exact, sign) in enumerate(((pair.low, 1.0), (pair.high, -1.0))):
        told = part(tell, 0.5 * k, 0.5 * (k + 1))
        noisy = _statistics(pair.noise, exact, statistic, draws, noise_scale, rng, told)
        errors.append(int(np.count_nonzero(sign * (noisy - threshold) > 0)))
    return from_errors(pair.promise, errors[0], errors[1], draws, failure)


def _best_statistic(pair: NoisyPair) -> tuple[Callable[[Array], Array], float]:
    """A monotone function of the likelihood ratio, of (draws, numbers), and where to cut it."""
    low, high = pair.low, pair.high
    moved = float(np.linalg.norm(high - low))
    if not moved > 0:
        raise ValueError("both datasets give the same measurement: choose neighbours that differ.")
    if isinstance(pair.noise, LaplaceNoise):
        signs, ends = np.sign(high - low), (np.minimum(low, high), np.maximum(low, high))
        # A hair below the end, which sums of numbers cut off at their ends reach up to rounding.
        top = float(high @ signs) - 1e-9 * moved
        return lambda z: np.asarray(np.clip(z, *ends) @ signs), top
    direction = (high - low) / moved
    return lambda z: np.asarray(z @ direction), 0.5 * float((low + high) @ direction)


def worst_neighbours(strategy: Strategy) -> tuple[Array, Array]:
    """Two sets of scaled outputs, equal but for the person who can move the measurement most."""
    rows = _most_exposed_rows(strategy)
    signs = _worst_signs(strategy, rows)
    first = np.zeros(len(strategy.index))
    second = first.copy()
    first[rows], second[rows] = -signs, signs
    return first, second


def worst_records(bins: Bins) -> tuple[Array, Array]:
    """What one record adds to the measurement, twice: of all pairs of records the two furthest apart.

    Outputs at the ends and the middle of their bounds suffice: the move is convex in their squares.
    For Laplace noise a record that stays in its bin: but for the small energy it moves as far as any,
    and few numbers at once, which an attack sees best.
    """
    B, w = bins.matrix, bins.energy_weight
    if bins.law == LAPLACE:
        worst = B[:, int(np.argmax(np.abs(B).sum(axis=0)))]
        nothing, energy = np.zeros_like(worst), [w] if w > 0 else []
        return np.concatenate([nothing, worst, energy]), np.concatenate([worst, nothing, energy])
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


def _most_exposed_rows(strategy: Strategy) -> Integers:
    people = np.arange(len(strategy.index)) if strategy.people is None else strategy.people
    norms = person_norms(strategy.matrix, strategy.index, people) * strategy.person_weights()
    return np.flatnonzero(people == int(np.argmax(norms)))


def _worst_signs(strategy: Strategy, rows: Integers) -> Array:
    """The signs of one person's outputs that move the measurement most (all +1 for many rows)."""
    if len(rows) > ENUMERATED_ROWS:
        return np.ones(len(rows))
    signs = np.array(list(product((1.0, -1.0), repeat=len(rows))))
    moved = strategy.matrix[:, strategy.index[rows]] @ signs.T
    worst: Array = signs[int(np.argmax(np.square(moved).sum(axis=0)))]
    return worst


def _statistics(
    noise: LatticeNoise | LaplaceNoise,
    exact: Array,
    statistic: Callable[[Array], Array],
    draws: int,
    noise_scale: float,
    rng: np.random.Generator | None,
    tell: Callback,
) -> Array:
    """The statistic of released measurements, (draws,); many draws share one call."""
    size = len(exact)
    batch = min(draws, max(1, BATCH_NUMBERS // size))
    if isinstance(noise, LaplaceNoise):
        many: LatticeNoise | LaplaceNoise = replace(
            noise, size=size * batch, scale=noise.scale * noise_scale
        )
    else:
        many = replace(noise, size=size * batch, std=noise.std * noise_scale)
    tiled, parts = np.tile(exact, batch), []
    rounds = -(-draws // batch)
    for k in range(rounds):
        tell(k / rounds, "attacking with the best threshold")
        noisy = add_noise(tiled, many, rng)
        parts.append(statistic(noisy.reshape(batch, size)))
    return np.concatenate(parts)[:draws]
