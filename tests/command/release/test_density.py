"""``--density``: where private points lie, from the command line."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

from privgp import PrivateGPDensity, load
from tests.command.running import assert_one_sentence, run

BUDGET = ["--epsilon", 2, "--delta", 0, "--hyperparameters", "fixed"]
PLACE = ["--inputs", "lat,lon", "--x-bounds", "lat=51:52,lon=-1:1"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    rng = np.random.default_rng(0)
    table = pl.DataFrame(
        {
            "lat": rng.normal(51.5, 0.1, 300),
            "lon": rng.normal(0, 0.2, 300),
            "cost": rng.uniform(size=300),
        }
    )
    table.write_csv("homes.csv")
    return tmp_path


def test_a_density_is_released_certified_drawn_and_predicted(folder):
    files = ["-o", "d.privgp", "--certificate", "d.html", "--plot", "d.png"]
    line = ["release", "homes.csv", "--density", *PLACE, *BUDGET, *files, "--seed", 1]
    assert run(*line).code == 0
    model = load("d.privgp")
    assert isinstance(model, PrivateGPDensity)
    assert model.n_points_ == 300
    assert "one point" in (folder / "d.html").read_text()
    assert run("predict", "d.privgp", "--grid", 5, "-o", "g.csv", "--plot", "g.png").code == 0
    found = pl.read_csv("g.csv")
    rows = found.select("lat", "lon")
    _, high = model.interval(rows)
    np.testing.assert_allclose(found["high"], high, rtol=1e-9)
    assert (found["low"] <= found["mean"]).all()
    assert run("predict", "d.privgp", "--grid", 5, "-o", "g.geojson").code == 0
    assert run("predict", "d.privgp", "homes.csv", "-o", "p.csv").code == 0
    assert pl.read_csv("p.csv").columns == ["mean", "std", "low", "high", "simulation"]


def test_a_saved_plan_is_carried_out(folder):
    assert run("plan", "homes.csv", "--density", *PLACE, *BUDGET, "-o", "d.plan").code == 0
    shown = json.loads(run("inspect", "d.plan", "--json").out)
    assert shown["data"]["rows"] == 300
    assert shown["unit"] == "one point"
    line = ["release", "homes.csv", "--plan", "d.plan", "-o", "d.privgp", "--seed", 1]
    assert run(*line).code == 0
    assert_one_sentence(run(*line[:-4], "-o", "e.privgp", "--output", "cost"))


@pytest.mark.parametrize(
    "more",
    [
        ["--output", "cost"],
        ["--bounds", 0, 1],
        ["--classes", "a,b"],
        ["--groups", "cost"],
        ["--protect", "records"],
        ["--targets", "lat=51:52:2,lon=0:1:2"],
    ],
)
def test_what_points_do_not_have_is_refused(folder, more):
    line = ["release", "homes.csv", "--density", *PLACE, *BUDGET, "-o", "d.privgp", *more]
    result = run(*line)
    assert_one_sentence(result)
    assert str(more[0]) in result.err


def test_a_density_needs_a_domain_and_other_releases_an_output(folder):
    line = ["release", "homes.csv", "--inputs", "lat,lon", *BUDGET, "-o", "d.privgp"]
    result = run(*line, "--density")
    assert_one_sentence(result)
    assert "--x-bounds" in result.err
    result = run(*line, "--bounds", 0, 1)
    assert_one_sentence(result)
    assert "--output" in result.err


def test_a_density_is_not_updated(folder):
    line = ["release", "homes.csv", "--density", *PLACE, *BUDGET, "-o", "d.privgp", "--seed", 1]
    assert run(*line).code == 0
    assert_one_sentence(
        run("update", "d.privgp", "homes.csv", "--output", "cost", "-o", "e.privgp")
    )
