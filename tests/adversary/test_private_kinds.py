"""One record of a private table is replaced by whatever a cell can hold: what the public sees of the
command is the same, and the exact numbers move no further than guaranteed."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from privgp import load_plan
from privgp.command.io import columns
from privgp.models.rows import fit as records
from privgp.plan.inputs.inputs import Inputs
from privgp.tables.kinds import levels_of
from privgp.vault.table import private_rows
from tests.adversary.spying import watched
from tests.command.running import Result, run

ROWS, EPSILON = 30, 8.0
KINDS: dict[str, list[str]] = {
    "when": ["--dates", "when", "--x-bounds", "when=2024-01-01:2024-12-31"],
    "region": ["--categories", "region=north|south|east"],
    "place": ["--places", "lat,lon", "--x-bounds", "lat=51:52,lon=-1:1"],
    "hour": ["--periodic", "hour=24"],
    "ok": ["--booleans", "ok"],
    "age": ["--booleans", "ok", "--x-bounds", "0", "90"],
}
INPUTS = {"place": "lat,lon", "age": "age,ok"}
# What a cell can hold that is no value of any kind but text.
GARBAGE = [
    "",
    " ",
    "secret 73591",
    "nan",
    "inf",
    "1e999",
    "-",
    "[1, 2]",
    "٣",
    "1_0",
    "2024-13-45",
    "\\N",
]
# What it can hold that is one: far outside, or of no declared level.
EXTREME: dict[str, list[tuple[str, ...]]] = {
    "when": [("0001-01-01",), ("9999-12-31T23:59:59.999999999-12:00",)],
    "region": [("a secret 73591",), ("1.0",)],
    "place": [("90", "180"), ("-90", "-359.9")],
    "hour": [("-1e15",), ("12",)],
    "ok": [("TRUE",), ("0",)],
    "age": [("-1e308", "true"), ("1e308", "0")],
}  # fmt: skip


def table() -> pl.DataFrame:
    rng = np.random.default_rng(1)
    when = [datetime(2024, 1, 5) + timedelta(hours=float(h)) for h in rng.uniform(0, 8000, ROWS)]
    held = {
        "when": [each.isoformat() for each in when],
        "region": rng.choice(["north", "south", "east"], ROWS),
        "lat": rng.uniform(51, 52, ROWS),
        "lon": rng.uniform(-1, 1, ROWS),
        "hour": rng.uniform(0, 24, ROWS),
        "ok": rng.choice(["true", "false"], ROWS),
        "age": rng.uniform(0, 90, ROWS),
        "cost": rng.uniform(0, 60, ROWS),
    }
    return pl.DataFrame({name: [str(cell) for cell in cells] for name, cells in held.items()})


def changed(columns: list[str], cells: tuple[str, ...], row: int = 3) -> pl.DataFrame:
    """The table with other cells in one record."""
    made = table()
    for name, cell in zip(columns, cells, strict=True):
        held = made[name].to_list()
        made = made.with_columns(pl.Series(name, [*held[:row], cell, *held[row + 1 :]]))
    return made


def written(frame: pl.DataFrame, folder: Path, separator: str = ",") -> Path:
    frame.write_csv(folder / "t.csv", separator=separator)
    return folder / "t.csv"


def line(kind: str) -> list[Any]:
    budget = ["--bounds", 0, 60, "--epsilon", EPSILON, "--delta", 0, "--mechanism", "laplace"]
    columns = ["--inputs", INPUTS.get(kind, kind), "--protect", "records", *KINDS[kind]]
    return [*columns, *budget, "--hyperparameters", "fixed", "--output", "cost"]


def planned(data: Path, kind: str) -> tuple[Result, bytes]:
    plan = data.parent / "t.plan"
    found = run("plan", data, *line(kind), "-o", plan, "--force")
    return found, plan.read_bytes()


def released(data: Path, kind: str, *more: str) -> tuple[Result, Any]:
    with watched() as events:
        found = run("release", data, *line(kind), *more, "-o", data.parent / "t.privgp", "--force")
    return found, events


@pytest.mark.parametrize("kind", KINDS)
def test_a_plan_is_the_same_whatever_one_record_holds(kind: str, tmp_path: Path) -> None:
    columns = INPUTS.get(kind, kind).split(",")
    first = planned(written(table(), tmp_path), kind)
    assert first[0].code == 0, first
    for cells in ((GARBAGE[2],) * len(columns), EXTREME[kind][0]):
        assert planned(written(changed(columns, cells), tmp_path), kind) == first


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_cannot_be_read_is_refused_by_one_sentence(kind: str, tmp_path: Path) -> None:
    columns, sentences = INPUTS.get(kind, kind).split(","), set()
    for place, garbage in enumerate(GARBAGE):
        if kind == "region" and garbage.strip():
            continue  # any text is a level that was not declared
        good = [str(table()[name][3]) for name in columns]
        good[place % len(columns)] = garbage
        found, events = released(written(changed(columns, tuple(good)), tmp_path), kind)
        assert found.code == 2, (garbage, found)
        assert not events
        assert not (tmp_path / "t.privgp").exists()
        sentences.add((found.out, found.err))
    assert len(sentences) == 1
    (said,) = sentences
    assert said[1].endswith(
        "of their kind in every row, such as 12.5 for a number and 2025-12-31 for a date.\n"
    )


def furthest(kind: str, folder: Path) -> float:
    """How far one record moves what is measured, as a share of what was guaranteed; all else that is
    said must be the same."""
    columns = INPUTS.get(kind, kind).split(",")
    first, events = released(written(table(), folder), kind)
    assert first.code == 0, first
    moved = []
    for cells in EXTREME[kind]:
        other, others = released(written(changed(columns, cells), folder), kind)
        assert (other.code, other.out) == (first.code, first.out)
        assert [event.scale for event in others] == [event.scale for event in events]
        assert [len(event.exact) for event in others] == [len(event.exact) for event in events]
        pairs = zip(events, others, strict=True)
        apart = sum(np.abs(a.exact - b.exact).sum() / a.scale for a, b in pairs)
        moved.append(apart / EPSILON)
    return max(moved)


@pytest.mark.parametrize("kind", KINDS)
def test_one_record_moves_no_number_further_than_promised(kind: str, tmp_path: Path) -> None:
    assert 0.01 < furthest(kind, tmp_path) <= 1.0


def test_levels_read_off_private_cells_would_be_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One new level, in front of the others, moves every record."""

    def peeking(X: Any, inputs: Inputs) -> Any:
        levels = levels_of(X["region"].to_numpy())[: len(inputs.columns[0].levels)]
        declared = {"region": ("category", list(levels))}
        return private_rows(X, Inputs.private(declared, {}))

    def peeked(X: Any, inputs: Inputs) -> Any:
        return peeking(X, inputs) if len({*X["region"]}) > 1 else private_rows(X, inputs)

    monkeypatch.setattr(records, "seal_rows", peeked)
    monkeypatch.setattr(columns, "seal_rows", peeked)
    assert furthest("region", tmp_path) > 1.0


