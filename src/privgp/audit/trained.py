"""A trained attack: learn on some draws what tells two datasets apart, test it on fresh ones.

Whatever was learned, the test is sound: score and threshold are fixed before the fresh draws are
made, so the two error rates are binomial. A poor attack finds less; it never accuses wrongly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import betainccinv, ndtri
from sklearn.tree import DecisionTreeClassifier

from privgp.audit.progress import Callback, part
from privgp.audit.promises import Promise
from privgp.audit.result import TradeOff, from_errors
from privgp.types import Array

# sampler(which of the two datasets, how many, callback) -> releases (count, numbers)
Sampler = Callable[[int, int, Callback], Array]
Score = Callable[[Array], Array]
# A direction without noise would have a zero variance: this share of the largest stands in.
RIDGE = 1e-12
RESTED = 0.7  # share of the training draws that scores are fitted on; the rest chooses among them
THRESHOLDS = 400
LEAST_DRAWS = 50


@dataclass(frozen=True)
class _Candidate:
    name: str
    score: Score
    threshold: float
    excess: float


def attack_trained(
    sampler: Sampler, promise: Promise, draws: int, failure: float, tell: Callback
) -> TradeOff:
    """Train on ``draws`` releases a side, test on as many fresh ones."""
    if draws < LEAST_DRAWS:
        raise ValueError(f"a trained attack needs draws of at least {LEAST_DRAWS}, got {draws}.")
    first, second = (sampler(k, draws, part(tell, 0.25 * k, 0.25 * (k + 1))) for k in (0, 1))
    chosen = choose_attack(first, second, promise, draws, failure)
    wrong = chosen.score(sampler(0, draws, part(tell, 0.5, 0.75))) > chosen.threshold
    missed = chosen.score(sampler(1, draws, part(tell, 0.75, 1.0))) < chosen.threshold
    errors = int(wrong.sum()), int(missed.sum())
    return from_errors(promise, *errors, draws, failure, f"a trained {chosen.name}")


def choose_attack(
    first: Array, second: Array, promise: Promise, draws: int, failure: float
) -> _Candidate:
    """Of linear, quadratic and tree scores, and all thresholds, the one most beyond the promise.

    Fitted on one part of these draws and chosen on the rest; how it does on others is not known yet.
    """
    cut, unit = int(RESTED * len(first)), _stds(first, second)
    train = first[:cut] / unit, second[:cut] / unit
    rest = first[cut:], second[cut:]
    kinds = {"linear score": _linear, "quadratic score": _quadratic, "decision tree": _tree}
    candidates = []
    for name, fit in kinds.items():
        score = _in_units(fit(*train), unit)
        best = _best_threshold(score(rest[0]), score(rest[1]), promise, draws, failure)
        candidates.append(_Candidate(name, score, *best))
    return max(candidates, key=lambda candidate: candidate.excess)


def _stds(first: Array, second: Array) -> Array:
    """Of each number, both datasets together; 1 for what never varies. In these units a number that
    varies wildly does not hide what others tell."""
    stds = np.vstack([first, second]).std(axis=0)
    return np.where(stds > 0, stds, 1.0)


def _in_units(score: Score, unit: Array) -> Score:
    return lambda z: score(z / unit)


def _linear(first: Array, second: Array) -> Score:
    """Fisher's discriminant: the best for Gaussian distributions of one covariance."""
    means = first.mean(axis=0), second.mean(axis=0)
    together = np.vstack([first - means[0], second - means[1]])
    weights = cho_solve(_factor(together, _scale(first, second)), means[1] - means[0])
    return lambda z: np.asarray(z @ weights)


def _quadratic(first: Array, second: Array) -> Score:
    """The likelihood ratio of two Gaussian distributions, each with its mean and covariance."""
    scale = _scale(first, second)
    laws = [(z.mean(axis=0), _factor(z - z.mean(axis=0), scale)) for z in (first, second)]

    def loglik(z: Array, mean: Array, factor: Any) -> Array:
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


def _factor(centred: Array, scale: float) -> Any:
    covariance = centred.T @ centred / len(centred)
    covariance.flat[:: len(covariance) + 1] += RIDGE * scale
    return cho_factor(covariance, lower=True)


def _scale(first: Array, second: Array) -> float:
    """The variance of everything seen, both datasets together: positive unless nothing ever varies."""
    return float(np.vstack([first, second]).var(axis=0).sum()) or 1.0


def _best_threshold(
    first: Array, second: Array, promise: Promise, draws: int, failure: float
) -> tuple[float, float]:
    """The threshold at which fresh draws should exceed the promise most, and by how much (in mu)."""
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
