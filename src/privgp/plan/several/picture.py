"""A plan for several outputs before anything is spent: the error of each that a budget buys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from privgp.pictures import style
from privgp.plan.picture import plot_plan

if TYPE_CHECKING:
    from privgp.plan.several.plan import JointPlan


@dataclass(frozen=True)
class OneOutput:
    """What a picture asks of the plan of one output, answered by the plan of all."""

    plan: JointPlan
    place: int
    can_plan_again: bool = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self.plan.parts[self.place], name)

    def at(self, epsilon: float) -> OneOutput:
        return OneOutput(self.plan.at(epsilon), self.place)


def plot_joint_plan(plan: JointPlan, ax: Axes | None = None) -> Figure:
    """The expected error of every output against epsilon, one panel above the other."""
    if ax is not None:
        raise ValueError("several outputs are drawn in several panels: leave ax out.")
    figure = style.new_figure(3.0 * len(plan.parts))
    panels = figure.subplots(len(plan.parts), 1)
    for place, panel in enumerate(panels):
        plot_plan(OneOutput(plan, place), panel)  # type: ignore[arg-type]
        style.set_labels(panel, "ε: less is more private", f"expected error of {plan.names[place]}")
    return figure
