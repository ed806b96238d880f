"""Synthetic excursion tasks of the paper, and how well sets are recovered, many datasets at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from papers.excursion.posteriors import FieldDraws, LineDraws
from privgp.models.function.tune import ExcursionTask, PriorDraws, Tuned
from privgp.models.paths import smooth_paths
from privgp.types import Array

Drawn = TypeVar("Drawn", bound=PriorDraws)
Known = LineDraws | FieldDraws  # whose paths are drawn
CHUNK = 100
CUTOFFS = np.linspace(0.2, 0.8, 25)
GRID = 800  # points on which the author's rule looks at a function
PLUME_WIDTHS, STEEPNESS = (0.20, 0.35), 5.0
VOLUMES, MOST_PIECES, LEAST_WIDTH = (0.1, 0.9), 13, 0.05


def line_draws(
    count: int,
    records: int,
    noise: float,
    points: int,
    rng: np.random.Generator,
    *,
    author_rule: bool = False,
) -> LineDraws:
    """Paths of the exponential kernel on [0, 1] scaled to height 1 - M, outputs with noise in +-M.

    Parameters
    ----------
    count, records, points
        Numbers of datasets, of records in each, and of points where the function is known.
    noise
        M.
    rng
        Public randomness.
    author_rule
        Draw again what the author's scripts reject (``rejected``), judged on ``GRID`` points.

    """
    if not author_rule:
        return _lines(count, records, noise, points, rng)
    step, rest = GRID // points, count
    if step * points != GRID:
        raise ValueError(f"points must divide {GRID}.")
    found = []
    while rest > 0:
        some = _lines(max(rest, 50), records, noise, GRID, rng)
        good = np.flatnonzero(~rejected(some.truth))[:rest]
        found.append((some.inputs[good], some.outputs[good], some.truth[good, ::step]))
        rest -= len(good)
    inputs, outputs, truth = (np.concatenate(part) for part in zip(*found, strict=True))
    return LineDraws(inputs, outputs, some.points[::step], truth)


def rejected(truth: Array) -> NDArray[np.bool_]:
    """The author's rule: which functions have a set that is too small, too large or too broken.

    Parameters
    ----------
    truth
        (draws, points), functions on an even grid of [0, 1].

    Returns
    -------
    (draws,)
        True where the set above 0 has a volume outside ``VOLUMES``, more than ``MOST_PIECES``
        pieces, or pieces narrower than ``LEAST_WIDTH`` on average.

    """
    above = truth >= 0.0
    volume = above.mean(axis=1)
    pieces = above[:, 0] + (above[:, 1:] & ~above[:, :-1]).sum(axis=1)
    width = volume / np.maximum(pieces, 1)
    inside = (volume >= VOLUMES[0]) & (volume <= VOLUMES[1])
    return np.asarray(~(inside & (pieces <= MOST_PIECES) & (width >= LEAST_WIDTH)), dtype=bool)


def _lines(
    count: int, records: int, noise: float, points: int, rng: np.random.Generator
) -> LineDraws:
    grid = np.linspace(0.0, 1.0, points)
    inputs = rng.random((count, records))
    where = np.hstack([np.broadcast_to(grid, (count, points)), inputs])
    order = np.argsort(where, axis=1)
    gaps = np.diff(np.take_along_axis(where, order, axis=1), axis=1)
    values = rng.standard_normal(where.shape)
    for i in range(gaps.shape[1]):  # a Markov chain, all draws at once
        decay = np.exp(-gaps[:, i])
        values[:, i + 1] = decay * values[:, i] + np.sqrt(1.0 - decay**2) * values[:, i + 1]
    paths = np.empty_like(values)
    np.put_along_axis(paths, order, values, axis=1)
    paths *= (1.0 - noise) / np.abs(paths).max(axis=1, keepdims=True)
    outputs = paths[:, points:] + rng.uniform(-noise, noise, (count, records))
    return LineDraws(inputs[..., None], outputs, grid[:, None], paths[:, :points])


def plume_draws(
    count: int, records: int, noise: float, side: int, rng: np.random.Generator
) -> FieldDraws:
    """Two broad plumes on the unit square through a sigmoid, scaled to +-(1 - M), noise in +-M.

    The paper leaves widths, amplitudes and steepness open. Widths and steepness are the defaults of
    the author's script; amplitudes are 0.5 to 1.
    """
    axis = np.linspace(0.0, 1.0, side)
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    inputs, outputs, truth = rng.random((count, records, 2)), [], []
    for X in inputs:
        where = np.vstack([grid, X])
        height = np.zeros(len(where))
        for _ in range(2):
            turn = rng.uniform(0.0, 2.0 * np.pi)
            R = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
            away = ((where - rng.random(2)) @ R) / rng.uniform(*PLUME_WIDTHS, 2)
            height += rng.uniform(0.5, 1.0) * np.exp(-0.5 * (away**2).sum(axis=1))
        level = np.quantile(height[: len(grid)], 0.65)
        g = 1.0 / (1.0 + np.exp(-STEEPNESS * (height - level)))
        low, high = g[: len(grid)].min(), g[: len(grid)].max()
        f = (1.0 - noise) * np.clip(2.0 * (g - low) / (high - low) - 1.0, -1.0, 1.0)
        truth.append(f[: len(grid)])
        outputs.append(f[len(grid) :] + rng.uniform(-noise, noise, records))
    return FieldDraws(inputs, np.array(outputs), grid, np.array(truth))


def overlap(found: Any, truth: Any) -> Array:
    """Intersection over union of sets given by their indicators along the last axis."""
    union = (found | truth).sum(axis=-1)
    both = (found & truth).sum(axis=-1)
    return np.where(union > 0, both / np.maximum(union, 1), 1.0)


@dataclass(frozen=True)
class Judged:
    """Posteriors of many draws under one setting, without any privacy.

    ``probability`` to be above 0 (draws, points); ``loss``, the mean cross-entropy, and
    ``dimension``, ``tr K (K + r^2 I)^-1``, each (draws,).
    """

    probability: Array
    loss: Array
    dimension: Array


def posteriors(draws: PriorDraws, tuned: Tuned) -> Judged:
    """What the posterior itself knows of every draw."""
    unit, entropy = tuned.paths.kernel.k2, ExcursionTask(score="cross-entropy")
    found = []
    for part in _parts(draws):
        many = part.posteriors(unit)
        mean, variance = many.at(tuned.regularisation**2)
        std = tuned.scale * np.sqrt(variance)
        loss = entropy.loss(mean, std, part.truth)
        found.append((ndtr(mean / std), loss, many.effective_dimension(tuned.regularisation**2)))
    return Judged(*(np.concatenate(parts) for parts in zip(*found, strict=True)))


def best_cutoff(draws: PriorDraws, tuned: Tuned) -> float:
    """The excursion probability above which the posterior's own set recovers the most."""
    truth, probability = draws.truth >= 0.0, posteriors(draws, tuned).probability
    return float(max(CUTOFFS, key=lambda c: overlap(probability >= c, truth).mean()))


