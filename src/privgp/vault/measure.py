"""Everything that is measured of private values, plus noise: the only place where they meet a
release. ``exact`` knows every kind of strategy; a new one registers how it is computed."""

from collections.abc import Callable
from functools import singledispatch
from typing import Any

import numpy as np

from privgp.gp.features import packed, unit_features
from privgp.gp.measurement import Measurement
from privgp.plan.bins.bins import Bins, BinSums, HalvedBins
from privgp.plan.features.features import Features
from privgp.plan.strategy import OutputSums, Strategy
from privgp.privacy.noise import Noise
from privgp.types import Array, Pair, Random
from privgp.vault.noise import add_noise
from privgp.vault.validate import clipped_inputs, clipped_outputs


def measure(
    data: Any, bounds: Pair, strategy: Strategy, noise: Noise, random_state: Random = None
) -> Measurement:
    """Spend the budget once: validate, clip, compute, add noise. ``data``: y, or private (X, y)."""
    numbers = add_noise(exact(strategy, data, bounds), noise, random_state)
    return strategy.read(numbers, noise, 0.5 * bounds[1] - 0.5 * bounds[0])


@singledispatch
def exact(strategy: Any, data: Any, bounds: Pair) -> Array:
    """The measurement without noise: private."""
    raise TypeError("the vault does not know this strategy.")


@exact.register
def _(strategy: OutputSums, data: Any, bounds: Pair) -> Array:
    """``(B s, w sum e_i u_i^2)``."""
    u = clipped_outputs(data, len(strategy.index), bounds)
    inputs = strategy.matrix.shape[1]
    sums = strategy.matrix @ np.bincount(strategy.index, strategy.row_weights * u, minlength=inputs)
    if strategy.energy_weight == 0:
        return np.asarray(sums)
    energy = strategy.energy_weight * float(np.dot(strategy.energy_shares, u * u))
    return np.append(sums, energy)


@exact.register
def _(strategy: BinSums, data: Any, bounds: Pair) -> Array:
    """The sum of the outputs over every bin."""
    u = clipped_outputs(data, strategy.rows, bounds)
    return np.bincount(strategy.index, u, minlength=strategy.size).astype(float)


@exact.register
def _(strategy: Bins, data: Any, bounds: Pair) -> Array:
    """``(B counts, B sums of u, w sum u^2)``."""
    return _over_bins(strategy, data, bounds, lambda u: (np.ones(len(u)), u))


@exact.register
def _(strategy: HalvedBins, data: Any, bounds: Pair) -> Array:
    """``(B sums of (1 + u) / 2, B sums of (1 - u) / 2, w sum u^2)``."""
    return _over_bins(strategy, data, bounds, lambda u: (0.5 + 0.5 * u, 0.5 - 0.5 * u))


@exact.register
def _(strategy: Features, data: Any, bounds: Pair) -> Array:
    """The Gram matrix of the features, their sums times u, and ``w sum u^2``."""
    X, y = data
    inputs = clipped_inputs(X, strategy.low, strategy.high)
    u = clipped_outputs(y, strategy.rows, bounds)
    if len(inputs) != len(u):
        raise ValueError("X and y must have one row for each record.")
    places = (inputs - strategy.low) / (strategy.high - strategy.low)
    phi = unit_features(places, strategy.lengthscale, strategy.inducing, strategy.matrix)
    parts = [strategy.gram_weight * packed(phi.T @ phi), phi.T @ u]
    if strategy.energy_weight > 0:
        parts.append(np.array([strategy.energy_weight * float(np.dot(u, u))]))
    return np.concatenate(parts)


def _over_bins(
    bins: Bins, data: Any, bounds: Pair, values: Callable[[Array], tuple[Array, Array]]
) -> Array:
    """Sums over bins of two values of a record's output; inputs are projected onto the domain."""
    X, y = data
    inputs = clipped_inputs(X, bins.low, bins.high)
    u = clipped_outputs(y, bins.rows, bounds)
    if len(inputs) != len(u):
        raise ValueError("X and y must have one row for each record.")
    shape = np.array(bins.shape)
    place = (inputs - bins.low) / (bins.high - bins.low) * shape
    cells = np.clip(np.floor(place).astype(np.int64), 0, shape - 1)
    index = np.ravel_multi_index(tuple(cells.T), bins.shape)
    parts = [bins.matrix @ np.bincount(index, each, minlength=bins.count) for each in values(u)]
    if bins.energy_weight > 0:
        parts.append(np.array([bins.energy_weight * float(np.dot(u, u))]))
    return np.concatenate(parts)