def test_decimal_commas_are_never_found_in_private_columns(tmp_path: Path) -> None:
    """A comma in one cell says nothing about how the others are read: it is declared, or no number."""
    kind, columns = "age", ["age", "ok"]
    data = written(changed(columns, ("45,5", "true")), tmp_path, ";")
    assert planned(data, kind) == planned(written(table(), tmp_path, ";"), kind)
    points = table()["age"].to_list()
    told = set()
    for ages in (points, ["45,5"] * ROWS, ["45,5", *points[1:]]):
        data = written(table().with_columns(pl.Series("age", ages)), tmp_path, ";")
        found, events = released(data, kind)
        assert found.code == 2, found
        assert not events
        told.add(found.err)
    assert len(told) == 1  # asked for, whatever the cells hold
    found, events = released(data, kind, "--decimal-point")
    assert found.code == 2, found
    assert not events
    found, events = released(written(table(), tmp_path, ";"), kind, "--decimal-point")
    assert found.code == 0, found
    commas = table().with_columns(pl.col("age", "cost").str.replace(".", ",", literal=True))
    found, declared = released(written(commas, tmp_path, ";"), kind, "--decimal-comma")
    assert found.code == 0, found
    assert np.array_equal(declared[0].exact, events[0].exact)


@pytest.mark.parametrize("level", ["none", "-", "?", "N/A", " . "])
def test_a_declared_level_is_no_missing_value(level: str, tmp_path: Path) -> None:
    """Or the public number of rows would tell how many records have it."""
    asked = [
        word if "=" not in str(word) else f"region=north|south|{level}" for word in line("region")
    ]
    plan, rows = tmp_path / "t.plan", set()
    for cell in ("north", level, f" {level.strip()} "):
        data = written(changed(["region"], (cell,)), tmp_path)
        found = run("plan", data, *asked, "--missing", "drop", "--force", "-o", plan)
        assert found.code == 0, found
        rows.add(load_plan(plan).rows)
        if cell != level:
            continue
        carried = ["--plan", plan, "--output", "cost", "--missing", "drop", "--seed", 1, "--force"]
        found = run("release", data, *carried, "-o", tmp_path / "t.privgp")
        assert found.code == 0, found
    assert len(rows) == 1


@pytest.mark.parametrize("command", ["plan", "release"])
def test_a_table_of_words_without_a_header_is_not_quoted(command: str, tmp_path: Path) -> None:
    """Its first record would be taken for the names of columns, and told."""
    data = tmp_path / "t.csv"
    data.write_text("secret north,secret yes\n" * 30)
    labels = ["--output", "ill", "--classes", "yes,no", "--epsilon", 1, "--delta", "1e-5"]
    asked = ["--inputs", "region", "--protect", "records", *KINDS["region"], *labels]
    found = run(
        command, data, *asked, "-o", tmp_path / f"t.{'plan' if command == 'plan' else 'privgp'}"
    )
    assert found.code == 2, found
    assert "no column 'region': its first line must name the columns" in found.err
    assert "secret" not in found.err + found.out
