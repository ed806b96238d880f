"""Private values are refused or clipped, and errors never show one."""

from __future__ import annotations

import traceback
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_array_equal
from sklearn.exceptions import DataConversionWarning

from privgp.vault.labels import label_codes
from privgp.vault.validate import (
    check_output_columns,
    check_outputs,
    clip_outputs,
    column_names,
    person_ids,
)

SECRET = 739271.5
TEXT = "Eleanor739271"

REFUSED = {
    "nan": [SECRET, np.nan],
    "infinity": [SECRET, np.inf],
    "minus infinity": [SECRET, -np.inf],
    "text": [SECRET, TEXT],
    "text array": np.array([TEXT, "1"]),
    "bytes": np.array([TEXT.encode(), b"1"]),
    "none": [SECRET, None],
    "missing": pd.array([739271, None], dtype="Int64"),
    "complex": np.array([SECRET + 1j, 2]),
    "complex list": [SECRET + 1j, 2],
    "days": np.array(["2739-01-01", "2000-01-01"], dtype="datetime64[D]"),
    "timestamps": pd.Series(pd.to_datetime(["2139-01-01", "2000-01-01"])),
    "durations": np.array([739271, 1], dtype="timedelta64[s]"),
    "objects": np.array([object(), SECRET], dtype=object),
    "arrays in an object array": np.array([np.array([SECRET]), None], dtype=object),
    "ragged": [[SECRET, 1.0], [2.0]],
    "records": np.array([(739271, 2.0), (3, 4.0)], dtype=[("a", int), ("b", float)]),
    "dictionary": {"a": SECRET, "b": 1.0},
    "set": {SECRET, 1.0},
    "generator": (value for value in (SECRET, 1.0)),
    "two columns": [[SECRET, 1.0], [2.0, 3.0]],
    "one row": [[SECRET, 1.0]],
    "three dimensions": np.full((2, 1, 1), SECRET),
    "number": SECRET,
    "nothing": None,
    "empty": [],
    "too short": [SECRET],
    "too long": [SECRET, 1.0, 2.0],
    "decimal nan": [Decimal("NaN"), Decimal("739271.5")],
    "beyond float64": np.array([np.longdouble("7.39271e4000"), 1]),
}


@pytest.mark.filterwarnings("ignore:overflow encountered in cast:RuntimeWarning")
@pytest.mark.parametrize("name", REFUSED)
def test_outputs_that_are_not_one_finite_number_per_row_are_refused_without_showing_them(name):
    with pytest.raises(ValueError, match="y ") as caught:
        check_outputs(REFUSED[name], 2)
    assert "739271" not in "".join(traceback.format_exception(caught.value))
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


SLIPS = {
    "integers beyond floats": [10**400, 1],
    "complex numbers in an object array": np.array([np.complex128(1 + 2j), 1], dtype=object),
    "nanosecond dates": np.array(["2020-01-01", "2020-01-02"], dtype="datetime64[ns]"),
    "nanosecond durations": np.array([1, 2], dtype="timedelta64[ns]"),
    "masked values": np.ma.array([1.0, 999.0], mask=[False, True]),
}


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("name", SLIPS)
def test_numbers_in_disguise_are_refused(name):
    with pytest.raises(ValueError, match="y "):
        check_outputs(SLIPS[name], 2)


@pytest.mark.parametrize(
    "y",
    [
        [1.5, 0.0],
        (1.5, 0.0),
        np.array([1.5, 0.0], dtype=np.float16),
        np.array([1.5, 0.0], dtype=np.longdouble),
        np.array([1.5, 0], dtype=object),
        [Decimal("1.5"), Fraction(0)],
        pd.Series([1.5, 0.0], index=[7, 3]),
        np.array([0.0, 1.5])[::-1],
    ],
    ids=lambda y: type(y).__name__,
)
def test_numbers_of_any_type_become_float64(y):
    values = check_outputs(y, 2)
    assert values.dtype == np.float64
    assert_array_equal(values, [1.5, 0.0])


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint64, np.int64])
def test_truth_values_and_integers_are_numbers(dtype):
    assert_array_equal(check_outputs(np.array([1, 0], dtype=dtype), 2), [1.0, 0.0])


def test_one_column_is_taken_with_a_warning_that_shows_no_value():
    with pytest.warns(DataConversionWarning, match="column-vector") as caught:
        values = check_outputs([[SECRET], [1.0]], 2)
    assert_array_equal(values, [SECRET, 1.0])
    assert "739271" not in str(caught[0].message)


def test_the_given_array_is_never_changed():
    y = np.array([5.0, -5.0])
    clip_outputs(y, 2, (0.0, 1.0))
    assert_array_equal(y, [5.0, -5.0])


