"""Questions to a release at given rows: joint draws, bands for whole curves, thresholds, tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from privgp.gp.inference.averages import COARSE, Sums, even_pick, random_pick
from privgp.release.queries.quantities import DRAWS, Quantities, quantities
from privgp.release.release import Release
from privgp.types import Array, RandomState

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
    found = [each.ends(X, levels)[1:] for each in each_quantities(release)]
    low, high = (np.concatenate(each, axis=1) for each in zip(*found, strict=True))
    return squeeze(release, low, 1), squeeze(release, high, 1)


def band(release: Release, X: Array, levels: Sequence[float]) -> tuple[Array, Array]:
    """The ends of a band that holds every quantity at all rows of X at once.

    Pointwise intervals are stretched about their means by one factor, the least with which as many of
    2,000 joint draws as the coverage says lie inside at all rows. With many rows, cells of rows that lie
    close stand for them.

    Returns
    -------
    low, high : array (rows,) or (rows, quantities)

    """
    found = [_stretch(each, X, levels) for each in each_quantities(release)]
    low, high = (np.concatenate(each, axis=1) for each in zip(*found, strict=True))
    return squeeze(release, low, 1), squeeze(release, high, 1)


def _stretch(each: Quantities, X: Array, levels: Sequence[float]) -> tuple[Array, Array]:
    """The band of every quantity of one outcome, each separately, (rows, quantities)."""
    points = X
    if len(X) > COARSE:
        one = np.zeros(len(X), dtype=np.int64)
        points = Sums.of(X, np.ones(len(X)), one).coarse.points
    middle, low, high = _sides(*each.ends(points, levels))
    rng = np.random.RandomState(0)
    drawn = each.clip(each.draw(points, even_pick(DRAWS), rng)) - middle[:, :, None]
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
