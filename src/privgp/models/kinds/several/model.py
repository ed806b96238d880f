"""Several outcomes of one person in one release: planned and measured together, learned one by one.

Every outcome has a model of its own, which reads its own part of the one measurement. A model of
several outcomes gives these by ``_alone()``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from privgp.models.promise import (
    EXPOSURES,
    OUTPUTS_ASSUMPTIONS,
    PEOPLE_ASSUMPTIONS,
    RECORDS_ASSUMPTIONS,
    VALUES,
    Told,
    regressor_guarantee,
)
from privgp.plan.several.plan import JointPlan
from privgp.privacy.guarantee import (
    PEOPLE_RECORDS,
    PERSON,
    RECORDS,
    ROW,
    Guarantee,
    Protected,
    exactly,
    promise,
)
from privgp.release.release import Release
from privgp.release.spendings import FROM_THEM


@regressor_guarantee.register(JointPlan)
def joint_guarantee(plan: JointPlan, *, simulated: bool, told: Told = VALUES) -> Guarantee:
    """What the measurement of several outcomes guarantees."""
    squares = sum(part.energy_weight > 0 for part in plan.strategy.parts)
    of_squares = f", {squares} of them of squares," if squares else ","
    protected, assumptions = _protected(plan)
    count = len(plan.parts)
    return promise(
        protected,
        [plan.noise.event],
        (plan.epsilon, plan.delta),
        assumptions=assumptions,
        mechanism=f"{plan.strategy.size} noisy totals of the values of {count} "
        f"output{'s' if count > 1 else ''}"
        f"{of_squares} each value clipped to the declared range of its output "
        f"({plan.noise.describe()}){FROM_THEM}",
        sampler=plan.noise.sampler,
        simulated=simulated,
    )


def _protected(plan: JointPlan) -> tuple[Protected, tuple[str, ...]]:
    """Whom the guarantee protects, and what it assumes."""
    if plan.x_bounds is not None:
        if plan.strategy.whole_people:
            return PEOPLE_RECORDS, PEOPLE_ASSUMPTIONS
        return RECORDS, RECORDS_ASSUMPTIONS
    protected = ROW if plan.strategy.people is None else PERSON
    assumptions: tuple[str, ...] = OUTPUTS_ASSUMPTIONS
    limits = [
        f"{name} by at most {exactly(change)}"
        for name, change in zip(plan.names, plan.max_changes, strict=True)
        if change is not None
    ]
    if limits:
        limited = "; ".join(limits)
        counts = ", ".join(limit.partition(" by ")[0] for limit in limits)
        protected = replace(
            protected,
            unit=f"{protected.unit}, of {counts} one person's contribution alone",
            neighbours=f"{protected.neighbours}, and {limited}",
        )
        assumptions = (*assumptions, f"one person changes no more than this: {limited}")
    if plan.unit is not None:
        assumptions = (*assumptions, EXPOSURES)
    return protected, assumptions


def plot_several(model: Any, ax: Any, figure: Any, observation: bool, points: Any = None) -> Any:
    """The curve, map or slices of every output, one above the other."""
    from privgp.models.picture import on_paper, picture_of
    from privgp.pictures.several import plot_each

    if ax is not None:
        raise ValueError("several outputs are drawn in several panels: give figure, not ax.")
    release: Release = model._released
    shown = zip(release.each, release.output_names or (), strict=True)
    released = [picture_of(one, name, observation) for one, name in shown]
    if model.inputs_ is None:
        released = [replace(one, names=release.names) for one in released]
    return plot_each([on_paper(model, one, points) for one in released], figure)
