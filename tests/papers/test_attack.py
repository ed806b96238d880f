"""The figures of the membership attack say what the paper says, in a short run."""

from __future__ import annotations

import math

import numpy as np
import pytest

from papers.attack.report import ridge_for, run, verdict
from papers.attack.runs import Attacks, Setting, attack, shadow_sides, stays_within
from papers.shared.report import Request


@pytest.fixture(scope="module")
def report():
    told: list[float] = []
    made = run(Request(quick=True, progress=lambda share, doing: told.append(share)))
    assert told == sorted(told)
    assert told[-1] == 1.0
    return made


def value(report, quantity):
    (found,) = (r.papers_method for r in report.results if r.quantity == quantity)
    return found


def test_regularisation_drives_the_attack_to_guessing(report):
    name = "excess TPR at FPR 10%, one path, sigma {}, r {}"
    for sigma in ("1", "5", "25", "inf"):
        assert value(report, name.format(sigma, "0.1")) > 0.08
        assert abs(value(report, name.format(sigma, "3"))) < 0.05


def test_more_paths_bring_the_attack_up_to_the_exact_posterior(report):
    name = "excess TPR at FPR 10%, r 1, sigma 5, paths {}"
    one, many, exact = (value(report, name.format(count)) for count in ("1", "300", "inf"))
    assert one < 0.06
    assert many > one + 0.15
    assert abs(exact - many) < 0.12


def test_epsilon_grows_slower_than_the_number_of_paths():
    for paper in (True, False):
        one, many = (Setting(1.0, 5.0, count).epsilon(paper=paper) for count in (1, 100))
        assert one < many < 50 * one


def test_small_epsilons_need_a_ridge_whatever_the_scale():
    ridges = [ridge_for(sigma, 10.0, paper=True) for sigma in (1.0, 25.0, math.inf)]
    assert ridges == sorted(ridges, reverse=True)
    assert ridges[-1] > 0.5
    for sigma, ridge in zip((1.0, 25.0, math.inf), ridges, strict=True):
        assert ridge_for(sigma, 10.0, paper=False) < ridge


def test_every_figure_is_drawn(report):
    titles = [section.title for section in report.sections]
    for number in (1, 2, 3, 5, 6):
        assert any(title.startswith(f"Figure {number}") for title in titles)
    figures = [section for section in report.sections if section.title.startswith("Figure")]
    assert all(section.figure is not None for section in figures)
    assert "Private as published?" in titles
    assert all(math.isfinite(r.papers_method) for r in report.results)


def test_the_verdict_counts_the_attacks_of_the_run(report):
    """4 scales x 5 ridges and 4 finite numbers of paths, 2 seeds each."""
    assert report.sections[-1].text[0].startswith("None of 48 attacks did better than the printed")


def test_an_attack_that_does_better_changes_the_verdict():
    held = Attacks(np.zeros((2, 2)), np.array([[True, True], [True, True]]))
    better = Attacks(np.zeros((2, 2)), np.array([[True, False], [False, False]]))
    one, other = Setting(0.5, 1.0), Setting(1.0, 1.0)
    assert verdict([(one, held)])[0].startswith("None of 2 attacks")
    text = verdict([(one, held), (other, better)])[0]
    assert text.startswith("NO: 1 of 4 attacks did better than the printed epsilon")
    assert "no: 2 of 4 attacks did better than the sharper one" in text


def test_an_attack_is_judged_by_its_own_rates():
    """The exact posterior, which allows everything, does better than one path may."""
    setting, rng = Setting(0.5, 1.0), np.random.default_rng(0)
    sides = shadow_sides(setting.r, 4000, rng)
    assert stays_within(setting, attack(setting, sides, rng)) == (True, True)
    exact = attack(Setting(0.5, 1.0, math.inf), sides, rng)
    weak = Setting(3.0, 1.0)
    assert weak.epsilon(paper=True) < 2
    assert stays_within(weak, exact) == (False, False)
