"""What functions of outputs and of records have in common."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any

from privgp.plan.inputs.arguments import check_bounds
from privgp.privacy.budget import check_budget
from privgp.privacy.guarantee import Guarantee, Protected, promise
from privgp.vault.states.outputs import Draws
from privgp.vault.states.records import RecordDraws

if TYPE_CHECKING:
    from privgp.models.function.estimator import PrivateFunction


def asked_of(function: PrivateFunction) -> dict[str, Any]:
    """What was asked for, checked, as every function keeps it."""
    check_budget(function.epsilon, function.delta)
    dominance = function.dominance
    return {
        "y_bounds": check_bounds("y_bounds", function.y_bounds),
        "epsilon": float(function.epsilon),
        "delta": float(function.delta),
        "sensitivity": function.sensitivity,
        "dominance": float(dominance) if isinstance(dominance, Real) else dominance,
    }


def promised(
    protected: Protected,
    asked: dict[str, Any],
    draws: Draws | RecordDraws,
    *,
    public: str,
    chosen: str,
    how: str,
) -> Guarantee:
    """What is promised of all answers together; ``how``: the function is drawn, {} for its size."""
    noise = draws.noise
    return promise(
        protected,
        [noise.event],
        epsilon=asked["epsilon"],
        delta=asked["delta"],
        assumptions=(
            public,
            chosen,
            "no draw is made twice: the state of the function is kept and never set back",
        ),
        mechanism=f"{noise.describe()} on the posterior mean as a function, "
        f"{how.format(f'{noise.size:,}')}; all answers together are covered",
        sampler=noise.sampler,
        simulated=draws.seed is not None,
    )
