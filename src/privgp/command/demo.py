"""``privgp demo``: the whole way from a table to a published map, on data that anybody may see."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import polars as pl
from sklearn.datasets import load_diabetes

from privgp.command.errors import Failure, Refusal
from privgp.command.inspect import run_inspect
from privgp.command.io.request import Request
from privgp.command.io.results import Results
from privgp.command.io.screen import say
from privgp.command.io.tables import write_table
from privgp.command.io.targets import grid
from privgp.command.plan import run_plan
from privgp.command.predict import run_predict
from privgp.command.release import run_release

INPUTS = ["bmi", "bp"]
OUTPUT = "progression"
GRID = "bmi=18:42:25,bp=62:133:25"
BUDGET = "--bounds 25 350 --epsilon 1 --delta 1e-5"
MOST_FOLDERS = 1000

WELCOME = """\
442 people with diabetes. How their disease progressed within a year is private; their body-mass
index (bmi) and blood pressure (bp) are taken as public. The map of progression over bmi and bp is
to be published such that nobody's progression can be told from it: differential privacy with
epsilon = 1 and delta at most 1e-5.
"""


def run_demo(folder: Path, *, force: bool) -> None:
    """Plan, release, predict and certify into a folder of its own."""
    started = time.monotonic()
    folder, created = demo_folder(folder, force=force)
    try:
        _run(folder)
    except BaseException:
        if created:
            shutil.rmtree(folder, ignore_errors=True)
        raise
    say("")
    say(f"Done in {time.monotonic() - started:.0f} s. Everything is in the folder {folder}:")
    say("  map.png          what was learned, the paler the less certain")
    say("  plan.png         what other budgets would have bought")
    say("  certificate.html what was promised (certificate.json for programs)")
    say("  diabetes.privgp  the release itself; of real data, publish this and keep the table")
    say("  predictions.csv  the map as numbers")


def _run(folder: Path) -> None:
    data, release, points = (folder / n for n in ("diabetes.csv", "diabetes.privgp", "grid.csv"))
    request = Request(
        data=data,
        inputs=",".join(INPUTS),
        output=OUTPUT,
        bounds=(25.0, 350.0),
        epsilon=1.0,
        delta=1e-5,
    )
    say(WELCOME)
    say("")
    _write_data(data, points)
    columns = f"--inputs {request.inputs} --output {OUTPUT} {BUDGET}"

    say("1. Plan. Only the public columns are read; nothing is spent.")
    say(f"$ privgp plan {data} {columns} --plot {folder / 'plan.png'}")
    run_plan(request, plot=folder / "plan.png", force=True, as_json=False)

    say("")
    say("2. Release. The only step that reads the private column, and the only one that spends.")
    say(
        f"$ privgp release {data} {columns} -o {release} "
        f"--certificate {folder / 'certificate.html'} --plot {folder / 'map.png'}"
    )
    results = Results(release, folder / "certificate.html", folder / "map.png")
    run_release(request, results, force=True, as_json=False)

    say("")
    say("3. Predict. Anybody who has the file can, as often as they like.")
    say(f"$ privgp predict {release} {points} -o {folder / 'predictions.csv'}")
    run_predict(
        release,
        points,
        folder / "predictions.csv",
        inputs=None,
        observation=False,
        plot=None,
        force=True,
        as_json=False,
    )

    say("")
    say("4. Inspect. What a file promises can be read from the file.")
    say(f"$ privgp inspect {release} --certificate {folder / 'certificate.json'}")
    run_inspect(release, certificate_path=folder / "certificate.json", force=True, as_json=False)


def demo_folder(wanted: Path, *, force: bool) -> tuple[Path, bool]:
    """The folder to use and whether it is new: the wanted one, or the next free number."""
    try:
        if wanted.is_dir() and force:
            return wanted, False
        if not wanted.parent.is_dir():
            raise Refusal(f"The folder '{wanted.parent}' does not exist.")
        for number in range(1, MOST_FOLDERS):
            folder = wanted if number == 1 else wanted.with_name(f"{wanted.name}-{number}")
            try:
                folder.mkdir()
            except FileExistsError:
                continue
            return folder, True
    except (OSError, ValueError):
        raise Refusal(f"The folder '{wanted}' cannot be made.") from None
    raise Failure(f"There are too many folders like '{wanted}': remove some.")


def _write_data(data: Path, points: Path) -> None:
    people = load_diabetes(scaled=False)
    table = pl.DataFrame(people.data, schema=list(people.feature_names), orient="row")
    write_table(
        table.select(INPUTS).with_columns(pl.Series(OUTPUT, people.target)), data, simulation=False
    )
    write_table(
        pl.DataFrame(grid(GRID, INPUTS), schema=INPUTS, orient="row"), points, simulation=False
    )
