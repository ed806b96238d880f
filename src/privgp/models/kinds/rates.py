"""Counts: which parameters go with them, and what answers once their sums are measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from privgp.gp.functionals import Functionals
from privgp.gp.inference.posterior import Posterior, posterior
from privgp.gp.measurement import Measurement
from privgp.gp.priors import Hyperparameters
from privgp.plan.counts.exposures import Exposures
from privgp.plan.inputs.arguments import check_choice, check_unused
from privgp.plan.parameters import LIKELIHOODS
from privgp.release.rates import RatePosterior, rate_posterior
from privgp.types import Pair

if TYPE_CHECKING:
    from privgp.models.regressor import PrivateGPRegressor


def check_likelihood(model: PrivateGPRegressor, bounds: Pair) -> None:
    """Refuse what counts do not go with."""
    check_choice("likelihood", model.likelihood, LIKELIHOODS)
    if model.likelihood == "gaussian":
        return
    if bounds[0] < 0:
        raise ValueError("likelihood='poisson' is for counts: y_bounds must not be negative.")
    check_unused(model, ("most_rows", "objective", "reconstruct"), "likelihood='poisson'")


def check_exposed(model: PrivateGPRegressor, exposure: Any) -> None:
    if exposure is None:
        return
    if model.likelihood != "poisson":
        raise ValueError("exposure goes with likelihood='poisson' only: leave exposure=None.")
    if model.protect == "records":
        raise ValueError(
            "exposure does not go with protect='records': exposures are public, and that of a private "
            "record is as private as the record. Leave exposure=None: every record counts over one unit."
        )


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
