"""The pictures of the membership attack."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from papers.attack.runs import DELTA, RATES, Setting
from privgp.audit.result import Membership, draw_releases
from privgp.pictures.style import (
    BLACK,
    BLUE,
    ORANGE,
    SKY,
    VERMILION,
    legend,
    new_figure,
    set_labels,
    set_title,
)
from privgp.types import Array

COLOURS = (BLUE, SKY, ORANGE, VERMILION)
MARKS = ("o", "s", "^", "D")  # of the same, for copies without colours
PAPER, SHARPER, USUAL = "the paper's bound", "the sharper bound", "ε = 10"
BOUNDS = ((True, "-", PAPER), (False, "--", SHARPER))
GOAL = 10.0
ATTACK, EXCESS = "Success of a membership attack", "excess true-positive rate"


def by_ridge(found: dict[Setting, Array], rate: int) -> Figure:
    """Excess true positives against epsilon (left) and against r (right), one curve a sigma."""
    figure = new_figure(3.6, 7.5)
    left, right = figure.subplots(1, 2, sharey=True)
    set_title(
        figure,
        f"{ATTACK} on one released path of simulated data\n"
        f"Mean of {_seeds(found)}, band one std; {_success(rate)}; σ: scale of the prior",
    )
    for sigma, colour, mark in zip(_sigmas(found), COLOURS, MARKS, strict=False):
        settings = sorted((s for s in found if s.sigma == sigma), key=lambda s: s.r)
        rates = np.array([found[s][:, rate] for s in settings])
        epsilons = [s.epsilon(paper=True) for s in settings]
        for ax, x in ((left, epsilons), (right, [s.r for s in settings])):
            _band(ax, x, rates, colour, scale_name(sigma), mark)
    left.axvline(GOAL, color=BLACK, linewidth=0.8, linestyle=":", label=USUAL)
    for ax, name in ((left, f"ε of the paper at δ = {DELTA:g}"), (right, "ridge r")):
        ax.set_xscale("log")
        ax.axhline(0.0, color=BLACK, linewidth=0.8, label="guessing")
        set_labels(ax, name, EXCESS if ax is left else "")
    legend([left], below=True, columns=3)
    return figure


def epsilon_by_ridge(sigmas: Sequence[float]) -> Figure:
    """Epsilon against r: the paper's bounds solid, the sharper ones dashed."""
    figure = new_figure(3.6, 4.5)
    ax = figure.subplots()
    set_title(ax, "What a ridge guarantees")
    ridges = np.geomspace(0.1, 5.0, 25)
    for sigma, colour in zip(sigmas, COLOURS, strict=False):
        for paper, line, _ in BOUNDS:
            values = [Setting(float(r), sigma).epsilon(paper=paper) for r in ridges]
            ax.plot(ridges, values, line, color=colour, label=scale_name(sigma) if paper else None)
    explain_bounds(ax)
    ax.set(xscale="log", yscale="log", ylim=(0.05, None))
    set_labels(ax, "ridge r", f"ε at δ = {DELTA:g}")
    legend([ax], below=True)
    return figure


def explain_bounds(ax: Axes) -> None:
    """What solid, dashed and dotted lines are."""
    for _, line, name in BOUNDS:
        ax.plot([], [], line, color=BLACK, label=name)
    ax.axhline(GOAL, color=BLACK, linewidth=0.8, linestyle=":", label=USUAL)


def by_paths(found: dict[Setting, Array], rate: int) -> Figure:
    """Excess true positives and epsilon against the number of paths; the exact posterior as a line."""
    figure = new_figure(3.6, 7.5)
    left, right = figure.subplots(1, 2)
    set_title(
        figure,
        f"{ATTACK} that sees many paths of simulated data\n"
        f"Mean of {_seeds(found)}, band one std; {_success(rate)}",
    )
    finite = sorted((s for s in found if s.paths != math.inf), key=lambda s: s.paths)
    counts = [s.paths for s in finite]
    _band(left, counts, np.array([found[s][:, rate] for s in finite]), BLUE, "from paths")
    for s in found:
        if s.paths == math.inf:
            left.axhline(
                found[s][:, rate].mean(),
                color=VERMILION,
                linestyle="--",
                label="from the exact posterior",
            )
    left.axhline(0.0, color=BLACK, linewidth=0.8, label="guessing")
    for paper, style, name in BOUNDS:
        values = [s.epsilon(paper=paper) for s in finite]
        right.plot(counts, values, style, color=BLUE, label=name)
        if paper:
            linear = [values[0] * count for count in counts]
            right.plot(
                counts, linear, ":", color=BLACK, linewidth=0.8, label="paths times ε of one path"
            )
    left.set_xscale("log")
    right.set(xscale="log", yscale="log")
    set_labels(left, "number of paths", EXCESS)
    set_labels(right, "number of paths", f"ε at δ = {DELTA:g}")
    set_title(left, "success of the attack")
    set_title(right, "what is guaranteed")
    legend([left, right], below=True, columns=3)
    return figure


def histograms(columns: Sequence[tuple[Setting, Membership]]) -> Figure:
    """Means (above) and log variances (below) with and without the record, counted and fitted."""
    figure = new_figure(5.0, 8.4)
    axes = figure.subplots(2, len(columns), squeeze=False)
    for (above, below), (setting, result) in zip(axes.T, columns, strict=True):
        draw_releases(above, result, 0)
        draw_releases(below, result, 1)
        epsilon = setting.epsilon(paper=True)
        set_title(above, f"r = {setting.r:g}, σ = {setting.sigma:g}: ε = {epsilon:.3g}")
    legend([axes[0, 0]], below=True, columns=4)
    return figure


def _band(
    ax: Axes, x: Sequence[float], rates: Array, colour: str, name: str, mark: str = "o"
) -> None:
    """A line through means over seeds and a band of one standard deviation."""
    mean, std = rates.mean(axis=1), rates.std(axis=1)
    ax.plot(x, mean, f"{mark}-", markersize=3.5, color=colour, label=name)
    ax.fill_between(x, mean - std, mean + std, color=colour, alpha=0.2, linewidth=0)


def _sigmas(found: dict[Setting, Array]) -> list[float]:
    return sorted({s.sigma for s in found})


def _seeds(found: dict[Setting, Array]) -> str:
    count = len(next(iter(found.values())))
    return f"{count} seed{'s' if count != 1 else ''}"


def _success(rate: int) -> str:
    return f"excess: above the false-positive rate of {RATES[rate]:g}"


def scale_name(sigma: float) -> str:
    return "centred paths" if sigma == math.inf else f"σ = {sigma:g}"
