"""GeoJSON is valid by RFC 7946, and other programs find in it what was put there."""

from __future__ import annotations

import json

import numpy as np
import pytest

from privgp.release import geojson

LON, LAT = np.linspace(-0.5, 0.25, 7), np.linspace(51.25, 51.75, 5)
MEAN = np.add.outer(100.0 * LON, LAT)  # tells its place


def made():
    return geojson.cells(LON, LAT, {"mean": MEAN, "low": MEAN - 1}, {"epsilon": 1.0})


def area(ring):
    x, y = np.array(ring).T
    return 0.5 * np.sum(x[:-1] * y[1:] - x[1:] * y[:-1])


def test_it_is_valid():
    found = json.loads(made())
    assert found["type"] == "FeatureCollection"
    assert "crs" not in found  # which the standard took away
    assert found["privgp"] == {"epsilon": 1.0}
    west, south, east, north = found["bbox"]
    assert len(found["features"]) == 35
    for feature in found["features"]:
        (ring,) = feature["geometry"]["coordinates"]
        assert len(ring) == 5
        assert ring[0] == ring[-1]
        assert area(ring) > 0  # against the clock
        assert all(west <= x <= east and south <= y <= north for x, y in ring)
        assert {*feature["properties"]} == {"mean", "low"}


def test_a_known_place_is_found_again(tmp_path):
    geopandas = pytest.importorskip("geopandas")
    from shapely.geometry import Point

    (tmp_path / "map.geojson").write_text(made(), encoding="utf-8")
    frame = geopandas.read_file(tmp_path / "map.geojson", engine="pyogrio")
    assert frame.crs == "EPSG:4326"
    for i, j in ((0, 0), (3, 2), (6, 4)):
        (row,) = frame[frame.contains(Point(LON[i] + 0.01, LAT[j] - 0.01))].itertuples()
        assert row.mean == MEAN[i, j]
    whole = frame.union_all()
    assert whole.geom_type == "Polygon"  # no gaps
    assert frame.area.sum() == pytest.approx(whole.area, rel=1e-12)  # and no overlaps


def test_points_keep_their_columns_and_the_order_of_coordinates():
    found = json.loads(geojson.points(LON[:2], LAT[:2], {"name": ["a", "b"]}, {}))
    first = found["features"][0]
    assert first["geometry"] == {"type": "Point", "coordinates": [-0.5, 51.25]}
    assert first["properties"] == {"name": "a"}
    assert json.loads(geojson.points(LON[:0], LAT[:0], {}, {}))["features"] == []


def test_cells_end_where_the_globe_does():
    text = geojson.cells(np.array([-180.0, 0.0, 180.0]), np.array([-90.0, 90.0]), {}, {})
    assert json.loads(text)["bbox"] == [-180, -90, 180, 90]


@pytest.mark.parametrize(("lon", "lat"), [(180.1, 0.0), (0.0, -90.1), (np.nan, 0.0)])
def test_what_is_not_in_degrees_is_refused(lon, lat):
    for write in (geojson.cells, geojson.points):
        with pytest.raises(ValueError, match="degrees"):
            write(np.array([lon, 0.0]), np.array([lat, 0.0]), {}, {})


@pytest.mark.parametrize(
    ("names", "places"),
    [
        (("lon", "lat"), (0, 1)),
        (("Latitude", " Longitude "), (1, 0)),
        (("lng", "age", "lat"), (0, 2)),
        (("x", "y"), None),
        (("lon", "lat", "latitude"), None),
    ],
)
def test_longitude_and_latitude_are_known_by_their_names(names, places):
    assert geojson.places_in(names) == places
