"""Predictions as files for maps: points, GeoTIFF, and a column that tells where data are near."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

from tests.command.running import assert_one_sentence, run

BUDGET = "--bounds 0 100 --epsilon 5 --delta 1e-5 --hyperparameters fixed --seed 1"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("exports")
    rng = np.random.default_rng(0)
    lat, lon = rng.uniform(51.0, 51.4, 60), rng.uniform(-0.5, 0.5, 60)
    lat[0], lon[0] = 52.0, 1.5  # far from all others
    table = pl.DataFrame({"lat": lat, "lon": lon, "cost": rng.uniform(0, 100, 60)})
    table.write_csv(path / "t.csv")
    places = pl.DataFrame(
        {
            "name": ["near", "far"],
            "code": ["007", "012"],
            "people": [10, 20],
            "lat": [51.2, 51.9],
            "lon": [0.0, -0.4],
        }
    )
    places.write_csv(path / "places.csv")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(path)
        patch.setenv("XDG_STATE_HOME", str(path / "state"))
        line = f"release t.csv --inputs lat,lon --places lat,lon --output cost {BUDGET} -o r.privgp"
        assert run(*line.split()).code == 0
        line = (
            f"release t.csv --inputs lat,lon --protect records --x-bounds 50 53 --x-bounds -1 2 "
            f"--output cost {BUDGET} -o p.privgp"
        )
        assert run(*line.split()).code == 0
        yield path


def test_rows_become_points_with_their_columns(folder):
    assert run("predict", "r.privgp", "places.csv", "-o", "points.geojson").code == 0
    assert run("predict", "r.privgp", "places.csv", "-o", "points.csv").code == 0
    assert pl.read_csv("points.csv")["near_data"].to_list() == [1.0, 0.0]
    found = json.loads((folder / "points.geojson").read_text())
    near, far = found["features"]
    assert near["geometry"] == {"type": "Point", "coordinates": [0.0, 51.2]}
    told = near["properties"]
    assert (told["name"], told["code"], told["people"]) == ("near", "007", 10)
    assert told["mean"] == pytest.approx(pl.read_csv("points.csv")["mean"][0])
    assert (told["near_data"], far["properties"]["near_data"]) == (1.0, 0.0)
    assert found["privgp"]["simulation"] is True


def test_points_of_a_release_that_hides_places_need_a_word(folder):
    assert_one_sentence(run("predict", "p.privgp", "places.csv", "-o", "hidden.geojson"))
    line = ["predict", "p.privgp", "places.csv", "-o", "hidden.geojson", "--keep"]
    assert run(*line).code == 0
    near = json.loads((folder / "hidden.geojson").read_text())["features"][0]
    assert near["properties"]["near_data"] == 1.0  # as the noisy counts of bins tell


def test_points_need_places(folder):
    rows = pl.DataFrame({"age": np.arange(20.0), "cost": np.arange(20.0)})
    rows.write_csv("ages.csv")
    line = f"release ages.csv --inputs age --output cost {BUDGET} -o age.privgp"
    assert run(*line.split()).code == 0
    assert_one_sentence(run("predict", "age.privgp", "ages.csv", "-o", "ages.geojson"))
    assert_one_sentence(run("predict", "age.privgp", "--grid", 5, "-o", "ages.tif"))


def test_a_geotiff_has_the_numbers_of_the_grid_north_upwards(folder):
    rasterio = pytest.importorskip("rasterio")
    assert run("predict", "r.privgp", "--grid", 12, "-o", "g.tif").code == 0
    assert run("predict", "r.privgp", "--grid", 12, "-o", "g.csv").code == 0
    rows = pl.read_csv("g.csv")
    with rasterio.open("g.tif") as file:
        assert file.crs.to_epsg() == 4326
        assert file.descriptions == ("mean", "std", "low", "high", "near_data")
        assert file.tags()["simulation"] == "true"
        places = [*zip(rows["lon"], rows["lat"], strict=True)]
        found = np.array([*file.sample(places)])
    np.testing.assert_allclose(found[:, 0], rows["mean"])
    np.testing.assert_array_equal(found[:, 4], rows["near_data"])
    assert 0.0 < found[:, 4].mean() < 1.0


def test_grids_tell_where_data_are_near(folder):
    assert run("predict", "r.privgp", "--grid", 8, "-o", "near.geojson").code == 0
    features = json.loads((folder / "near.geojson").read_text())["features"]
    assert {each["properties"]["near_data"] for each in features} == {0.0, 1.0}
    assert run("predict", "r.privgp", "--grid", 8, "-o", "near.nc").code == 0
    from scipy.io import netcdf_file

    with netcdf_file("near.nc", mmap=False) as file:
        assert {*np.unique(file.variables["near_data"][:])} == {0.0, 1.0}
