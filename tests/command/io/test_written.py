"""Tables and pages as people read them: no empty parts of dates, no rounded bounds."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import polars as pl
import pytest

from privgp.command.io.results import write_table
from privgp.release.certificate.wording import output_bounds, private_outputs

DAY, HOUR = datetime(1960, 3, 4), datetime(2024, 1, 1, 5)
INSTANT = datetime(2024, 1, 1, 5, 0, 0, 7)


@pytest.mark.parametrize(
    ("cells", "written"),
    [
        ([DAY, datetime(2024, 1, 1)], ["1960-03-04", "2024-01-01"]),
        ([DAY, HOUR], ["1960-03-04T00:00:00", "2024-01-01T05:00:00"]),
        ([DAY, INSTANT], ["1960-03-04T00:00:00.000000", "2024-01-01T05:00:00.000007"]),
        ([DAY, None], ["1960-03-04", ""]),
    ],
)
def test_dates_have_no_empty_parts(
    cells: list[datetime | None], written: list[str], tmp_path: Path
):
    write_table(
        pl.DataFrame({"when": cells, "mean": [1.5, 2.5]}), tmp_path / "t.csv", simulation=False
    )
    lines = (tmp_path / "t.csv").read_text().splitlines()
    assert lines == ["when,mean", f"{written[0]},1.5", f"{written[1]},2.5"]
    write_table(pl.DataFrame({"when": cells}), tmp_path / "t.parquet", simulation=False)
    assert pl.read_parquet(tmp_path / "t.parquet")["when"].to_list() == cells


@pytest.mark.parametrize(
    ("bounds", "told"),
    [
        ((0, 2_000_000), "0 to 2000000"),
        ((0, 1_234_567.25), "0 to 1234567.25"),
        ((-0.5, 1), "-0.5 to 1"),
    ],
)
def test_declared_bounds_are_not_rounded(bounds: tuple[float, float], told: str):
    core = {"bounds": {"outputs": bounds}}
    assert output_bounds(core) == told
    assert private_outputs(core).endswith(told.replace(" to ", " and "))
