"""The happy paths, end to end."""

from __future__ import annotations

import json
import runpy
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import privgp
from privgp.command import main
from privgp.models.load import save
from tests.command.running import BUDGET, COLUMNS, QUICK, ROWS, people_table, private_cells, run

PNG = b"\x89PNG"


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_plan_release_predict_inspect(tmp_path: Path, ending: str) -> None:
    data, out = tmp_path / f"visits.{ending}", tmp_path / f"predictions.{ending}"
    table = people_table()
    table.write_csv(data) if ending == "csv" else table.write_parquet(data)
    file, page, picture = (tmp_path / n for n in ("visits.privgp", "certificate.html", "map.png"))

    planned = run("plan", data, *COLUMNS, *BUDGET, *QUICK, "--plot", tmp_path / "plan.svg")
    assert planned.code == 0, planned
    assert "Nothing has been spent" in planned.out
    assert "<- this plan" in planned.out
    assert "<svg" in (tmp_path / "plan.svg").read_text()

    released = run(
        *("release", data, *COLUMNS, *BUDGET, *QUICK, "-o", file),
        *("--certificate", page, "--plot", picture),
    )
    assert released.code == 0, released
    assert "contains values of 'age' and 'bmi' from" in released.out
    assert "(1, 0)-differential privacy (pure)" in released.out
    assert picture.read_bytes().startswith(PNG)
    assert "<html" in page.read_text()

    predicted = run("predict", file, data, "-o", out, "--plot", tmp_path / "curve.png")
    assert predicted.code == 0, predicted
    result = pl.read_csv(out) if ending == "csv" else pl.read_parquet(out)
    assert result.columns == ["person", "age", "bmi", "mean", "std", "low", "high", "near_data"]
    assert result["age"].dtype == pl.Int64
    assert result["age"].to_list() == table["age"].to_list()
    model = privgp.load(file)
    mean, std = model.predict(table.select("age", "bmi"), return_std=True)
    assert np.array_equal(result["mean"].to_numpy(), mean)
    assert np.array_equal(result["std"].to_numpy(), std)
    ends = model.interval(table.select("age", "bmi"))
    assert np.array_equal(result.select("low", "high").to_numpy().T, ends)

    inspected = run("inspect", file, "--certificate", tmp_path / "certificate.json")
    assert inspected.code == 0, inspected
    assert "'age' and 'bmi'" in inspected.out
    assert "Nothing has been spent" not in inspected.out
    assert json.loads((tmp_path / "certificate.json").read_text())["epsilon"] == 1.0

    for result_of in (planned, released, predicted, inspected):
        assert result_of.err == ""
        assert not any(cell in result_of.out for cell in private_cells())
    assert {path.name for path in tmp_path.iterdir()} == {
        data.name,
        out.name,
        "plan.svg",
        "visits.privgp",
        "certificate.html",
        "certificate.json",
        "map.png",
        "curve.png",
    }


def test_json_is_one_object_and_nothing_else(tmp_path: Path, visits: Path, release: Path) -> None:
    def answer(*arguments: object) -> dict[str, Any]:
        result = run(*arguments, "--json")
        assert result.code == 0, result
        assert result.err == ""
        found: dict[str, Any] = json.loads(result.out)
        return found

    planned = answer("plan", visits, *COLUMNS, *BUDGET, *QUICK, "--groups", "person")
    assert planned["rows"] == ROWS
    assert planned["spent"] is False
    errors = {entry["epsilon"]: entry["expected_error"] for entry in planned["expected_errors"]}
    assert errors[1.0] == planned["expected_error"]
    assert sorted(errors.values(), reverse=True) == list(errors.values())

    file = tmp_path / "v.privgp"
    released = answer(
        "release", visits, *COLUMNS, *BUDGET, *QUICK, "-o", file, "--groups", "person"
    )
    assert released["contains_inputs"] == ["age", "bmi"]
    assert released["spent"] is True
    assert released["simulation"] is False
    assert released["guarantee"]["unit"] == "all output values of one person"

    predicted = answer("predict", file, visits, "-o", tmp_path / "p.csv")
    assert predicted["columns"] == [
        "person",
        "age",
        "bmi",
        "mean",
        "std",
        "low",
        "high",
        "near_data",
    ]
    assert {predicted[name] for name in ("mean", "std", "low", "high")} <= {*predicted["columns"]}
    assert (predicted["coverage"], predicted["observation"]) == (0.9, False)
    assert answer("inspect", release)["delta"] == 0.0


