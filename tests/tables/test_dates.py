"""One instant is one number, whatever it is written in."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privgp.tables.dates import days_of, instants
from privgp.tables.kinds import Date

ZONES = ("UTC", "Asia/Tokyo", "America/New_York", "Asia/Kathmandu")
MOMENTS = st.datetimes(datetime(1700, 1, 1), datetime(2250, 1, 1))


def objects(*cells: object) -> np.ndarray:
    return np.array([*cells, None], dtype=object)[:-1]


@given(MOMENTS, st.sampled_from(["s", "ms", "us", "ns"]), st.sampled_from(ZONES))
def test_every_resolution_and_time_zone_of_an_instant_is_one_number(
    moment: datetime, unit: str, zone: str
) -> None:
    moment = moment.replace(microsecond=0 if unit == "s" else moment.microsecond // 1000 * 1000)
    expected = (moment - datetime(1970, 1, 1)) / timedelta(days=1)
    (found,) = days_of(np.array([moment], dtype=f"datetime64[{unit}]"))
    assert found == pytest.approx(expected, abs=1e-11)
    aware = moment.replace(tzinfo=UTC)
    elsewhere = aware.astimezone(timezone(timedelta(hours=5, minutes=45)))
    stamp = pd.Timestamp(aware).tz_convert(zone)
    series = pl.Series([moment]).cast(pl.Datetime("us", "UTC")).dt.convert_time_zone(zone)
    text = elsewhere.isoformat()
    for cells in (
        objects(moment), objects(aware), objects(elsewhere), objects(stamp), objects(text),
        objects(np.datetime64(moment, unit)), objects(moment.isoformat() + "Z"), series.to_numpy(),
    ):  # fmt: skip
        assert days_of(cells)[0] == found
    assert Date(("when",)).numbers([series.to_numpy()])[0, 0] == found


@given(st.dates(date(1700, 1, 1), date(2250, 1, 1)))
def test_a_date_is_its_first_instant_in_utc(day: date) -> None:
    whole = float((day - date(1970, 1, 1)).days)
    for cells in (objects(day), objects(day.isoformat()), np.array([day], dtype="datetime64[D]")):
        assert days_of(cells)[0] == whole


@given(st.integers(-(2**62), 2**62))
def test_nanoseconds_are_not_lost_but_to_rounding(ticks: int) -> None:
    exact = np.array([ticks]).astype("datetime64[ns]")
    text = str(exact[0])
    assert days_of(exact)[0] == days_of(objects(text))[0]
    assert abs(days_of(exact)[0] * 86_400e9 - ticks) <= 2.0 * np.spacing(abs(ticks) + 86_400e9)


def test_months_and_multiples_of_units_are_read_by_what_they_mean() -> None:
    assert days_of(np.array(["2024-02"], dtype="datetime64[M]"))[0] == 19754.0
    assert days_of(np.array([6], dtype="datetime64[12h]"))[0] == 3.0


@given(MOMENTS)
def test_days_become_the_same_instant_again(moment: datetime) -> None:
    cells = np.array([moment], dtype="datetime64[us]")
    assert abs(instants(days_of(cells)) - cells)[0] <= np.timedelta64(2, "us")


@pytest.mark.parametrize("cell", ["31.12.2024", "yesterday", 2024, 1.5, "2024-13-01", True])
def test_what_is_no_date_is_refused(cell: object) -> None:
    with pytest.raises(ValueError, match=r".*"):
        days_of(objects(cell))
