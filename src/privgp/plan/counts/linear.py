"""Counts taken for numbers: their rate itself, as a multiple of the unit, about that unit.

Where records are private, it is uncertain how many lie in a place, and that acts through the rate there.
For this a rate is a Gaussian process like any other number between bounds, and so it is estimated first.
"""

from __future__ import annotations

from dataclasses import replace

from privgp.gp.kernels.evaluate import variance
from privgp.gp.priors import Hyperparameters
from privgp.plan.classes.latent import rescale

# Of a rate over the unit: a level and a function of a quarter of the bounds' width, two units, each.
MOST_VARIANCE = 0.5


def outcome_model(model: Hyperparameters, unit: float | None) -> Hyperparameters:
    """The model of what is summed: the function itself, or the rate whose logarithm it is.

    ``unit``: of rates; None where outcomes are no counts.
    """
    if unit is None:
        return model
    share = min(1.0, MOST_VARIANCE / variance(model.kernel))
    return replace(model, kernel=rescale(model.kernel, share**0.5))
