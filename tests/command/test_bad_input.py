"""Everything that is refused: one sentence, exit code 2, no file, nothing spent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from privgp.models.regressor import PrivateGPRegressor
from tests.command.running import (
    BUDGET,
    COLUMNS,
    QUICK,
    assert_refused,
    instead,
    people_table,
    run,
)

Write = Callable[..., Path]


@pytest.fixture(autouse=True)
def _nothing_is_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    def spend(*_: Any, **__: Any) -> None:
        raise AssertionError("budget was spent")

    monkeypatch.setattr(PrivateGPRegressor, "fit", spend)


def files(folder: Path) -> dict[str, bytes | None]:
    return {str(path): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


def refused(folder: Path, *arguments: object, words: tuple[str, ...] = ()) -> None:
    before = files(folder)
    assert_refused(run(*arguments), *words)
    assert files(folder) == before


CELLS = "age,bmi,cost\n20,21.5,1000.5\n30,22.5,2000.5\n40,23.5,3000.5\n"
BAD_TABLES = {
    "empty file": ("", "is empty"),
    "header only": ("age,bmi,cost\n", "no rows"),
    "missing column": (CELLS.replace("bmi", "weight"), "'age', 'weight' and 'cost'"),
    "duplicate input": (CELLS.replace("age,bmi", "bmi,bmi").replace("cost", "age"), "2 columns"),
    "another case": (CELLS.replace("age,bmi", "Age,BMI"), "but one named 'Age'"),
    "text in an input": (CELLS.replace("22.5", "tall"), "row 2"),
    "empty input": (CELLS.replace("22.5", ""), "no value in row 2"),
    "blank input": (CELLS.replace("22.5", "  "), "no value in row 2"),
    "NaN in an input": (CELLS.replace("22.5", "nan"), "'nan' in row 2, as if there were"),
    "infinite input": (CELLS.replace("22.5", "-inf"), "NaN or infinity in row 2"),
    "overflowing input": (CELLS.replace("22.5", "1e999"), "NaN or infinity in row 2"),
    "comma as decimal point": (CELLS.replace("22.5", '"22,5"'), "must hold numbers"),
    "not UTF-8": (CELLS.replace("bmi", "gr\xf6\xdfe").encode("latin-1"), "UTF-8"),
    "binary": (bytes(range(256)), "UTF-8"),
    "only newlines": ("\n\n\n", "is empty"),
    "no header": (CELLS.partition("\n")[2], "first line must name the columns"),
    "no header, semicolons": (CELLS.partition("\n")[2].replace(",", ";"), "first line"),
}


@pytest.mark.parametrize("command", ["plan", "release"])
@pytest.mark.parametrize("case", BAD_TABLES)
def test_bad_tables(tmp_path: Path, write: Write, command: str, case: str) -> None:
    content, words = BAD_TABLES[case]
    data = write("v.csv", content)
    out = ["-o", tmp_path / "v.privgp"] if command == "release" else []
    refused(tmp_path, command, data, *COLUMNS, *BUDGET, *out, words=(words,))
    assert "000.5" not in run(command, data, *COLUMNS, *BUDGET, *out).err


BAD_OUTPUTS = {
    "missing column": (CELLS.replace("cost", "price"), "no column 'cost'"),
    "duplicate column": (CELLS.replace("bmi,cost", "cost,cost"), "2 columns"),
    "text": (CELLS.replace("2000.5", "2000.5 EUR"), "finite number"),
    "empty": (CELLS.replace("2000.5", ""), "finite number"),
    "NaN": (CELLS.replace("2000.5", "NaN"), "finite number"),
    "infinity": (CELLS.replace("2000.5", "inf"), "finite number"),
    "overflow": (CELLS.replace("2000.5", "1e400"), "finite number"),
    "too many fields": (CELLS.replace("2000.5", "2,000.5"), "Line 3"),
    "too few fields": (CELLS.replace(",2000.5", ""), "Line 3"),
    "blank line": (CELLS.replace("40", "\n40"), "Line 4"),
    "open quote": (CELLS.replace("2000.5", '"2000.5'), ""),
}


@pytest.mark.parametrize("case", BAD_OUTPUTS)
def test_bad_outputs_and_no_word_about_their_values(
    tmp_path: Path, write: Write, case: str
) -> None:
    content, words = BAD_OUTPUTS[case]
    data = write("v.csv", content)
    inputs = ["--inputs", "age", "--output", "cost"]
    command = ["release", data, *inputs, *BUDGET, "-o", tmp_path / "v.privgp"]
    refused(tmp_path, *command, words=(words,))
    shown = run(*command).err
    assert not any(number in shown for number in ("1000", "2000", "3000", "EUR"))


@pytest.mark.parametrize(
    ("column", "values", "words"),
    [
        ("age", [1.0, None, 3.0], "no value in row 2"),
        ("age", [1.0, float("nan"), 3.0], "NaN or infinity in row 2"),
        ("age", [[1.0], [2.0], [3.0]], "must hold numbers"),
        ("cost", ["secret"] * 3, "finite number"),
        ("cost", [1.0, None, 3.0], "finite number"),
        ("cost", [1.0, float("inf"), 3.0], "finite number"),
        ("cost", [[1.0], [2.0], [3.0]], "finite number"),
        ("who", ["a", None, "b"], "no identifier in row 2"),
        ("who", [1.0, float("nan"), 2.0], "no identifier in row 2"),
        ("who", [1, None, 2], "no identifier in row 2"),
        ("who", [[1], [2], [3]], "numbers or text"),
    ],
)
def test_bad_parquet_columns(tmp_path: Path, column: str, values: list[Any], words: str) -> None:
    good = {"age": [1.0, 2.0, 3.0], "cost": [1.0, 2.0, 3.0], "who": ["a", "b", "c"]}
    data = tmp_path / "v.parquet"
    pl.DataFrame({**good, column: values}).write_parquet(data)
    refused(
        tmp_path,
        *("release", data, "--inputs", "age", "--output", "cost", "--groups", "who"),
        *(*BUDGET, "-o", tmp_path / "v.privgp"),
        words=(words,),
    )


@pytest.mark.parametrize("content", [b"PAR1", b"PAR1" + bytes(200) + b"PAR1", b"age\n1\n"])
def test_broken_parquet(tmp_path: Path, write: Write, content: bytes) -> None:
    data = write("v.parquet", content)
    refused(tmp_path, "plan", data, *COLUMNS, *BUDGET, words=("Parquet",))


def test_parquet_without_rows(tmp_path: Path) -> None:
    data = tmp_path / "v.parquet"
    people_table().clear().write_parquet(data)
    refused(tmp_path, "plan", data, *COLUMNS, *BUDGET, words=("no rows",))


@pytest.mark.parametrize("ids", ["a,\nb,20\n", " ,20\nb,20\n", '"",20\nb,20\n'])
def test_missing_identifiers(tmp_path: Path, write: Write, ids: str) -> None:
    data = write("v.csv", f"who,age\n{ids}")
    refused(tmp_path, "plan", data, "--inputs", "age", "--groups", "who", *BUDGET)


def test_files_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    common = [*COLUMNS, *BUDGET]
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "v.txt").write_text(CELLS)
    (tmp_path / "v.csv").write_text(CELLS)
    refused(tmp_path, "plan", tmp_path / "no.csv", *common, words=("does not exist",))
    refused(tmp_path, "plan", tmp_path / "folder.csv", *common, words=("no file that ends",))
    refused(tmp_path, "plan", tmp_path / "v.txt", *common, words=(".csv.gz or .parquet",))
    refused(tmp_path, "plan", "https://example.org/v.csv", *common, words=("does not exist",))
    refused(tmp_path, "plan", "a\x00b.csv", *common)
    refused(tmp_path, "plan", "x" * 5000 + ".csv", *common)
    refused(tmp_path, "plan", tmp_path / "no*.csv", *common, words=("no file",))

    def denied(*_: Any, **__: Any) -> None:
        raise PermissionError

    monkeypatch.setattr("pathlib.Path.open", denied)
    assert_refused(run("plan", tmp_path / "v.csv", *common), "cannot be read")


BAD_ARGUMENTS: dict[str, tuple[list[str], str]] = {
    "reversed bounds": (["--bounds", "5000", "0"], "low < high"),
    "equal bounds": (["--bounds", "1", "1"], "low < high"),
    "infinite bounds": (["--bounds", "0", "inf"], "finite"),
    "NaN bounds": (["--bounds", "nan", "1"], "finite"),
    "one bound": (["--bounds", "1"], "--bounds"),
    "textual bounds": (["--bounds", "low", "high"], "--bounds"),
    "no epsilon": (["--epsilon", "0"], "epsilon"),
    "negative epsilon": (["--epsilon", "-1"], "epsilon"),
    "large epsilon": (["--epsilon", "10001"], "epsilon"),
    "NaN epsilon": (["--epsilon", "nan"], "epsilon"),
    "textual epsilon": (["--epsilon", "one"], "epsilon"),
    "no delta": (["--delta", "0", "--mechanism", "gaussian"], "--delta must be positive"),
    "no delta, unbiased": (["--delta", "0", "--reconstruct", "unbiased"], "must be positive"),
    "negative delta": (["--delta", "-1e-9"], "delta"),
    "delta of one": (["--delta", "1"], "delta"),
    "infinite delta": (["--delta", "inf"], "delta"),
    "records, no bounds": (["--protect", "records"], "needs --x-bounds LO HI"),
    "records, one pair": (
        ["--protect", "records", "--x-bounds", "0", "90"],
        "each input: 2, not 1",
    ),
    "records, three pairs": (
        ["--protect", "records", *["--x-bounds", "0", "90"] * 3],
        "each input: 2, not 3",
    ),
    "records, empty domain": (
        ["--protect", "records", *["--x-bounds", "90", "0"] * 2],
        "--x-bounds must have low < high",
    ),
    "records, half a pair": (["--protect", "records", "--x-bounds", "0"], "two numbers"),
    "records, words": (["--protect", "records", "--x-bounds", "a", "b"], "--help"),
    "records, NaN": (["--protect", "records", *["--x-bounds", "nan", "1"] * 2], "--x-bounds"),
    "records of people": (
        ["--protect", "records", *["--x-bounds", "0", "90"] * 2, "--groups", "nobody"],
        "no column 'nobody'",
    ),
    "records, unbiased": (
        [
            *("--protect", "records", *["--x-bounds", "0", "90"] * 2),
            *("--objective", "trace", "--reconstruct", "unbiased"),
        ],
        "posterior",
    ),
    "bounds of public inputs": (["--x-bounds", "0", "90"], "does not go with --protect outputs"),
    "unknown protection": (["--protect", "nobody"], "--protect"),
    "unknown objective": (["--objective", "best"], "--objective"),
    "unknown reconstruction": (["--reconstruct", "magic"], "--reconstruct"),
    "unknown hyperparameters": (["--hyperparameters", "guessed"], "--hyperparameters"),
    "no noise": (["--noise-variance", "0"], "--noise-variance"),
    "negative noise": (["--noise-variance", "-4"], "--noise-variance"),
    "NaN noise": (["--noise-variance", "nan"], "--noise-variance"),
    "bad kernel": (["--kernel", "rbf(1"], "--kernel"),
    "unknown kernel": (["--kernel", "cosine(1)"], "unknown"),
    "kernel of other inputs": (["--kernel", "rbf(1, 2, 3)"], "3 lengthscales"),
    "noise twice": (["--kernel", "rbf(1) + white(1)", "--noise-variance", "1"], "noise once"),
    "nothing but noise": (["--kernel", "white(1)"], "nothing but noise"),
    "noise in a product": (["--kernel", "rbf(1)*white(1)"], "top-level sum"),
    "bad targets": (["--targets", "age=0:90:5"], "each input"),
    "missing targets": (["--targets", "no.csv"], "does not exist"),
    "no inputs": (["--inputs", ""], "--inputs"),
    "trailing comma": (["--inputs", "age,"], "--inputs"),
    "input twice": (["--inputs", "age,age"], "twice"),
    "unknown input": (["--inputs", "height"], "no column 'height'"),
    "output among the inputs": (["--inputs", "age,cost"], "cannot be among"),
    "output as identifier": (["--groups", "cost"], "cannot name the people"),
    "private identifiers among the inputs": (
        ["--protect", "records", *["--x-bounds", "0", "90"] * 2, "--groups", "bmi"],
        "identifiers 'bmi' cannot be among",
    ),
    "unknown groups": (["--groups", "family"], "no column 'family'"),
    "no groups": (["--groups", ""], "--groups"),
    "no output": (["--output", ""], "--output"),
    "unknown option": (["--colour", "red"], "--colour"),
    "wrong picture": (["--plot", "plan.pdf"], ".png or .svg"),
    "picture without ending": (["--plot", "plan"], ".png or .svg"),
    "picture in no folder": (["--plot", "no/such/folder/plan.png"], "does not exist"),
    "a further argument": (["more.csv"], "more.csv"),
}


@pytest.mark.parametrize("command", ["plan", "release"])
@pytest.mark.parametrize("case", BAD_ARGUMENTS)
def test_bad_arguments(tmp_path: Path, visits: Path, command: str, case: str) -> None:
    arguments, words = BAD_ARGUMENTS[case]
    out = ["-o", tmp_path / "v.privgp"] if command == "release" else []
    line = instead([*COLUMNS, *BUDGET, *out], arguments)
    refused(tmp_path, command, visits, *line, words=(words,))


@pytest.mark.parametrize("left_out", ["--inputs", "--output", "--bounds", "--epsilon", "--delta"])
def test_nothing_that_matters_has_a_default(tmp_path: Path, visits: Path, left_out: str) -> None:
    options = [*COLUMNS, *BUDGET, "-o", tmp_path / "v.privgp"]
    at = options.index(left_out)
    del options[at : at + (3 if left_out == "--bounds" else 2)]
    refused(tmp_path, "release", visits, *options, words=(left_out,))


def test_bad_destinations(tmp_path: Path, visits: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    common = ["release", visits, *COLUMNS, *BUDGET, *QUICK]
    taken = tmp_path / "taken.privgp"
    taken.write_text("precious")
    (tmp_path / "folder.privgp").mkdir()
    file = tmp_path / "v.privgp"
    refused(tmp_path, *common, words=("--out",))
    refused(tmp_path, *common, "-o", tmp_path / "v.zip", words=(".privgp",))
    refused(tmp_path, *common, "-o", tmp_path / "v.PRIVGP", words=(".privgp",))
    refused(tmp_path, *common, "-o", taken, words=("exists already", "--force"))
    refused(tmp_path, *common, "-o", tmp_path / "folder.privgp", "--force", words=("a folder",))
    refused(tmp_path, *common, "-o", tmp_path / "no" / "v.privgp", words=("does not exist",))
    refused(tmp_path, *common, "-o", visits / "v.privgp", words=("does not exist",))
    refused(tmp_path, *common, "-o", file, "--certificate", "c.pdf", words=(".html or .json",))
    refused(tmp_path, *common, "-o", file, "--seed", "-1", words=("--seed",))
    refused(tmp_path, *common, "-o", tmp_path / ("x" * 300 + ".privgp"))
    same = ["--certificate", tmp_path / "c.json", "--force"]
    (tmp_path / "c.json").symlink_to(file)
    refused(tmp_path, *common, "-o", file, *same, words=("used twice",))

    def full(*_: Any, **__: Any) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr("privgp.storage.parts._create", full)
    refused(tmp_path, *common, "-o", file, words=("cannot be written",))


@pytest.mark.parametrize("content", [b"", b"hello", b"PK\x03\x04" + bytes(100)])
def test_broken_releases(tmp_path: Path, visits: Path, write: Write, content: bytes) -> None:
    file = write("v.privgp", content)
    refused(tmp_path, "inspect", file)
    refused(tmp_path, "predict", file, visits, "-o", tmp_path / "p.csv")


@pytest.mark.parametrize("command", ["plan", "release", "predict", "inspect"])
def test_an_empty_word_is_not_this_folder(
    tmp_path: Path, visits: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """As of a variable of the shell that is not set."""
    monkeypatch.chdir(visits.parent)
    out = ["-o", tmp_path / "v.privgp"] if command == "release" else []
    refused(tmp_path, command, "", *COLUMNS, *BUDGET, *out, words=("A word of the line is empty",))


def test_a_table_without_any_of_the_columns(tmp_path: Path, write: Write) -> None:
    """Its columns are not listed: without a header they would be somebody's values."""
    data = write("v.csv", CELLS.replace("age,bmi", "ages,weight"))
    refused(tmp_path, "plan", data, *COLUMNS, *BUDGET, words=("the spelling of the name",))
    assert "weight" not in run("plan", data, *COLUMNS, *BUDGET).err


