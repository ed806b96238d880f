"""Which bins, and which sums over them: from the number of records, the bounds and the budget alone.

Candidates are regular grids with as many bins per input: for Laplace noise plain; for Gaussian noise
plain and, where they are somewhat finer than the best plain ones, with the noise-aware design on
them. Taken is the one with the least error to expect at the targets, for records spread evenly over
the domain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from privgp.gp.measurement import Measurement
from privgp.gp.posterior import posterior
from privgp.gp.priors import Hyperparameters, Prior
from privgp.plan.bins.bins import Bins, HalvedBins, centres, pure_energy_weight
from privgp.plan.bins.counts import bin_functionals, counts_given
from privgp.plan.designs.hypotheses import hypotheses_for
from privgp.plan.designs.noise_aware import Hypothesis, aware_design
from privgp.plan.strategy import OutputSums
from privgp.privacy.noise import LAPLACE
from privgp.types import Array

if TYPE_CHECKING:
    from privgp.plan.build import Budget

GRIDS = {1: (1, 2, 4, 8, 16, 32, 64), 2: (1, 2, 4, 7, 10, 14, 20), 3: (1, 2, 3, 5, 8)}
MOST_MEASURED = {1: 64, 2: 100, 3: 120}
DESIGN_SCALES = (-1.2, 0.0, 1.2)  # standard deviations of the prior's common lengthscale
PURE_GRIDS = {
    1: (1, 2, 3, 4, 6, 8, 11, 16, 23, 32, 45, 64),
    2: (1, 2, 3, 4, 5, 7, 8, 10, 12, 14, 17, 20),
    3: (1, 2, 3, 4, 5, 6, 8),
}
AS_GOOD = 1.003  # a coarser grid is taken if its error is larger by no more than this


@dataclass(frozen=True)
class Domain:
    """The declared bounds of the inputs and the number of records: all that a plan may know."""

    low: Array
    high: Array
    rows: int

    def bins(self, parts: int) -> Bins:
        """Plain bins, as many per input, for Gaussian noise."""
        shape = (parts,) * len(self.low)
        return Bins(self.low, self.high, shape, self.rows, np.eye(parts ** len(shape)))

    def halved_bins(self, parts: int, energy_weight: float, law: str) -> HalvedBins:
        """The same for pure noise."""
        plain = self.bins(parts)
        where = self.low, self.high, plain.shape, self.rows
        return HalvedBins(*where, plain.matrix, energy_weight, law)


@dataclass(frozen=True)
class Aim:
    """What a measurement is chosen for: models of f, targets, and half the width of the outputs."""

    models: Sequence[Hyperparameters]
    targets: Array
    half_width: float

    def error(self, bins: Bins, noise_std: float) -> float:
        """Expected root mean square at the targets over the models, records spread evenly.

        ``noise_std``: of every count that the measurement gives, its sums have ``half_width`` times
        as much.
        """
        counts = counts_given(bins, noise_std, None)
        nothing = Measurement(np.zeros(len(bins.matrix)), noise_std * self.half_width, None, 0.0)
        variances = [
            posterior(bin_functionals(bins, *counts, m), nothing, [m], 0.0).mean_and_variance(
                self.targets
            )[1]
            for m in self.models
        ]
        return float(np.sqrt(np.mean(variances)))


def best_bins(domain: Domain, aim: Aim, noise_std: float) -> tuple[Bins, float]:
    """For Gaussian noise: bins and sums over them with (nearly) the least error, and that error.

    ``noise_std``: of every measured count.
    """
    grids = GRIDS[len(domain.low)]
    best, least = _best_plain([domain.bins(parts) for parts in grids], aim, noise_std)
    # The noise-aware design wants bins finer than the best plain ones, but not much.
    place = grids.index(best.shape[0])
    for parts in grids[place + 1 : place + 3] or grids[-1:]:
        bins = aware_bins(domain.bins(parts), aim.models, noise_std * aim.half_width, aim.targets)
        error = aim.error(bins, noise_std)
        if error * AS_GOOD < least:
            best, least = bins, error
    return best, least


def best_pure_bins(
    domain: Domain, aim: Aim, budget: Budget, law: str = LAPLACE, *, energy: bool = True
) -> tuple[Bins, float]:
    """The same for pure noise, which wants plain bins: a mix would put a record in several.

    ``energy``: whether it is needed, to learn hyperparameters from.
    """
    weight = pure_energy_weight(budget.epsilon, domain.rows) if energy else 0.0
    ladder = [domain.halved_bins(parts, weight, law) for parts in PURE_GRIDS[len(domain.low)]]
    noise_std = ladder[0].sum_std(budget.noise_of(ladder[0]).std)
    return _best_plain(ladder, aim, noise_std)


def _best_plain(ladder: Sequence[Bins], aim: Aim, noise_std: float) -> tuple[Bins, float]:
    best, least = ladder[0], np.inf
    for bins in ladder:
        error = aim.error(bins, noise_std)
        if error * AS_GOOD < least:
            best, least = bins, error
        elif error > 1.1 * least:
            break  # finer bins are noisier still
    return best, least


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
    one = OutputSums(bins.matrix, index, each, None, 0.0, each)
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
