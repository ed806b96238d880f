"""A plan before anything is spent: the error that a budget buys."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from privgp.pictures import style
from privgp.pictures.style import number, together

if TYPE_CHECKING:
    from privgp.plan.part import Part
    from privgp.plan.plan import Plan

WHAT = "Error to expect of the released function, by privacy budget"
PRIOR = "its range for 90% of plausible functions"
EPSILONS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)


def plot_plan(plan: Plan, ax: Axes | None = None) -> Figure:
    """Expected error at the targets against epsilon, a panel for every output, with the planned budget
    marked.

    Planned again for every epsilon, where that is possible. The band spans 90% of the prior of the
    hyperparameters.
    """
    count = len(plan.parts)
    if count > 1 and ax is not None:
        raise ValueError("several outputs are drawn in several panels: leave ax out.")
    epsilons = sorted({*EPSILONS, plan.epsilon})
    plans = [_plan_at(plan, epsilon) for epsilon in epsilons]
    known = {each.epsilon: each.expected_error() for each in plans if each is not None}
    vars(plan).setdefault("_errors", {}).update(known)
    panels = [ax] if ax is not None else _new_panels(count)
    for place, panel in enumerate(panels):
        parts = [None if each is None else each.parts[place] for each in plans]
        _draw_errors(panel, plan, place, epsilons, [_errors(part) for part in parts])
        if ax is None and count == 1:
            for mark in style.label_curves(panel):
                panel.annotate(
                    str(mark.get_label()), (plan.epsilon, plan.parts[place].expected_error()), (7, 7),
                    textcoords="offset points", fontsize=style.SMALL, color=style.VERMILION,
                )  # fmt: skip
        else:
            style.legend([panel], below=False)
    return style.root_of(panels[0])


def _new_panels(count: int) -> list[Axes]:
    """One above the other, each with its own axis."""
    if count == 1:
        return style.panels(None, 1, 1, 3.0)
    return [*style.new_figure(3.0 * count).subplots(count, 1)]


def _draw_errors(
    panel: Axes, plan: Plan, place: int, epsilons: list[float], found: list[tuple[float, ...]]
) -> None:
    """The expected errors of one output. ``found``: the error and its range at every epsilon."""
    part = plan.parts[place]
    errors, low, high = np.transpose(found)
    every = "planned again" if plan.can_plan_again else "the same measurement"
    panel.plot(epsilons, errors, color=style.BLUE, label=f"{every} at every ε")
    floor, error = np.atleast_1d(plan.error_without_privacy())[place], part.expected_error()
    if part.learns:
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
    of_it = f" of {plan.names[place]}" if len(plan.parts) > 1 else f", {plan.error_unit}"
    style.set_labels(panel, "ε: less is more private", f"expected error{of_it}")
    rows = part.rows
    budget = style.budget_text(plan.epsilon, plan.promised_delta)
    count = f"{rows:,} row{'s' if rows != 1 else ''}"
    is_alone = len(plan.parts) == 1 and len(style.root_of(panel).axes) == 1
    where = style.root_of(panel) if is_alone else panel
    style.set_title(where, f"{WHAT}\nPlan for {count} with {budget}; nothing is spent yet")


def _plan_at(plan: Plan, epsilon: float) -> Plan | None:
    """The plan at another epsilon, or nothing where no noise can be calibrated."""
    try:
        return plan if epsilon == plan.epsilon else plan.at(epsilon)
    except ValueError:
        return None


def _errors(part: Part | None) -> tuple[float, float, float]:
    """The expected error and its range."""
    if part is None:
        return np.nan, np.nan, np.nan
    return part.expected_error(), *part.error_range()