def test_letters_of_another_encoding_are_refused_and_read_by_its_name(
    tmp_path: Path, write: Write
) -> None:
    data = write("v.csv", CELLS.replace("bmi", "gr\xf6\xdfe").encode("latin-1"))
    line = ["plan", data, "--inputs", "age", *BUDGET]
    refused(tmp_path, *line, words=("state its encoding",))
    assert run(*line, "--encoding", "latin-1").code == 0


def test_bad_predictions(tmp_path: Path, visits: Path, release: Path, write: Write) -> None:
    out = ["-o", tmp_path / "p.csv"]
    refused(tmp_path, "predict", tmp_path / "no.privgp", visits, *out, words=("does not exist",))
    refused(tmp_path, "predict", visits, visits, *out, words=(".privgp",))
    refused(tmp_path, "predict", tmp_path, visits, *out, words=(".privgp",))
    refused(tmp_path, "predict", release, tmp_path / "no.csv", *out, words=("does not exist",))
    refused(
        tmp_path, "predict", release, visits, "-o", tmp_path / "p.txt", words=(".tif or .geojson",)
    )
    refused(tmp_path, "predict", release, visits, "-o", visits, "--force", words=("used twice",))
    refused(tmp_path, "predict", release, visits, *out, "--inputs", "age", words=("2 inputs",))
    refused(tmp_path, "predict", release, visits, *out, "--plot", "p.gif", words=(".png",))
    new = write("new.csv", "age,bmi\n20,\n")
    refused(tmp_path, "predict", release, new, *out, words=("no value in row 1",))
    new = write("new.csv", "age\n20\n")
    refused(tmp_path, "predict", release, new, *out, words=("no column 'bmi'",))
    refused(tmp_path, "inspect", release, "--certificate", "c.txt", words=(".html or .json",))


def test_a_release_cut_short_or_changed_is_refused(
    tmp_path: Path, release: Path, write: Write
) -> None:
    whole = release.read_bytes()
    middle = len(whole) // 2
    for content in (whole[:middle], whole[:middle] + b"\x00\x01" + whole[middle + 2 :]):
        refused(tmp_path, "inspect", write("v.privgp", content), words=("cannot be loaded",))


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--epsilon", "one", "it must be a number"),
        ("--protect", "all", "'all' is not one of"),
        ("--inputs", "age bmi", "has no column 'age bmi'"),
    ],
)
def test_a_value_that_cannot_be_read_is_named_in_plain_words(
    tmp_path: Path, visits: Path, option: str, value: str, words: str
) -> None:
    line = instead(["plan", visits, *COLUMNS, *BUDGET], [option, value])
    refused(tmp_path, *line, words=(words,))
    told = run(*line).err
    assert "Value error" not in told
    assert "parse string" not in told
