"""``privgp demo``: every step from a table to a published map, on public data."""

import shlex
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from privgp.command import options as o
from privgp.command.errors import Failure, Refusal, refuse_on
from privgp.command.io.screen import say

INPUTS = ["bmi", "bp"]
OUTPUT = "progression"
GRID = "bmi=18:42:25,bp=62:133:25"
BUDGET = ["--bounds", "25", "350", "--epsilon", "1", "--delta", "1e-5"]
COLUMNS = ["--inputs", ",".join(INPUTS), "--output", OUTPUT, *BUDGET]
MOST_FOLDERS = 1000

WELCOME = """\
442 people with diabetes. How their disease progressed within a year is private; their body-mass
index (bmi) and blood pressure (bp) are taken as public. The map of progression over bmi and bp is
to be published so that nobody's progression can be told from it: differential privacy with
epsilon = 1 and delta at most 1e-5.
"""


FORCE_HELP = "Use the folder again instead of a numbered new one."


def demo(
    context: typer.Context,
    out: Annotated[Path, o.plain("Where to put everything.", "--out", metavar="FOLDER")] = Path(
        "privgp-demo"
    ),
    force: Annotated[bool, o.plain(FORCE_HELP, "--force")] = False,
) -> None:
    """Run every step on public data: plan, release, predict, inspect. Takes less than a minute."""
    started = time.monotonic()
    folder, created = demo_folder(out, force=force)
    try:
        _run(context.find_root().command.main, folder)
    except BaseException:
        if created:
            shutil.rmtree(folder, ignore_errors=True)
        raise
    say("")
    say(f"Done in {time.monotonic() - started:.0f} s. Everything is in the folder {folder}:")
    say("  map.png          what was learned, and how certain it is")
    say("  plan.png         what other budgets would have bought")
    say("  certificate.html what was guaranteed (certificate.json for programs)")
    say("  diabetes.privgp  the release itself; of real data, publish this file and keep the table")
    say("  predictions.csv  the map as numbers, with 90% intervals from low to high")


def _run(privgp: Callable[..., object], folder: Path) -> None:
    data, release, points = (folder / n for n in ("diabetes.csv", "diabetes.privgp", "grid.csv"))
    say(WELCOME)
    _write_data(data, points)
    _step(
        privgp,
        "1. Plan. Only the public columns are read; nothing is spent.",
        *("plan", data, *COLUMNS, "--plot", folder / "plan.png"),
    )
    _step(
        privgp,
        "2. Release. The only step that reads the private column, and the only one that spends.",
        *("release", data, *COLUMNS, "-o", release),
        *("--certificate", folder / "certificate.html", "--plot", folder / "map.png"),
    )
    _step(
        privgp,
        "3. Predict. Anybody who has the file can, as often as they like.",
        *("predict", release, points, "-o", folder / "predictions.csv"),
    )
    _step(
        privgp,
        "4. Inspect. What a file guarantees can be read from the file.",
        *("inspect", release, "--certificate", folder / "certificate.json"),
    )


def _step(privgp: Callable[..., object], title: str, *words: object) -> None:
    line = [str(word) for word in words]
    say("")
    say(title)
    say(f"$ privgp {shlex.join(line)}")
    privgp(args=[*line, "--force"], standalone_mode=False)


def demo_folder(wanted: Path, *, force: bool) -> tuple[Path, bool]:
    """The folder to use and whether it is new: the wanted one, or the next free number."""
    with refuse_on(f"The folder '{wanted}' cannot be made.", OSError, ValueError):
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
    raise Failure(f"There are too many folders like '{wanted}': remove some.")


def _write_data(data: Path, points: Path) -> None:
    import polars as pl
    from sklearn.datasets import load_diabetes

    from privgp.command.io.axes import grid
    from privgp.command.io.results import write_table

    people = load_diabetes(scaled=False)
    table = pl.DataFrame(people.data, schema=list(people.feature_names), orient="row")
    progression = pl.Series(OUTPUT, people.target)
    write_table(table.select(INPUTS).with_columns(progression), data, simulation=False)
    map_points = pl.DataFrame(grid(GRID, INPUTS), schema=INPUTS, orient="row")
    write_table(map_points, points, simulation=False)
