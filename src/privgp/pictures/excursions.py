"""Pictures of an excursion set: a band over one input, a boundary over two."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from privgp.pictures import style
from privgp.types import Array

SHOWN_PATHS = 20


def plot_excursion(
    points: Array,
    inside: Any,
    *,
    paths: Array,
    threshold: float,
    height: Array,
    names: Sequence[str] | None,
    title: str,
    simulation: bool,
) -> Figure:
    """One input: paths (paths, points), threshold and the set as a band; two: set and boundary.

    ``inside``: whether a point belongs to the set; ``height``: (points,), zero on the boundary.
    """
    count = points.shape[1]
    if count > 2:
        raise ValueError(f"an excursion set over {count} inputs cannot be drawn: at most two.")
    ax = style.new_figure(3.2 if count == 1 else 4.6).subplots()
    if count == 1:
        _band(ax, points[:, 0], inside, paths[:SHOWN_PATHS], threshold)
    else:
        _map(ax, points, inside, height)
    style.set_labels(ax, *[*style.input_names(names, count), "value"][:2])
    style.set_title(ax, title, simulation=simulation)
    style.legend([ax], below=True)
    return style.root_of(ax)


def _band(ax: Axes, x: Array, inside: Any, paths: Array, threshold: float) -> None:
    """The paths, and the set as a band behind them."""
    order = np.argsort(x, kind="stable")
    opacity = 0.3 + 0.7 / len(paths)
    lines = ax.plot(x[order], paths[:, order].T, color=style.BLUE, lw=0.8, alpha=opacity)
    lines[0].set_label("released paths")
    ax.axhline(threshold, color=style.BLACK, lw=0.8, ls="--", label="threshold")
    ax.fill_between(x[order], 0.0, 1.0, where=inside[order], step="mid", color=style.ORANGE,
        alpha=0.3, lw=0, transform=ax.get_xaxis_transform(), label="excursion set")  # fmt: skip


def _map(ax: Axes, points: Array, inside: Any, height: Array) -> None:
    """The set's points, and its boundary through the triangles between all points."""
    x, y = points.T
    ax.plot(x[inside], y[inside], "s", color=style.ORANGE, ms=3, label="excursion set")
    ax.plot(x[~inside], y[~inside], ".", color=style.SKY, ms=2, label="outside")
    spread = len(x) > 3 and np.linalg.matrix_rank(points - points[0]) == 2
    if spread and 0 < inside.sum() < len(inside):
        ax.tricontour(x, y, height, levels=[0.0], colors=style.BLACK, linewidths=1.2)
        ax.plot([], [], color=style.BLACK, lw=1.2, label="boundary")
