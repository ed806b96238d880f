"""Figures 7 and 8 of Maciazek 2026: fields of two plumes, what the posterior finds, what paths show."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from papers.excursion.rows import Release, Row
from papers.excursion.tasks import overlap, paths_of, plume_draws, posteriors
from papers.shared.report import Result, Section
from privgp.models.function.tune import PriorDraws
from privgp.pictures import style as style
from privgp.types import Array

SIDE, PATHS, SEED = 41, 3, 7
GREY = "#CCCCCC"
LINES = ((style.BLUE, "--"), (style.VERMILION, "-."), (style.ORANGE, ":"))
WHAT = "Where simulated fields of two plumes over the unit square are above their threshold"
OVERLAP = "an overlap of 1 with its true set is perfect"


@dataclass(frozen=True)
class Example:
    """One field and its data; on a grid the posterior's probability less its cutoff, and paths."""

    draws: PriorDraws
    excess: Array
    paths: Array

    @property
    def truth(self) -> Array:
        return np.asarray(self.draws.truth[0] >= 0.0)

    @property
    def found(self) -> float:
        """What the posterior recovers."""
        return float(overlap(self.excess >= 0.0, self.truth))

    @property
    def shown(self) -> list[float]:
        """What every path recovers."""
        return [float(v) for v in overlap(self.paths >= 0.0, self.truth)]


def examples(row: Row, release: Release, count: int, side: int = SIDE) -> list[Example]:
    """Fresh fields of this row's setting under the settings that the row has tuned."""
    fields, noise = (np.random.default_rng([SEED, k]) for k in (0, 1))
    made = []
    for _ in range(count):
        draws = plume_draws(1, row.setting.records, row.setting.noise, side, fields)
        excess = posteriors(draws, row.free).probability[0] - row.cutoff
        paths = paths_of(draws, release.tuned, PATHS, release.smoothing, noise)[0]
        made.append(Example(draws, excess, paths))
    return made


def plumes(
    number: int, row: Row, count: int, side: int = SIDE
) -> tuple[list[Result], list[Section]]:
    """The figure by the paper's method and once more by the default, on the same fields."""
    releases = (row.papers_release, row.default_release)
    theirs, ours = (examples(row, release, count, side) for release in releases)
    where = f"figure {number}, noise to signal {row.setting.ratio:.2f}"
    shown = [float(np.mean([v for e in made for v in e.shown])) for made in (theirs, ours)]
    results = [
        Result(f"{where}: mean IoU of the posterior's sets", None,
            float(np.mean([e.found for e in theirs])), None),
        Result(f"{where}: mean IoU of the paths", None, *shown),
    ]  # fmt: skip
    title = f"Figure {number}: two plumes, noise to signal {row.setting.ratio:.2f}"
    text = (
        f"{row.setting.records} records, epsilon 10, delta {row.setting.delta:g}, {PATHS} single paths, "
        f"smoothed over {_width(releases[0])}. Mean IoU of the paths {shown[0]:.2f}.",
    )
    again = (
        "The same fields under the sharper bounds, settings chosen for a path, smoothed over "
        f"{_width(releases[1])}. Mean IoU of the paths {shown[1]:.2f}.",
    )
    sections = [
        Section(title, text, picture(theirs, side, row.setting.delta)),
        Section(f"{title}, by the default", again, picture(ours, side, row.setting.delta)),
    ]
    return results, sections


def picture(made: list[Example], side: int, delta: float) -> Figure:
    """A row for every field: field and data, the posterior's set, boundaries of private paths."""
    figure = style.new_figure(1.4 + 2.45 * len(made), 7.5)
    records = len(made[0].draws.inputs[0])
    promised = f"Each path is of {records} records and protects one whole record with ε = 10, δ = {delta:g}"
    rows = f"Every row is a field; {OVERLAP}" if len(made) > 1 else f"One field; {OVERLAP}"
    style.set_title(figure, f"{WHAT}\n{rows}\n{promised}", simulation=True)
    axes = figure.subplots(len(made), 3, squeeze=False, sharex=True, sharey=True)
    axis = np.linspace(0.0, 1.0, side)
    for (left, middle, right), example in zip(axes, made, strict=True):
        field = example.draws.truth[0].reshape(side, side).T
        shade = left.pcolormesh(
            axis, axis, field, cmap=style.SEQUENTIAL, shading="nearest", rasterized=True
        )
        bar = figure.colorbar(shade, ax=left, shrink=0.8)
        bar.set_label("field less threshold", fontsize=style.SMALL - 1.0)
        bar.ax.tick_params(labelsize=style.SMALL - 1.0)
        left.plot(*example.draws.inputs[0].T, "o", ms=1.8, mfc="white", mec=style.BLACK, mew=0.25)
        _boundary(left, axis, field, style.BLACK, "-")
        style.set_title(left, "the field and its records")
        for ax in (middle, right):
            _set(ax, axis, field, GREY)
        _set(middle, axis, example.excess.reshape(side, side).T, style.SKY, alpha=0.6)
        _boundary(middle, axis, field, style.BLACK, "-")
        style.set_title(middle, f"without privacy: overlap {example.found:.2f}")
        for path, look in zip(example.paths, LINES, strict=True):
            _boundary(right, axis, path.reshape(side, side).T, *look)
        style.set_title(right, "private: overlap " + ", ".join(f"{v:.2f}" for v in example.shown))
    for ax in axes.ravel():
        ax.set(aspect="equal", xticks=(0.0, 0.5, 1.0), yticks=(0.0, 0.5, 1.0))
        ax.tick_params(labelsize=style.SMALL - 1.0)
    _explain(axes[0, 0])
    style.legend([axes[0, 0]], below=True, columns=3)
    return figure


def _explain(ax: Axes) -> None:
    """What is drawn, for the legend."""
    ax.plot([], [], "o", ms=3, mfc="white", mec=style.BLACK, label="records, private")
    ax.plot([], [], "-", color=style.BLACK, label="true boundary")
    ax.fill_between([], [], color=GREY, lw=0, label="true set")
    ax.fill_between([], [], color=style.SKY, alpha=0.6, lw=0, label="set found without privacy")
    for place, (colour, line) in enumerate(LINES, 1):
        ax.plot([], [], line, color=colour, label=f"boundary by private path {place}")


def _set(ax: Axes, axis: Array, values: Array, colour: str, alpha: float = 1.0) -> None:
    """Where values are at least 0."""
    if values.max() > 0.0:
        ax.contourf(
            axis, axis, values, levels=[0.0, 1.1 * values.max()], colors=[colour], alpha=alpha
        )


def _boundary(ax: Axes, axis: Array, values: Array, colour: str, line: str) -> None:
    if values.min() < 0.0 < values.max():
        ax.contour(
            axis, axis, values, levels=[0.0], colors=[colour], linestyles=line, linewidths=1.1
        )


def _width(release: Release) -> str:
    return "nothing" if release.smoothing is None else f"{release.smoothing:g} of the width"
