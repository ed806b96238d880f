"""The two attacks on a mechanism: the best one where the noise is known, and a trained one.

Two neighbouring datasets give two exact measurements; the noise in every number is independent. No attack does
better than a threshold on the likelihood ratio. With pure noise it is the ratio beyond the second measurement,
with Laplace noise the largest there is, so that the attack attains what pure epsilon allows. Statistics:
docs/proofs/audit.md.

A trained attack learns on some draws what tells two datasets apart, and is tested on fresh ones. Whatever was
learned, the test is sound: score and threshold are fixed before the fresh draws are made, so the error rates
are binomial. A poor attack finds less; it never accuses wrongly.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import betainccinv, ndtri
from sklearn.tree import DecisionTreeClassifier

from privgp.audit.promises import Promise
from privgp.audit.result import Callback, TradeOff, Trial, part, repeat_draws
from privgp.privacy.noise import Noise
from privgp.types import Array, Random
from privgp.vault.measure import add_noise

BATCH_NUMBERS = 2**16


@dataclass(frozen=True)
class NoisyPair:
    """The exact measurements of two neighbouring datasets, and the noise that should hide which.

    Attributes
    ----------
    low, high : (numbers,), without noise, of public or simulated data
    noise : as a release would draw it
    promise : the guarantee that the noise should give

    """

    low: Array
    high: Array
    noise: Noise
    promise: Promise


def attack_pair(pair: NoisyPair, trial: Trial, noise_scale: float, rng: Random) -> TradeOff:
    """Attack by a threshold half-way along the difference, or with pure noise beyond its end.

    Numbers that are the same in both tell nothing, as the noise of each is independent: they are not
    drawn.

    Parameters
    ----------
    pair
        The measurements of the two datasets.
    trial
        How many draws, and how sure the bounds are.
    noise_scale
        Below 1 plants a fault, to see that it is found.
    rng
        For simulated noise; None for the noise that protects.

    """
    moved = pair.low != pair.high
    pair = replace(pair, low=pair.low[moved], high=pair.high[moved])
    statistic, threshold = _best_statistic(pair)
    size = len(pair.low)
    batch = min(trial.draws, max(1, BATCH_NUMBERS // size))
    noise, rounds = pair.noise.with_size(size * batch, noise_scale), -(-trial.draws // batch)

    def scores(which: int, tell: Callback) -> Array:
        tiled = np.tile(pair.high if which else pair.low, batch)

        def draw() -> Array:
            return statistic(add_noise(tiled, noise, rng).reshape(batch, size))

        drawn = repeat_draws(draw, rounds, "attacking with the best threshold", tell)
        return np.concatenate(drawn)[: trial.draws]

    return trial.test(scores, threshold, pair.promise, TradeOff.attack)


def _best_statistic(pair: NoisyPair) -> tuple[Callable[[Array], Array], float]:
    """The logarithm of the likelihood ratio, of (draws, numbers), and where to cut it."""
    low, high, noise = pair.low, pair.high, pair.noise
    if not np.linalg.norm(high - low) > 0:
        raise ValueError("both datasets give the same measurement: choose neighbours that differ.")

    def ratio(z: Array) -> Array:
        return np.asarray((noise.log_density(z - high) - noise.log_density(z - low)).sum(axis=-1))

    if not noise.pure:
        return ratio, 0.0
    beyond = high + noise.std * np.sign(high - low)
    # A hair less, as a ratio that is constant there is so up to rounding.
    return ratio, float(ratio(beyond)) * (1.0 - 1e-9)


# sampler(which of the two datasets, how many, callback) -> releases (count, numbers)
Sampler = Callable[[int, int, Callback], Array]
Score = Callable[[Array], Array]
Factor = tuple[Array, bool]  # of a covariance, as ``cho_factor`` has it
RIDGE = 1e-12  # of the total variance: what a direction without noise has
RESTED = 0.7  # share of the training draws that scores are fitted on; the rest chooses among them
THRESHOLDS = 400
LEAST_DRAWS = 50


@dataclass(frozen=True)
class _Candidate:
    name: str
    score: Score
    threshold: float
    excess: float


def train_attack(sampler: Sampler, promise: Promise, trial: Trial) -> TradeOff:
    """Train on as many releases as the attack is tested on.

    Numbers are divided by their stds, so that one that varies wildly does not hide what others
    tell.

    Parameters
    ----------
    sampler
        Draws releases, (count, numbers), of either dataset.
    promise
        The guarantee that the attack is compared with.
    trial
        How many draws, and how sure the bounds are.

    """
    draws, tell = trial.draws, trial.tell
    if draws < LEAST_DRAWS:
        raise ValueError(f"a trained attack needs draws of at least {LEAST_DRAWS}, got {draws}.")
    first, second = (sampler(k, draws, part(tell, 0.25 * k, 0.25 * (k + 1))) for k in (0, 1))
    stds = np.vstack([first, second]).std(axis=0)
    unit = np.where(stds > 0, stds, 1.0)
    chosen = choose_attack(first / unit, second / unit, promise, draws, trial.failure)

    def scores(which: int, tell: Callback) -> Array:
        return chosen.score(sampler(which, draws, tell) / unit)

    fresh = replace(trial, tell=part(tell, 0.5, 1.0))
    return fresh.test(scores, chosen.threshold, promise, f"a trained {chosen.name}")


def choose_attack(
    first: Array, second: Array, promise: Promise, draws: int, failure: float
) -> _Candidate:
    """The linear, quadratic or tree score, and its threshold, that is most beyond the guarantee.

    Parameters
    ----------
    first, second
        (draws, numbers), in stds, of the two datasets; scores are fitted on one part of
        them and chosen on the rest.
    promise
        The guarantee that the attack is compared with.
    draws
        How many fresh ones it will be tested on.
    failure
        With which the test's bounds may be wrong.

    """
    cut = int(RESTED * len(first))
    kinds = {"linear score": _linear, "quadratic score": _quadratic, "decision tree": _tree}
    candidates = []
    for name, fit in kinds.items():
        score = fit(first[:cut], second[:cut])
        rest = score(first[cut:]), score(second[cut:])
        best = _best_threshold(*rest, promise, draws, failure)
        candidates.append(_Candidate(name, score, *best))
    return max(candidates, key=lambda candidate: candidate.excess)


def _linear(first: Array, second: Array) -> Score:
    """Fisher's discriminant: the best for Gaussian distributions of one covariance."""
    means = first.mean(axis=0), second.mean(axis=0)
    together = np.vstack([first - means[0], second - means[1]])
    weights = cho_solve(_factor(together), means[1] - means[0])
    return lambda z: np.asarray(z @ weights)


