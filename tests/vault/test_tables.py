"""Private tables: one record never changes how another is read, nor what is said."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privgp.plan.inputs.inputs import Inputs
from privgp.tables.kinds import LONGEST_PERIOD, Periodic
from privgp.vault.table import WRONG_KINDS, private_rows

COLUMNS: Any = {
    "when": "date",
    "age": "number",
    "region": ("category", ["north", "south"]),
    "hour": ("periodic", 24),
    ("lat", "lon"): "place",
    "ok": "boolean",
}
BOUNDS: Any = {
    "when": ("2020-01-01", "2024-12-31"),
    "age": (0, 90),
    "lat": (50, 52),
    "lon": (-2, 2),
}
INPUTS = Inputs.private(COLUMNS, BOUNDS)

DATES = st.one_of(
    st.datetimes(), st.dates(), st.datetimes().map(lambda d: d.isoformat()),
    st.datetimes(datetime(1900, 1, 1), timezones=st.just(UTC)),
)  # fmt: skip
NUMBERS = st.one_of(st.integers(-(10**6), 10**6), st.floats(-1e6, 1e6), st.just("12.5"))
RECORDS = st.tuples(
    DATES, NUMBERS, st.one_of(st.text(min_size=1).filter(str.strip), st.integers(0, 9)), NUMBERS,
    st.floats(-90, 90), st.floats(-180, 180), st.sampled_from([True, False, "true", 0, 1]),
)  # fmt: skip


def table(rows: list[tuple[Any, ...]]) -> dict[str, Any]:
    return {
        name: list(cells) for name, cells in zip(INPUTS.names, zip(*rows, strict=True), strict=True)
    }


@given(st.lists(RECORDS, min_size=1, max_size=4), RECORDS)
def test_a_record_is_read_as_it_is_alone_whatever_the_others_are(rows, other) -> None:
    together = private_rows(table([*rows, other]), INPUTS)
    alone = np.vstack([private_rows(table([row]), INPUTS) for row in (*rows, other)])
    assert np.array_equal(together, alone)
    low, high = np.array(INPUTS.domain).T
    assert np.all((together >= low) & (together <= high))


GOOD = (date(2021, 1, 1), 30, "north", 5.0, 51.0, 0.0, True)


@pytest.mark.parametrize("place", range(7))
@pytest.mark.parametrize("cell", [None, float("nan"), "secret", [1, 2], {"a": 1}])
def test_whatever_is_wrong_the_sentence_is_the_same(place: int, cell: Any) -> None:
    if place == 2 and cell is not None and cell == cell:
        return  # any text is a level that was not declared
    bad = [*GOOD[:place], cell, *GOOD[place + 1 :]]
    with pytest.raises(ValueError, match="X must be a table") as problem:
        private_rows(table([GOOD, tuple(bad)]), INPUTS)
    assert str(problem.value) == WRONG_KINDS
    assert problem.value.__cause__ is None
    assert problem.value.__suppress_context__


@pytest.mark.parametrize(
    ("columns", "bounds", "words"),
    [
        ({"age": "number"}, {}, "must have a pair for 'age'"),
        ({"age": "number"}, {"age": (9, 1)}, "low < high"),
        ({"when": "date"}, {"when": ("noon", "night")}, "two dates"),
        ({"region": "category"}, {}, "levels of the private column 'region' must be declared"),
        ({"age": "number"}, (0, 1), "x_bounds must have a pair for every input"),
        ({"hour": ("periodic", 1e308)}, {}, "period of 'hour' must lie between 1e-50 and 1e[+]50"),
        ({"hour": ("periodic", 5e-324)}, {}, "period of 'hour' must lie between 1e-50 and 1e[+]50"),
    ],
)
def test_what_is_private_is_declared(columns: Any, bounds: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Inputs.private(columns, bounds)


def test_a_private_column_with_bounds_is_a_number_without_further_words():
    inputs = Inputs.private(
        {"when": "date"}, {"when": ("2024-01-01", "2024-12-31"), "bmi": (10, 50)}
    )
    assert inputs.names == ("when", "bmi")
    assert inputs.columns[1].kind == "number"
    rows = private_rows({"when": ["2024-03-01"], "bmi": [70.0]}, inputs)
    assert rows[0, 1] == inputs.domain[1][1]  # clipped


@pytest.mark.parametrize(
    ("bounds", "written", "same"),
    [((170, 190), -175.0, 185.0), ((-10, 10), 355.0, -5.0), ((0, 360), -90.0, 270.0)],
)
def test_a_private_place_across_the_date_line_stays_where_it_is(bounds, written, same):
    """It was moved to an end of the bounds, as if it lay outside."""
    inputs = Inputs.private({("lat", "lon"): "place"}, {"lat": (50, 52), "lon": bounds})
    both = private_rows({"lat": [51.5, 51.5], "lon": [written, same]}, inputs)
    assert np.allclose(both[0], both[1], rtol=0, atol=1e-6)
    outside = private_rows({"lat": [51.5], "lon": [100.0]}, inputs)
    assert np.all(outside <= np.array(inputs.domain)[:, 1])


def test_a_value_without_a_place_is_refused_when_it_is_read():
    """Some values of a column with an absurd period had none, which was found after the charge."""
    inputs = Inputs((Periodic(("hour",), period=1e308),))
    assert np.all(np.isfinite(private_rows({"hour": [0.0, 1.0]}, inputs)))
    with np.errstate(all="ignore"), pytest.raises(ValueError, match="X must be a table") as problem:
        private_rows({"hour": [0.0, 9e307]}, inputs)
    assert str(problem.value) == WRONG_KINDS


@pytest.mark.parametrize("period", [1.0 / LONGEST_PERIOD, LONGEST_PERIOD])
def test_every_number_has_a_place_on_every_circle(period):
    extremes = [s * x for s in (-1.0, 1.0) for x in (0.0, 5e-324, 1e-60, 1.0, 1e60, 1.7e308)]
    inputs = Inputs.private({"hour": ("periodic", period)}, {})
    places = private_rows({"hour": [*extremes, 0.999 * period]}, inputs)
    low, high = np.array(inputs.domain).T
    assert np.all((places >= low * (1 + 1e-15)) & (places <= high * (1 + 1e-15)))
