"""The papers' selection: why it is not private, and what their figure 4 shows."""

from __future__ import annotations

import math

import numpy as np
import pytest

from papers.lengthscales.report import lengthscale_probabilities, run
from papers.lengthscales.selection import counterexample, moved_and_bound, papers_choice
from papers.shared.data import MissingData
from papers.shared.report import Request
from privgp.plan.search.folds import folds_of
from privgp.vault.select import root_utilities
from tests.conftest import DATA, real_data


def test_one_output_moves_the_papers_utility_more_than_twice_as_far_as_they_say():
    moved, bound = moved_and_bound()
    assert moved == pytest.approx(75.75, abs=0.01)
    assert bound == pytest.approx(33.75, abs=0.01)


def test_the_root_keeps_its_bound_there():
    """The papers' y of [0, 1] about a prior mean of 0 is ours of bounds (-1, 1), moved by half."""
    X, y, splits, model = counterexample()
    found = []
    for y[0] in (0.0, 1.0):
        utilities, bound = root_utilities(y, (-1.0, 1.0), [(folds_of(model, X, splits), 0.0)])
        found.append(utilities[0])
    assert abs(found[1] - found[0]) == pytest.approx(4.976, abs=0.001)
    assert bound / 2 == pytest.approx(5.075, abs=0.001)


def test_their_choice_says_that_it_protects_nobody():
    _, guarantee = papers_choice(np.zeros(3), np.ones(3), 1.0, np.random.default_rng(0))
    assert guarantee.is_simulation
    assert "NOT PRIVATE" in guarantee.describe()


def test_tighter_privacy_prefers_longer_lengthscales(kung):
    found = lengthscale_probabilities(*kung, epsilons=(math.inf, 0.5, 0.2))
    for which in (found.papers, found.default):
        np.testing.assert_allclose(which.sum(axis=1), 1.0)
        likely = found.most_probable(which)
        assert likely == sorted(likely)
        assert likely[0] < likely[-1]
        mean = which @ np.log(found.lengthscales)
        assert mean[0] < mean[1] < mean[2]


def test_the_report_has_a_number_for_every_level_of_privacy():
    real_data("kung.csv")
    told = []
    report = run(Request(DATA, quick=True, progress=lambda share, doing: told.append(share)))
    assert len(report.results) == 9
    best, private, equal = (each.papers_method for each in report.results[6:])
    assert 5.0 < best < private < equal < 60.0
    assert all(r.papers_method and r.default_method for r in report.results[:5])
    assert report.results[5].papers_method == pytest.approx(75.75 / 33.75, abs=1e-3)
    assert told == sorted(told)
    assert told[-1] == 1.0
    assert report.sections[0].figure is not None


def test_without_data_it_says_so(tmp_path):
    with pytest.raises(MissingData, match=r"kung\.csv"):
        run(Request(tmp_path))
