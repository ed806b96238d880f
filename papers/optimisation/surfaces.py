"""Support-vector machines on scikit-learn's digits at every setting of a grid, trained once.

A search over such a surface is a look-up: its 'estimator' reads predictions that are already there,
so a search can be repeated hundreds of times through the public interface.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_digits
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.svm import SVC

from privgp.types import Array, Integers

VALIDATION = 898


@dataclass(frozen=True)
class Surface:
    """``predictions``: (records, settings) of every setting for the validation records, whose labels
    are ``labels``; setting ``i * len(gammas) + j`` is (costs[i], gammas[j])."""

    costs: Array
    gammas: Array
    predictions: Integers
    labels: Integers

    @property
    def accuracy(self) -> Array:
        """Of every setting on the validation records, (costs, gammas)."""
        share = np.mean(self.predictions == self.labels[:, None], axis=0)
        return np.asarray(share.reshape(len(self.costs), len(self.gammas)))

    def space(self) -> dict[str, list[float]]:
        return {"C": self.costs.tolist(), "gamma": self.gammas.tolist()}

    def estimator(self) -> LookUp:
        return LookUp(tuple(self.costs.tolist()), tuple(self.gammas.tolist()))


class LookUp(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Predicts the column of its setting; records are rows of predictions."""

    def __init__(
        self, costs: Any = (), gammas: Any = (), C: float = 1.0, gamma: float = 1.0
    ) -> None:
        self.costs, self.gammas, self.C, self.gamma = costs, gammas, C, gamma

    def fit(self, X: Any, y: Any) -> Self:
        self.column_ = self.costs.index(self.C) * len(self.gammas) + self.gammas.index(self.gamma)
        self.classes_ = np.arange(10)  # one type: all records are asked about at once
        return self

    def predict(self, X: Any) -> Any:
        return X[:, self.column_].astype(int)


def digits_surface(
    side: int, training: int = 899, tell: Callable[[float], None] = lambda share: None
) -> Surface:
    """C in 1e-3..1e3 and gamma in 1e-5..10, ``side`` values each; trained on ``training`` images of
    the first half, scored on the 898 of the other."""
    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))
    images, labels = images[order] / 16.0, labels[order]
    train, held = np.arange(training), np.arange(len(labels) - VALIDATION, len(labels))
    costs, gammas = np.geomspace(1e-3, 1e3, side), np.geomspace(1e-5, 10.0, side)
    near = euclidean_distances(images[train], squared=True)
    far = euclidean_distances(images[held], images[train], squared=True)
    predictions = np.empty((len(held), side, side), dtype=np.int64)
    for j, gamma in enumerate(gammas):
        inner, outer = np.exp(-gamma * near), np.exp(-gamma * far)
        for i, cost in enumerate(costs):
            model = SVC(C=cost, kernel="precomputed").fit(inner, labels[train])
            predictions[:, i, j] = model.predict(outer)
        tell((j + 1) / side)
    return Surface(costs, gammas, predictions.reshape(len(held), -1), labels[held])
