"""Every outcome and every unit from a table in files: the same bits as from memory."""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import privgp
from privgp import (
    Count,
    Label,
    Number,
    PrivateGP,
    PrivateGPClassifier,
    PrivateGPRegressor,
    load,
    open_table,
)
from privgp.models.rows import files
from privgp.models.rows.files import FileInputs
from privgp.plan.inputs import files as file_rows
from tests.command.running import assert_refused, run
from tests.models.test_changed_files import touched
from tests.models.test_table import write

pytestmark = pytest.mark.filterwarnings("ignore:The file contains")

ROWS, NAMES = 60, ["a", "b"]
BUDGET = {"epsilon": 2.0, "delta": 1e-5, "hyperparameters": "fixed", "random_state": 0}
DOMAIN = {"protect": "records", "x_bounds": ((0, 10), (0, 10))}
COLUMNS = {"when": "date", "region": ("category", ["x", "y", "z"])}


@pytest.fixture(scope="module")
def data() -> pl.DataFrame:
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 10, size=(ROWS, 2)).round(2)
    days = np.datetime64("2024-01-01") + rng.integers(0, 300, ROWS).astype("m8[D]")
    return pl.DataFrame(
        {
            "a": X[:, 0],
            "b": X[:, 1],
            "when": pl.Series(days),
            "region": rng.choice(["x", "y", "z"], ROWS),
            "cost": np.sin(X[:, 0]).round(3),
            "pay": (np.cos(X[:, 1]) ** 2).round(3),
            "ill": rng.choice(["no", "yes"], ROWS),
            "type": rng.choice(["p", "q", "r"], ROWS),
            "code": rng.integers(0, 3, ROWS),
            "visits": rng.poisson(3, ROWS),
            "population": rng.uniform(1, 3, ROWS).round(2),
            "who": [f"person {k // 3}" for k in range(ROWS)],
        }
    )


def classifier(*classes: Any, **settings: Any) -> PrivateGPClassifier:
    return PrivateGPClassifier(classes=classes, **BUDGET, **settings)


def regressor(**settings: Any) -> PrivateGPRegressor:
    return PrivateGPRegressor(**{"y_bounds": (-1, 1), **BUDGET, **settings})


def several(**settings: Any) -> PrivateGPRegressor:
    return regressor(y_bounds=((-1, 1), (0, 1)), **settings)


def counts(**settings: Any) -> PrivateGPRegressor:
    change = None if "protect" in settings else 1
    return regressor(y_bounds=(0, 20), likelihood="poisson", max_change=change, **settings)


# outcome: (model, columns)
OUTCOMES: dict[str, tuple[Callable[..., Any], Any]] = {
    "number": (regressor, "cost"),
    "number, inducing": (lambda **given: regressor(inducing=9, **given), "cost"),
    "two classes": (lambda **given: classifier("no", "yes", **given), "ill"),
    "three classes": (lambda **given: classifier("p", "q", "r", **given), "type"),
    "three classes, numbers": (lambda **given: classifier(0, 1, 2, **given), "code"),
    "counts": (counts, "visits"),
    "several": (several, ["cost", "pay"]),
    "several, inducing": (lambda **given: several(inducing=9, **given), ["cost", "pay"]),
}
# What inputs are private with, and by what name people are known.
UNITS = {
    "outputs": ({}, None),
    "people": ({}, "who"),
    "records": (DOMAIN, None),
    "people's records": (DOMAIN, "who"),
}


def answers(model: Any, X: Any) -> Any:
    return model.predict_proba(X) if hasattr(model, "predict_proba") else model.predict(X)


def outputs(data: pl.DataFrame, columns: Any) -> Any:
    return data[columns] if isinstance(columns, list) else np.array(data[columns].to_list())


