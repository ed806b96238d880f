"""A plan before anything is spent: the error a budget buys, and what would be measured where."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from privgp.pictures import style
from privgp.types import Array

SHOWN, COLUMNS, PANEL_ROOM = 6, 3, 20
WEAK = 0.005  # a sum with less of the power would be an empty panel
WEIGHT = "weight of an output"


def plot_errors(
    epsilons: Array,
    errors: Array,
    *,
    floor: float,
    planned: tuple[float, float],
    prior_range: Array | None,
    title: str,
    ax: Axes | None = None,
) -> Figure:
    """Expected errors, which may be nan, against epsilon, with the planned (epsilon, error) marked.

    ``floor``: the error without noise; ``prior_range``: its ends where the prior varies.
    """
    panel = style.panels(None, 1, 1, 3.0)[0] if ax is None else ax
    panel.plot(epsilons, errors, color=style.BLUE, label="root mean square at the targets")
    line = "same measurement, no noise"
    panel.axhline(floor, color=style.BLACK, lw=1.0, ls="--", label=line)
    epsilon, error = planned
    if prior_range is not None:
        middle, reach = prior_range.mean(), np.ptp(prior_range) / 2.0
        panel.errorbar(epsilon, middle, reach, fmt="none", ecolor=style.ORANGE, elinewidth=2.0,
            capsize=4.0, capthick=2.0, label="over 90% of the prior")  # fmt: skip
    marked = f"planned: {error:.3g} at epsilon={style.number(epsilon)}"
    panel.plot(epsilon, error, "o", color=style.VERMILION, zorder=4, label=marked)
    panel.set_xscale("log")
    panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: style.number(value)))
    panel.set_ylim(bottom=0.0)
    panel.grid(alpha=0.3, lw=0.5)
    style.set_labels(panel, "epsilon", "expected error, in units of the output")
    style.set_title(panel, title)
    style.legend([panel], below=ax is None)
    return style.root_of(panel)


def plot_sums(
    inputs: Array,
    weights: Array,
    title: str,
    *,
    names: Sequence[object] | None = None,
    figure: style.Canvas | None = None,
    shown: int = SHOWN,
) -> Figure:
    """The weight of an output at each input in the strongest sums; ``weights``: (sums, inputs).

    One column of inputs: a curve for each of up to ``shown`` sums; two: a map for each; more: a
    table of sums by inputs, of all sums that make 99% of the power.
    """
    count = inputs.shape[1]
    names = style.input_names(names, count)
    powers = np.square(weights).sum(axis=1)
    shares = powers / max(float(powers.sum()), 1e-300)
    order = np.argsort(-powers, kind="stable")
    if count > 2:
        order = order[: 1 + int(np.searchsorted(np.cumsum(shares[order]), 0.99))]
        axes = style.panels(figure, 1, 1, 3.0)
        _table(axes[0], weights[order])
        x_name = f"distinct inputs, in order of {names[0]}"
        style.set_labels(axes[0], x_name, "measured sum, strongest first")
    else:
        order = order[: max(1, min(shown, int(np.count_nonzero(shares > WEAK))))]
        axes = style.panels(figure, len(order), COLUMNS, 1.7)
        top = float(np.abs(weights[order]).max()) or 1.0
        for j, (panel, row) in enumerate(zip(axes, order, strict=True)):
            (_curve if count == 1 else _map)(panel, inputs, weights[row], top)
            panel.set_title(f"{100 * shares[row]:.0f}% of the power", fontsize=style.SMALL)
            x_name = names[0] if j + COLUMNS >= len(order) else ""
            y_name = "" if j % COLUMNS else WEIGHT if count == 1 else names[1]
            style.set_labels(panel, x_name, y_name, room=PANEL_ROOM)
    if len(order) < len(weights):
        title += f"; the {len(order)} strongest sums shown"
    if count > 1:
        coloured = axes[0].images[0] if count > 2 else axes[0].collections[0]
        bar = axes[0].figure.colorbar(coloured, ax=axes)
        bar.set_label(WEIGHT, fontsize=style.TEXT)
        bar.ax.tick_params(labelsize=style.SMALL)
    style.set_title(axes[0].figure, title)
    return style.root_of(axes[0])


def _curve(ax: Axes, inputs: Array, row: Array, top: float) -> None:
    x = inputs[:, 0]
    ax.axhline(0.0, color=style.BLACK, lw=0.5)
    ax.fill_between(x, 0.0, row, color=style.SKY, alpha=0.4, lw=0)
    ax.plot(x, row, color=style.BLUE, lw=1.2, marker="o", ms=1.5)
    ax.set_ylim(-1.1 * top, 1.1 * top)


def _map(ax: Axes, inputs: Array, row: Array, top: float) -> None:
    x, y = inputs.T
    ax.scatter(x, y, 9.0, row, cmap=style.DIVERGING, vmin=-top, vmax=top, edgecolors=style.BLACK,
        linewidths=0.15)  # fmt: skip


def _table(ax: Axes, weights: Array) -> None:
    top = float(np.abs(weights).max()) or 1.0
    ends = (0.5, weights.shape[1] + 0.5, len(weights) + 0.5, 0.5)
    ax.imshow(weights, style.DIVERGING, vmin=-top, vmax=top, extent=ends, aspect="auto",
        interpolation="nearest")  # fmt: skip
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
