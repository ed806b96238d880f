"""The excursion tables: their draws, their scores, and one small run of a row."""

from __future__ import annotations

import numpy as np
import pytest

from privgp.models import tune
from privgp.models.tune import ExcursionTask, tune_for
from privgp.reproduce.excursion import LINE_FILTERS, Effort, judged
from privgp.reproduce.excursion_london import _flats, _frame, _hexagons
from privgp.reproduce.excursion_tasks import line_draws, overlap, path_overlaps, plume_draws
from tests.conftest import real_data

LAW = {"domain": [(0.0, 1.0)], "y_bounds": (-1.0, 1.0), "delta": 0.01}


def test_draws_keep_to_their_bounds_and_have_their_covariance():
    draws = line_draws(4000, 3, 0.3, 5, np.random.default_rng(0))
    assert np.abs(draws.outputs).max() <= 1.0
    assert np.allclose(np.abs(draws.truth).max(axis=1) <= 0.7 + 1e-12, True)
    # signs of a Gaussian vector know its correlation: P(same sign) = 1/2 + asin(rho) / pi
    same = np.mean(np.sign(draws.truth[:, 0]) == np.sign(draws.truth[:, -1]))
    assert same == pytest.approx(0.5 + np.arcsin(np.exp(-1.0)) / np.pi, abs=5 * 0.5 / 4000**0.5)
    plumes = plume_draws(3, 20, 0.3, 9, np.random.default_rng(0))
    assert np.abs(plumes.outputs).max() <= 1.0
    assert plumes.truth.max() == pytest.approx(0.7)
    assert plumes.truth.min() == pytest.approx(-0.7)


def test_overlap_is_intersection_over_union():
    truth = np.array([True, True, False, False])
    found = np.array([[True, False, True, False], [True, True, False, False], [False] * 4])
    assert overlap(found, truth) == pytest.approx([1 / 3, 1.0, 0.0])
    assert overlap(np.zeros(4, bool), np.zeros(4, bool)) == 1.0


def test_many_paths_recover_what_paths_of_the_model_recover():
    rng = np.random.default_rng(1)
    draws = line_draws(2, 40, 0.2, 30, rng)
    tuned = tune_for(ExcursionTask(), draws, None, rounds=0, **LAW)
    means, _ = path_overlaps(draws, tuned, 3000, None, rng)
    for j in range(2):
        model = tuned.paths.set_params(n_paths=3000, random_state=j)
        paths = model.fit(draws.inputs[j], draws.outputs[j]).release(draws.points)
        found = overlap(paths >= 0.0, draws.truth[j] >= 0.0)
        assert found.mean() == pytest.approx(means[j], abs=7 * found.std() / 3000**0.5 + 1e-3)


def test_a_row_has_its_parts_in_order(monkeypatch):
    monkeypatch.setattr(tune, "LENGTHS", np.array([0.1, 0.5]))
    monkeypatch.setattr(tune, "RIDGES", np.array([0.2, 1.0, 5.0]))
    row = judged(
        lambda count, rng: line_draws(count, 40, 0.1, 40, rng),
        Effort(4, 4, 30, 4, 1),
        LAW,
        LINE_FILTERS,
    )
    assert 0.5 < row.default <= 1.0
    assert row.default > row.papers - 0.05
    assert row.free > 0.85
    assert row.tuned.epsilon <= 10.0


def test_london_is_cut_into_hexagons():
    table = _flats(real_data("london_prices.csv.gz"))
    centres, y = _hexagons(table, _frame(table))
    assert len(centres) == len(y) > 500
    assert np.abs(y).max() <= 1.0
    assert len(np.unique(centres, axis=0)) == len(centres)
    assert centres.min() >= 0.0
    assert centres.max() <= 1.0
