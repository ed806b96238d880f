"""The settings a search may choose from: a finite list, each a point of the unit cube. An axis is
``(low, high)``, ``(low, high, "log-uniform")``, ``(low, high, "uniform")``, or a list of values.
Lists alone give all their combinations where these are not too many; otherwise the space is a
low-discrepancy set of ``candidates`` settings, the same at every call. All is public."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from numbers import Real
from typing import Any

import numpy as np
from scipy.special import ndtr
from scipy.stats import qmc

from privgp.gp.surrogate import Surrogate
from privgp.plan.inputs.arguments import check_bounds, whole_number
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

    def value(self, u: float) -> Any:
        if not self.log:
            return self.low + (self.high - self.low) * float(u)
        value = math.exp(math.log(self.low) + (math.log(self.high) - math.log(self.low)) * float(u))
        return min(max(value, self.low), self.high)

    def coordinates(self, u: float) -> list[float]:
        return [float(u)]


@dataclass(frozen=True)
class _Listed:
    """A list: numbers by rank, so that equal steps are equally far; anything else one-hot."""

    values: tuple[Any, ...]
    numerical: bool

    def middles(self) -> Array:
        return np.asarray((np.arange(len(self.values)) + 0.5) / len(self.values))

    def _place(self, u: float) -> int:
        return min(int(u * len(self.values)), len(self.values) - 1)

    def value(self, u: float) -> Any:
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
    """The index of the most promising setting; the first is the one nearest to the middle."""
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
