"""Figure 2 of the papers: what its caption says, with the numbers of the figure that is drawn."""

from __future__ import annotations

import numpy as np
import pytest

from papers.kung.two_points import (
    CHANGE,
    area_ratio,
    figure_2,
    figure_2_results,
    figure_2_text,
    two_points,
)

POINTS = two_points()


def test_every_statement_of_the_caption_holds():
    *statements, _ = figure_2_text(POINTS)
    assert len(statements) == 5
    assert all(text.startswith("Holds: ") for text in statements)


def test_moves_are_columns_of_the_cloaking_matrix():
    for output in (0, 1):
        changed = np.eye(2)[output] * CHANGE
        assert POINTS.weights @ changed == pytest.approx(POINTS.move(output))


def test_cloaking_encloses_both_moves_and_is_smaller():
    assert [POINTS.distance(j, POINTS.cloak) for j in (0, 1)] == pytest.approx([1.0, 1.0], abs=1e-3)
    assert max(POINTS.distance(j, POINTS.prior) for j in (0, 1)) <= 1.0 + 1e-9
    assert area_ratio(POINTS) > 1.5
    assert len(figure_2_results(POINTS)) == 5


def test_there_are_eight_panels():
    names = [ax.get_title("left") for ax in figure_2(POINTS).axes]
    assert [name[:1] for name in names] == ["A", "C", "E", "G", "B", "D", "F", "H"]
