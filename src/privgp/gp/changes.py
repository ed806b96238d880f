"""Local changes that a stationary kernel does not expect: bumps and steps of unknown height.

A change adds ``height * g(x)`` to the function, with a normal height and one public shape g: a bump
about a centre, or a step across a line through it. A list of many such shapes, few of them true at a
time, lets a function bend in one place and be smooth in all others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from scipy.special import ndtr

from privgp.types import Array, Positive

SIDES = 24  # steps along one input, and bumps of the narrowest width
DIRECTIONS = 6
OFFSETS = 9
CENTRES = 36
WIDTHS = (0.04, 0.08, 0.16)
MAP_WIDTHS = (0.08, 0.14, 0.25)
EDGE_WIDTHS = (0.05, 0.1, 0.2, 0.4)
STEP_WIDTH = 0.01


@dataclass(frozen=True)
class Change:
    """``g(x) = exp(-|slopes (x - centre)|^2 / 2)``, or a step from -1/2 to 1/2 along one slope.

    ``centre``: (columns,); ``slopes``: (1 or columns, columns); ``std``: of the height.
    """

    kind: str
    centre: Annotated[Array, "columns"]
    slopes: Annotated[Array, "slopes columns"]
    std: Positive

    def __call__(self, X: Array) -> Array:
        """``std * g`` at the rows of X."""
        z = (X - self.centre) @ self.slopes.T
        return np.asarray(self.std * SHAPES[self.kind](z))


SHAPES = {
    "bump": lambda z: np.exp(-0.5 * np.square(z).sum(axis=1)),
    "step": lambda z: ndtr(z[:, 0]) - 0.5,
    "edge": lambda z: np.exp(-np.maximum(z[:, 0], 0.0)),
}


def values(changes: Sequence[Change], X: Array) -> Array:
    """Every change at the rows of X, (rows, changes)."""
    return np.column_stack([change(X) for change in changes]) if changes else np.empty((len(X), 0))


def list_changes(X: Array, std: float) -> tuple[list[Change], Array]:
    """Changes all over the range of the public points X, and their prior weights, which sum to 1."""
    low, high = X.min(axis=0), X.max(axis=0)
    width = np.where(high > low, high - low, 1.0)
    columns = X.shape[1]
    if columns == 1:
        steps = [
            Change("step", low + width * t, np.array([[1.0 / (STEP_WIDTH * width[0])]]), std)
            for t in (np.arange(SIDES) + 0.5) / SIDES
        ]
        bumps = [
            Change("bump", low + width * t, np.array([[1.0 / (w * width[0])]]), std)
            for w in WIDTHS
            for t in np.linspace(0.0, 1.0, round(1.0 / w))
        ]
    else:
        steps, bumps = _steps_of_map(low, width, std), _bumps_of_map(X, width, std)
    edges = _edges(low, high, width, std)
    groups = [group for group in (steps, bumps, edges) if group]
    weights = [np.full(len(group), 1.0 / len(group) / len(groups)) for group in groups]
    return [change for group in groups for change in group], np.concatenate(weights)


def _edges(low: Array, high: Array, width: Array, std: float) -> list[Change]:
    out = []
    for axis in np.eye(len(low)):
        for corner, sign in ((low, 1.0), (high, -1.0)):
            for w in EDGE_WIDTHS:
                out.append(Change("edge", corner, (sign * axis / (w * width))[None, :], std))
    return out


def _steps_of_map(low: Array, width: Array, std: float) -> list[Change]:
    columns = len(low)
    if columns == 2:
        angles = np.pi * np.arange(DIRECTIONS) / DIRECTIONS
        directions = np.column_stack([np.cos(angles), np.sin(angles)])
    else:
        directions = np.eye(columns)
    out = []
    for direction in directions:
        reach = np.abs(direction).sum()  # of the unit cube along this direction
        for t in (np.arange(OFFSETS) + 0.5) / OFFSETS - 0.5:
            centre = low + width * (0.5 + t * reach * direction)
            out.append(Change("step", centre, (direction / (2 * STEP_WIDTH * width))[None, :], std))
    return out


def _bumps_of_map(X: Array, width: Array, std: float) -> list[Change]:
    from sklearn.cluster import KMeans

    number = min(CENTRES, len(X))
    centres = KMeans(number, n_init=1, random_state=0).fit(X / width).cluster_centers_ * width
    scale = np.sqrt(X.shape[1] / 2.0)
    return [
        Change("bump", centre, np.diag(1.0 / (w * scale * width)), std)
        for w in MAP_WIDTHS
        for centre in centres
    ]
