"""What can be asked of a released outcome at given rows, in one form for numbers, rates and labels.

A number or a rate is one quantity, a label one for each class: its probability. Everything here is
post-processing of the released posterior: free, public, and the same every time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import singledispatch
from numbers import Integral, Real
from typing import Any, Protocol, cast

import numpy as np
from sklearn.utils import check_random_state

from privgp.gp.inference.averages import (
    COARSE,
    Pick,
    Sums,
    even_pick,
    normal_draws,
    posterior_averages,
    posterior_draws,
    random_pick,
    shuffle,
)
from privgp.gp.inference.posterior import Mixture, Posterior
from privgp.plan.parameters import LabelParameters
from privgp.release.answers import Cloaked, Probabilities
from privgp.release.prediction import ReleasedFunction, table_columns
from privgp.release.rates import RatePosterior
from privgp.release.release import Release
from privgp.types import Array, RandomState

DRAWS = 2000  # of averages and, at least, of bands
BAND_NUMBERS = 4_000_000  # that are drawn for a band, of at most ten times as many draws
Random = np.random.RandomState


@dataclass(frozen=True)
class Averages:
    """Averages of the quantities of one outcome.

    Attributes
    ----------
    mean, std, low, high : array (averages, quantities)
    covariance : array (averages, averages, quantities)
    draws : array (averages, quantities, draws)

    """

    mean: Array
    std: Array
    low: Array
    high: Array
    covariance: Array
    draws: Array


class Quantities(Protocol):
    """The quantities of one released outcome."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the quantities; empty for one that needs none."""
        ...

    def draw(self, X: Array, pick: Pick, rng: Random) -> Array:
        """Joint draws at the rows of X, (rows, quantities, draws)."""
        ...

    def ends(self, X: Array, levels: Sequence[float]) -> tuple[Array, Array, Array]:
        """The mean at every row of X, and the ends of its interval, (rows, quantities) each."""
        ...

    def clip(self, values: Array) -> Array:
        """Values as near as the quantities can have them."""
        ...

    def above(self, X: Array, threshold: float) -> Array:
        """The probability of exceeding a threshold at every row of X, (rows, quantities)."""
        ...

    def average(self, sums: Sums, levels: Sequence[float], rng: Random) -> Averages:
        """Averages over points."""
        ...

    def columns(self, X: Array, levels: Sequence[float], observation: bool) -> dict[str, Array]:
        """What a table of predictions holds, by the names of its columns."""
        ...


@dataclass(frozen=True)
class NumberQuantity:
    """A number or a rate: its released function."""

    release: Release

    @property
    def names(self) -> tuple[str, ...]:
        return ("",)

    @property
    def function(self) -> ReleasedFunction:
        return ReleasedFunction.of(self.release)

    def draw(self, X: Array, pick: Pick, rng: Random) -> Array:
        return draw(self.release.answers[0], X, pick, rng)[:, None]

    def ends(self, X: Array, levels: Sequence[float]) -> tuple[Array, Array, Array]:
        function = self.function
        low, high = function.interval(X, levels, observation=False)
        return function.answer.mean_at(X)[:, None], low[:, None], high[:, None]

    def clip(self, values: Array) -> Array:
        return self.function.clip(values)

    def above(self, X: Array, threshold: float) -> Array:
        function = self.function
        return function.above(function.answer.mixture(X), threshold)[:, None]

    def average(self, sums: Sums, levels: Sequence[float], rng: Random) -> Averages:
        return average(self.release.answers[0], self.function, sums, levels, rng)

    def columns(self, X: Array, levels: Sequence[float], observation: bool) -> dict[str, Array]:
        return table_columns(self.release.parameters, self.release, X, levels, observation)


