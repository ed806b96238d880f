"""Noisy means of private outputs over bins of public inputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import validate_data

from privgp.plan.bins.grid import BinSums, Grid
from privgp.plan.inputs.arguments import check_bounds, domain_pairs
from privgp.plan.strategy import noise_of
from privgp.privacy.guarantee import OUTPUTS, Guarantee, promise
from privgp.privacy.noise import Noise
from privgp.types import Array, Integers
from privgp.vault.measure import measure
from privgp.vault.validate import checked_outputs

if TYPE_CHECKING:
    from privgp.models.binned.measured import MeasuredBins


@dataclass(frozen=True)
class BinnedRelease:
    """What was released: public.

    ``bins``: (m,), the bins that have a mean; ``counts``: (m,), rows in each, noisy where inputs are
    private; ``means``: (m,), in units of y; ``noise_std``: (m,), of the privacy noise on each.
    """

    grid: Grid
    bins: Integers
    counts: Array
    means: Array
    noise_std: Array
    guarantee: Guarantee


def release_outputs(model: MeasuredBins, X: Any, y: Any) -> BinnedRelease:
    """Spend the budget once on the sums per bin. X is public, y goes to the vault."""
    X = validate_data(model, X, dtype=np.float64)
    y = checked_outputs(y, len(X))
    low, high = check_bounds("y_bounds", model.y_bounds)
    grid = public_grid(model, X)
    bins, index = np.unique(grid.of(X), return_inverse=True)
    counts = np.bincount(index).astype(float)
    strategy = BinSums(model.noise, index, len(bins))
    noise = noise_of(strategy, float(model.epsilon), float(model.delta))
    sums = measure(y, (low, high), strategy, noise, model._rng()).values
    del y
    half = 0.5 * high - 0.5 * low
    return BinnedRelease(
        grid=grid,
        bins=bins,
        counts=counts,
        means=0.5 * high + 0.5 * low + sums / counts,
        noise_std=half * noise.std / counts,
        guarantee=_guarantee(model, noise),
    )


def public_grid(model: MeasuredBins, X: Array) -> Grid:
    """The grid over the declared domain, or over the public inputs where none was declared."""
    if model.x_bounds is not None:
        low, high = np.array(domain_pairs("x_bounds", model.x_bounds, X.shape[1])).T
    else:
        low, high = X.min(axis=0), X.max(axis=0)
        pad = np.where(high > low, 0.0, np.maximum(0.5, np.abs(low)))
        low, high = low - pad, high + pad
    return Grid(low, high, model._shape(X.shape[1]))


def _guarantee(model: MeasuredBins, noise: Noise) -> Guarantee:
    return promise(
        OUTPUTS,
        [noise.event],
        epsilon=model.epsilon,
        delta=model.delta,
        assumptions=(
            "the inputs, so the number of rows in every bin, are public",
            "kernel, bounds, bins and budget were chosen without looking at the outputs",
        ),
        mechanism=f"{noise.describe()} on the sums of the clipped outputs over {noise.size} bins; all "
        "else is post-processing",
        sampler=noise.sampler,
        simulated=model.random_state is not None,
    )
