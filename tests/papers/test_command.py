"""``python -m papers``: what it writes, and what it refuses."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import types
from importlib import import_module
from pathlib import Path

import pytest

from papers.__main__ import NAMES, main
from papers.shared.report import Report, Result, Section
from tests.command.running import Result as Answer
from tests.command.running import assert_refused, run

ROOT = Path(__file__).resolve().parents[2]


def papers(*arguments: object) -> Answer:
    return run(*arguments, main=main)


@pytest.fixture
def quick_kung(monkeypatch):
    """A report that takes no time and records how it was asked."""
    asked = []

    def heights(request):
        asked.append(request)
        request.progress(0.5, "half")
        return Report("kung", "Heights", (Result("rmse", 12.2, 12.5, 8.2),), (Section("Words"),))

    monkeypatch.setattr("papers.kung.report.run", heights)
    return asked


def test_one_report_is_a_page_and_its_numbers(tmp_path, quick_kung):
    out = tmp_path / "reports"
    result = papers("kung", "--quick", "--data", tmp_path, "--out", out)
    assert result.code == 0, result
    assert sorted(path.name for path in out.iterdir()) == ["kung.html", "results.json"]
    assert "kung.html" in result.out
    entry = {"quantity": "rmse", "paper": 12.2, "papers_method": 12.5, "default_method": 8.2}
    assert json.loads((out / "results.json").read_text()) == [entry]
    assert quick_kung[0].quick
    assert quick_kung[0].data == tmp_path
    assert papers("kung", "--out", out).code == 0  # again, in place


def test_all_are_pages_an_index_and_one_list_of_numbers(tmp_path, quick_kung, monkeypatch):
    for name in set(NAMES) - {"kung"}:
        module = types.ModuleType(f"papers.{name}.report")
        module.run = lambda request, name=name: Report(
            name, f"Title of {name}", (Result(name, None, 1.0, 2.0),), ()
        )
        monkeypatch.setitem(sys.modules, module.__name__, module)
    result = papers("all", "--data", tmp_path, "--out", tmp_path / "out")
    assert result.code == 0, result
    names = {path.stem for path in (tmp_path / "out").glob("*.html")}
    assert names == {"index", *NAMES}
    assert {"kung", "citibike", "london", "attack", "optimisation"} <= names
    numbers = json.loads((tmp_path / "out" / "results.json").read_text())
    assert len(numbers) == 7
    index = (tmp_path / "out" / "index.html").read_text()
    assert 'href="london.html"' in index
    assert "Title of attack" in index


def test_every_name_has_a_report():
    for name in NAMES:
        assert callable(import_module(f"papers.{name}.report").run)


def test_it_runs_as_a_module_and_its_help_loads_nothing_that_takes_long():
    code = (
        f"import sys; sys.path[:0] = {[str(ROOT), str(ROOT / 'src')]!r}; "
        "from papers.__main__ import main; main(['--help']); "
        "sys.exit(bool({'numpy', 'scipy', 'sklearn', 'polars', 'matplotlib'} & {*sys.modules}))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0
    asked = subprocess.run(
        [sys.executable, "-m", "papers", "--fast"], cwd=ROOT, capture_output=True
    )
    assert asked.returncode == 2
    assert re.match(rb"Error: No such option:? '?--fast", asked.stderr)


def test_help_is_given():
    result = papers("--help")
    assert (result.code, result.err) == (0, "")
    assert "Usage: python -m papers" in result.out
    assert all(word in result.out for word in ("--data", "--quick", "--out"))


@pytest.mark.parametrize(
    ("option", "value", "word"),
    [
        ("NAME", "", "empty"),
        ("NAME", "nonsense", "NAME"),
        *(("--data", folder, "data") for folder in ("nonsense", "v.csv", "\0")),
        ("--data", "folder", "'folder' holds no 'kung.csv'"),
        *(("--out", folder, "cannot be made") for folder in ("nowhere/new", "v.csv", "v.csv/new")),
        ("--out", "\0", "--out"),
    ],
)
def test_a_bad_value_is_refused_and_nothing_is_written(option, value, word, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "v.csv").write_text("age,cost\n")
    before = sorted(tmp_path.rglob("*"))
    line = {"NAME": "kung", "--data": "folder", "--out": "new", option: value}
    name = line.pop("NAME")
    assert_refused(papers(name, *(part for pair in line.items() for part in pair)), word)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_missing_data_folder_is_one_sentence(tmp_path, monkeypatch):
    out = tmp_path / "out"
    assert_refused(papers("kung", "--data", tmp_path / "no", "--out", out), "data folder")
    assert not out.exists()
    assert_refused(papers("kung", "--data", tmp_path, "--out", out), "kung.csv")
    assert not out.exists()
    monkeypatch.chdir(tmp_path)  # no ../shared/data from here
    assert_refused(papers("london", "--out", out), "--data", "london_prices")


def test_bad_arguments_are_one_sentence(tmp_path, quick_kung):
    assert_refused(papers())
    assert_refused(papers("everything"), "everything")
    assert_refused(papers("kung", "--fast"))
    assert_refused(papers("kung", "--out", tmp_path / "no" / "out"), "cannot be made")
    (tmp_path / "file").write_text("")
    assert_refused(papers("kung", "--out", tmp_path / "file"), "cannot be made")
    assert_refused(papers("kung", "--data", "a\0b"), "--data")
    assert quick_kung == []


@pytest.mark.parametrize(
    ("problem", "sentence"),
    [
        (ZeroDivisionError("a number"), "Error: Failed unexpectedly (ZeroDivisionError).\n"),
        (KeyboardInterrupt(), "Error: Interrupted.\n"),
        (MemoryError(), "Error: There is not enough memory for this.\n"),
    ],
    ids=repr,
)
def test_a_failure_leaves_no_half_page(problem, sentence, tmp_path, monkeypatch):
    def fails(request):
        raise problem

    monkeypatch.setattr("papers.kung.report.run", fails)
    result = papers("kung", "--data", tmp_path, "--out", tmp_path / "out")
    assert (result.code, result.out, result.err) == (1, "", sentence)
    assert not (tmp_path / "out").exists()


def test_data_that_a_report_misses_are_one_sentence(tmp_path, monkeypatch):
    def lacks(request):
        raise FileNotFoundError("the folder must hold 'x.csv'.")

    monkeypatch.setattr("papers.kung.report.run", lacks)
    asked = papers("kung", "--data", tmp_path, "--out", tmp_path / "out")
    assert_refused(asked, "x.csv", "--data")
    monkeypatch.setattr("papers.kung.report.run", lambda request: (tmp_path / "no.csv").read_text())
    asked = papers("kung", "--data", tmp_path, "--out", tmp_path / "out")
    assert_refused(asked, "no.csv", "was not found")