@dataclass(frozen=True)
class ClassQuantities:
    """The probability of every class of a label."""

    release: Release
    classes: tuple[Any, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(str(each) for each in self.classes)

    @property
    def answer(self) -> Probabilities:
        return cast(Probabilities, self.release.answers[0])

    def draw(self, X: Array, pick: Pick, rng: Random) -> Array:
        answer = self.answer
        each = [answer.link.mean(posterior_draws(f, X, pick, rng)) for f in answer.functions]
        return answer.together(np.stack(each, axis=1), X)

    def ends(self, X: Array, levels: Sequence[float]) -> tuple[Array, Array, Array]:
        return self.answer.at(X), *self.answer.between(X, levels)

    def clip(self, values: Array) -> Array:
        return np.clip(values, 0.0, 1.0)

    def above(self, X: Array, threshold: float) -> Array:
        return self.answer.above(X, threshold)

    def average(self, sums: Sums, levels: Sequence[float], rng: Random) -> Averages:
        drawn = self.draw(sums.coarse.points, even_pick(DRAWS), rng)
        mean = sums.fine.shares @ self.answer.at(sums.fine.points)
        each = np.stack([sums.coarse.shares @ one for one in drawn.transpose(1, 0, 2)], axis=1)
        moved = each + (mean - each.mean(axis=2))[:, :, None]
        return of_draws(mean, np.clip(moved, 0.0, 1.0), levels)

    def columns(self, X: Array, levels: Sequence[float], observation: bool) -> dict[str, Array]:
        return table_columns(self.release.parameters, self.release, X, levels, observation)


@singledispatch
def quantities(asked: object, release: Release) -> Quantities:
    """What can be asked of a release of one outcome, whose parameters are ``asked``."""
    return NumberQuantity(release)


@quantities.register
def _(asked: LabelParameters, release: Release) -> Quantities:
    return ClassQuantities(release, tuple(asked.classes))


@singledispatch
def draw(answer: object, X: Array, pick: Pick, rng: Random) -> Array:
    """Joint draws of a number or a rate at the rows of X, (rows, draws)."""
    raise NotImplementedError


@draw.register
def _(answer: Posterior, X: Array, pick: Pick, rng: Random) -> Array:
    return posterior_draws(answer, X, pick, rng)


@draw.register
def _(answer: RatePosterior, X: Array, pick: Pick, rng: Random) -> Array:
    return answer.rates(posterior_draws(answer.logs, X, pick, rng))


@draw.register
def _(answer: Cloaked, X: Array, pick: Pick, rng: Random) -> Array:
    mean, covariance = answer.mean_and_covariance(X)
    return normal_draws(mean, covariance, int(pick(np.ones(1))[0]), rng)


@singledispatch
def average(
    answer: object, function: ReleasedFunction, sums: Sums, levels: Sequence[float], rng: Random
) -> Averages:
    """Averages of a number or a rate."""
    raise NotImplementedError


@average.register
def _(
    answer: Posterior, function: ReleasedFunction, sums: Sums, levels: Sequence[float], rng: Random
) -> Averages:
    weights = np.array([c.model.weight for c in answer.components])
    return _of_normals(posterior_averages(answer, sums), weights, function, levels, rng)


@average.register
def _(
    answer: Cloaked, function: ReleasedFunction, sums: Sums, levels: Sequence[float], rng: Random
) -> Averages:
    mean, covariance = answer.mean_and_covariance(sums.coarse.points)
    shares = sums.coarse.shares
    one = (0, shares @ mean, shares @ (shares @ covariance).T)
    return _of_normals([one], np.ones(1), function, levels, rng)


@average.register
def _(
    answer: RatePosterior,
    function: ReleasedFunction,
    sums: Sums,
    levels: Sequence[float],
    rng: Random,
) -> Averages:
    drawn = sums.coarse.shares @ draw(answer, sums.coarse.points, even_pick(DRAWS), rng)
    mean = sums.fine.shares @ answer.mean_at(sums.fine.points)
    scaled = drawn * (mean / drawn.mean(axis=1))[:, None]
    return of_draws(mean[:, None], scaled[:, None], levels)


def _of_normals(
    parts: Iterable[tuple[int, Array, Array]],
    weights: Array,
    function: ReleasedFunction,
    levels: Sequence[float],
    rng: Random,
) -> Averages:
    """Averages that are a mixture of normal distributions: ``parts`` has the place of each, its means
    and its covariance matrix; ``weights`` are those of all."""
    counts, weights = even_pick(DRAWS)(weights), weights / weights.sum()
    shares, means, variances, drawn = [], [], [], []
    square: Any = 0.0
    for place, mean, covariance in parts:
        shares.append(weights[place])
        means.append(mean)
        variances.append(np.diag(covariance).copy())
        square = square + weights[place] * (covariance + np.outer(mean, mean))
        if counts[place]:
            drawn.append(normal_draws(mean, covariance, int(counts[place]), rng))
    mixture = Mixture(np.array(means), np.array(variances), np.array(shares), np.zeros(len(shares)))
    low, high = function.quantiles(mixture, levels, observation=False)
    mean = mixture.mean
    covariance = square - np.outer(mean, mean)
    std = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    ends = low[:, None], high[:, None]
    drawn_averages = shuffle(drawn, rng)[:, None]
    return Averages(mean[:, None], std[:, None], *ends, covariance[:, :, None], drawn_averages)


def of_draws(mean: Array, drawn: Array, levels: Sequence[float]) -> Averages:
    """Averages whose distribution is known by draws alone, (averages, quantities, draws)."""
    about = drawn - drawn.mean(axis=2, keepdims=True)
    covariance = np.einsum("aqd,bqd->abq", about, about, optimize=True) / (drawn.shape[2] - 1)
    std = np.sqrt(np.einsum("aaq->aq", covariance))
    low, high = np.quantile(drawn, levels, axis=2)
    return Averages(mean, std, low, high, covariance, drawn)


MOST_ROWS = 10_000  # of joint draws
LEAST_SIDE = 0.02  # of an interval's width, on either side of what a band is stretched about
NOT_OBSERVATION = (
    "simultaneous=True is for the function: a band for new outputs would depend on their number."
)


def each_quantities(release: Release) -> tuple[Quantities, ...]:
    """The quantities of every outcome of a release."""
    return tuple(quantities(one.parameters, one) for one in release.each)


def is_single(release: Release) -> bool:
    """Whether a release has one quantity, so that answers have no axis for them."""
    return release.output_names is None and len(each_quantities(release)[0].names) == 1


def squeeze(release: Release, answers: Array, axis: int) -> Array:
    """Answers without an axis for quantities where there is one of them."""
    return answers.squeeze(axis) if is_single(release) else answers


def sample(release: Release, X: Array, n_samples: Any, random_state: RandomState) -> Array:
    """Joint draws from the released posterior.

    Returns
    -------
    array (rows, n_samples) or (rows, quantities, n_samples)

    """
    whole = isinstance(n_samples, Integral) and not isinstance(n_samples, bool)
    if not whole or n_samples < 1:
        raise ValueError(f"n_samples must be a whole number of at least 1, got {n_samples!r}.")
    if len(X) > MOST_ROWS:
        raise ValueError(f"X must have at most {MOST_ROWS} rows for joint draws, got {len(X)}.")
    rng = check_random_state(random_state)
    pick = random_pick(int(n_samples), rng)
    drawn = [each.draw(X, pick, rng) for each in each_quantities(release)]
    return squeeze(release, np.concatenate(drawn, axis=1), 1)


def exceed(release: Release, X: Array, threshold: object) -> Array:
    """The probability that every quantity exceeds a threshold, (rows,) or (rows, quantities).

    Parameters
    ----------
    release : Release
        Of one or several outcomes.
    X : array (rows, columns)
        Where the kernel has the rows.
    threshold : float, or one per outcome
        A mapping goes by the names of outcomes.

    """
    each = each_quantities(release)
    levels = _thresholds(release, threshold)
    found = [one.above(X, level) for one, level in zip(each, levels, strict=True)]
    return squeeze(release, np.concatenate(found, axis=1), 1)


def _thresholds(release: Release, threshold: Any) -> list[float]:
    """A threshold for every outcome."""
    count, names = len(release.parts), release.output_names
    given = threshold
    if isinstance(given, Mapping) and names is not None and {*given} == {*names}:
        given = [given[name] for name in names]
    if isinstance(given, Real):
        given = [given] * count
    try:
        found = [float(each) for each in given]
    except (TypeError, ValueError):
        found = []
    if len(found) != count or not all(np.isfinite(found)):
        several = "" if names is None else f", or one for each of {', '.join(names)}"
        raise ValueError(f"t must be a finite number{several}.")
    return found


def intervals(release: Release, X: Array, levels: Sequence[float]) -> tuple[Array, Array]:
    """The ends of the interval of every quantity at every row separately."""
    return _join(release, [each.ends(X, levels)[1:] for each in each_quantities(release)])


def band(release: Release, X: Array, levels: Sequence[float]) -> tuple[Array, Array]:
    """The ends of a band that holds every quantity at all rows of X at once.

    Pointwise intervals are stretched about their means by one factor, the least with which as many of
    2,000 to 20,000 joint draws as the coverage says lie inside at all rows. With many rows, cells of rows
    that lie close stand for them.

    Returns
    -------
    low, high : array (rows,) or (rows, quantities)

    """
    return _join(release, [_stretch(each, X, levels) for each in each_quantities(release)])


def _join(release: Release, ends: Sequence[tuple[Array, Array]]) -> tuple[Array, Array]:
    """The ends for all quantities of a release, from those of every outcome."""
    low, high = (np.concatenate(each, axis=1) for each in zip(*ends, strict=True))
    return squeeze(release, low, 1), squeeze(release, high, 1)


def _stretch(each: Quantities, X: Array, levels: Sequence[float]) -> tuple[Array, Array]:
    """The band of every quantity of one outcome, each separately, (rows, quantities)."""
    points = X
    if len(X) > COARSE:
        one = np.zeros(len(X), dtype=np.int64)
        points = Sums.of(X, np.ones(len(X)), one).coarse.points
    middle, low, high = _sides(*each.ends(points, levels))
    rng, draws = np.random.RandomState(0), BAND_NUMBERS // max(len(points), 1)
    pick = even_pick(min(max(draws, DRAWS), 10 * DRAWS))
    drawn = each.clip(each.draw(points, pick, rng)) - middle[:, :, None]
    sides = np.where(drawn < 0.0, (middle - low)[:, :, None], (high - middle)[:, :, None])
    factors = np.max(np.abs(drawn) / np.maximum(sides, np.finfo(float).tiny), axis=0)
    factor = np.quantile(factors, levels[1] - levels[0], axis=1)
    middle, low, high = _sides(*each.ends(X, levels)) if points is not X else (middle, low, high)
    return each.clip(middle - factor * (middle - low)), each.clip(middle + factor * (high - middle))


def _sides(mean: Array, low: Array, high: Array) -> tuple[Array, Array, Array]:
    """The mean, moved inside its interval where it lies beyond, and the interval."""
    least = LEAST_SIDE * (high - low)
    return np.clip(mean, low + least, high - least), low, high


def prediction_columns(
    release: Release, X: Array, levels: Sequence[float], *, observation: bool, simultaneous: bool
) -> list[dict[str, Array]]:
    """What a table of predictions holds of every outcome, by the names of its columns."""
    if simultaneous and observation:
        raise ValueError(NOT_OBSERVATION)
    found = []
    for each in each_quantities(release):
        columns = each.columns(X, levels, observation)
        if simultaneous:
            ends = dict(zip(("low", "high"), _stretch(each, X, levels), strict=True))
            for end, values in ends.items():
                for name, column in zip(each.names, values.T, strict=True):
                    columns[f"{end}_{name}" if name else end] = column
        found.append(columns)
    return found
