"""What a page shows of a release, as plain numbers: curves, maps or slices with their bands.

Around maps there are coasts, borders and names of cities, from a file that is part of the package and
made by ``deploy/outline.py``: Natural Earth (public domain) and GeoNames (CC BY 4.0).
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from privgp.models.picture import function_picture, kernel_points, part_of, probability_picture
from privgp.pictures.maps import far_from_inputs
from privgp.pictures.released import TOTAL, Released
from privgp.release.geojson import places_in
from privgp.release.queries.quantities import ReleasedFunction
from privgp.release.release import Release
from privgp.server.errors import Refused
from privgp.types import Array

LONGITUDE = "longitude"  # the ticks of one
CURVE, MAP = 121, 41  # points along a curve, and along either side of a map
COLUMNS = (
    "mean", "low", "high", "privacy_low", "privacy_high", "model_low", "model_high",
)  # fmt: skip
AT_TARGETS = "This release has values at its targets alone: there is no curve or map to show."
MARGIN = 0.6  # of the map's longer side, drawn around it
FINENESS = 1 / 1000  # of the longer side: a line is drawn no finer
SMALLEST = 3  # steps of that size: an island that is smaller is left out
MOST_CITIES = 60
TOO_LARGE = "The numbers are too large or too small: choose other units or bounds."


def view(release: Release, output: str) -> dict[str, Any]:
    """A panel for every output, of labels for every class (of two, for the last one); over more than
    two inputs, for every input as well.

    Maps have ``near``, 1 where a public input is nearby and 0 elsewhere, unless inputs are private or few.
    A panel has the mean, the 90% interval (low, high), the part of it that the privacy noise makes,
    and the part that the model makes, which is there without any noise: variances add up.
    Probabilities have the interval only.
    """
    each = _pictures_of(release, output)
    first = each[0][1]
    if first.targets is not None:
        raise Refused(422, AT_TARGETS)
    known = release.names if release.parameters.columns is None else first.names
    names = [str(name) for name in known or [f"input {k}" for k in range(len(first.extent))]]
    ticks = first.ticks or (None,) * len(names)
    count = MAP if len(names) == 2 else CURVE
    axes = [
        _axis(low, high, count, each) for (low, high), each in zip(first.extent, ticks, strict=True)
    ]
    kind = {1: "curve", 2: "map"}.get(len(names), "slices")
    panels = [
        {"output": shown.output, "input": place, "points": X.tolist(), **_numbers(one, shown, X)}
        for one, shown in each
        for place, X in _panels(axes, first.held_at)
    ]
    places = places_of(names, axes)
    around = {"outline": outline(*(axes[place] for place in places))} if places else {}
    if kind == "map":
        far = far_from_inputs(first, _panels(axes, first.held_at)[0][1])
        around |= {} if far is None else {"near": (far <= 1.0).astype(int).tolist()}
    return {
        "kind": kind,
        "inputs": names,
        "outputs": [shown.output for _, shown in each],
        "curve": first.curve,
        "places": places,
        "axes": [axis.tolist() for axis in axes],
        "ticks": ["" if each in (None, LONGITUDE) else each for each in ticks],
        "held": first.held if kind == "slices" else "",
        "held_at": np.asarray(first.held_at, dtype=float).tolist(),
        "simulation": first.simulation,
        "panels": panels,
        **around,
    }


def places_of(names: list[str], axes: list[Array]) -> list[int]:
    """Where longitude and latitude are, if those are the two inputs; otherwise nothing."""
    found = places_in(names) if len(names) == 2 else None
    if found is None:
        return []
    reach = [float(np.abs(axes[place]).max()) for place in found]
    return [*found] if reach[0] <= 180.0 and reach[1] <= 90.0 else []


def _axis(low: float, high: float, count: int, ticks: object) -> Array:
    """Points along an input: every level, or as many as asked for, longitudes from -180 on."""
    if isinstance(ticks, tuple):
        return np.arange(len(ticks), dtype=float)
    turns = np.floor((low + 180.0) / 360.0) if ticks == LONGITUDE else 0.0
    return np.linspace(low, high, count) - 360.0 * turns


def _pictures_of(release: Release, output: str) -> list[tuple[Release, Released]]:
    """What is shown of every outcome, with the release of that outcome alone."""
    found = []
    for one, name in zip(release.each, release.output_names or (output,), strict=True):
        count = len(one.parameters.labels() or ())
        for place in [1] if count == 2 else range(count):
            found.append((one, probability_picture(one, place, name)))
        if not count:
            found.append((one, function_picture(one, name or "output", False)))
    return found


def _panels(axes: list[Array], held: Array) -> list[tuple[int, Array]]:
    """The input that is varied, the first of all of them, and the points."""
    if len(axes) <= 2:
        grid = np.meshgrid(*axes, indexing="ij")
        return [(0, np.stack([each.ravel() for each in grid], axis=1))]
    made = []
    for place, axis in enumerate(axes):
        X = np.tile(held, (len(axis), 1))
        X[:, place] = axis
        made.append((place, X))
    return made


def _numbers(release: Release, shown: Released, X: Array) -> dict[str, list[float]]:
    with np.errstate(all="ignore"):
        mean, bands = shown.values(X)
        total = bands[TOTAL]
        columns = [mean, *total]
        if release.parameters.scatters:
            at = kernel_points(release.parameters.columns, X)
            share = ReleasedFunction.of(release).privacy_share(at)
            columns += [*part_of(total, mean, share), *part_of(total, mean, 1.0 - share)]
    if not all(np.all(np.isfinite(column)) for column in columns):
        raise Refused(422, TOO_LARGE)
    return {name: column.tolist() for name, column in zip(COLUMNS, columns, strict=False)}


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
def _read_file() -> dict[str, Array]:
    path = files("privgp.server").joinpath("static", "outline.npz")
    with path.open("rb") as file, np.load(file) as kept:
        return dict(kept)


@cache
def _lines() -> tuple[Array, Array, Array, Array]:
    """All points (points, 2), where each line starts, its box (lines, 2, 2), and whether it is a border."""
    kept = _read_file()
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
    kept = _read_file()
    names = kept["names"].tobytes().decode("utf-8").split("\n")
    return names, kept["places"].astype(np.float64) / 100.0
