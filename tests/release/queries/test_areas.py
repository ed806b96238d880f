"""Areas: points in polygons, averages over them, GeoJSON, a picture, and files that are none."""

from __future__ import annotations

import json
from typing import Any

import geopandas
import numpy as np
import pandas as pd
import pytest
import shapely

from privgp import PrivateGPRegressor

rng = np.random.default_rng(3)
SETTINGS: dict[str, Any] = {
    "epsilon": 2.0, "delta": 1e-5, "random_state": 0, "hyperparameters": "fixed",
}  # fmt: skip
HALVES = [shapely.box(0, 0, 0.5, 1), shapely.box(0.5, 0, 1, 1)]


@pytest.fixture(scope="module")
def plain() -> PrivateGPRegressor:
    X = rng.uniform(0, 1, (300, 2))
    return PrivateGPRegressor(y_bounds=(-2, 2), **SETTINGS).fit(X, np.sin(4 * X[:, 0]))


@pytest.fixture(scope="module")
def placed() -> PrivateGPRegressor:
    table = pd.DataFrame(
        {
            "lat": rng.uniform(51, 52, 300),
            "lon": rng.uniform(0, 1, 300),
            "age": rng.uniform(0, 90, 300),
        }
    )
    columns = {("lat", "lon"): "place", "age": "number"}
    model = PrivateGPRegressor(y_bounds=(-2, 2), columns=columns, **SETTINGS)
    return model.fit(table, np.sin(4 * table["lon"].to_numpy()) + 0.01 * table["age"].to_numpy())


def geojson(**properties: list[Any]) -> dict[str, Any]:
    """Two areas in degrees."""
    shapes = [shapely.box(0, 51, 0.5, 52), shapely.box(0.5, 51, 1, 52)]
    features = [
        {
            "type": "Feature",
            "geometry": json.loads(shapely.to_geojson(shape)),
            "properties": {key: values[place] for key, values in properties.items()},
        }
        for place, shape in enumerate(shapes)
    ]
    return {"type": "FeatureCollection", "features": features}


def test_an_area_is_the_average_over_a_grid_in_it(plain):
    found = plain.areas(HALVES, points=900)
    x, y = (np.arange(60) + 0.5) / 60, (np.arange(60) + 0.5) / 60
    lattice = np.stack([each.ravel() for each in np.meshgrid(x, y)], axis=1)
    wanted = plain.average(lattice, by=np.where(lattice[:, 0] < 0.5, 1, 2))
    assert found.labels == (1, 2)
    assert np.allclose(found.mean, wanted.mean, atol=0.02 * wanted.std.min())
    assert np.allclose(found.std, wanted.std, rtol=0.01)
    assert np.allclose(found.covariance, wanted.covariance, atol=0.02 * wanted.covariance.max())


def test_a_hole_and_a_sliver_have_points_of_their_own(plain):
    ring = shapely.box(0, 0, 1, 1).difference(shapely.box(0.2, 0.2, 0.8, 0.8))
    sliver = shapely.Polygon([(0.5, 0.5), (0.6, 0.6), (0.6, 0.6 + 1e-9)])
    found = plain.areas([ring, sliver])
    assert found.mean[1] == pytest.approx(plain.predict([[0.57, 0.57]])[0], abs=0.05)
    assert np.all(np.isfinite(found.std))


def test_a_place_takes_degrees_and_other_inputs_are_fixed(placed):
    found = placed.areas(geojson(name=["west", "east"]), fixed={"age": 40.0})
    assert found.labels == ("west", "east")
    at = pd.DataFrame({"lat": 51.5, "lon": np.linspace(0.01, 0.49, 25), "age": 40.0})
    assert found.mean[0] == pytest.approx(placed.predict(at).mean(), abs=0.2)
    back = json.loads(found.to_geojson())
    west = back["features"][0]["properties"]
    assert west["mean"] == found.mean[0]
    assert {"name", "label", "std", "low", "high"} <= {*west}
    assert back["privgp"]["epsilon"] == 2.0


def test_people_in_the_areas_can_be_averaged_over(placed):
    people = pd.DataFrame(
        {
            "lat": rng.uniform(51, 52, 80),
            "lon": rng.uniform(0, 1.2, 80),
            "age": rng.uniform(0, 90, 80),
            "n": rng.integers(1, 9, 80),
        }
    )
    found = placed.areas(geojson(name=["west", "east"]), people, weights="n")
    inside = people[people["lon"] <= 1.0]
    by = np.where(inside["lon"] < 0.5, "west", "east")
    wanted = placed.average(inside[["lat", "lon", "age"]], weights=inside["n"], by=by)
    assert np.allclose(found.mean[::-1], wanted.mean)
    assert np.allclose(found.std[::-1], wanted.std)


def test_a_frame_of_geopandas_is_moved_to_degrees(placed, tmp_path):
    frame = geopandas.GeoDataFrame.from_features(geojson(name=["a", "b"]), crs="EPSG:4326")
    plain = placed.areas(frame, fixed={"age": 40.0})
    moved = placed.areas(frame.to_crs("EPSG:3857"), fixed={"age": 40.0})
    assert np.allclose(plain.mean, moved.mean, atol=1e-3)
    frame.to_file(tmp_path / "a.geojson", driver="GeoJSON")
    from_file = placed.areas(tmp_path / "a.geojson", fixed={"age": 40.0})
    assert np.allclose(from_file.mean, plain.mean)


def test_a_picture_shows_averages_and_their_uncertainty(plain):
    figure = plain.areas(HALVES).plot()
    labels = [ax.get_xlabel() for ax in figure.axes]
    assert any("mean output" in each for each in labels)
    assert any("90% interval" in each for each in labels)


@pytest.mark.parametrize(
    ("given", "asked", "message"),
    [
        ("no such file.geojson", {}, "No such file|polygons"),
        ("{broken", {}, "polygons must be"),
        ({"type": "FeatureCollection"}, {}, "polygons must be"),
        ({"type": "FeatureCollection", "features": []}, {}, "1 to 3000 areas"),
        ({"features": [{"geometry": None}]}, {}, "polygons must be|no polygon"),
        ({"features": [{"geometry": {"type": "Point", "coordinates": [0, 0]}}]}, {}, "no polygon"),
        (7, {}, "polygons must be"),
        ([7], {}, "polygons must be"),
        (HALVES, {"name": "district"}, "name must be a property"),
        (HALVES, {"points": 0}, "points must be"),
        (HALVES, {"points": 10**9}, "points must be"),
        (HALVES, {"weights": [1.0]}, "give X"),
        (HALVES, {"fixed": {"age": 3}}, "without them"),
        (HALVES, {"coverage": 7}, "coverage"),
        (HALVES, {"X": [[0.1, 0.1]]}, "X has no row in the area 2"),
    ],
)
def test_what_makes_no_areas_is_refused(plain, given, asked, message):
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        plain.areas(given, **asked)


def test_inputs_without_a_place_and_inputs_that_are_not_fixed_are_refused(placed):
    table = pd.DataFrame(rng.uniform(size=(60, 3)), columns=["a", "b", "c"])
    model = PrivateGPRegressor(y_bounds=(0, 1), **SETTINGS).fit(table, rng.uniform(size=60))
    with pytest.raises(ValueError, match="a place among the inputs"):
        model.areas(HALVES)
    with pytest.raises(ValueError, match="fixed must have a value for 'age'"):
        placed.areas(geojson(name=["a", "b"]))
    with pytest.raises(ValueError, match="fixed has 'height'"):
        placed.areas(geojson(name=["a", "b"]), fixed={"age": 3.0, "height": 1.0})
