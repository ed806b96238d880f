"""The picture and the tables of the calibration benchmark show what was measured."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks.calibration import interval_score
from benchmarks.calibration_page import BEGIN, END, KEPT, PAGE, filled, keep, read, tables
from benchmarks.calibration_picture import calibration_figure, draw
from benchmarks.functions import BOUNDS, TRUTHS
from benchmarks.tasks import TASKS

PEERS = {"without_privacy": 2.0, "best_bins": 8.0}
KNOWN = {
    "releases": 20, "rmse": 4.0, "score": 20.0, "outputs": 0.91, "worst_release": 0.85,
    "coverage": 0.9, "worst_place": 0.6, "by_place": [0.6, 1.0, 1.0], **PEERS,
}  # fmt: skip
REAL = {"releases": 5, "rmse": 12_000.0, "score": 4e4, "outputs": 0.88, "worst_release": 0.76}
RESULTS: dict[str, Any] = {"growth": KNOWN, "step": {**KNOWN, "rmse": 6.0}, "Ames": REAL | PEERS}
BEFORE = {name: {"rmse": one["rmse"], "score": 2.0 * one["score"]} for name, one in RESULTS.items()}


def test_a_line_for_each_name_and_a_column_for_each_question():
    figure = calibration_figure(RESULTS, BEFORE)
    names = [[t.get_text() for t in ax.get_yticklabels()] for ax in figure.axes]
    assert names == [["growth", "step"], [""] * 2, [""] * 2, ["Ames"], [""], [""]]
    assert len(calibration_figure(RESULTS, None).axes) == 4
    assert len(calibration_figure({"growth": KNOWN}, None).axes) == 2


def test_marks_stand_where_the_numbers_are():
    coverage, scores, errors, outputs, *_ = calibration_figure(RESULTS, BEFORE).axes
    lines = {line.get_label(): line.get_xdata() for line in coverage.lines}
    assert list(lines["mean"]) == [0.9, 0.9]
    assert list(lines["worst place, worst release"]) == [0.6, 0.6]
    assert list(coverage.lines[0].get_xdata()) == KNOWN["by_place"]
    ends = [bar.get_x() + bar.get_width() for bar in scores.patches]
    np.testing.assert_allclose(ends, 0.5)
    assert [line.get_xdata().tolist() for line in errors.lines[:2]] == [[2.0, 3.0], [0.5, 0.75]]
    shown = {line.get_label(): list(line.get_xdata()) for line in outputs.lines}
    assert (shown["mean"], shown["worst place, worst release"]) == ([0.88], [0.76])


def test_all_numbers_are_inside_their_axes(tmp_path):
    """Also those far off, and with peers that are missing."""
    odd = {"flat": {**KNOWN, "rmse": 90.0, "worst_place": 0.02}, "Ames": REAL}
    for figure in (calibration_figure(odd, None), calibration_figure(RESULTS, BEFORE)):
        for ax in figure.axes:
            low, high = ax.get_xlim()
            x = np.concatenate([np.ravel(line.get_xdata()) for line in ax.lines])
            assert ((x >= low) & (x <= high)).all()
    draw(RESULTS, BEFORE, tmp_path / "calibration.png")
    assert (tmp_path / "calibration.png").read_bytes().startswith(b"\x89PNG")


def test_tables_have_the_numbers_and_how_they_compare():
    text = tables(RESULTS, BEFORE)
    assert "| growth | 4 (×1.00) | 2 | 8 | 20 (×0.50) | 90% | 60% | 91% | 85% |" in text
    assert "| Ames | 12,000 (×1.00) | 2 | 8 | 40,000 (×0.50) | 88% | 76% |" in text
    assert "geometric mean of the scores' multiples is 0.50" in text
    alone = tables({"Ames": REAL}, None)
    assert "| Ames | 12,000 | – | – | 40,000 | 88% | 76% |" in alone
    assert "function" not in alone


def test_only_what_stands_between_the_marks_is_replaced():
    page = f"above\n{BEGIN}old\n{END}below\n"
    assert filled(page, "new\n") == f"above\n{BEGIN}\nnew\n\n{END}below\n"
    assert filled(filled(page, "one\n"), "two\n") == filled(page, "two\n")
    with pytest.raises(ValueError, match="no marks"):
        filled("above", "new")


def test_the_page_has_a_row_for_everything_that_is_measured():
    _, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    measured, end, _ = rest.partition(END)
    assert end
    rows = {line.split(" | ")[0].removeprefix("| ") for line in measured.splitlines()}
    assert {each.name for each in (*TRUTHS, *TASKS)} <= rows


def test_the_page_and_the_picture_are_of_the_same_numbers(tmp_path):
    """The tables of the page are those of the kept numbers, from which the picture is drawn."""
    page = PAGE.read_text("utf-8")
    assert filled(page, tables(*read(KEPT))) == page
    keep(RESULTS, BEFORE, tmp_path / "with")
    assert read(tmp_path / "with") == (RESULTS, BEFORE)
    keep(RESULTS, None, tmp_path / "alone")
    assert read(tmp_path / "alone") == (RESULTS, None)


def test_the_interval_score_is_least_at_the_right_quantiles():
    """20,000 normal numbers: ends moved by a fifth of a std either way have a larger score."""
    truth = np.random.default_rng(0).normal(size=20_000)

    def score(low: float, high: float) -> float:
        return float(interval_score(np.full(20_000, low), np.full(20_000, high), truth).mean())

    right = score(-1.645, 1.645)
    assert all(score(-1.645 + a, 1.645 + b) > right for a, b in ((0.2, 0), (-0.2, 0), (0, 0.2)))
    assert interval_score(np.array([1.0]), np.array([3.0]), np.array([4.0]))[0] == pytest.approx(22)


@pytest.mark.parametrize("truth", TRUTHS, ids=lambda truth: truth.name)
def test_every_function_stays_within_its_bounds(truth):
    values = truth.f(truth.places())
    assert np.all((values >= BOUNDS[0]) & (values <= BOUNDS[1]))
    X, y = truth.sample(np.random.default_rng(0))
    assert X.shape == (truth.rows, truth.columns)
    assert ((X >= 0.0) & (X <= 90.0)).all()
    assert ((y >= BOUNDS[0]) & (y <= BOUNDS[1])).all()
