"""Local changes that a stationary kernel does not expect: bumps, steps and edges of unknown height.

A change adds ``height * g(x)`` to the function, with a normal height and one public shape g: a bump
about a centre, a step across a line, or a decay away from an end of the range. Many such shapes, of
which one or two at a time are true, let a function bend in one place and be smooth in all others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Annotated

import numpy as np
from scipy.special import ndtr

from privgp.gp.measurement import Flags
from privgp.types import Array, Positive

# As shares of the range of each input.
STEP_WIDTH, STEP_OCTAVES = 0.02, 2.0  # along one input: drawn from these octaves about it
BORDER_WIDTH = 0.01  # of steps across a map
BUMP_WIDTHS = (0.04, 0.08, 0.16)
EDGE_WIDTHS = (0.05, 0.1, 0.2, 0.4)
MAP_WIDTHS = (0.08, 0.14, 0.25)  # of bumps on maps
# Prior probabilities of steps, bumps and edges: along one input, and on maps.
ALONG, ACROSS = (0.5, 0.3, 0.2), (1 / 3, 1 / 3, 1 / 3)
# How many there are.
STEPS = 32  # along one input
DIRECTIONS = 12  # of steps across a map
OFFSETS = 16  # along each of them
CENTRES = 40  # of bumps on a map

SHAPES: dict[str, Callable[[Array], Array]] = {
    "bump": lambda z: np.exp(-0.5 * np.square(z).sum(axis=1)),
    "step": lambda z: ndtr(z[:, 0]) - 0.5,
    "edge": lambda z: np.exp(-np.maximum(z[:, 0], 0.0)),
}


@dataclass(frozen=True)
class Change:
    """``std * g(slopes (x - centre))`` with g one of ``SHAPES``.

    Attributes
    ----------
    kind : "bump", "step" or "edge"
    centre : (columns,), where it is, in the units of the inputs
    slopes : (columns, columns) of a bump, (1, columns) of a step or an edge; one over the widths
    std : std of its height, in units of the function

    """

    kind: Annotated[str, tuple(SHAPES)]
    centre: Annotated[Array, "columns"]
    slopes: Annotated[Array, "slopes columns"]
    std: Positive

    def __call__(self, X: Array) -> Array:
        """The change at the rows of X, (rows,), for a height of one standard deviation."""
        return np.asarray(self.std * SHAPES[self.kind]((X - self.centre) @ self.slopes.T))


@dataclass(frozen=True)
class Cell:
    """A listed change, and the distance of the next ones.

    Attributes
    ----------
    change : the one in the middle
    apart : (columns,), how far the centres of neighbours are apart
    octaves : how many octaves apart their widths are
    angle : between neighbouring directions, on a map whose ranges, ``width``, are of one length
    width : the ranges of the inputs, (columns,)

    """

    change: Change
    apart: Array
    octaves: float = 0.0
    angle: float = 0.0
    width: Array | float = 1.0

    def anywhere(self, rng: np.random.Generator) -> Change:
        """A change drawn evenly from between this one and its neighbours."""
        shift, octaves, angle = rng.random(len(self.apart)), rng.random(), rng.random()
        turned = self.octaves * (octaves - 0.5), self.angle * (angle - 0.5)
        return self._move(self.apart * (shift - 0.5), *turned)

    def halves(self) -> list[Cell]:
        """The cells that it has if everything that varies in it is halved, together as likely as it."""
        apart, octaves, angle = 0.5 * self.apart, 0.5 * self.octaves, 0.5 * self.angle
        sides = [(-0.5, 0.5) if each else (0.0,) for each in (*apart, octaves, angle)]
        moves = ((apart * shift, octaves * o, angle * a) for *shift, o, a in product(*sides))
        return [Cell(self._move(*each), apart, octaves, angle, self.width) for each in moves]

    def _move(self, shift: Array, octaves: float, angle: float) -> Change:
        """The change elsewhere, steeper by octaves and turned by an angle."""
        slopes = self.change.slopes * 2.0**octaves
        if angle:
            slopes = _turn(slopes * self.width, angle) / self.width
        return replace(self.change, centre=self.change.centre + shift, slopes=slopes)


def halve(cells: list[Cell], weights: Array, heavy: Flags) -> tuple[list[Cell], Array]:
    """The same changes, heavy ones as their halves, and their prior weights."""
    each = [c.halves() if h else [c] for c, h in zip(cells, heavy, strict=True)]
    counts = [len(some) for some in each]
    return [c for some in each for c in some], np.repeat(weights / counts, counts)


def _turn(slopes: Array, angle: float) -> Array:
    """One direction on a map turned by an angle."""
    c, s = np.cos(angle), np.sin(angle)
    return np.asarray(slopes @ np.array([[c, s], [-s, c]]))


def values(changes: Sequence[Change], X: Array) -> Array:
    """Every change at the rows of X, (rows, changes)."""
    return np.column_stack([change(X) for change in changes]) if changes else np.empty((len(X), 0))


def list_changes(X: Array, std: float) -> tuple[list[Cell], Array]:
    """Changes over the whole range of the public points X, and their prior weights.

    Parameters
    ----------
    X
        (points, columns), public.
    std
        std of the heights, in units of the function.

    Returns
    -------
    cells : list of Cell
        Steps, bumps and edges, in this order.
    weights : Array
        (changes,), which sum to 1.

    """
    low, high = X.min(axis=0), X.max(axis=0)
    width = np.where(high > low, high - low, 1.0)
    kinds = [_steps(low, width, std), _bumps(X, low, width, std), _edges(low, high, width, std)]
    shares = ALONG if len(low) == 1 else ACROSS
    weights = [
        np.full(len(cells), share / len(cells)) for cells, share in zip(kinds, shares, strict=True)
    ]
    return [cell for cells in kinds for cell in cells], np.concatenate(weights)


def _steps(low: Array, width: Array, std: float) -> list[Cell]:
    """Steps across every input, on maps in other directions too."""
    columns, angle = len(low), 0.0
    offsets, share, octaves = OFFSETS, BORDER_WIDTH, 0.0
    if columns == 1:
        offsets, share, octaves = STEPS, STEP_WIDTH, STEP_OCTAVES
    directions = np.eye(columns)
    if columns == 2:
        angle = np.pi / DIRECTIONS
        angles = angle * np.arange(DIRECTIONS)
        directions = np.column_stack([np.cos(angles), np.sin(angles)])
    out = []
    for direction in directions:
        reach = np.abs(direction).sum()  # of the unit cube along this direction
        slopes = direction[None, :] / (share * width)
        for t in (np.arange(offsets) + 0.5) / offsets - 0.5:
            centre = low + width * (0.5 + t * reach * direction)
            apart = width * reach / offsets * np.abs(direction)
            step = Change("step", centre, slopes, std)
            out.append(Cell(step, apart, octaves, angle, width))
    return out


def _bumps(X: Array, low: Array, width: Array, std: float) -> list[Cell]:
    """Bumps along one input, or about the centres of clusters."""
    columns, out = len(low), []
    if columns == 1:
        for share in BUMP_WIDTHS:
            places = np.linspace(0.0, 1.0, round(1.5 / share))
            apart = width * (places[1] - places[0])
            for t in places:
                change = Change("bump", low + width * t, np.diag(1.0 / (share * width)), std)
                out.append(Cell(change, apart, 1.0))
        return out
    from sklearn.cluster import KMeans  # slow to import

    found = KMeans(min(CENTRES, len(X)), n_init=1, random_state=0).fit(X / width)
    for share in MAP_WIDTHS:
        wide = share * np.sqrt(columns / 2.0) * width
        for centre in found.cluster_centers_ * width:
            out.append(Cell(Change("bump", centre, np.diag(1.0 / wide), std), wide, 0.8))
    return out


def _edges(low: Array, high: Array, width: Array, std: float) -> list[Cell]:
    """Decays away from both ends of every input."""
    return [
        Cell(Change("edge", end, (sign * axis / (share * width))[None, :], std), 0.0 * width, 1.0)
        for axis in np.eye(len(low))
        for end, sign in ((low, 1.0), (high, -1.0))
        for share in EDGE_WIDTHS
    ]
