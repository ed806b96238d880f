"""A custodian's lazy draws: one noisy coordinate for every new point, never a second one. The rows
that are multiplied are public; their columns may not exceed ``limit`` in squared norm, all rows
ever drawn together, whatever computed them. Proof: docs/proofs/function.md."""

import math
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar

import numpy as np

from privgp.gp.arithmetic import rounding
from privgp.gp.growing import Coordinates
from privgp.plan.functions.outputs import MAX_POINTS, SENSITIVITIES, FunctionModel
from privgp.privacy.noise import GaussianNoise
from privgp.storage.archive import require
from privgp.types import Array, Integers, Pair, Positive
from privgp.vault.states.functions import FunctionContents, FunctionDraws
from privgp.vault.states.kept import NOT_TOGETHER, OTHER_PROMISE, TOO_MUCH
from privgp.vault.validate import clip_outputs


@dataclass(frozen=True, kw_only=True)
class Draws(FunctionDraws):
    """Draws of a function of outputs.

    Attributes
    ----------
    sums : (inputs,), of the scaled outputs; private
    limit : limit of ``squares``
    squares : (inputs,), squared norms of the columns drawn so far; public

    """

    sums: Annotated[Array, "inputs"] = field(repr=False)
    limit: Positive
    squares: Annotated[Array, "inputs"] = field(repr=False)

    CHANGES: ClassVar[tuple[str, ...]] = ("squares",)


def first_draws(
    y: Any,
    bounds: Pair,
    index: Integers,
    noise: GaussianNoise,
    norm: float,
    seed: int | None,
    columns: int,
) -> Draws:
    """Nothing drawn yet: outputs clipped, scaled to [-1, 1] and added up per distinct input.

    Parameters
    ----------
    y
        Private outputs.
    bounds
        Declared.
    index
        (rows,), the distinct input of every row.
    noise
        For the most coordinates there may be.
    norm
        Half the sensitivity that the noise is for.
    seed
        Seed of a simulation.
    columns
        Number of inputs of the points to come.

    """
    sums = np.bincount(index, clip_outputs(y, len(index), bounds)).astype(np.float64)
    limit = limit_for(norm, noise.size)
    points, squares = np.empty((0, columns)), np.zeros(len(sums))
    return Draws(noise=noise, seed=seed, points=points, sums=sums, limit=limit, squares=squares)


def limit_for(norm: float, size: int) -> float:
    """The largest computed square of a norm that is at most this; squares are sums of ``size``."""
    return norm**2 * (1.0 - rounding(2 * size + 8))


def grow_draws(draws: Draws, rows: Array) -> Draws:
    """The same function in further coordinates: draws their noise.

    Parameters
    ----------
    draws
        So far.
    rows
        (new, inputs), public; entries that would exceed the limit are made smaller.

    """
    if rows.ndim != 2 or rows.shape[1] != len(draws.sums) or not np.all(np.isfinite(rows)):
        raise ValueError("the rows to measure have a wrong shape or are not finite.")
    rows, squares = within_limit(rows, draws.squares, draws.limit)
    return replace(draws, squares=squares, numbers=draws.with_noise(rows @ draws.sums))


def within_limit(rows: Array, squares: Array, limit: float) -> tuple[Array, Array]:
    """Rows whose columns, added to ``squares``, stay within the limit; and the new squares.

    An entry that would go beyond it is made smaller: rounding errors of the factor do that by
    some 1e-10, and no error, however large, can do more.
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


@dataclass(frozen=True)
class OutputsContents(FunctionContents):
    """A function of private outputs. The rows that measure a point are public, and computed first."""

    model: FunctionModel
    draws: Draws

    PROTECT = "outputs"
    SENSITIVITIES = SENSITIVITIES
    ADVICE = ", or give inducing= for any number."

    @property
    def most(self) -> float:
        """How many points are ever answered; any number through inducing inputs."""
        return super().most if self.model.nodes is None else math.inf

    def engine(self) -> Coordinates:
        """The public coordinates of the points asked so far."""
        return Coordinates(self.model.kernel, self.model.inputs, self.model.coefficients)

    def grow(self, engine: Coordinates, points: Array) -> Draws:
        """The draws with these new points among them; see ``Contents``."""
        engine.catch_up(self.draws.points)
        extension = engine.propose(points)
        draws = self.with_answers(grow_draws(self.draws, extension.rows), points, extension.lower)
        engine.accept(extension)
        return draws

    def draw_at_once(self) -> Draws | None:
        """Through inducing inputs all numbers are drawn at the fit."""
        if self.model.nodes is None:
            return None
        drawn = len(self.draws.numbers) > 0
        return self.draws if drawn else grow_draws(self.draws, self.model.node_rows)

    def values(self, X: Array) -> Array:
        """Answers through inducing inputs, (points,), in units of y."""
        return self.in_units(self.model.node_values(X, self.draws.numbers))

    def check(self) -> None:
        """Refuse counts, limits and squares that do not belong together, as only a file has them."""
        super().check()
        model, draws = self.model, self.draws
        numbers, points, size = len(draws.numbers), len(draws.points), draws.noise.size
        if model.nodes is None:
            aligned = numbers == points <= size <= MAX_POINTS
        else:
            aligned = points == 0 and numbers in (0, size) and size == len(model.nodes)
        counted = len(model.inputs) > 0 and bool(np.all(model.counts >= 1))
        counted = counted and bool(np.all((model.noises > 0.0) & (model.noises < math.inf)))
        require(aligned and counted, NOT_TOGETHER)
        require(draws.limit <= limit_for(self.norm, size), OTHER_PROMISE)
        limit = draws.limit * (1.0 + 1e-9)
        require(bool(np.all((draws.squares >= 0) & (draws.squares <= limit))), TOO_MUCH)
