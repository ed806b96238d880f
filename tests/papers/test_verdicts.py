"""Verdicts and figures of reports follow from the numbers of the run: other numbers, other words."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from papers.citibike.report import (
    EXPECTED,
    as_honest,
    default_text,
    integral_text,
    simple_text,
    table_text,
)
from papers.citibike.statements import check, expected
from papers.citibike.table1 import COLUMNS, PRINTED, Settings
from papers.excursion.report import _inside
from papers.excursion.tables import LAYOUTS
from papers.kung.errors import BINS, Errors, errors_text
from papers.kung.report import _summary, noise_statements
from papers.lengthscales import report as lengthscales
from papers.lengthscales.experiment import Chosen, experiment_text
from papers.lengthscales.report import Probabilities, figure_text
from papers.optimisation.report import LABELS, Searches, words
from papers.shared.cloaking import hall_text


def printed_table(factor: float = 1.0, shift: float = 0.0) -> dict[str, dict[str, float]]:
    """The papers' table 1, every number moved, with the rows that they do not have."""
    table = {
        row: {c: factor * mean + shift for c, (mean, _) in zip(COLUMNS, cells, strict=True)}
        for row, cells in PRINTED.items()
    }
    for value in Settings.lengthscales:
        table[f"converged {value:g}"] = {c: 400.0 for c in COLUMNS}
    table["integral kernel 3^4"] = {c: 450.0 for c in COLUMNS}
    table["binned means 3^4"] = {c: 500.0 for c in COLUMNS}
    table["default"] = {c: 390.0 for c in COLUMNS[1:]}
    return table


def test_statements_count_against_honest_baselines_alone():
    table = as_honest(printed_table())
    assert table["simple binning 3^4"] == {c: 500.0 for c in COLUMNS}
    assert table["integral binning 3^4"] == {c: 450.0 for c in COLUMNS}
    assert not any(row.startswith(("binned means", "integral kernel")) for row in table)
    held = {s.text: s.holds for s in check(expected(EXPECTED), table)}
    assert held["the best of cloaking beats both binnings at epsilon = 1"]  # 434 against 450
    assert not held["the best of cloaking beats both binnings at epsilon = 0.5"]  # 476


@pytest.mark.parametrize(("epsilons", "enough"), [((1.0, 0.2), True), ((50.0,), False)])
def test_whether_noise_is_enough_is_computed(epsilons, enough):
    assert hall_text(epsilons, 0.01).startswith(
        f"Hall's calibration is {'' if enough else 'NOT '}enough here"
    )


def test_the_noise_is_compared_with_the_least_that_is_enough():
    assert "its noise 1.7 times the least" in hall_text((1.0,), 0.01)
    assert "its noise 2.7 times the least" in hall_text((0.2,), 0.01)


def test_binning_is_compared_with_what_is_printed():
    assert "They are +10% to +10% off" in simple_text(printed_table(1.1), 500.0)[0]
    assert "They are -50% to -50% off" in simple_text(printed_table(0.5), 500.0)[0]
    assert "They are +7 to +7 s off" in integral_text(printed_table(shift=7.0), 500.0)[0]
    assert "They are -30 to -30 s off" in integral_text(printed_table(shift=-30.0), 500.0)[0]


@pytest.mark.parametrize(("constant", "worse"), [(1.0, 12), (1e5, 0)])
def test_cells_worse_than_a_constant_are_counted(constant, worse):
    for text in (simple_text, integral_text):
        assert text(printed_table(), constant)[0].startswith(f"{worse} of 12 printed cells")


def test_integral_binning_is_shown_beside_the_best_of_cloaking():
    assert "450 s where cloaking has 434 s at epsilon 1," in integral_text(printed_table(), 1.0)[1]


def test_a_run_speaks_of_its_own_splits():
    one, many = (
        " ".join(table_text(Settings(Path(), splits), printed_table())) for splits in (1, 4)
    )
    assert "over 1 split of" in one
    assert "intervals" not in one
    assert "over 4 splits of" in many
    assert "with 95% intervals" in many
    assert "1.08 to 4.67 times theirs" in one  # 434 and 1868 over 400


def test_a_default_that_is_worse_is_said_to_be():
    table = printed_table()
    assert "ABOVE" not in default_text(table)[0]
    table["default"] = {c: 2000.0 for c in COLUMNS[1:]}
    assert default_text(table)[0].count("ABOVE") == 3


