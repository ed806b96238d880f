"""Several released functions of the same inputs, one above the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from matplotlib.figure import Figure

from privgp.pictures import style
from privgp.pictures.curves import plot_release
from privgp.pictures.released import Released

HEIGHTS = (2.6, 4.2)  # of a curve, of a map


def plot_each(released: Sequence[Released], figure: style.Canvas | None = None) -> Figure:
    """The picture of every function, in a part of the figure of its own.

    Parameters
    ----------
    released
        Functions of the same inputs.
    figure
        The figure to draw in; a new one by default.

    """
    inputs = len(released[0].extent)
    height = HEIGHTS[inputs - 1] if inputs <= len(HEIGHTS) else 2.2 * (-(-inputs // 2)) + 0.8
    is_ours = figure is None
    figure = style.new_figure(height * len(released)) if figure is None else figure
    parts = figure.subfigures(len(released), 1, squeeze=False).ravel()
    for place, (one, part) in enumerate(zip(released, parts, strict=True)):
        shown = one if place == 0 else replace(one, protection="")
        plot_release(shown, figure=part, legend=not is_ours)
    axes = parts[0].axes
    if is_ours:
        style.legend(axes, below=True)
    return style.root_of(axes[0])
