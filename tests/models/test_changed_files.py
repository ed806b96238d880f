"""Files that are written to while they are read: refused before anything is charged or drawn."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from privgp import PrivateGPRegressor, open_table
from privgp.tables.files import Files
from privgp.vault import measure
from tests.command.running import assert_refused, run

ROWS = 400
WORDS = "was changed since the table was opened"


def replaced(path: Path) -> None:
    """The same rows in another order, moved into place."""
    pl.read_parquet(path).reverse().write_parquet(path.with_suffix(".new"))
    os.replace(path.with_suffix(".new"), path)


def touched(path: Path) -> None:
    """As a program leaves it that writes in place."""
    found = os.stat(path)
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns + 1))


def restored(path: Path) -> None:
    """Rewritten, with its former time of modification."""
    found, held = os.stat(path), path.read_bytes()
    path.write_bytes(held)
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))


CHANGES: list[Callable[[Path], None]] = [replaced, touched, restored, Path.unlink]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    made = tmp_path / "t"
    made.mkdir()
    for number in range(2):
        held = {
            "a": rng.normal(size=ROWS),
            "cost": rng.uniform(-3, 3, ROWS),
            "who": np.arange(ROWS),
        }
        pl.DataFrame(held).write_parquet(made / f"{number}.parquet")
    return made


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(
    ("groups", "inducing", "most"), [(None, 8, 100), ("who", None, 100), (None, None, 10**6)]
)
def test_a_change_during_the_pass_is_refused(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: Any,
    groups: Any,
    inducing: Any,
    most: int,
) -> None:
    monkeypatch.setattr("privgp.models.rows.fit.STREAMED", most)  # tallied, or in memory
    table = open_table(folder, "a", "cost", groups)
    given: Any = {"y_bounds": (-3, 3), "inducing": inducing, "hyperparameters": "fixed"}
    model = PrivateGPRegressor(**given)
    plan = model.plan(table.inputs)
    _changed_after_reading(monkeypatch, folder / "1.parquet", change)
    _nothing_spent(monkeypatch)
    with pytest.raises(ValueError, match=WORDS):
        model.fit(table.inputs, table.output, plan=plan)
    assert not hasattr(model, "guarantee_")


def test_a_change_between_two_passes_is_refused_and_counts_as_spent(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second stage is measured of the table that the first one was measured of, or not at all."""
    monkeypatch.setattr("privgp.models.rows.fit.STREAMED", 100)
    table = open_table(folder, "a", "cost")
    given: Any = {"y_bounds": (-3, 3), "hyperparameters": "fixed", "residuals": "always"}
    model = PrivateGPRegressor(**given, random_state=0)
    plan, draw, drawn = model.plan(table.inputs), measure.add_noise, []

    def change_after(*asked: Any) -> Any:
        drawn.append(draw(*asked))
        touched(folder / "1.parquet")
        return drawn[-1]

    monkeypatch.setattr("privgp.vault.measure.add_noise", change_after)
    with pytest.raises(RuntimeError, match="count the budget as spent"):
        model.fit(table.inputs, table.output, plan=plan)
    assert len(drawn) == 1
    assert model.guarantee_.epsilon == pytest.approx(1.0)


def test_the_command_says_so_and_spends_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("privgp.models.rows.fit.STREAMED", 100)
    _changed_after_reading(monkeypatch, folder / "0.parquet", touched)
    _nothing_spent(monkeypatch)
    found = run("release", folder, "--inputs", "a", "--output", "cost", "--bounds", -3, 3, "--epsilon",
        1, "--delta", 1e-6, "--inducing", 8, "-o", folder / "t.privgp")  # fmt: skip
    assert_refused(found, WORDS, "Nothing was released")
    assert not (folder / "t.privgp").exists()


def _changed_after_reading(monkeypatch: pytest.MonkeyPatch, path: Path, change: Any) -> None:
    """Change a file once all outputs were read."""
    check = Files.refuse_changes

    def late(self: Files) -> None:
        check(self)  # nothing has happened yet
        change(path)
        check(self)

    monkeypatch.setattr(Files, "refuse_changes", late)


def _nothing_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    def spend(*_: Any, **__: Any) -> None:
        raise AssertionError("something was spent")

    monkeypatch.setattr("privgp.vault.measure.add_noise", spend)
    monkeypatch.setattr("privgp.models.published.publish", spend)