def paths_of(
    part: Known, tuned: Tuned, repeats: int, smoothing: float | None, rng: np.random.Generator
) -> Array:
    """Posterior sample paths of every draw, (draws, repeats, points)."""
    many, ridge = part.posteriors(tuned.paths.kernel.k2), tuned.regularisation**2
    mean, _ = many.at(ridge)
    paths = mean[:, None, :] + tuned.scale * many.deviations(ridge, repeats, rng)
    if smoothing is None:
        return np.asarray(paths)
    flat = smooth_paths(part.points, paths.reshape(-1, paths.shape[2]), smoothing)
    return flat.reshape(paths.shape)


def path_overlaps(
    draws: Known, tuned: Tuned, repeats: int, smoothing: float | None, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Mean and std over ``repeats`` single paths of what their sets recover, each (draws,)."""
    means, stds = [], []
    for part in _parts(draws):
        paths = paths_of(part, tuned, repeats, smoothing, rng)
        found = overlap(paths >= 0.0, (part.truth >= 0.0)[:, None, :])
        means.append(found.mean(axis=1))
        stds.append(found.std(axis=1))
    return np.concatenate(means), np.concatenate(stds)


def best_smoothing(
    draws: Known, tuned: Tuned, choices: tuple[float | None, ...], rng: np.random.Generator
) -> float | None:
    """The filter with which single paths recover the most of these draws."""
    return max(choices, key=lambda s: path_overlaps(draws, tuned, 5, s, rng)[0].mean())


def first(draws: Drawn, count: int) -> Drawn:
    """The first few of the draws."""
    return _cut(draws, slice(0, count))


def thin(draws: Drawn, points: int) -> Drawn:
    """The same draws on this many of their points, evenly spaced."""
    step = len(draws.points) // points
    return replace(draws, points=draws.points[::step], truth=draws.truth[:, ::step])


def _parts(draws: Drawn) -> Iterator[Drawn]:
    for start in range(0, len(draws.truth), CHUNK):
        yield _cut(draws, slice(start, start + CHUNK))


def _cut(draws: Drawn, cut: slice) -> Drawn:
    return replace(
        draws, inputs=draws.inputs[cut], outputs=draws.outputs[cut], truth=draws.truth[cut]
    )
