"""What can be asked of a released outcome at given rows, in one form for numbers, rates and labels.

A number or a rate is one quantity, a label one for each class: its probability. Everything here is
post-processing of the released posterior: free, public, and the same every time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import singledispatch
from numbers import Integral, Real
from typing import Any, Self, cast

import numpy as np
from scipy.spatial import cKDTree
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
from privgp.question.rules import check_bounds
from privgp.release.answers import Cloaked, Probabilities
from privgp.release.rates import RatePosterior
from privgp.release.release import Release
from privgp.types import Array, RandomState

NEAR_DATA = "near_data"  # the column of tables and files
SHOWN = 2.0  # stds of the noise that the records around a point must exceed
DRAWS = 2000  # of averages and, at least, of bands
BAND_NUMBERS = 4_000_000  # that are drawn for a band, of at most ten times as many draws
Random = np.random.RandomState
ROWS = 8192  # at a time: every model of the mixture has a mean and a variance at each


@dataclass(frozen=True)
class ReleasedFunction:
    """The function of one outcome that is a number or a count.

    Attributes
    ----------
    answer : Posterior, RatePosterior or Cloaked
        What predicts.
    bounds : (low, high)
        The declared bounds of the outputs.
    noise_variance : float
        The expected variance of an output about the function; of a count, over its mean.
    is_rate : bool
        Whether outputs are counts, whose rate is predicted.
    at_targets : bool
        Whether values at targets were released.

    """

    answer: Any
    bounds: tuple[float, float]
    noise_variance: float
    is_rate: bool
    at_targets: bool

    @classmethod
    def of(cls, release: Release) -> Self:
        """The function of a release of one outcome."""
        (part,), (answer,) = release.parts, release.answers
        bounds = check_bounds("y_bounds", release.parameters.y_bounds)
        rate, at_targets = part.unit_rate is not None, part.at_targets is not None
        return cls(answer, bounds, part.noise_variance, rate, at_targets)

    def mean_and_std(self, X: Array, observation: bool) -> tuple[Array, Array]:
        """Mean and std of the function at every row of X, or of new outputs."""
        mean, variance = self.answer.mean_and_variance(X)
        return mean, np.sqrt(
            self._observation_variance(mean, variance) if observation else variance
        )

    def mean_and_covariance(self, X: Array, observation: bool) -> tuple[Array, Array]:
        """Mean of the function at the rows of X and the covariance matrix, or of new outputs."""
        mean, covariance = self.answer.mean_and_covariance(X)
        if observation:
            latent = np.diag(covariance).copy()
            np.fill_diagonal(covariance, self._observation_variance(mean, latent))
        return mean, covariance

    def interval(self, X: Array, levels: Sequence[float], observation: bool) -> tuple[Array, Array]:
        """The ends of an interval of the function, or of new outputs, at every row of X."""
        ends = np.empty((2, len(X)))
        for first in range(0, len(X), ROWS):
            rows = slice(first, first + ROWS)
            ends[:, rows] = self.quantiles(self.answer.mixture(X[rows]), levels, observation)
        return ends[0], ends[1]

    def quantiles(self, mixture: Any, levels: Sequence[float], observation: bool) -> Array:
        """For the function or for outputs: both lie within their bounds.

        An unbiased release may lie beyond them, and so may its intervals; rates are no outputs.
        """
        mixture = mixture.of_outputs(*self.bounds) if observation else mixture
        if self.is_rate:
            return np.asarray(mixture.ends(levels))
        if self.at_targets:
            return np.asarray(mixture.quantiles(levels))
        if observation:  # clipped, so that many may lie on a bound
            return np.asarray(np.clip(mixture.quantiles(levels), *self.bounds))
        return np.asarray(mixture.quantiles_within(levels, *self.bounds))

    def clip(self, values: Array) -> Array:
        """Values of the function, which lies within its bounds where it predicts anywhere."""
        if self.is_rate:
            return np.maximum(values, 0.0)
        return values if self.at_targets else np.clip(values, *self.bounds)

    def above(self, mixture: Any, threshold: float) -> Array:
        """The probability that the function exceeds a threshold, as ``quantiles`` has it, (rows,)."""
        if self.at_targets or self.is_rate:
            return np.asarray(1.0 - mixture.below(threshold))
        return np.asarray(mixture.above_within(threshold, *self.bounds))

    def privacy_share(self, X: Array) -> Array:
        """The share of the variance at every row that the noise for privacy makes: 0 to 1, (rows,)."""
        privacy, whole = self.answer.privacy_variance(X), self.answer.mean_and_variance(X)[1]
        return np.asarray(np.minimum(privacy / np.maximum(whole, np.finfo(float).tiny), 1.0))

    def _observation_variance(self, mean: Array, variance: Array) -> Array:
        """The variance of an output: at most (mean - low)(high - mean), as values in bounds have."""
        if self.is_rate:  # at one unit of exposure, whatever bounds the counts have
            return variance + self.noise_variance * mean
        low, high = self.bounds
        most = (mean - low) * (high - mean)
        return np.maximum(variance, np.minimum(variance + self.noise_variance, most))


def check_coverage(coverage: object) -> tuple[float, float]:
    """The levels of the ends of an interval with this probability, both inside of 0 and 1."""
    low = 0.5 * (1.0 - float(coverage)) if isinstance(coverage, Real) else 0.0
    if not 0.0 < low < 0.5 or 1.0 - low == 1.0:
        raise ValueError(f"coverage must lie between 0 and 1, got {coverage!r}.")
    return low, 1.0 - low


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


@dataclass(frozen=True)
class Quantities:
    """The quantities of one released outcome: of a number or a rate, its released function."""

    release: Release

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the quantities; empty for one that needs none."""
        return ("",)

    @property
    def function(self) -> ReleasedFunction:
        return ReleasedFunction.of(self.release)

    def draw(self, X: Array, pick: Pick, rng: Random) -> Array:
        """Joint draws at the rows of X, (rows, quantities, draws)."""
        return draw(self.release.answers[0], X, pick, rng)[:, None]

    def ends(self, X: Array, levels: Sequence[float]) -> tuple[Array, Array, Array]:
        """The mean at every row of X, and the ends of its interval, (rows, quantities) each."""
        function = self.function
        low, high = function.interval(X, levels, observation=False)
        return function.answer.mean_at(X)[:, None], low[:, None], high[:, None]

    def clip(self, values: Array) -> Array:
        """Values as near as the quantities can have them."""
        return self.function.clip(values)

    def above(self, X: Array, threshold: float) -> Array:
        """The probability of exceeding a threshold at every row of X, (rows, quantities)."""
        function = self.function
        return function.above(function.answer.mixture(X), threshold)[:, None]

    def average(self, sums: Sums, levels: Sequence[float], rng: Random) -> Averages:
        """Averages over points."""
        function = self.function
        if not function.is_rate:
            return _of_normals(*normals(function.answer, sums), function, levels, rng)
        drawn = sums.coarse.shares @ self.draw(sums.coarse.points, even_pick(DRAWS), rng)[:, 0]
        mean = sums.fine.shares @ function.answer.mean_at(sums.fine.points)
        scaled = drawn * (mean / drawn.mean(axis=1))[:, None]
        return of_draws(mean[:, None], scaled[:, None], levels)

    def columns(self, X: Array, levels: Sequence[float], observation: bool) -> dict[str, Array]:
        """What a table of predictions holds, by the names of its columns.

        Parameters
        ----------
        X : array (rows, columns)
            Rows as the kernel has them.
        levels : (low, high)
            The levels of the ends of intervals.
        observation : bool
            Whether intervals are those of new values of numbers and counts, not of their means.

        """
        function = self.function
        mean, std = function.mean_and_std(X, observation)
        low, high = function.interval(X, levels, observation)
        return {"mean": mean, "std": std, "low": low, "high": high}


