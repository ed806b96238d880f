"""The pictures of the membership attack."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from papers.attack.runs import DELTA, RATES, Setting
from privgp.audit.plots import draw_releases
from privgp.audit.result import Membership
from privgp.pictures.style import (
    BLACK,
    BLUE,
    ORANGE,
    SKY,
    SMALL,
    VERMILION,
    new_figure,
    set_labels,
    set_title,
)
from privgp.types import Array

COLOURS = (BLUE, SKY, ORANGE, VERMILION)
GOAL = 10.0


def by_ridge(found: dict[Setting, Array], rate: int) -> Figure:
    """Excess true positives against epsilon (left) and against r (right), one curve a sigma."""
    figure = new_figure(3.2, 7.5)
    left, right = figure.subplots(1, 2, sharey=True)
    for sigma, colour in zip(_sigmas(found), COLOURS, strict=False):
        settings = sorted((s for s in found if s.sigma == sigma), key=lambda s: s.r)
        rates = np.array([found[s][:, rate] for s in settings])
        epsilons = [s.epsilon(paper=True) for s in settings]
        for ax, x in ((left, epsilons), (right, [s.r for s in settings])):
            _band(ax, x, rates, colour, scale_name(sigma))
    left.axvline(GOAL, color=BLACK, linewidth=0.8, linestyle=":")
    for ax, name in ((left, f"epsilon at delta = {DELTA:g}"), (right, "ridge r")):
        ax.set_xscale("log")
        ax.axhline(0.0, color=BLACK, linewidth=0.8)
        set_labels(ax, name, f"TPR - FPR at FPR = {RATES[rate]:g}" if ax is left else "")
    set_title(left, "success against the paper's epsilon")
    set_title(right, "success against the ridge")
    right.legend(fontsize=SMALL - 1.0)
    return figure


def epsilon_by_ridge(sigmas: Sequence[float]) -> Figure:
    """Epsilon against r: the paper's bounds solid, the sharper ones dashed."""
    figure = new_figure(3.2, 4.5)
    ax = figure.subplots()
    ridges = np.geomspace(0.1, 5.0, 25)
    for sigma, colour in zip(sigmas, COLOURS, strict=False):
        for paper, style in ((True, "-"), (False, "--")):
            values = [Setting(float(r), sigma).epsilon(paper=paper) for r in ridges]
            ax.plot(ridges, values, style, color=colour, label=scale_name(sigma) if paper else None)
    ax.axhline(GOAL, color=BLACK, linewidth=0.8, linestyle=":")
    ax.set(xscale="log", yscale="log", ylim=(0.05, None))
    set_labels(ax, "ridge r", f"epsilon at delta = {DELTA:g}")
    ax.legend(fontsize=SMALL - 1.0)
    return figure


def by_paths(found: dict[Setting, Array], rate: int) -> Figure:
    """Excess true positives and epsilon against the number of paths; the exact posterior as a line."""
    figure = new_figure(3.2, 7.5)
    left, right = figure.subplots(1, 2)
    finite = sorted((s for s in found if s.paths != math.inf), key=lambda s: s.paths)
    counts = [s.paths for s in finite]
    _band(left, counts, np.array([found[s][:, rate] for s in finite]), BLUE, "paths")
    for s in found:
        if s.paths == math.inf:
            left.axhline(
                found[s][:, rate].mean(), color=VERMILION, linestyle="--", label="exact posterior"
            )
    left.axhline(0.0, color=BLACK, linewidth=0.8)
    for paper, style, name in (
        (True, "-", "the paper's bound"),
        (False, "--", "the sharper bound"),
    ):
        values = [s.epsilon(paper=paper) for s in finite]
        right.plot(counts, values, style, color=BLUE, label=name)
        if paper:
            linear = [values[0] * count for count in counts]
            right.plot(
                counts, linear, ":", color=BLACK, linewidth=0.8, label="paths times one path"
            )
    left.set_xscale("log")
    right.set(xscale="log", yscale="log")
    set_labels(left, "paths L", f"TPR - FPR at FPR = {RATES[rate]:g}")
    set_labels(right, "paths L", f"epsilon at delta = {DELTA:g}")
    set_title(left, "success of the attack")
    set_title(right, "what is promised")
    for ax in (left, right):
        ax.legend(fontsize=SMALL - 1.0)
    return figure


def histograms(columns: Sequence[tuple[Setting, Membership]]) -> Figure:
    """Means (above) and log variances (below) with and without the record, counted and fitted."""
    figure = new_figure(4.6, 8.4)
    axes = figure.subplots(2, len(columns), squeeze=False)
    for (above, below), (setting, result) in zip(axes.T, columns, strict=True):
        draw_releases(above, result, 0)
        draw_releases(below, result, 1)
        epsilon = setting.epsilon(paper=True)
        set_title(above, f"r = {setting.r:g}, sigma = {setting.sigma:g}: epsilon = {epsilon:.3g}")
    axes[0, 0].legend(fontsize=SMALL - 1.0, loc="upper left")
    return figure


def _band(ax: Axes, x: Sequence[float], rates: Array, colour: str, name: str) -> None:
    """A line through means over seeds and a band of one standard deviation."""
    mean, std = rates.mean(axis=1), rates.std(axis=1)
    ax.plot(x, mean, "o-", markersize=3, color=colour, label=name)
    ax.fill_between(x, mean - std, mean + std, color=colour, alpha=0.2, linewidth=0)


def _sigmas(found: dict[Setting, Array]) -> list[float]:
    return sorted({s.sigma for s in found})


def scale_name(sigma: float) -> str:
    return "centred paths" if sigma == math.inf else f"sigma = {sigma:g}"