def test_options_reach_the_model(tmp_path: Path, visits: Path) -> None:
    file = tmp_path / "v.privgp"
    result = run(
        *("release", visits, *COLUMNS, *BUDGET, "-o", file, "--seed", "7"),
        *("--kernel", "1e6*matern32(20, 5) + white(400)", "--hyperparameters", "fixed"),
        *("--targets", "bmi=20:30:4,age=20:80:3", "--reconstruct", "unbiased"),
        *("--objective", "max"),
    )
    assert result.code == 0, result
    assert result.out.startswith("SIMULATION")
    model = privgp.load(file)
    assert model.guarantee_.is_simulation
    assert str(model.kernel_) == "1e+03**2 * Matern(length_scale=[20, 5], nu=1.5)"
    assert model.noise_variance_ == 400.0
    assert model.objective == "max"
    assert model.targets.shape == (12, 2)

    pl.DataFrame(model.targets, schema=["age", "bmi"], orient="row").write_csv(
        tmp_path / "targets.csv"
    )
    assert run("predict", file, tmp_path / "targets.csv", "-o", tmp_path / "p.csv").code == 0
    elsewhere = run("predict", file, visits, "-o", tmp_path / "q.csv")
    assert elsewhere.code == 0, elsewhere


def test_observation_adds_the_noise_variance(tmp_path: Path, visits: Path, release: Path) -> None:
    for name, options in (("f.csv", []), ("y.csv", ["--observation"])):
        assert run("predict", release, visits, "-o", tmp_path / name, *options).code == 0
    latent, outputs = (
        pl.read_csv(tmp_path / name)["std"].to_numpy() for name in ("f.csv", "y.csv")
    )
    noise = privgp.load(release).noise_variance_
    assert np.allclose(outputs**2, latent**2 + noise)


@pytest.mark.parametrize("observation", [False, True])
def test_the_interval_has_the_coverage_that_is_asked_for(
    tmp_path: Path, visits: Path, release: Path, observation: bool
) -> None:
    options = ["--observation"] if observation else []
    asked = run(
        *("predict", release, visits, "-o", tmp_path / "p.csv", "--coverage", "0.5", *options)
    )
    assert asked.code == 0, asked
    assert "probability 0.5" in asked.out
    assert ("a new output" if observation else "contains the function") in asked.out
    found = pl.read_csv(tmp_path / "p.csv")
    X = found.select("age", "bmi")
    ends = privgp.load(release).interval(X, 0.5, observation=observation)
    assert np.array_equal(found.select("low", "high").to_numpy().T, ends)
    assert (found["low"] < found["high"]).all()


def test_a_coverage_that_is_none_is_refused_before_anything_is_read(
    tmp_path: Path, visits: Path, release: Path
) -> None:
    for bad in ("0", "1", "-0.5", "90", "nan", "0.99999999999999999", "0.9999999999999999"):
        asked = run("predict", release, visits, "-o", tmp_path / "p.csv", "--coverage", bad)
        assert asked.code == 2, bad
        assert "--coverage must lie between 0 and 1" in asked.err
        assert asked.err.strip().count("\n") == 0
        assert not (tmp_path / "p.csv").exists()


def test_more_rows_than_one_block(tmp_path: Path, release: Path) -> None:
    rows = 5000
    table = pl.DataFrame({"age": np.linspace(20, 80, rows), "bmi": np.full(rows, 25.0)})
    table.write_parquet(tmp_path / "new.parquet")
    assert run("predict", release, tmp_path / "new.parquet", "-o", tmp_path / "p.parquet").code == 0
    expected = privgp.load(release).predict(table)
    found = pl.read_parquet(tmp_path / "p.parquet")["mean"].to_numpy()
    assert np.allclose(found, expected, rtol=1e-9)


def test_one_row_is_no_plural(tmp_path: Path, release: Path) -> None:
    for rows, words in ((1, "Predicted 1 row into"), (2, "Predicted 2 rows into")):
        people_table(rows).write_csv(tmp_path / "new.csv")
        asked = run("predict", release, tmp_path / "new.csv", "-o", tmp_path / f"{rows}.csv")
        assert words in asked.out


def test_inputs_called_mean_are_not_overwritten(tmp_path: Path) -> None:
    table = people_table().rename({"age": "mean"})
    data, file = tmp_path / "v.csv", tmp_path / "v.privgp"
    table.write_csv(data)
    columns = ["--inputs", "mean", "--output", "cost"]
    assert run("release", data, *columns, *BUDGET, *QUICK, "-o", file).code == 0
    assert run("predict", file, data, "-o", tmp_path / "p.csv").code == 0
    found = pl.read_csv(tmp_path / "p.csv")
    added = [f"predicted_{name}" for name in ("mean", "std", "low", "high", "near_data")]
    assert found.columns == ["person", "mean", "bmi", *added]
    assert found["mean"].to_list() == table["mean"].to_list()


