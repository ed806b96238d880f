"""A grid over the range of a release's inputs, to predict on."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from privgp.command.errors import Refusal, list_names
from privgp.plan.inputs.inputs import Inputs
from privgp.release.release import Release
from privgp.tables.kinds import Number
from privgp.types import Array

MOST_POINTS = 1_000_000
POINTS = 100  # along an input, where --grid does not say
FORM = "--grid-bounds must be such as age=20:80,when=2023-01-01:2023-12-31,region=north|south."


@dataclass(frozen=True)
class Grid:
    """``axes``: the numbers along every input."""

    inputs: Inputs
    axes: tuple[Array, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(map(len, self.axes))

    def table(self) -> pl.DataFrame:
        """All combinations, the last input varying fastest."""
        points = np.meshgrid(*self.axes, indexing="ij")
        numbers = np.stack([axis.ravel() for axis in points], axis=1)
        return pl.DataFrame(self.inputs.table(numbers))


def grid_of(release: Release, count: int | None, bounds: str | None) -> Grid:
    """``count`` points along every input of a release, over its range unless bounds are given."""
    nodes, asked = release.parts[0].functionals.nodes, release.parameters
    names = release.names or tuple(f"x{k + 1}" for k in range(release.columns))
    inputs = asked.columns or Inputs(tuple(Number((name,)) for name in names))
    given, plain = _bounds(bounds, inputs), asked.columns is None
    numbers = nodes if plain else inputs.back(nodes)
    ends = inputs.ends(numbers)
    if asked.protect == "records":  # whose nodes lie inside of the declared bounds
        declared = np.array(asked.x_bounds).reshape(-1, 2) if plain else inputs.range_ends()
        ends = np.broadcast_to(declared, ends.shape)
    axes, place = [], 0
    for column in inputs.columns:
        for name in column.names:
            low, high = ends[place]
            if name in given:
                axes.append(_axis(column, name, given[name], count or POINTS))
            else:
                axes.append(column.axis(float(low), float(high), count or POINTS))
            place += 1
    if math.prod(map(len, axes)) > MOST_POINTS:
        raise Refusal(
            f"The grid would have {math.prod(map(len, axes)):,} points, more than {MOST_POINTS:,}: "
            "give a smaller --grid."
        )
    return Grid(inputs, tuple(axes))


def _bounds(text: str | None, inputs: Inputs) -> dict[str, str]:
    bounds: dict[str, str] = {}
    for entry in [] if text is None else text.split(","):
        name, equals, said = (part.strip() for part in entry.partition("="))
        if not (name and equals and said):
            raise Refusal(FORM)
        if name not in inputs.names:
            raise Refusal(
                f"--grid-bounds names '{name}', but the inputs are {list_names(inputs.names)}."
            )
        if name in bounds:
            raise Refusal(f"--grid-bounds has '{name}' twice.")
        bounds[name] = said
    return bounds


def _axis(column: Any, name: str, said: str, count: int) -> Array:
    """Points between the ends that were given, or at the levels."""
    words = said.split(column.apart)
    single = column if column.name_count == 1 else Number((name,))  # one side of a place
    try:
        ends = single.numbers([np.array(words, dtype=object)])[:, 0]
    except (ValueError, OverflowError):
        raise Refusal(FORM) from None
    if column.apart == "|":
        if np.any(ends > single.ends(ends[:, None])[0, 1]):
            raise Refusal(f"--grid-bounds has a level of '{name}' that the release does not know.")
        return np.asarray(ends)
    if len(ends) != 2 or not ends[0] < ends[1]:
        raise Refusal(FORM)
    return np.asarray(single.axis(float(ends[0]), float(ends[1]), count))