def _problem(call: Callable[..., Any], *given: Any, **named: Any) -> str:
    """What a call is refused with; nothing if it is not."""
    try:
        call(*given, **named)
    except ValueError as problem:
        return str(problem)
    return ""


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("outcome", OUTCOMES)
def test_files_and_memory_give_the_same_release(data, tmp_path, outcome, unit):
    model, columns = OUTCOMES[outcome]
    settings, groups = UNITS[unit]
    X, y = data[NAMES], outputs(data, columns)
    people = None if groups is None else data[groups].to_list()
    known = model(**settings)
    refused = _problem(known.fit, X, y, groups=people)
    if refused:  # what memory refuses, files refuse in the same words
        table = open_table(write(data, tmp_path / "t", 3, "csv"), NAMES, columns, groups)
        assert refused == _problem(model(**settings).fit, table.inputs, table.output)
        assert "inducing" in outcome
        assert "records" in unit
        return
    write(data[:30], tmp_path / "t" / "a", 2, "csv")  # one half as text, the other typed
    write(data[30:], tmp_path / "t" / "b", 1, "parquet")
    table = open_table(tmp_path / "t", NAMES, columns, groups)
    plan = model(**settings).plan(table.inputs, groups=table.groups)
    plan.save(tmp_path / "some.plan")
    plan = privgp.load_plan(tmp_path / "some.plan")
    found = model(**settings).fit(table.inputs, table.output, groups=table.groups, plan=plan)
    assert np.array_equal(answers(found, X), answers(known, X))
    assert found.guarantee_ == known.guarantee_
    assert list(found.feature_names_in_) == NAMES
    if groups is not None:  # the table knows its people
        assert model(**settings).fit(table.inputs, table.output).guarantee_ == known.guarantee_
    if isinstance(columns, list):
        assert found.output_names_ == tuple(columns)
    found.save(tmp_path / "some.privgp")
    assert np.array_equal(answers(load(tmp_path / "some.privgp"), X), answers(known, X))


@pytest.mark.parametrize("private", [False, True])
@pytest.mark.parametrize("outcome", ["number", "two classes", "several"])
def test_columns_of_every_kind(data, tmp_path, outcome, private):
    model, columns = OUTCOMES[outcome]
    bounds = {"a": (0, 10), "when": ("2024-01-01", "2024-12-31")}
    settings = {"columns": COLUMNS} | (
        {"protect": "records", "x_bounds": bounds} if private else {}
    )
    names = ["a", "when", "region"]
    known = model(**settings).fit(data[names], outputs(data, columns))
    write(data[:30], tmp_path / "t" / "a", 2, "csv")  # one half as text, the other typed
    write(data[30:], tmp_path / "t" / "b", 1, "parquet")
    table = open_table(tmp_path / "t", names, columns)
    found = model(**settings).fit(table.inputs, table.output)
    assert np.array_equal(answers(found, data[names]), answers(known, data[names]))
    if private:
        said = open_table(tmp_path / "t", names, columns, columns=COLUMNS)
        with pytest.raises(
            ValueError, match="columns of private inputs must be given to the model"
        ):
            model(**{**settings, "columns": None}).fit(said.inputs, said.output)
        with pytest.raises(ValueError, match="X has no column 'when'"):
            model(**settings).fit(open_table(tmp_path / "t", ["a"], columns).inputs, table.output)


def test_exposures_are_a_public_column(data, tmp_path):
    X, y = data[NAMES], data["visits"].to_numpy()
    known = counts().fit(X, y, exposure=data["population"].to_numpy())
    for ending in ("csv", "parquet"):
        folder = write(data, tmp_path / ending, 3, ending)
        table = open_table(folder, NAMES, "visits", exposure="population")
        plan = counts().plan(table.inputs, exposure=table.exposure)
        found = counts().fit(table.inputs, table.output, exposure=table.exposure, plan=plan)
        assert np.array_equal(found.predict(X), known.predict(X))
        unasked = counts().fit(table.inputs, table.output)  # the table knows it
        assert np.array_equal(unasked.predict(X), known.predict(X))
    other = open_table(write(data, tmp_path / "other", 1, "csv"), NAMES, exposure="population")
    with pytest.raises(ValueError, match="exposure must be that of the table"):
        counts().plan(table.inputs, exposure=other.exposure)
    with pytest.raises(ValueError, match="likelihood='gaussian'"):
        regressor().plan(table.inputs)
    with pytest.raises(ValueError, match="cannot be the exposure"):
        open_table(folder, NAMES, "visits", exposure="visits")


MIXED = {
    "cost": Number(-1, 1),
    "ill": Label("no", "yes"),
    "type": Label("p", "q", "r"),
    "visits": Count(high=20, exposure="population"),
}


