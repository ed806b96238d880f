"""From noisy counts and sums to functionals of f and maps of the inputs. Post-processing."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from privgp.gp.functionals import Functionals
from privgp.gp.inference.posterior import posterior
from privgp.gp.input_maps import InputMap
from privgp.gp.measurement import Measurement
from privgp.gp.priors import Hyperparameters, Prior, prior_about
from privgp.plan.bins.bins import Bins
from privgp.plan.bins.counts import bin_functionals, counts_given
from privgp.plan.counts.linear import outcome_model
from privgp.plan.inputs.inputs import Inputs
from privgp.plan.inputs.start import RANK_SHARES
from privgp.types import Array


@dataclass(frozen=True)
class RecordsInBins:
    """How many records each bin holds, as a measurement tells: ``counts``, (bins,), and their
    ``covariance``."""

    bins: Bins
    counts: Array
    covariance: Array

    @classmethod
    def of(cls, bins: Bins, measurement: Measurement, noise_std: float) -> Self:
        """Given the measured counts; ``noise_std``: of every measured number."""
        return cls(bins, *counts_given(bins, bins.count_std(noise_std), measurement.counts))

    def functionals(
        self, measurement: Measurement, start: Hyperparameters, unit: float | None = None
    ) -> Functionals:
        """What the sums of one function's outcomes are of it.

        Uncertain counts act through f itself, so f is estimated twice: under the prior, then with its
        own first estimate in that place. ``unit``: of rates, where outcomes are counts.
        """
        known, model = (self.bins, self.counts, self.covariance), outcome_model(start, unit)
        first = bin_functionals(*known, start, unit=unit)
        mean, cov = posterior(first, measurement, [model], 0.0).mean_and_covariance(first.nodes)
        F = self.bins.average_over_bins(mean)
        squares = self.bins.average_over_bins(cov) + np.outer(F, F)
        return bin_functionals(*known, start, squares, unit)

    def priors(self, prior: Prior, inputs: Inputs | None = None) -> tuple[Prior, ...]:
        return part_ranked_by_counts(self.bins, self.counts, prior, inputs)


def part_ranked_by_counts(
    bins: Bins, counts: Array, prior: Prior, inputs: Inputs | None = None
) -> tuple[Prior, ...]:
    """One prior per map that blends coordinates with their ranks, as the noisy counts tell them."""
    knots, ranks = [], []
    cells = counts.reshape(bins.shape)
    for j, parts in enumerate(bins.shape):
        others = tuple(axis for axis in range(len(bins.shape)) if axis != j)
        below = np.concatenate([[0.0], np.cumsum(cells.sum(axis=others))])
        width = bins.high[j] - bins.low[j]
        knots.append(np.linspace(bins.low[j], bins.high[j], parts + 1))
        ranks.append(bins.low[j] + width * below / below[-1])
    edges, places = np.column_stack(knots), np.column_stack(ranks)
    plain, widths = (None, ()) if inputs is None else (inputs.plain_coordinates, inputs.widths)
    maps = [InputMap(share, edges, places, plain) if share else InputMap() for share in RANK_SHARES]
    maps = maps[: 1 if plain and len(plain) == len(knots) else None]
    free = prior.noise_free
    return tuple(
        prior_about(replace(prior.start, input_map=m), noise_free=free, widths=widths) for m in maps
    )
