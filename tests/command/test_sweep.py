"""Every command, every parameter, every way to get it wrong: one sentence, and nothing is written.

The commands are found by walking the application. A command that is not in GOOD, or a parameter
that is not in BAD, fails: what is new must say what it refuses.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import privgp
from privgp.command.options import LISTS
from tests.command.lines import BAD, BESIDE, GOOD, LEDGER, LONG, OUTPUT_TABLE, OWN
from tests.command.running import assert_one_sentence, people_table, run, subcommands

COMMANDS = subcommands()


def named(parameter: Any) -> str:
    return parameter.opts[0] if parameter.param_type_name == "option" else parameter.name


def valued(command: str) -> list[Any]:
    """The parameters that take a value and are told of."""
    shown = [p for p in COMMANDS[command].params if not getattr(p, "hidden", False)]
    return [p for p in shown if not getattr(p, "is_flag", False)]


def words(command: str, values: dict[str, str]) -> list[str]:
    """The line as it is typed."""
    line = command.split()
    for name, value in values.items():
        line += [name] if name.startswith("--") else []
        line += value.split() or [""]
    return line


def bad_values(command: str, name: str) -> list[str]:
    good = GOOD[command]
    values = OWN.get((command, name), BAD[name])
    if name in ("data", "--train", "--validation") and "--output" in good:
        values += OUTPUT_TABLE
    if name == "--out":
        values = tuple(value.format(Path(good[name]).suffix) for value in values)
    return [*values]


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Good files, and one of every bad kind, in a folder to stand in."""
    path = tmp_path_factory.mktemp("sweep") / "here"
    path.mkdir()
    table = people_table()
    table.write_csv(path / "v.csv")
    (path / "v.txt").write_bytes((path / "v.csv").read_bytes())
    table.head(1).write_csv(path / "one.csv")
    table.clear().write_csv(path / "header.csv")
    lines = (path / "v.csv").read_text().splitlines()
    (path / "ragged.csv").write_text("\n".join([*lines[:3], f"x,{lines[3]}", *lines[4:]]) + "\n")
    for column in ("age", "cost"):
        table.rename({column: "height"}).write_csv(path / f"no-{column}.csv")
        for cell in ("text", "nan", "inf"):
            cells = [*table[column].cast(pl.String)[:-1], cell]
            table.with_columns(pl.Series(column, cells)).write_csv(path / f"{cell}-{column}.csv")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(path)
        for command, out in (
            ("plan", "v.plan"), ("release", "v.privgp"), ("function create", "f.private-state"),
            ("paths create", "p.private-state"),
        ):  # fmt: skip
            made = run(*words(command, {**GOOD[command], "--out": out}))
            assert made.code == 0, made
        assert run(*words("ledger open", {**GOOD["ledger open"], **LEDGER})).code == 0
        for ending in ("privgp", "plan", "private-state", "csv", "parquet", "png", "html", "json"):
            (path / f"folder.{ending}").mkdir()
            (path / f"empty.{ending}").touch()
            (path / f"taken.{ending}").write_text("mine")
            (path / f"broken.{ending}").write_bytes(bytes(range(256)) * 4)
        for whole in ("v.privgp", "v.plan", "f.private-state"):
            cut = f"cut{Path(whole).suffix}"
            (path / cut).write_bytes((path / whole).read_bytes()[:-50])
        (path / "other.plan").write_bytes((path / "v.privgp").read_bytes())
        (path / "other.privgp").write_bytes((path / "f.private-state").read_bytes())
        (path / "other.private-state").write_bytes((path / "v.privgp").read_bytes())
        (path / "folder").mkdir()
        (path / "list.json").write_text("[]")
        yield path


def contents(folder: Path) -> dict[str, tuple[int, int]]:
    """Every file and folder, as it was last changed."""
    found = [(path, path.lstat()) for path in folder.parent.rglob("*")]
    return {
        str(path): (state.st_mtime_ns, state.st_size) for path, state in found if path != folder
    }


def test_every_command_and_parameter_is_swept() -> None:
    assert set(GOOD) == set(COMMANDS)
    assert {named(p) for command in GOOD for p in valued(command)} == set(BAD)


@pytest.mark.parametrize(
    "command", ["", *sorted({word for name in COMMANDS for word in (name, name.split()[0])})]
)
def test_help_is_given(command: str) -> None:
    result = run(*command.split(), "--help")
    assert (result.code, result.err) == (0, "")
    assert f"Usage: privgp {command}".strip() in result.out


