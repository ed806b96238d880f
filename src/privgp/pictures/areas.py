"""Averages of areas as two maps: their values, and how uncertain they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.cm import ScalarMappable
from matplotlib.collections import PathCollection
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.path import Path
from matplotlib.ticker import MaxNLocator

from privgp.pictures import style
from privgp.pictures.maps import UNCERTAINTY, VALUES
from privgp.types import Array

Rings = Sequence[Sequence[Array]]  # of every polygon of an area, the outer one first


def plot_areas(
    areas: Sequence[Rings],
    mean: Array,
    half: Array,
    output: str,
    coverage: float,
    about: tuple[float, float, str, bool],
    figure: Any = None,
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

    """
    points = np.concatenate([ring for rings in areas for polygon in rings for ring in polygon])
    (west, south), (east, north) = points.min(axis=0), points.max(axis=0)
    shape = float(np.clip((north - south) / max(east - west, 1e-300), 0.3, 1.6))
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
        ax.set(xlim=(west, east), ylim=(south, north), aspect="equal", xticks=[], yticks=[])
        ax.spines[:].set_visible(False)
        bar = figure.colorbar(ScalarMappable(norm, cmap), ax=ax, location="bottom", pad=0.02)
        bar.ax.xaxis.set_major_locator(MaxNLocator(4))
        style.set_ticks(bar.ax.xaxis, None, output)
        style.set_labels(bar.ax, label, room=34)
    epsilon, delta, unit, simulation = about
    title = f"{output}, averages of {len(areas)} areas\n"
    title += f"Protects {unit} with {style.budget_text(epsilon, delta)}"
    style.set_title(figure, title, simulation=simulation)
    return style.root_of(panels[0])


def _path(rings: Rings) -> Path:
    """The outlines of an area as one path, holes included."""
    parts = [Path(ring, closed=True) for polygon in rings for ring in polygon]
    return Path.make_compound_path(*parts)
