"""Whatever a command prints, writes or draws of a simulation says that it is one.

A new command must be named here, and is then tested for its screen, its JSON, its tables, pictures,
certificates and files, by the options that it has.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from privgp import PosteriorPaths, PrivateFunction, load
from privgp.types import STAMP
from tests.command.lines import GOOD, LEDGER
from tests.command.running import people_table, run, subcommands

COMMANDS = subcommands()
# These make no release and read none: what they tell is of plans and of attacks.
WITHOUT = {
    "plan",
    "paths calibrate",
    "paths tune",
    "audit trade-off",
    "audit membership",
    "demo",
    "serve",
}
WITHOUT |= {command for command in COMMANDS if command.startswith("ledger ")}
WITH = sorted({*COMMANDS} - WITHOUT)
STATES = {"f.private-state": "function create", "p.private-state": "paths create"}
FILES = {"v.privgp": "release", **STATES}


def options(command: str) -> set[str]:
    return {option for parameter in COMMANDS[command].params for option in parameter.opts}


def words(command: str, values: dict[str, str]) -> list[str]:
    line = command.split()
    for name, value in values.items():
        line += [*([name] if name.startswith("--") else []), *value.split()]
    return line


@pytest.fixture(scope="module", params=[True, False], ids=["seeded", "private"])
def made(request: pytest.FixtureRequest, tmp_path_factory: Any) -> tuple[Path, bool]:
    """A folder with a release and states, all of them simulations or none."""
    folder = tmp_path_factory.mktemp("made")
    people_table().write_csv(folder / "v.csv")
    people_table().head(1).write_csv(folder / "one.csv")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name, command in FILES.items():
            line = words(command, {**GOOD[command], "--out": name})
            assert run(*line, *(["--seed", "7"] if request.param else [])).code == 0
    return folder, request.param


@pytest.fixture
def here(made: tuple[Path, bool], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> bool:
    """A copy of that folder to stand in, and whether it is of simulations."""
    shutil.copytree(made[0], tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return made[1]


def line_of(command: str, seeded: bool, **more: str) -> list[str]:
    seed = {"--seed": "7"} if seeded and "--seed" in options(command) else {}
    return words(command, {**GOOD[command], **seed, **more})


def says_so(text: str) -> bool:
    return STAMP.upper() in text.upper()


def test_every_command_is_known() -> None:
    assert {*COMMANDS} >= WITHOUT
    for command in WITHOUT:
        reads = {parameter.name for parameter in COMMANDS[command].params} & {"state", "release"}
        assert not reads, command
        assert command == "audit membership" or "--seed" not in options(command), command
    assert len(WITH) >= 12


def said_by_file(path: Path) -> bool:
    """Whether a file that a command has written says that it is of a simulation."""
    if path.suffix in (".csv", ".parquet"):
        frame = pl.read_csv(path) if path.suffix == ".csv" else pl.read_parquet(path)
        said = "simulation" in frame.columns
        assert not said or (frame["simulation"].dtype == pl.Boolean and frame["simulation"].all())
        return said
    if path.suffix == ".json":
        return bool(json.loads(path.read_text())["simulation"])
    if path.suffix == ".html":
        return says_so(path.read_text())
    if path.suffix == ".privgp":
        return load(path).guarantee_.is_simulation
    assert path.suffix == ".private-state"
    for kind in (PrivateFunction, PosteriorPaths):
        try:
            return kind.load_state(path).guarantee_.is_simulation
        except ValueError:
            continue
    raise AssertionError(f"what is {path.name}?")


def columns_of(path: Path) -> list[str]:
    frame = pl.read_csv(path) if path.suffix == ".csv" else pl.read_parquet(path)
    return frame.columns


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts of every picture that is written, one entry per picture."""
    found, savefig = [], Figure.savefig

    def watched(figure: Figure, *arguments: Any, **named: Any) -> None:
        texts = [text.get_text() for text in figure.findobj(Text) if text.get_visible()]
        found.append("\n".join(texts))
        savefig(figure, *arguments, **named)

    monkeypatch.setattr(Figure, "savefig", watched)
    return found


@pytest.mark.parametrize("command", WITH)
def test_screen_table_picture_and_certificate_say_it(
    command: str, here: bool, drawn: list[str]
) -> None:
    has = options(command)
    files = {"--certificate": "c.html", "--plot": "p.png"}
    more = {name: file for name, file in files.items() if name in has}
    result = run(*line_of(command, here, **more))
    assert result.code == 0, result
    assert says_so(result.out) == here
    assert not (here and "may be published" in result.out)
    assert [says_so(texts) for texts in drawn] == [here] * ("--plot" in has)
    if "--certificate" in has:
        assert said_by_file(Path("c.html")) == here
    if "--out" in has:
        assert said_by_file(Path(GOOD[command]["--out"])) == here


@pytest.mark.parametrize("command", WITH)
def test_json_and_what_it_names_say_it(command: str, here: bool) -> None:
    has = options(command)
    assert "--json" in has
    more = {"--certificate": "c.json"} if "--certificate" in has else {}
    table = GOOD[command].get("--out", "").endswith(".csv")
    more |= {"--out": "new.parquet"} if table else {}
    result = run(*line_of(command, here, **more), "--json")
    assert result.code == 0, result
    told = json.loads(result.out)
    assert told["simulation"] is here
    if "--certificate" in has:
        assert said_by_file(Path("c.json")) == here
    if table:
        assert said_by_file(Path("new.parquet")) == here
        assert told["columns"] == columns_of(Path("new.parquet"))


@pytest.mark.parametrize("command", sorted(WITHOUT - {"demo", "serve"}))
def test_json_of_what_is_no_release_says_that_it_is_no_simulation(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    people_table().write_csv("v.csv")
    assert run(*words("ledger open", {**GOOD["ledger open"], **LEDGER})).code == 0
    result = run(*words(command, GOOD[command]), "--json")
    assert json.loads(result.out)["simulation"] is False


def test_a_column_of_that_name_is_kept_beside_it(here: bool) -> None:
    table = pl.read_csv("v.csv").rename({"age": "simulation"})
    table.write_csv("named.csv")
    seed = ["--seed", "7"] if here else []
    values = {**GOOD["release"], "data": "named.csv", "--inputs": "simulation", "--out": "n.privgp"}
    assert run(*words("release", values), *seed).code == 0
    assert run("predict", "n.privgp", "named.csv", "-o", "n.csv").code == 0
    extra = ["simulation_"] if here else []
    predicted = ["mean", "std", "low", "high", "near_data"]
    kept = ["person", "simulation", "bmi"]
    assert pl.read_csv("n.csv").columns == [*kept, *predicted, *extra]
    assert pl.read_csv("n.csv")["simulation"].to_list() == table["simulation"].to_list()


def test_predictions_of_a_simulation_can_be_read_and_asked_again(here: bool) -> None:
    assert run("predict", "v.privgp", "v.csv", "-o", "first.csv").code == 0
    assert run("predict", "v.privgp", "first.csv", "-o", "second.csv").code == 0
    assert Path("first.csv").read_text() == Path("second.csv").read_text()