def _quadratic(first: Array, second: Array) -> Score:
    """The likelihood ratio of two Gaussian distributions, each with its mean and covariance."""
    laws = [(z.mean(axis=0), _factor(z - z.mean(axis=0))) for z in (first, second)]

    def loglik(z: Array, mean: Array, factor: Factor) -> Array:
        away = z - mean
        inside = np.einsum("ij,ji->i", away, cho_solve(factor, away.T))
        return np.asarray(-0.5 * inside - np.log(np.diag(factor[0])).sum())

    return lambda z: loglik(z, *laws[1]) - loglik(z, *laws[0])


def _tree(first: Array, second: Array) -> Score:
    """A small tree: for what is not Gaussian, such as choices among a few."""
    least = max(10, len(first) // 200)
    tree = DecisionTreeClassifier(max_depth=6, min_samples_leaf=least, random_state=0)
    tree.fit(np.vstack([first, second]), np.repeat([0, 1], [len(first), len(second)]))
    return lambda z: np.asarray(tree.predict_proba(z)[:, 1])


def _factor(centred: Array) -> Factor:
    covariance = centred.T @ centred / len(centred)
    covariance.flat[:: len(covariance) + 1] += RIDGE * len(covariance)
    factor: Factor = cho_factor(covariance, lower=True)
    return factor


def _best_threshold(
    first: Array, second: Array, promise: Promise, draws: int, failure: float
) -> tuple[float, float]:
    """The threshold at which fresh draws should exceed the guarantee most, and by how much (in mu)."""
    both = np.unique(np.concatenate([first, second]))
    if len(both) < 2:
        return float(both[0]), -np.inf
    between = 0.5 * both[1:] + 0.5 * both[:-1]
    # evenly among the scores, and the widest gap: without noise it is the only one that matters
    tried = np.linspace(0, len(between) - 1, min(len(between), THRESHOLDS)).astype(int)
    between = between[np.append(np.argmax(np.diff(both)), tried)]
    alpha = 1.0 - np.searchsorted(np.sort(first), between, side="right") / len(first)
    beta = np.searchsorted(np.sort(second), between, side="right") / len(second)
    # upper Clopper-Pearson bounds of the rates that fresh draws should have
    counts = draws * np.stack([alpha, beta])
    upper = betainccinv(counts + 1.0, np.maximum(draws - counts, 1e-9), failure / 4.0)
    allowed = np.array([promise.equivalent_mu(float(a)) for a in upper[0]])
    excess = -ndtri(upper[0]) - ndtri(upper[1]) - allowed
    excess = np.where(np.isnan(excess), -np.inf, excess)
    best = int(np.argmax(excess))
    return float(between[best]), float(excess[best])
