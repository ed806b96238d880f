"""The papers' private selection as published, for their figures only: it protects nobody.

Their utility is minus the sum of squared cross-validation errors, and their bound of its sensitivity,
``9 d^2 + sum of the K - 1 largest d^2 max_j ||c_jk||^2``, is too small: the square of a distance
changes by ``2 a.v + ||v||^2`` and not by ``||v||^2``. docs/proofs/select.md has a counterexample.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from sklearn.gaussian_process.kernels import RBF

from papers.shared.choices import exponential_probabilities
from privgp.gp.priors import Hyperparameters
from privgp.plan.search.folds import folds_of
from privgp.privacy.guarantee import SIMULATED_SAMPLER, Guarantee
from privgp.privacy.protected import OUTPUTS
from privgp.privacy.selection import Fold
from privgp.types import Array, Integers

LARGEST_ERROR = 4.0  # times d; the papers' "completely arbitrary bound"


def squared_errors(y: Array, width: float, folds: Iterable[Fold]) -> tuple[float, float]:
    """The sum of squared errors over all folds and the papers' bound of its sensitivity.

    ``y``: outputs less the prior mean; ``width``: d.
    """
    total, largest = 0.0, []
    for fold in folds:
        sums = np.bincount(fold.index, y[fold.train], minlength=fold.weights.shape[1])
        errors = y[fold.test] - fold.weights @ sums
        errors = np.clip(errors, -LARGEST_ERROR * width, LARGEST_ERROR * width)
        total += float(errors @ errors)
        largest.append(float(np.square(fold.weights).sum(axis=0).max()))
    trained = sum(sorted(largest, reverse=True)[: len(largest) - 1])
    return total, width**2 * (9.0 + trained)


def counterexample() -> tuple[Array, Array, list[tuple[Integers, Integers]], Hyperparameters]:
    """Inputs, outputs in [0, 1], splits and a model with which their bound fails at the first output.

    Fold A: two points at 0 and 98 far apart, all with output 0; fold B: 100 points at 0, output 1.
    """
    X = np.concatenate([np.zeros(2), 100.0 * np.arange(1, 99), np.zeros(100)])[:, None]
    y = np.concatenate([np.zeros(100), np.ones(100)])
    halves = np.arange(100), np.arange(100, 200)
    splits = [(halves[1], halves[0]), (halves[0], halves[1])]
    return X, y, splits, Hyperparameters(RBF(1.0), 0.01)


def moved_and_bound() -> tuple[float, float]:
    """How far one output moves the papers' utility in the counterexample, and their bound of it."""
    X, y, splits, model = counterexample()
    changed = y.copy()
    changed[0] = 1.0
    (before, bound), (after, _) = (
        squared_errors(outputs, 1.0, folds_of(model, X, splits)) for outputs in (y, changed)
    )
    return abs(after - before), bound


def papers_probabilities(squares: Array, sensitivities: Array, epsilon: float) -> Array:
    """The exponential mechanism as the papers use it: scale ``2 Delta / epsilon``, Delta the largest."""
    scale = 2.0 * float(np.max(sensitivities)) / epsilon
    return exponential_probabilities(-np.asarray(squares), scale)


def papers_choice(
    squares: Array, sensitivities: Array, epsilon: float, rng: np.random.Generator
) -> tuple[int, Guarantee]:
    """A choice by the papers' probabilities, with a guarantee that says what it is worth."""
    probabilities = papers_probabilities(squares, sensitivities, epsilon)
    guarantee = Guarantee(
        epsilon=epsilon,
        delta=0.0,
        unit=OUTPUTS.unit,
        neighbours=OUTPUTS.neighbours,
        assumptions=("the sensitivity of the papers, which does not hold",),
        mechanism="NOT PRIVATE: the papers' exponential mechanism with a sensitivity that is too small",
        sampler=SIMULATED_SAMPLER,
        noise_multipliers=(),
    )
    return int(rng.choice(len(probabilities), p=probabilities)), guarantee
