"""Released functions as a figure: a curve, a map, slices or points at targets; several one above the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypedDict

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from privgp.pictures import style
from privgp.pictures.maps import plot_map
from privgp.pictures.released import NOISE, OUTPUTS, PRIVACY, TOTAL, Band, Released, input_names
from privgp.types import Array

PANEL_ROOM = 22  # characters of a label
MOST_HELD = 6  # inputs whose held values a note lists
# Colour, opacity and line of the edges. The part due to privacy has edges only: it is no second interval.
FILLS = {TOTAL: (style.SKY, 0.35, "-"), NOISE: (style.SKY, 0.35, "--")}


# The curves of a category's levels.
LEVELS = (style.BLUE, style.VERMILION, style.BLACK, style.ORANGE, style.SKY)
LEVEL_LINES = ("-", "--", ":", "-.")
LINES = {OUTPUTS: (style.VERMILION, ":"), PRIVACY: (style.BLUE, "--")}


def plot_release(
    released: Released,
    ax: Axes | None = None,
    figure: style.Canvas | None = None,
    *,
    legend: bool = True,
) -> Figure:
    """One input: the curve with its bands. Two: a map and its uncertainty. More: a slice per input.

    Parameters
    ----------
    released
        The function to draw.
    ax
        a single panel to draw in, a map with contours of its uncertainty.
    figure
        The figure for any number of panels; a new one by default.
    legend
        Whether one is drawn.

    Raises
    ------
    ValueError
        ``ax`` is given and there are several panels.

    """
    count, is_map = len(released.extent), released.is_map
    number = released.curve_per_level
    is_single = count == 1 or is_map or number is not None
    if ax is not None and not is_single:
        raise ValueError(f"{count} inputs are drawn in {count} panels: give figure, not ax.")
    names = input_names(released.names, count)
    notes: list[str] = []
    is_ours = ax is None and figure is None
    if is_map:
        axes, notes = plot_map(released, names, ax, figure)
    else:
        columns = 1 if is_single else 2 if count <= 4 else 3
        shape = (1, 1, 3.4) if is_single else (count, columns, 2.0)
        axes = [ax] if ax is not None else style.panels(figure, *shape)
        for j, panel in enumerate(axes):
            if number is not None:
                _levels(panel, released, number)
            else:
                _draw(panel, released, j)
            output = released.output if j % columns == 0 else ""
            name = names[j if number is None else number]
            style.set_labels(panel, name, output, room=40 if is_single else PANEL_ROOM)
            style.set_ticks(panel.yaxis, None, released.output)
    if not is_single:
        several = f"varies one input; the others are held {released.held}"
        several += f": {released.constant_values}" if count <= MOST_HELD else ""
        at_targets = "shows all targets against one input"
        notes.append(f"Each panel {several if released.targets is None else at_targets}.")
    named_directly = is_ours and (is_map or (is_single and released.targets is None))
    if legend and named_directly:
        unnamed = [] if is_map else style.label_curves(axes[0])
        notes += [f"{style.name_of_mark(each)}: {each.get_label()}." for each in unnamed]
    foot = " ".join([f"{released.protection}." if released.protection else "", *notes]).strip()
    lines = [released.title, foot]
    place = axes[0] if ax is not None else style.root_of(axes[0]) if is_ours else figure
    style.set_title(
        place or axes[0], "\n".join(filter(None, lines)), simulation=released.simulation,
        room=60 if ax is not None else 95,
    )  # fmt: skip
    if legend and not named_directly:
        style.legend(axes, below=is_ours)
    return style.root_of(axes[0])


def _levels(ax: Axes, released: Released, number: int) -> None:
    """A curve for every level of a category, along the other input."""
    low, high = released.extent[number]
    x = np.linspace(low, high, released.points)
    ticks = released.ticks[1 - number] if released.ticks else None
    levels = released.levels(1 - number)
    names = ticks if isinstance(ticks, tuple) else [f"{level:g}" for level in levels]
    other = input_names(released.names, 2)[1 - number]
    for place, (level, name) in enumerate(zip(levels, names, strict=True)):
        X = np.empty((len(x), 2))
        X[:, number], X[:, 1 - number] = x, level
        middle, bands = released.values(X)
        colour, line = LEVELS[place % len(LEVELS)], LEVEL_LINES[place % len(LEVEL_LINES)]
        ax.plot(x, middle, color=colour, ls=line, lw=1.6, zorder=3, label=f"{other}: {name}")
        if TOTAL in bands:
            ax.fill_between(x, *bands[TOTAL], color=colour, alpha=0.15, lw=0)
    _mark_inputs(ax, released, number)
    ax.set_xlim(low, high)
    given = str(released.names[number]) if released.names is not None else ""
    style.set_ticks(ax.xaxis, released.ticks[number] if released.ticks else None, given)


def _mark_inputs(ax: Axes, released: Released, j: int) -> None:
    """Strokes at the public inputs along an axis, and points that were asked for."""
    if released.public_inputs is not None:
        x = np.unique(released.public_inputs[:, j])
        ax.plot(x, np.full(len(x), 0.02), "|", color=style.BLACK, ms=5, mew=0.5, clip_on=False,
            transform=ax.get_xaxis_transform(), label=released.known)  # fmt: skip
    if released.asked is not None and len(released.extent) > 1:
        x = np.unique(released.asked[:, j])
        style.mark_points(ax, x, np.full(len(x), 0.98), above=True)


def _draw(ax: Axes, released: Released, j: int) -> None:
    """One panel: the curve along input j, or the targets against it."""
    levels = released.levels(j)
    if released.targets is None:
        _slice(ax, released, j)
    else:
        _bars(ax, released.targets[:, j], *released.values(released.targets))
    if not len(levels):
        _mark_inputs(ax, released, j)
    elif released.asked is not None:
        x = np.unique(released.asked[:, j])
        style.mark_points(ax, x, np.full(len(x), 0.98), above=True)
    if released.asked is not None and len(released.extent) == 1:
        style.mark_points(ax, released.asked[:, 0], released.values(released.asked)[0])
    if len(released.extent) > 1:
        ax.xaxis.set_major_locator(MaxNLocator(5, integer=released.whole(j)))
    name = str(released.names[j]) if released.names is not None else ""
    style.set_ticks(ax.xaxis, released.ticks[j] if released.ticks else None, name)
    if len(levels) and not (released.ticks and released.ticks[j]):
        ax.set_xticks(levels)


def _slice(ax: Axes, released: Released, j: int) -> None:
    low, high = released.extent[j]
    levels = released.levels(j)
    x = levels if len(levels) else np.linspace(low, high, released.points)
    X = np.tile(released.held_at, (len(x), 1))
    X[:, j] = x
    middle, bands = released.values(X)
    if len(levels):
        _bars(ax, x, middle, bands, released.curve)
        pad = 0.5 * float(np.diff(levels).min(initial=np.inf)) if len(levels) > 1 else 0.5
        ax.set_xlim(levels[0] - pad, levels[-1] + pad)
        return
    ax.plot(x, middle, color=style.BLACK, lw=1.6, zorder=3, label=released.curve)
    for label, edges in bands.items():
        if label in LINES:
            colour, line = LINES[label]
            lines = ax.plot(x, np.transpose(edges), color=colour, lw=1.0, ls=line)
            lines[0].set_label(label)
        else:
            colour, alpha, line = FILLS[label]
            ax.fill_between(x, *edges, color=colour, alpha=alpha, lw=0, label=label)
            ax.plot(x, np.transpose(edges), color=style.BLUE, lw=0.6, ls=line)
    for i, bound in enumerate(released.bounds or ()):
        name = "declared bounds of the outputs" if i == 0 else None
        ax.axhline(bound, color=style.BLACK, lw=0.8, ls=":", label=name)
    if released.answered is not None and len(released.extent) == 1:
        points, answers = released.answered
        inside = released.within(points)
        style.mark_answers(ax, points[inside, 0], answers[inside])
    ax.set_xlim(low, high)


class BarLook(TypedDict, total=False):
    """How ``errorbar`` draws bars."""

    ecolor: str
    elinewidth: float
    capsize: float
    capthick: float


def _bars(
    ax: Axes, x: Array, middle: Array, bands: Mapping[str, Band], name: str = style.AT_TARGETS
) -> None:
    """Points with bars: thin ones with ends for the whole interval, thick ones for the privacy noise."""
    thick = float(np.clip(250.0 / len(x), 0.8, 3.0))  # many bars side by side stay apart
    looks: dict[str, BarLook] = {
        OUTPUTS: {"ecolor": style.VERMILION, "elinewidth": 0.7},
        TOTAL: {"ecolor": style.BLACK, "elinewidth": 0.5, "capsize": thick, "capthick": 0.5},
        PRIVACY: {"ecolor": style.SKY, "elinewidth": thick},
        NOISE: {"ecolor": style.SKY, "elinewidth": thick},
    }
    ax.plot(x, middle, "o", color=style.BLACK, ms=1.0 + thick, zorder=4, label=name)
    for label, (low, high) in bands.items():
        # a mean beyond an end has a bar to the other side only
        reach = np.maximum([middle - low, high - middle], 0.0)
        bars = ax.errorbar(x, middle, reach, fmt="none", label=label, **looks[label])
        if label == OUTPUTS:
            bars[2][0].set_linestyle(":")
    ax.set_xlim(*style.limits(x))


HEIGHTS = (2.6, 4.2)  # of a curve, of a map


def plot_each(released: Sequence[Released], figure: style.Canvas | None = None) -> Figure:
    """The picture of every function, in its own part of the figure.

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
    for one, part in zip(released, parts, strict=True):
        shown = replace(one, protection="", simulation=False) if is_ours else one
        plot_release(shown, figure=part, legend=not is_ours)
    axes = parts[0].axes
    if is_ours:
        root, first = style.root_of(axes[0]), released[0]
        style.set_source(root, [first.protection])
        if first.simulation:
            style.set_stamp(root)
        style.legend(axes, below=True)
    return style.root_of(axes[0])
