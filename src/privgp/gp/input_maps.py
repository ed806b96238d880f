"""Public maps of the inputs: scaling, part-ranked coordinates, collapsing of equal rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Annotated

import numpy as np
from scipy.interpolate import PchipInterpolator

from privgp.types import Array, Integers, Share, added_field

KNOTS = 25  # few enough that the map is smooth


@dataclass(frozen=True)
class InputMap:
    """A monotone map of each input column: ``(1 - share) * x + share * rank(x)``.

    ``rank`` is the empirical distribution function of the public inputs, stretched to the spread
    of its column, so that ``share`` moves between raw and ranked coordinates without changing
    scale. Beyond the observed range the ranked part stays at its end.

    Attributes
    ----------
    share : share of the ranked coordinate, between 0 and 1
    knots, ranks : (knots, columns), a coordinate and the rank it has
    plain : columns that stay as they are
    bins : (columns, 3), if given: every coordinate is moved to the middle of its bin. The lower end of
        the first bin, the width of a bin, and how many there are

    """

    share: Share = 0.0
    knots: Annotated[Array, "* *"] = field(default_factory=lambda: np.empty((0, 0)), repr=False)
    ranks: Annotated[Array, "* *"] = field(default_factory=lambda: np.empty((0, 0)), repr=False)
    plain: tuple[int, ...] | None = added_field(None)
    bins: Annotated[Array, "* *"] | None = added_field(None)

    @property
    def key(self) -> tuple[object, ...]:
        """What tells maps apart."""
        bins = None if self.bins is None else self.bins.tobytes()
        return self.share, self.knots.tobytes(), self.ranks.tobytes(), self.plain, bins

    @cached_property
    def _curves(self) -> list[Callable[[Array], Array]]:
        """The rank of a coordinate, for every column."""
        pairs = zip(self.knots.T, self.ranks.T, strict=True)
        return [_smooth_ranks(knots, ranks) for knots, ranks in pairs]

    def __call__(self, X: Array) -> Array:
        """The mapped rows of X, (rows, columns)."""
        if self.bins is not None:
            low, width, count = self.bins.T
            X = low + width * (np.clip(np.floor((X - low) / width), 0.0, count - 1.0) + 0.5)
        if self.share == 0.0:
            return X
        ranked = np.column_stack([own(X[:, j]) for j, own in enumerate(self._curves)])
        mapped = (1.0 - self.share) * X + self.share * ranked
        plain = list(self.plain or ())
        mapped[:, plain] = X[:, plain]
        return mapped


def _smooth_ranks(knots: Array, ranks: Array) -> Callable[[Array], Array]:
    """A smooth monotone curve through the knots, constant beyond them."""
    places, first = np.unique(knots, return_index=True)
    curve = PchipInterpolator(places, ranks[first]) if len(places) > 1 else None
    return partial(_rank, curve, float(ranks[0]), (places[0], places[-1]))


def _rank(
    curve: PchipInterpolator | None, single: float, ends: tuple[float, float], x: Array
) -> Array:
    return np.full(len(x), single) if curve is None else np.asarray(curve(np.clip(x, *ends)))


def blend_ranks(X: Array, share: float, plain: tuple[int, ...] = ()) -> InputMap:
    """The map that blends the coordinates of ``X``, except for the plain ones, with their ranks.

    Parameters
    ----------
    X
        (rows, columns), public inputs.
    share
        Share of the ranked coordinate; 0 gives the map that changes nothing.
    plain
        Columns that stay as they are.

    """
    if share == 0.0:
        return InputMap()
    levels = np.linspace(0.0, 1.0, KNOTS)
    knots = np.quantile(X, levels, axis=0)
    centre, spread = X.mean(axis=0), spreads(X)
    ranks = centre + spread * np.sqrt(12.0) * (levels[:, None] - 0.5)
    # Equal knots (many rows at one value) share the middle of their ranks.
    for j in range(X.shape[1]):
        _, index, counts = np.unique(knots[:, j], return_inverse=True, return_counts=True)
        ranks[:, j] = (np.bincount(index, ranks[:, j]) / counts)[index]
    return InputMap(share, knots, ranks, plain or None)


def spreads(X: Array) -> Array:
    """Standard deviation of each column, (columns,); 1 if a column is constant."""
    spread = np.asarray(X.std(axis=0), dtype=float)
    floor = 1e-12 * np.abs(X).max(axis=0)
    return np.where(spread > floor, spread, 1.0)


def collapse(X: Array) -> tuple[Array, Integers]:
    """The distinct rows of X, sorted, and for every row which of them it is, (rows,)."""
    unique, index = np.unique(X, axis=0, return_inverse=True)
    return unique, np.asarray(index, dtype=np.int64).ravel()