@pytest.mark.parametrize("groups", [None, "who"])
@pytest.mark.parametrize("private", [False, True])
def test_outcomes_by_the_names_of_their_columns(data, tmp_path, private, groups):
    declared = {**MIXED, "visits": Count(high=20)} if private else MIXED
    settings = {"protect": "records", "x_bounds": {"a": (0, 10), "b": (0, 10)}} if private else {}

    def model() -> PrivateGP:
        return PrivateGP(declared, groups=groups, inputs=NAMES, **BUDGET, **settings)

    known = model().fit(data)
    for ending in ("csv", "parquet"):
        table = open_table(write(data, tmp_path / ending, 3, ending), NAMES)
        plan = model().plan(table)
        found = model().fit(table, plan=plan)
        assert found.predict(data).equals(known.predict(data))
        assert found.guarantee_ == known.guarantee_
        unnamed = PrivateGP(Number(-1, 1), groups=groups, **BUDGET, **settings)
        alone = open_table(tmp_path / ending, NAMES, "cost", groups)
        unit = known.guarantee_.unit.partition(", of")[0]
        of_one = unit.replace("all output values of one row", "one output value")
        assert unnamed.fit(alone).guarantee_.unit == of_one
        with pytest.raises(ValueError, match="open it with one"):
            unnamed.fit(table)
    if groups is not None:
        with pytest.raises(ValueError, match="give groups='who' to the model"):
            PrivateGP(declared, **BUDGET, **settings).fit(alone)
    with pytest.raises(ValueError, match="no column 'absent'"):
        PrivateGP({"absent": Number(0, 1)}, **BUDGET, **settings).fit(table)
    with pytest.raises(ValueError, match=r"a private outcome|private inputs that x_bounds"):
        model().fit(table, inputs=["a", "cost"])
    twice = {"cost": Number(-1, 1), "visits": Count(high=20, exposure="cost")}
    with pytest.raises(ValueError, match="y is called 'cost', like a column of exposure"):
        PrivateGP(twice, **BUDGET, **settings).plan(table)
    with pytest.raises(ValueError, match="y is called 'cost', like a column of X"):
        PrivateGP(Number(-1, 1), groups=groups, **BUDGET).plan(alone, inputs=["cost"])


def test_private_inputs_are_read_by_the_vault_alone(data, tmp_path, monkeypatch):
    """Neither their cells nor their kinds are looked at by what reads public columns."""
    table = open_table(write(data, tmp_path / "t", 3, "parquet"), NAMES, "cost", "who")

    def read(*_: Any, **__: Any) -> None:
        raise AssertionError("a private input was read as a public one")

    for module, name in (
        (file_rows, "read_numbers"),
        (file_rows, "all_numbers"),
        (file_rows, "numbers"),
    ):
        monkeypatch.setattr(module, name, read)
    monkeypatch.setattr(FileInputs, "kinds", property(read))
    assert regressor(**DOMAIN).plan(table.inputs).rows == ROWS // 3
    assert regressor(**DOMAIN).fit(table.inputs, table.output).guarantee_.epsilon > 0


def test_labels_are_read_one_by_one(data, tmp_path):
    """As they are written, whatever types their columns have in other files."""
    (tmp_path / "a.csv").write_text("a,b,code\n" + "1.5,2,1\n" * 20 + "1.5,3, 02\n" * 20)
    typed = pl.DataFrame({"a": [1.5, 2.5], "b": [2.0, 3.0], "code": [0.0, 7.0]})
    typed.write_parquet(tmp_path / "b.parquet")
    table = open_table([tmp_path / "a.csv", tmp_path / "b.parquet"], NAMES, "code")
    X = np.array([[1.5, 2.0]] * 20 + [[1.5, 3.0]] * 20 + [[1.5, 2.0], [2.5, 3.0]])
    known = classifier(0, 1, 2).fit(X, np.r_[[1] * 20, [2] * 20, 0, 7])
    found = classifier(0, 1, 2).fit(table.inputs, table.output)
    assert np.array_equal(found.predict_proba(X), known.predict_proba(X))
    truths = data.with_columns(ill=pl.col("ill") == "yes")
    opened = open_table(write(truths, tmp_path / "truths", 2, "parquet"), NAMES, "ill")
    known = classifier(0, 1).fit(data[NAMES], truths["ill"].to_numpy())
    found = classifier(0, 1).fit(opened.inputs, opened.output)
    assert np.array_equal(found.predict_proba(data[NAMES]), known.predict_proba(data[NAMES]))


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize(
    ("outcome", "column", "words"),
    [
        ("two classes", "ill", "the output column must hold a label in every row"),
        ("counts", "visits", "the output column must hold a finite number in every row"),
        ("several", "pay", "the output column must hold a finite number in every row"),
    ],
)
def test_missing_cells_are_refused_without_telling_which(
    data, tmp_path, outcome, column, words, ending
):
    model, columns = OUTCOMES[outcome]
    holes = data.with_columns(pl.when(pl.int_range(pl.len()) != 7).then(column).alias(column))
    table = open_table(write(holes, tmp_path / "t", 3, ending), NAMES, columns)
    with pytest.raises(ValueError, match=words) as caught:
        model().fit(table.inputs, table.output)
    assert str(caught.value) == words + "."


