"""The assumptions of Kusner's algorithms, checked, and the plan that follows from them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from privgp.gp.surrogate import fixed_prior
from privgp.plan.inputs.arguments import is_number
from privgp.plan.search.plan import SearchPlan
from privgp.privacy import kusner

ASSUMED: dict[str, float | None] = {
    "lengthscale": 0.3, "smoothness": 2.5, "observation_std": 0.1, "correlation": None,
    "prior_mean": None, "prior_std": None, "A": None, "tau": None,
}  # fmt: skip
POSITIVE = ("lengthscale", "prior_std", "observation_std")
REGRET = ("A", "tau")


def kusner_plan(
    plan: SearchPlan, assume: Any, steps: int, score_range: tuple[float, float]
) -> SearchPlan:
    """The plan with the constants of algorithm 1 or 2, half of the budget for each of two values."""
    space, noise_free = plan.space, plan.method == "kusner-noise-free"
    low, high = score_range
    defaults = {
        "correlation": 1.0 - 1.0 / plan.rows,  # neighbours share all records but one
        "prior_mean": 0.5 * low + 0.5 * high,
        "prior_std": 0.25 * (high - low),
    }
    assumed = _assumptions(assume, defaults, noise_free=noise_free)
    prior = fixed_prior(space.points.shape[1], assumed["lengthscale"], assumed["smoothness"])
    epsilon, delta = 0.5 * plan.epsilon, 0.5 * plan.delta
    if noise_free:
        noise = 0.0
        regret = kusner.vanishing_regret(assumed["A"], assumed["tau"], len(space.names))
    else:
        noise = assumed["observation_std"]
        gain = kusner.largest_gain(space.points, prior, steps, noise)
        beta = kusner.beta(steps, len(space), delta)
        regret = math.sqrt(kusner.regret_constant(noise) * beta * gain / steps)
    constants = kusner.KusnerConstants(
        epsilon, delta, len(space), steps, assumed["correlation"], noise, regret
    )
    if not 0 < constants.laplace_scale < math.inf:
        raise ValueError(
            "assume says that no record changes anything, or that one may change everything: A must "
            "be positive, and not as large."
        )
    mean, std = assumed["prior_mean"], assumed["prior_std"]
    return replace(plan, constants=constants, prior=prior, prior_mean=mean, prior_std=std)


def _assumptions(assume: Any, defaults: dict[str, float], *, noise_free: bool) -> dict[str, float]:
    """What was declared, or its default."""
    given = {} if assume is None else assume
    if not isinstance(given, Mapping) or set(given) - set(ASSUMED):
        raise ValueError(f"assume must be a dict with names among {', '.join(ASSUMED)}.")
    values: dict[str, Any] = {**ASSUMED, **given}
    values |= {name: default for name, default in defaults.items() if values[name] is None}
    if not noise_free:
        values |= dict.fromkeys(REGRET, 0.0)
    elif any(values[name] is None for name in REGRET):
        raise ValueError(
            "method='kusner-noise-free' needs assume={'A': ..., 'tau': ...}, the constants of the "
            "regret bound A exp(-tau t / (log t)^(d/4)): they are assumed, never read from the data."
        )
    for name, value in values.items():
        if not is_number(value):
            raise ValueError(f"assume[{name!r}] must be a number.")
        if (name in POSITIVE and value <= 0) or (name in REGRET and value < 0):
            raise ValueError(f"assume[{name!r}] must be positive.")
        if math.isinf(value) and name != "smoothness":
            raise ValueError(f"assume[{name!r}] must be finite.")
    if values["observation_std"] > 1:  # theorem 4 as printed would be too small
        raise ValueError("assume['observation_std'] must be at most 1, the prior's std.")
    if values["smoothness"] not in (1.5, 2.5, math.inf):
        raise ValueError("assume['smoothness'] must be 1.5, 2.5 or infinity.")
    if not 0 <= values["correlation"] <= 1:
        raise ValueError("assume['correlation'] must lie between 0 and 1.")
    return {name: float(value) for name, value in values.items()}
