"""Pictures of an excursion set: a band over one input, a boundary over two."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from privgp.pictures import style
from privgp.pictures.numbers import number
from privgp.pictures.released import input_names

if TYPE_CHECKING:
    from privgp.release.excursions import Excursion

SHOWN_PATHS = 20


def plot_excursion(excursion: Excursion) -> Figure:
    count, promise = excursion.points.shape[1], excursion.guarantee
    if count > 2:
        raise ValueError(f"an excursion set over {count} inputs cannot be drawn: at most two.")
    ax = style.new_figure(3.2 if count == 1 else 4.6).subplots()
    draw = _band if count == 1 else _map
    draw(ax, excursion)
    style.set_labels(ax, *[*input_names(excursion.names, count), "value"][:2])
    for axis in (ax.xaxis, ax.yaxis):
        style.set_ticks(axis, None)
    budget = style.budget_text(promise.epsilon, promise.delta)
    title = f"Where the released function is at least {number(excursion.threshold)}"
    title += f"\nProtects {promise.unit} with {budget}"
    style.set_title(ax, title, simulation=promise.is_simulation)
    style.legend([ax], below=True)
    return style.root_of(ax)


def _band(ax: Axes, excursion: Excursion) -> None:
    """The paths, and the set as a band behind them."""
    paths = excursion.paths[:SHOWN_PATHS]
    order = np.argsort(excursion.points[:, 0], kind="stable")
    x = excursion.points[order, 0]
    lines = ax.plot(x, paths[:, order].T, color=style.BLUE, lw=0.8, alpha=0.3 + 0.7 / len(paths))
    lines[0].set_label("released paths")
    ax.axhline(excursion.threshold, color=style.BLACK, lw=0.8, ls="--", label="threshold")
    ax.fill_between(x, 0.0, 1.0, where=excursion.inside[order], step="mid", color=style.ORANGE,
        alpha=0.3, lw=0, transform=ax.get_xaxis_transform(), label="excursion set")  # fmt: skip


def _map(ax: Axes, excursion: Excursion) -> None:
    """The set's points, and its boundary through the triangles between all points."""
    (x, y), inside = excursion.points.T, excursion.inside
    ax.plot(x[inside], y[inside], "s", color=style.ORANGE, ms=3, label="excursion set")
    ax.plot(x[~inside], y[~inside], ".", color=style.SKY, ms=2, label="outside")
    spread = len(x) > 3 and np.linalg.matrix_rank(excursion.points - excursion.points[0]) == 2
    if spread and 0 < inside.sum() < len(inside):
        height = excursion.share - excursion.vote
        if excursion.vote == 0.5 and len(excursion.paths) == 1:
            height = excursion.paths[0] - excursion.threshold
        ax.tricontour(x, y, height, levels=[0.0], colors=style.BLACK, linewidths=1.2)
        ax.plot([], [], color=style.BLACK, lw=1.2, label="boundary")