@dataclass(frozen=True)
class ClassQuantities(Quantities):
    """The probability of every class of a label."""

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
        classes, (probabilities, low, high) = np.array(self.classes), self.ends(X, levels)
        found = {"label": classes[np.argmax(probabilities, axis=1)]}
        for name, of_all in (("probability", probabilities), ("low", low), ("high", high)):
            each = zip(classes, of_all.T, strict=True)
            found |= {f"{name}_{label}": column for label, column in each}
        return found


@singledispatch
def quantities(asked: object, release: Release) -> Quantities:
    """What can be asked of a release of one outcome, whose parameters are ``asked``."""
    return Quantities(release)


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
def normals(answer: object, sums: Sums) -> tuple[Iterable[tuple[int, Array, Array]], Array]:
    """Averages of a number as a mixture of normal distributions, and their weights."""
    raise NotImplementedError


@normals.register
def _(answer: Posterior, sums: Sums) -> tuple[Iterable[tuple[int, Array, Array]], Array]:
    return posterior_averages(answer, sums), np.array([c.model.weight for c in answer.components])


@normals.register
def _(answer: Cloaked, sums: Sums) -> tuple[Iterable[tuple[int, Array, Array]], Array]:
    mean, covariance = answer.mean_and_covariance(sums.coarse.points)
    shares = sums.coarse.shares
    return [(0, shares @ mean, shares @ (shares @ covariance).T)], np.ones(1)


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


def near_data(release: Release, rows: Array) -> Array | None:
    """1 where data are near and 0 where a prediction is an extrapolation, (rows,).

    Where inputs are private, noisy numbers of records decide: those of the bins around a point must exceed
    their noise. None where inputs are few, for densities, and for private records that were not counted in
    bins.
    """
    from privgp.pictures.maps import near_inputs  # slow to import

    part = release.parts[0]
    if part.measurement.counts is None or part.functionals.shares is None:
        private = release.parameters.x_bounds is not None
        return None if private else near_inputs(part.functionals.nodes, rows)
    shares, nodes = part.functionals.shares, part.functionals.nodes
    centres = np.einsum("bpi,p->bi", nodes.reshape(-1, len(shares), nodes.shape[1]), shares)
    masses = np.diag(part.functionals.energy_gram).reshape(len(centres), -1).sum(axis=1)
    lowest, highest = check_bounds("bounds", release.parameters.parts()[0].y_bounds)
    noise_std = part.measurement.noise_std / (0.5 * highest - 0.5 * lowest)  # of a count
    levels = [np.unique(np.round(column, 9)) for column in centres.T]
    width = np.array([each[1] - each[0] if len(each) > 1 else np.inf for each in levels])
    low, high = centres.min(axis=0) - 0.5 * width, centres.max(axis=0) + 0.5 * width
    inside = np.all((low <= rows) & (rows <= high), axis=1)
    scale = np.where(np.isfinite(width), width, 1.0)
    around = cKDTree(centres / scale).query_ball_point(rows / scale, 1.25, p=np.inf)
    held = np.array([masses[own].sum() / max(len(own), 1) ** 0.5 for own in around])
    return np.where(inside & (held > SHOWN * noise_std * (part.unit_rate or 1.0)), 1.0, 0.0)
