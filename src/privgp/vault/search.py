"""Scores of private validation records, each measured once with noise; and Kusner's search, whose
whole course stays here: only the setting and the value that its mechanisms draw leave."""

import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from privgp.gp.surrogate import Hyperprior, Surrogate
from privgp.privacy.kusner import KusnerConstants
from privgp.privacy.noise import GaussianNoise
from privgp.types import Array, Random
from privgp.vault.noise import add_noise
from privgp.vault.scores import Validation, mean_loss
from privgp.vault.select import EXPONENTIAL, choose


def measure_loss(
    model: object, validation: Validation, noise: GaussianNoise, rng: Random = None
) -> float:
    """The mean loss, scaled to [0, 1], plus noise: spends this step's share of the budget.

    Parameters
    ----------
    model
        Fitted without the validation records.
    validation
        Private.
    noise
        Noise of this step.
    rng
        Generator of a simulation; None for the noise that protects.

    """
    exact = np.array([mean_loss(model, validation)])
    return float(add_noise(exact, noise, rng)[0])


@dataclass(frozen=True)
class Objective:
    """The score of a setting, in units of the prior's std.

    Attributes
    ----------
    train : from the index of a setting to its model
    validation : private
    prior_mean, prior_std : mean and std of the scores, public

    """

    train: Callable[[int], Any]
    validation: Validation
    prior_mean: float
    prior_std: float

    def value(self, setting: int) -> float:
        """The score of a setting: private."""
        try:
            with warnings.catch_warnings():  # which settings are tried is private
                warnings.simplefilter("ignore")
                model = self.train(setting)
        except Exception:
            raise ValueError("the estimator could not be fitted with a setting.") from None
        score = self.validation.loss.score(mean_loss(model, self.validation))
        return float((score - self.prior_mean) / self.prior_std)


def kusner_search(
    objective: Objective,
    points: Array,
    prior: Hyperprior,
    constants: KusnerConstants,
    report: Callable[[int], None],
    rng: Random = None,
) -> tuple[int, float]:
    """Algorithms 1 and 2 of Kusner et al. (2015), of which two numbers leave.

    Parameters
    ----------
    objective
        Private scores of the settings.
    points
        (settings, coordinates).
    prior
        One known kernel.
    constants
        The constants that the noise is computed from.
    report
        Is called with the number of steps done, which is public.
    rng
        Generator of a simulation; None for the noise that protects.

    Returns
    -------
    setting : int
        The index of the chosen one.
    value : float
        The noisy largest score, in the prior's stds.

    """
    coins = np.random.default_rng() if rng is None else rng
    surrogate = Surrogate(points, prior)
    values: list[float] = []
    order = _without_noise if constants.noise_free else _with_noise
    for setting in order(surrogate, constants):
        value = objective.value(setting) + constants.observation_std * coins.standard_normal()
        surrogate.observe(setting, value, constants.observation_std)
        values.append(value)
        report(len(values))
    # The paper leaves the first value out where there is no noise.
    largest = max(values[1:] if constants.noise_free and len(values) > 1 else values)
    sensitivity, epsilon = constants.mean_sensitivity, constants.epsilon
    chosen = choose(EXPONENTIAL, surrogate.means[0], sensitivity, epsilon, rng)
    return chosen, float(add_noise(np.array([largest]), constants.value_noise(), rng)[0])


def _with_noise(surrogate: Surrogate, constants: KusnerConstants) -> Iterator[int]:
    """T times the largest mu + sqrt(beta_t) sigma."""
    for step in range(1, constants.steps + 1):
        yield int(np.argmax(_bound(surrogate, constants.beta(step))))


def _without_noise(surrogate: Surrogate, constants: KusnerConstants) -> Iterator[int]:
    """Branch and bound: cover the settings that may be best ever more densely, the most promising
    first; a setting is ruled out once its upper bound is below another's lower bound."""
    points, width = surrogate.points, constants.beta(constants.steps)
    radius = math.sqrt(points.shape[1])
    distance = np.full(len(points), np.inf)
    for _ in range(constants.steps):
        upper = _bound(surrogate, width)
        alive = (upper >= np.max(_bound(surrogate, width, sign=-1.0))) & (distance > 0)
        if not alive.any():
            alive = distance > 0
        if not alive.any():
            return
        while not (alive & (distance > radius)).any():
            radius /= 2.0
        setting = int(np.argmax(np.where(alive & (distance > radius), upper, -np.inf)))
        yield setting
        step = np.sqrt(np.square(points - points[setting]).sum(axis=1))
        distance = np.minimum(distance, step)


def _bound(surrogate: Surrogate, width: float, sign: float = 1.0) -> Array:
    """Mu + sqrt(beta) sigma at every setting, or mu - sqrt(beta) sigma."""
    spread = sign * math.sqrt(width) * np.sqrt(surrogate.variances[0])
    return np.asarray(surrogate.means[0] + spread)
