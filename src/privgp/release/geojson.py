"""GeoJSON (RFC 7946) of values at places: polygons of a grid's cells, or points.

Coordinates are degrees of WGS 84, longitude first, as the standard has it.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from contourpy import FillType, contour_generator

from privgp.privacy.guarantee import Guarantee
from privgp.tables.kinds import LATITUDES, LONGITUDES
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
        """From latitudes and longitudes (points, 2), each between -180 and 180, made continuous."""
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


LEADING = (1.0, 2.0, 2.5, 5.0)  # digits of a round step
SLACK = 1e-9  # of a step, for rounding


@dataclass(frozen=True)
class Band:
    """What lies from one level to another; None where there is no end."""

    low: float | None
    high: float | None
    text: str


def round_levels(values: Array, count: int) -> list[float]:
    """Round numbers that hold all values in at most ``count`` bands."""
    low, high = float(values.min()), float(values.max())
    least = np.floor(np.log10(max(high - low, 1e-9 * abs(high), 1e-300) / count))
    for power in itertools.count(int(least)):
        for step in (leading * 10.0**power for leading in LEADING):
            first, last = np.floor(low / step + SLACK), np.ceil(high / step - SLACK)
            if last - first <= count:
                places = np.arange(first, max(last, first + 1.0) + 1.0)
                return [float(f"{place * step:.12g}") for place in places]
    raise AssertionError  # the powers never end


def bands_between(levels: Sequence[float]) -> list[Band]:
    """From each level to the next, where no value lies outside of them."""
    from privgp.pictures.style import together  # slow to import

    texts = together(levels)
    pairs = zip(levels, levels[1:], texts, texts[1:], strict=False)
    return [Band(low, high, f"{a} to {b}") for low, high, a, b in pairs]


def open_bands(levels: Sequence[float]) -> list[Band]:
    """The same, and what lies below the first level and above the last."""
    from privgp.pictures.style import together  # slow to import

    texts = together(levels)
    below = Band(None, levels[0], f"below {texts[0]}")
    above = Band(levels[-1], None, f"{texts[-1]} and above")
    return [below, *bands_between(levels), above]


def contours(mesh: Mesh, values: Array, bands: Sequence[Band], said: dict[str, Any]) -> list[Any]:
    """A feature for every band that occurs. values: (east, north); said: properties of all."""
    features = []
    parts = [
        contour_generator(
            part.longitudes.T, part.latitudes.T, inside.T, fill_type=FillType.OuterOffset
        )
        for part, inside in mesh.parts(values)
    ]
    for place, band in enumerate(bands):
        # values on the outermost levels belong to a band too
        low = -np.inf if place == 0 or band.low is None else band.low
        high = np.inf if place == len(bands) - 1 or band.high is None else band.high
        polygons = [polygon for part in parts for polygon in _polygons(part, low, high)]
        if polygons:
            units = f" {said['units']}" if said.get("units") else ""
            about = {**said, "from": band.low, "to": band.high, "band": f"{band.text}{units}"}
            geometry = {"type": "MultiPolygon", "coordinates": polygons}
            features.append({"type": "Feature", "geometry": geometry, "properties": about})
    return features


def _polygons(generator: Any, low: float, high: float) -> list[list[Any]]:
    """Polygons as rings, the outer one first and against the clock, holes with it."""
    polygons = []
    for points, offsets in zip(*generator.filled(low, high), strict=True):
        rings = [points[a:b] for a, b in itertools.pairwise(offsets)]
        outer, *holes = (_outline(ring, -1.0 if k else 1.0) for k, ring in enumerate(rings))
        if outer:
            polygons.append([outer, *filter(None, holes)])
    return polygons


def _outline(points: Array, sign: float) -> list[list[float]]:
    """A closed ring of rounded points, of this direction; empty if no area is left."""
    points = np.round(points, DIGITS) + 0.0
    kept = points[np.r_[True, np.any(np.diff(points, axis=0) != 0.0, axis=1)]]
    (x, y), (x2, y2) = kept[:-1].T, kept[1:].T
    area = float(np.sum((x - x[:1]) * (y2 - y[:1]) - (x2 - x[:1]) * (y - y[:1])))
    if len(kept) < 4 or area == 0.0:
        return []
    directed = kept if area * sign > 0.0 else kept[::-1]
    return [[float(a), float(b)] for a, b in directed]


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


def about_release(promise: Guarantee, output: str, **more: object) -> dict[str, object]:
    """What is said of a whole file: what it shows, and its budget."""
    budget = {"epsilon": promise.epsilon, "delta": promise.delta}
    return {"output": output, **more, **budget, "simulation": promise.is_simulation}


def collection(features: list[Any], box: Sequence[float], about: Mapping[str, Any]) -> str:
    """The text of a file with these features. ``box``: its ends; ``about``: as ``cells`` has it."""
    made = {
        "type": "FeatureCollection",
        **({"bbox": list(box)} if box else {}),
        "privgp": dict(about),
        "features": features,
    }
    return json.dumps(made, allow_nan=False, ensure_ascii=False, separators=(",", ":")) + "\n"
