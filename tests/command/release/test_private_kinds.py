"""``--protect records`` for dates, categories, places, periodic inputs and truth values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privgp
from tests.command.running import Result, assert_refused, run
from tests.command.test_tables import TABLE

BUDGET = ["--bounds", "0", "200", "--epsilon", "4", "--delta", "1e-5"]
QUICK = ["--hyperparameters", "fixed", "--seed", "1"]
ASKED: dict[str, tuple[list[Any], Any, Any]] = {
    "when": (
        ["--dates", "when", "--x-bounds", "2024-03-01", "2024-03-31"],
        {"when": "date"},
        {"when": ("2024-03-01", "2024-03-31")},
    ),
    "when,region": (
        ["--dates", "when", "--categories", "region=north|east", "--x-bounds",
         "when=2024-03-01T00:00:2024-03-31T12:30"],
        {"when": "date", "region": ("category", ["north", "east"])},
        {"when": ("2024-03-01T00:00", "2024-03-31T12:30")},
    ),
    "lat,lon": (
        ["--places", "lat,lon", "--x-bounds", "lon=-1:1,lat=51:52"],
        {("lat", "lon"): "place"},
        {"lat": (51, 52), "lon": (-1, 1)},
    ),
    "member,hour": (
        ["--periodic", "hour=24", "--booleans", "member"],
        {"member": "boolean", "hour": ("periodic", 24)},
        {},
    ),
}  # fmt: skip


def written(folder: Path, ending: str) -> Path:
    path = folder / f"t.{ending}"
    TABLE.write_csv(path) if ending == "csv" else TABLE.write_parquet(path)
    return path


def released(folder: Path, *words: Any) -> Result:
    found = run("release", *words, "--output", "cost", "-o", folder / "t.privgp", "--force")
    assert found.code == 0, found
    return found


@pytest.mark.parametrize(("inputs", "ending"), [*zip(ASKED, ["csv", "parquet"] * 2, strict=True)])
def test_the_command_releases_what_python_does(tmp_path: Path, inputs: str, ending: str) -> None:
    options, columns, bounds = ASKED[inputs]
    data, page = written(tmp_path, ending), tmp_path / "c.html"
    asked = [data, "--inputs", inputs, "--protect", "records", *options, *BUDGET, *QUICK[:2]]
    planned = run("plan", *asked, "-o", tmp_path / "t.plan")
    assert planned.code == 0, planned
    assert "a plan needs neither an input nor an output" in planned.out
    released(tmp_path, *asked, *QUICK[2:], "--certificate", page)
    names = inputs.split(",")
    model = privgp.PrivateGPRegressor(
        y_bounds=(0, 200), epsilon=4.0, delta=1e-5, protect="records", columns=columns,
        x_bounds=bounds, hyperparameters="fixed", random_state=1,
    )  # fmt: skip
    model.fit(TABLE.select(names), TABLE["cost"])
    known = model.predict(TABLE.select(names))
    file = tmp_path / "t.privgp"
    assert np.array_equal(privgp.load(file).predict(TABLE.select(names)), known)
    described = model.inputs_.describe()
    inspected = run("inspect", file)
    for text in (" ".join(inspected.out.split()), page.read_text(), " ".join(planned.out.split())):
        assert all(each in text for each in described), text
    assert "The file contains no input" in inspected.out
    released(tmp_path, data, "--plan", tmp_path / "t.plan", *QUICK[2:])
    assert np.array_equal(privgp.load(file).predict(TABLE.select(names)), known)
    for question in ([written(tmp_path, "csv")], ["--grid", "3"]):
        assert run("predict", file, *question, "-o", tmp_path / "p.csv", "--force").code == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--dates", "when"], "one range for each of 'when' and 'lat'"),
        (["--dates", "when", "--x-bounds", "lat=51:52"], "'when' and 'lat'"),
        (["--dates", "when", "--x-bounds", "when=1:2,lat=51:52"], "--x-bounds must be such as"),
        (["--dates", "when", "--x-bounds", "when=2024-01-01,lat=51:52"], "--x-bounds must be"),
        (["--dates", "when", "--x-bounds", "when=2024-01-02:2024-01-01,lat=51:52"], "low < high"),
        (
            [
                "--dates",
                "when",
                "--date-format",
                "%d.%m.%Y",
                "--x-bounds",
                "when=2024-01-01:2024-12-31,lat=51:52",
            ],
            "write private ones as 2024-12-31",
        ),
        (["--categories", "when", "--x-bounds", "51", "52"], "levels of the private column 'when'"),
        (["--categories", "when=a", "--x-bounds", "when=1:2,lat=51:52"], "'lat'"),
        (["--dates", "when", "--x-bounds", "2024-01-01", "2024-01-02"], "'when' and 'lat'"),
    ],
)
def test_what_is_private_is_declared(tmp_path: Path, options: list[str], words: str) -> None:
    asked = ["--inputs", "when,lat", "--protect", "records", *options, *BUDGET]
    assert_refused(run("plan", written(tmp_path, "csv"), *asked), words)
