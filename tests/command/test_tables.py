"""Tables as people have them: from the table to the file, its certificate, picture and predictions."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.io import netcdf_file

import privgp
from tests.command.running import assert_refused, run

ROWS = 30
RNG = np.random.default_rng(3)
WHEN = [datetime(2024, 3, 1) + timedelta(hours=7 * k) for k in range(ROWS)]
TABLE = pl.DataFrame(
    {
        "when": WHEN,
        "region": RNG.choice(["north", "far south", "east"], ROWS),
        "lat": RNG.uniform(51, 52, ROWS).round(4),
        "lon": RNG.uniform(-1, 1, ROWS).round(4),
        "hour": [float(w.hour) for w in WHEN],
        "member": RNG.random(ROWS) < 0.5,
        "note": [f"row {k}" for k in range(ROWS)],
        "cost": (100 + 0.73591 * np.arange(ROWS)).round(5),
    }
)
BUDGET = ["--output", "cost", "--bounds", "0", "200", "--epsilon", "1", "--delta", "1e-5"]
QUICK = ["--hyperparameters", "fixed", "--seed", "1"]


def with_commas(table: pl.DataFrame) -> pl.DataFrame:
    floats = [name for name, dtype in table.schema.items() if dtype.is_float()]
    return table.with_columns(pl.col(floats).cast(pl.String).str.replace(".", ",", literal=True))


def csv(table: pl.DataFrame, **how: Any) -> bytes:
    out = io.BytesIO()
    table.write_csv(out, **how)
    return out.getvalue()


def parquet(table: pl.DataFrame) -> bytes:
    out = io.BytesIO()
    table.write_parquet(out)
    return out.getvalue()


ZONED = pl.col("when").dt.replace_time_zone("UTC").dt.convert_time_zone("America/Lima")
OFFSETS = ZONED.dt.strftime("%Y-%m-%dT%H:%M:%S%:z")
# The file's ending, its content, the inputs, and the options that it needs.
TABLES: dict[str, tuple[str, bytes, str, list[str]]] = {
    "dates": (".csv", csv(TABLE), "when", []),
    "offsets": (".csv", csv(TABLE.with_columns(OFFSETS)), "when", ["--dates", "when"]),
    "categories": (".csv", csv(TABLE), "region,member", []),
    "declared levels": (
        ".csv", csv(TABLE), "region", ["--categories", "region=north|far south|east|west"]
    ),
    "places": (".csv", csv(TABLE), "lat,lon", ["--places", "lat,lon"]),
    "hours": (".csv", csv(TABLE), "hour,lat", ["--periodic", "hour=24"]),
    "decimal commas": (
        ".csv", csv(with_commas(TABLE), separator=";"), "lat,lon", ["--places", "lat,lon"]
    ),
    "tabs": (".csv", csv(TABLE, separator="\t"), "lat,region", []),
    "gz": (".csv.gz", gzip.compress(csv(TABLE)), "when,lat", []),
    "missing": (
        ".csv",
        csv(TABLE.with_columns(pl.when(pl.col("hour") == 0).then(None).otherwise("hour").alias("hour"))),
        "hour",
        ["--missing", "drop"],
    ),
    "dictionaries and time zones": (
        ".parquet",
        parquet(TABLE.with_columns(ZONED, pl.col("region").cast(pl.Categorical))),
        "when,region,member",
        [],
    ),
    "everything": (
        ".parquet", parquet(TABLE), "when,region,lat,lon,hour,member",
        ["--places", "lat,lon", "--periodic", "hour=24"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", [*TABLES])
def test_a_table_nobody_prepared_becomes_a_release(tmp_path: Path, case: str) -> None:
    ending, content, inputs, options = TABLES[case]
    data, file, out = tmp_path / f"t{ending}", tmp_path / "t.privgp", tmp_path / "p.csv"
    data.write_bytes(content)
    asked = ["--inputs", inputs, *BUDGET, *QUICK[:2], *options]
    planned = run("plan", data, *asked)
    assert planned.code == 0, planned
    page, picture = tmp_path / "c.html", tmp_path / "p.svg"
    written = ["-o", file, "--certificate", page, "--plot", picture]
    released = run("release", data, *asked, *QUICK[2:], *written)
    assert released.code == 0, released
    assert "cost" in page.read_text()
    assert "<svg" in picture.read_text()
    new = data
    if case == "missing":
        new = tmp_path / "whole.csv"
        TABLE.write_csv(new)
        assert "which rows have a missing value is public" in page.read_text()
    predicted = run("predict", file, new, "-o", out)
    assert predicted.code == 0, predicted
    found = pl.read_csv(out, infer_schema=False)
    assert found.height == ROWS
    assert found["note"].to_list() == TABLE["note"].to_list()
    assert "cost" not in found.columns  # it may be the private one
    assert "73591" not in out.read_text()
    expected = privgp.load(file).predict(TABLE.select(inputs.split(",")))
    means = found["mean"].cast(pl.Float64).to_numpy()
    assert np.allclose(means, expected, rtol=1e-9)
    assert run("inspect", file).code == 0


@pytest.mark.parametrize("header", ["age;cost", '"age";"cost"', 'age;"cost, EUR"'])
@pytest.mark.parametrize("quote", ["", '"'])
def test_a_table_of_a_sheet_with_semicolons_and_quotes_is_read(
    tmp_path: Path, header: str, quote: str
) -> None:
    """It was called an encoding problem."""
    rows = [f"{quote}{k},5{quote};{quote}{1000 + k},5{quote}" for k in range(20, 32)]
    data, out = tmp_path / "t.csv", tmp_path / "t.privgp"
    data.write_text("\r\n".join([header, *rows]))
    asked = ["--inputs", "age", "--output", header.partition(";")[2].strip('"'), *BUDGET[2:]]
    asked += [*QUICK, "-o", out]
    assert run("release", data, *asked).code == 0
    assert privgp.load(out).predict({"age": [20.5]}).shape == (1,)
    several = run("release", f"{tmp_path}/*.csv", *asked, "--force")
    assert_refused(several)
    assert "UTF-8" not in several.err


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tables")
    TABLE.write_parquet(folder / "t.parquet")
    out = folder / "t.privgp"
    done = run(
        *("release", folder / "t.parquet", "--inputs", "when,region,lat,lon", *BUDGET, *QUICK),
        *("--places", "lat,lon", "-o", out, "--name", "cost of a visit", "--units", "EUR"),
    )
    assert done.code == 0, done
    return out


def test_a_grid_is_written_as_cf_netcdf_and_read_by_others(published: Path, tmp_path: Path) -> None:
    xarray = pytest.importorskip("xarray")
    out = tmp_path / "g.nc"
    bounds = "when=2024-03-02:2024-03-06,region=north|east,lat=51.25:51.75"
    done = run("predict", published, "--grid", "5", "--grid-bounds", bounds, "-o", out)
    assert done.code == 0, done
    with xarray.open_dataset(out) as read:
        assert dict(read.sizes) == {"when": 5, "region": 2, "lat": 5, "lon": 5}
        assert read["lat"].attrs["units"] == "degrees_north"
        assert read["lon"].attrs["standard_name"] == "longitude"
        assert read["region"].attrs["flag_meanings"] == "east far_south north"
        assert str(read["when"].values[1])[:13] == "2024-03-03T00"
        assert read["mean"].attrs["units"] == "EUR"
        assert read.attrs["Conventions"] == "CF-1.8"
        assert read.attrs["title"] == "cost of a visit (EUR)"
        there = read["mean"].sel(when="2024-03-03", region=2, lat=51.5, method="nearest")
        lon = float(read["lon"][2])
        value = float(there.sel(lon=lon))
    row = {"when": ["2024-03-03"], "region": ["north"], "lat": [51.5], "lon": [lon]}
    assert value == pytest.approx(privgp.load(published).predict(row)[0], rel=1e-9)
    with netcdf_file(out, mmap=False) as plain:
        assert plain.variables["when"].units == b"days since 1970-01-01 00:00:00"


def test_a_plan_that_leaves_out_rows_says_that_it_looked_which_have_no_output(
    tmp_path: Path,
) -> None:
    (tmp_path / "t.csv").write_text("a,cost\n1,5\n2,\n3,6\n4,7\n")
    asked = ["--inputs", "a", *BUDGET[2:], "--missing", "drop", "--hyperparameters", "fixed"]
    for given, told in (
        (["--output", "cost"], "which rows have an output"),
        ([], "a plan needs no output"),
    ):
        done = run("plan", tmp_path / "t.csv", *asked, *given)
        assert done.code == 0, done
        assert told in " ".join(done.out.split())
        # Without it the plan has other rows than the release, which would refuse it.
        assert ("also leaves out rows without an output" in done.err) == (not given)


def test_a_grid_of_places_is_written_as_geojson_and_read_by_others(tmp_path: Path) -> None:
    geopandas = pytest.importorskip("geopandas")
    TABLE.write_csv(tmp_path / "t.csv")
    release, out = tmp_path / "t.privgp", tmp_path / "g.geojson"
    asked = [tmp_path / "t.csv", "--inputs", "lat,lon", "--places", "lat,lon", *BUDGET, *QUICK]
    assert run("release", *asked, "-o", release).code == 0
    done = run("predict", release, "--grid", "4", "-o", out)
    assert done.code == 0, done
    cells = geopandas.read_file(out)
    assert cells.crs.to_epsg() == 4326
    assert len(cells) == 16
    middle = cells.geometry.centroid.iloc[5]
    value = privgp.load(release).predict(pl.DataFrame({"lat": [middle.y], "lon": [middle.x]}))[0]
    assert cells["mean"].iloc[5] == pytest.approx(value, rel=1e-4)  # of coordinates to a centimetre
    assert cells.total_bounds[0] < TABLE["lon"].min()


@pytest.mark.parametrize("inputs", ["e,n", "hour,e,n"])
def test_netcdf_of_a_plane_has_north_before_east_as_readers_draw_it(
    tmp_path: Path, inputs: str
) -> None:
    xarray, pyproj = pytest.importorskip("xarray"), pytest.importorskip("pyproj")
    table = TABLE.with_columns(e=450_000 + 30_000 * pl.col("lon"), n=1e5 * pl.col("lat") - 5e6)
    table.write_csv(tmp_path / "t.csv")
    release, out = tmp_path / "t.privgp", tmp_path / "g.nc"
    asked = ["--inputs", inputs, "--places", "e,n", "--crs", "EPSG:27700", *BUDGET, *QUICK]
    assert run("release", tmp_path / "t.csv", *asked, "-o", release).code == 0
    assert run("predict", release, "--grid", "3", "-o", out).code == 0
    with xarray.open_dataset(out) as read:
        assert read["mean"].dims[-2:] == ("n", "e")
        assert read["e"].attrs["units"] == "m"
        corner = read["mean"].isel(hour=1, e=0, n=-1, missing_dims="ignore")
        point = {name: [float(corner[name])] for name in inputs.split(",")}
        value = float(corner)
        told = read["crs"].attrs["semi_major_axis"]
    assert value == pytest.approx(privgp.load(release).predict(point)[0], rel=1e-9)
    assert told == pyproj.CRS("EPSG:27700").ellipsoid.semi_major_metre


@pytest.mark.parametrize("where", ["degrees", "plane", "date line"])
def test_contours_hold_what_is_predicted_there(where: str, tmp_path: Path) -> None:
    geopandas, shapely = pytest.importorskip("geopandas"), pytest.importorskip("shapely")
    east, north, table = "lon", "lat", TABLE
    asked = ["--inputs", "lat,lon", "--places", "lat,lon"]
    if where == "plane":
        pytest.importorskip("pyproj")
        east, north = "e", "n"
        table = TABLE.with_columns(e=450_000 + 30_000 * pl.col("lon"), n=1e5 * pl.col("lat") - 5e6)
        asked = ["--inputs", "e,n", "--places", "e,n", "--crs", "EPSG:27700"]
    if where == "date line":
        far = pl.col("lon") + 180
        table = TABLE.with_columns(lon=pl.when(far > 180).then(far - 360).otherwise(far))
    table.write_csv(tmp_path / "t.csv")
    release, out = tmp_path / "t.privgp", tmp_path / "g.geojson"
    asked = [tmp_path / "t.csv", *asked, *BUDGET, *QUICK, "--name", "price", "--units", "EUR"]
    assert run("release", *asked, "-o", release).code == 0
    model = privgp.load(release)
    means = model.predict(table.select(*model.feature_names_in_))
    slack = 0.01 * np.ptp(means)  # of straight lines between points
    for contours in ("4", ",".join(str(each) for each in np.quantile(means, [0.3, 0.6]))):
        done = run(
            "predict",
            release,
            "--grid",
            "30",
            "--contours",
            contours,
            "-o",
            out,
            "--force",
            "--json",
        )
        assert done.code == 0, done
        assert json.loads(done.out)["columns"] == ["name", "units", "from", "to", "band"]
        bands = geopandas.read_file(out, engine="pyogrio")
        assert bands.is_valid.all()
        assert len(bands) in (3, 4)
        assert {*bands["name"]} == {"price"}
        assert {*bands["units"]} == {"EUR"}
        inside = 0
        for row in table.select(north, east).iter_rows(named=True):
            value = model.predict(pl.DataFrame([row]))[0]
            place = shapely.Point(row[east], row[north])
            if where == "plane":
                degrees = geopandas.GeoSeries([place], crs="EPSG:27700").to_crs("EPSG:4326")
                place = degrees.iloc[0]
            for _, band in bands[bands.contains(place)].iterrows():
                assert not value < band["from"] - slack
                assert not value > band["to"] + slack
                inside += 1
        assert inside > 15  # others lie on the edge


def test_contours_are_refused_where_there_are_none(published: Path, tmp_path: Path) -> None:
    for asked in (["--grid", "3", "-o", tmp_path / "g.nc"], ["--page", tmp_path / "p.html"]):
        done = run("predict", published, *asked, "--contours", "3")
        assert_refused(done, "--contours is for a .geojson file")
    done = run("predict", published, "--grid", "3", "-o", tmp_path / "g.geojson", "--contours", "3")
    assert_refused(done, "longitude and latitude")


def test_bounds_that_look_read_off_the_data_are_told_in_one_sentence(tmp_path: Path) -> None:
    TABLE.write_csv(tmp_path / "t.csv")
    asked = ["plan", tmp_path / "t.csv", "--inputs", "lat", "--epsilon", "1", "--delta", "1e-5"]
    asked += ["--hyperparameters", "fixed", "--json"]
    for low, high, told in (("100", "121.34131", True), ("0", "200", False)):
        done = run(*asked, "--bounds", low, high)
        assert done.code == 0, done
        warnings = json.loads(done.out)["warnings"]
        assert [
            each.startswith(f"The --bounds {low} and {high} look as if they were read")
            for each in warnings
        ] == ([True] if told else [])


def test_a_grid_without_places_is_no_geojson(published: Path, tmp_path: Path) -> None:
    done = run("predict", published, "--grid", "3", "-o", tmp_path / "g.geojson")
    assert_refused(done, "longitude and latitude")


def test_a_grid_covers_the_range_of_the_data(published: Path, tmp_path: Path) -> None:
    out = tmp_path / "g.parquet"
    assert run("predict", published, "--grid", "3", "-o", out).code == 0
    found = pl.read_parquet(out)
    assert found.height == 3 * 3 * 3 * 3
    for end in (pl.Series.min, pl.Series.max):
        assert end(found["lat"]) == pytest.approx(end(TABLE["lat"]), abs=1e-9)
    assert abs(found["when"].max() - TABLE["when"].max()) < timedelta(milliseconds=1)  # type: ignore[operator]
    assert set(found["region"]) == set(TABLE["region"])
    model = privgp.load(published)
    mean, std = model.predict(found, return_std=True)
    assert np.array_equal(found["mean"].to_numpy(), mean)
    assert np.array_equal(found["std"].to_numpy(), std)
    assert np.array_equal(model.predict(found), mean)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--grid", "3", "-o", "g.nc", "--grid-bounds", "region=west"], "is not in the release"),
        (["--grid", "200", "-o", "g.csv"], "more than 1,000,000"),
        (["-o", "g.csv"], "Missing: --out for the results together with NEW"),
        (["t.csv", "-o", "g.nc"], "holds a grid"),
        (["t.csv", "--grid", "3", "-o", "g.csv"], "take the place of NEW"),
    ],
)
def test_what_a_grid_cannot_be(
    published: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    TABLE.write_csv("t.csv")
    assert_refused(run("predict", published, *arguments), words)


def test_an_unknown_level_is_told(published: Path, tmp_path: Path) -> None:
    TABLE.head(2).with_columns(region=pl.lit("west")).write_csv(tmp_path / "new.csv")
    told = run("predict", published, tmp_path / "new.csv", "-o", tmp_path / "p.csv").out
    assert "2 rows have a level that is not in the release" in told


def test_the_name_and_the_units_stand_everywhere(published: Path, tmp_path: Path) -> None:
    assert "Output: cost of a visit, in EUR." in run("inspect", published).out
    holder, page = tmp_path / "holder.json", tmp_path / "c.html"
    assert run("certificate", "--template", "-o", holder).code == 0
    filled = {**json.loads(holder.read_text()), "name": "Visits", "curator": "The <clinic>"}
    holder.write_text(json.dumps(filled))
    assert run("certificate", published, "--holder", holder, "-o", page).code == 0
    text = page.read_text()
    assert all(
        words in text for words in ("Visits", "The &lt;clinic&gt;", "cost of a visit, in EUR")
    )
    assert "latitude and longitude" in text
    holder.write_text(json.dumps({"owner": "me"}))
    refused = run("certificate", published, "--holder", holder, "-o", tmp_path / "d.html")
    assert_refused(refused, "no field 'owner'")


@pytest.mark.parametrize("command", ["plan", "release"])
@pytest.mark.parametrize(
    ("content", "options", "words"),
    [
        ("a,cost\n1,5\n2,6,7\n", [], "Line 3"),
        ('a,cost\n"1,5\n2",6\n3\n', [], "has 1 field"),
        ("a,cost\n1,5\n,6\n", [], "--missing drop"),
        ("a,cost\n2024-01-01,5\nnoon,6\n", ["--dates", "a"], "row 2"),
        ("a,cost\n1,5\nx,6\n", [], "must hold numbers: row 2"),
        ("a,cost\n,5\n,6\n", ["--missing", "drop"], "Every row"),
        ("a,cost\n1,5\n2,6\n", ["--categories", "b"], "not among the --inputs"),
    ],
)
def test_what_plan_refuses_release_refuses_in_the_same_words(
    tmp_path: Path,
    write: Callable[..., Path],
    command: str,
    content: str,
    options: list[str],
    words: str,
) -> None:
    data = write("t.csv", content)
    out = ["-o", tmp_path / "t.privgp"] if command == "release" else []
    assert_refused(run(command, data, "--inputs", "a", *BUDGET, *options, *out), words)


def test_quotes_hide_delimiters_and_line_ends(tmp_path: Path, write: Callable[..., Path]) -> None:
    cells = 'a,note,cost\n1,"x, ""y""\nz",5\n2,ab,6\n3,"",7\n'
    data = write("t.csv", cells)
    done = run("release", data, "--inputs", "a", *BUDGET, *QUICK, "-o", tmp_path / "t.privgp")
    assert done.code == 0, done


def test_decimal_commas_of_private_cells_are_declared_or_seen_in_public_ones(
    tmp_path: Path, write: Callable[..., Path]
) -> None:
    data = write("t.csv", "a;cost\n1;5,5\n2;6,5\n")
    asked = ["--inputs", "a", *BUDGET, *QUICK, "-o", tmp_path / "t.privgp"]
    assert_refused(run("release", data, *asked), "--decimal-point or --decimal-comma")
    assert run("release", data, *asked, "--decimal-comma").code == 0


def test_errors_are_json_where_results_would_be(tmp_path: Path) -> None:
    stopped = run("predict", tmp_path / "no.privgp", "t.csv", "-o", tmp_path / "p.csv", "--json")
    assert stopped.code == 2
    assert stopped.out == ""
    told = json.loads(stopped.err)
    assert told["code"] == 2
    assert "does not exist" in told["error"]


def test_a_budget_that_protects_little_is_warned_of(tmp_path: Path) -> None:
    TABLE.write_csv(tmp_path / "t.csv")
    asked = ["plan", tmp_path / "t.csv", "--inputs", "lat", "--bounds", "0", "200", *QUICK[:2]]
    much = run(*asked, "--epsilon", "10", "--delta", "0.04", "--mechanism", "gaussian")
    assert much.code == 0
    assert much.err.count("Warning: ") == 2
    assert "one over the number of rows" in much.err
    little = run(*asked, "--epsilon", "1", "--delta", "1e-5")
    assert little.err == ""


@pytest.mark.parametrize("word", ["none", "NA"])
def test_a_class_that_is_written_like_nothing_does_not_tell_whose_it_is(
    tmp_path: Path, write: Callable[..., Path], word: str
) -> None:
    cells = "".join(f"{k},{word if k % 2 else 'severe'}\n" for k in range(8))
    data = write("t.csv", f"a,illness\n{cells}")
    asked = ["--inputs", "a", "--output", "illness", "--classes", f"{word},severe"]
    asked += ["--epsilon", "1", "--delta", "1e-5", "--missing", "drop"]
    assert_refused(run("plan", data, *asked), "write the class otherwise")


GAPS = "a;cost\n" + "".join(f"{k},5;{'' if k % 5 == 0 else 100 + k}\n" for k in range(20))
LEFT_OUT = "which rows have a missing value is public"


def test_a_plan_that_left_out_rows_is_carried_out_on_the_same_rows(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(GAPS)
    asked = [tmp_path / "t.csv", "--inputs", "a", *BUDGET, "--hyperparameters", "fixed"]
    plan, release = tmp_path / "t.plan", tmp_path / "t.privgp"
    assert run("plan", *asked, "--missing", "drop", "-o", plan).code == 0
    carried = ["release", tmp_path / "t.csv", "--output", "cost", "--plan", plan, "--seed", "1"]
    assert_refused(run(*carried, "-o", release), "cost")  # which has missing values
    done = run(*carried, "-o", release, "--missing", "drop")
    assert done.code == 0, done
    model = privgp.load(release)
    assert any(LEFT_OUT in each for each in model.guarantee_.assumptions)
    assert model.certificate()["data"]["rows"] == 16
    assert_refused(
        run(*carried, "-o", release, "--force", "--epsilon", "2"), "does not go with --plan"
    )


@pytest.mark.parametrize("first", [True, False])
def test_an_update_leaves_out_rows_and_says_so(tmp_path: Path, first: bool) -> None:
    """Also where only the ``first`` of the batches, or only the second, has missing values."""
    whole = "".join(f"{k},25;{90 + k}\n" for k in range(12))
    old, new = (GAPS, f"a;cost\n{whole}") if first else (f"a;cost\n{whole}", GAPS)
    (tmp_path / "old.csv").write_text(old)
    (tmp_path / "new.csv").write_text(new)
    drop = ["--missing", "drop"]
    release, updated = tmp_path / "t.privgp", tmp_path / "u.privgp"
    asked = [tmp_path / "old.csv", "--inputs", "a", *BUDGET, *QUICK, "-o", release]
    assert run("release", *asked, *(drop if first else [])).code == 0
    asked = [release, tmp_path / "new.csv", "--output", "cost", "--seed", "1", "-o", updated]
    if not first:
        assert_refused(run("update", *asked), "cost")
    done = run("update", *asked, *([] if first else drop))
    assert done.code == 0, done
    assumed = privgp.load(updated).guarantee_.assumptions
    assert sum(LEFT_OUT in each for each in assumed) == 1


def test_targets_are_dates_categories_and_places_too(tmp_path: Path) -> None:
    TABLE.write_csv(tmp_path / "t.csv")
    asked = [tmp_path / "t.csv", "--inputs", "when,region,lat,lon,member", "--places", "lat,lon"]
    asked += ["--epsilon", "1", "--delta", "1e-5", "--bounds", "0", "200"]
    asked += ["--hyperparameters", "fixed"]
    axes = "when=2024-03-01:2024-03-09:3,region=north|east,lat=51:52:2,lon=-1:1:2,member=true|false"
    plan = tmp_path / "t.plan"
    done = run("plan", *asked, "--targets", axes, "-o", plan)
    assert done.code == 0, done
    targets = privgp.load_plan(plan).targets
    assert len(targets) == 3 * 2 * 2 * 2 * 2
    expected = pl.DataFrame(
        {
            "when": ["2024-03-01", "2024-03-05", "2024-03-09"],
            "region": ["north", "east", "east"],
            "lat": [51.0, 52.0, 51.0],
            "lon": [-1.0, 1.0, 1.0],
            "member": [True, False, True],
        }
    )
    inputs = privgp.load_plan(plan).made_for.parameters.columns
    for row in inputs.locate_table(expected):
        assert np.abs(targets - row).max(axis=1).min() < 1e-9
    for wrong, word in (("when=soon:late:3", "nor a grid"), ("region=north|", "nor a grid")):
        broken = ",".join(
            wrong if e.split("=")[0] == wrong.split("=")[0] else e for e in axes.split(",")
        )
        assert_refused(run("plan", *asked, "--targets", broken), word)


def test_a_person_is_one_whatever_sign_is_before_decimals(tmp_path: Path) -> None:
    """Where commas are declared, 7.0 was another person than 7 and 7,0."""
    write = ["7", "7.0", "7,0", "07", " 7 ", "8", "8.0", "8,0"]
    rows = [f"{k},5;{k};{who}" for k, who in enumerate(write)]
    data, plan = tmp_path / "t.csv", tmp_path / "t.plan"
    data.write_text("\n".join(["a;cost;who", *rows]))
    asked = ["--inputs", "a", "--output", "cost", "--groups", "who", *BUDGET[2:]]
    done = run("plan", data, *asked, "--decimal-comma", "-o", plan)
    assert done.code == 0, done
    assert privgp.load_plan(plan).strategy.people.tolist() == [0] * 5 + [1] * 3


LEVELS = "a,school,cost\n" + "".join(
    f"{k},{['none', 'degree', 'school', 'NA'][k % 4]},{50 + k}\n" for k in range(16)
)


def test_rows_that_are_left_out_are_counted_and_a_declared_level_is_a_value(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(LEVELS)
    asked = ["plan", tmp_path / "t.csv", "--inputs", "a,school", *BUDGET, "--missing", "drop"]
    done = run(*asked)
    assert done.code == 0, done
    assert "8 of 16 rows are left out" in done.err
    assert "'none' and 'NA' in column 'school' count as missing" in done.err
    declared = [*asked, "--categories", "school=none|school|degree"]
    done = run(*declared)
    assert "4 of 16 rows are left out" in done.err
    assert "count as missing" not in done.err
    warnings = json.loads(run(*declared, "--json").out)["warnings"]
    assert warnings[0] == "4 of 16 rows are left out: a value is missing."
    release = tmp_path / "t.privgp"
    done = run("release", *declared[1:], *QUICK, "-o", release)
    assert "4 of 16 rows are left out" in done.err
    (tmp_path / "t.csv").write_text(LEVELS.replace("a,school,cost\n0,", "a,school,cost\n9.5,"))
    updated = [release, tmp_path / "t.csv", "--output", "cost", "--missing", "drop", "--seed", "2"]
    done = run("update", *updated, "-o", tmp_path / "u.privgp")
    assert "4 of 16 rows are left out" in done.err


@pytest.mark.parametrize("options", [[], ["--periodic", "a=24"], ["--dates", "a"]])
def test_words_for_nothing_among_numbers_are_refused_with_the_choice(
    tmp_path: Path, options: list[str]
) -> None:
    first = "2024-01-01" if "--dates" in options else "1"
    (tmp_path / "t.csv").write_text(f"a,cost\n{first},5\nNA,6\n")
    done = run("plan", tmp_path / "t.csv", "--inputs", "a", *BUDGET, *options)
    assert_refused(
        done, "'NA' in row 2, as if there were no value: fill it in, or give --missing drop"
    )


def test_messages_name_the_option_that_is_missing(tmp_path: Path) -> None:
    folder = tmp_path / "parts"
    folder.mkdir()
    for part in range(2):
        TABLE.write_parquet(folder / f"{part}.parquet")
    asked = ["--inputs", "lat,region", *BUDGET, *QUICK, "-o", tmp_path / "t.privgp"]
    done = run("release", folder / "*.parquet", *asked)
    assert_refused(done, "'region'", "categories and dates must be declared")
    done = run("release", folder / "*.parquet", "--inputs", "when,region", *asked[2:])
    assert_refused(done, "'region'", "categories and dates must be declared")
    done = run("release", folder / "*.parquet", *asked, "--categories", "region")
    assert f"from {folder / '*.parquet'}" in done.out
    labels = csv(TABLE.with_columns(cost=pl.lit("yes")))
    (tmp_path / "labels.csv").write_bytes(labels)
    asked = ["--inputs", "lat", *BUDGET, *QUICK, "-o", tmp_path / "u.privgp"]
    assert_refused(run("release", tmp_path / "labels.csv", *asked), "labels need --classes")
    private = ["--protect", "records", "--x-bounds", "lat=2024-01-01:2024-02-01"]
    assert_refused(run("release", tmp_path / "labels.csv", *asked, *private), "dates need --dates")


@pytest.mark.parametrize("units", [None, "per inhabitant"])
def test_maps_of_counts_are_called_rates(tmp_path: Path, units: str | None) -> None:
    xarray = pytest.importorskip("xarray")
    table = TABLE.with_columns(people=pl.lit(100), cases=pl.Series(np.arange(ROWS) % 9))
    table.write_csv(tmp_path / "t.csv")
    release, areas, grid = (tmp_path / name for name in ("t.privgp", "t.geojson", "t.nc"))
    asked = ["--inputs", "lat,lon", "--places", "lat,lon", "--output", "cases", "--max-change", "1"]
    asked += ["--bounds", "0", "50", "--likelihood", "poisson", "--exposure", "people", *BUDGET[5:]]
    asked += [] if units is None else ["--units", units]
    assert run("release", tmp_path / "t.csv", *asked, *QUICK[2:], "-o", release).code == 0
    done = run("predict", release, "--grid", "6", "--contours", "3", "-o", areas)
    assert done.code == 0, done
    name, title = "cases", "cases (per inhabitant)"
    if units is None:
        name = title = "cases per unit of exposure"
    assert f"Areas between two levels of '{name}' are in" in done.out
    assert "low" not in done.out
    told = json.loads(areas.read_text())
    assert {each["properties"]["name"] for each in told["features"]} == {name}
    done = run("predict", release, "--grid", "3", "-o", grid)
    assert "contains the rate with probability" in done.out
    with xarray.open_dataset(grid) as read:
        assert read.attrs["title"] == title
