"""The constants of Kusner, Gardner, Garnett and Weinberger's private Bayesian optimisation (2015).

All in units of the prior's standard deviation, k(x, x) = 1. ``settings`` is |X|, ``steps`` is T,
``correlation`` is k_1(D, D') of neighbours, ``epsilon`` and ``delta`` are those of *one* of two
released values: both cost (2 epsilon, 2 delta). The promise holds only if the objectives of all
datasets are draws from one known Gaussian process: docs/proofs/bayes.md."""

import math
from dataclasses import dataclass

import numpy as np

from privgp.gp.surrogate import Hyperprior, Surrogate
from privgp.privacy.noise import LaplaceNoise, laplace_noise
from privgp.types import Array

GREEDY_SHARE = 1.0 - 1.0 / math.e  # of the largest information gain, reached by greedy choice


def beta(step: int, settings: int, delta: float) -> float:
    """beta_t = 2 log(|X| t^2 pi^2 / (3 delta)).

    Parameters
    ----------
    step
        t, from 1 on.
    settings
        |X|, how many settings can be chosen.
    delta
        The probability with which the bound may fail.

    """
    return 2.0 * math.log(settings * step**2 * math.pi**2 / (3.0 * delta))


def regret_constant(observation_std: float) -> float:
    """C_1 = 8 / log(1 + sigma^-2), sigma over the prior's std."""
    return 8.0 / math.log1p(observation_std**-2.0)


def greedy_gain(points: Array, prior: Hyperprior, steps: int, observation_std: float) -> float:
    """1/2 log det(I + K / sigma^2) at ``steps`` points, each chosen where the variance is largest.

    Parameters
    ----------
    points
        (settings, inputs), the settings that can be chosen.
    prior
        Its kernel alone is used; the values are not needed.
    steps
        T.
    observation_std
        sigma, over the prior's std.

    """
    surrogate, gain = Surrogate(points, prior), 0.0
    for _ in range(steps):
        variances = surrogate.variances[0]
        place = int(np.argmax(variances))
        gain += 0.5 * math.log1p(float(variances[place]) / observation_std**2)
        surrogate.observe(place, 0.0, observation_std)
    return gain


def largest_gain(points: Array, prior: Hyperprior, steps: int, observation_std: float) -> float:
    """An upper bound of gamma_T, the information that T observations can give at most.

    The least of two bounds: greedy choice gets at least (1 - 1/e) of the largest gain, and T
    independent values have T/2 log(1 + sigma^-2). Parameters as in ``greedy_gain``.
    """
    greedy = greedy_gain(points, prior, steps, observation_std) / GREEDY_SHARE
    return min(greedy, 0.5 * steps * math.log1p(observation_std**-2.0)) * (1.0 + 1e-9)


def noise_free_regret(amplitude: float, rate: float, dimension: int) -> float:
    """A exp(-2 tau / (log 2)^(d/4)): the regret of noise-free search after two steps.

    Parameters
    ----------
    amplitude, rate
        A and tau, which the paper takes as known.
    dimension
        d, the number of inputs.

    """
    return amplitude * math.exp(-2.0 * rate / math.log(2.0) ** (dimension / 4.0))


@dataclass(frozen=True)
class KusnerConstants:
    """The constants of algorithms 1 and 2, which release two values: a setting and its score.

    All values are public and in units of the prior's standard deviation.

    Attributes
    ----------
    epsilon, delta : budget of each of the two values; both together cost twice as much
    settings, steps, correlation : |X|, T, k_1(D, D')
    observation_std : sigma; above 0 for algorithm 1, 0 for algorithm 2 (noise-free)
    regret : sqrt(C_1 beta_T gamma_T / T); without noise A exp(-2 tau / (log 2)^(d/4))

    """

    epsilon: float
    delta: float
    settings: int
    steps: int
    correlation: float
    observation_std: float
    regret: float

    @property
    def noise_free(self) -> bool:
        """Whether algorithm 2 applies: scores are observed without noise."""
        return self.observation_std == 0.0

    def beta(self, step: int) -> float:
        """beta_t for these settings and this delta."""
        return beta(step, self.settings, self.delta)

    def record_shift(self, events: int = 3) -> float:
        """The shift c = 2 sqrt((1 - k(D, D')) log(events |X| / delta))."""
        chance = math.log(events * self.settings / self.delta)
        return 2.0 * math.sqrt((1.0 - self.correlation) * chance)

    @property
    def noise_shift(self) -> float:
        """The shift q = sigma sqrt(4 log(3 / delta))."""
        return self.observation_std * math.sqrt(4.0 * math.log(3.0 / self.delta))

    @property
    def mean_sensitivity(self) -> float:
        """2 sqrt(beta_{T+1}) + c: how far one record moves the mean of any setting, theorem 1."""
        return 2.0 * math.sqrt(self.beta(self.steps + 1)) + self.record_shift()

    @property
    def value_sensitivity(self) -> float:
        """How far one record moves the released score, theorems 3 and 5."""
        return self.regret + self.record_shift(2 if self.noise_free else 3) + self.noise_shift

    @property
    def laplace_scale(self) -> float:
        """The scale of the Laplace noise on the score, before the lattice is accounted for."""
        return self.value_sensitivity / self.epsilon

    def value_noise(self) -> LaplaceNoise:
        """The noise on the released score, on a lattice: pure, of ``epsilon``."""
        return laplace_noise(self.epsilon, 1, self.value_sensitivity, 0.0)

    def setting_limit(self, a: float) -> float:
        """Theorem 2: mu_T at the chosen setting is at most this too small.

        It fails with probability at most delta + e^-a.
        """
        root = 2.0 * math.sqrt(self.beta(self.steps)) + self.noise_shift
        chance = math.log(self.settings) + a
        return root + 2.0 * self.mean_sensitivity / self.epsilon * chance

    def value_limit(self, a: float) -> float:
        """Theorems 4 and 6: the released value is within this of the best, except with probability
        delta + e^-a. As printed: theorem 4's first term lacks a factor sigma <= 1."""
        if self.noise_free:
            return self.regret + a * self.laplace_scale
        first = math.sqrt(2.0 * math.log(2.0 * self.steps / self.delta))
        return first + self.regret + a * self.laplace_scale
