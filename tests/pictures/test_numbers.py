"""Numbers along an axis are short, of one unit, and never two alike."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privgp.pictures.style import Degrees, Readable, together


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ([100_000, 125_000, 150_000], ["100k", "125k", "150k"]),
        ([0, 500_000, 1_200_000], ["0", "0.5M", "1.2M"]),
        ([-20_000, 0, 20_000], ["−20k", "0", "20k"]),
        ([0.0, 0.25, 0.5], ["0", "0.25", "0.50"]),
        ([400, 1_200, 2_000], ["400", "1,200", "2,000"]),
        ([2e-9, 4e-9], ["2e-9", "4e-9"]),
        ([3e9, 4e9], ["3bn", "4bn"]),
        ([], []),
        ([0.0], ["0"]),
    ],
)
def test_numbers_of_one_axis(values, texts):
    assert together(values) == texts


def test_money_and_degrees():
    assert Readable("price (£)").format_ticks([125_000.0, 250_000.0]) == ["£125k", "£250k"]
    assert Readable("price (£ per night)").format_ticks([5.0]) == ["5"]
    assert Readable("price ($)")(-12.0) == r"−\$12"
    west, south = Degrees("EW"), Degrees("NS")
    assert [west(x) for x in (-0.1, 0.0, 190.0, 180.0)] == ["0.1°W", "0°", "170°W", "180°"]
    assert south(-12.5) == "12.5°S"


@given(
    st.floats(-1e7, 1e7),
    st.sampled_from([0.1, 0.2, 0.25, 0.5, 1, 2, 2.5, 5, 1000.0]),
    st.integers(2, 9),
)
def test_ticks_a_step_apart_are_never_written_alike(first, step, count):
    start = np.round(first / step) * step
    texts = together(start + step * np.arange(count))
    assert len({*texts}) == count


def test_years_have_no_comma() -> None:
    assert together([2010, 2015, 2020]) == ["2010", "2015", "2020"]
    assert together([500, 1500, 2500]) == ["500", "1,500", "2,500"]
