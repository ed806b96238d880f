"""Places on the sphere: latitude and longitude as points in space, in kilometres."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from privgp.types import Array

if TYPE_CHECKING:
    from pyproj import Transformer

RADIUS = 6371.0088  # kilometres: the earth's mean radius
WGS84 = "EPSG:4326"
NO_PYPROJ = "a place with a CRS needs pyproj: install privgp[geo], or give latitude and longitude."


def on_sphere(degrees: Array) -> Array:
    """Latitudes and longitudes in degrees, (rows, 2), as points in kilometres, (rows, 3)."""
    lat, lon = np.radians(degrees).T
    points = [np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)]
    return np.asarray(RADIUS * np.column_stack(points))


def in_degrees(points: Array) -> Array:
    """The latitudes and longitudes in degrees, (rows, 2), below points in space, (rows, 3)."""
    x, y, z = points.T
    degrees = np.column_stack([np.arctan2(z, np.hypot(x, y)), np.arctan2(y, x)])
    return np.asarray(np.degrees(degrees))


def great_circle(a: Array, b: Array) -> Array:
    """The way along the surface between points on the sphere, in kilometres.

    Parameters
    ----------
    a, b
        (..., 3), points on the sphere in kilometres; shapes are broadcast.

    """
    chord, across = np.linalg.norm(a - b, axis=-1), np.linalg.norm(a + b, axis=-1)
    return np.asarray(2.0 * RADIUS * np.arctan2(chord, across))


def from_crs(crs: str, coordinates: Array) -> Array:
    """Latitudes and longitudes of coordinates in a CRS.

    Parameters
    ----------
    crs
        a name that pyproj knows, such as "EPSG:27700".
    coordinates
        (rows, 2), east or longitude first.

    Raises
    ------
    ValueError
        pyproj is not installed, or does not know the CRS.

    """
    there, _ = _transformers(crs)
    lon, lat = there.transform(*coordinates.T)
    return np.column_stack([lat, lon])


def to_crs(crs: str, degrees: Array) -> Array:
    """The coordinates in a CRS, (rows, 2), east first, of latitudes and longitudes, (rows, 2)."""
    _, back = _transformers(crs)
    return np.column_stack(back.transform(*degrees.T[::-1]))


@cache
def _transformers(crs: str) -> tuple[Transformer, Transformer]:
    try:
        from pyproj import Transformer
        from pyproj.exceptions import CRSError
    except ImportError:
        raise ValueError(NO_PYPROJ) from None
    try:
        there = Transformer.from_crs(crs, WGS84, always_xy=True)
        return there, Transformer.from_crs(WGS84, crs, always_xy=True)
    except CRSError:
        raise ValueError(
            f"pyproj does not know the CRS {crs!r}: use one such as EPSG:27700."
        ) from None
