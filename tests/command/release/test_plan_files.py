"""``privgp plan -o`` writes a plan, and ``privgp release --plan`` carries out that one and no other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import privgp
from privgp.models.regressor import PrivateGPRegressor
from privgp.plan.plan import save_plan
from tests.command.running import BUDGET, QUICK, assert_refused, instead, people_table, run

INPUTS = ["--inputs", "age,bmi"]
SEED = ["--seed", "5"]
DOMAIN = ["--x-bounds", "0", "90", "--x-bounds", "10", "60"]

KINDS: dict[str, list[str]] = {
    "outputs": [],
    "gaussian": ["--mechanism", "gaussian", *QUICK],
    "people": ["--groups", "person", *QUICK],
    "kernel and targets": ["--kernel", "1e6*rbf(9, 4)+white(4e5)", "--targets", "age=20:80:3,bmi=20:30:2", *QUICK],
    "unbiased": ["--reconstruct", "unbiased", "--targets", "age=20:80:3,bmi=20:30:2", *QUICK],
    "inducing": ["--inducing", "7", *QUICK],
    "records": ["--protect", "records", *DOMAIN, *QUICK],
}  # fmt: skip


def spend(*_: Any, **__: Any) -> None:
    raise AssertionError("budget was spent")


@pytest.fixture
def nothing_is_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rehearsal, which has a seed, is free."""
    fit = PrivateGPRegressor.fit

    def rehearsed(model: PrivateGPRegressor, *arguments: Any, **named: Any) -> PrivateGPRegressor:
        return fit(model, *arguments, **named) if model.random_state == 0 else spend()  # type: ignore

    monkeypatch.setattr(PrivateGPRegressor, "fit", rehearsed)
    monkeypatch.setattr("privgp.vault.grouped.totals.FileOutcomes.sum_over", spend)


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plan")
    people_table().write_csv(folder / "visits.csv")
    path = folder / "visits.plan"
    assert run("plan", folder / "visits.csv", *INPUTS, *BUDGET, *QUICK, "-o", path).code == 0
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_a_release_by_a_plan_is_the_release_by_its_options(
    tmp_path: Path, visits: Path, kind: str
) -> None:
    paths = [tmp_path / f"{name}.privgp" for name in ("plan", "options")]
    options = [*INPUTS, *BUDGET, *KINDS[kind]]
    planned = run("plan", visits, *options, "-o", tmp_path / "v.plan", "--json")
    assert planned.code == 0, planned
    carried_out = ["release", visits, "--plan", tmp_path / "v.plan", "--output", "cost", *SEED]
    asked_for = ["release", visits, *options, "--output", "cost", *SEED]
    for line, path in zip((carried_out, asked_for), paths, strict=True):
        result = run(*line, "-o", path, "--certificate", path.with_suffix(".json"))
        assert result.code == 0, result
    one, two = (privgp.load(path) for path in paths)
    assert one.measurements_[0].values.tolist() == two.measurements_[0].values.tolist()
    assert one.guarantee_ == two.guarantee_
    assert one.plan_summary_ == two.plan_summary_
    hashes = {json.loads(path.with_suffix(".json").read_text())["plan"] for path in paths}
    assert hashes == {json.loads(planned.out)["hash"], privgp.load_plan(tmp_path / "v.plan").hash}
    assert len(hashes) == 1


def test_a_plan_says_what_it_wrote(tmp_path: Path, visits: Path) -> None:
    path = tmp_path / "v.plan"
    line = ["plan", visits, *INPUTS, *BUDGET, *QUICK, "-o", path]
    told = run(*line)
    assert told.code == 0, told
    assert f"Planned in {path}, hash {privgp.load_plan(path).hash}." in told.out
    assert "contains values of 'age' and 'bmi' from" in told.out
    assert_refused(run(*line), "exists already", "--force")
    assert run(*line, "--force").code == 0
    records = instead([*line, "--force"], KINDS["records"])
    assert "contains what was declared" in run(*records).out


@pytest.mark.usefixtures("nothing_is_spent")
@pytest.mark.parametrize("kind", KINDS)
def test_a_plan_for_other_rows_is_refused(tmp_path: Path, visits: Path, kind: str) -> None:
    path, other = tmp_path / "v.plan", tmp_path / "other.csv"
    assert run("plan", visits, *INPUTS, *BUDGET, *KINDS[kind], "-o", path).code == 0
    table = people_table()
    moved = table.with_columns(pl.col("bmi") + 0.5, pl.lit("one").alias("person"))
    for rows in (table.head(23), table.head(23) if kind == "records" else moved):
        rows.write_csv(other)
        refused = ["release", other, "--plan", path, "--output", "cost"]
        result = run(*refused, "-o", tmp_path / "v.privgp")
        assert_refused(result, f"'{path}' was made for other inputs", "Nothing was spent")
        assert not (tmp_path / "v.privgp").exists()


