"""Where released paths exceed a threshold, by a vote: post-processing, which costs nothing."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.spatial.distance import cdist

from privgp.pictures import style
from privgp.pictures.released import input_names
from privgp.pictures.style import number
from privgp.privacy.guarantee import Guarantee
from privgp.types import STAMP, Array

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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


@dataclass(frozen=True, repr=False)
class Excursion:
    """Where at least ``vote`` of the paths reach the threshold. ``points``: (points, inputs);
    ``paths``: (paths, points), smoothed where that was asked for."""

    points: Array
    threshold: float
    vote: float
    paths: Array
    names: tuple[str, ...] | None
    guarantee: Guarantee

    @property
    def share(self) -> Array:
        """The share of the paths that reach the threshold at each point, (points,)."""
        return np.asarray(np.mean(self.paths >= self.threshold, axis=0))

    @property
    def inside(self) -> Any:
        """Whether each point belongs to the set, (points,)."""
        return self.share >= self.vote

    def describe(self) -> str:
        stamp = f"{STAMP}: " if self.guarantee.is_simulation else ""
        return (
            f"{stamp}{int(np.sum(self.inside))} of {len(self.points)} points lie where at least "
            f"{self.vote:g} of {len(self.paths)} paths reach {self.threshold:g}.\n"
            f"{self.guarantee.describe()}"
        )

    def __repr__(self) -> str:
        stamp = f", {STAMP!r}" if self.guarantee.is_simulation else ""
        return (
            f"Excursion(threshold={self.threshold:g}, vote={self.vote:g}, points={len(self.points)}, "
            f"inside={int(np.sum(self.inside))}, paths={len(self.paths)}{stamp})"
        )

    def plot(self) -> Figure:
        """One input: paths, threshold and the set as a band; two: the set and its boundary."""
        return plot_excursion(self)


def check_vote(threshold: float, vote: float, smoothing: float | None) -> None:
    """Refuse what no paths can be asked, before they are: their answers cost."""
    if not math.isfinite(threshold):
        raise ValueError(f"threshold must be finite, got {threshold}.")
    if not 0 < vote <= 1:
        raise ValueError(f"vote must satisfy 0 < vote <= 1, got {vote}.")
    if smoothing is not None and not (math.isfinite(smoothing) and smoothing > 0):
        raise ValueError(f"smoothing must be positive and finite, got {smoothing}.")


def smooth_paths(points: Array, paths: Array, std: float) -> Array:
    """Every path averaged over its neighbours with Gaussian weights of this std, in units of x."""
    weights = np.exp(-0.5 * cdist(points, points, "sqeuclidean") / std**2)
    weights /= weights.sum(axis=1, keepdims=True)
    return np.asarray(paths @ weights.T)
