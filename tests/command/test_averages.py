"""Averages and bands from the command are those of the model."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import privgp
from tests.command.running import assert_refused, run

RNG = np.random.default_rng(5)
TABLE = pl.DataFrame(
    {
        "x": RNG.uniform(0, 1, 60),
        "y": RNG.uniform(0, 1, 60),
        "region": RNG.choice(["a", "b"], 60),
        "people": RNG.integers(1, 9, 60),
        "cost": RNG.uniform(0, 9, 60),
    }
)
HALVES = {
    "type": "FeatureCollection",
    "features": [
        {
            "type": "Feature",
            "properties": {"name": name},
            "geometry": {
                "type": "Polygon",
                "coordinates": [[[w, 0], [w + 0.5, 0], [w + 0.5, 1], [w, 1], [w, 0]]],
            },
        }
        for name, w in (("west", 0.0), ("east", 0.5))
    ],
}


def command(line: str) -> None:
    assert run(*line.split()).code == 0


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    TABLE.write_csv("t.csv")
    Path("halves.geojson").write_text(json.dumps(HALVES))
    line = "release t.csv --inputs x,y --output cost --bounds 0 9 --epsilon 1 --delta 1e-5"
    command(f"{line} --hyperparameters fixed --seed 1 --out a.privgp")
    return tmp_path


def test_averages_are_written_by_group(folder):
    model = privgp.load("a.privgp")
    command("predict a.privgp t.csv --average by=region,weights=people --out m.csv")
    found, wanted = pl.read_csv("m.csv"), model.average(TABLE, weights="people", by="region")
    assert found["region"].to_list() == ["a", "b"]
    assert np.allclose(found["mean"], wanted.mean)
    assert np.allclose(found["high"], wanted.high)
    assert found["simulation"].all()
    command("predict a.privgp t.csv --average all --coverage 0.5 --out all.parquet")
    assert pl.read_parquet("all.parquet")["label"].to_list() == ["all"]


def test_areas_are_written_as_tables_maps_and_pictures(folder):
    wanted = privgp.load("a.privgp").areas(HALVES)
    command("predict a.privgp --areas halves.geojson --out d.geojson --plot d.png")
    features = json.loads(Path("d.geojson").read_text())["features"]
    assert [each["properties"]["mean"] for each in features] == pytest.approx(wanted.mean)
    assert Path("d.png").stat().st_size > 1000
    line = "predict a.privgp t.csv --areas halves.geojson --average weights=people --out d.csv"
    command(line)
    assert pl.read_csv("d.csv")["area"].to_list() == ["west", "east"]


def test_a_band_is_written(folder):
    command("predict a.privgp t.csv --simultaneous --out band.csv")
    low, high = privgp.load("a.privgp").interval(TABLE[["x", "y"]], simultaneous=True)
    found = pl.read_csv("band.csv")
    assert np.allclose(found["low"], low)
    assert np.allclose(found["high"], high)


@pytest.mark.parametrize(
    "line",
    [
        "t.csv --average by=cost --out m.csv",  # the private column
        "t.csv --average by=nothing --out m.csv",
        "t.csv --average by=region --out m.geojson",
        "--average by=region --out m.csv",
        "--areas halves.geojson --average by=region --out m.csv",
        "--areas halves.geojson --average weights=people --out m.csv",
        "--areas halves.geojson --grid 3 --out m.csv",
        "t.csv --simultaneous --observation --out m.csv",
        "t.csv --average by=region --simultaneous --out m.csv",
        "t.csv --average by=region --coverage 2 --out m.csv",
    ],
)
def test_wrong_averages_are_refused(folder, line):
    assert_refused(run("predict", "a.privgp", *line.split()))
    assert not Path("m.csv").exists()


def test_averages_without_a_file_are_printed(folder):
    told = run("predict", "a.privgp", "t.csv", "--average", "by=region")
    assert told.code == 0
    assert "region" in told.out
    found = run("predict", "a.privgp", "t.csv", "--average", "by=region", "--json")
    assert {*json.loads(found.out)["averages"][0]} == {"region", "mean", "std", "low", "high"}


def test_public_places_are_warned_of(tmp_path):
    table = TABLE.rename({"x": "lon", "y": "lat"})
    table.write_csv(tmp_path / "homes.csv")
    line = ["plan", tmp_path / "homes.csv", "--output", "cost", "--bounds", 0, 9, "--delta", 1e-6]
    line += ["--epsilon", 1]
    assert "places of people" in run(*line, "--inputs", "lon,lat").err
    assert "places of people" not in run(*line, "--inputs", "lon").err
    private = ["--protect", "records", "--x-bounds", "lon=0:1,lat=0:1"]
    assert "places of people" not in run(*line, "--inputs", "lon,lat", *private).err