@pytest.mark.usefixtures("nothing_is_spent")
@pytest.mark.parametrize(
    "option",
    [
        *(["--inputs", "age"], ["--bounds", "0", "1"], ["--epsilon", "1"], ["--delta", "1e-5"]),
        *(["--groups", "person"], ["--protect", "outputs"], ["--x-bounds", "0:1"]),
        *(["--kernel", "rbf(1)"], ["--noise-variance", "1"], ["--targets", "age=0:1:2"]),
        *(["--objective", "posterior"], ["--reconstruct", "posterior"]),
        *(["--hyperparameters", "learned"], ["--inducing", "3"], ["--mechanism", "auto"]),
    ],
    ids=lambda option: option[0],
)
def test_options_that_a_plan_says_are_refused(
    tmp_path: Path, visits: Path, plan: Path, option: list[str]
) -> None:
    line = ["release", visits, "--plan", plan, "--output", "cost", "-o", tmp_path / "v.privgp"]
    assert_refused(run(*line, *option), f"{option[0]} does not go with --plan")


@pytest.mark.usefixtures("nothing_is_spent")
@pytest.mark.parametrize("missing", ["--inputs", "--bounds", "--epsilon", "--delta"])
def test_without_a_plan_the_options_are_needed(tmp_path: Path, visits: Path, missing: str) -> None:
    line = [*INPUTS, *BUDGET]
    at = line.index(missing)
    del line[at : at + (3 if missing == "--bounds" else 2)]
    out = ["--output", "cost", "-o", tmp_path / "v.privgp"]
    assert_refused(run("release", visits, *line, *out), f"Missing option '{missing}'")


@pytest.mark.usefixtures("nothing_is_spent")
def test_plans_that_cannot_be_carried_out_are_refused(
    tmp_path: Path, visits: Path, plan: Path
) -> None:
    out = ["-o", tmp_path / "v.privgp"]

    def refused(path: Path, *words: str, output: str = "cost", table: Path = visits) -> None:
        line = ["release", table, "--plan", path, "--output", output, *out]
        assert_refused(run(*line), *words)

    refused(plan, "'age' cannot be among", output="age")
    refused(plan, "no column 'charge'", output="charge")
    data = bytearray(plan.read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / "bad.plan").write_bytes(data)
    refused(tmp_path / "bad.plan", "cannot be loaded")
    people_table().drop("bmi").write_csv(tmp_path / "other.csv")
    refused(plan, "has no column 'bmi'", table=tmp_path / "other.csv")

    model = PrivateGPRegressor(y_bounds=(0, 5000), delta=1e-5, hyperparameters="fixed")
    table = people_table().select("age", "bmi")
    nameless = tmp_path / "nameless.plan"
    for made in (model.plan(table.to_numpy()), model.plan(table, groups=people_table()["person"])):
        save_plan(made, nameless, overwrite=True)
        refused(nameless, "does not name the columns")


def test_a_plan_made_in_python_can_be_carried_out(tmp_path: Path, visits: Path) -> None:
    model = PrivateGPRegressor(y_bounds=(0, 5000), delta=1e-5, targets=[20, 30, 40])
    path = tmp_path / "v.plan"
    save_plan(model.plan(people_table().select("age")), path)
    line = ["release", visits, "--plan", path, "--output", "cost", "-o", tmp_path / "v.privgp"]
    result = run(*line, "--json")
    assert result.code == 0, result
    assert json.loads(result.out)["contains_inputs"] == ["age"]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_plan_file_holds_no_output(tmp_path: Path, ending: str) -> None:
    files = []
    for table in (people_table(), people_table().drop("cost")):
        data = tmp_path / f"visits.{ending}"
        table.write_csv(data) if ending == "csv" else table.write_parquet(data)
        path = tmp_path / f"{len(files)}.plan"
        assert run("plan", data, *INPUTS, *BUDGET, *QUICK, "-o", path).code == 0
        files.append(path.read_bytes())
    assert files[0] == files[1]


def test_a_plan_names_its_output_and_is_refused_for_another(tmp_path: Path, visits: Path) -> None:
    path, page = tmp_path / "v.plan", tmp_path / "v.html"
    line = ["plan", visits, *INPUTS, *BUDGET, *QUICK, "-o", path]
    assert run(*line, "--output", "cost").code == 0
    assert "Outputs: cost." in run("inspect", path).out
    assert run("certificate", path, "-o", page).code == 0
    assert "<th>Private output</th><td>cost</td>" in page.read_text("utf-8")
    other = run(
        "release", visits, "--plan", path, "--output", "smoker", "-o", tmp_path / "r.privgp"
    )
    assert_refused(other, "v.plan' is for --output cost.")
