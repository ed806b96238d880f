"""Averages over areas: polygons become points, and averages become maps of areas again."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from privgp.release.geojson import about_release, collection
from privgp.release.queries.averages import STATISTICS, Average
from privgp.tables.kinds import EASTWARDS, LATITUDES, LONGITUDES, NORTHWARDS
from privgp.tables.places import WGS84, to_crs
from privgp.types import Array, Integers, UserData

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NO_SHAPELY = "areas need shapely: install privgp[geo]."
POLYGONS = "polygons must be a GeoDataFrame, a GeoJSON file or what is in one, with a polygon for every area."
NAMES = ("name", "label", "id", "code")  # of a property that names an area, if none is asked for
MOST_AREAS, MOST_BYTES = 3000, 2**28
LEAST_POINTS, MOST_POINTS = 4, 20_000
EAST, NORTH = (*LONGITUDES, *EASTWARDS, "x"), (*LATITUDES, *NORTHWARDS, "y")


@dataclass(frozen=True)
class Plane:
    """Which inputs of a release are a place.

    Attributes
    ----------
    east, north : int
        Their places among the inputs.
    crs : str, optional
        The coordinate reference system; None: unknown units, as polygons have them too.
    degrees : bool
        Whether these are longitudes and latitudes.

    """

    east: int
    north: int
    crs: str | None
    degrees: bool

    @classmethod
    def of(cls, inputs: Any, names: Sequence[str] | None, count: int) -> Plane:
        """The place among the inputs: one that was declared, or two with the names of coordinates."""
        first = 0
        for column in () if inputs is None else inputs.columns:
            if column.degrees(np.empty((0, column.name_count))) is not None:
                east, north = (first + place for place in column.picture_order)
                return cls(east, north, column.system or WGS84, column.system is None)
            first += column.name_count
        words = [] if names is None else [name.strip().lower() for name in names]
        found = [[i for i, word in enumerate(words) if word in each] for each in (EAST, NORTH)]
        if [len(each) for each in found] == [1, 1]:
            (east,), (north,) = found
            degrees = words[east] in LONGITUDES and words[north] in LATITUDES
            return cls(east, north, WGS84 if degrees else None, degrees)
        if count == 2:
            return cls(0, 1, None, False)
        raise ValueError(
            "areas need a place among the inputs: declare one with columns, such as "
            "{('lat', 'lon'): 'place'}, or name two inputs lon and lat, or x and y."
        )


@dataclass(frozen=True)
class Polygons:
    """Areas as shapely has them, in the coordinates of a release.

    Attributes
    ----------
    shapes : tuple
        Polygons in the units of the release's inputs, east first.
    labels : tuple
        The name of every area.
    features : tuple of dict
        The areas as GeoJSON has them, with their properties.
    degrees : bool
        Whether coordinates are longitudes and latitudes.

    """

    shapes: tuple[Any, ...]
    labels: tuple[Any, ...]
    features: tuple[dict[str, Any], ...]
    degrees: bool = False

    @classmethod
    def read(cls, given: object, name: str | None, plane: Plane) -> Polygons:
        """From a GeoDataFrame, a path or the text of a GeoJSON file, or what is in one.

        Parameters
        ----------
        given
            Polygons with their properties.
        name : str, optional
            The property that names the areas. None: one of name, label, id and code, or their numbers.
        plane : Plane
            What the release's coordinates are.

        """
        try:
            import shapely
        except ImportError:
            raise ValueError(NO_SHAPELY) from None
        features, crs = _features(given)
        if not 1 <= len(features) <= MOST_AREAS:
            raise ValueError(f"polygons must be 1 to {MOST_AREAS} areas, got {len(features)}.")
        try:
            shapes = [shapely.geometry.shape(each["geometry"]) for each in features]
        except (KeyError, TypeError, ValueError, AttributeError, shapely.errors.GEOSException):
            raise ValueError(POLYGONS) from None
        for place, shape in enumerate(shapes):
            if shape.geom_type not in ("Polygon", "MultiPolygon") or shape.is_empty:
                raise ValueError(f"area {place + 1} of polygons is no polygon.")
        shapes = [each if each.is_valid else shapely.make_valid(each) for each in shapes]
        if plane.crs is not None and crs != plane.crs:
            shapes = [_transform(each, crs, plane.crs) for each in shapes]
        return cls(tuple(shapes), _labels(features, name), tuple(features), plane.degrees)

    def grid(self, points: int, degrees: bool) -> tuple[Array, Array, Integers]:
        """Points of a regular grid inside every area, about as many in each.

        Returns
        -------
        points : array (points, 2), east first
        weights : array (points,)
            The area that a point stands for, relative to others of its grid.
        places : array (points,)
            The area of every point.

        """
        import shapely

        found, places = [], []
        for place, shape in enumerate(self.shapes):
            west, south, east, north = shape.bounds
            share = shape.area / max((east - west) * (north - south), np.finfo(float).tiny)
            width, height = max(east - west, 1e-300), max(north - south, 1e-300)
            across = float(np.sqrt(points / max(share, 1e-3) * width / height))
            counts = [int(np.clip(round(n), 1, 2000)) for n in (across, across * height / width)]
            x, y = (
                low + (np.arange(n) + 0.5) * size / n
                for low, n, size in zip((west, south), counts, (width, height), strict=True)
            )
            lattice = np.stack([each.ravel() for each in np.meshgrid(x, y)], axis=1)
            inside = lattice[shapely.contains_xy(shape, lattice[:, 0], lattice[:, 1])]
            if not len(inside):
                inside = np.array(shape.representative_point().coords)
            found.append(inside)
            places.append(np.full(len(inside), place))
        rows = np.concatenate(found)
        weights = np.cos(np.radians(rows[:, 1])) if degrees else np.ones(len(rows))
        return rows, weights, np.concatenate(places).astype(np.int64)

    def holding(self, points: Array) -> Integers:
        """The area that holds every point, the first of several; -1 where none does."""
        import shapely

        tree = shapely.STRtree(self.shapes)
        held = np.full(len(points), -1, dtype=np.int64)
        rows, areas = tree.query(shapely.points(points), predicate="intersects")
        order = np.argsort(-areas, kind="stable")
        held[rows[order]] = areas[order]
        return held


@dataclass(frozen=True, repr=False, eq=False)
class Areas(Average):
    """Averages of a released function over areas, which also make a map.

    Attributes
    ----------
    polygons : Polygons
        The areas, in the order of the labels.
    output : str
        What is averaged, with its units.

    """

    polygons: Polygons = None  # type: ignore[assignment]
    output: str = "output"

    def to_geojson(self) -> str:
        """The areas as GeoJSON with their properties and mean, std, low and high."""
        features = []
        for place, feature in enumerate(self.polygons.features):
            values: dict[str, object] = {}
            for number, name in enumerate(self.quantities or ("",)):
                for statistic in STATISTICS:
                    array = getattr(self, statistic).reshape(len(self.labels), -1)
                    values[f"{name}_{statistic}" if name else statistic] = float(
                        array[place, number]
                    )
            kept = dict(feature.get("properties") or {})
            features.append({
                "type": "Feature",
                "geometry": feature["geometry"],
                "properties": kept | {"label": _json(self.labels[place])} | values,
            })  # fmt: skip
        about = about_release(self.guarantee, self.output, coverage=self.coverage)
        return collection(features, (), about)

    def plot(self, figure: Figure | None = None, *, quantity: str | None = None) -> Figure:
        """Two maps of the areas: their averages, and half the widths of their intervals.

        Parameters
        ----------
        figure : matplotlib figure, optional
            To draw into. None: a new one.
        quantity : str, optional
            Which of several quantities. None: the last.

        """
        from privgp.pictures.maps import plot_areas

        place = len(self.quantities) - 1
        if quantity is not None:
            if quantity not in self.quantities:
                raise ValueError(f"quantity must be one of {', '.join(self.quantities)}.")
            place = self.quantities.index(quantity)
        each = (self.mean, self.low, self.high)
        mean, low, high = (array[:, place] for array in each) if self.quantities else each
        rings = [_rings(shape) for shape in self.polygons.shapes]
        output = self.output
        if self.quantities:
            output = f"{self.output}: {self.quantities[place]}"
        promise = self.guarantee
        about = (promise.epsilon, promise.delta, promise.unit, promise.is_simulation)
        half, degrees = 0.5 * (high - low), self.polygons.degrees
        return plot_areas(rings, mean, half, output, self.coverage, about, figure, degrees=degrees)


def _rings(shape: object) -> list[list[Array]]:
    """The rings of every polygon of an area, the outer one first."""
    each = getattr(shape, "geoms", [shape])
    return [
        [np.array(ring.coords)[:, :2] for ring in (one.exterior, *one.interiors)]
        for one in each
        if one.geom_type == "Polygon"
    ]


def _features(given: UserData) -> tuple[list[dict[str, object]], str]:
    """GeoJSON features, and the name of their reference system."""
    crs = WGS84
    if hasattr(given, "geometry") and hasattr(given, "to_json"):  # of geopandas
        if getattr(given, "crs", None) is not None:
            crs = str(given.crs.to_string())
        found = json.loads(given.to_json(to_wgs84=False, drop_id=True))
    elif isinstance(given, Mapping):
        found = dict(given)
    elif isinstance(given, str | os.PathLike):
        found = _read(given)
    else:
        found = {"type": "FeatureCollection", "features": list(_iterate(given))}
    if not isinstance(found, dict):
        raise ValueError(POLYGONS)
    if found.get("type") == "Feature":
        found = {"features": [found]}
    features = found.get("features")
    if not isinstance(features, list) or not all(isinstance(each, dict) for each in features):
        raise ValueError(POLYGONS)
    return features, crs


def _iterate(given: UserData) -> Iterable[dict[str, object]]:
    """Shapes without properties, as GeoJSON features."""
    try:
        for shape in given:
            yield {"type": "Feature", "geometry": shape.__geo_interface__, "properties": {}}
    except (TypeError, AttributeError):
        raise ValueError(POLYGONS) from None


def _read(given: str | os.PathLike[str]) -> Any:
    """What is in a GeoJSON file, or in a text that is one."""
    text = str(given)
    try:
        if not text.lstrip().startswith("{"):
            path = Path(given)
            if path.stat().st_size > MOST_BYTES:
                raise ValueError("polygons are in a file of more than 256 MB: simplify them.")
            text = path.read_text("utf-8")
        return json.loads(text)
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError):
        raise ValueError(POLYGONS) from None


def _labels(features: Sequence[Mapping[str, Any]], name: str | None) -> tuple[object, ...]:
    """The name of every area, all different."""
    each = [dict(feature.get("properties") or {}) for feature in features]
    wanted = (name,) if name is not None else NAMES
    for key in wanted:
        found = [properties.get(key) for properties in each]
        usable = all(isinstance(label, str | int) for label in found)
        if usable and len({*found}) == len(found):
            return tuple(found)
    if name is not None:
        raise ValueError(
            f"name must be a property of polygons that is different for every area, got {name!r}."
        )
    return tuple(range(1, len(features) + 1))


def _transform(shape: object, old: str, new: str) -> Any:
    """A shape in another reference system."""
    import shapely

    from privgp.tables.places import from_crs

    def move(points: Array) -> Array:
        degrees = points[:, ::-1] if old == WGS84 else from_crs(old, points)
        return degrees[:, ::-1] if new == WGS84 else to_crs(new, degrees)

    return shapely.transform(shape, move)


def _json(label: object) -> object:
    return label if isinstance(label, str | int | float) else str(label)
