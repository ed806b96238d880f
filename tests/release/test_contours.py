"""Contours are valid polygons by RFC 7946 that cover the map, and hold the values they say."""

from __future__ import annotations

import json

import numpy as np
import pytest

from privgp.release.geojson import (
    Mesh,
    bands_between,
    collection,
    contours,
    edges,
    open_bands,
    quads,
    round_levels,
    wrap_longitude,
)

geopandas = pytest.importorskip("geopandas")
shapely = pytest.importorskip("shapely")
pytestmark = pytest.mark.filterwarnings("ignore:Geometry is in a geographic CRS")


def field(lon, lat, seed):
    rng = np.random.default_rng(seed)
    waves = rng.normal(size=(6, 2)) * 0.4
    phases, sizes = rng.uniform(0, 7, 6), rng.normal(size=6) * 40
    at = np.stack([lon, lat], axis=-1) @ waves.T + phases
    return np.sin(at) @ sizes


def read(features, mesh, tmp_path):
    path = tmp_path / "map.geojson"
    path.write_text(collection(features, mesh.bbox, {}), encoding="utf-8")
    return geopandas.read_file(path, engine="pyogrio")


def signed(ring):
    x, y = np.array(ring).T
    return np.sum(x[:-1] * y[1:] - x[1:] * y[:-1])


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("west", [-5.0, 172.0, 350.0])
def test_bands_are_valid_cover_the_map_and_hold_their_values(seed, west, tmp_path):
    mesh = Mesh.of_axes(west + np.linspace(0, 16, 41), np.linspace(-8, 7, 33))
    values = field(mesh.longitudes, mesh.latitudes, seed)
    bands = bands_between(round_levels(values, 6))
    features = contours(mesh, values, bands, {"name": "cost", "units": "EUR"})
    for feature in features:
        for outer, *holes in feature["geometry"]["coordinates"]:
            assert signed(outer) > 0
            assert all(signed(hole) < 0 for hole in holes)
    frame = read(features, mesh, tmp_path)
    assert frame.crs == "EPSG:4326"
    assert frame.is_valid.all()
    west_end, _, east_end, _ = frame.total_bounds
    assert -180 <= west_end < east_end <= 180
    # not by geopandas, which looks through the whole stack for what to say about degrees
    areas = np.asarray(frame.geometry)
    assert shapely.area(areas).sum() == pytest.approx(
        16 * 15, rel=1e-6
    )  # neither gaps nor overlaps

    for i, j in np.random.default_rng(seed).integers(1, 32, size=(20, 2)):
        place = shapely.Point(wrap_longitude(float(mesh.longitudes[i, j])), mesh.latitudes[i, j])
        found = frame[shapely.distance(areas, place) < 1e-6]
        assert any((found["from"] <= values[i, j]) & (values[i, j] <= found["to"]))


def test_a_map_across_the_date_line_is_cut_there():
    mesh = Mesh.of_axes(np.linspace(175, 187, 9), np.linspace(0, 4, 5))
    values = mesh.longitudes + mesh.latitudes
    features = contours(mesh, values, open_bands([180.0, 185.0]), {})
    assert [f["properties"]["band"] for f in features] == [
        "below 180",
        "180 to 185",
        "185 and above",
    ]
    for feature in features:
        for polygon in feature["geometry"]["coordinates"]:
            x = np.array(polygon[0])[:, 0]
            assert np.ptp(x) < 12  # and not round the globe
    found = json.loads(collection(features, mesh.bbox, {}))
    assert found["bbox"] == [175, 0, -173, 4]


def test_cells_across_the_date_line_are_cut_there():
    mesh = Mesh.of_axes(*edges(np.array([178.0, 179.5, 181.0]), np.array([0.0, 1.0])))
    found = json.loads(quads(mesh, {"mean": np.arange(6.0).reshape(3, 2)}, {}))
    kinds = [f["geometry"]["type"] for f in found["features"]]
    assert kinds == ["Polygon"] * 2 + ["MultiPolygon"] * 2 + ["Polygon"] * 2
    x = np.concatenate(
        [np.ravel(p) for f in found["features"] for p in _rings(f["geometry"])]
    ).reshape(-1, 2)[:, 0]
    assert {*np.unique(x)} == {177.25, 178.75, 180.0, -180.0, -179.75, -178.25}


def _rings(geometry):
    if geometry["type"] == "Polygon":
        return geometry["coordinates"]
    return [ring for polygon in geometry["coordinates"] for ring in polygon]


@pytest.mark.parametrize(("low", "high"), [(3.2, 871.0), (-1e-4, 3e-4), (5.0, 5.0), (0.0, 10.0)])
@pytest.mark.parametrize("count", [2, 5, 50])
def test_levels_are_round_and_hold_all_values(low, high, count):
    levels = round_levels(np.array([low, high]), count)
    assert 1 <= len(levels) - 1 <= count
    step = levels[1] - levels[0]
    assert levels[0] - 1e-8 * step <= low <= high <= levels[-1] + 1e-8 * step
    assert float(f"{step:.2g}") == pytest.approx(step, rel=1e-9)


def test_a_pole_in_a_plane_is_refused():
    pyproj = pytest.importorskip("pyproj")
    there = pyproj.Transformer.from_crs("EPSG:3031", "EPSG:4326", always_xy=True)
    x, y = np.meshgrid(np.linspace(-1e6, 1e6, 4), np.linspace(-1e6, 1e6, 4))
    lon, lat = there.transform(x.ravel(), y.ravel())
    with pytest.raises(ValueError, match="pole"):
        Mesh.of_degrees(np.column_stack([lat, lon]), (4, 4))
