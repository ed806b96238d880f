"""A plan before anything is spent: the error that a budget buys."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from privgp.pictures import style
from privgp.pictures.numbers import number, together

if TYPE_CHECKING:
    from privgp.plan.plan import Plan

WHAT = "Error to expect of the released function, by privacy budget"
PRIOR = "its range over 90% of the prior"
EPSILONS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)


def plot_plan(plan: Plan, ax: Axes | None = None) -> Figure:
    """Expected error at the targets against epsilon, with the planned budget marked.

    Planned again for every epsilon, where that is possible. The band spans 90% of the prior of the
    hyperparameters.
    """
    epsilons = sorted({*EPSILONS, plan.epsilon})
    errors, low, high = np.transpose([_errors(plan, epsilon) for epsilon in epsilons])
    panel = style.panels(None, 1, 1, 3.0)[0] if ax is None else ax
    every = "planned again" if plan.can_plan_again else "the same measurement"
    panel.plot(epsilons, errors, color=style.BLUE, label=f"{every} at every ε")
    floor, error = plan.error_without_privacy(), plan.expected_error()
    if plan.learns:
        panel.fill_between(epsilons, low, high, color=style.SKY, alpha=0.3, lw=0, label=PRIOR)
        panel.plot(epsilons, np.transpose([low, high]), color=style.BLUE, lw=0.6, ls="--")
    panel.axhline(floor, color=style.BLACK, lw=1.0, ls=":", label="without privacy")
    marked = f"planned: {error:.3g} at ε = {number(plan.epsilon)}"
    panel.plot(plan.epsilon, error, "o", color=style.VERMILION, zorder=4, label=marked)
    panel.set(xscale="log", yscale="log")
    panel.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    for axis in (panel.xaxis, panel.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: together([value])[0]))
        axis.set_minor_formatter(NullFormatter())
    panel.grid(alpha=0.3, lw=0.5)
    style.set_labels(panel, "ε: less is more private", f"expected error, {plan.error_unit}")
    rows = plan.strategy.rows
    budget = style.budget_text(plan.epsilon, plan.promised_delta)
    count = f"{rows:,} row{'s' if rows != 1 else ''}"
    style.set_title(panel, f"{WHAT}\nPlan for {count} with {budget}; nothing is spent yet")
    style.legend([panel], below=ax is None)
    return style.root_of(panel)


def _errors(plan: Plan, epsilon: float) -> tuple[float, float, float]:
    """The expected error and its range, or nothing where no noise can be calibrated."""
    try:
        again = plan if epsilon == plan.epsilon else plan.at(epsilon)
    except ValueError:
        return np.nan, np.nan, np.nan
    return again.expected_error(), *again.error_range()
