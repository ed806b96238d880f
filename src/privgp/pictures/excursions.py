"""Pictures of an excursion set: a band over one input, a boundary over two."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from privgp.pictures import style as style
from privgp.release.excursions import Excursion
from privgp.types import Array

SHOWN_PATHS = 20


def plot_excursion(found: Excursion) -> Figure:
    """One input: paths, threshold and the set as a band; two: share of the paths and boundary."""
    inputs = found.points.shape[1]
    if inputs > 2:
        raise ValueError(f"an excursion set over {inputs} inputs cannot be drawn: at most two.")
    names = style.input_names(found.names, inputs)
    figure = style.new_figure(3.2 if inputs == 1 else 4.6)
    ax = figure.subplots()
    if inputs == 1:
        order = np.argsort(found.points[:, 0], kind="stable")
        x, paths = found.points[order, 0], found.paths[:SHOWN_PATHS, order]
        for k, path in enumerate(paths):
            ax.plot(x, path, color=style.BLUE, lw=0.8, alpha=0.3 + 0.7 / len(paths),
                label="released paths" if k == 0 else None)  # fmt: skip
        ax.axhline(found.threshold, color=style.BLACK, lw=0.8, ls="--", label="threshold")
        ax.fill_between(x, 0.0, 1.0, where=found.inside[order], step="mid", color=style.ORANGE,
            alpha=0.3, lw=0, transform=ax.get_xaxis_transform(), label="excursion set")  # fmt: skip
        style.set_labels(ax, names[0], "value")
    else:
        x, y = found.points.T
        _map(ax, found, x, y)
        style.set_labels(ax, names[0], names[1])
    promise = found.guarantee
    style.set_title(ax, f"at least {style.number(found.threshold)}: "
        f"{style.budget_text(promise.epsilon, promise.delta)}, {promise.unit}",
        simulation=promise.is_simulation)  # fmt: skip
    style.legend([ax], below=True)
    return figure


def _map(ax: Axes, found: Excursion, x: Array, y: Array) -> None:
    """The set's points, and its boundary through the triangles between all points."""
    inside = found.inside
    ax.plot(x[inside], y[inside], "s", color=style.ORANGE, ms=3, label="excursion set")
    ax.plot(x[~inside], y[~inside], ".", color=style.SKY, ms=2, label="outside")
    spread = len(x) > 3 and np.linalg.matrix_rank(found.points - found.points[0]) == 2
    if spread and 0 < inside.sum() < len(inside):
        mean = found.paths.mean(axis=0) if found.vote == 0.5 and len(found.paths) == 1 else None
        height = found.share - found.vote if mean is None else mean - found.threshold
        ax.tricontour(x, y, height, levels=[0.0], colors=style.BLACK, linewidths=1.2)
        ax.plot([], [], color=style.BLACK, lw=1.2, label="boundary")
    ax.set_aspect("auto")
