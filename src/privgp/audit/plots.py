"""Pictures of attacks: error rates beside the promised curve; members beside others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from privgp.pictures import style
from privgp.pictures.numbers import number

if TYPE_CHECKING:
    from privgp.audit.result import Membership, TradeOff

WHOSE = (
    "Membership attack: is one record among the data? Made-up data, released with and without it\n"
    "Each release: {paths} of {records}"
)
STATISTICS = ("mean", "log variance")
RATES = np.concatenate([np.geomspace(1e-6, 0.01, 60), np.linspace(0.011, 1.0, 400)])


def plot_trade_off(result: TradeOff, ax: Axes | None = None) -> Any:
    """The promised curve, below which no attack may come, and the attack with its bounds.

    Parameters
    ----------
    result
        Result of ``trade_off``.
    ax
        The panel to draw in; a new figure by default.

    Returns
    -------
    matplotlib.figure.Figure

    """
    if ax is None:
        ax = style.new_figure(4.0, 4.8).subplots()
    curve = result.promise.false_negative_rate(RATES)
    closed, promised = "no attack may come here", result.promise.describe().replace("mu =", "μ =")
    ax.fill_between(RATES, 0.0, curve, color=style.SKY, alpha=0.35, lw=0, label=closed)
    ax.plot(RATES, curve, color=style.BLUE, label=f"promised: {promised}")
    ax.plot([0, 1], [1, 0], color=style.BLACK, lw=0.8, ls=":", label="guessing")
    colour = style.BLACK if result.holds else style.VERMILION
    (a, b), (c, d) = result.false_positive_bounds, result.false_negative_bounds
    box = f"bounds of its error rates, wrong with probability {number(result.failure_probability)}"
    ax.add_patch(Rectangle((a, c), b - a, d - c, fill=False, edgecolor=colour, lw=1.2, label=box))
    x, y = result.false_positive_rate, result.false_negative_rate
    ax.plot([x], [y], "o", ms=3, color=colour, label=result.attack)
    ax.set(xlim=(-0.01, 1.01), ylim=(-0.01, 1.01), aspect="equal")
    style.set_labels(ax, "false-positive rate", "false-negative rate")
    found = "An attack within the promise" if result.holds else "An attack that breaks the promise"
    measured = f"measured μ from {result.mu_low:.3g} to {result.mu_high:.3g}"
    style.set_title(ax, f"{found}\n{measured}; smaller is more private", room=60)
    ax.legend(loc="upper right", fontsize=style.SMALL - 1.0)
    return style.root_of(ax)


def plot_membership(result: Membership) -> Any:
    """The curve over all thresholds, and what datasets with and without the record release."""
    count = 1 + len(result.inside.statistics)
    figure = style.new_figure(3.2, 3.1 * count)
    style.set_title(figure, _whose(result))
    panels = figure.subplots(1, count)
    draw_curve(panels[0], result)
    for statistic, ax in enumerate(panels[1:]):
        draw_releases(ax, result, statistic)
    style.legend([panels[1]], below=True, columns=4)
    return figure


def _whose(result: Membership) -> str:
    records = f"{result.n:,} record{'s' if result.n != 1 else ''}"
    if np.isinf(result.n_paths):
        return WHOSE.format(paths="the exact posterior", records=records)
    count = f"{result.n_paths:,.0f} sample path{'s' if result.n_paths != 1 else ''}"
    return WHOSE.format(paths=count, records=records)


def draw_curve(ax: Axes, result: Membership) -> None:
    """True against false positives, with the bounds of the thresholds that were fixed."""
    fpr, tpr = result.false_positive_rates, result.true_positive_rates
    ax.plot(fpr, tpr, color=style.BLUE, label="attack")
    ax.plot([0, 1], [0, 1], color=style.BLACK, lw=0.8, ls=":", label="guessing")
    for place, t in enumerate(result.thresholds):
        low, high = t.true_positive_bounds
        name = None if place else "bounds at fixed thresholds"
        ax.plot([t.false_positive_rate] * 2, [low, high], color=style.BLACK, lw=1.2, label=name)
    if result.promise is not None:
        limit = 1.0 - result.promise.false_negative_rate(RATES)
        ax.plot(RATES, limit, color=style.VERMILION, ls="--", label="promised limit")
    ax.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.06))
    style.set_labels(ax, "false-positive rate", "true-positive rate")
    style.set_title(ax, f"How well it tells: area {result.auc:.3f}")
    ax.legend(fontsize=style.SMALL - 1.0, loc="lower right")


def draw_releases(ax: Axes, result: Membership, statistic: int) -> None:
    """One statistic of the released values, counted and fitted, with and without the record.

    Parameters
    ----------
    ax
        The panel to draw in.
    result
        Result of ``membership``.
    statistic
        0 for means, 1 for logarithms of variances.

    """
    inside, outside = (seen.statistics[statistic] for seen in (result.inside, result.outside))
    low, high = np.quantile(np.concatenate([inside, outside]), [0.002, 0.998])
    edges, grid = np.linspace(low, high, 61), np.linspace(low, high, 300)
    member = inside, result.laws.inside[statistic], style.VERMILION, "member"
    other = outside, result.laws.outside[statistic], style.BLUE, "not a member"
    for values, law, colour, name in (member, other):
        # counted over all draws: np.histogram would leave out what lies beyond the edges
        counts = np.histogram(values, edges)[0] / (len(values) * np.diff(edges))
        ax.stairs(counts, edges, fill=True, color=colour, alpha=0.3, label=f"{name}, counted")
        line = "-" if name == "member" else "--"
        ax.plot(grid, np.exp(law.logpdf(grid)), line, color=colour, lw=1.2, label=f"{name}, fitted")
    ax.set_xlim(low, high)
    ax.set_ylim(bottom=0.0)
    ax.tick_params(labelsize=style.TEXT - 1.0)
    style.set_labels(ax, f"{STATISTICS[statistic]} of the released values", "density")
