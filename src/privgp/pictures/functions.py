"""A private function as a curve, a map, or slices, with the public std of its noise.

Drawing asks the function at the points of a grid: they are released, at no further cost, and
remembered like any other answers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from privgp.pictures import style as style
from privgp.privacy.guarantee import Guarantee
from privgp.types import Array

CURVE_POINTS, SLICE_POINTS, MAP_POINTS = 200, 80, 32  # 32 x 32 on a map
PANEL_ROOM = 22  # characters of a label
NOISE = "90% range of the privacy noise"
BOUNDS = "declared bounds of the outputs"
BEFORE = "answered before"


@dataclass(frozen=True)
class Shown:
    """What a picture needs of a function, all of it public.

    ``extent``: (inputs, 2), from where to where; ``answered``: the points answered before, and
    their answers; ``inputs``: public inputs, if there are any; ``noise_std``: std of the noise at
    points; ``release``: asks the function.
    """

    release: Callable[[Array], Array]
    noise_std: Callable[[Array], Array]
    largest_std: float
    extent: Array
    inputs: Array | None
    answered: tuple[Array, Array]
    bounds: tuple[float, float]
    names: Sequence[str] | None
    guarantee: Guarantee


def plot_function(
    function: Shown,
    ax: Axes | None = None,
    *,
    figure: style.Canvas | None = None,
    output: str = "output",
) -> Figure:
    """Draw a function over the range of its public inputs, or over its declared domain.

    One input: the released curve with the 90% band of its noise, in which the prediction without
    noise lies, point by point; and the points answered before. Two inputs: a map. More: one slice
    per input, the others in the middle of their range.

    ``ax``: where to draw, for one panel; ``figure``: for any number. ``output``: the name on the
    axis. Asks for 200 points, 1,024 on a map, 80 per slice: ValueError if so many are not left.
    """
    count = len(function.extent)
    if ax is not None and count > 2:
        raise ValueError(f"{count} inputs are drawn in {count} panels: give figure, not ax.")
    names = style.input_names(function.names, count)
    columns = 1 if count <= 2 else 2 if count <= 4 else 3
    if ax is not None:
        axes = [ax]
    else:
        panels, height = (1, 3.4) if count <= 2 else (count, 2.0)
        axes = style.panels(figure, panels, columns, height)
    guarantee = function.guarantee
    text = style.budget_text(guarantee.epsilon, guarantee.delta)
    text += f"; std of the noise {style.number(function.largest_std)}"
    simulation = guarantee.is_simulation
    if count == 2:
        _map(axes[0], function, output)
        style.set_labels(axes[0], names[0], names[1])
    else:
        for j, panel in enumerate(axes):
            _slice(panel, function, j)
            first = j % columns == 0
            room = 40 if count == 1 else PANEL_ROOM
            style.set_labels(panel, names[j], output if first else "", room=room)
            if count > 1:
                panel.xaxis.set_major_locator(MaxNLocator(5))
    if count <= 2:
        style.set_title(axes[0], text, simulation=simulation)
    else:
        what = "Each panel varies one input; the others are held in the middle of their range"
        style.set_title(axes[0].figure, f"{text}\n{what}", simulation=simulation)
    style.legend(axes, below=ax is None and figure is None)
    return style.root_of(axes[0])


def _slice(ax: Axes, function: Shown, j: int) -> None:
    """The curve along input j with the band of its noise."""
    extent = function.extent
    low, high = extent[j]
    x = np.linspace(low, high, CURVE_POINTS if len(extent) == 1 else SLICE_POINTS)
    X = np.tile(extent.mean(axis=1), (len(x), 1))
    X[:, j] = x
    values, reach = function.release(X), style.REACH * function.noise_std(X)
    ax.plot(x, values, color=style.BLACK, lw=1.6, zorder=3, label="released function")
    ax.fill_between(
        x, values - reach, values + reach, color=style.SKY, alpha=0.35, lw=0, label=NOISE
    )
    for side in (-1.0, 1.0):
        ax.plot(x, values + side * reach, color=style.BLUE, lw=0.6, ls="--")
    for number, bound in enumerate(function.bounds):
        ax.axhline(bound, color=style.BLACK, lw=0.8, ls=":", label=None if number else BOUNDS)
    if len(extent) == 1:
        points, answers = function.answered
        inside = (points[:, 0] >= x[0]) & (points[:, 0] <= x[-1])
        if inside.any():
            ax.plot(
                points[inside, 0],
                answers[inside],
                "o",
                color=style.VERMILION,
                ms=3.5,
                zorder=4,
                label=BEFORE,
            )
    if function.inputs is not None:
        style.rug(ax, function.inputs[:, j])
    ax.set_xlim(x[0], x[-1])


def _map(ax: Axes, function: Shown, output: str) -> None:
    """The values over two inputs as colour."""
    x, y = (np.linspace(low, high, MAP_POINTS) for low, high in function.extent)
    grid = np.stack(np.meshgrid(x, y), axis=-1)
    values = function.release(grid.reshape(-1, 2)).reshape(grid.shape[:2])
    image = ax.imshow(
        values,
        extent=(x[0], x[-1], y[0], y[-1]),
        origin="lower",
        aspect="auto",
        interpolation="bilinear",
        cmap=style.SEQUENTIAL,
    )
    bar = style.root_of(ax).colorbar(image, ax=ax)
    style.set_labels(bar.ax, "", output)
    if function.inputs is not None:
        ax.plot(*function.inputs.T, ".", color=style.BLACK, ms=1.6, label="public inputs")
    asked = function.answered[0]
    inside = np.all((asked >= [x[0], y[0]]) & (asked <= [x[-1], y[-1]]), axis=1)
    if inside.any():
        ax.plot(*asked[inside].T, "o", color=style.VERMILION, ms=3.5, mec="white", label=BEFORE)
    ax.set_xlim(x[0], x[-1])
    ax.set_ylim(y[0], y[-1])
