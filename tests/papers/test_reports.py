"""Every report on a small part of its data: numbers, words, and a page that needs nothing else."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from benchmarks.gallery import pictures_of
from papers.citibike import report as citibike
from papers.citibike.statements import check, expected
from papers.citibike.table1 import COLUMNS, PRINTED, Cell, Settings, cells, errors_of, split_of
from papers.kung import errors
from papers.kung import report as kung
from papers.london import report as london
from papers.shared.data import MissingData, data_file
from papers.shared.data import london as load_london
from papers.shared.page import as_json, index_page, page
from papers.shared.parallel import for_each
from papers.shared.report import Report, Request, Result, Section, Table
from privgp.pictures.style import figure_bytes
from tests.conftest import DATA, real_data

KEYS = ["quantity", "paper", "papers_method", "default_method"]


def assert_sound(report: Report) -> None:
    """Finite numbers or none, unique quantities, and a page without outside resources."""
    entries = json.loads(json.dumps(as_json([report]), allow_nan=False))
    assert [list(entry) for entry in entries] == [KEYS] * (
        len(report.results) + len(report.details)
    )
    names = [entry["quantity"] for entry in entries]
    assert len(set(names)) == len(names) > 0
    for entry in entries:
        assert all(entry[k] is None or isinstance(entry[k], int | float) for k in KEYS[1:])
    assert_self_contained(page(report))


def assert_self_contained(text: str) -> None:
    assert "http://" not in text
    assert "https://" not in text
    assert "<script" not in text
    assert all(
        src.startswith("data:image/svg+xml;base64,") for src in re.findall(r'src="([^"]*)', text)
    )
    assert all(re.fullmatch(r"[a-z]+\.html", href) for href in re.findall(r'href="([^"]*)', text))


def number(report: Report, quantity: str) -> Result:
    (found,) = (result for result in report.results if result.quantity == quantity)
    return found


def test_the_gallery_takes_pictures_out_of_a_page(tmp_path):
    figure = Figure()
    drawn = Report("a", "a", (), (Section("Figure 1: <b> & c", figure=figure), Section("words")))
    (tmp_path / "a.html").write_text(page(drawn), "utf-8")
    found = pictures_of(tmp_path / "a.html")
    assert found == {"Figure 1: <b> & c": figure_bytes(figure, ".svg")}


def test_the_kung_in_small(monkeypatch):
    real_data("kung.csv")
    monkeypatch.setattr(errors, "BINS", (9, 50))
    monkeypatch.setattr(kung, "QUICK_RELEASES", 1)
    shown = []
    report = kung.run(Request(DATA, True, lambda share, doing: shown.append(share)))
    assert_sound(report)
    assert shown == sorted(shown)
    assert shown[-1] == 1.0
    scale = number(report, "figure 1A: scale of the samples at epsilon 50 (cm)")
    assert f"{scale.papers_method:.2f}" == f"{scale.paper:.2f}" == "28.53"
    delta = number(report, "figure 1A: true delta at epsilon 50").papers_method
    assert delta == pytest.approx(0.999993, abs=1e-6)
    cloaking = number(report, "RMSE at (1, 0.01), settings as printed (cm)")
    assert cloaking.papers_method == pytest.approx(12.2, abs=0.6)
    assert number(report, "RMSE of simple binning, 50 bins (cm)").papers_method > 20
    assert 12 < number(report, "RMSE of integral binning, 50 bins (cm)").papers_method < 21
    assert number(report, "RMSE of integral binning, noise known, 50 bins (cm)").papers_method < 14
    assert 90 < number(report, "figure 1B: age of the most noise (years)").papers_method < 120


def test_citi_bike_in_small(monkeypatch):
    real_data("citibike_201706.csv.gz")
    monkeypatch.setattr("papers.shared.parallel.processes", lambda: 1)
    small = Settings(DATA, 1, rows=60, tested=10, steps=3, bins=(3, 2), lengthscales=(0.05,))
    report = citibike.report(small, Request(DATA))
    assert_sound(report)
    assert number(report, "RMSE (s), cloaking 0.05, epsilon 1").paper == 434
    best = number(report, "best RMSE (s), cloaking, epsilon 0.2")
    assert best.default_method < best.papers_method
    assert any("DOES NOT HOLD" in words for words in report.sections[1].text)  # rows are missing
    assert number(report, "best RMSE (s), converged, epsilon 1").papers_method > 0


def test_simple_binning_as_printed_misses_what_binned_means_find():
    real_data("citibike_201706.csv.gz")
    settings = Settings(DATA, 1)
    found = errors_of(Cell(settings, 0, "binning", 3.0))
    spread = split_of(Cell(settings, 0, "binning", 3.0))[3].std()
    assert found["binned means 3^4"][0] < spread < found["simple binning 3^4"][0]


def test_london_in_small():
    real_data("london_prices.csv.gz")
    X, price = load_london(Request(DATA))
    assert X.shape == (2182, 2)
    report = london.report(X[:80], price[:80], 8, Request(DATA))
    assert_sound(report)
    assert len([w for w in report.sections[1].text if w.startswith(("Holds", "DOES"))]) == 4


def test_a_cell_of_table_1_depends_on_its_seed_alone():
    real_data("citibike_201706.csv.gz")
    small = Settings(DATA, 2, rows=80, tested=10, steps=2, bins=(2,), lengthscales=(0.05,))
    chosen = [cell for cell in cells(small) if cell.kind != "default"]
    first = [errors_of(cell) for cell in chosen]
    assert first == [errors_of(cell) for cell in reversed(chosen)][::-1]
    assert first[0] != first[2]  # the other split


def test_the_printed_table_satisfies_what_is_expected_of_it():
    table = {
        row: dict(zip(COLUMNS, (mean for mean, _ in cells), strict=True))
        for row, cells in PRINTED.items()
    }
    checked = check(expected("table1_expected.json"), table)
    assert len(checked) >= 12
    assert [c.text for c in checked if not c.holds] == []
    table["cloaking 0.02"]["1"] = 100.0  # a wrong number breaks what it should
    broken = check(expected("table1_expected.json"), table)
    assert "at epsilon = 1 cloaking is best at 0.05 to 0.125 degrees" in [
        c.text for c in broken if not c.holds
    ]
    assert not any(c.holds for c in check(expected("table1_expected.json"), {}))


def test_two_processes_give_what_one_gives():
    done = []
    assert for_each(math.sqrt, [4.0, 9.0, 16.0], done.append, workers=2) == [2.0, 3.0, 4.0]
    assert done == [1, 2, 3]
    assert for_each(math.sqrt, [4.0, 9.0], workers=1) == [2.0, 3.0]
    assert for_each(math.sqrt, []) == []
    with pytest.raises(ValueError, match="math domain"):
        for_each(math.sqrt, [-1.0], workers=1)


def test_pages_escape_what_they_show_and_json_has_no_nan():
    report = Report(
        "name",
        "<b>&",
        (Result("a<b", np.nan, np.inf, 1.0), Result("c", None, 2.0, None)),
        (
            Section("<script>", ("5 < 6",), Figure((1, 1))),
            Section("table", table=Table(("<b>", ""), (("x & y", "<i>"),))),
        ),
        (Result("detail", 1.0, None, None),),
    )
    text = page(report)
    assert "<th>&lt;b&gt;</th><th></th>" in text
    assert "<td>x &amp; y</td><td>&lt;i&gt;</td>" in text
    assert "detail" not in text
    assert as_json([report])[-1]["quantity"] == "detail"
    assert "<b>" not in text
    assert "&lt;script&gt;" in text
    assert_self_contained(text)
    assert_self_contained(index_page([report]))
    assert as_json([report])[0] == {
        "quantity": "a<b", "paper": None, "papers_method": None, "default_method": 1.0,
    }  # fmt: skip


def test_missing_data_are_named_in_one_sentence(tmp_path):
    for folder in (None, tmp_path, Path("/nowhere")):
        with pytest.raises(MissingData, match=r"kung\.csv"):
            data_file(Request(folder), "kung.csv")
    for content in (b"", b"\xff\xfe\x00", b"age;height\n1;2\n", b"age,height\na,b\n"):
        (tmp_path / "kung.csv").write_bytes(content)
        with pytest.raises(MissingData, match="cannot be read"):
            kung.run(Request(tmp_path))
