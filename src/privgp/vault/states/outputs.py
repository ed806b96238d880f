"""A curator's lazy draws: one noisy coordinate for every new point, never a second one.

The rows that are multiplied are public; their columns may not exceed ``limit`` in squared norm, all
rows ever drawn together, whatever computed them. Proof: docs/proofs/function.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from privgp.gp.rounding import rounding
from privgp.privacy.noise import GaussianNoise
from privgp.types import Array, Integers
from privgp.vault.noise import add_noise
from privgp.vault.validate import clipped_outputs


@dataclass(frozen=True)
class Draws:
    """What has been drawn of one function, and what is needed to go on.

    ``sums``: (inputs,) of the scaled outputs, private; ``squares``: (inputs,) squared norms of the
    columns drawn so far; ``numbers``: the noisy coordinates; ``noise``: for the most coordinates
    there may be; ``seed``: for simulations, else None.
    """

    sums: Array = field(repr=False)
    noise: GaussianNoise
    limit: float
    seed: int | None
    squares: Array = field(repr=False)
    numbers: Array = field(repr=False)


def first_draws(
    y: Any,
    bounds: tuple[float, float],
    index: Integers,
    noise: GaussianNoise,
    norm: float,
    seed: int | None,
) -> Draws:
    """Nothing drawn yet: outputs clipped, scaled to [-1, 1] and added up per distinct input."""
    sums = np.bincount(index, clipped_outputs(y, len(index), bounds)).astype(np.float64)
    limit = norm**2 * (1.0 - rounding(2 * noise.size + 8))  # squares are sums of that many
    return Draws(sums, noise, limit, seed, np.zeros(len(sums)), np.empty(0))


def extended(draws: Draws, rows: Array) -> Draws:
    """The same function in further coordinates, ``rows`` (new, inputs): draws their noise."""
    if rows.ndim != 2 or rows.shape[1] != len(draws.sums) or not np.all(np.isfinite(rows)):
        raise ValueError("the rows to measure have a wrong shape or are not finite.")
    first, count = len(draws.numbers), len(rows)
    if first + count > draws.noise.size:
        raise ValueError("this function has no coordinates left.")
    rows, squares = within_limit(rows, draws.squares, draws.limit)
    exact = rows @ draws.sums
    if draws.seed is None:
        released = add_noise(exact, replace(draws.noise, size=count))
    else:
        # one stream per coordinate: a simulation does not depend on batches or restarts
        streams = (np.random.default_rng([draws.seed, i]) for i in range(first, first + count))
        released = exact + draws.noise.std * np.array([s.standard_normal() for s in streams])
    return replace(draws, squares=squares, numbers=np.concatenate([draws.numbers, released]))


def within_limit(rows: Array, squares: Array, limit: float) -> tuple[Array, Array]:
    """Rows whose columns, added to ``squares``, stay within the limit; and the new squares.

    An entry that would go beyond it is made smaller: rounding errors of the factor do that by some
    1e-10, and no error, however large, can do more.
    """
    total: Array = squares + np.square(rows).sum(axis=0)
    if np.all(total <= limit):
        return rows, total
    kept, total = rows.copy(), squares.copy()
    for row in kept:
        room = np.sqrt(np.maximum(limit - total, 0.0)) * (1.0 - 2.0**-50)
        np.clip(row, -room, room, out=row)
        total += row * row
    return kept, total
