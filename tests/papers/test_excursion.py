"""The excursion tables and figures: draws, scores, printed numbers, and one small run of everything."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import Matern

from papers.excursion import report as excursion
from papers.excursion import rows
from papers.excursion.london import ACROSS, London, flats, frame, hexagons, mapped
from papers.excursion.map import london
from papers.excursion.posteriors import FieldPosteriors
from papers.excursion.printed import (
    DIMENSION,
    ENTROPY,
    EPSILON,
    GAP,
    OPEN,
    PATH,
    PRIVATE_DIMENSION,
    SPREAD,
)
from papers.excursion.rows import Effort, Setting, judged, middle
from papers.excursion.tables import LAYOUTS
from papers.excursion.tasks import (
    line_draws,
    overlap,
    path_overlaps,
    plume_draws,
    posteriors,
    thin,
)
from papers.shared.data import MissingData
from papers.shared.report import Request
from privgp.models.function import tune
from privgp.models.function.tune import ExcursionTask, tune_for
from tests.conftest import real_data
from tests.papers.test_reports import assert_sound

LAW = {"domain": [(0.0, 1.0)], "y_bounds": (-1.0, 1.0), "delta": 0.01}


@pytest.fixture(scope="module")
def small_grids():
    """Few settings to try, one process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tune, "LENGTHS", np.array([0.1, 0.5]))
        patch.setattr(tune, "RIDGES", np.array([0.2, 1.0, 5.0, 15.0]))
        search = {"lengthscales": [0.1, 0.5], "regularisations": [0.2, 1.0, 5.0]}
        patch.setattr(rows, "LINE_SEARCH", search)
        patch.setattr(rows, "PLANE_SEARCH", {**search, "regularisations": [0.3, 1.5, 8]})
        patch.setattr(rows, "ROUNDS", 0)
        patch.setattr("papers.shared.parallel.processes", lambda: 1)
        yield patch


@pytest.fixture(scope="module")
def report(small_grids):
    """Every table and figure but London's on a handful of draws, without the regressor."""
    told: list[float] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "_regressor", lambda *given: (0.5, 0.5))
        patch.setattr(excursion, "QUICK", Effort(3, 3, 8, 3, 1))
        patch.setattr(excursion, "QUICK_LARGE", Effort(3, 3, 6, 3, 1))
        made = excursion.run(Request(None, True, lambda share, doing: told.append(share)))
    assert told == sorted(told)
    assert told[-1] == 1.0
    return made


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


def test_a_quarter_of_the_functions_never_change_sign():
    """As the report says: 2 asin(1 / e) / pi; the grid misses a few crossings."""
    truth = line_draws(4000, 1, 0.3, 400, np.random.default_rng(1)).truth
    never = np.mean((truth > 0).all(axis=1) | (truth < 0).all(axis=1))
    exact = 2.0 / math.pi * math.asin(math.exp(-1.0))
    assert never == pytest.approx(exact, abs=0.02 + 5 * 0.5 / 4000**0.5)
    assert f"{exact:.0%}" == "24%"


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


def test_posteriors_are_judged_as_the_search_judges_them(small_grids):
    draws = line_draws(30, 40, 0.2, 30, np.random.default_rng(2))
    task = ExcursionTask(score="cross-entropy")
    tuned = tune_for(task, draws, None, rounds=0, **LAW)
    found = posteriors(draws, tuned)
    assert found.loss.mean() == pytest.approx(tuned.loss)
    assert found.probability.shape == (30, 30)
    assert np.all((found.dimension > 0) & (found.dimension < 40))


def test_a_row_has_its_parts_in_order(small_grids):
    row = judged(Setting(40, 0.1, 0.01, Effort(4, 4, 30, 4, 1)))
    assert row.papers[OPEN][0] > max(0.7, row.papers[PATH][0])
    assert 0.5 < row.default[PATH][0] <= 1.0
    assert row.default[PATH][0] > row.papers[PATH][0] - 0.05
    assert row.default[EPSILON][0] < row.papers[EPSILON][0]
    assert row.papers[PRIVATE_DIMENSION][0] < row.papers[DIMENSION][0]
    assert row.papers[ENTROPY][0] > 0.0
    assert row.papers_release.smoothing is None
    for release in (row.papers_release, row.default_release):
        assert release.tuned.epsilon <= 10.0
    for cell in (*row.papers.values(), *row.default.values()):
        assert len(cell) == 1 or cell[1] <= cell[0] <= cell[2]


def test_medians_and_quartiles():
    assert middle([5.0, 1.0, 2.0, 3.0, 4.0]) == (3.0, 2.0, 4.0)


def test_the_printed_tables_agree_where_they_should_and_differ_where_the_report_says():
    one, two, three, four = LAYOUTS
    for layout in LAYOUTS:
        for quantity, cells in layout.printed.items():
            assert len(cells) == len(layout.columns)
            for cell in cells:
                assert len(cell) == 1 or (len(cell) == 3 and cell[1] <= cell[0] <= cell[2])
            assert any(len(c) == 3 for c in cells) == (layout is not one and quantity != EPSILON)
    differ = {
        (q, layout.columns[k])
        for layout, q in ((one, q) for q in one.printed)
        for k, cell in enumerate(one.printed[q])
        if cell[0] != two.printed[q][k][0]
    }
    assert differ == {(DIMENSION, 0.1), (PATH, 0.5)}
    assert all(two.printed[q][2] == three.printed[q][1] for q in two.printed)
    assert three.printed[GAP][0] == two.printed[GAP][1]
    assert SPREAD in three.printed
    assert SPREAD in four.printed


