"""Plain arrays are drawn as they are given, whoever made them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from privgp.pictures.curves import plot_released
from privgp.pictures.maps import HALF
from privgp.pictures.released import NOISE, TOTAL, Released

ANSWERED = np.array([[0.5, 0.5, 0.5], [2.0, 2.0, 2.0]])


def released(count: int, **changes) -> Released:
    given = Released(
        values=lambda X: (X.sum(axis=1), {NOISE: (X.sum(axis=1) - 0.1, X.sum(axis=1) + 0.3)}),
        extent=np.tile([0.0, 1.0], (count, 1)),
        points=7,
        held_at=np.full(count, 0.25),
        held="at a quarter",
        title="title",
        names=None,
        output="value",
        curve="curve",
        public_inputs=None,
        simulation=False,
        answered=(ANSWERED[:, :count], np.array([0.5, 9.0])),
        bounds=(-1.0, 4.0),
    )
    return replace(given, **changes)


def labelled(ax) -> dict:
    return {line.get_label(): line for line in ax.lines}


@pytest.mark.parametrize("count", [1, 3])
def test_a_slice_varies_one_input_and_holds_the_others(count):
    figure = plot_released(released(count))
    for ax in figure.axes:
        x, y = labelled(ax)["curve"].get_data()
        np.testing.assert_allclose(x, np.linspace(0.0, 1.0, 7))
        np.testing.assert_allclose(y, x + 0.25 * (count - 1))
        assert labelled(ax)["declared bounds of the outputs"].get_ydata()[0] == -1.0
        assert ("answered before" in labelled(ax)) == (count == 1)
    assert len(figure.axes) == count


@pytest.mark.parametrize("count", [1, 2])
def test_points_answered_outside_the_extent_are_not_drawn(count):
    ax = plot_released(released(count)).axes[0]
    assert labelled(ax)["answered before"].get_xydata().tolist() == [[0.5, 0.5]]


@pytest.mark.parametrize(("name", "bars"), [(NOISE, 1), (TOTAL, 0)])
def test_a_map_fades_where_the_range_in_all_is_known(name, bars):
    def values(X):
        return X[:, 0], {name: (X[:, 0] - 0.1 * X[:, 1], X[:, 0] + 0.2 + X[:, 1])}

    figure = plot_released(released(2, values=values))
    colours = figure.axes[0].images[0].get_array()
    assert colours.shape == ((7, 7) if bars else (7, 7, 3))
    assert len(figure.axes) == 1 + bars  # the key of a fading map is inside its panel
    if not bars:
        assert (colours[-1].min(axis=1) > colours[0].min(axis=1)).all()


def test_a_band_reaches_to_its_own_ends():
    """Uneven ends stay uneven, along a curve and at targets."""
    ax = plot_released(released(1)).axes[0]
    _, low, high = ax.lines[:3]
    np.testing.assert_allclose(high.get_ydata() - low.get_ydata(), 0.4)
    np.testing.assert_allclose(low.get_ydata(), np.linspace(0.0, 1.0, 7) - 0.1)

    def values(X):
        return X[:, 0], {TOTAL: (X[:, 0] - 0.5, X[:, 0] + [2.0, -0.25])}

    targets = np.array([[0.0], [1.0]])
    (bars,) = plot_released(released(1, values=values, targets=targets)).axes[0].collections
    ends = [segment[:, 1].tolist() for segment in bars.get_segments()]
    assert ends == [[-0.5, 2.0], [0.5, 1.0]]  # no bar beyond the mean where the end lies below it


def test_the_key_of_a_map_says_what_the_fading_means():
    def values(X):
        return X[:, 0], {TOTAL: (X[:, 0] - X[:, 1], X[:, 0] + 3.0 * X[:, 1])}

    figure = plot_released(released(2, values=values))
    assert HALF in figure.legends[0].get_texts()[0].get_text()
    (key,) = figure.axes[0].child_axes
    assert "90%" in key.get_xlabel()
    assert key.get_xticks()[-1] == 0.5  # half the range of the means: beyond, all is white
    contours = figure.axes[0].collections[0]
    assert contours.zmax == 2.0