def test_private_inputs_are_refused_in_one_sentence(data, tmp_path):
    for place, (name, cell) in enumerate((("a", "secret7"), ("b", None))):
        wrong = data.with_columns(
            pl.when(pl.int_range(pl.len()) == 7).then(pl.lit(cell)).otherwise(pl.col(name).cast(str))
            .alias(name)
        )  # fmt: skip
        table = open_table(write(wrong, tmp_path / f"{place}", 3, "csv"), NAMES, "cost")
        said = _problem(regressor(**DOMAIN).fit, table.inputs, table.output)
        assert said == "the input columns must hold a finite number in every row."
        bounds = {"a": (0, 10), "b": (0, 10)}
        with pytest.raises(ValueError, match="hold a value of its kind") as caught:
            regressor(protect="records", x_bounds=bounds).fit(table.inputs, table.output)
        assert "secret7" not in str(caught.value)


def test_people_are_no_private_inputs(data, tmp_path):
    table = open_table(write(data, tmp_path / "t", 3, "csv"), NAMES, "cost", "a")
    with pytest.raises(ValueError, match="groups is called 'a', like a column of X"):
        regressor(**DOMAIN).fit(table.inputs, table.output)


@pytest.mark.parametrize("outcome", ["two classes", "counts", "several"])
def test_a_changed_file_is_refused_before_anything_is_charged(data, tmp_path, outcome):
    model, columns = OUTCOMES[outcome]
    table = open_table(write(data, tmp_path / "t", 3, "csv"), NAMES, columns)
    account = privgp.Ledger(f"sqlite:///{tmp_path / 'l.db'}").open("people", 9.0, 1e-3)
    touched(tmp_path / "t" / "01.csv")
    with pytest.raises(ValueError, match="was changed since the table was opened"):
        model(ledger=account).fit(table.inputs, table.output)
    assert not [*account.entries()]


@pytest.mark.parametrize("name", NAMES)
def test_a_file_that_changes_once_inputs_are_read_is_refused(data, tmp_path, monkeypatch, name):
    """Private columns are read last, and then the files are compared."""
    table = open_table(write(data, tmp_path / "t", 3, "csv"), name)
    read, gather = files.inputs_to_fit, files.gather_outputs
    order = []

    def inputs(*given: Any) -> Any:
        order.append("inputs")
        held = read(*given)
        touched(tmp_path / "t" / "01.csv")
        return held

    def outcomes(*given: Any) -> Any:
        order.append("outcome")
        return gather(*given)

    monkeypatch.setattr("privgp.models.gp.inputs_to_fit", inputs)
    monkeypatch.setattr(files, "gather_outputs", outcomes)
    with pytest.raises(ValueError, match="was changed since the table was opened"):
        PrivateGP(MIXED, **BUDGET).fit(table)
    assert order == ["inputs", "outcome"]


def test_the_number_of_outputs_must_be_that_of_the_bounds(data, tmp_path):
    both = open_table(write(data, tmp_path / "t", 3, "csv"), NAMES, ["cost", "pay"])
    one = open_table(tmp_path / "t", NAMES, "cost")
    for model, table in ((regressor(), both), (regressor(inducing=9), both)):
        with pytest.raises(ValueError, match="y must be one-dimensional"):
            model.fit(table.inputs, table.output)
    with pytest.raises(ValueError, match="y must be one-dimensional"):
        classifier("no", "yes").fit(both.inputs, both.output)
    with pytest.raises(ValueError, match="one column per pair of y_bounds"):
        several().fit(one.inputs, one.output)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("outcome", ["number", "three classes", "counts", "several"])
def test_what_was_fitted_from_files_is_updated_and_refined_from_files(
    data, tmp_path, outcome, unit
):
    (model, columns), (settings, groups) = OUTCOMES[outcome], UNITS[unit]

    def held(part: pl.DataFrame) -> tuple[Any, Any, dict[str, Any]]:
        people = {} if groups is None else {"groups": part[groups].to_list()}
        return part[NAMES], outputs(part, columns), people

    first, more = data[:36], data[36:]
    (X, y, who), (X2, y2, who2) = held(first), held(more)
    known = model(**settings).fit(X, y, **who).update(X2, y2, **who2).refine(X, y, 1.0, 1e-6, **who)
    table = open_table(write(first, tmp_path / "t", 2, "csv"), NAMES, columns, groups)
    further = open_table(write(more, tmp_path / "more", 2, "parquet"), NAMES, columns, groups)
    found = model(**settings).fit(table.inputs, table.output)
    found.update(further.inputs, further.output).refine(table.inputs, table.output, 1.0, 1e-6)
    assert np.array_equal(answers(found, data[NAMES]), answers(known, data[NAMES]))
    assert found.guarantee_ == known.guarantee_


