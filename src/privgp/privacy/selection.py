"""One of many, chosen with probabilities that hardly depend on any one record. Mechanisms see
utilities ``u`` (larger is better) of sensitivity Delta and are epsilon-private at scale
``2 Delta / epsilon``.

One kind of utility is made of cross-validation residuals, linear maps of the outputs: for outputs v
scaled to [-1, 1] and folds with training rows T and test rows V, the stacked residuals ``R v`` have
entries ``v_V - C v_T``, and ``sqrt(||R v||^2 + noise^2)`` moves by at most the norm of
``R (v - v')``. Proofs: docs/proofs/select.md."""

import math
from dataclasses import dataclass

import numpy as np

from privgp.gp.arithmetic import UNIT_ROUNDOFF, rounding
from privgp.gp.surrogate import Hyperprior, Surrogate
from privgp.privacy.noise import LaplaceNoise, laplace_noise
from privgp.types import Array, Integers


def selection_scale(sensitivity: float, epsilon: float) -> float:
    """``2 Delta / epsilon``, rounded up: the scale at which choices are epsilon-private.

    Parameters
    ----------
    sensitivity
        Delta, how far one person moves any utility.
    epsilon
        The budget of the choice.

    """
    scale = 2.0 * sensitivity / epsilon * (1.0 + 2.0**-50)
    if not (math.isfinite(scale) and scale > 0):
        raise ValueError("the sensitivity of the utilities must be positive and finite.")
    return scale


@dataclass(frozen=True)
class Fold:
    """One part of R: some rows predicted from others. All fields are public.

    Attributes
    ----------
    train : (train,), the rows that are predicted from
    test : (test,), the rows that are predicted
    index : (train,), the distinct input of every training row
    weights : C, (test, distinct inputs), stored floats that multiply the sums of outputs there

    """

    train: Integers
    test: Integers
    index: Integers
    weights: Array


class ResidualBound:
    """Adds up, fold by fold, what bounds the movement of the computed norm: public numbers only.

    Parameters
    ----------
    rows : how many outputs there are

    """

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._squares = np.zeros(rows)  # of the columns of R
        self._reach = 0.0  # sum of squares of the absolute row sums of R
        self._tested = 0
        self._error = 0.0  # sum of squares of the rounding errors of the residuals

    def add(self, fold: Fold) -> None:
        """Take in one fold: the squares of its columns, and a bound of its rounding errors."""
        C, counts = fold.weights, np.bincount(fold.index, minlength=fold.weights.shape[1])
        columns = np.einsum("ij,ij->j", C, C) * (1.0 + rounding(len(C) + 2))
        self._squares[fold.train] += columns[fold.index]
        self._squares[fold.test] += 1.0
        reach = 1.0 + np.abs(C) @ counts.astype(float)
        self._reach += float(reach @ reach)
        self._error += float(reach @ reach) * rounding(len(fold.train) + C.shape[1] + 8) ** 2
        self._tested += len(fold.test)

    def sensitivity(self, noise: float, people: Integers | None = None) -> float:
        """How far one person moves ``sqrt(||R v||^2 + noise^2)`` as it is computed.

        ``2 max_j ||R_:j||``, for a person the sum over their rows, and twice the float error.

        Parameters
        ----------
        noise
            The constant inside the root, in the same units.
        people
            (rows,), who each row belongs to; by default every row is a person.

        """
        norms: Array = np.asarray(np.sqrt(self._squares) * (1.0 + 1e-12), dtype=np.float64)
        if people is not None:
            norms = np.bincount(people, norms).astype(float)
            norms *= 1.0 + rounding(self._rows + 2)
        largest = float(np.hypot(np.sqrt(self._reach), noise))
        error = float(np.sqrt(self._error)) + rounding(self._tested + 16) * largest
        return 2.0 * (float(norms.max()) + 1.01 * error) * (1.0 + 8.0 * UNIT_ROUNDOFF)


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
