"""``privgp function``: create, ask and inspect, as a custodian would."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from privgp import PrivateFunction
from tests.command.running import (
    BUDGET,
    COLUMNS,
    assert_one_sentence,
    assert_refused,
    instead,
    people_table,
    private_cells,
    run,
)

KERNEL = ["--kernel", "1e6*matern52(20, 5) + white(250000)"]
CREATE = [*COLUMNS, *BUDGET, *KERNEL]


@pytest.fixture
def state(tmp_path: Path, visits: Path) -> Path:
    path = tmp_path / "visits.private-state"
    result = run("function", "create", visits, *CREATE, "-o", path)
    assert result.code == 0, result
    return path


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("options", [[], ["--inducing", "6"], ["--sensitivity", "infinity"]])
def test_create_ask_inspect(tmp_path: Path, visits: Path, ending: str, options: list[str]) -> None:
    state, out = tmp_path / "visits.private-state", tmp_path / f"answers.{ending}"
    created = run("function", "create", visits, *CREATE, *options, "-o", state)
    assert created.code == 0, created
    assert "PRIVATE" in created.out
    assert "more than the width of the bounds" in created.err
    assert state.stat().st_mode & 0o777 == 0o600

    asked = run("function", "ask", state, visits, "-o", out)
    assert asked.code == 0, asked
    table = pl.read_csv(out) if ending == "csv" else pl.read_parquet(out)
    assert table.columns == ["age", "bmi", "value"]
    assert table["age"].to_list() == people_table()["age"].to_list()

    again = run("function", "ask", state, visits, "-o", out, "--force", "--json")
    assert json.loads(again.out)["columns"] == ["age", "bmi", "value"]
    repeated = pl.read_csv(out) if ending == "csv" else pl.read_parquet(out)
    assert repeated.equals(table)

    shown = run("function", "inspect", state)
    assert shown.code == 0, shown
    assert "(1, 1e-05)-differential privacy" in shown.out
    facts = json.loads(run("function", "inspect", state, "--json").out)
    assert facts["guarantee"]["epsilon"] == 1.0
    assert facts["points_left"] == (None if "--inducing" in options else 20_000 - 24)
    assert PrivateFunction.load_state(state).sensitivity_ == facts["sensitivity"]
    for result in (created, asked, again, shown):
        assert result is created or result.err == ""
        assert not any(cell in result.out + result.err for cell in private_cells())
    assert {p.name for p in tmp_path.iterdir()} == {visits.name, state.name, out.name}


def test_a_seed_is_a_simulation(tmp_path: Path, visits: Path) -> None:
    values = []
    for name in ("a", "b"):
        state, out = tmp_path / f"{name}.private-state", tmp_path / f"{name}.csv"
        created = run("function", "create", visits, *CREATE, "--seed", 3, "-o", state)
        asked = run("function", "ask", state, visits, "-o", out)
        assert "SIMULATION" in created.out
        assert "SIMULATION" in asked.out
        values.append(pl.read_csv(out))
    assert values[0].equals(values[1])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (["--epsilon", "0"], "epsilon"),
        (["--bounds", "5", "5"], "bounds"),
        (["--kernel", "cubic(3)"], "kernel"),
        (["--kernel", "matern52(20)"], "--noise-variance"),
        (["--kernel", "matern52(1, 2, 3) + white(1)"], "lengthscales"),
        (["--noise-variance", "-1"], "--noise-variance"),
        (["--noise-variance", "4"], "noise once"),
        (["--inducing", "4", "--sensitivity", "infinity"], "exact"),
        (["--inputs", "age,cost"], "cost"),
        (["--output", "price"], "price"),
        (["-o", "visits.privgp"], ".private-state"),
        (["-o", "nowhere/visits.private-state"], "nowhere"),
        (["--sensitivity", "best"], "best"),
        (["--sensitivity", "varah", "--dominance", "-1"], "dominance"),
        (["--dominance", "1"], "dominance"),
        (["--protect", "records"], "--domain"),
        (["--domain", "age=0:100,bmi=10:60"], "--protect records"),
        (["--protect", "records", "--domain", "age=0:100"], "--domain"),
        (["--protect", "records", "--domain", "age=0:100,bmi=60:10"], "domain"),
        (["--protect", "records", "--domain", "0:100,x"], "--domain"),
        (["--protect", "records", "--domain", "0:100,10:60", "--inducing", "4"], "inducing"),
        (["--protect", "records", "--domain", "0:9,1:6", "--sensitivity", "varah"], "sensitivity"),
    ],
)
def test_wrong_arguments_are_refused(
    tmp_path: Path, visits: Path, monkeypatch: pytest.MonkeyPatch, change: list[str], words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = instead(
        ["function", "create", visits, *CREATE, "-o", "visits.private-state"], change
    )
    assert_refused(run(*arguments), words)
    assert [p.name for p in tmp_path.iterdir()] == [visits.name]


def test_a_bad_output_is_refused_without_its_value(tmp_path: Path, write) -> None:
    data = write("bad.csv", "age,bmi,cost\n30,20,731.73591\n40,22,rich\n")
    out = tmp_path / "x.private-state"
    assert_refused(run("function", "create", data, *CREATE, "-o", out), "cost")
    assert not out.exists()


def test_a_state_is_never_replaced(visits: Path, state: Path) -> None:
    before = state.read_bytes()
    assert_refused(run("function", "create", visits, *CREATE, "-o", state), "exists already")
    assert state.read_bytes() == before


def test_files_that_are_no_states_are_refused(tmp_path: Path, visits: Path, state: Path) -> None:
    out = tmp_path / "out.csv"
    assert_refused(run("function", "ask", visits, visits, "-o", out), ".private-state")
    missing = tmp_path / "no.private-state"
    assert_refused(run("function", "inspect", missing), "does not exist")
    state.write_bytes(state.read_bytes()[:-7])
    assert_refused(run("function", "ask", state, visits, "-o", out), "cannot be loaded")
    assert not out.exists()


def test_inputs_may_be_named_otherwise(tmp_path: Path, state: Path, write) -> None:
    new = write("new.csv", "years,index\n30,20\n")
    out = tmp_path / "out.csv"
    assert_refused(run("function", "ask", state, new, "-o", out), "age")
    assert_refused(run("function", "ask", state, new, "-o", out, "--inputs", "years"), "2 inputs")
    assert run("function", "ask", state, new, "-o", out, "--inputs", "years,index").code == 0
    assert pl.read_csv(out).columns == ["years", "index", "value"]


def test_points_too_far_away_are_refused(tmp_path: Path, state: Path, write) -> None:
    new = write("new.csv", "age,bmi\n1e300,20\n")
    assert_refused(run("function", "ask", state, new, "-o", tmp_path / "out.csv"), "too far away")


def test_records_are_protected_on_a_declared_domain(tmp_path: Path, visits: Path) -> None:
    state, out = tmp_path / "visits.private-state", tmp_path / "answers.csv"
    options = ["--protect", "records", "--x-bounds", "age=0:100,bmi=10:60"]
    created = run("function", "create", visits, *CREATE, *options, "-o", state)
    assert created.code == 0, created
    assert "one whole record" in created.out
    assert "holds the records" in created.out
    asked = run("function", "ask", state, visits, "-o", out)
    assert asked.code == 0, asked
    facts = json.loads(run("function", "inspect", state, "--json").out)
    assert facts["points_left"] == 4000 - 24
    assert not any(cell in created.out + asked.out for cell in private_cells())


def test_a_private_input_is_refused_without_its_place(tmp_path: Path, write) -> None:
    data = write("bad.csv", "age,bmi,cost\n30,20,1\n731.73591,,2\n")
    options = [
        "--protect",
        "records",
        "--domain",
        "0:100,10:60",
        "-o",
        tmp_path / "x.private-state",
    ]
    result = run("function", "create", data, *CREATE, *options)
    assert_refused(result, "finite number in every row")
    assert "row 2" not in result.err
    assert "731" not in result.err


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_a_picture_is_drawn_and_its_points_are_remembered(
    tmp_path: Path, visits: Path, state: Path, ending: str
) -> None:
    out, picture = tmp_path / "answers.csv", tmp_path / f"map.{ending}"
    asked = run("function", "ask", state, visits, "-o", out, "--plot", picture)
    assert asked.code == 0, asked
    assert "Drawn in" in asked.out
    assert "The picture asked 1,0" in asked.out
    assert picture.stat().st_size > 5_000
    facts = json.loads(run("function", "inspect", state, "--json").out)
    assert 1040 <= facts["points_answered"] <= 24 + 32 * 32
    other = tmp_path / "other.csv"
    again = run("function", "ask", state, visits, "-o", other, "--plot", picture)
    assert_refused(again, f"map.{ending}' exists already")
    assert_refused(run("function", "ask", state, visits, "-o", other, "--plot", "x.pdf"), ".png")
    assert not other.exists()


@pytest.mark.parametrize("problem", [KeyboardInterrupt, OSError])
def test_when_stopped_it_says_that_nothing_is_lost(
    tmp_path: Path, visits: Path, state: Path, monkeypatch: pytest.MonkeyPatch, problem
) -> None:
    out = tmp_path / "out.csv"

    def stop(*_):
        raise problem

    with monkeypatch.context() as patch:
        patch.setattr("privgp.command.io.results.write_table", stop)
        result = run("function", "ask", state, visits, "-o", out)
    assert_one_sentence(result, code=1)
    assert "ask again for the same function" in result.err
    first = PrivateFunction.load_state(state).points_answered_
    assert run("function", "ask", state, visits, "-o", out).code == 0
    assert PrivateFunction.load_state(state).points_answered_ == first == 24


def test_without_a_subcommand_it_says_what_there_is() -> None:
    result = run("function")
    assert "create" in result.out + result.err
