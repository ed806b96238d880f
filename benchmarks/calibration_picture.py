"""The picture of ``benchmarks.calibration``: a line per function and data set, a column per question.

How often do 90% intervals hold the truth, how much better or worse is their score than before, and how
large is the error beside that of others?
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, NullLocator

from privgp.pictures import style
from privgp.pictures.style import number

LINE, FRAME = 0.19, 1.0  # inches: of a line, and of what surrounds them
RATIOS = np.array([0.1, 0.2, 0.5, 0.7, 0.85, 1.0, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0])
FUNCTIONS, DATA = "Known functions", "Real data"
WORST = "worst place, worst release"
Results = dict[str, Any]


def draw(results: Results, before: Results | None, path: Path) -> None:
    """Write the picture. ``before``: the same of another version, to compare scores with."""
    path.write_bytes(style.figure_bytes(calibration_figure(results, before), path.suffix))


def calibration_figure(results: Results, before: Results | None) -> Figure:
    known = [name for name, one in results.items() if "coverage" in one]
    other = [name for name in results if name not in known]
    rows = [(title, names) for title, names in ((FUNCTIONS, known), (DATA, other)) if names]
    columns = 2 if before is None else 3
    figure = style.new_figure(FRAME * (len(rows) + 1) + LINE * len(results))
    heights = [len(names) + 2 for _, names in rows]
    grid = figure.subplots(len(rows), columns, squeeze=False, height_ratios=heights)
    for (title, names), panels in zip(rows, grid, strict=True):
        one = [results[name] for name in names]
        _coverage(panels[0], one, of_function=title == FUNCTIONS)
        if before is not None:
            _scores(panels[1], [results[n]["score"] / before[n]["score"] for n in names])
        _errors(panels[-1], one)
        for panel in panels:
            _lines(panel, names if panel is panels[0] else [""] * len(names))
        panels[0].set_title(title, fontsize=style.TEXT, loc="left")
    style.set_title(figure, _title(results))
    _legend(figure, grid[0])
    return figure


def _title(results: Results) -> str:
    counts = sorted({one["releases"] for one in results.values()})
    each = " to ".join(str(count) for count in dict.fromkeys((counts[0], counts[-1])))
    return (
        "How often 90% intervals hold the truth, and how large errors are\n"
        f"{each} simulated releases of each function or table, with ε = 1, δ = 1e-5\n"
        "Protects one output value, or one whole row where the name says “records”"
    )


def _legend(figure: Figure, panels: Any) -> None:
    """What the marks mean, under the columns that have them."""
    columns = [list(zip(*panel.get_legend_handles_labels(), strict=True)) for panel in panels]
    most = max(map(len, columns))
    nothing = (Line2D([], [], ls=""), "")
    filled = [entry for each in columns for entry in [*each, *[nothing] * (most - len(each))]]
    handles, labels = zip(*filled, strict=True)
    foot = style.keep_free(figure, (1.6 * style.SMALL * most + 8.0) / 72.0)
    figure.legend(handles, labels, loc="lower left", bbox_to_anchor=(0.02, foot), ncols=len(columns),
        frameon=False, fontsize=style.SMALL, handlelength=1.4, columnspacing=3.0)  # fmt: skip


def _lines(ax: Axes, names: Sequence[str]) -> None:
    """One line for each name, from top to bottom, with a faint rule to guide the eye."""
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    ax.tick_params(labelsize=style.SMALL)
    ax.grid(axis="y", lw=0.4, alpha=0.5)
    ax.set_axisbelow(True)


def _coverage(ax: Axes, results: Sequence[Results], *, of_function: bool) -> None:
    """The mean and the worst, at a place or in a release; single places as faint strokes."""
    mean, worst = ("coverage", "worst_place") if of_function else ("outputs", "worst_release")
    of = "the function" if of_function else "outputs"
    lines = np.arange(len(results))
    for line, one in enumerate(results):
        places = one.get("by_place", [])
        look: dict[str, Any] = {"color": style.BLUE, "ms": 5, "mew": 0.7, "alpha": 0.25}
        ax.plot(places, np.full(len(places), line), "|", **look)
    ends = np.array([[one[worst], one[mean]] for one in results])
    ax.hlines(lines, *ends.T, color=style.BLACK, lw=0.8)
    ax.plot(ends[:, 0], lines, "o", color=style.BLACK, mfc="white", ms=4.5, label=WORST)
    ax.plot(ends[:, 1], lines, "o", color=style.BLACK, ms=4.5, label="mean")
    if of_function:
        ax.plot([], [], "|", color=style.BLUE, ms=5, mew=0.7, label="each place")
    ax.axvline(0.9, color=style.VERMILION, lw=1.0, ls="--", label="90%, as stated")
    ax.set_xlim(min(0.45, float(ends.min()) - 0.05), 1.03)
    ax.xaxis.set_major_locator(FixedLocator([0.1, 0.3, 0.5, 0.7, 0.9]))
    ax.xaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f}%")
    ax.set_xlabel(f"share of {of}\nin 90% intervals", fontsize=style.SMALL)


def _scores(ax: Axes, ratios: Sequence[float]) -> None:
    """Interval scores as a share of those before, on a scale of ratios."""
    lines, values = np.arange(len(ratios)), np.array(ratios)
    for chosen, colour, label in (
        (values <= 1.0, style.BLUE, "better than the version before"),
        (values > 1.0, style.VERMILION, "worse than the version before"),
    ):
        ax.barh(lines[chosen], values[chosen] - 1.0, 0.6, left=1.0, color=colour)
        ax.plot([], [], "s", color=colour, label=label)
    mean = number(round(float(np.exp(np.log(values).mean())), 3))
    ax.set_title(f"geometric mean {mean}", fontsize=style.SMALL, loc="right")
    _ratio_axis(ax, values)
    ax.set_xlabel("interval score, as a multiple\nof the version before", fontsize=style.SMALL)


def _errors(ax: Axes, results: Sequence[Results]) -> None:
    """Errors as multiples of those of a Gaussian process without privacy and of the best bins."""
    looks = {
        "without_privacy": ("o", style.BLUE, -0.14, "of a GP without privacy"),
        "best_bins": ("s", style.ORANGE, 0.14, "of the best bins in hindsight"),
    }
    drawn = [np.ones(1)]
    for key, (mark, colour, aside, label) in looks.items():
        lines = [line for line, one in enumerate(results) if key in one]
        ratios = np.array([results[line]["rmse"] / results[line][key] for line in lines])
        ax.plot(ratios, np.add(lines, aside), mark, color=colour, mec=style.BLACK, mew=0.5, ms=4.5,
            label=label)  # fmt: skip
        drawn.append(ratios)
    _ratio_axis(ax, np.concatenate(drawn))
    ax.set_xlabel("RMSE, as a multiple\nof that of others", fontsize=style.SMALL)


def _ratio_axis(ax: Axes, values: Any) -> None:
    """A logarithmic axis about 1 that holds these ratios, with few round numbers on it."""
    ax.set_xscale("log")
    low, high = min(0.8, values.min()) / 1.08, max(1.2, values.max()) * 1.08
    ax.set_xlim(low, high)
    room = 0.16 * np.log(high / low)  # between two labels
    shown = [1.0]
    for tick in sorted(RATIOS, key=lambda tick: abs(np.log(tick))):
        if low < tick < high and np.abs(np.log(tick / np.array(shown))).min() > room:
            shown.append(tick)
    ax.xaxis.set_major_locator(FixedLocator(shown))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(lambda value, _: number(value))
    ax.axvline(1.0, color=style.BLACK, lw=0.8)
