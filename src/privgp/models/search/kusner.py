"""What Kusner's algorithms assume, checked, and the constants that follow."""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Real
from typing import TYPE_CHECKING

from privgp.gp.surrogate import Hyperprior, fixed_prior
from privgp.plan.search.space import Space
from privgp.privacy.kusner import (
    KusnerConstants,
    beta,
    largest_gain,
    regret_constant,
    vanishing_regret,
)

if TYPE_CHECKING:
    from privgp.models.search.bayes import PrivateBayesSearchCV

ASSUMED: dict[str, float | None] = {
    "lengthscale": 0.3, "smoothness": 2.5, "observation_std": 0.1, "correlation": None,
    "prior_mean": None, "prior_std": None, "A": None, "tau": None,
}  # fmt: skip


def assumptions(search: PrivateBayesSearchCV, scale: tuple[float, float]) -> dict[str, float]:
    """What was declared, or its default; NaN for a correlation that the number of records decides.

    ``scale``: (top, width) of the scores.
    """
    given = {} if search.assume is None else search.assume
    if not isinstance(given, Mapping) or set(given) - set(ASSUMED):
        raise ValueError(f"assume must be a dict with names among {', '.join(ASSUMED)}.")
    top, width = scale
    chosen = {**ASSUMED, **given}
    if chosen["prior_mean"] is None:
        chosen["prior_mean"] = top - 0.5 * width
    if chosen["prior_std"] is None:
        chosen["prior_std"] = 0.25 * width
    if search.method != "kusner-noise-free":
        chosen |= {"A": 0.0, "tau": 0.0}
    elif chosen["A"] is None or chosen["tau"] is None:
        raise ValueError(
            "method='kusner-noise-free' needs assume={'A': ..., 'tau': ...}, the constants of the "
            "regret bound A exp(-tau t / (log t)^(d/4)): they are assumed, never read from the data."
        )
    for name, value in chosen.items():
        if value is None and name == "correlation":  # the number of records decides
            continue
        if isinstance(value, bool) or not isinstance(value, Real) or math.isnan(value):
            raise ValueError(f"assume[{name!r}] must be a number.")
        positive = name in ("lengthscale", "prior_std", "observation_std")
        if (positive and value <= 0) or (name in ("A", "tau") and value < 0):
            raise ValueError(f"assume[{name!r}] must be positive.")
        if math.isinf(value) and name != "smoothness":
            raise ValueError(f"assume[{name!r}] must be finite.")
    if chosen["observation_std"] > 1:  # theorem 4 as printed would be too small
        raise ValueError("assume['observation_std'] must be at most 1, the prior's std.")
    if chosen["smoothness"] not in (1.5, 2.5, math.inf):
        raise ValueError("assume['smoothness'] must be 1.5, 2.5 or infinity.")
    if chosen["correlation"] is not None and not 0 <= chosen["correlation"] <= 1:
        raise ValueError("assume['correlation'] must lie between 0 and 1.")
    return {name: math.nan if v is None else float(v) for name, v in chosen.items()}


def kusner_constants(
    search: PrivateBayesSearchCV, space: Space, assumed: dict[str, float], rows: int
) -> KusnerConstants:
    """Half of the budget for each of the two values."""
    epsilon, delta, steps = 0.5 * search.epsilon, 0.5 * search.delta, int(search.n_iter)
    correlation = assumed["correlation"]
    if math.isnan(correlation):
        correlation = 1.0 - 1.0 / rows  # neighbours share all records but one
    noise = 0.0 if search.method == "kusner-noise-free" else assumed["observation_std"]
    if noise == 0.0:
        dimension = len(space.names)
        regret = vanishing_regret(assumed["A"], assumed["tau"], dimension)
    else:
        gain = largest_gain(space.points, kusner_prior(assumed, space), steps, noise)
        regret = math.sqrt(regret_constant(noise) * beta(steps, len(space), delta) * gain / steps)
    constants = KusnerConstants(epsilon, delta, len(space), steps, correlation, noise, regret)
    if constants.value_sensitivity <= 0:
        raise ValueError("assume says that no record changes anything: A must be positive.")
    return constants


def kusner_prior(assumed: dict[str, float], space: Space) -> Hyperprior:
    """The one known kernel."""
    return fixed_prior(space.points.shape[1], assumed["lengthscale"], assumed["smoothness"])
