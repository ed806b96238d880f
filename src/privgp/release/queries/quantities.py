"""What can be asked of a released outcome at given rows, in one form for numbers, rates and labels.

A number or a rate is one quantity, a label one for each class: its probability. Everything here is
post-processing of the released posterior: free, public, and the same every time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import Any, Protocol, cast

import numpy as np

from privgp.gp.inference.averages import (
    Pick,
    Sums,
    even_pick,
    normal_draws,
    posterior_averages,
    posterior_draws,
    shuffle,
)
from privgp.gp.inference.mixtures import Mixture
from privgp.gp.inference.posterior import Posterior
from privgp.plan.parameters import LabelParameters
from privgp.release.at_targets import Cloaked
from privgp.release.classes import Probabilities
from privgp.release.prediction import ReleasedFunction, table_columns
from privgp.release.rates import RatePosterior
from privgp.release.release import Release
from privgp.types import Array

DRAWS = 2000  # of averages and of bands
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
    answer: Posterior,
    function: ReleasedFunction,
    sums: Sums,
    levels: Sequence[float],
    rng: Random,
) -> Averages:
    weights = np.array([c.model.weight for c in answer.components])
    return _of_normals(posterior_averages(answer, sums), weights, function, levels, rng)


@average.register
def _(
    answer: Cloaked,
    function: ReleasedFunction,
    sums: Sums,
    levels: Sequence[float],
    rng: Random,
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
