"""A plan before anything is spent: the error a budget buys, and what would be measured where."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from privgp.pictures import style as style
from privgp.types import Array

if TYPE_CHECKING:
    from privgp.plan.bins.records import RecordsPlan
    from privgp.plan.preview import Plan

EPSILONS = (0.05, 10.0)
CURVE_POINTS = 25
NEARLY_NO_NOISE = 1e4  # the largest epsilon that is accepted stands in for no privacy
CHEAP = 2_000_000  # kernel values up to which the prior's range takes a few seconds at most
SHOWN, COLUMNS, PANEL_ROOM = 6, 3, 20
WEAK = 0.005  # a sum with less of the power would be an empty panel
WEIGHT = "weight of an output"


def plot_plan(plan: Plan | RecordsPlan, ax: Axes | None = None) -> Figure:
    """Expected error at the targets against epsilon, with the planned budget marked.

    The curve is of the planned measurement with the noise that each epsilon needs. The bar spans
    90% of the prior of the hyperparameters, where that is cheap to compute.
    """
    panel = style.panels(None, 1, 1, 3.0)[0] if ax is None else ax
    low, high = min(EPSILONS[0], 0.5 * plan.epsilon), max(EPSILONS[1], 2.0 * plan.epsilon)
    epsilons = np.geomspace(low, min(high, NEARLY_NO_NOISE), CURVE_POINTS)
    errors = [_error(plan, epsilon) for epsilon in epsilons]
    planned = plan.expected_error()
    panel.plot(epsilons, errors, color=style.BLUE, label="root mean square at the targets")
    panel.axhline(
        _error(plan, NEARLY_NO_NOISE),
        color=style.BLACK,
        lw=1.0,
        ls="--",
        label="same measurement, no noise",
    )
    ends = _prior_range(plan)
    if ends is not None:
        panel.errorbar(
            plan.epsilon,
            ends.mean(),
            yerr=np.ptp(ends) / 2.0,
            fmt="none",
            ecolor=style.ORANGE,
            elinewidth=2.0,
            capsize=4.0,
            capthick=2.0,
            label="over 90% of the prior",
        )
    panel.plot(
        plan.epsilon,
        planned,
        "o",
        color=style.VERMILION,
        zorder=4,
        label=f"planned: {planned:.3g} at epsilon={style.number(plan.epsilon)}",
    )
    panel.set_xscale("log")
    panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: style.number(value)))
    panel.set_ylim(bottom=0.0)
    panel.grid(alpha=0.3, lw=0.5)
    style.set_labels(panel, "epsilon", "expected error, in units of the output")
    style.set_title(panel, f"Plan for {style.budget_text(plan.epsilon, plan.promised_delta)}")
    style.legend([panel], below=ax is None)
    return style.root_of(panel)


def plot_strategy(
    plan: Plan,
    figure: style.Canvas | None = None,
    *,
    names: Sequence[str] | None = None,
    shown: int = SHOWN,
) -> Figure:
    """What is measured where: the weight of an output in up to ``shown`` strongest sums.

    One input: a curve for each; two inputs: a map for each; more: a table of numbers by inputs,
    of all numbers that make 99% of the power. ``names``: of the inputs.
    """
    B, inputs = plan.strategy.matrix, plan.inputs
    count = inputs.shape[1]
    names = style.input_names(names, count)
    powers = np.square(B).sum(axis=1)
    order = np.argsort(-powers, kind="stable")
    shares = powers / max(float(powers.sum()), 1e-300)
    energy = " and an energy" if plan.strategy.energy_weight > 0 else ""
    sums = "1 weighted sum" if len(B) == 1 else f"{len(B)} weighted sums"
    title = f"{style.budget_text(plan.epsilon, plan.promised_delta)}: {sums}{energy}"
    if count > 2:
        order = order[: 1 + int(np.searchsorted(np.cumsum(shares[order]), 0.99))]
        axes = style.panels(figure, 1, 1, 3.0)
        _table(axes[0], B[order])
        style.set_labels(
            axes[0], f"distinct inputs, in order of {names[0]}", "measured sum, strongest first"
        )
    else:
        strong = int(np.count_nonzero(shares > WEAK))
        order = order[: max(1, min(shown, strong))]
        axes = style.panels(figure, len(order), COLUMNS, 1.7)
        top = float(np.abs(B[order]).max()) or 1.0
        for j, (panel, row) in enumerate(zip(axes, order, strict=True)):
            (_curve if count == 1 else _map)(panel, inputs, B[row], top)
            panel.set_title(f"{100 * shares[row]:.0f}% of the power", fontsize=style.SMALL)
            style.set_labels(
                panel,
                names[0] if j + COLUMNS >= len(order) else "",
                (WEIGHT if count == 1 else names[1]) if j % COLUMNS == 0 else "",
                room=PANEL_ROOM,
            )
    if len(order) < len(B):
        title += f"; the {len(order)} strongest sums shown"
    if count > 1:
        bar = axes[0].figure.colorbar(
            axes[0].images[0] if count > 2 else axes[0].collections[0], ax=axes
        )
        bar.set_label(WEIGHT, fontsize=style.TEXT)
        bar.ax.tick_params(labelsize=style.SMALL)
    style.set_title(axes[0].figure, title)
    return style.root_of(axes[0])


def _error(plan: Plan | RecordsPlan, epsilon: float) -> float:
    """The expected error, or nothing where no noise can be calibrated."""
    try:
        return plan.expected_error(float(epsilon))
    except ValueError:
        return float("nan")


def _prior_range(plan: Plan | RecordsPlan) -> Array | None:
    """The ends of 90% of the prior's errors; none for an unbiased release, whose prior is fixed."""
    if plan.unbiased is not None or len(plan.functionals.nodes) * len(plan.targets) > CHEAP:
        return None
    weights = plan.target_weights / plan.target_weights.sum()
    return np.asarray(np.sqrt(plan.expected_std(plan.targets, 0.9) ** 2 @ weights))


def _curve(ax: Axes, inputs: Array, row: Array, top: float) -> None:
    x = inputs[:, 0]
    ax.axhline(0.0, color=style.BLACK, lw=0.5)
    ax.fill_between(x, 0.0, row, color=style.SKY, alpha=0.4, lw=0)
    ax.plot(x, row, color=style.BLUE, lw=1.2, marker="o", ms=1.5)
    ax.set_ylim(-1.1 * top, 1.1 * top)


def _map(ax: Axes, inputs: Array, row: Array, top: float) -> None:
    ax.scatter(
        inputs[:, 0],
        inputs[:, 1],
        c=row,
        s=9.0,
        cmap=style.DIVERGING,
        vmin=-top,
        vmax=top,
        edgecolors=style.BLACK,
        linewidths=0.15,
    )


def _table(ax: Axes, B: Array) -> None:
    top = float(np.abs(B).max()) or 1.0
    ax.imshow(
        B,
        extent=(0.5, B.shape[1] + 0.5, len(B) + 0.5, 0.5),
        cmap=style.DIVERGING,
        vmin=-top,
        vmax=top,
        aspect="auto",
        interpolation="nearest",
    )
    ax.yaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