def test_inputs_of_other_names_are_given(tmp_path: Path, release: Path) -> None:
    data = tmp_path / "new.csv"
    data.write_text("years,index\n30,22\n40,25\n")
    assert run("predict", release, data, "-o", tmp_path / "p.csv").code == 2
    named = run("predict", release, data, "-o", tmp_path / "p.csv", "--inputs", "years,index")
    assert named.code == 0, named
    mean = privgp.load(release).predict(pl.DataFrame({"age": [30.0, 40], "bmi": [22.0, 25]}))
    assert np.array_equal(pl.read_csv(tmp_path / "p.csv")["mean"].to_numpy(), mean)


def test_a_release_without_names_asks_for_them(tmp_path: Path, visits: Path) -> None:
    table = people_table()
    model = privgp.PrivateGPRegressor(
        y_bounds=(0, 5000), hyperparameters="fixed", random_state=0
    ).fit(table.select("age").to_numpy(), table["cost"].to_numpy())
    save(model, tmp_path / "v.privgp")
    refused = run("predict", tmp_path / "v.privgp", visits, "-o", tmp_path / "p.csv")
    assert refused.code == 2
    assert "--inputs" in refused.err
    named = run(
        "predict", tmp_path / "v.privgp", visits, "-o", tmp_path / "p.csv", "--inputs", "age"
    )
    assert named.code == 0, named


def test_existing_files_are_replaced_with_force(tmp_path: Path, visits: Path) -> None:
    file, page = tmp_path / "v.privgp", tmp_path / "c.json"
    command = ["release", visits, *COLUMNS, *BUDGET, *QUICK, "-o", file, "--certificate", page]
    assert run(*command).code == 0
    before = file.read_bytes()
    refused = run(*command)
    assert refused.code == 2
    assert "--force" in refused.err
    assert file.read_bytes() == before
    assert run(*command, "--force").code == 0
    assert file.read_bytes() != before


def test_names_may_have_spaces_around_them(tmp_path: Path) -> None:
    data = tmp_path / "v.csv"
    data.write_text("age , cost\n20,1\n30,2\n")
    result = run("plan", data, "--inputs", "age", *BUDGET, *QUICK, "--json")
    assert result.code == 0, result


def test_spaces_do_not_make_another_person(tmp_path: Path) -> None:
    data = tmp_path / "v.csv"
    data.write_text("who,age\nann,20\n ann,30\nann ,40\nbob,50\n")
    result = run("plan", data, "--inputs", "age", "--groups", "who", *BUDGET, *QUICK)
    assert "4 rows of 2 people" in result.out, result


def test_version_and_help() -> None:
    assert run("--version").out == f"privgp {privgp.__version__}\n"
    assert "release" in run().out
    for command in ("plan", "release", "predict", "inspect", "demo"):
        shown = run(command, "--help")
        assert shown.code == 0
        assert "Usage" in shown.out


def test_the_module_is_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["privgp", "inspect", "no.privgp"])
    with pytest.raises(SystemExit) as stopped:
        runpy.run_module("privgp", run_name="__main__")
    assert stopped.value.code == 2
    assert (
        capsys.readouterr().err
        == "Error: The file 'no.privgp' does not exist: check its name and folder.\n"
    )


def test_the_script_is_installed() -> None:
    (script,) = entry_points(group="console_scripts", name="privgp")
    assert script.load() is main


def test_shells_complete_subcommands(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("_PRIVGP_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "privgp ins")
    monkeypatch.setenv("COMP_CWORD", "1")
    with pytest.raises(SystemExit):
        main([])
    assert capsys.readouterr().out.split() == ["inspect"]


def test_progress_is_drawn_on_a_terminal_and_nowhere_else(
    visits: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ["plan", str(visits), *COLUMNS, *BUDGET, *QUICK, "--json"]
    assert main(command) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    json.loads(shown.out)

    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    assert main(command) == 0
    shown = capsys.readouterr()
    assert "Planning" in shown.err
    json.loads(shown.out)


@pytest.mark.parametrize("mechanism", [(), ("--mechanism", "laplace")])
def test_without_delta_the_release_is_pure(visits, tmp_path, mechanism):
    out = tmp_path / "pure.privgp"
    asked = (visits, "--inputs", "age", "--bounds", 0, 5000, "--epsilon", 1, "--delta", 0, *QUICK)
    planned = run("plan", *asked, *mechanism)
    assert planned.code == 0, planned
    assert "What a budget buys (delta = 0 offered)" in planned.out
    assert "delta = 0 (Laplace noise needs none)" in planned.out
    facts = json.loads(run("plan", *asked, *mechanism, "--json").out)
    assert (facts["delta"], facts["delta_offered"], facts["gap"]) == (0.0, 0.0, None)
    released = run("release", *asked, *mechanism, "--output", "cost", "-o", out)
    assert released.code == 0, released
    assert "(1, 0)-differential privacy (pure)" in released.out
    assert "delta = 0 (Laplace noise needs none)" in run("inspect", out).out
