"""Replay of the command: a row is a table with one private cell (or record) at either end, and lines.

All lines of a row run in one folder. What they print and every file that they write leaves, but
``.private-state`` files, which custodians keep.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
from cryptography.hazmat.primitives import serialization

from privgp import Guarantee, PosteriorPaths, PrivateFunction, load
from tests.adversary.replay.freezing import SIGNING_KEY
from tests.adversary.replay.leaving import KEPT, Left, of_files
from tests.adversary.replay.tables import ENDS, ROWS, table, table_with
from tests.command.running import run

AGES = "--inputs age --bounds 0 5000"
BUDGET = "--epsilon 4 --delta 1e-5 --hyperparameters fixed"
GAUSSIAN, LAPLACE = (
    f"{BUDGET} --mechanism gaussian",
    "--epsilon 4 --delta 0 --hyperparameters fixed --mechanism laplace",
)
PRIVATE = "--output cost --bounds 0 5000 --protect records"
KERNEL = "--kernel 1e6*rbf(20)+white(250000)"
PATHS = "--domain age=20:90 --bounds 0 5000 --kernel 1e6*matern12(20) --delta 1e-3 --epsilon 5"
SEARCH = (
    "search bayes --train public.csv --validation t.csv --inputs age --epsilon 4 --delta 1e-5 "
    "--steps 2 --estimator ridge --space alpha=1:2 --task regression --loss-bounds 0 6250000"
)
LEDGER = "--ledger sqlite:///l.db --dataset visits"
LOOK = ("inspect r.privgp --json",)
CURVE = (*LOOK, "predict r.privgp points.csv -o p.csv")
WHOLE = (
    "inspect r.privgp",
    *CURVE,
    "certificate r.privgp -o c.html",
    "certificate r.privgp -o c.json",
)


AREAS = json.dumps({"type": "FeatureCollection", "features": [{
    "type": "Feature", "properties": {"name": "all"}, "geometry": {
        "type": "Polygon", "coordinates": [[[-1, 51], [1, 51], [1, 52], [-1, 52], [-1, 51]]]},
}]})  # fmt: skip


@dataclass(frozen=True)
class Lines:
    """``cells``: what private columns of one row, or of some, hold in the first table and in the
    second; ``rows``: how many rows either table has."""

    lines: tuple[str, ...]
    cells: Mapping[str, tuple[Any, Any]] = field(default_factory=lambda: {"cost": (0.0, 5000.0)})
    row: int | slice = 0
    rows: tuple[int, int] = (ROWS, ROWS)
    refused: bool = False

    def neighbours(self) -> tuple[int, int]:
        return 0, 1

    def _table(self, which: int) -> pl.DataFrame:
        return table_with(self.cells, which, self.row).tail(self.rows[which])

    def data(self, which: int) -> bytes:
        return self._table(which).write_csv().encode()

    def run(self, which: int, folder: Path) -> tuple[Any, Left]:
        write(self._table(which), folder)
        if any("duckdb:" in line for line in self.lines):
            write_database(self._table(which), folder)
        given, left = set(folder.rglob("*")), Left()
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder)
            patch.setenv("XDG_STATE_HOME", str(folder / "state"))
            for line in self.lines:
                found = run(*shlex.split(line))
                assert (found.code == 0) != self.refused, found
                told = {"code": str(found.code), "stdout": found.out, "stderr": found.err}
                left |= {f"{what} of privgp {line}": text.encode() for what, text in told.items()}
        return stated(folder), left | of_files(folder, given)


def write(made: pl.DataFrame, folder: Path) -> None:
    """The private table, in one file and in parts; a public one; and points to ask at."""
    made.write_csv(folder / "t.csv")
    (folder / "parts").mkdir()
    made[: ROWS // 2].write_csv(folder / "parts" / "a.csv")
    made[ROWS // 2 :].write_csv(folder / "parts" / "b.csv")
    table().with_columns(age=pl.col("age") + 1).write_csv(folder / "public.csv")
    table()["age", "bmi"].write_csv(folder / "points.csv")
    (folder / "areas.geojson").write_text(AREAS)
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    public = SIGNING_KEY.public_key().public_bytes(serialization.Encoding.PEM, form)
    (folder / "public.pem").write_bytes(public)


def write_database(made: pl.DataFrame, folder: Path) -> None:
    """The private table in a database."""
    ibis = pytest.importorskip("ibis", reason="the extra 'database' is not installed")
    held = ibis.duckdb.connect(folder / "t.duckdb")
    held.create_table("visits", made.to_arrow())
    held.disconnect()


def stated(folder: Path) -> Any:
    """What was written last, with its guarantee, if anything was released."""
    found = {path.suffix: path for path in sorted(folder.glob("r.*"))}
    if ".privgp" in found:
        return load(found[".privgp"])
    if KEPT in found:
        kind: Any = PosteriorPaths if (folder / "paths.csv").exists() else PrivateFunction
        return kind.load_state(found[KEPT])
    if ".json" in found:
        guarantee = json.loads(found[".json"].read_text())["guarantee"]
        return SimpleNamespace(guarantee_=Guarantee.from_json(json.dumps(guarantee)))
    return None


def release(options: str, *after: str, data: str = "t.csv", **given: Any) -> Lines:
    return Lines((f"release {data} {options} -o r.privgp", *(after or CURVE)), **given)


COMMANDS: dict[str, Lines] = {
    "outputs, laplace": release(f"--output cost {AGES} {LAPLACE} --plot r.png --certificate r.html", *WHOLE),
    "outputs, gaussian": release(f"--output cost {AGES} {GAUSSIAN} --json"),
    "outputs, database": release(
        f"--output cost {AGES} {LAPLACE}", data="duckdb:///t.duckdb?table=visits"
    ),
    "outputs, unbiased": release(
        f"--output cost {AGES} {GAUSSIAN} --reconstruct unbiased --targets age=50:50:1", *LOOK, row=1
    ),
    "outputs, asked at the table": release(
        f"--output cost {AGES} {GAUSSIAN}", "predict r.privgp t.csv -o p.csv"
    ),
    "outputs, averaged": release(
        f"--output cost --inputs lat,lon --places lat,lon --bounds 0 5000 {LAPLACE}",
        "predict r.privgp t.csv --average by=region -o by.csv",
        "predict r.privgp --areas areas.geojson -o areas.csv",
        "predict r.privgp t.csv --simultaneous -o band.csv",
        "predict r.privgp t.csv -o points.geojson",
        "predict r.privgp --grid 3 -o grid.tif --page page.html --label cost",
    ),
    "outputs, weighted": release(  # the row with the largest weight
        f"--output cost {AGES} {LAPLACE} --weights bmi", row=4
    ),
    "outputs, two stages": release(
        f"--output cost {AGES} --epsilon 4 --delta 1e-5 --mechanism laplace --residuals always"
    ),
    "outputs, learned": release(f"--output cost {AGES} --epsilon 4 --delta 1e-5 --json"),
    "outputs, planned": Lines((
        f"plan t.csv --output cost {AGES} {GAUSSIAN} -o r.plan --json",
        "inspect r.plan --json", "certificate r.plan -o plan.html", "certificate r.plan -o plan.json",
        "release t.csv --output cost --plan r.plan -o r.privgp --certificate r.html", *CURVE,
    )),
    "outputs, ledger": Lines((
        "ledger open --ledger sqlite:///l.db --dataset visits --epsilon 9 --delta 1e-4",
        f"release t.csv --output cost {AGES} {GAUSSIAN} {LEDGER} -o r.privgp",
        f"ledger show {LEDGER}", "ledger verify --ledger sqlite:///l.db",
        "ledger export --ledger sqlite:///l.db -o l.json",
    )),
    "outputs, signed ledger": Lines((
        "ledger open --ledger sqlite:///l.db?key=k.pem --dataset visits --epsilon 9 --delta 1e-4",
        f"release t.csv --output cost {AGES} {GAUSSIAN} --ledger sqlite:///l.db?key=k.pem "
        "--dataset visits -o r.privgp --certificate r.html",
        "ledger verify --ledger sqlite:///l.db --key public.pem",
        "ledger verify --certificate r.privgp --key public.pem",
    )),
    "density": release(
        f"--density --inputs age --x-bounds 0 100 {LAPLACE} --certificate r.html --plot r.png",
        *LOOK, "predict r.privgp --grid 3 -o p.csv", cells={"age": (0.0, 100.0)},
    ),
    "density, planned": Lines((
        f"plan t.csv --density --inputs age --x-bounds 0 100 {LAPLACE} -o r.plan",
        "inspect r.plan", "release t.csv --plan r.plan -o r.privgp --json", *LOOK,
    ), {"age": (0.0, 100.0)}),
    "bounds": Lines((
        "ledger open --ledger sqlite:///l.db --dataset visits --epsilon 9 --delta 1e-4",
        f"bounds t.csv --output cost --epsilon 4 --low 0 {LEDGER} -o r.json",
        f"ledger show {LEDGER}",
    )),
    "bounds, both ends": Lines(
        ("bounds parts --output cost --epsilon 4 --share 0.8 --smallest 1 --largest 1e4 "
         "-o r.json --json",),
    ),
    "people, gaussian": release(
        f"--output cost {AGES} {GAUSSIAN} --groups person", row=slice(0, 2)
    ),
    "people, laplace": release(f"--output cost {AGES} {LAPLACE} --groups person", row=slice(0, 2)),
    "inducing": release(f"--output cost {AGES} {GAUSSIAN} --inducing 3"),
    "streamed files": release(f"--output cost {AGES} {GAUSSIAN} --inducing 3", data="parts"),
    "streamed files, people": release(
        f"--output cost {AGES} {LAPLACE} --inducing 3 --groups person --most-rows 2",
        data="parts",
        row=slice(0, 2),
    ),
    "files of labels": release(
        f"--inputs age --output ill --classes no,yes {GAUSSIAN}", data="parts",
        cells={"ill": ("no", "yes")},
    ),
    "files of counts": release(
        "--inputs age --output cases --bounds 0 50 --likelihood poisson --exposure bmi "
        f"--max-change 3 {GAUSSIAN}", *LOOK, data="parts", cells={"cases": (10.0, 13.0)},
    ),
    "files of several outputs": release(
        f"--output cost,pay {AGES} --bounds 0 100 {GAUSSIAN}", data="parts",
        cells={"cost": (0.0, 5000.0), "pay": (0.0, 100.0)},
    ),
    "files of records": release(
        f"--inputs age {PRIVATE} --x-bounds 0 100 {GAUSSIAN}", *LOOK, data="parts", cells=ENDS,
    ),
    "files of records, missing": release(
        f"--inputs age {PRIVATE} --x-bounds 0 100 {GAUSSIAN} --groups person --missing drop",
        *LOOK, data="parts", cells={"cost": ("", 2500.0)},
    ),
    "files of records, unreadable": Lines(
        (f"release parts --inputs age {PRIVATE} --x-bounds 0 100 {GAUSSIAN} -o r.privgp",),
        {"age": ("secret", "x 1")}, refused=True,
    ),
    "several outputs": release(
        f"--output cost,pay {AGES} --bounds 0 100 {GAUSSIAN} --shares 1,3",
        cells={"cost": (0.0, 5000.0), "pay": (0.0, 100.0)},
    ),
    "two classes": release(
        f"--inputs age --output ill --classes no,yes --link probit --prevalence 0.2 {LAPLACE}", cells={"ill": ("no", "yes")}
    ),
    "two classes, inducing": release(
        f"--inputs age --output ill --classes no,yes --inducing 3 {GAUSSIAN}",
        cells={"ill": ("no", "yes")},
    ),
    "two classes, records": release(
        "--inputs age --output ill --classes no,yes --protect records --x-bounds 0 100 " + GAUSSIAN,
        *LOOK,
        cells={"age": ENDS["age"], "ill": ("no", "yes")},
    ),
    "several outputs, records": release(
        "--inputs age --output cost,pay --bounds 0 5000 --bounds 0 100 --protect records "
        f"--x-bounds 0 100 {GAUSSIAN}",
        *LOOK,
        cells={**ENDS, "pay": (0.0, 100.0)},
    ),
    "three classes": release(
        f"--inputs age --output ill --classes no,yes,unknown {GAUSSIAN}",
        cells={"ill": ("no", "yes")},
    ),
    "counts, exposures": release(
        "--inputs age --output cases --bounds 0 50 --likelihood poisson --exposure bmi "
        f"--max-change 3 {GAUSSIAN}",
        *LOOK,
        cells={"cases": (10.0, 13.0)},
    ),
    "counts": release(
        f"--inputs age --output cases --bounds 0 50 --likelihood poisson --max-change 3 {LAPLACE}",
        cells={"cases": (10.0, 13.0)},
    ),
    "records, gaussian": release(
        f"--inputs age {PRIVATE} --x-bounds 0 100 {GAUSSIAN}", *LOOK,
        cells=ENDS,
    ),
    "records, few bins": release(
        f"--inputs age {PRIVATE} --x-bounds 0 100 --inducing 3 {GAUSSIAN}", *LOOK,
        cells=ENDS,
    ),
    "records, weighted": release(  # both weights count as the largest that is declared
        f"--inputs age {PRIVATE} --x-bounds 0 100 --weights bmi --max-weight 40 {GAUSSIAN}", *LOOK,
        cells={**ENDS, "bmi": (50.0, 45.0)},
    ),
    "records, laplace": release(
        f"--inputs age {PRIVATE} --x-bounds 0 100 {LAPLACE}", *LOOK,
        cells=ENDS,
    ),
    "records, asked at the table": release(
        f"--inputs age {PRIVATE} --x-bounds 0 100 {GAUSSIAN}",
        "predict r.privgp t.csv -o p.csv",
        cells={"cost": (0.0, 5000.0), "bmi": (10.0, 50.0)},
    ),
    "records of people": release(
        f"--inputs age {PRIVATE} --x-bounds 0 100 {GAUSSIAN} --groups person", *LOOK,
        cells=ENDS, row=slice(0, 2),
    ),
    "records of people, one fewer": release(
        f"--inputs age {PRIVATE} --x-bounds 0 100 {GAUSSIAN} --groups person --json", *LOOK,
        rows=(ROWS, ROWS - 1),
    ),
    "records of people, missing": release(
        f"--inputs age {PRIVATE} --x-bounds 0 100 {GAUSSIAN} --groups person --missing drop",
        *LOOK,
        cells={"cost": ("", 2500.0)},
    ),
    "records, features": release(
        f"--inputs age,bmi,lat,lon {PRIVATE} --x-bounds 0 100 --x-bounds 10 50 --x-bounds 51 52 "
        f"--x-bounds -1 1 {GAUSSIAN}", *LOOK,
        cells={"age": (0.0, 100.0), "bmi": (10.0, 50.0), "cost": (0.0, 5000.0)},
    ),
    "private date": release(
        f"--inputs when {PRIVATE} --dates when --x-bounds when=2024-01-01:2024-12-31 {LAPLACE}",
        *LOOK, cells={"when": ("2024-01-02", "2024-12-30")},
    ),
    "private category": release(
        f"--inputs region {PRIVATE} --categories region=north|south|east {LAPLACE}",
        *LOOK, cells={"region": ("north", "a secret"), "cost": (0.0, 5000.0)},
    ),
    "private place": release(
        f"--inputs lat,lon {PRIVATE} --places lat,lon --x-bounds lat=51:52,lon=-1:1 {LAPLACE}",
        *LOOK, cells={"lat": (51.1, 51.9), "lon": (-0.9, 0.9)},
    ),
    "private periodic": release(
        f"--inputs hour {PRIVATE} --periodic hour=24 {LAPLACE}", *LOOK,
        cells={"hour": (1.0, 13.0)},
    ),
    "private boolean": release(
        f"--inputs ok {PRIVATE} --booleans ok {LAPLACE}", *LOOK, cells={"ok": ("true", "false")},
    ),
    "updated": Lines((
        f"release public.csv --output cost {AGES} {GAUSSIAN} -o first.privgp",
        "update first.privgp t.csv --output cost -o r.privgp --certificate r.html", *CURVE,
    )),
    "refined": Lines((
        f"release t.csv --output cost {AGES} {GAUSSIAN} -o first.privgp",
        "update first.privgp t.csv --output cost -o r.privgp --same-rows --epsilon 2 --delta 1e-5",
        *CURVE,
    )),
    "function": Lines((
        f"function create t.csv --output cost {AGES} --epsilon 4 --delta 1e-5 {KERNEL} "
        "-o r.private-state", "function ask r.private-state points.csv -o p.csv",
        "function inspect r.private-state",
    )),
    "function of records": Lines((
        f"function create t.csv --inputs age {PRIVATE} --x-bounds 0 100 --epsilon 4 --delta 1e-5 "
        f"--kernel 1e6*rbf(50)+white(1e6) -o r.private-state", "function ask r.private-state points.csv -o p.csv",
        "function inspect r.private-state --json",
    ), {"age": (50.0, 52.0), "cost": (5000.0, 0.0)}, slice(-1, None), (1, 1)),
    "paths": Lines((
        f"paths create t.csv --inputs age --output cost {PATHS} -o r.private-state",
        "paths release r.private-state age=20:80:3 -o paths.csv", "paths inspect r.private-state",
        "paths excursion r.private-state age=20:80:3 --threshold 3000 -o above.csv",
    )),
    "grid, measurement": Lines((
        f"search grid t.csv --output cost {AGES} --epsilon 4 --delta 1e-5 --lengthscales 5,20 "
        "--method measurement -o r.privgp", *CURVE,
    )),
    "grid, permute-and-flip": Lines((
        f"search grid t.csv --output cost {AGES} --epsilon 4 --delta 1e-5 --lengthscales 5,20 "
        "--method permute-and-flip --folds 2 -o r.privgp", *CURVE,
    ), {"cost": (2500.0, 5000.0)}),
    "grid, exponential": Lines((
        f"search grid t.csv --output cost {AGES} --epsilon 4 --delta 1e-5 --lengthscales 5,20 "
        "--method exponential --folds 2 -o r.privgp", *CURVE,
    ), {"cost": (2500.0, 5000.0)}),
    "grid, blocks of records": Lines((
        f"search grid t.csv --inputs age {PRIVATE} --x-bounds 0 100 --epsilon 4 --delta 1e-5 "
        "--lengthscales 5,20 --noise-std 500 --method permute-and-flip --blocks 2 -o r.privgp", *CURVE,
    ), {"age": (30.0, 80.0), "cost": (0.0, 5000.0)}),
    "grid, blocks of labels": Lines((
        "search grid t.csv --inputs age --output ill --classes no,yes --epsilon 4 --delta 1e-5 "
        "--lengthscales 5,20 --method exponential --blocks 2 -o r.privgp", *CURVE,
    ), {"ill": ("no", "yes")}),
    "bayes, measured": Lines(
        (f"{SEARCH} --output cost --method measured --state s.search -o r.json",), {"cost": (2500.0, 5000.0)}
    ),
    "bayes, kusner": Lines(
        (f"{SEARCH} --output cost --method kusner -o r.json",), {"cost": (2500.0, 5000.0)}
    ),
    "unreadable cell": Lines(
        (f"release t.csv --output cost {AGES} {GAUSSIAN} -o r.privgp",),
        {"cost": ("secret", "x 1")}, refused=True,
    ),
}  # fmt: skip
