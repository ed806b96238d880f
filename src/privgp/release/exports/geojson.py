"""GeoJSON (RFC 7946) of values at places: polygons of a grid's cells, or points.

Coordinates are degrees of WGS 84, longitude first, as the standard has it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from privgp.types import Array

LONGITUDES = ("longitude", "lon", "lng", "long")
LATITUDES = ("latitude", "lat")
DIGITS = 7  # a centimetre
DEGREES = "longitudes must lie in [-180, 180] and latitudes in [-90, 90], in degrees."


def places_in(names: Sequence[str]) -> tuple[int, int] | None:
    """Where longitude and latitude stand among these names; None unless there is one of each."""
    words = [name.strip().lower() for name in names]
    found = [
        [i for i, word in enumerate(words) if word in set_] for set_ in (LONGITUDES, LATITUDES)
    ]
    return (found[0][0], found[1][0]) if [len(each) for each in found] == [1, 1] else None


def cells(
    longitudes: Array, latitudes: Array, columns: Mapping[str, Array], about: Mapping[str, Any]
) -> str:
    """A polygon for every cell of a grid.

    longitudes, latitudes: centres of the cells, ascending, at least two of each
    columns: (longitudes, latitudes) each, the properties of the cells
    about: what is said of the whole, as a member ``privgp`` of the collection
    """
    _check(longitudes, latitudes)
    west, south = _edges(longitudes, 180.0), _edges(latitudes, 90.0)
    features = []
    for i, j in np.ndindex(len(longitudes), len(latitudes)):
        (w, e), (s, n) = west[i : i + 2], south[j : j + 2]
        ring = [[w, s], [e, s], [e, n], [w, n], [w, s]]  # against the clock
        values = {name: float(column[i, j]) for name, column in columns.items()}
        features.append(_feature("Polygon", [ring], values))
    return _collection(features, (west[0], south[0], west[-1], south[-1]), about)


def points(
    longitudes: Array,
    latitudes: Array,
    columns: Mapping[str, Sequence[Any]],
    about: Mapping[str, Any],
) -> str:
    """A point for every place. columns: a property each, one value per place."""
    _check(longitudes, latitudes)
    at = np.round(np.column_stack([longitudes, latitudes]), DIGITS) + 0.0
    features = [
        _feature("Point", place.tolist(), {name: column[i] for name, column in columns.items()})
        for i, place in enumerate(at)
    ]
    box = (*at.min(axis=0).tolist(), *at.max(axis=0).tolist()) if len(at) else ()
    return _collection(features, box, about)


def _check(longitudes: Array, latitudes: Array) -> None:
    for values, most in ((longitudes, 180.0), (latitudes, 90.0)):
        if not np.all(np.abs(values) <= most):  # nor not-a-number
            raise ValueError(DEGREES)


def _edges(centres: Array, most: float) -> list[float]:
    """Half-way between the centres, and as far beyond the outer ones as the globe allows."""
    inner = 0.5 * (centres[1:] + centres[:-1])
    ends = [2.0 * centres[0] - inner[0], 2.0 * centres[-1] - inner[-1]]
    edges = np.clip([ends[0], *inner, ends[1]], -most, most)
    return [float(each) for each in np.round(edges, DIGITS) + 0.0]


def _feature(kind: str, coordinates: list[Any], values: Mapping[str, Any]) -> dict[str, Any]:
    geometry = {"type": kind, "coordinates": coordinates}
    return {"type": "Feature", "geometry": geometry, "properties": dict(values)}


def _collection(features: list[Any], box: Sequence[float], about: Mapping[str, Any]) -> str:
    made = {
        "type": "FeatureCollection",
        **({"bbox": list(box)} if box else {}),
        "privgp": dict(about),
        "features": features,
    }
    return json.dumps(made, allow_nan=False, ensure_ascii=False, separators=(",", ":")) + "\n"
