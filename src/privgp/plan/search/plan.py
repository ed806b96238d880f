"""What a search's budget buys, before anything private is read, also by Kusner's algorithms."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from privgp.gp.surrogate import Hyperprior, known_prior
from privgp.plan.inputs.arguments import is_number
from privgp.plan.search.space import Space
from privgp.privacy import selection
from privgp.privacy.noise import GaussianNoise
from privgp.privacy.selection import KusnerConstants
from privgp.types import Array

CHANCE = 3.0  # theorems hold except with probability delta + e^-3, 5%
ASSUMED: dict[str, float | None] = {
    "lengthscale": 0.3, "smoothness": 2.5, "observation_std": 0.1, "correlation": None,
    "prior_mean": None, "prior_std": None, "A": None, "tau": None,
}  # fmt: skip
POSITIVE = ("lengthscale", "prior_std", "observation_std")
REGRET = ("A", "tau")


@dataclass(frozen=True)
class SearchPlan:
    """A search that is ready to be made, with the noise it will have. All of it is public.

    ``rows``: validation records; ``width``: of the loss bounds; ``shares``: of the budget, one per
    measurement; ``has_final``: whether the last one measures the chosen setting once more;
    ``noise``: one per measurement, of the mean loss scaled to [0, 1]. Of Kusner's algorithms:
    ``constants``, ``prior``, and ``prior_mean``, ``prior_std`` of the scores, as they assume."""

    method: str
    epsilon: float
    delta: float
    rows: int
    space: Space = field(repr=False)
    width: float
    shares: tuple[float, ...] = ()
    has_final: bool = False
    noise: tuple[GaussianNoise, ...] = field(default=(), repr=False)
    constants: KusnerConstants | None = None
    prior: Hyperprior | None = field(default=None, repr=False)
    prior_mean: float = 0.0
    prior_std: float = 1.0

    @property
    def noise_std(self) -> Array:
        """Std of the noise of every measured score, in units of the score."""
        return np.array([each.std * self.width for each in self.noise])

    @property
    def score_std(self) -> float:
        """Std of the error of the reported score that is due to privacy alone."""
        if self.constants is not None:
            return math.sqrt(2.0) * self.constants.laplace_scale * self.prior_std
        return float(self.noise_std[-1])

    def theorem_bounds(self, a: float = CHANCE) -> dict[str, float]:
        """The utility theorems of Kusner's algorithms, in units of the score; empty for others.
        Each holds except with probability delta + e^-a. ``setting``: how far the posterior mean at the
        chosen setting may fall short (theorem 2); ``value``: and the released value (4, 6)."""
        if self.constants is None:
            return {}
        bounds = {"setting": self.constants.setting_limit, "value": self.constants.value_limit}
        return {name: bound(a) * self.prior_std for name, bound in bounds.items()}

    def describe(self) -> str:
        spread = "" if self.space.whole else " spread over the space"
        first = (
            f"({self.epsilon:g}, {self.delta:g}) for {self.rows:,} validation records; "
            f"{len(self.space):,} settings{spread} of {', '.join(self.space.names)}.\n"
        )
        return first + (self._noise_text() if self.constants is None else self._assumption_text())

    def _noise_text(self) -> str:
        tried = self.noise_std[: len(self.noise) - self.has_final]
        low, high = tried.min(), tried.max()
        stds = f"{low:.3g}" if high < 1.001 * low else f"{low:.3g} to {high:.3g}"
        text = f"{len(tried)} scores are measured, each with noise of std {stds}."
        if not self.has_final:
            return text
        return (
            f"{text}\nThe chosen setting is then measured once more, with noise of std "
            f"{self.score_std:.3g}: that is the reported score."
        )

    def _assumption_text(self) -> str:
        assert self.constants is not None
        c, bounds = self.constants, self.theorem_bounds()
        certainty = 1.0 - c.delta - math.exp(-CHANCE)
        return (
            f"{c.steps} scores are computed; the setting and its score get epsilon {c.epsilon:g} and "
            f"delta {c.delta:g} each.\n"
            f"The score gets Laplace noise of std {self.score_std:.3g}.\n"
            f"The theorems allow, with probability {certainty:.3f}, a setting up to "
            f"{bounds['setting']:.3g} worse than the best and a score up to {bounds['value']:.3g} off.\n"
            "The promise rests on the assumption that the scores of all datasets are draws from one "
            "known Gaussian process."
        )


def kusner_plan(
    plan: SearchPlan, assume: Any, steps: int, score_range: tuple[float, float]
) -> SearchPlan:
    """The plan with the constants of algorithm 1 or 2, half of the budget for each of two values."""
    space, (low, high) = plan.space, score_range
    defaults = {
        "correlation": 1.0 - 1.0 / plan.rows,  # neighbours share all records but one
        "prior_mean": 0.5 * low + 0.5 * high,
        "prior_std": 0.25 * (high - low),
    }
    noise_free = plan.method == "kusner-noise-free"
    assumed = _assumptions(assume, defaults, noise_free=noise_free)
    prior = known_prior(space.points.shape[1], assumed["lengthscale"], assumed["smoothness"])
    epsilon, delta, noise = 0.5 * plan.epsilon, 0.5 * plan.delta, assumed["observation_std"]
    if noise_free:
        noise = 0.0
        regret = selection.noise_free_regret(assumed["A"], assumed["tau"], len(space.names))
    else:
        gain = selection.largest_gain(space.points, prior, steps, noise)
        beta = selection.beta(steps, len(space), delta)
        regret = math.sqrt(selection.regret_constant(noise) * beta * gain / steps)
    constants = KusnerConstants(
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
    given = {} if assume is None else assume
    if not isinstance(given, Mapping) or set(given) - set(ASSUMED):
        raise ValueError(f"assume must be a dict with names among {', '.join(ASSUMED)}.")
    for name in ("observation_std",) if noise_free else REGRET:
        if name in given:
            method = "kusner-noise-free" if noise_free else "kusner"
            raise ValueError(f"assume[{name!r}] does not go with method={method!r}: leave it out.")
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
