"""Filled contours as GeoJSON (RFC 7946): a polygon for every part of the map between two levels."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from contourpy import FillType, contour_generator

from privgp.pictures.style import together
from privgp.release.exports.mesh import DIGITS, Mesh
from privgp.types import Array

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
    texts = together(levels)
    pairs = zip(levels, levels[1:], texts, texts[1:], strict=False)
    return [Band(low, high, f"{a} to {b}") for low, high, a, b in pairs]


def open_bands(levels: Sequence[float]) -> list[Band]:
    """The same, and what lies below the first level and above the last."""
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
        outer, *holes = (_ring(ring, -1.0 if k else 1.0) for k, ring in enumerate(rings))
        if outer:
            polygons.append([outer, *filter(None, holes)])
    return polygons


def _ring(points: Array, sign: float) -> list[list[float]]:
    """A closed ring of rounded points, of this direction; empty if no area is left."""
    points = np.round(points, DIGITS) + 0.0
    kept = points[np.r_[True, np.any(np.diff(points, axis=0) != 0.0, axis=1)]]
    (x, y), (x2, y2) = kept[:-1].T, kept[1:].T
    area = float(np.sum((x - x[:1]) * (y2 - y[:1]) - (x2 - x[:1]) * (y - y[:1])))
    if len(kept) < 4 or area == 0.0:
        return []
    directed = kept if area * sign > 0.0 else kept[::-1]
    return [[float(a), float(b)] for a, b in directed]