def test_the_report_has_every_table_and_figure(report):
    assert_sound(report)
    titles = [section.title for section in report.sections]
    for name in ("Table 1", "Table 2", "Table 3", "Table 4", "Figure 4", "Figure 7", "Figure 8"):
        assert any(title.startswith(name) for title in titles)
    for section in report.sections:
        assert (section.table is not None) == section.title.startswith("Table")
        assert (section.figure is not None) == section.title.startswith(("Figure 7", "Figure 8"))
        if section.table is not None:
            assert {len(row) for row in section.table.rows} == {len(section.table.columns)}
    assert "tables 1 to 4, figures 4, 7 and 8" in report.title
    (missing,) = (s.text[0] for s in report.sections if s.title.startswith("Figure 4"))
    assert "is not there" in missing


def test_every_printed_number_of_a_column_that_was_run_is_in_the_results(report):
    found = {r.quantity: r for r in (*report.results, *report.details)}
    columns = {1: 4, 2: 4, 3: 2, 4: 2}  # a short run leaves some out
    for layout in LAYOUTS:
        names = [q for q in found if q.startswith(f"table {layout.number}: ")]
        cells = sum(
            len(cell)
            for cells in layout.printed.values()
            for column, cell in zip(layout.columns, cells, strict=True)
            if f"table {layout.number}: {EPSILON}, {layout.name(column)}" in found
        )
        assert len(names) == cells
        assert sum(EPSILON in q for q in names) == columns[layout.number]
    for result in found.values():
        if result.quantity.startswith("table"):
            assert result.paper is not None
            assert math.isfinite(result.papers_method)
    gap = found["table 2: upper quartile of gap of the IoU (%), noise to signal 0.11"]
    assert gap.paper == 14.8
    assert gap.default_method is not None


def test_london_is_cut_into_hexagons():
    table = flats(real_data("london_prices.csv.gz"))
    centres, y = hexagons(table, frame(table))
    assert len(centres) == len(y) > 500
    assert np.abs(y).max() <= 1.0
    assert len(np.unique(centres, axis=0)) == len(centres)
    assert centres.min() >= 0.0
    assert centres.max() <= 1.0


def test_the_map_of_london_counts_regions_and_islands():
    """Seven hexagons in a row: a region of three, a gap, an island of two, a gap, one more."""
    centres = np.stack([np.arange(8) / ACROSS, np.zeros(8)], axis=1)
    known = np.array([1, 1, 1, 0, 1, 1, 0, 1])
    paths = np.array([[1, 1, 0, 0, 1, 0, 0, 0], [1, 0, 0, 0, 0, 0, 0, 0]])
    found = London(centres, known - 0.5, known - 0.5, paths - 0.5, paths - 0.5, 60.0)
    assert [part.tolist() for part in found.parts] == [[0, 1, 2], [4, 5], [7]]
    shares = found.kept(found.papers)
    assert shares == pytest.approx(((3 / 6 + 1 / 6) / 2, 3 / 6, 1 / 4))
    alone = London(centres[:3], np.ones(3), np.ones(3), np.ones((1, 3)), np.ones((1, 3)), 60.0)
    assert alone.kept(alone.papers)[:2] == (1.0, 1.0)
    assert math.isnan(alone.kept(alone.papers)[2])


def test_private_paths_keep_the_centre_of_london_and_lose_islands(small_grids):
    table = flats(Path(real_data("london_prices.csv.gz")))
    small_grids.setattr(tune, "RIDGES", np.array([0.2, 1.0, 5.0, 15.0, 60.0]))
    found = mapped(table, draws=1, paths=4)
    results, section = london(found)
    assert len(found.parts) > 5
    for paths in (found.papers, found.default):
        _, centre, islands = found.kept(paths)
        assert centre > islands + 0.2
    assert section.figure is not None
    assert len(results) == 3


def test_a_broken_file_of_sales_is_said_in_one_sentence(tmp_path):
    (tmp_path / "london_prices.csv.gz").write_bytes(b"not a table")
    with pytest.raises(MissingData, match="cannot be read as the table"):
        flats(tmp_path / "london_prices.csv.gz")


def test_posteriors_along_a_line_are_those_of_any_kernel():
    draws = line_draws(6, 15, 0.3, 10, np.random.default_rng(3))
    for lengthscale, ridge in ((0.08, 0.05**2), (0.3, 1.0), (1.0, 25.0)):
        kernel = Matern(lengthscale, nu=0.5)
        line, field = draws.posteriors(kernel), FieldPosteriors(draws, kernel)
        for here, there in zip(line.at(ridge), field.at(ridge), strict=True):
            assert here == pytest.approx(there, abs=1e-11)
        assert line.effective_dimension(ridge) == pytest.approx(field.effective_dimension(ridge))
        count = 20_000
        paths = line.deviations(ridge, count, np.random.default_rng(4))
        exact = field._prior - np.einsum(
            "jti,jsi->jts", field._crosses / (field._spectra + ridge)[:, None], field._crosses
        )
        found = paths.transpose(0, 2, 1) @ paths / count
        assert np.abs(found - exact).max() < 6.0 * np.sqrt(2.0 / count)
        assert np.abs(paths.mean(axis=1)).max() < 6.0 / np.sqrt(count)


def test_tuning_uses_some_of_the_points_on_which_sets_are_judged():
    draws = line_draws(2, 5, 0.3, 40, np.random.default_rng(5))
    few = thin(draws, 10)
    assert few.points[:, 0] == pytest.approx(draws.points[::4, 0])
    assert few.truth == pytest.approx(draws.truth[:, ::4])
    assert isinstance(few, type(draws))
