"""A plan before anything is spent: the error that a budget buys."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from privgp.pictures import style
from privgp.types import Array

if TYPE_CHECKING:
    from privgp.plan.plan import Plan

EPSILONS = (0.05, 10.0)
CURVE_POINTS = 25
NEARLY_NO_NOISE = 1e4  # the largest epsilon that is accepted stands in for no privacy
CHEAP = 2_000_000  # kernel values up to which the prior's range takes a few seconds at most


def plot_plan(plan: Plan, ax: Axes | None = None) -> Figure:
    """Expected error at the targets against epsilon, with the planned budget marked.

    The bar spans 90% of the prior of the hyperparameters, where that is cheap to compute.
    """
    low, high = min(EPSILONS[0], 0.5 * plan.epsilon), max(EPSILONS[1], 2.0 * plan.epsilon)
    epsilons = np.geomspace(low, min(high, NEARLY_NO_NOISE), CURVE_POINTS)
    errors = [_error(plan, epsilon) for epsilon in epsilons]
    panel = style.panels(None, 1, 1, 3.0)[0] if ax is None else ax
    panel.plot(epsilons, errors, color=style.BLUE, label="root mean square at the targets")
    line, floor = "same measurement, no noise", _error(plan, NEARLY_NO_NOISE)
    panel.axhline(floor, color=style.BLACK, lw=1.0, ls="--", label=line)
    prior_range = _prior_range(plan)
    if prior_range is not None:
        middle, reach = prior_range.mean(), np.ptp(prior_range) / 2.0
        panel.errorbar(plan.epsilon, middle, reach, fmt="none", ecolor=style.ORANGE, elinewidth=2.0,
            capsize=4.0, capthick=2.0, label="over 90% of the prior")  # fmt: skip
    error = plan.expected_error()
    marked = f"planned: {error:.3g} at epsilon={style.number(plan.epsilon)}"
    panel.plot(plan.epsilon, error, "o", color=style.VERMILION, zorder=4, label=marked)
    panel.set_xscale("log")
    panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: style.number(value)))
    panel.set_ylim(bottom=0.0)
    panel.grid(alpha=0.3, lw=0.5)
    style.set_labels(panel, "epsilon", "expected error, in units of the output")
    style.set_title(panel, f"Plan for {style.budget_text(plan.epsilon, plan.promised_delta)}")
    style.legend([panel], below=ax is None)
    return style.root_of(panel)


def _error(plan: Plan, epsilon: float) -> float:
    """The expected error, or nothing where no noise can be calibrated."""
    try:
        return plan.expected_error(float(epsilon))
    except ValueError:
        return float("nan")


def _prior_range(plan: Plan) -> Array | None:
    """The ends of 90% of the prior's errors; none for an unbiased release, whose prior is fixed."""
    if plan.unbiased is not None or len(plan.functionals.nodes) * len(plan.targets) > CHEAP:
        return None
    return np.array([plan.weighted(stds) for stds in plan.expected_std(plan.targets, 0.9)])
