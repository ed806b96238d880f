"""Plain arrays are drawn as they are given, anyone who made them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from privgp.pictures import style
from privgp.pictures.curves import plot_release
from privgp.pictures.maps import EMPTY, HALF, far_from_inputs
from privgp.pictures.released import NOISE, TOTAL, Released

ANSWERED = np.array([[0.5, 0.5, 0.5], [2.0, 2.0, 2.0]])


def released(count: int, **changes) -> Released:
    given = Released(
        values=lambda X: (X.sum(axis=1), {NOISE: (X.sum(axis=1) - 0.1, X.sum(axis=1) + 0.3)}),
        extent=np.tile([0.0, 1.0], (count, 1)),
        points=7,
        held_at=np.full(count, 0.25),
        held="at a quarter",
        names=None,
        output="value",
        curve="mean",
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
    figure = plot_release(released(count))
    for ax in figure.axes:
        x, y = labelled(ax)["mean"].get_data()
        np.testing.assert_allclose(x, np.linspace(0.0, 1.0, 7))
        np.testing.assert_allclose(y, x + 0.25 * (count - 1))
        assert labelled(ax)["declared bounds of the outputs"].get_ydata()[0] == -1.0
        assert ("answered before" in labelled(ax)) == (count == 1)
    assert len(figure.axes) == count


@pytest.mark.parametrize("count", [1, 2])
def test_points_answered_outside_the_extent_are_not_drawn(count):
    ax = plot_release(released(count)).axes[0]
    assert labelled(ax)["answered before"].get_xydata().tolist() == [[0.5, 0.5]]


def certain(X):
    return X[:, 0], {TOTAL: (X[:, 0] - 0.1, X[:, 0] + 0.1)}


def uncertain(X):
    return X[:, 0], {TOTAL: (X[:, 0] - 0.1 - X[:, 1], X[:, 0] + 0.1 + 3.0 * X[:, 1])}


def test_uncertainty_has_a_map_of_its_own_and_leaves_the_colours_of_values_alone():
    sure, unsure = (
        plot_release(released(2, values=values, aspect=1.0)).axes for values in (certain, uncertain)
    )
    np.testing.assert_array_equal(
        *(axes[0].images[0].to_rgba(axes[0].images[0].get_array()) for axes in (sure, unsure))
    )
    half = unsure[1].images[0].get_array()
    np.testing.assert_allclose(half[:, 0], 0.1 + 2.0 * np.linspace(0.0, 1.0, 7))
    assert unsure[0].images[0].cmap is not unsure[1].images[0].cmap
    bars = [ax.get_xlabel() for ax in unsure[2:]]
    assert bars == ["mean value", f"{HALF} of value"]


def test_without_a_range_in_all_there_is_one_map():
    assert len(plot_release(released(2)).axes) == 2  # the map and its key


def test_on_given_axes_contours_show_the_uncertainty():
    figure = Figure()
    ax = figure.subplots()
    plot_release(released(2, values=uncertain), ax)
    assert len(ax.images) == 1
    assert HALF in [text.get_text() for text in ax.get_legend().get_texts()]


def feet(figure: Figure) -> str:
    return " ".join(text.get_text() for text in figure.texts)


def test_where_no_inputs_are_the_map_fades():
    rng = np.random.default_rng(0)
    corner = rng.uniform(0.0, 0.5, size=(200, 2))
    shown = released(2, values=certain, points=21, public_inputs=corner)
    far = far_from_inputs(shown, np.array([[0.25, 0.25], [0.9, 0.9]]))
    assert (far > 1.0).tolist() == [False, True]
    figure = plot_release(shown)
    assert EMPTY in feet(figure)
    for ax in figure.axes[:2]:
        fade = np.asarray(ax.images[1].get_alpha())
        assert fade[0, 0] == 0.0
        assert fade[-1, -1] == 1.0
    everywhere = np.stack(np.meshgrid(*[np.linspace(0.0, 1.0, 15)] * 2), axis=-1).reshape(-1, 2)
    full = plot_release(replace(shown, public_inputs=everywhere))
    assert EMPTY not in feet(full)
    assert far_from_inputs(replace(shown, public_inputs=None), corner) is None


def test_a_band_reaches_to_its_own_ends():
    """Uneven ends stay uneven, along a curve and at targets."""
    ax = plot_release(released(1)).axes[0]
    _, low, high = ax.lines[:3]
    np.testing.assert_allclose(high.get_ydata() - low.get_ydata(), 0.4)
    np.testing.assert_allclose(low.get_ydata(), np.linspace(0.0, 1.0, 7) - 0.1)

    def values(X):
        return X[:, 0], {TOTAL: (X[:, 0] - 0.5, X[:, 0] + [2.0, -0.25])}

    targets = np.array([[0.0], [1.0]])
    (bars,) = plot_release(released(1, values=values, targets=targets)).axes[0].collections
    ends = [segment[:, 1].tolist() for segment in bars.get_segments()]
    assert ends == [[-0.5, 2.0], [0.5, 1.0]]  # no bar beyond the mean where the end lies below it


def wide(**changes) -> Released:
    """A map much wider than high, whose output has a long name."""
    name = "malaria cases per unit of exposure"
    extent = np.array([[0.0, 5.0], [0.0, 1.0]])
    return released(2, values=uncertain, extent=extent, aspect=1.0, output=name, **changes)


def test_long_names_fit_along_the_keys_of_maps_above_each_other():
    figure = plot_release(wide())
    figure.draw_without_rendering()
    upper, lower = (ax.yaxis.label.get_window_extent() for ax in figure.axes[2:])
    assert upper.y0 > lower.y1
    assert lower.y0 > 0.0
    assert upper.y1 < figure._suptitle.get_window_extent().y0


def test_longitudes_around_the_globe_go_by_parts_of_a_right_angle():
    globe = np.array([[-176.0, 177.0], [60.0, 90.0]])
    shown = released(2, values=uncertain, extent=globe, aspect=4.0, ticks=("longitude", "latitude"))
    ticks = plot_release(shown).axes[0].get_xticks()
    assert {-90.0, 0.0, 90.0} <= {*ticks}


def test_a_legend_explains_the_line_and_the_dots_of_one_name():
    rise = np.linspace(0.0, 1.0, 20)
    for two_values in (0, 1):  # whichever panel comes first
        X = np.column_stack([rise, rise, rise])
        X[:, two_values] = np.arange(20) % 2
        (legend,) = plot_release(released(3, values=uncertain, public_inputs=X)).legends
        assert [text.get_text() for text in legend.get_texts()].count("mean") == 1
        markers = {line.get_marker() for line in legend.findobj(Line2D)}
        assert {"o", "None"} <= markers


def test_a_number_and_a_category_have_a_curve_for_every_level():
    ticks = (None, ("centre", "north", "south"))
    shown = released(2, values=uncertain, ticks=ticks, names=["hour", "region"], answered=None)
    figure = plot_release(replace(shown, extent=np.array([[0.0, 1.0], [0.0, 2.0]])))
    (ax,) = figure.axes
    curves = labelled(ax)
    for level, name in enumerate(ticks[1]):
        line = curves[f"region: {name}"]
        np.testing.assert_allclose(line.get_ydata(), np.linspace(0.0, 1.0, 7))
        assert ax.collections[level].get_paths()[0].vertices[:, 1].min() <= -0.1 - level + 1e-12
    assert ax.get_xlabel() == "hour"


def test_names_beside_curves_do_not_overlap():
    placed = style.spread([0.5, 0.5, 0.52, 0.9], np.array([0.1, 0.2, 0.1, 0.1]))
    order = np.argsort(placed)
    gaps = np.diff(placed[order])
    assert np.all(
        gaps
        >= 0.5
        * (np.array([0.1, 0.2, 0.1, 0.1])[order][1:] + np.array([0.1, 0.2, 0.1, 0.1])[order][:-1])
        - 1e-9
    )
    figure = plot_release(released(1, values=certain))
    figure.draw_without_rendering()
    ax = figure.axes[0]
    boxes = [text.get_window_extent() for text in ax.texts]
    assert len(boxes) >= 2
    assert all(text.x0 >= ax.bbox.x1 for text in boxes)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_the_guarantee_stands_at_the_foot_below_everything_else(count):
    X = np.random.default_rng(0).uniform(size=(30, count))
    shown = released(
        count, values=certain, protection="From 30 rows; protects all", public_inputs=X
    )
    figure = plot_release(shown)
    figure.draw_without_rendering()
    (foot,) = [text for text in figure.texts if "From 30 rows" in text.get_text()]
    lowest = [ax.get_tightbbox().y0 for ax in figure.axes]
    lowest += [legend.get_window_extent().y0 for legend in figure.legends]
    assert foot.get_window_extent().y1 <= min(lowest) + 1.0
    assert foot.get_window_extent().y0 >= 0.0