def test_help_loads_nothing_that_takes_long() -> None:
    home = str(Path(privgp.__file__).parents[1])
    code = (
        f"import sys; sys.path.insert(0, {home!r}); "
        "from privgp.command import main; main(['release', '--help']); "
        "sys.exit(bool({'numpy', 'scipy', 'sklearn', 'polars', 'matplotlib'} & {*sys.modules}))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0


def test_a_missing_file_is_refused_before_anything_that_takes_long_is_loaded() -> None:
    files = {"v.csv": "no.csv", "v.privgp": "no.privgp"}
    files |= {f"{letter}.private-state": f"{letter}-no.private-state" for letter in "fp"}
    lines = [
        words(command, {name: files.get(value, value) for name, value in good.items()})
        for command, good in GOOD.items()
        if {*files} & {*good.values()}
    ]
    assert len(lines) >= 12
    home = str(Path(privgp.__file__).parents[1])
    code = (
        f"import sys; sys.path.insert(0, {home!r}); from privgp.command import main; "
        f"assert [main(line) for line in {lines!r}] == [2] * {len(lines)}; "
        "assert not {'numpy', 'scipy', 'sklearn', 'polars', 'matplotlib'} & {*sys.modules}"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert result.stderr.count("does not exist") == len(lines)


@pytest.mark.parametrize("table", ["v.csv", "one.csv"])
@pytest.mark.parametrize("command", sorted({*GOOD} - LONG))
def test_the_good_lines_are_good_for_many_rows_and_for_one(
    command: str, table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))  # nothing was released before
    values = {name: table if value == "v.csv" else value for name, value in GOOD[command].items()}
    if "--out" in values:
        values["--out"] = str(tmp_path / values["--out"])
    if values.get("--ledger") == "sqlite:///new.db":
        values["--ledger"] = f"sqlite:///{tmp_path}/new.db"
    if "state" in values:  # that of the folder stays as it was: nobody asked
        values["state"] = str(shutil.copy(values["state"], tmp_path))
    result = run(*words(command, values))
    assert (result.code, result.err) == (0, "")


def names_what_is_wrong(sentence: str, name: str, value: str) -> bool:
    """The option, or the value where that says more."""
    plain = sentence.lower().replace("-", " ")
    begins = re.split("[/=]", value)[0]
    return name.strip("-").replace("-", " ") in plain or (len(begins) > 2 and begins in sentence)


@pytest.mark.parametrize(
    ("command", "name"), [(c, named(p)) for c in sorted(COMMANDS) for p in valued(c)]
)
def test_a_bad_value_is_refused(command: str, name: str, folder: Path) -> None:
    before = contents(folder)
    options = {option for p in COMMANDS[command].params for option in p.opts} | {"--help"}
    beside = BESIDE.get((command, name), {})
    for value in bad_values(command, name):
        result = run(*words(command, {**GOOD[command], **beside, name: value}))
        assert_one_sentence(result)
        assert "unexpectedly" not in result.err
        assert not value or names_what_is_wrong(result.err, name, value), result
        assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", result.err)) <= options, result
    assert contents(folder) == before


OPTIONS = [
    (command, option)
    for command in sorted(COMMANDS)
    for option in COMMANDS[command].params
    if option.param_type_name == "option" and not option.multiple
]
SEVERAL = {("plan", "--bounds"), ("release", "--bounds")}  # once for each output


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_an_option_that_is_given_twice_is_joined_or_refused(command: str, folder: Path) -> None:
    """The last one took the place of the others, and budgets and inputs with it."""
    before = contents(folder)
    lists = [o for c, o in OPTIONS if c == command and o.metavar in LISTS]
    for option in [o for c, o in OPTIONS if c == command and o not in lists]:
        if (command, named(option)) in SEVERAL:
            continue
        line = words(command, {k: v for k, v in GOOD[command].items() if k not in option.opts})
        given = [] if option.is_flag else ["1"] * option.nargs
        for second in [*option.opts, *option.secondary_opts]:
            result = run(*line, named(option), *given, second, *given)
            if "--json" not in option.opts:
                assert_one_sentence(result)
            assert (result.code, result.out) == (2, "")
            assert named(option) in result.err
            assert "must be given once." in result.err
    for option in lists:
        line = words(command, {k: v for k, v in GOOD[command].items() if k not in option.opts})
        given = [*line[len(command.split()) :], named(option), "a", f"{named(option)}=b,c"]
        assert COMMANDS[command].make_context(command, given).params[option.name] == "a,b,c"
    assert contents(folder) == before


def test_inputs_that_are_given_one_by_one_are_all_taken(tmp_path: Path) -> None:
    line = words("release", {**GOOD["release"], "--out": str(tmp_path / "v.privgp")})
    assert run(*line, "--inputs", "bmi").code == 0
    assert [*privgp.load(tmp_path / "v.privgp").feature_names_in_] == ["age", "bmi"]


@pytest.mark.parametrize("given", ["0,3000", "0", "0 to", "=0,3000", "=0"])
def test_bounds_that_are_not_two_numbers_are_told_how_to_be_written(given: str) -> None:
    good = {name: value for name, value in GOOD["plan"].items() if name != "--bounds"}
    line = [f"--bounds{given}"] if given[0] == "=" else ["--bounds", *given.split()]
    for rest in ([], ["--force"]):
        result = run(*words("plan", good), *line, *rest)
        assert_one_sentence(result)
        assert "--bounds must be two numbers with a space between them, such as" in result.err


@pytest.mark.parametrize(
    ("command", "name"),
    [(c, named(p)) for c in sorted(COMMANDS) for p in COMMANDS[c].params if p.required],
)
def test_what_is_needed_is_asked_for(command: str, name: str) -> None:
    *others, last = [p for p in GOOD[command] if not p.startswith("--")] or [""]
    if name in others:  # without the first of two files there is one too few
        name = last
    result = run(*words(command, {key: v for key, v in GOOD[command].items() if key != name}))
    assert_one_sentence(result)
    assert "Missing" in result.err


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (command, name)
        for command, good in sorted(GOOD.items())
        for name, value in good.items()
        if value in ("v.csv", "v.privgp", "f.private-state", "p.private-state")
    ],
)
def test_a_file_that_may_not_be_read(
    command: str, name: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, opened = contents(folder), Path.open
    file = GOOD[command][name]

    def denied(path: Path, *how: Any, **more: Any) -> Any:  # superusers may read everything
        if path.name == file:
            raise PermissionError(f"no permission for '{path}'")
        return opened(path, *how, **more)

    monkeypatch.setattr(Path, "open", denied)
    result = run(*words(command, GOOD[command]))
    assert_one_sentence(result)
    assert f"'{file}' cannot be read" in result.err
    assert contents(folder) == before
