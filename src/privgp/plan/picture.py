"""The picture of a plan: what it expects, as plain arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from privgp.pictures.plans import plot_errors
from privgp.pictures.style import budget_text
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
    return plot_errors(
        epsilons,
        np.array([_error(plan, epsilon) for epsilon in epsilons]),
        floor=_error(plan, NEARLY_NO_NOISE),
        planned=(plan.epsilon, plan.expected_error()),
        prior_range=_prior_range(plan),
        title=f"Plan for {budget_text(plan.epsilon, plan.promised_delta)}",
        ax=ax,
    )


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
