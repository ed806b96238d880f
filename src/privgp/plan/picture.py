"""A plan before anything is spent: the error that a budget buys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from privgp.pictures import style

if TYPE_CHECKING:
    from privgp.plan.plan import Plan

EPSILONS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)


def plot_plan(plan: Plan, ax: Axes | None = None) -> Figure:
    """Expected error at the targets against epsilon, with the planned budget marked.

    Planned again for every epsilon, where that is possible. The bar spans 90% of the prior of the
    hyperparameters.
    """
    epsilons = sorted({*EPSILONS, plan.epsilon})
    errors = [_error(plan, epsilon) for epsilon in epsilons]
    panel = style.panels(None, 1, 1, 3.0)[0] if ax is None else ax
    every = "planned again" if plan.can_plan_again else "the same measurement"
    panel.plot(epsilons, errors, color=style.BLUE, label=f"{every} at every epsilon")
    floor = plan.error_without_privacy()
    panel.axhline(floor, color=style.BLACK, lw=1.0, ls="--", label="without privacy")
    if plan.learns:
        low, high = plan.error_range()
        middle, reach = 0.5 * (low + high), 0.5 * (high - low)
        panel.errorbar(plan.epsilon, middle, reach, fmt="none", ecolor=style.ORANGE, elinewidth=2.0,
            capsize=4.0, capthick=2.0, label="over 90% of the prior")  # fmt: skip
    error = plan.expected_error()
    marked = f"planned: {error:.3g} at epsilon={style.number(plan.epsilon)}"
    panel.plot(plan.epsilon, error, "o", color=style.VERMILION, zorder=4, label=marked)
    panel.set_xscale("log")
    panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: style.number(value)))
    panel.set_ylim(bottom=0.0)
    panel.grid(alpha=0.3, lw=0.5)
    style.set_labels(panel, "epsilon", f"expected error, {_unit(plan)}")
    style.set_title(panel, f"Plan for {style.budget_text(plan.epsilon, plan.promised_delta)}")
    style.legend([panel], below=ax is None)
    return style.root_of(panel)


def _unit(plan: Plan) -> str:
    """What an error is counted in."""
    if plan.unit is not None:
        return "relative to the rate"
    made = plan.made_for
    is_label = made is not None and made.parameters.labels() is not None
    return "as a probability" if is_label else "in units of the output"


def _error(plan: Plan, epsilon: float) -> float:
    """The expected error, or nothing where no noise can be calibrated."""
    try:
        return plan.expected_error(epsilon)
    except ValueError:
        return float("nan")
