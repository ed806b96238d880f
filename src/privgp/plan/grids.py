"""Which bins, and which sums over them: from the number of records, the bounds and the budget alone.

Candidates are regular grids with as many bins per input, plain and, where they are somewhat finer
than the best plain ones, with the noise-aware design on them. Taken is the one with the least error
to expect at the targets, for records spread evenly over the domain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from privgp.plan.aware import Hypothesis, aware_design
from privgp.plan.bins import Bins, centres
from privgp.plan.counts import bin_functionals, counts_given
from privgp.plan.hypotheses import hypotheses_for
from privgp.plan.priors import Hyperparameters, Prior
from privgp.plan.strategy import Measurement, Strategy
from privgp.release.posterior import posterior
from privgp.types import Array

GRIDS = {1: (1, 2, 4, 8, 16, 32, 64), 2: (1, 2, 4, 7, 10, 14, 20), 3: (1, 2, 3, 5, 8)}
MOST_MEASURED = {1: 64, 2: 100, 3: 120}
DESIGN_SCALES = (-1.2, 0.0, 1.2)  # standard deviations of the prior's common lengthscale
AS_GOOD = 1.003  # a coarser grid is taken if its error is larger by no more than this


@dataclass(frozen=True)
class Domain:
    """Where how many records are: all that is known of them."""

    low: Array
    high: Array
    rows: int

    def bins(self, parts: int) -> Bins:
        """Plain bins, as many per input."""
        shape = (parts,) * len(self.low)
        return Bins(self.low, self.high, shape, self.rows, np.eye(parts ** len(shape)))


def best_bins(
    domain: Domain, prior: Prior, noise_std: float, half_width: float, targets: Array
) -> Bins:
    """The bins and the sums over them with (nearly) the least expected error.

    ``noise_std``: of every measured count; of sums it is ``half_width`` times as much.
    """
    models, grids = design_models(prior), GRIDS[len(domain.low)]
    best, least, place = domain.bins(1), np.inf, 0
    for i, parts in enumerate(grids):
        bins = domain.bins(parts)
        error = expected_error(bins, models, noise_std, half_width, targets)
        if error * AS_GOOD < least:
            best, least, place = bins, error, i
        elif error > 1.1 * least:
            break  # finer bins are noisier still
    # The noise-aware design wants bins finer than the best plain ones, but not much.
    for parts in grids[place + 1 : place + 3] or grids[-1:]:
        bins = aware_bins(domain.bins(parts), models, noise_std * half_width, targets)
        error = expected_error(bins, models, noise_std, half_width, targets)
        if error * AS_GOOD < least:
            best, least = bins, error
    return best


def expected_error(
    bins: Bins, models: Sequence[Hyperparameters], noise_std: float, half: float, targets: Array
) -> float:
    """Root mean square at the targets over the models, records spread evenly, counts noisy."""
    counts = counts_given(bins, noise_std, None)
    nothing = Measurement(np.zeros(len(bins.matrix)), noise_std * half, None, 0.0)
    variances = [
        posterior(bin_functionals(bins, *counts, m), nothing, [m], 0.0).mean_and_variance(targets)[
            1
        ]
        for m in models
    ]
    return float(np.sqrt(np.mean(variances)))


def aware_bins(
    bins: Bins, models: Sequence[Hyperparameters], noise_std: float, targets: Array
) -> Bins:
    """The noise-aware design for even records, made safe for private inputs.

    Its columns b get norm at most 1; if their least inner product is -rho < 0, a row of sqrt(rho)
    lifts it to 0, and all is scaled down by sqrt(1 + rho).
    """
    hypotheses = even_hypotheses(bins, models, targets)
    B = aware_design(hypotheses, noise_std**2, min(MOST_MEASURED[len(bins.shape)], bins.count))
    B = B / max(1.0, float(np.linalg.norm(B, axis=0).max()) * (1.0 + 1e-12))
    rho = max(0.0, -float((B.T @ B).min())) + 1e-12
    lifted = np.vstack([B, np.full((1, bins.count), np.sqrt(rho))])
    return replace(bins, matrix=np.asarray(lifted / (np.sqrt(1.0 + rho) * (1.0 + 1e-12))))


def even_hypotheses(
    bins: Bins, models: Sequence[Hyperparameters], targets: Array
) -> list[Hypothesis]:
    """The models for records spread evenly over the bins' centres, as if that were known."""
    places = centres(bins.low, bins.high, bins.shape)
    each = np.full(len(places), bins.rows / len(places))
    index = np.arange(len(places))
    one = Strategy(bins.matrix, index, each, None, 0.0, each)
    found = hypotheses_for(models, places, index, one, targets, np.ones(len(targets)))
    # Every record of a bin has noise of its own.
    return [
        replace(h, noise=model.noise_variance * each)
        for h, model in zip(found, models, strict=True)
    ]


def design_models(prior: Prior) -> list[Hyperparameters]:
    """Shorter, starting and longer lengthscales."""
    if prior.size == 0:
        return [prior.start]
    return [prior.at(step * _common(prior)) for step in DESIGN_SCALES]


def _common(prior: Prior) -> Array:
    """The prior's direction in which all lengthscales move together, one standard deviation."""
    names = [
        parameter.name
        for parameter in prior.start.kernel.hyperparameters
        if not parameter.fixed
        for _ in range(parameter.n_elements)
    ]
    move = np.zeros(prior.size)
    for place, name in enumerate(names):
        if name.endswith("length_scale"):
            move[place] = 1.0
    return np.asarray(np.linalg.solve(prior.root, move), dtype=np.float64)
