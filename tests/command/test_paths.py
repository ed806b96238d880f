"""``privgp paths``: calibrate, create, release, excursion and inspect, as a custodian would."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from sklearn.gaussian_process.kernels import Matern

from privgp import PosteriorPaths
from tests.command.running import (
    COLUMNS,
    assert_one_sentence,
    assert_refused,
    instead,
    private_cells,
    run,
)

LAW = ["--domain", "age=18:90,bmi=15:40", "--bounds", "0", "5000", "--delta", "1e-3", "--kernel",
    "1e6*matern12(20, 5)"]  # fmt: skip
CREATE = [*COLUMNS, *LAW, "--epsilon", "5"]
GRID = "age=20:80:8,bmi=18:35:5"


@pytest.fixture
def state(tmp_path: Path, visits: Path) -> Path:
    path = tmp_path / "visits.private-state"
    result = run("paths", "create", visits, *CREATE, "--n-paths", 2, "-o", path)
    assert result.code == 0, result
    return path


def test_create_release_excursion_inspect(tmp_path: Path, visits: Path) -> None:
    state, out = tmp_path / "v.private-state", tmp_path / "paths.csv"
    created = run("paths", "create", visits, *CREATE, "--n-paths", 2, "-o", state)
    assert created.code == 0, created
    assert "PRIVATE" in created.out
    assert state.stat().st_mode & 0o777 == 0o600
    made = PosteriorPaths.load_state(state)
    assert made.guarantee_.epsilon <= 5.0

    released = run("paths", "release", state, GRID, "-o", out)
    assert released.code == 0, released
    table = pl.read_csv(out)
    assert table.columns == ["age", "bmi", "path_1", "path_2"]
    assert table.height == 40
    again = run("paths", "release", state, out, "-o", tmp_path / "again.parquet", "--json")
    assert json.loads(again.out)["rows"] == 40
    assert pl.read_parquet(tmp_path / "again.parquet").equals(table)

    picture = tmp_path / "set.png"
    found = run("paths", "excursion", state, GRID, "--threshold", 2500, "--smoothing", 3, "-o",
        tmp_path / "set.csv", "--plot", picture)  # fmt: skip
    assert found.code == 0, found
    assert pl.read_csv(tmp_path / "set.csv").columns == ["age", "bmi", "share", "inside"]
    assert picture.read_bytes().startswith(b"\x89PNG")

    shown = run("paths", "inspect", state)
    assert "one whole record" in shown.out
    assert "discrete Gaussian on a lattice" in shown.out
    facts = json.loads(run("paths", "inspect", state, "--json").out)
    assert facts["points_answered"] == 40
    for result in (created, released, again, found, shown):
        assert result.err == ""
        assert not any(cell in result.out for cell in private_cells())


def test_inputs_of_an_array_are_called_by_their_number(tmp_path: Path) -> None:
    state, out = tmp_path / "array.private-state", tmp_path / "paths.csv"
    X = np.linspace(0.0, 1.0, 20).reshape(10, 2)
    law = PosteriorPaths(
        Matern(1.0, nu=0.5), 50.0, domain=[(0, 1)] * 2, y_bounds=(0, 1), delta=0.01
    )
    law.fit(X, X[:, 0].copy(), state=state)
    assert "'x1' and 'x2'" in run("paths", "inspect", state).out
    assert run("paths", "release", state, "x1=0:1:2,x2=0:1:3", "-o", out).code == 0
    assert pl.read_csv(out).columns == ["x1", "x2", "path_1"]
    again = run("paths", "excursion", state, out, "--threshold", 0.5, "-o", tmp_path / "set.csv")
    assert again.code == 0, again


def test_calibrate_needs_no_data() -> None:
    for by in ("noise-variance", "extra-noise"):
        result = run("paths", "calibrate", *LAW, "--epsilon", 2, "--rows", 24, "--by", by, "--json")
        assert result.code == 0, result
        found = json.loads(result.out)
        assert found["epsilon"] <= 2.0
    assert found["noise_variance"] == 1e6
    said = run("paths", "calibrate", *LAW, "--epsilon", 2, "--rows", 24)
    assert "regularisation" in said.out


def test_a_given_noise_variance_and_a_seed(tmp_path: Path, visits: Path) -> None:
    values = []
    for name in ("a", "b"):
        state, out = tmp_path / f"{name}.private-state", tmp_path / f"{name}.csv"
        created = run("paths", "create", visits, *COLUMNS, *LAW, "--noise-variance", 4e6,
            "--extra-noise", 10, "--sensitivity", "paper", "--seed", 3, "-o", state)  # fmt: skip
        asked = run("paths", "release", state, GRID, "-o", out)
        assert "SIMULATION" in created.out
        assert "SIMULATION" in asked.out
        values.append(pl.read_csv(out))
    assert values[0].equals(values[1])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (["--epsilon", "0"], "epsilon"), (["--bounds", "5", "5"], "bounds"),
        (["--domain", "age=18:90"], "bmi"), (["--domain", "age=18,bmi=3"], "--domain"),
        (["--domain", "age=1:2,age=1:2"], "twice"), (["--domain", "age=9:2,bmi=1:2"], "domain"),
        (["--kernel", "cubic(3)"], "kernel"), (["--noise-variance", "4"], "--noise-variance"),
        (["--inputs", "age,cost"], "--output"), (["--output", "price"], "price"),
        (["-o", "visits.privgp"], ".private-state"), (["-o", "nowhere/v.private-state"], "nowhere"),
        (["--sensitivity", "best"], "best"), (["--delta", "2"], "delta"), (["--n-paths", "0"], "--n-paths"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_refused(
    tmp_path: Path, visits: Path, monkeypatch: pytest.MonkeyPatch, change: list[str], words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = instead(["paths", "create", visits, *CREATE, "-o", "v.private-state"], change)
    assert_refused(run(*arguments), words)
    assert [p.name for p in tmp_path.iterdir()] == [visits.name]


@pytest.mark.parametrize("cells", ["30,20,rich", "old,20,731.73591", ",20,731.73591", "inf,2,3"])
def test_a_bad_record_is_refused_without_its_place_or_value(tmp_path: Path, write, cells) -> None:
    data = write("bad.csv", f"age,bmi,cost\n30,20,731.73591\n{cells}\n")
    out = tmp_path / "x.private-state"
    result = run("paths", "create", data, *CREATE, "-o", out)
    assert_refused(result, "finite number in every row")
    assert "row 2" not in result.err
    assert not out.exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["release", "age=0:1:3", "-o", "o.csv"], "bmi"), (["release", "x", "-o", "o.csv"], "GRID"),
        (["release", "no.csv", "-o", "o.csv"], "does not exist"),
        (["release", GRID, "-o", "o.txt"], ".csv"),
        (["release", "age=0:1e60:2,bmi=1:2:2", "-o", "o.csv"], "outside the declared domain"),
        (["excursion", GRID, "--threshold", "nan", "-o", "o.csv"], "hreshold"),
        (["excursion", GRID, "--threshold", "1", "--vote", "2", "-o", "o.csv"], "vote"),
        (["excursion", GRID, "--threshold", "1", "--smoothing", "0", "-o", "o.csv"], "moothing"),
        (["excursion", GRID, "--threshold", "1", "-o", "o.csv", "--plot", "p.gif"], ".png"),
    ],
)  # fmt: skip
def test_wrong_questions_are_refused(
    tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    what, *rest = arguments
    assert_refused(run("paths", what, state, *rest), words)
    assert not list(tmp_path.glob("o.*"))


def test_too_many_points_are_refused_before_any_is_answered(tmp_path: Path, state: Path) -> None:
    out = tmp_path / "o.csv"
    many = run("paths", "release", state, "age=20:80:101,bmi=18:35:100", "-o", out)
    assert_refused(many, "10,100 of the points are new", "2,000")
    assert not out.exists()
    assert PosteriorPaths.load_state(state).points_answered_ == 0


def test_states_are_checked_and_never_replaced(tmp_path: Path, visits: Path, state: Path) -> None:
    assert_refused(run("paths", "create", visits, *CREATE, "-o", state), "exists already")
    assert_refused(run("paths", "inspect", visits), ".private-state")
    assert_refused(run("paths", "inspect", tmp_path / "no.private-state"), "does not exist")
    assert_refused(run("function", "inspect", state), "cannot be loaded")
    state.write_bytes(state.read_bytes()[:-7])
    assert_refused(run("paths", "inspect", state), "cannot be loaded")


@pytest.mark.parametrize("problem", [KeyboardInterrupt, OSError])
def test_when_stopped_it_says_that_nothing_is_lost(
    tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch, problem
) -> None:
    def stop(*_):
        raise problem

    with monkeypatch.context() as patch:
        patch.setattr("privgp.command.io.results.write_table", stop)
        result = run("paths", "release", state, GRID, "-o", tmp_path / "out.csv")
    assert_one_sentence(result, code=1)
    assert "ask again for the same paths" in result.err
    assert run("paths", "release", state, GRID, "-o", tmp_path / "out.csv").code == 0
    assert PosteriorPaths.load_state(state).points_answered_ == 40
