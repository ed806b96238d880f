"""Several released functions of the same inputs, one above the other."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from privgp.pictures import style
from privgp.pictures.curves import plot_released
from privgp.pictures.released import Released

HEIGHTS = (2.6, 3.6)  # of a curve, of a map


def plot_each(released: Sequence[Released], figure: style.Canvas | None = None) -> Figure:
    """The picture of every function, in a part of the figure of its own."""
    inputs = len(released[0].extent)
    height = HEIGHTS[inputs - 1] if inputs <= len(HEIGHTS) else 2.2 * (-(-inputs // 2)) + 0.8
    is_ours = figure is None
    figure = style.new_figure(height * len(released)) if figure is None else figure
    parts = figure.subfigures(len(released), 1, squeeze=False).ravel()
    for one, part in zip(released, parts, strict=True):
        plot_released(one, figure=part, legend=not is_ours)
    first = parts[0].axes[0]
    if is_ours:
        style.legend([first], below=True)
    return style.root_of(first)
