"""Noisy counts and means over bins of a declared domain, where inputs are private too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import validate_data

from privgp.models.binned.outputs import BinnedRelease
from privgp.plan.bins.bins import Bins
from privgp.plan.bins.grid import Grid
from privgp.plan.inputs.arguments import check_bounds, domain_pairs
from privgp.plan.strategy import noise_of
from privgp.privacy.guarantee import RECORDS, Guarantee, promise
from privgp.privacy.noise import Noise
from privgp.vault.measure import measure
from privgp.vault.validate import checked_inputs, checked_outputs

if TYPE_CHECKING:
    from privgp.models.binned.measured import MeasuredBins

MOST_BINS = 2000
FEWEST = 2.0  # noise stds that a count needs for its bin to have a mean


def release_records(model: MeasuredBins, X: Any, y: Any) -> BinnedRelease:
    """Spend the budget once on counts and sums. Inputs and outputs go to the vault."""
    low, high = check_bounds("y_bounds", model.y_bounds)
    corners = np.array(domain_pairs("x_bounds", model.x_bounds)).T
    grid = Grid(corners[0], corners[1], model._shape(corners.shape[1]))
    if grid.count > MOST_BINS:
        raise ValueError(
            f"bins must make at most {MOST_BINS} with protect='records', got {grid.count}."
        )
    inputs = checked_inputs(X, corners.shape[1])
    y = checked_outputs(y, len(inputs))
    validate_data(model, X, skip_check_array=True)  # remembers names and number of columns
    strategy = Bins(grid.low, grid.high, grid.shape, len(inputs), np.eye(grid.count))
    noise = noise_of(strategy, float(model.epsilon), float(model.delta))
    measured = measure((inputs, y), (low, high), strategy, noise, model._rng())
    del inputs, X, y
    assert measured.counts is not None
    bins = np.flatnonzero(measured.counts > FEWEST * noise.std)
    counts, sums = measured.counts[bins], measured.values[bins]
    middle = 0.5 * high + 0.5 * low
    means = np.clip(middle + sums / counts, low, high)
    # the error of a ratio: of its numerator, and of its denominator times itself
    spread = measured.noise_std * np.sqrt(1.0 + ((means - middle) / (high - middle)) ** 2)
    guarantee = _guarantee(model, strategy, noise)
    return BinnedRelease(grid, bins, counts, means, spread / counts, guarantee)


def _guarantee(model: MeasuredBins, strategy: Bins, noise: Noise) -> Guarantee:
    return promise(
        RECORDS,
        [noise.event],
        epsilon=model.epsilon,
        delta=model.delta,
        assumptions=(
            "the number of records is public",
            "kernel, bounds of inputs and outputs, bins and budget were chosen without looking at "
            "the records",
        ),
        mechanism=f"{noise.describe()} on {strategy.size} numbers: counts and sums of the clipped "
        "outputs over bins of the declared domain, and one energy; all else is post-processing",
        sampler=noise.sampler,
        simulated=model.random_state is not None,
    )