def test_bounds_map_to_one_and_everything_beyond_is_clipped_in_silence():
    y = [-1e308, -3.0, -1.0, 1.0, 3.0, 4.0, 1e308]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_array_equal(clip_outputs(y, 7, (-1.0, 3.0)), [-1.0, -1.0, -1.0, 0.0, 1.0, 1.0, 1.0])
        assert_array_equal(clip_outputs([-1e308, 1e308], 2, (0.0, 0.1)), [-1.0, 1.0])


@given(
    y=arrays(float, 5, elements=st.floats(allow_nan=False, allow_infinity=False)),
    low=st.floats(-1e100, 1e100),
    width=st.floats(1e-9, 1.0),
)
def test_scaled_outputs_never_leave_the_unit_interval(y, low, width):
    high = low + width * max(1.0, abs(low))
    u = clip_outputs(y, 5, (low, high))
    assert np.all(np.abs(u) <= 1.0)
    assert np.all(u[y <= low] <= -1.0 + 1e-6)
    assert np.all(u[y >= high] >= 1.0 - 1e-6)


def test_clipping_looks_at_one_row_at_a_time():
    rng = np.random.default_rng(0)
    y = rng.normal(size=6)
    u = clip_outputs(y, 6, (-1.0, 1.0))
    y[2] = 1e9
    changed = clip_outputs(y, 6, (-1.0, 1.0))
    assert_array_equal(np.delete(u, 2), np.delete(changed, 2))


TABLES = {
    "nan": [[SECRET, np.nan], [1.0, 2.0]],
    "infinity": np.array([[SECRET, np.inf], [1.0, 2.0]]),
    "text": [[SECRET, TEXT], [1.0, 2.0]],
    "none": pd.DataFrame({"a": [SECRET, None], "b": [1.0, 2.0]}),
    "objects": np.array([[object(), SECRET], [1.0, 2.0]], dtype=object),
    "complex": np.array([[SECRET + 1j, 2], [1, 2]]),
    "days": np.full((2, 2), np.datetime64("2739-01-01")),
    "beyond float64": [[10**400, SECRET], [1, 2]],
    "ragged": [[SECRET, 1.0], [2.0]],
    "one column": [[SECRET], [1.0]],
    "no columns": [SECRET, 1.0],
    "three columns": [[SECRET, 1.0, 2.0]] * 2,
    "one row": [[SECRET, 1.0]],
    "three dimensions": np.full((2, 2, 1), SECRET),
    "number": SECRET,
    "empty": [],
}


@pytest.mark.parametrize("name", TABLES)
def test_tables_that_are_not_two_finite_numbers_per_row_are_refused_without_showing_them(name):
    with pytest.raises(ValueError, match="y ") as caught:
        check_output_columns(TABLES[name], 2, 2)
    shown = "".join(traceback.format_exception(caught.value))
    assert "739271" not in shown
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    "y",
    [
        [[1, 2.5], [True, Decimal("0.25")]],
        np.array([[1, 2.5], [1, 0.25]], dtype=object),
        pd.DataFrame({"a": [1, 1], "b": [2.5, 0.25]}),
        [np.array([1.0, 2.5]), (1, Fraction(1, 4))],
    ],
)
def test_tables_are_read_cell_by_cell(y):
    assert_array_equal(check_output_columns(y, 2, 2), [[1.0, 2.5], [1.0, 0.25]])


def test_names_of_columns_are_texts_or_none():
    assert column_names(pd.DataFrame({"a": [1], "b": [2]})) == ("a", "b")
    assert column_names(pd.DataFrame([[1, 2]], columns=["a", "a"])) is None
    assert column_names(pd.DataFrame([[1, 2]])) is None
    assert column_names(np.ones((2, 2))) is None


class Quoting(float):
    """A value whose own methods fail and quote it."""

    def __float__(self):
        raise RuntimeError("secret")

    def __hash__(self):
        raise RuntimeError("secret")

    def __eq__(self, other):
        raise RuntimeError("secret")


@pytest.mark.parametrize(
    ("read", "words"),
    [
        (lambda value: check_outputs([1.0, value], 2), "y must be numbers"),
        (lambda value: check_output_columns([[1.0, value]], 1, 2), "y must be numbers"),
        (lambda value: person_ids([1, value], 2), "groups must be plain identifiers"),
    ],
)
def test_a_value_that_fails_is_not_quoted(read, words):
    with pytest.raises(ValueError, match=words) as caught:
        read(Quoting(1.0))
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_a_wrong_length_is_refused_without_the_number_of_records():
    """With several records per person their number is private."""
    for read in (
        lambda: check_outputs([0.0] * 3, 12_345),
        lambda: check_output_columns([[0.0, 0.0]] * 3, 12_345, 2),
        lambda: label_codes(["a"] * 3, ["a", "b"], 12_345),
        lambda: person_ids(["a"] * 3, 12_345),
    ):
        with pytest.raises(ValueError, match="each row of X") as refused:
            read()
        assert "12" not in str(refused.value)
