"""Counts: what answers once their sums are measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from privgp.gp.functionals import Functionals
from privgp.gp.inference.posterior import Posterior, posterior
from privgp.gp.measurement import Measurement
from privgp.gp.priors import Hyperparameters
from privgp.plan.counts.exposures import Exposures
from privgp.release.rates import RatePosterior, rate_posterior
from privgp.types import Pair

if TYPE_CHECKING:
    from privgp.models.regressor import PrivateGPRegressor


def record_exposures(model: PrivateGPRegressor, bounds: Pair) -> Exposures | None:
    """What private records count over, where outputs are counts: one unit each."""
    counts = model.likelihood == "poisson" and model.protect == "records"
    return Exposures.of(np.ones(1), bounds) if counts else None


def answer_to(
    functionals: Functionals,
    measurement: Measurement,
    models: Sequence[Hyperparameters],
    centre: float,
    unit: float | None,
) -> Posterior | RatePosterior:
    """What predicts: the function itself, or, given the ``unit`` of rates, a rate."""
    if unit is None:
        return posterior(functionals, measurement, models, centre)
    return rate_posterior(functionals, measurement, models, unit)