OPTIONS = ["--epsilon", "2", "--delta", "1e-5", "--hyperparameters", "fixed", "--seed", "0"]
LINES: dict[str, list[Any]] = {
    "labels": ["--output", "ill", "--classes", "no,yes"],
    "labels of people": ["--output", "type", "--classes", "p,q,r", "--groups", "who"],
    "counts": ["--output", "visits", "--bounds", "0", "20", "--likelihood", "poisson", "--max-change", "1"],
    "counts, exposures": ["--output", "visits", "--bounds", "0", "20", "--likelihood", "poisson", "--exposure", "population"],
    "several": ["--output", "cost,pay", "--bounds", "-1", "1", "--bounds", "0", "1"],
    "records": ["--output", "cost", "--bounds", "-1", "1", "--protect", "records", "--x-bounds", "0", "10", "--x-bounds", "0", "10"],
    "people's records": ["--output", "cost", "--bounds", "-1", "1", "--protect", "records", "--x-bounds", "0", "10", "--x-bounds", "0", "10", "--groups", "who"],
    "labelled records": ["--output", "ill", "--classes", "no,yes", "--protect", "records", "--x-bounds", "0", "10", "--x-bounds", "0", "10"],
    "missing": ["--output", "cost", "--bounds", "-1", "1", "--missing", "drop"],
    "missing labels": ["--output", "ill", "--classes", "no,yes", "--missing", "drop"],
}  # fmt: skip


@pytest.mark.parametrize(("line", "ending"), zip(LINES, cycle(["csv", "parquet"])))
def test_the_command_takes_a_folder_as_it_takes_a_file(data, tmp_path, line, ending):
    given = data.drop("when", "region")
    if line.startswith("missing"):
        place = pl.int_range(pl.len())
        given = given.with_columns(
            pl.when(place != 5).then("cost").alias("cost"), pl.when(place != 9).then("a").alias("a")
        )
    folder = write(given, tmp_path / "t", 3, ending)
    one = tmp_path / f"one.{ending}"
    given.write_csv(one) if ending == "csv" else given.write_parquet(one)
    found = {}
    for source in (one, folder):
        file = tmp_path / f"{source.name}.privgp"
        told = run("release", source, "--inputs", "a,b", *LINES[line], *OPTIONS, "-o", file)
        assert told.code == 0, told
        found[source] = answers(load(file), data[NAMES])
    assert np.array_equal(found[folder], found[one])
    words = [w for w in (*LINES[line], *OPTIONS) if w not in ("--seed",)][:-1]
    plan = tmp_path / "some.plan"
    assert run("plan", folder, "--inputs", "a,b", *words, "-o", plan).code == 0
    drop = ["--missing", "drop"] if "drop" in LINES[line] else []
    asked = ["--plan", plan, "--output", LINES[line][1], "--seed", 0, *drop, "-o", file, "--force"]
    again = run("release", folder, *asked)
    assert again.code == 0, again
    assert np.array_equal(answers(load(file), data[NAMES]), found[folder])


def test_what_the_command_refuses_of_a_folder(data, tmp_path, monkeypatch):
    given = data.drop("when", "region")
    folder, out = write(given, tmp_path / "t", 2, "parquet"), tmp_path / "t.privgp"
    line = ["release", folder, "--inputs", "a,b", *LINES["labels"], *OPTIONS, "-o", out]
    given[:5].with_columns(pl.col("ill") == "yes").write_parquet(folder / "02.parquet")
    assert_refused(run(*line), "Column 'ill' of", "has another type than in")
    (folder / "02.parquet").unlink()
    holes = given.with_columns(pl.when(pl.int_range(pl.len()) != 3).then("ill").alias("ill"))
    holes.write_parquet(folder / "02.parquet")
    assert_refused(run(*line), "Column 'ill' of", "must hold a label in every row")
    (folder / "02.parquet").unlink()
    assert_refused(run(*line, "--delimiter", ";"), "Several CSV files must have commas")
    sound = PrivateGPClassifier.plan

    def late(*given: Any, **named: Any) -> Any:
        touched(Path(folder) / "01.parquet")
        return sound(*given, **named)

    monkeypatch.setattr(PrivateGPClassifier, "plan", late)
    assert_refused(run(*line), "was changed since the table was opened", "Nothing was released")
    assert not out.exists()
