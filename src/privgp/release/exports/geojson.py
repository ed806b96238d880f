"""GeoJSON (RFC 7946) of values at places: polygons of a grid's cells, or points.

Coordinates are degrees of WGS 84, longitude first, as the standard has it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from privgp.release.exports.mesh import ACROSS, DIGITS, NOT_DEGREES, Mesh, wrap_longitude
from privgp.tables.kinds import LATITUDES, LONGITUDES
from privgp.types import Array


def places_in(names: Sequence[str]) -> tuple[int, int] | None:
    """Where longitude and latitude stand among these names; None unless there is one of each."""
    words = [name.strip().lower() for name in names]
    found = [
        [i for i, word in enumerate(words) if word in set_] for set_ in (LONGITUDES, LATITUDES)
    ]
    return (found[0][0], found[1][0]) if [len(each) for each in found] == [1, 1] else None


def cells(
    longitudes: Array, latitudes: Array, columns: Mapping[str, Array], about: Mapping[str, object]
) -> str:
    """A polygon for every cell of a grid.

    longitudes, latitudes: centres of the cells, ascending, at least two of each
    columns: (longitudes, latitudes) each, the properties of the cells
    about: what is said of the whole, as a member ``privgp`` of the collection
    """
    check_degrees(longitudes, latitudes)
    return quads(Mesh.of_axes(*edges(longitudes, latitudes)), columns, about)


def quads(corners: Mesh, columns: Mapping[str, Array], about: Mapping[str, object]) -> str:
    """The same of cells with these corners, one more along either side than there are cells."""
    at = np.round(np.stack([corners.longitudes, corners.latitudes], axis=2), DIGITS) + 0.0
    features = []
    for i, j in np.ndindex(at.shape[0] - 1, at.shape[1] - 1):
        ring = [at[i, j], at[i + 1, j], at[i + 1, j + 1], at[i, j + 1], at[i, j]]
        values = {name: float(column[i, j]) for name, column in columns.items()}
        features.append(_feature(*_cell(np.array(ring), corners.is_box), values))
    return collection(features, corners.bbox, about)


def edges(longitudes: Array, latitudes: Array) -> tuple[Array, Array]:
    """Edges of cells with these centres, as far as the globe allows; longitudes may pass 180."""
    inside = np.all(np.abs(longitudes) <= 180.0)
    middle = 0.0 if inside else 0.5 * float(longitudes[0] + longitudes[-1])
    east = np.clip(halfway(longitudes), middle - 180.0, middle + 180.0)
    return east, np.clip(halfway(latitudes), -90.0, 90.0)


def halfway(centres: Array) -> Array:
    """Half-way between the centres, and as far beyond the outer ones."""
    inner = 0.5 * (centres[1:] + centres[:-1])
    return np.array([2.0 * centres[0] - inner[0], *inner, 2.0 * centres[-1] - inner[-1]])


def _cell(ring: Array, is_box: bool) -> tuple[str, list[object]]:
    """The kind and the coordinates of a cell; one across the 180th meridian is two polygons."""
    (west, south), (east, north) = ring.min(axis=0), ring.max(axis=0)
    shift = wrap_longitude(west) - west
    if east + shift > 180.0:
        if not is_box:
            raise ValueError(ACROSS)
        halves = ((west + shift, 180.0), (-180.0, east + shift - 360.0))
        return "MultiPolygon", [[_box(w, south, e, north)] for w, e in halves]
    x, y = np.round(ring[:, 0] + shift, DIGITS) + 0.0, ring[:, 1]
    against = np.sum(x[:-1] * y[1:] - x[1:] * y[:-1]) > 0.0
    points = [[float(a), float(b)] for a, b in zip(x, y, strict=True)]
    return "Polygon", [points if against else points[::-1]]


def _box(w: float, s: float, e: float, n: float) -> list[list[float]]:
    """A ring against the clock."""
    ends = np.round([[w, s], [e, s], [e, n], [w, n], [w, s]], DIGITS) + 0.0
    return [[float(a), float(b)] for a, b in ends]


def points(
    longitudes: Array,
    latitudes: Array,
    columns: Mapping[str, Sequence[object]],
    about: Mapping[str, object],
) -> str:
    """A point for every place. columns: a property each, one value per place."""
    check_degrees(longitudes, latitudes)
    at = np.round(np.column_stack([longitudes, latitudes]), DIGITS) + 0.0
    features = [
        _feature("Point", place.tolist(), {name: column[i] for name, column in columns.items()})
        for i, place in enumerate(at)
    ]
    box = (*at.min(axis=0).tolist(), *at.max(axis=0).tolist()) if len(at) else ()
    return collection(features, box, about)


def check_degrees(longitudes: Array, latitudes: Array) -> None:
    """Refuse what is no longitude between -180 and 180, or no latitude."""
    for values, most in ((longitudes, 180.0), (latitudes, 90.0)):
        if not np.all(np.abs(values) <= most):  # nor not-a-number
            raise ValueError(NOT_DEGREES)


def _feature(
    kind: str, coordinates: list[object], values: Mapping[str, object]
) -> dict[str, object]:
    geometry = {"type": kind, "coordinates": coordinates}
    return {"type": "Feature", "geometry": geometry, "properties": dict(values)}


def collection(features: list[Any], box: Sequence[float], about: Mapping[str, Any]) -> str:
    """The text of a file with these features. ``box``: its ends; ``about``: as ``cells`` has it."""
    made = {
        "type": "FeatureCollection",
        **({"bbox": list(box)} if box else {}),
        "privgp": dict(about),
        "features": features,
    }
    return json.dumps(made, allow_nan=False, ensure_ascii=False, separators=(",", ":")) + "\n"