@pytest.mark.parametrize(("factor", "within"), [(1.0, 4), (3.0, 0)])
def test_medians_within_the_printed_quartiles_are_counted(factor, within):
    layout = LAYOUTS[1]
    found = {
        column: SimpleNamespace(papers={q: (factor * c[k][0],) for q, c in layout.printed.items()})
        for k, column in enumerate(layout.columns)
    }
    (text,) = _inside(layout, found)
    assert f"IoU of one path in {within} of 4" in text
    assert f"effective dimension at epsilon 10 in {within} of 4" in text
    assert _inside(LAYOUTS[0], found) == ()  # table 1 prints no quartiles


def test_statements_about_the_noise_of_cloaking_are_checked():
    good = noise_statements(5.0, 80.0, 110.0, 0.1, (0.0, 88.0))
    assert [text.startswith("Holds") for text in good] == [True] * 3
    bad = noise_statements(70.0, 80.0, 40.0, 60.0, (0.0, 88.0))
    assert [text.startswith("DOES NOT HOLD") for text in bad] == [True] * 3


def test_published_errors_that_a_setting_has_are_found():
    many = np.full(len(BINS), 30.0)
    errors = Errors(12.3, 15.0, 7.6, 6.0, 8.0, 8.5, many, many, many, 7)
    assert "None of them has both published numbers" in errors_text(errors)[0]
    assert "the default of 7 releases" in errors_text(errors)[1]
    assert "1 of them has both" in errors_text(replace(errors, without=6.8))[0]
    assert "with no bins" in errors_text(replace(errors, simple=many * 10))[2]


def test_the_summary_of_the_kung_names_the_best_of_both_binnings():
    many = np.linspace(30.0, 40.0, len(BINS))
    errors = Errors(12.3, 15.0, 7.6, 6.0, 8.0, 8.5, many, many, many - 22.0, 7)
    text = _summary(123, errors)[0]
    assert "Heights of 123 women" in text
    assert "30.0 cm by simple and 8.0 cm by integral binning" in text


def test_how_sharp_a_choice_is_follows_from_its_probabilities():
    flat, sharp = (
        np.full((2, 4), 0.25),
        np.array([[0.9, 0.05, 0.03, 0.02], [0.02, 0.03, 0.05, 0.9]]),
    )
    found = Probabilities((math.inf, 1.0), (3.0, 9.0, 27.0, 81.0), sharp, flat, 7)
    text = " ".join(figure_text(found, 123))
    assert "Holds: with more privacy longer" in text
    assert "123 people" in text
    assert "over 7 random splits" in text
    assert "between 25% and 25%" in text
    assert "is NOT worth its budget" in text
    other = " ".join(figure_text(replace(found, papers=sharp[::-1], default=sharp), 123))
    assert "DOES NOT HOLD: with more privacy longer" in other
    assert "is worth its budget" in other


def test_whether_the_printed_cost_of_a_choice_comes_out_is_computed():
    both = experiment_text(Chosen(14.0, 18.0, 30.0, 3, 7))[0]
    assert both.count("(within 15% of the printed") == 2
    assert "3 splits" in both
    assert "7 folds" in both
    far = experiment_text(Chosen(14.0, 25.0, 30.0, 3, 7))[0]
    assert "25.0 cm (NOT within 15% of the printed 17.4)" in far


@pytest.mark.parametrize(("moved", "word"), [(2.0, "does not hold"), (0.5, "holds")])
def test_whether_a_bound_holds_is_computed(monkeypatch, moved, word):
    monkeypatch.setattr(lengthscales, "moved_and_bound", lambda: (moved, 1.0))
    assert f"squared errors {word} in the example" in lengthscales._private()[0]


def test_searches_are_compared_with_settings_taken_at_random():
    def searches(accuracy):
        return Searches(np.zeros(1), np.array([accuracy]), np.zeros(1), np.array([1.0]))

    surface = SimpleNamespace(accuracy=np.array([[0.2, 0.4]]))
    plans = dict.fromkeys(LABELS, SimpleNamespace(score_std=0.01))
    found = dict.fromkeys(LABELS, searches(0.9))
    text = words(surface, searches(0.95), found, plans)
    assert "loses 5.00 points" in text[0]
    assert "accuracy 0.9000 on average; settings taken at random have 0.3000" in text[1]
    assert "gains 10.00 points" in words(surface, searches(0.8), found, plans)[0]
