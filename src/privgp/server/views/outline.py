"""Coasts, borders and names of cities around a map, from a file that is part of the package.

The lines are Natural Earth's (public domain), the cities are of GeoNames (CC BY 4.0). The file is made
by ``deploy/outline.py``.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import numpy as np

from privgp.types import Array

MARGIN = 0.6  # of the map's longer side, drawn around it
FINENESS = 1 / 1000  # of the longer side: a line is drawn no finer
SMALLEST = 3  # steps of that size: an island that is smaller is left out
MOST_CITIES = 60


def outline(longitudes: Array, latitudes: Array) -> dict[str, object]:
    """What lies around the box of these coordinates.

    Parameters
    ----------
    longitudes, latitudes : array
        Degrees, ascending; longitudes may pass 180.

    Returns
    -------
    dict
        ``coasts`` and ``borders``: lists of lines, each a flat list of longitude and latitude;
        ``places``: name, longitude and latitude of cities, the largest first.

    """
    corner = np.array([longitudes[0], latitudes[0]])
    other = np.array([longitudes[-1], latitudes[-1]])
    side = float((other - corner).max())
    margin = np.minimum(MARGIN * side, [0.5 * (360.0 - other[0] + corner[0]), 90.0])
    low, high = corner - margin, other + margin
    lines: dict[bool, list[list[float]]] = {False: [], True: []}
    for turn in (-360.0, 0.0, 360.0):
        for line, is_border in _near(low, high, turn):
            lines[is_border] += _pieces(line, low, high, FINENESS * side)
    names, at = _cities()
    inside = np.flatnonzero(np.all((at >= corner) & (at <= other), axis=1))[:MOST_CITIES]
    places = [[names[k], round(float(at[k, 0]), 3), round(float(at[k, 1]), 3)] for k in inside]
    return {"coasts": lines[False], "borders": lines[True], "places": places}


def _near(low: Array, high: Array, turn: float) -> list[tuple[Array, bool]]:
    """The lines whose box meets this one, moved by a turn, and whether each is a border."""
    points, starts, boxes, is_border = _lines()
    shift = np.array([turn, 0.0])
    meets = np.all((boxes[:, 0] + shift <= high) & (boxes[:, 1] + shift >= low), axis=1)
    found = np.flatnonzero(meets)
    return [(points[starts[k] : starts[k + 1]] + shift, bool(is_border[k])) for k in found]


def _pieces(line: Array, low: Array, high: Array, step: float) -> list[list[float]]:
    """The parts of a line inside a box, without points that are closer to each other than a step."""
    inside = np.all((line >= low) & (line <= high), axis=1)
    near = inside | np.append(inside[1:], False) | np.append(False, inside[:-1])
    made = []
    for piece in np.split(line, np.flatnonzero(np.diff(near)) + 1):
        if len(piece) > 1 and np.any(np.all((piece >= low) & (piece <= high), axis=1)):
            cells = np.floor(piece / step)
            moved = np.append(True, np.any(np.diff(cells, axis=0) != 0, axis=1))
            moved[-1] = True
            if np.ptp(cells, axis=0).max() >= SMALLEST:
                made.append(np.round(piece[moved], 4).ravel().tolist())
    return made


@cache
def _stored() -> dict[str, Array]:
    path = files("privgp.server").joinpath("static", "outline.npz")
    with path.open("rb") as file, np.load(file) as kept:
        return dict(kept)


@cache
def _lines() -> tuple[Array, Array, Array, Array]:
    """All points (points, 2), where each line starts, its box (lines, 2, 2), and whether it is a border."""
    kept = _stored()
    lengths = kept["lengths"].astype(np.int64)
    starts = np.append(0, np.cumsum(lengths))
    steps = kept["steps"].T.astype(np.float64)
    total = np.cumsum(steps, axis=0)
    before = total[starts[:-1]] - steps[starts[:-1]]  # every line starts anew
    grid = total - np.repeat(before, lengths, axis=0)
    points = grid * kept["scale"] + kept["origin"]
    low = np.minimum.reduceat(points, starts[:-1])
    high = np.maximum.reduceat(points, starts[:-1])
    return points, starts, np.stack([low, high], axis=1), kept["is_border"]


@cache
def _cities() -> tuple[list[str], Array]:
    kept = _stored()
    names = kept["names"].tobytes().decode("utf-8").split("\n")
    return names, kept["places"].astype(np.float64) / 100.0
