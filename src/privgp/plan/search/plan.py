"""The settings a search may choose from: a finite list, each a point of the unit cube. An axis is
``(low, high)``, ``(low, high, "log-uniform")``, ``(low, high, "uniform")``, or a list of values.
Lists alone give all their combinations where these are not too many; otherwise the space is a
low-discrepancy set of ``candidates`` settings, the same at every call. All is public.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from numbers import Real
from typing import Any

import numpy as np
from scipy.special import ndtr
from scipy.stats import qmc

from privgp.gp.surrogate import Hyperprior, Surrogate, known_prior
from privgp.privacy import selection
from privgp.privacy.noise import GaussianNoise
from privgp.privacy.selection import KusnerConstants
from privgp.question.rules import check_bounds, is_number, whole_number
from privgp.types import Array

MOST_AXES = 10
MOST_SETTINGS = 10_000
SETTINGS = 1000  # that stand for a space, unless it has fewer


@dataclass(frozen=True)
class Space:
    """The settings of a search: the parameters that an estimator is given, one dict each;
    ``points``: (settings, coordinates) in the unit cube, one coordinate per numerical axis and one
    per value of a categorical one; ``whole``: whether these are all combinations."""

    names: tuple[str, ...]
    settings: tuple[dict[str, Any], ...] = field(repr=False)
    points: Array = field(repr=False)
    whole: bool

    def __len__(self) -> int:
        return len(self.settings)


def make_space(axes: object, candidates: int = SETTINGS) -> Space:
    """The settings of a dict of axes; at most ``candidates`` where an axis is continuous."""
    candidates = whole_number("candidates", candidates, MOST_SETTINGS)
    if not isinstance(axes, Mapping) or not axes:
        raise ValueError(
            "space must be a dict of names with (low, high), (low, high, 'log-uniform') or a list."
        )
    if len(axes) > MOST_AXES:
        raise ValueError(f"space has {len(axes)} axes, but at most {MOST_AXES} can be searched.")
    if any(not isinstance(name, str) for name in axes):
        raise ValueError("space must be a dict whose names are text.")
    built = {name: _axis(name, axis) for name, axis in axes.items()}
    lists = [axis for axis in built.values() if isinstance(axis, _Listed)]
    combinations = math.prod(len(axis.values) for axis in lists)
    continuous = len(lists) < len(built)
    whole = not continuous and combinations <= max(candidates, SETTINGS)
    if whole:
        corners = np.array(list(product(*(axis.middles() for axis in lists))))
    else:
        count = candidates if continuous else min(candidates, combinations)
        corners = qmc.Halton(len(built), scramble=True, rng=np.random.default_rng(0)).random(count)
    placed = [list(zip(built.items(), corner, strict=True)) for corner in corners]
    settings = tuple({name: axis.value(u) for (name, axis), u in row} for row in placed)
    points = [[x for (_, axis), u in row for x in axis.coordinates(u)] for row in placed]
    return Space(tuple(built), settings, np.array(points, dtype=np.float64), whole)


@dataclass(frozen=True)
class _Interval:
    """A continuous axis; ``u`` in [0, 1] runs along it, or along its logarithm."""

    low: float
    high: float
    log: bool

    def value(self, u: float) -> float:
        if not self.log:
            return self.low + (self.high - self.low) * float(u)
        value = math.exp(math.log(self.low) + (math.log(self.high) - math.log(self.low)) * float(u))
        return min(max(value, self.low), self.high)

    def coordinates(self, u: float) -> list[float]:
        return [float(u)]


@dataclass(frozen=True)
class _Listed:
    """A list: numbers by rank, so that equal steps are equally far; anything else one-hot."""

    values: tuple[object, ...]
    numerical: bool

    def middles(self) -> Array:
        return np.asarray((np.arange(len(self.values)) + 0.5) / len(self.values))

    def _place(self, u: float) -> int:
        return min(int(u * len(self.values)), len(self.values) - 1)

    def value(self, u: float) -> object:
        return self.values[self._place(u)]

    def coordinates(self, u: float) -> list[float]:
        place, count = self._place(u), len(self.values)
        if self.numerical:
            return [place / max(count - 1, 1)]
        # two categories are as far apart as half an axis
        return [0.5 / math.sqrt(2.0) * (place == other) for other in range(count)]


def _axis(name: str, axis: object) -> _Interval | _Listed:
    if isinstance(axis, list | np.ndarray):
        values = list(axis)
        if not values:
            raise ValueError(f"space[{name!r}] is an empty list: name at least one value.")
        numerical = all(isinstance(v, Real) and not isinstance(v, bool | np.bool_) for v in values)
        if numerical and not all(math.isfinite(v) for v in values):
            raise ValueError(f"space[{name!r}] must hold finite numbers.")
        return _Listed(tuple(sorted(values) if numerical else values), numerical)
    if not isinstance(axis, tuple) or len(axis) not in (2, 3):
        raise ValueError(
            f"space[{name!r}] must be (low, high), (low, high, 'log-uniform') or a list of values."
        )
    scale = axis[2] if len(axis) == 3 else "uniform"
    if scale not in ("uniform", "log-uniform"):
        raise ValueError(f"space[{name!r}] must end in 'log-uniform' or 'uniform'.")
    low, high = check_bounds(f"space[{name!r}]", axis[:2])
    if scale == "log-uniform" and low <= 0:
        raise ValueError(f"space[{name!r}] must have low > 0 to be log-uniform.")
    return _Interval(low, high, scale == "log-uniform")


ACQUISITIONS = ("ei", "ucb")


def next_setting(
    surrogate: Surrogate, tried: Sequence[int], acquisition: str, exploration: float
) -> int:
    """The index of the most guaranteeing setting; the first is the one nearest to the middle."""
    if not tried:
        points = surrogate.points
        middle = 0.5 * (points.min(axis=0) + points.max(axis=0))
        return int(np.argmin(np.square(points - middle).sum(axis=1)))
    if acquisition == "ucb":
        return int(np.argmax(upper_limit(surrogate, exploration)))
    return int(np.argmax(expected_improvement(surrogate, tried)))


def upper_limit(surrogate: Surrogate, exploration: float) -> Array:
    """m(x) + sqrt(beta) s(x), ``exploration`` = sqrt(beta); (settings,)."""
    mean, std = surrogate.posterior()
    return np.asarray(mean + exploration * std)


def expected_improvement(surrogate: Surrogate, tried: Sequence[int]) -> Array:
    """E max(f(x) - best, 0), (settings,); ``best``: the largest posterior mean of those tried."""
    best = surrogate.posterior()[0][np.asarray(tried)].max()
    std = np.sqrt(np.maximum(surrogate.variances, 1e-24))
    z = (surrogate.means - best) / std
    density = np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi)
    return np.asarray(surrogate.weights @ (std * (z * ndtr(z) + density)))


def best_setting(surrogate: Surrogate) -> int:
    """The index of the largest mean, cut to the scores' [-1, 1], less one std."""
    mean, std = surrogate.posterior()
    return int(np.argmax(np.clip(mean, -1.0, 1.0) - std))


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
            "The guarantee rests on the assumption that the scores of all datasets are draws from one "
            "known Gaussian process."
        )


def kusner_plan(
    plan: SearchPlan, assume: object, steps: int, score_range: tuple[float, float]
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


def _assumptions(
    assume: object, defaults: dict[str, float], *, noise_free: bool
) -> dict[str, float]:
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
