"""Figure 4 of Maciazek 2026: London's hexagons and the boundaries of what is released about them."""

from __future__ import annotations

from math import sqrt

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.tri import Triangulation

from papers.excursion.london import ACROSS, CLIP, EPSILON, FILE, FILTER, THRESHOLD, London
from papers.shared.report import Result, Section
from privgp.pictures import style as style
from privgp.types import Array

PATHS = 3
LINES = ((style.BLUE, "--"), (style.VERMILION, "-."), (style.SKY, ":"))
BAR = 10.0  # kilometres
WHAT = f"Where the median log price of leasehold flats in London was at least {THRESHOLD:g}, hexagons of 2019"
PROMISED = f"Each path protects one whole record, a hexagon and its price, with ε = {EPSILON:g}, δ = n^-1.1"
TITLE = f"Figure 4: London, median log price of leasehold flats at least {THRESHOLD:g}, 2019"


def london(found: London | None) -> tuple[list[Result], Section]:
    """The map, and its caption as numbers; without data a sentence that says so."""
    if found is None:
        return [], Section(TITLE, (f"{FILE} is not there: the map is left out.",))
    theirs, ours = found.kept(found.papers), found.kept(found.default)
    first, *islands = found.parts
    names = (
        "figure 4: IoU of one path with the open set, London",
        "figure 4: share of the largest region that a path keeps",
        "figure 4: share of the islands that a path keeps",
    )
    results = [Result(name, None, a, b) for name, a, b in zip(names, theirs, ours, strict=True)]
    lost = (
        f", of the other {len(islands)} islands ({sum(map(len, islands))} hexagons) {theirs[2]:.0%} and "
        f"{ours[2]:.0%}"
        if islands
        else "; there are no islands"
    )
    text = (
        f"{len(found.y)} hexagons with a sale in 2019 stand in for the paper's 1,075 of 2018, and older "
        "sales for those of 2017 on which it chooses settings: those years are not in these data. Epsilon "
        f"{EPSILON:g}, delta n^-1.1, one path each. Left by the paper's method; right by the default, smoothed "
        f"over {FILTER} of the width.",
        "The caption: private draws keep the dominant region and lose smaller islands. Here, over "
        f"{len(found.papers)} paths: of the largest region ({len(first)} hexagons) they keep "
        f"{theirs[1]:.0%} by the paper's method and {ours[1]:.0%} by the default{lost}. Overlap with the "
        f"open set: {theirs[0]:.2f} and {ours[0]:.2f}.",
    )
    return results, Section(TITLE, text, picture(found))


def picture(found: London) -> Figure:
    """Hexagons by price, the open boundary, and dashed boundaries of single private paths."""
    figure = style.new_figure(4.5, 9.0)
    style.set_title(
        figure, f"{WHAT}\nFrom {len(found.y):,} hexagons. {PROMISED}", simulation=True, room=110
    )
    axes = figure.subplots(1, 2, sharex=True, sharey=True)
    grid = _triangles(found.centres)
    for ax, name, paths in zip(
        axes,
        ("by the paper's method", "by the default"),
        (found.papers, found.default),
        strict=True,
    ):
        cells = _hexagons(ax, found)
        _boundary(ax, grid, found.excess, style.BLACK, "-", "boundary without privacy")
        for place, (path, look) in enumerate(zip(paths[:PATHS], LINES, strict=False), 1):
            _boundary(ax, grid, path, *look, f"boundary by private path {place}")
        ax.set(aspect="equal", xticks=(), yticks=())
        scale_bar(ax, BAR / found.kilometres, f"{BAR:g} km")
        style.set_title(ax, name)
    bar = figure.colorbar(cells, ax=list(axes), shrink=0.7)
    ends = f"cut at {THRESHOLD - CLIP:g} and {THRESHOLD + CLIP:g}"
    bar.set_label(f"median log of the price in pounds, {ends}", fontsize=style.SMALL)
    bar.ax.tick_params(labelsize=style.SMALL)
    style.legend([axes[0]], below=True, columns=4)
    return figure


def _hexagons(ax: Axes, found: London) -> PolyCollection:
    """Pointed at north and south: neighbours lie 1 / ACROSS apart."""
    turn = np.pi / 6.0 + np.arange(6) * np.pi / 3.0
    corners = np.stack([np.cos(turn), np.sin(turn)], axis=1) / (ACROSS * sqrt(3.0))
    cells = PolyCollection(
        list(found.centres[:, None, :] + corners), cmap=style.DIVERGING, edgecolors="white",
        linewidths=0.2, alpha=0.55, rasterized=True,
    )  # fmt: skip
    cells.set_array(THRESHOLD + CLIP * found.y)
    cells.set_clim(THRESHOLD - CLIP, THRESHOLD + CLIP)
    ax.add_collection(cells)
    ax.autoscale_view()
    return cells


def _triangles(centres: Array) -> Triangulation:
    """Between neighbouring hexagons only, so that no boundary leaps over empty ground."""
    grid = Triangulation(*centres.T)
    ends = centres[grid.triangles]
    sides = np.linalg.norm(ends - np.roll(ends, 1, axis=1), axis=2)
    grid.set_mask(sides.max(axis=1) > 2.2 / ACROSS)
    return grid


def _boundary(
    ax: Axes, grid: Triangulation, values: Array, colour: str, line: str, label: str
) -> None:
    if values.min() < 0.0 < values.max():
        ax.tricontour(grid, values, levels=[0.0], colors=[colour], linestyles=line, linewidths=1.2)
    ax.plot([], [], line, color=colour, lw=1.2, label=label)


def scale_bar(ax: Axes, length: float, text: str) -> None:
    """A line of this length in the lower left corner, named: for maps without numbered axes."""
    (left, right), (low, high) = ax.get_xlim(), ax.get_ylim()
    x, y = left + 0.05 * (right - left), low + 0.05 * (high - low)
    ax.plot([x, x + length], [y, y], color=style.BLACK, lw=2.0, solid_capstyle="butt")
    ax.text(x + 0.5 * length, y + 0.02 * (high - low), text, ha="center", fontsize=style.SMALL)
