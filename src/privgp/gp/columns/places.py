"""Places on the sphere: latitude and longitude as points in space, in kilometres."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from privgp.types import Array

RADIUS = 6371.0088  # kilometres: the earth's mean radius
NO_PYPROJ = "a place with a CRS needs pyproj: install privgp[geo], or give latitude and longitude."


def on_sphere(degrees: Array) -> Array:
    """(rows, 2) latitudes and longitudes as points (rows, 3) on the sphere."""
    lat, lon = np.radians(degrees).T
    points = [np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)]
    return np.asarray(RADIUS * np.column_stack(points))


def in_degrees(points: Array) -> Array:
    """The latitudes and longitudes below points in space."""
    x, y, z = points.T
    degrees = np.column_stack([np.arctan2(z, np.hypot(x, y)), np.arctan2(y, x)])
    return np.asarray(np.degrees(degrees))


def great_circle(a: Array, b: Array) -> Array:
    """The way along the surface between points on the sphere, in kilometres."""
    chord, across = np.linalg.norm(a - b, axis=-1), np.linalg.norm(a + b, axis=-1)
    return np.asarray(2.0 * RADIUS * np.arctan2(chord, across))


def from_crs(crs: str, coordinates: Array) -> Array:
    """Latitudes and longitudes of coordinates (rows, 2) in a CRS, east or longitude first."""
    there, _ = _transformers(crs)
    lon, lat = there.transform(*coordinates.T)
    return np.column_stack([lat, lon])


def to_crs(crs: str, degrees: Array) -> Array:
    """The coordinates of latitudes and longitudes in a CRS."""
    _, back = _transformers(crs)
    return np.column_stack(back.transform(*degrees.T[::-1]))


@cache
def _transformers(crs: str) -> tuple[Any, Any]:
    try:
        from pyproj import Transformer
        from pyproj.exceptions import CRSError
    except ImportError:
        raise ValueError(NO_PYPROJ) from None
    try:
        there = Transformer.from_crs(crs, "EPSG:4326", always_xy=True)
        return there, Transformer.from_crs("EPSG:4326", crs, always_xy=True)
    except CRSError:
        raise ValueError(
            f"pyproj does not know the CRS {crs!r}: use one such as EPSG:27700."
        ) from None
