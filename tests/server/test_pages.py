"""What pages say: titles, columns, outlines around maps, and errors as pages."""

from __future__ import annotations

from datetime import date

import numpy as np
import polars as pl
import pytest

from privgp.server.views.view import outline
from tests.server.world import ANALYST, CUSTODIAN, NONE

HTML = {"accept": "text/html"}


def test_a_headline_and_a_unit_are_shown_and_published(world, release):
    path = f"/api/releases/{release}/title"
    before = world.get(ANALYST, path)
    try:
        asked = {"headline": "Costs <rise>", "unit": "€"}
        assert world.ask(CUSTODIAN, "PUT", path, json=asked).json() == asked
        for place in (f"/releases/{release}", f"/api/releases/{release}/page.html"):
            text = world.ask(ANALYST, "GET", place).text
            assert "Costs &lt;rise&gt;</h1>" in text
            assert 'data-unit="€"' in text
        assert "Costs &lt;rise&gt;" in world.ask(ANALYST, "GET", "/datasets/visits/releases").text
    finally:
        world.ask(CUSTODIAN, "PUT", path, json=before)


def test_a_release_that_nobody_named_is_published_as_it_is_shown(world, release):
    world.ask(CUSTODIAN, "PUT", f"/api/releases/{release}/title", json={})
    for place in (f"/releases/{release}", f"/api/releases/{release}/page.html"):
        assert "Cost by age</h1>" in world.ask(ANALYST, "GET", place).text


@pytest.mark.parametrize(
    "asked", [{"headline": "a\nb"}, {"headline": "a" * 161}, {"unit": "u" * 41}]
)
def test_a_title_is_one_short_line(world, release, asked):
    assert (
        world.ask(CUSTODIAN, "PUT", f"/api/releases/{release}/title", json=asked).status_code == 422
    )


def test_files_have_speaking_names(world, release):
    for path in ("file", "table.csv", "script.py", "page.html"):
        answer = world.ask(ANALYST, "GET", f"/api/releases/{release}/{path}")
        assert 'filename="visits-20' in answer.headers["content-disposition"]


def test_columns_of_a_parquet_table_are_those_of_its_schema(world, tmp_path):
    frame = pl.DataFrame({"age": [1.5], "day": [date(2024, 1, 1)], "ill": [True], "w": "x"})
    frame.write_parquet(tmp_path / "t.parquet")
    sent = {"content": (tmp_path / "t.parquet").read_bytes(), "params": {"ending": "parquet"}}
    name = world.ask(CUSTODIAN, "POST", "/api/tables", **sent).json()["table"]
    found = world.get(CUSTODIAN, f"/api/tables/{name}/columns")
    assert [each["kind"] for each in found] == ["number", "date", "boolean", "text"]
    assert world.ask(CUSTODIAN, "DELETE", f"/api/tables/{name}").status_code == 200


def test_errors_are_pages_in_a_browser_and_json_elsewhere(world):
    page = world.ask(ANALYST, "GET", "/datasets/others", headers=HTML)
    assert page.status_code == 404
    assert "<h1>Nothing here</h1>" in page.text
    assert world.ask(ANALYST, "GET", "/datasets/others").json()["error"]
    assert world.ask(ANALYST, "GET", "/api/datasets/others", headers=HTML).json()["error"]
    assert world.ask(ANALYST, "GET", "/people", headers=HTML).status_code == 403


@pytest.mark.parametrize("path", ["/", "/people", "/releases/nothing", "/nothing"])
def test_without_a_key_every_page_asks_for_one(world, path):
    answer = world.ask(NONE, "GET", path, headers=HTML)
    assert (answer.status_code, answer.headers["location"]) == (303, "/signin")
    assert "<h1>Sign in</h1>" in world.ask(NONE, "GET", "/signin", headers=HTML).text


@pytest.mark.parametrize(
    ("longitudes", "latitudes", "city"),
    [((-0.5, 0.2), (51.3, 51.7), "London"), ((170.0, 190.0), (-45.0, -30.0), "Auckland")],
)
def test_coasts_and_cities_lie_around_a_map(longitudes, latitudes, city):
    found = outline(np.linspace(*longitudes, 5), np.linspace(*latitudes, 5))
    assert found["places"][0][0] == city
    assert found["coasts"]
    for line in found["coasts"]:
        assert len(line) % 2 == 0
        assert len(line) >= 4
    east = np.concatenate([line[::2] for line in found["coasts"]])
    side = longitudes[1] - longitudes[0]
    assert east.min() > longitudes[0] - 2 * side
    assert east.max() < longitudes[1] + 2 * side
