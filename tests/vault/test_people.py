"""One person is one person, however an identifier is written: two of them would be protected by half."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
import polars as pl
import pytest

from privgp.tables.files import open_files
from privgp.vault.table import table_people
from privgp.vault.validate import person_codes, person_ids

BIG = 2**53 + 1  # the first whole number that no float is
EAST = timezone(timedelta(hours=2))
ONE_PERSON: dict[str, list[Any]] = {
    "letters in two parts": ["\u00e9va", "e\u0301va", "e\u0301va".encode(), b"\xe9va"],
    "wide letters": ["a1", "\uff41\uff11"],
    "digits": ["12", "\uff11\uff12", "\u0661\u0662", 12],
    "spaces": ["ann lee", "ann\u00a0lee", " ann  lee\t", "\u3000ann lee"],
    "letters that are not seen": ["ann", "\ufeffann", "an\u200bn", "ann\x00", "a\u00adnn"],
    "numerals": [1, "1", "+1", "1e0", "01", " 1.00", True, Decimal("1.0"), b"1", Fraction(1)],
    "nothing": [0, -0.0, "-0", "-0.0", "+0", "00", False, "0e5", Decimal("-0")],
    "truth": [True, "true", "True", "TRUE", 1, np.True_],
    "beyond floats": [BIG, str(BIG), f"{BIG}.0", f"{BIG}e0", Decimal(BIG), f" +0{BIG}", np.int64(BIG)],
    "far beyond": [10**30, "1e30", "1" + "0" * 30, Decimal("1e30"), "1.0e+30"],
    "beyond all numbers": ["1e999999999", " 1e999999999"],
    "parts": [0.5, "0.5", ".5", "0.50", "5e-1", Decimal("0.5"), Fraction(1, 2)],
    "days": [
        date(2024, 1, 1), datetime(2024, 1, 1), "2024-01-01", "2024-01-01T00:00", "2024-01-01 00:00:00",
        np.datetime64("2024-01-01"), np.datetime64("2024-01-01", "ns"), pd.Timestamp("2024-01-01"),
    ],
    "instants": [
        datetime(2024, 1, 1, 10, tzinfo=UTC), datetime(2024, 1, 1, 12, tzinfo=EAST),
        "2024-01-01T12:00+02:00", "2024-01-01T10:00:00Z", np.datetime64("2024-01-01T10", "us"),
    ],
    "durations": [timedelta(days=1), np.timedelta64(1, "D"), np.timedelta64(24, "h"), pd.Timedelta("1D")],
    "universal": [UUID(int=5), str(UUID(int=5))],
}  # fmt: skip


@pytest.mark.parametrize("written", ONE_PERSON.values(), ids=ONE_PERSON.keys())
def test_ways_to_write_an_identifier_are_one_person(written: list[Any]) -> None:
    """In one list, in arrays of texts, and each in its own batch."""
    assert person_ids(written, len(written)).tolist() == [0] * len(written)
    assert len({int(person_codes([each], 1)[0]) for each in written}) == 1
    texts = [each for each in written if isinstance(each, str)]
    if texts:
        assert person_ids(np.array(texts), len(texts)).max() == 0
        assert len({*person_codes(np.array(texts), len(texts)).tolist()}) == 1


def test_all_of_them_are_different_people() -> None:
    """But for 1 and true, which are one."""
    firsts = [written[0] for written in ONE_PERSON.values()]
    assert person_ids(firsts, len(firsts)).max() + 1 == len(firsts) - 1
    near = [BIG, BIG + 1, BIG - 1, f"{BIG + 2}.0", "Ann", "ann", "anne", "1e400", "1e401"]
    assert person_ids(near, len(near)).max() + 1 == len(near)
    # what was made of an identifier is that of the same person
    assert len({*person_codes(near, len(near)).tolist()}) == len(near)


TYPES: dict[str, list[pl.Series]] = {
    "days": [
        pl.Series([date(2024, 1, 1)]),
        pl.Series([datetime(2024, 1, 1)], dtype=pl.Datetime("us")),
        pl.Series([datetime(2024, 1, 1)], dtype=pl.Datetime("ns")),
        pl.Series([datetime(2024, 1, 1)], dtype=pl.Datetime("ms", "UTC")),
        pl.Series(["2024-01-01"]),
    ],
    "large": [
        pl.Series([BIG]),
        pl.Series([str(BIG)]),
        pl.Series([f"{BIG}.0"]),
        pl.Series([Decimal(BIG)]),
        pl.Series([BIG], dtype=pl.Int128),
        pl.Series([BIG], dtype=pl.UInt64),
    ],
    "truth": [pl.Series([True]), pl.Series(["True"]), pl.Series([1]), pl.Series([1.0])],
    "text": [pl.Series(["\u00e9"]), pl.Series(["e\u0301"]), pl.Series(["\u00e9"], dtype=pl.Categorical)],
}  # fmt: skip


@pytest.mark.parametrize("columns", TYPES.values(), ids=TYPES.keys())
def test_files_of_several_types_hold_one_person(columns: list[pl.Series], tmp_path: Path) -> None:
    for k, column in enumerate(columns):
        pl.DataFrame({"who": column}).write_parquet(tmp_path / f"{k}.parquet")
    assert len({*table_people(open_files(tmp_path), "who").tolist()}) == 1


@pytest.mark.parametrize("wide", [2.0**53, -(2.0**53), 1e300])
def test_floats_that_are_several_whole_numbers_are_refused(wide: float) -> None:
    """Which of them is meant, nobody knows: elsewhere the person may be another one."""
    for held in ([wide], np.array([wide]), np.array([wide, "a"], dtype=object)):
        with pytest.raises(ValueError, match="groups hold numbers too large for floats"):
            person_ids(held, len(held))
    assert person_ids([2.0**53 - 1, 2**53 - 1, str(2**53 - 1)], 3).max() == 0


@pytest.mark.parametrize(
    "mark", ["nan", "NaN", "NA", "n/a", "None", "null", "-", "?", ".", "\u200b"]
)
def test_marks_of_missing_values_are_nobody(mark: str, tmp_path: Path) -> None:
    """Rows of people who have others under their name would be one more person's."""
    for held in (["a", mark], np.array(["a", mark]), [b"a", f" {mark} ".encode()]):
        with pytest.raises(ValueError, match="groups contain missing values, or texts such as NA"):
            person_ids(held, 2)
    frame = pl.DataFrame({"who": ["a", mark]})
    frame.write_parquet(tmp_path / "t.parquet")
    with pytest.raises(ValueError, match="groups contain missing values"):
        table_people(open_files(tmp_path), "who")


@pytest.mark.parametrize("also", ["1", " 1", "1.0", "01", 1.0, True, Decimal("1.00"), b"1"])
def test_a_person_is_one_however_files_write_the_identifier(also):
    one, other, two = person_codes([1, also, 2], 3)
    assert one == other != two
    assert person_codes(np.array([1, 2], dtype=np.uint8), 2).tolist() == [one, two]


def test_dates_tell_people_apart():
    codes = person_codes(np.array(["2020-01-01", "2020-01-02"], dtype="datetime64[D]"), 2)
    assert codes[0] != codes[1]


@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_whole_numbers_of_any_size_have_one_code_in_arrays_and_in_texts(dtype):
    written = [0, 7, 10**17, 10**18 - 1, 10**18, 2**62, 2**63 - 1]
    codes = person_codes(np.array(written, dtype=dtype), len(written))
    assert len({*codes.tolist()}) == len(written)
    assert codes.tolist() == person_codes([str(each) for each in written], len(written)).tolist()
    alone = [person_codes(np.array([each], dtype=dtype), 1)[0] for each in written]
    assert codes.tolist() == alone
