"""``privgp plan`` never loads the output column, and ``privgp release`` plans once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import privgp.plan.bins.build
import privgp.plan.build
from privgp.command.io import spending
from privgp.models.regressor import PrivateGPRegressor
from tests.command.running import BUDGET, COLUMNS, QUICK, people_table, private_cells, run


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_the_output_column_need_not_exist(tmp_path: Path, ending: str) -> None:
    data = tmp_path / f"visits.{ending}"
    table = people_table().drop("cost")
    table.write_csv(data) if ending == "csv" else table.write_parquet(data)
    assert run("plan", data, *COLUMNS, *BUDGET, *QUICK).code == 0
    assert run("plan", data, "--inputs", "age,bmi", *BUDGET, *QUICK).code == 0


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("groups", [[], ["--groups", "person"]])
def test_no_reader_ever_returns_a_private_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str, groups: list[str]
) -> None:
    data = tmp_path / f"visits.{ending}"
    table = people_table()
    table.write_csv(data) if ending == "csv" else table.write_parquet(data)
    seen: list[pl.DataFrame] = []

    def watched(place: Any, name: str) -> None:
        original = getattr(place, name)

        def read(*arguments: Any, **options: Any) -> pl.DataFrame:
            frame: pl.DataFrame = original(*arguments, **options)
            seen.append(frame)
            return frame

        monkeypatch.setattr(place, name, read)

    def forbidden(*_: Any, **__: Any) -> None:
        raise AssertionError("another way to the file was used")

    watched(pl.LazyFrame, "collect")
    for place, name in (
        (pl, "read_csv"),
        (pl, "read_parquet"),
        (pl, "read_csv_batched"),
        (pl.LazyFrame, "collect_batches"),
        (pl.LazyFrame, "fetch"),
    ):
        monkeypatch.setattr(place, name, forbidden, raising=False)

    result = run("plan", data, *COLUMNS, *BUDGET, *QUICK, *groups)
    assert result.code == 0, result
    # rows are counted before they are read; some versions of Polars collect their own more
    assert len(seen) >= (3 if ending == "csv" else 2)
    cells = [str(cell) for frame in seen for row in frame.rows() for cell in row]
    assert not any(private in cell for cell in cells for private in private_cells())
    assert {"age", "bmi"} | ({"person"} if groups else set()) in [{*each.columns} for each in seen]


@pytest.mark.parametrize("cells", [["secret"] * 24, [""] * 24, ["nan"] * 24])
def test_what_the_output_column_holds_makes_no_difference(
    tmp_path: Path, visits: Path, cells: list[str]
) -> None:
    other = tmp_path / "other.csv"
    people_table().with_columns(pl.Series("cost", cells)).write_csv(other)
    answers = [run("plan", data, *COLUMNS, *BUDGET, *QUICK, "--json") for data in (visits, other)]
    assert answers[0] == answers[1]
    assert answers[0].code == 0


# what is rehearsed and released is that one plan

KINDS = {
    "outputs": (privgp.plan.build, "make_part", []),
    "people": (privgp.plan.build, "make_part", ["--groups", "person"]),
    "records": (
        privgp.plan.bins.build,
        "make_records_part",
        ["--protect", "records", "--x-bounds", "0", "90", "--x-bounds", "10", "60"],
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_release_plans_once(
    tmp_path: Path, visits: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    module, name, options = KINDS[kind]
    make, fit, plans, measured = getattr(module, name), PrivateGPRegressor.fit, [], []

    def planned(*arguments: Any, **named: Any) -> Any:
        plans.append(make(*arguments, **named))
        return plans[-1]

    def fitted(model: PrivateGPRegressor, *arguments: Any, **named: Any) -> PrivateGPRegressor:
        measured.append(fit(model, *arguments, **named).plan_.strategy)
        return model

    monkeypatch.setattr(module, name, planned)
    monkeypatch.setattr(PrivateGPRegressor, "fit", fitted)
    result = run(
        "release", visits, *COLUMNS, *BUDGET, *QUICK, *options, "-o", tmp_path / "v.privgp"
    )
    assert result.code == 0, result
    assert len(plans) == 1
    assert [strategy is plans[0].strategy for strategy in measured] == [True, True]


def test_a_release_of_rows_read_in_parts_plans_once(
    tmp_path: Path, visits: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fit, plans, made = spending.fit_in_place, [], []
    rehearse, plan_rows = spending.rehearse_table, PrivateGPRegressor._plan_table

    def counted(model: PrivateGPRegressor, *arguments: Any) -> Any:
        made.append(plan_rows(model, *arguments))
        return made[-1]

    def rehearsed_by(model: PrivateGPRegressor, table: Any, plan: Any) -> None:
        plans.append(plan)
        rehearse(model, table, plan)

    def fitted(
        model: PrivateGPRegressor, X: Any, y: Any, groups: Any, plan: Any, *others: Any
    ) -> None:
        plans.append(plan)
        fit(model, X, y, groups, plan, *others)

    monkeypatch.setattr("privgp.models.rows.fit.STREAMED", 5)
    monkeypatch.setattr(PrivateGPRegressor, "_plan_table", counted)
    monkeypatch.setattr(spending, "rehearse_table", rehearsed_by)
    monkeypatch.setattr(spending, "fit_in_place", fitted)
    out = tmp_path / "v.privgp"
    result = run("release", visits, *COLUMNS, *BUDGET, *QUICK, "--inducing", "5", "-o", out)
    assert result.code == 0, result
    assert len(made) == 1
    rehearsed, released = plans
    assert rehearsed is released
