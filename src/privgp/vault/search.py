"""Scores of private validation records, each measured once with noise; and Kusner's search, whose
whole course stays here: only the setting and the value that its mechanisms draw leave."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from opendp import measurements
from opendp.domains import atom_domain
from opendp.metrics import absolute_distance
from opendp.mod import enable_features

from privgp.gp.surrogate import Hyperprior, Surrogate
from privgp.privacy.kusner import KusnerConstants
from privgp.privacy.noise import GaussianNoise
from privgp.types import Array
from privgp.vault.noise import add_noise
from privgp.vault.scores import Loss, Validation, mean_loss
from privgp.vault.select import exponential

LAPLACE_DEPTH = 40

enable_features("contrib")


def measured_loss(
    model: Any,
    validation: Validation,
    loss: Loss,
    noise: GaussianNoise,
    rng: np.random.Generator | None = None,
) -> float:
    """The mean loss, scaled to [0, 1], plus noise: spends this step's share of the budget."""
    exact = np.array([mean_loss(model, validation, loss)])
    return float(add_noise(exact, noise, rng)[0])


@dataclass(frozen=True)
class Objective:
    """f(x) in units of the prior's std: ``train`` gives the model of a setting, which is then scored
    as ``top - width * mean loss`` and standardised."""

    train: Callable[[int], Any]
    validation: Validation
    loss: Loss
    top: float
    width: float
    prior_mean: float
    prior_std: float

    def value(self, place: int) -> float:
        try:
            with warnings.catch_warnings():  # where it searched is private
                warnings.simplefilter("ignore")
                model = self.train(place)
        except Exception:
            raise ValueError("the estimator could not be fitted with a setting.") from None
        share = mean_loss(model, self.validation, self.loss)
        return (self.top - self.width * share - self.prior_mean) / self.prior_std


def kusner_search(
    objective: Objective,
    points: Array,
    prior: Hyperprior,
    constants: KusnerConstants,
    tell: Callable[[int], None],
    rng: np.random.Generator | None = None,
) -> tuple[int, float]:
    """Algorithms 1 and 2: the place of the chosen setting, and the noisy value in prior stds."""
    coins = np.random.default_rng() if rng is None else rng
    surrogate = Surrogate(points, prior)
    values: list[float] = []
    order = _without_noise if constants.noise_free else _with_noise
    for place in order(surrogate, constants):
        value = objective.value(place) + constants.observation_std * coins.standard_normal()
        surrogate.observe(place, value, constants.observation_std)
        values.append(value)
        tell(len(values))
    # The paper leaves the first value out where there is no noise.
    largest = max(values[1:] if constants.noise_free and len(values) > 1 else values)
    chosen = exponential(surrogate.means[0], constants.mean_sensitivity, constants.epsilon, rng)
    return chosen, add_laplace_noise(largest, constants.value_sensitivity, constants.epsilon, rng)


def _with_noise(surrogate: Surrogate, constants: KusnerConstants) -> Any:
    """T times the largest mu + sqrt(beta_t) sigma."""
    for step in range(1, constants.steps + 1):
        yield _largest_bound(surrogate, constants.beta(step), None)


def _without_noise(surrogate: Surrogate, constants: KusnerConstants) -> Any:
    """Branch and bound: cover the settings that may be best ever more densely, the most promising
    first; a setting is ruled out once its upper bound is below another's lower bound."""
    points, width = surrogate.points, constants.beta(constants.steps)
    radius = math.sqrt(points.shape[1])
    distance = np.full(len(points), np.inf)
    for _ in range(constants.steps):
        mean, std = surrogate.means[0], np.sqrt(surrogate.variances[0])
        alive = mean + math.sqrt(width) * std >= np.max(mean - math.sqrt(width) * std)
        alive &= distance > 0
        if not alive.any():
            alive = distance > 0
        if not alive.any():
            return
        while not (alive & (distance > radius)).any():
            radius /= 2.0
        place = _largest_bound(surrogate, width, alive & (distance > radius))
        yield place
        step = np.sqrt(np.square(points - points[place]).sum(axis=1))
        distance = np.minimum(distance, step)


def _largest_bound(surrogate: Surrogate, width: float, among: Any) -> int:
    bound = surrogate.means[0] + math.sqrt(width) * np.sqrt(surrogate.variances[0])
    return int(np.argmax(bound if among is None else np.where(among, bound, -np.inf)))


def add_laplace_noise(
    value: float, sensitivity: float, epsilon: float, rng: np.random.Generator | None = None
) -> float:
    """A number on a lattice of powers of two plus Laplace noise, by OpenDP.

    The scale is ``sensitivity / epsilon``, raised for what rounding to the lattice adds: half a step
    for each of two neighbours, 2^-40 of the scale together.
    """
    scale = sensitivity / epsilon
    if not (math.isfinite(value) and math.isfinite(scale) and scale > 0):
        raise ValueError("the value to release is not finite; nothing was released.")
    if rng is not None:
        return value + float(rng.laplace(0.0, scale))
    exponent = math.floor(math.log2(scale)) - LAPLACE_DEPTH
    raised = (sensitivity + 2.0**exponent) / epsilon * (1.0 + 2.0**-50)
    space = atom_domain(T=float, nan=False), absolute_distance(T=float)
    return float(measurements.make_laplace(*space, scale=raised, k=exponent)(value))
