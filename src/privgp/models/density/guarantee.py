"""What a released density guarantees (docs/proofs/density.md)."""

from __future__ import annotations

from privgp.plan.plan import Plan
from privgp.privacy.guarantee import Guarantee, promise
from privgp.privacy.protected import POINTS
from privgp.release.spendings import FROM_THEM

ASSUMPTIONS = (
    "the number of points is public",
    "kernel, domain, bins and budget were chosen without looking at the points",
)


def density_guarantee(plan: Plan, *, simulated: bool) -> Guarantee:
    """The guarantee of noisy sums of the numbers of points in the bins of a grid.

    Replacing one point moves two counts by 1, so every sum of counts with weights of norm at most 1 by
    at most 2: what the plan states as the change of one output.
    """
    size, bins = plan.strategy.size, plan.rows
    totals = f"{size} noisy total{'s' if size > 1 else ''} of the numbers of points in {bins} bins"
    return promise(
        POINTS,
        [plan.noise.event],
        (plan.epsilon, plan.delta),
        assumptions=ASSUMPTIONS,
        mechanism=f"{totals} of the declared domain ({plan.noise.describe()}){FROM_THEM}",
        sampler=plan.noise.sampler,
        simulated=simulated,
    )
