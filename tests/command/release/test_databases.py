"""A table in a database instead of a file: the release of the library, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from privgp import PrivateGPClassifier, PrivateGPRegressor, load, open_table
from tests.command.running import assert_one_sentence, run

SETTINGS = {"epsilon": 1.0, "delta": 1e-5, "hyperparameters": "fixed", "random_state": 3}
BUDGET = ["--epsilon", "1", "--delta", "1e-5", "--hyperparameters", "fixed"]
POISSON = ["--likelihood", "poisson", "--max-change", "1"]
POINTS = pl.DataFrame({"week": [3.0, 20.0, 35.5]})


@pytest.fixture
def address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    ibis = pytest.importorskip("ibis", reason="the extra 'database' is not installed")
    rng = np.random.default_rng(0)
    week = rng.uniform(0, 40, 300)
    made = pl.DataFrame(
        {
            "week": week,
            "who": rng.integers(0, 90, 300),
            "cost": 5 * week + rng.normal(0, 9, 300),
            "cases": rng.poisson(3, 300),
            "people": rng.uniform(1, 2, 300),
            "ill": np.where(rng.random(300) < week / 50, "yes", "no"),
        }
    )
    held = ibis.duckdb.connect(tmp_path / "clinic.duckdb")
    held.create_table("visits", made.to_arrow())
    held.disconnect()
    monkeypatch.chdir(tmp_path)
    return "duckdb:///clinic.duckdb?table=visits"


KINDS = {
    "number": (
        ["--output", "cost", "--groups", "who", "--bounds", "0", "250"],
        PrivateGPRegressor(y_bounds=(0, 250), **SETTINGS),
        ("cost", "who", None, None),
    ),
    "labels": (
        ["--output", "ill", "--classes", "no,yes"],
        PrivateGPClassifier(classes=["no", "yes"], **SETTINGS),
        ("ill", None, None, None),
    ),
    "counts": (
        ["--output", "cases", "--exposure", "people", "--bounds", "0", "20", *POISSON],
        PrivateGPRegressor(y_bounds=(0, 20), likelihood="poisson", max_change=1, **SETTINGS),
        ("cases", None, None, "people"),
    ),
    "several": (
        ["--output", "cost,cases", "--bounds", "0", "250", "--bounds", "0", "20"],
        PrivateGPRegressor(y_bounds=((0, 250), (0, 20)), **SETTINGS),
        (["cost", "cases"], None, None, None),
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_release_is_that_of_the_library(kind: str, address: str, tmp_path: Path) -> None:
    line, model, columns = KINDS[kind]
    given = ["--inputs", "week", *line, *BUDGET, "--seed", "3", "-o", "r.privgp"]
    found = run("release", address, *given)
    assert found.code == 0, found
    table = open_table(address, "week", *columns)
    model.fit(table.inputs, table.output)
    released = load(tmp_path / "r.privgp")
    for asked in ("predict", "predict_proba"):
        if hasattr(model, asked):
            expected = getattr(model, asked)(POINTS)
            assert getattr(released, asked)(POINTS).tolist() == expected.tolist()


def test_a_plan_is_carried_out(address: str) -> None:
    asked = ["--inputs", "week", "--bounds", "0", "250", *BUDGET, "-o", "r.plan"]
    assert run("plan", address, *asked).code == 0
    found = run("release", address, "--output", "cost", "--plan", "r.plan", "-o", "r.privgp")
    assert found.code == 0, found
    assert "from visits" in found.out


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (["--protect", "records", "--x-bounds", "0", "40"], "--protect records"),
        (["--missing", "drop"], "view"),
        (["--decimal-comma"], "view"),
    ],
)
def test_what_a_database_cannot_do_is_refused(line: list[str], sentence: str, address: str) -> None:
    asked = ["--inputs", "week", "--output", "cost", "--bounds", "0", "250", *BUDGET]
    found = run("release", address, *asked, *line, "-o", "r.privgp")
    assert_one_sentence(found)
    assert sentence in found.err
    assert not Path("r.privgp").exists()


def test_other_commands_take_files_alone(address: str) -> None:
    found = run("bounds", address, "--output", "cost", "--epsilon", "1", "-o", "b.json")
    assert_one_sentence(found)
    assert "plan and release" in found.err


@pytest.mark.parametrize(
    "place",
    [
        "postgresql://me:secret@127.0.0.1:1/none?table=visits",
        "postgresql://me:secret@127.0.0.1:1?table=visits",
        "duckdb:///absent.duckdb?table=visits",
        "duckdb:///clinic.duckdb?table=others",
        "duckdb:///clinic.duckdb",
    ],
)
def test_a_wrong_address_is_refused_without_its_password(place: str, address: str) -> None:
    asked = ["--inputs", "week", "--output", "cost", "--bounds", "0", "250", *BUDGET]
    found = run("release", place, *asked, "-o", "r.privgp")
    assert_one_sentence(found)
    assert "secret" not in found.out + found.err


@pytest.mark.parametrize("cell", ["NULL", "error('4711')", "CAST('4711 secret' AS DOUBLE)"])
def test_a_private_cell_that_cannot_be_read_spends_nothing(cell: str, address: str) -> None:
    """Whatever the database says of the cell, it is not quoted, and the query came before the charge."""
    ibis = pytest.importorskip("ibis")
    held = ibis.duckdb.connect("clinic.duckdb")
    written = f"SELECT week, CASE WHEN who = 7 THEN {cell} ELSE cost END AS cost FROM visits"
    held.raw_sql(f"CREATE VIEW bad AS {written}")
    held.disconnect()
    line = ["release", address.replace("visits", "bad"), "--inputs", "week", "--output", "cost"]
    found = run(*line, "--bounds", "0", "250", *BUDGET, "--out", "bad.privgp")
    assert_one_sentence(found)
    assert "4711" not in found.err
    assert "as spent" not in found.err
    assert not Path("bad.privgp").exists()


def test_an_error_of_arrow_is_not_quoted() -> None:
    """It is a ValueError, and may name the value that it stumbled upon."""
    arrow = pytest.importorskip("pyarrow")
    from privgp.engine.database import quiet_failures

    with pytest.raises(ValueError, match="refused the query") as found, quiet_failures():
        raise arrow.ArrowInvalid("Integer value 4711 not in range")
    assert "4711" not in str(found.value)
