"""Distances between coordinates are those that the kinds guarantee."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privgp.plan.inputs.inputs import Inputs
from privgp.tables.kinds import Boolean, Category, Number, Periodic, Place
from privgp.tables.places import RADIUS, great_circle, on_sphere
from privgp.tables.table import Table

PLACES = st.tuples(st.floats(-90, 90), st.floats(-180, 180))


def haversine(a: tuple[float, float], b: tuple[float, float]) -> float:
    """In the extended precision that the machine has."""
    (lat1, lon1), (lat2, lon2) = np.radians(np.array([a, b], dtype=np.longdouble))
    h = np.sin((lat2 - lat1) / 2) ** 2
    h += np.cos(lat1) * np.cos(lat2) * np.sin((lon2 - lon1) / 2) ** 2
    return float(2 * RADIUS * np.arcsin(np.sqrt(np.minimum(h, 1))))


@given(PLACES, PLACES)
def test_distances_are_those_of_the_haversine_formula(a, b) -> None:
    found = float(great_circle(*on_sphere(np.array([a, b]))))
    assert found == pytest.approx(haversine(a, b), rel=1e-6, abs=1e-9)


def test_distances_across_the_date_line_and_at_a_pole() -> None:
    degrees = np.array([[0.0, 179.9], [0.0, -179.9], [90.0, 0.0], [90.0, 123.0], [89.0, 0.0]])
    points = on_sphere(degrees)
    one = 2 * np.pi * RADIUS / 360
    assert great_circle(points[0], points[1]) == pytest.approx(0.2 * one)
    assert great_circle(points[2], points[3]) == pytest.approx(0.0, abs=1e-9)
    assert great_circle(points[3], points[4]) == pytest.approx(one)
    chord = np.linalg.norm(points[0] - points[1])
    assert chord == pytest.approx(0.2 * one, rel=1e-6)


@given(st.lists(PLACES, min_size=1, max_size=8))
def test_places_come_back(places) -> None:
    place = Place(("lat", "lon"))
    degrees = np.array(places)
    back = place.back(place.coordinates(degrees))
    assert np.allclose(place.coordinates(back), place.coordinates(degrees), atol=1e-9)


def test_longitudes_are_shown_next_to_each_other() -> None:
    place = Place(("lat", "lon"))
    degrees = np.array([[-17.0, 178.0], [-16.0, -179.0], [-18.0, 179.5]])
    assert place.ends(degrees).tolist() == [[-18.0, -16.0], [178.0, 181.0]]
    assert place.cells(place.unwrap(degrees))[1].tolist() == [178.0, -179.0, 179.5]
    west = np.array([[40.0, -120.0], [50.0, -70.0]])
    assert np.array_equal(place.unwrap(west), west)


def test_a_crs_is_turned_into_places() -> None:
    pytest.importorskip("pyproj")
    place = Place(("east", "north"), crs="EPSG:27700")
    numbers = place.numbers([np.array([530_000.0]), np.array([180_000.0])])  # London
    lat_lon = np.array([[51.50399, -0.12849]])
    assert great_circle(place.coordinates(numbers)[0], on_sphere(lat_lon)[0]) < 0.01
    assert np.allclose(place.back(place.coordinates(numbers)), numbers, atol=1e-3)
    with pytest.raises(ValueError, match="does not know the CRS"):
        Place(("east", "north"), crs="nonsense").coordinates(numbers)


@given(st.integers(1, 12))
def test_all_levels_and_an_unknown_one_are_at_distance_one(count: int) -> None:
    levels = tuple(f"level {k}" for k in range(count))
    category = Category(("region",), levels=levels)
    cells = np.array([*levels, "another"], dtype=object)
    numbers = category.numbers([cells])
    points = category.coordinates(numbers)
    distances = np.linalg.norm(points[:, None] - points[None], axis=-1)
    assert np.allclose(distances, 1.0 - np.eye(count + 1), atol=1e-12)
    assert np.array_equal(category.back(points), numbers)


def test_levels_are_the_same_as_numbers_and_as_text() -> None:
    category = Category(("code",), levels=("1", "2"))
    for cells in (np.array([1, 2]), np.array([1.0, 2.0]), np.array(["1", " 2"], dtype=object)):
        assert category.numbers([cells]).tolist() == [[0.0], [1.0]]


@given(st.floats(-1e3, 1e3), st.floats(0.1, 400))
def test_a_period_later_is_the_same_place(value: float, period: float) -> None:
    hour = Periodic(("hour",), period=period)
    points = hour.coordinates(hour.numbers([np.array([value, value + period])]))
    assert np.linalg.norm(points[0] - points[1]) <= 1e-9 * max(1.0, abs(value))
    near = hour.coordinates(np.array([[0.0], [1e-3 * period]]))
    assert np.linalg.norm(near[0] - near[1]) == pytest.approx(1e-3 * period, rel=1e-5)


@pytest.mark.parametrize(
    "cells", [np.array([True, False]), np.array(["true", "False"], dtype=object), np.array([1, 0])]
)
def test_truth_is_one_however_it_is_written(cells: np.ndarray) -> None:
    assert Boolean(("ok",)).numbers([cells]).tolist() == [[1.0], [0.0]]


TABLE = {
    "age": [1.0, 2.0, 3.0],
    "when": ["2024-01-01", "2024-01-02", "2024-01-03"],
    "lat": [1.0, 2.0, 3.0],
    "lon": [4.0, 5.0, 6.0],
}


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"height": "number"}, "not a column of X"),
        ({"age": "integer"}, "must name one of"),
        ({"age": "periodic"}, "give its period"),
        ({"age": ("periodic", -1)}, "give its period"),
        ({"age": ("number", 3)}, "takes no option"),
        ({"lat": "place"}, "two columns"),
        ({("lat", "lon"): "date"}, "one column"),
        ({("lat", "lon"): "place", "lat": "number"}, "twice"),
        ({"age": "date"}, "must hold dates: row 1"),
        ({"when": "number"}, "must hold numbers: row 1"),
        ({"age": ("category", ["a", "a"])}, "none twice"),
        ({("lon", "lat"): "place"}, "wrong way round"),
        ({("lat", "lon"): ("place", "EPSG:4326")}, "wrong way round"),
        ({("lat", "when"): "place"}, "unless a crs is given: row 1"),
        ("date", "columns must say"),
    ],
)
def test_what_columns_cannot_be_is_refused_in_one_sentence(columns, words) -> None:
    table = Table.of(TABLE)
    with pytest.raises(ValueError, match=words):
        Inputs.of(table, columns).locate_table(table)  # type: ignore[union-attr]


def test_a_missing_cell_is_named_by_its_row() -> None:
    table = Table.of({**TABLE, "age": [1.0, None, 3.0]})
    with pytest.raises(ValueError, match=r"'age' has no value in row 2: fill it in"):
        Inputs.of(table, {"age": "number"}).locate_table(table)  # type: ignore[union-attr]


def test_numbers_alone_need_no_columns() -> None:
    assert Inputs.of(Table.of(np.ones((3, 2))), None) is None
    assert Inputs.of(Table.of([[1, 2], [3, 4]]), None) is None
    assert Inputs.of(Table.of({"ok": [True, False]}), None) is None
    found = Inputs.of(Table.of([["a", 1.0], ["b", 2.0]]), None)
    assert found is not None
    assert [type(each) for each in found.columns] == [Category, Number]


def test_a_text_of_too_many_kinds_is_no_category_by_itself() -> None:
    with pytest.raises(ValueError, match="60 different texts"):
        Inputs.of(Table.of({"name": [f"n{k}" for k in range(60)]}), None)


@pytest.mark.parametrize(
    "bounds",
    [
        ((-90.0, 90.0), (-180.0, 180.0)),
        ((-10.0, 10.0), (-340.0, 350.0)),  # nearly two turns
        ((40.0, 60.0), (-170.0, 175.0)),
        ((88.0, 90.0), (3.0, 100.0)),
    ],
)
def test_the_domain_of_places_holds_every_declared_place(bounds):
    place = Place(("lat", "lon"), bounds=bounds)
    rng = np.random.default_rng(0)
    points = np.column_stack([rng.uniform(*pair, 50_000) for pair in bounds])
    points = np.vstack([points, np.stack(np.meshgrid(*np.array(bounds)), axis=-1).reshape(-1, 2)])
    low, high = place.domain().T
    found = place.coordinates(points)
    assert np.all((low <= found) & (found <= high))


def test_bounds_that_a_crs_cannot_map_are_refused_before_any_record_is_read() -> None:
    pytest.importorskip("pyproj")
    wide = ((-1e9, 1e9), (-1e9, 1e9))
    with pytest.raises(ValueError, match="declare narrower ones"):
        Place(("east", "north"), crs="EPSG:32633", bounds=wide).domain()


def test_a_place_in_the_bounds_that_a_crs_cannot_map_is_moved_by_itself(monkeypatch) -> None:
    place = Place(("east", "north"), crs="a plane with a hole", bounds=((0.0, 10.0), (0.0, 20.0)))

    def with_a_hole(crs: str, numbers: np.ndarray) -> np.ndarray:
        hole = np.hypot(*(numbers - (2.03, 3.03)).T) < 0.01
        return np.where(hole[:, None], np.inf, numbers)

    monkeypatch.setattr("privgp.tables.kinds.from_crs", with_a_hole)
    place.domain()  # none of its points falls into the hole
    found = place.within(np.array([[2.03, 3.03], [-1.0, 7.0], [4.0, 30.0]]))
    assert found.tolist() == [[5.0, 10.0], [0.0, 7.0], [4.0, 20.0]]


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        (["45%", "7%", "8%"], "numbers as text, such as '45%'"),
        (["0.5", "1.5", "2.5"], "numbers as text"),
        (["31.12.2024", "1.2.2024", "2.2.2024"], "dates as text"),
        (np.array([1, 2, 3], dtype="timedelta64[s]"), "durations"),
        ([object(), object()], "leave it out"),
    ],
)
def test_what_only_people_read_is_no_category(cells: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Inputs.of(Table.of({"a": cells}), None)


def test_dates_as_iso_text_are_dates_and_codes_are_categories() -> None:
    table = Table.of({"a": ["2024-01-01", "2024-01-02"], "b": ["01067", "10115"]})
    found = Inputs.of(table, None)
    assert found is not None
    assert [column.kind for column in found.columns] == ["date", "category"]


def test_a_lazy_table_is_collected() -> None:
    found = Table.of(pl.LazyFrame({"a": [1.0]}))
    assert found is not None
    assert (found.names, found.column("a").tolist()) == (("a",), [1.0])
