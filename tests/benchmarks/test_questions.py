"""The tables of the page are those of the kept numbers, and are of the functions that they should be of."""

from __future__ import annotations

import json

from benchmarks.calibration_page import filled
from benchmarks.questions import KEPT, PAGE, tables, truths

RESULTS = json.loads((KEPT / "questions.json").read_text("utf-8"))


def test_the_page_shows_what_was_measured():
    page = PAGE.read_text("utf-8")
    assert filled(page, tables(RESULTS)) == page
    assert {each.name for each in truths()} == {*RESULTS}
    assert min(map(len, RESULTS.values())) >= 20


def test_means_and_their_errors_are_those_of_all_releases():
    one, other = {"points": 0.5, "band": 0.0}, {"points": 1.0, "band": 1.0}
    shown = tables({"wave": [one, other], "hill": [{"districts": 1.0, "differences": 0.5}] * 2})
    assert "| wave | 2 | 75% | 50% |" in shown
    assert "| all | 2 | 75.0% ± 25.0% | 50.0% ± 50.0% |" in shown
    assert "| hill | 2 | 100% | 50% |" in shown
