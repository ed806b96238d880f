"""Points on the globe in rows and columns, such as a map is made of.

Longitudes are continuous: east of 180 degrees they go on beyond it, until they are written.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np

from privgp.types import Array

DIGITS = 7  # a centimetre
NOT_DEGREES = "longitudes must lie in [-180, 180] and latitudes in [-90, 90], in degrees."
NOT_ON_EARTH = "the map reaches beyond where its CRS can be turned into latitudes and longitudes."
ACROSS = (
    "a map in a CRS that holds a pole or part of the 180th meridian cannot be written as GeoJSON: "
    "write it as .nc or .csv."
)


@dataclass(frozen=True)
class Mesh:
    """Longitudes and latitudes in degrees, (east, north) each."""

    longitudes: Array
    latitudes: Array

    @classmethod
    def of_axes(cls, longitudes: Array, latitudes: Array) -> Self:
        """All combinations of longitudes, which may pass 180, and latitudes."""
        if not (np.all(np.abs(latitudes) <= 90.0) and np.ptp(longitudes) <= 360.0):
            raise ValueError(NOT_DEGREES)
        return cls(*np.meshgrid(longitudes, latitudes, indexing="ij"))

    @classmethod
    def of_degrees(cls, degrees: Array, shape: tuple[int, int]) -> Self:
        """Of latitudes and longitudes (points, 2), each between -180 and 180, made continuous."""
        if not np.all(np.isfinite(degrees)):
            raise ValueError(NOT_ON_EARTH)
        latitudes, longitudes = degrees.T.reshape(2, *shape)
        for axis in (1, 0):
            longitudes = np.unwrap(longitudes, axis=axis, period=360.0)
        if max(np.abs(np.diff(longitudes, axis=axis)).max() for axis in (0, 1)) > 180.0:
            raise ValueError(ACROSS)
        return cls(longitudes, latitudes)

    @property
    def is_box(self) -> bool:
        """Whether meridians bound its columns."""
        return not np.ptp(self.longitudes, axis=1).any()

    @property
    def bbox(self) -> list[float]:
        """West, south, east and north, as the standard has them: west is larger across the 180th
        meridian."""
        low, high = float(self.longitudes.min()), float(self.longitudes.max())
        west, east = wrap_longitude(low), wrap_longitude(high)
        if east == -180.0 and high > low:
            east = 180.0
        if high - low >= 360.0:
            west, east = -180.0, 180.0
        ends = west, self.latitudes.min(), east, self.latitudes.max()
        return [float(each) for each in np.round(ends, DIGITS) + 0.0]

    def parts(self, values: Array) -> Iterator[tuple[Mesh, Array]]:
        """The mesh with its values (east, north), cut at the 180th meridian, where they are
        interpolated; longitudes of every part lie between -180 and 180."""
        low, high = self.longitudes.min(), self.longitudes.max()
        cuts = [c for c in (-180.0, 180.0, 540.0) if low < c < high]
        if not self.is_box:
            if cuts:
                raise ValueError(ACROSS)
            yield self._recentre(), values
            return
        axis = self.longitudes[:, 0]
        whole = np.union1d(axis, cuts)
        filled = np.stack([np.interp(whole, axis, row) for row in values.T], axis=1)
        places = [0, *np.searchsorted(whole, cuts), len(whole) - 1]
        for first, last in itertools.pairwise(places):
            part = slice(first, last + 1)
            yield Mesh.of_axes(whole[part], self.latitudes[0])._recentre(), filled[part]

    def _recentre(self) -> Mesh:
        """The same between -180 and 180 degrees, where all of it lies in one turn."""
        middle = 0.5 * float(self.longitudes.min()) + 0.5 * float(self.longitudes.max())
        return Mesh(self.longitudes + wrap_longitude(middle) - middle, self.latitudes)


def wrap_longitude(longitude: float) -> float:
    """The same longitude, from -180 on and below 180."""
    return float(longitude - 360.0 * np.floor((longitude + 180.0) / 360.0))
