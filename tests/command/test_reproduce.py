"""``privgp reproduce``: what it writes, and what it refuses."""

from __future__ import annotations

import json
import sys
import types

import pytest

from privgp.reproduce.report import Report, Result, Section
from tests.command.running import assert_refused, run


@pytest.fixture
def quick_kung(monkeypatch):
    """A reproduction that takes no time and records how it was asked."""
    asked = []

    def reproduce(request):
        asked.append(request)
        request.progress(0.5, "half")
        return Report("kung", "Heights", (Result("rmse", 12.2, 12.5, 8.2),), (Section("Words"),))

    monkeypatch.setattr("privgp.reproduce.kung.run", reproduce)
    return asked


def test_one_report_is_a_page_and_its_numbers(tmp_path, quick_kung):
    out = tmp_path / "reports"
    result = run("reproduce", "kung", "--quick", "--data", tmp_path, "--out", out)
    assert result.code == 0, result
    assert sorted(path.name for path in out.iterdir()) == ["kung.html", "results.json"]
    assert "kung.html" in result.out
    entry = {"quantity": "rmse", "paper": 12.2, "papers_method": 12.5, "default_method": 8.2}
    assert json.loads((out / "results.json").read_text()) == [entry]
    assert quick_kung[0].quick
    assert quick_kung[0].data == tmp_path
    assert run("reproduce", "kung", "--out", out).code == 0  # again, in place


def test_all_are_pages_an_index_and_one_list_of_numbers(tmp_path, quick_kung, monkeypatch):
    for name in ("citibike", "london", "lengthscales", "excursion", "attack", "optimisation"):
        module = types.ModuleType(f"privgp.reproduce.{name}")
        module.__spec__ = types.SimpleNamespace(name=name)
        module.run = lambda request, name=name: Report(
            name, f"Title of {name}", (Result(name, None, 1.0, 2.0),), ()
        )
        monkeypatch.setitem(sys.modules, module.__name__, module)
    result = run("reproduce", "all", "--data", tmp_path, "--out", tmp_path / "out")
    assert result.code == 0, result
    names = {path.stem for path in (tmp_path / "out").glob("*.html")}
    assert {"index", "kung", "citibike", "london", "attack", "optimisation"} <= names
    numbers = json.loads((tmp_path / "out" / "results.json").read_text())
    assert len(numbers) == 7
    index = (tmp_path / "out" / "index.html").read_text()
    assert 'href="london.html"' in index
    assert "Title of attack" in index


def test_a_missing_data_folder_is_one_sentence(tmp_path, monkeypatch):
    out = tmp_path / "out"
    assert_refused(run("reproduce", "kung", "--data", tmp_path / "no", "--out", out), "data folder")
    assert not out.exists()
    assert_refused(run("reproduce", "kung", "--data", tmp_path, "--out", out), "kung.csv")
    assert not out.exists()
    monkeypatch.chdir(tmp_path)  # no ../shared/data from here
    assert_refused(run("reproduce", "london", "--out", out), "--data", "london_prices")


def test_bad_arguments_are_one_sentence(tmp_path, quick_kung, monkeypatch):
    assert_refused(run("reproduce"))
    assert_refused(run("reproduce", "everything"), "everything")
    assert_refused(run("reproduce", "kung", "--fast"))
    assert_refused(run("reproduce", "kung", "--out", tmp_path / "no" / "out"), "cannot be made")
    (tmp_path / "file").write_text("")
    assert_refused(run("reproduce", "kung", "--out", tmp_path / "file"), "cannot be made")
    assert_refused(run("reproduce", "kung", "--data", "a\0b"), "--data")
    monkeypatch.setattr("privgp.command.reproduce.find_spec", lambda name: None)
    assert_refused(run("reproduce", "kung", "--out", tmp_path / "out"), "not part of this version")
    assert quick_kung == []


def test_a_failure_leaves_no_half_page(tmp_path, monkeypatch):
    def fails(request):
        raise ZeroDivisionError

    monkeypatch.setattr("privgp.reproduce.kung.run", fails)
    result = run("reproduce", "kung", "--data", tmp_path, "--out", tmp_path / "out")
    assert result.code == 1
    assert not (tmp_path / "out").exists()


def test_data_that_a_reproduction_misses_are_one_sentence(tmp_path, monkeypatch):
    def lacks(request):
        raise FileNotFoundError("the folder must hold 'x.csv'.")

    monkeypatch.setattr("privgp.reproduce.kung.run", lacks)
    asked = run("reproduce", "kung", "--data", tmp_path, "--out", tmp_path / "out")
    assert_refused(asked, "x.csv", "--data")
    monkeypatch.setattr(
        "privgp.reproduce.kung.run", lambda request: (tmp_path / "no.csv").read_text()
    )
    asked = run("reproduce", "kung", "--data", tmp_path, "--out", tmp_path / "out")
    assert_refused(asked, "no.csv", "was not found")
