"""A released function of two inputs as two maps: its values, and how uncertain they are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import PathCollection
from matplotlib.colors import Colormap, ListedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.path import Path
from matplotlib.ticker import MaxNLocator
from scipy.ndimage import gaussian_filter
from scipy.spatial import cKDTree

from privgp.pictures import style
from privgp.pictures.released import TOTAL, Released, without_units
from privgp.pictures.style import number
from privgp.types import Array

HALF = "± of the 90% interval"
EMPTY = "White: no inputs nearby."
NEAR = 0.08  # of the width of the map: the least distance that is far
FEW = 8  # inputs, of which none is near the others
LETTER = 0.064  # inches that a letter of a label takes
ROUND = [1, 1.5, 3, 4.5, 6, 9, 10]  # steps of longitudes along a large part of the circle
SOFT, FADE = 0.02, 0.5  # of the width of the map; in units of the distance that is far
# Other colours than those of values, so that neither map is taken for the other.
VALUES = colormaps[style.SEQUENTIAL]
UNCERTAINTY = ListedColormap(colormaps["Purples"](np.linspace(0.15, 1.0, 256)), "uncertainty")


def plot_map(
    released: Released, names: Sequence[str], ax: Axes | None, figure: style.Canvas | None
) -> tuple[list[Axes], list[str]]:
    """Draw both maps. On given axes: one map, with contours of the other.

    Parameters
    ----------
    released
        a function of two inputs.
    names
        Names of the inputs, on the axes.
    ax, figure
        As in ``plot_release``.

    Returns
    -------
    list of Axes, list of str
        The panels, and what their marks are.

    """
    x, y = (np.linspace(low, high, released.points) for low, high in released.extent)
    grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    points = grid if released.targets is None else released.targets
    values, bands = released.values(points)
    half = 0.5 * (bands[TOTAL][1] - bands[TOTAL][0]) if TOTAL in bands else None
    panels = [ax] if ax is not None else _panels(figure, released, 1 if half is None else 2)
    far = None if released.targets is not None else far_from_inputs(released, grid)
    near = np.ones(len(points), dtype=bool) if far is None else far <= 1.0
    scale = _scale(values[near], None if half is None else half[near], released.targets is not None)
    shown: list[tuple[Array, str, Colormap, Normalize]] = [
        (values, released.caption, VALUES, scale)
    ]
    if half is not None and ax is None:
        limits = Normalize(*style.limits(half[near], 0.0))
        shown.append((half, f"{HALF} of {released.output}", UNCERTAINTY, limits))
    for panel, (colours, label, cmap, norm) in zip(panels, shown, strict=True):
        _marks(panel, released)
        if released.targets is None:
            cells = colours.reshape(len(y), len(x))
            _image(panel, cells, x, y, cmap, norm)
        else:
            panel.scatter(points[:, 0], points[:, 1], 28, colours, cmap=cmap, norm=norm,
                edgecolors=style.BLACK, linewidths=0.4, label=style.AT_TARGETS)  # fmt: skip
        _bar(panel, released, label, ScalarMappable(norm, cmap), beside=len(panels) == 1)
        above, right = panel is not panels[-1] and _in_stack(panel), panel is not panels[0]
        style.set_labels(
            panel, "" if above else names[0], "" if right and not _in_stack(panel) else names[1]
        )
    if ax is not None and half is not None and released.targets is None:
        _contours(ax, x, y, half.reshape(len(y), len(x)))
    marks = zip(*panels[0].get_legend_handles_labels(), strict=True)
    notes = [f"{style.name_of_mark(mark)}: {label}." for mark, label in marks]
    if far is not None and not near.all():
        hidden = gaussian_filter(far.reshape(len(y), len(x)), SOFT * len(x), mode="nearest")
        for panel in panels:
            _fade(panel, np.clip((hidden - 1.0) / FADE, 0.0, 1.0), x, y)
        notes.append(EMPTY)
    return panels, notes


def _image(ax: Axes, values: Array, x: Array, y: Array, cmap: Colormap, norm: Normalize) -> None:
    """Draw values (rows, columns) over a grid of evenly spaced x (columns,) and y (rows,)."""
    ax.imshow(values, cmap, norm, aspect=ax.get_aspect(), interpolation="bilinear",
        extent=_ends(x, y), origin="lower")  # fmt: skip
    ax.set(xlim=(x[0], x[-1]), ylim=(y[0], y[-1]))


def _fade(ax: Axes, alpha: Array, x: Array, y: Array) -> None:
    """Cover a map with white, as far as ``alpha``, (rows, columns), has it."""
    white = np.ones((*alpha.shape, 3))
    ax.imshow(white, alpha=alpha, zorder=1.5, aspect=ax.get_aspect(), interpolation="bilinear",
        extent=_ends(x, y), origin="lower")  # fmt: skip
    ax.set(xlim=(x[0], x[-1]), ylim=(y[0], y[-1]))


def _ends(x: Array, y: Array) -> tuple[float, float, float, float]:
    dx, dy = (0.5 * (axis[1] - axis[0]) for axis in (x, y))
    return x[0] - dx, x[-1] + dx, y[0] - dy, y[-1] + dy


def far_from_inputs(released: Released, points: Array) -> Array | None:
    """How far points are from any public input; beyond 1, none is nearby.

    Nearby is within twice the usual distance of neighbours, or a twelfth of the map.

    Parameters
    ----------
    released
        With its public inputs.
    points
        (points, 2).

    Returns
    -------
    Array or None
        (points,); None if inputs are private or few.

    """
    known = released.public_inputs
    if known is None or len(known) < FEW:
        return None
    size = np.ptp(released.extent, axis=1)
    if released.aspect is not None:
        longest = max(size[0], size[1] * released.aspect)
        size = np.array([longest, longest / released.aspect])
    return _distances(known / size, points / size)


def near_inputs(known: Array, points: Array) -> Array | None:
    """1 where a public input is nearby and 0 elsewhere, (points,), by the same rule for any number of inputs.

    Parameters
    ----------
    known : array (inputs, columns)
        The public inputs.
    points : array (points, columns)
        Where to ask.

    Returns
    -------
    array (points,), or None
        None where there are few inputs.

    """
    if len(known) < FEW:
        return None
    size = np.maximum(np.ptp(known, axis=0), 1e-300)
    return np.asarray(_distances(known / size, points / size) <= 1.0, dtype=np.float64)


def _distances(known: Array, points: Array) -> Array:
    tree = cKDTree(known)
    spacing = tree.query(known, k=2)[0][:, 1]
    reach = max(NEAR, 2.0 * float(np.quantile(spacing, 0.75)))
    return np.asarray(tree.query(points)[0] / reach)


def _panels(figure: style.Canvas | None, released: Released, count: int) -> list[Axes]:
    """Side by side, or one above the other where the map is wide."""
    width, height = np.ptp(released.extent, axis=1)
    shape = (
        0.9
        if released.aspect is None
        else float(np.clip(height * released.aspect / width, 0.2, 1.6))
    )
    stacked = shape < 0.6
    if figure is None:
        each = 4.6 * shape if stacked or count == 1 else 2.8 * shape
        figure = style.new_figure((each + 0.35) * (count if stacked else 1) + 1.3)
    rows = (count, 1) if stacked else (1, count)
    return list(figure.subplots(*rows, squeeze=False, sharex=True, sharey=True).ravel())


def _in_stack(ax: Axes) -> bool:
    """Whether its map is above or below another."""
    place = ax.get_subplotspec()
    return place is not None and place.get_gridspec().ncols == 1 < place.get_gridspec().nrows


def _scale(values: Array, half: Array | None, at_targets: bool) -> Normalize:
    """Colours for the range of values, which is never narrower than the least uncertainty. Without
    smoothing a few lonely targets are far off and would leave one colour for the rest."""
    low, high = np.quantile(values, [0.05, 0.95] if at_targets else [0.0, 1.0]).tolist()
    least = 0.0 if half is None else 2.0 * float(half.min())
    pad = 0.5 * max(0.0, least - (high - low)) or (0.5 if low == high else 0.0)
    return Normalize(low - pad, high + pad)


def _bar(
    ax: Axes, released: Released, label: str, colours: ScalarMappable, *, beside: bool
) -> None:
    stacked = _in_stack(ax)
    place = "right" if beside or stacked else "bottom"
    extend = "both" if released.targets is not None and label == released.caption else "neither"
    bar = ax.figure.colorbar(colours, ax=ax, location=place, extend=extend, pad=0.02)
    axis = bar.ax.yaxis if place == "right" else bar.ax.xaxis
    axis.set_major_locator(MaxNLocator(4))
    style.set_ticks(axis, None, released.output)
    named = {"y": label} if place == "right" else {"x": label}
    style.set_labels(bar.ax, **named, room=_room(ax) if stacked else 34)


def _room(ax: Axes) -> int:
    """Characters that fit along a bar beside a map that is above or below another."""
    inches = ax.figure.bbox.height / style.root_of(ax).dpi - 1.05  # without title and legend
    return int(min(30, max(12, 0.5 * inches / LETTER)))


def _contours(ax: Axes, x: Array, y: Array, half: Array) -> None:
    """Lines of equal uncertainty, with their numbers."""
    if np.ptp(half) > 0.02 * half.max():
        lines = ax.contour(x, y, half, levels=4, colors=style.BLACK, linewidths=0.6)
        for text in ax.clabel(lines, fontsize=style.SMALL, fmt=number, zorder=4):
            style.on_white(text)
        ax.plot([], [], color=style.BLACK, lw=0.6, label=HALF)


def _marks(ax: Axes, released: Released) -> None:
    """Points on the map, and its axes."""
    if released.public_inputs is not None and released.targets is None:
        rows = released.public_inputs.T
        size = float(np.clip(25.0 / np.sqrt(rows.shape[1]), 0.8, 2.0))
        ax.plot(*rows, "o", ms=size, color=style.BLACK, mew=0, clip_on=False)
        ax.plot([], [], "o", ms=2.5, color=style.BLACK, mew=0, label=released.known)
    if released.answered is not None:
        points = released.answered[0]
        x, y = points[released.within(points)].T
        style.mark_answers(ax, x, y, edge="white")
    if released.asked is not None:
        style.mark_points(ax, *released.asked.T)
    ax.set(xlim=released.extent[0], ylim=released.extent[1], aspect=released.aspect or "auto")
    names = ("", "") if released.names is None else map(str, released.names)
    ticks = released.ticks or (None, None)
    for axis, each, name in zip((ax.xaxis, ax.yaxis), ticks, names, strict=True):
        wide = each == "longitude" and np.ptp(axis.get_view_interval()) > 60.0
        axis.set_major_locator(MaxNLocator(4, **({"steps": ROUND} if wide else {})))
        style.set_ticks(axis, each, name)


Rings = Sequence[Sequence[Array]]  # of every polygon of an area, the outer one first


def plot_areas(
    areas: Sequence[Rings],
    mean: Array,
    half: Array,
    output: str,
    coverage: float,
    about: tuple[float, float, str, bool],
    figure: Figure | None = None,
    *,
    degrees: bool = False,
) -> Figure:
    """Draw both maps.

    Parameters
    ----------
    areas
        Rings of the polygons of every area, (points, 2) each, east first.
    mean, half
        The average of every area, and half the width of its interval.
    output
        What is averaged, with its units.
    coverage
        Of the intervals.
    about
        Epsilon, delta, who is protected, and whether it is a simulation.
    figure
        To draw into; a new one by default.
    degrees
        Whether coordinates are longitudes and latitudes, which have other lengths on the ground.

    """
    points = np.concatenate([ring for rings in areas for polygon in rings for ring in polygon])
    (west, south), (east, north) = points.min(axis=0), points.max(axis=0)
    middle = np.clip(np.abs(south + north) / 2.0, 0.0, 80.0) if degrees else 0.0
    aspect = 1.0 / np.cos(np.radians(middle))
    shape = float(np.clip(aspect * (north - south) / max(east - west, 1e-300), 0.3, 1.6))
    figure = style.new_figure(3.0 * shape + 1.4) if figure is None else figure
    panels = figure.subplots(1, 2, sharex=True, sharey=True)
    paths = [_path(rings) for rings in areas]
    shown = (
        (mean, f"mean {output}", VALUES, Normalize(*style.limits(mean, 0.0))),
        (half, f"± of the {100 * coverage:g}% interval", UNCERTAINTY, Normalize(*style.limits(half, 0.0))),
    )  # fmt: skip
    for ax, (values, label, cmap, norm) in zip(panels, shown, strict=True):
        drawn = PathCollection(paths, cmap=cmap, norm=norm, edgecolors="white", linewidths=0.5)
        drawn.set_array(values)
        ax.add_collection(drawn)
        ax.set(xlim=(west, east), ylim=(south, north), aspect=aspect, xticks=[], yticks=[])
        ax.spines[:].set_visible(False)
        bar = figure.colorbar(ScalarMappable(norm, cmap), ax=ax, location="bottom", pad=0.02)
        bar.ax.xaxis.set_major_locator(MaxNLocator(4))
        style.set_ticks(bar.ax.xaxis, None, output)
        style.set_labels(bar.ax, label, room=34)
    epsilon, delta, unit, simulation = about
    title = f"mean {without_units(output)} of {len(areas)} areas\n"
    title += f"Protects {unit} with {style.budget_text(epsilon, delta)}"
    style.set_title(figure, title[:1].upper() + title[1:], simulation=simulation)
    return style.root_of(panels[0])


def _path(rings: Rings) -> Path:
    """The outlines of an area as one path, holes included."""
    parts = [Path(ring, closed=True) for polygon in rings for ring in polygon]
    return Path.make_compound_path(*parts)
