"""A curator's lazy draws: one noisy coordinate for every new point, never a second one.

The rows that are multiplied are public; their columns may not exceed ``limit`` in squared norm, all
rows ever drawn together, whatever computed them. Proof: docs/proofs/function.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from privgp.gp.rounding import rounding
from privgp.privacy.lattice import LatticeNoise
from privgp.types import Array, Integers, Matrix, Positive, Seed, Vector
from privgp.vault.noise import add_lattice_noise
from privgp.vault.validate import clipped_outputs


@dataclass(frozen=True)
class Draws:
    """What has been drawn of one function, and what is needed to go on.

    Private: ``sums`` (inputs,) of the scaled outputs. ``noise``: for the most coordinates there may
    be; ``limit``, of ``squares`` (inputs,): squared norms of the columns drawn so far; ``seed``: for
    simulations, else None; ``numbers``: the noisy coordinates. ``points`` (asked, columns) have
    ``answers`` (asked,) in units of y; there are none through inducing inputs.
    """

    sums: Vector = field(repr=False)
    noise: LatticeNoise
    limit: Positive
    seed: Seed | None
    squares: Vector = field(repr=False)
    points: Matrix
    numbers: Vector = field(default_factory=lambda: np.empty(0), repr=False)
    answers: Vector = field(default_factory=lambda: np.empty(0))

    GROWS: ClassVar[tuple[str, ...]] = ("points", "answers", "numbers")
    CHANGES: ClassVar[tuple[str, ...]] = ("squares",)


def first_draws(
    y: Any,
    bounds: tuple[float, float],
    index: Integers,
    noise: LatticeNoise,
    norm: float,
    seed: int | None,
    columns: int,
) -> Draws:
    """Nothing drawn yet: outputs clipped, scaled to [-1, 1] and added up per distinct input."""
    sums = np.bincount(index, clipped_outputs(y, len(index), bounds)).astype(np.float64)
    limit = norm**2 * (1.0 - rounding(2 * noise.size + 8))  # squares are sums of that many
    return Draws(sums, noise, limit, seed, np.zeros(len(sums)), np.empty((0, columns)))


def extended(draws: Draws, rows: Array) -> Draws:
    """The same function in further coordinates, ``rows`` (new, inputs): draws their noise."""
    if rows.ndim != 2 or rows.shape[1] != len(draws.sums) or not np.all(np.isfinite(rows)):
        raise ValueError("the rows to measure have a wrong shape or are not finite.")
    first, count = len(draws.numbers), len(rows)
    if first + count > draws.noise.size:
        raise ValueError("this function has no coordinates left.")
    rows, squares = within_limit(rows, draws.squares, draws.limit)
    exact = rows @ draws.sums
    released = with_noise(exact, draws.noise, draws.seed, first)
    return replace(draws, squares=squares, numbers=np.concatenate([draws.numbers, released]))


def with_noise(exact: Array, noise: LatticeNoise, seed: int | None, first: int) -> Array:
    """Coordinates from the ``first`` on with their noise, which for simulations is not the lattice's."""
    if seed is None:
        return add_lattice_noise(exact, replace(noise, size=len(exact)))
    # one stream per coordinate: a simulation does not depend on batches or restarts
    streams = (np.random.default_rng([seed, first + i]) for i in range(len(exact)))
    return exact + noise.std * np.array([stream.standard_normal() for stream in streams])


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
