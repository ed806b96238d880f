"""Counts, several outputs and columns that are no numbers, through the server."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from privgp import PrivateGPRegressor
from privgp.models.load import unpack_model
from tests.server.world import CUSTODIAN, World, declared

ROWS = 40
rng = np.random.default_rng(1)
TABLE = pl.DataFrame(
    {
        "age": np.linspace(20, 80, ROWS).round(1),
        "when": [f"2024-{1 + i % 12:02d}-05" for i in range(ROWS)],
        "region": [("north", "south")[i % 2] for i in range(ROWS)],
        "hour": rng.uniform(0, 24, ROWS).round(2),
        "lat": rng.uniform(51, 52, ROWS).round(3),
        "lon": rng.uniform(-1, 1, ROWS).round(3),
        "smoker": [("true", "false")[i % 2] for i in range(ROWS)],
        "people": rng.integers(50, 90, ROWS),
        "cases": rng.poisson(6, ROWS),
        "height": rng.uniform(150, 190, ROWS).round(2),
        "weight": rng.uniform(50, 110, ROWS).round(2),
        "ill": [("yes", "no")[i % 3 == 0] for i in range(ROWS)],
        "person": [f"person {i // 2}" for i in range(ROWS)],
    }
)
DATE = {"columns": ["when"], "kind": "date"}
REGION = {"columns": ["region"], "kind": "category"}
LEVELS = {**REGION, "levels": ["north", "south"]}
HOUR = {"columns": ["hour"], "kind": "periodic", "period": 24}
PLACE = {"columns": ["lat", "lon"], "kind": "place"}
TRUTH = {"columns": ["smoker"], "kind": "boolean"}
COUNTS = {"output": "cases", "bounds": [0, 50], "likelihood": "poisson"}
SEVERAL = {"output": ["height", "weight"], "bounds": [[140, 200], [40, 120]]}
LABELS = {"output": "ill", "bounds": None, "classes": ["no", "yes"]}
RECORDS = {"protect": "records", "x_bounds": [[0, 90]]}
# What is declared, and a point to predict at.
CASES: dict[str, tuple[dict[str, Any], list[Any]]] = {
    "counts": ({**COUNTS, "max_change": 1, "exposure": "people"}, [40.0]),
    "counts of people": ({**COUNTS, "max_change": 1, "groups": "person"}, [40.0]),
    "counts in records": ({**COUNTS, **RECORDS}, [40.0]),
    "several outputs": (SEVERAL, [40.0]),
    "several outputs in records": ({**SEVERAL, **RECORDS}, [40.0]),
    "kinds": (
        {"output": "height", "bounds": [140, 200], "inputs": ["when", "region", "hour"],
         "kinds": [DATE, REGION, HOUR]},
        ["2024-05-01", "south", 7.5],
    ),
    "labels by kinds": (
        {**LABELS, "inputs": ["smoker", "lat", "lon"], "kinds": [TRUTH, PLACE]},
        ["true", 51.5, 0.1],
    ),
    "several outputs by kinds": (
        {**SEVERAL, "inputs": ["region", "age"], "kinds": [LEVELS]}, ["north", 30.0],
    ),
    "private kinds": (
        {"output": "height", "bounds": [140, 200], "inputs": ["when", "region", "age"],
         "kinds": [DATE, LEVELS], "protect": "records",
         "x_bounds": [["2024-01-01", "2024-12-31"], [0, 90]]},
        ["2024-05-01", "south", 50.0],
    ),
}  # fmt: skip


def table(world: World, number: int) -> str:
    """The name of a table whose public inputs are those of no other dataset."""
    shift = 1.0 + number / 1000
    moved = TABLE.with_columns(pl.col("age", "hour", "lat") * shift)
    kept = world.ask(CUSTODIAN, "POST", "/api/tables", content=moved.write_csv().encode())
    return str(kept.json()["table"])


def register(world: World, name: str, number: int, given: dict[str, Any]) -> Any:
    asked = declared(name, table(world, number), **given)
    given = {field: value for field, value in asked.items() if value is not None}
    return world.ask(CUSTODIAN, "POST", "/api/datasets", json=given)


@pytest.mark.parametrize("case", CASES)
def test_from_a_declaration_to_predictions(case, world):
    given, point = CASES[case]
    made = register(world, case, [*CASES].index(case), given)
    assert made.status_code == 201, made.json()
    asked = made.json()
    assert asked["output"] == given["output"]
    plan = world.plan(CUSTODIAN, case, epsilon=1.0, compare=[0.5], mechanism="auto")
    told = world.get(CUSTODIAN, f"/api/plans/{plan}")
    outputs = np.atleast_1d(asked["output"])
    assert np.shape(told["expected_error"]) == (() if len(outputs) == 1 else (len(outputs),))
    numbers = [n for n in asked["inputs"] if n in ("age", "hour", "lat", "lon", "when")]
    assert {each["input"] for each in told["axes"]} <= {*numbers}
    for option in told["options"]:
        assert len(option["bars"]) == len(told["axes"])
    release = world.released(CUSTODIAN, case, plan, f"release-{len(case)}-{case[:2]}")
    path, points = f"/api/releases/{release}/predict", {"points": [point, point]}
    answer = world.ask(CUSTODIAN, "POST", path, json=points).json()
    found = np.array(answer["probability" if "classes" in answer else "mean"])
    assert found.shape == (2, 2) if len(outputs) > 1 or "classes" in answer else (2,)
    assert np.all(np.array(answer["low"]) <= found)
    assert answer.get("outputs", [*outputs]) == [*outputs]
    model = unpack_model(world.ask(CUSTODIAN, "GET", f"/api/releases/{release}/file").content)
    assert ("record" in model.guarantee_.unit) == ("x_bounds" in given)
    for view in ("view", "table.csv", "script.py", "page.html", "certificate.html"):
        page = world.ask(CUSTODIAN, "GET", f"/api/releases/{release}/{view}")
        assert page.status_code == 200, (view, page.text)
    for page in ("/", f"/datasets/{case}"):
        assert ", ".join(outputs) in world.ask(CUSTODIAN, "GET", page).text


def test_the_server_plans_as_python_does(world):
    given, _ = CASES["kinds"]
    assert register(world, "as in Python", 100, given).status_code == 201
    told = world.get(CUSTODIAN, f"/api/plans/{world.plan(CUSTODIAN, 'as in Python', epsilon=1.0)}")
    model = PrivateGPRegressor(
        y_bounds=(140, 200), epsilon=1.0, delta=1e-6, hyperparameters="fixed", mechanism="laplace",
        columns={"when": "date", "region": "category", "hour": ("periodic", 24)},
    )  # fmt: skip
    moved = TABLE.with_columns(pl.col("hour") * 1.1).select(given["inputs"])
    expected = model.plan(moved.to_dict(as_series=False)).expected_error()
    assert told["expected_error"] == pytest.approx(float(expected))


REFUSED: tuple[tuple[dict[str, Any], str], ...] = (
    ({**COUNTS, "exposure": "cases"}, "cannot be the exposure"),
    ({"exposure": "people"}, "exposure does not go with likelihood='gaussian'"),
    ({**COUNTS, **RECORDS, "exposure": "people"}, "as private as the record"),
    ({**LABELS, "max_change": 1}, "max_change does not go with labels"),
    ({**SEVERAL, "bounds": [140, 200]}, "one pair per output"),
    ({"output": "height", "bounds": [[1, 2], [3, 4]]}, "one pair per output"),
    ({"kinds": [{**DATE, "period": 3}]}, "period does not go with kind date"),
    ({"output": "height", "kinds": [DATE]}, "named columns once"),
    ({"output": "height", "inputs": ["region"]}, "named columns once"),
    ({"output": "ill"}, "The output column must hold a finite number"),
    ({"output": "height", "x_bounds": [[0, 90]]}, "x_bounds does not go with protect='outputs'"),
)


@pytest.mark.parametrize(("changed", "words"), REFUSED)
def test_what_does_not_go_together_is_refused_by_the_same_rules(changed, words, world):
    before = world.get(CUSTODIAN, "/api/datasets")
    answer = register(world, "refused", 200, changed)
    assert answer.status_code == 422
    assert words in answer.json()["error"]
    assert world.get(CUSTODIAN, "/api/datasets") == before


def test_an_update_measures_counts_of_new_people(world):
    assert register(world, "growing", 300, CASES["counts"][0]).status_code == 201
    plan = world.plan(CUSTODIAN, "growing", epsilon=0.5)
    release = world.released(CUSTODIAN, "growing", plan, "growing-release")
    assert "Add rows of new people" in world.ask(CUSTODIAN, "GET", f"/releases/{release}").text
    more = TABLE.with_columns(age=pl.col("age") + 0.3).write_csv().encode()
    path, once = f"/api/releases/{release}/updates", {"Idempotency-Key": "the-growing-update"}
    started = world.ask(CUSTODIAN, "POST", path, content=more, headers=once)
    job = world.finished(CUSTODIAN, started.json())
    assert job["state"] == "done", job
    model = unpack_model(world.ask(CUSTODIAN, "GET", f"/api/releases/{job['result']}/file").content)
    assert len(model.measurements_) == 2
