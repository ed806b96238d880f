"""The demonstration runs, twice in a row, and leaves what it says."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from sklearn import datasets

import privgp
from privgp.command.demo import GRID, INPUTS, demo_folder
from privgp.command.errors import Refusal
from privgp.command.io.axes import grid
from tests.command.running import run

HELD = {
    "diabetes.csv",
    "grid.csv",
    "plan.png",
    "diabetes.privgp",
    "certificate.html",
    "certificate.json",
    "map.png",
    "predictions.csv",
}


def test_the_demonstration_leaves_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a fifth of its people, which is quicker."""
    people = datasets.load_diabetes(scaled=False)
    people.data, people.target = people.data[::5], people.target[::5]
    monkeypatch.setattr(datasets, "load_diabetes", lambda **_: people)
    monkeypatch.chdir(tmp_path)
    result = run("demo")
    assert result.code == 0, result
    assert result.err == ""
    folder = tmp_path / "privgp-demo"
    assert {path.name for path in folder.iterdir()} == HELD
    for name in HELD - {"grid.csv", "diabetes.csv"}:
        assert name in result.out
    assert len(pl.read_csv(folder / "predictions.csv")) == len(grid(GRID, INPUTS))
    guarantee = privgp.load(folder / "diabetes.privgp").guarantee_
    assert (guarantee.epsilon, guarantee.delta) == (1.0, 0.0)
    assert not guarantee.is_simulation


def test_a_second_run_takes_another_folder_or_the_same_with_force(tmp_path: Path) -> None:
    wanted = tmp_path / "demo"
    assert demo_folder(wanted, force=False) == (wanted, True)
    assert demo_folder(wanted, force=False) == (tmp_path / "demo-2", True)
    assert demo_folder(wanted, force=False) == (tmp_path / "demo-3", True)
    assert demo_folder(wanted, force=True) == (wanted, False)


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="does not exist"):
        demo_folder(tmp_path / "no" / "demo", force=False)


def test_a_demonstration_that_fails_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("privgp.command.demo._write_data", stop)
    result = run("demo", "--out", tmp_path / "demo")
    assert result.code == 1
    assert result.err == "Error: Interrupted; nothing was spent.\n"
    assert not list(tmp_path.iterdir())
