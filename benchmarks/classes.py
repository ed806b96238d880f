"""Labels: log loss on held-out rows, and how often intervals of probability hold. Prints JSON.

``python -m benchmarks.classes --releases 20``; docs/classes.md has the results.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.datasets import load_iris
from sklearn.metrics import log_loss

from benchmarks.accuracy import BESIDE, malaria
from privgp import PrivateGPClassifier
from privgp.types import Array

DELTA = 1e-5
CURVES: dict[str, Callable[[Array], Array]] = {
    "sine": lambda x: 2.0 * np.sin(x),
    "rare": lambda x: -3.0 + 1.5 * np.sin(x),
    "slope": lambda x: 0.4 * (x - 5.0),
    "flat": lambda x: np.full_like(x, -1.0),
    "bump": lambda x: -2.0 + 4.0 * np.exp(-2.0 * (x - 4.0) ** 2),
    "high": lambda x: 2.5 + np.cos(x),
}


def held_out(X: Array, y: Array, epsilon: float, kept: float, releases: int) -> dict[str, float]:
    """Means over splits; ``kept``: the share of rows of the last class that stays in the data."""
    classes, found = np.unique(y), []
    for seed in range(releases):
        rng = np.random.default_rng(5000 + seed)
        stay = (y != classes[-1]) | (rng.random(len(y)) < kept)
        order = rng.permutation(np.flatnonzero(stay))
        test, train = np.split(order, [len(order) // 5])
        model = PrivateGPClassifier(
            classes=classes, epsilon=epsilon, delta=DELTA, random_state=seed
        ).fit(X[train], y[train])
        p, shares = model.predict_proba(X[test]), np.mean(y[train][:, None] == classes, axis=0)
        found.append(
            {
                "log_loss": log_loss(y[test], p, labels=classes),
                "constant": log_loss(y[test], np.tile(shares, (len(test), 1)), labels=classes),
                "brier": float(np.mean((p[:, -1] - (y[test] == classes[-1])) ** 2)),
                "accuracy": float(np.mean(model.predict(X[test]) == y[test])),
            }
        )
    return {name: float(np.mean([each[name] for each in found])) for name in found[0]}


def covered(curve: Callable[[Array], Array], releases: int, rows: int = 600) -> float:
    """The share of places where the 90% interval holds the probability."""
    places, held = np.linspace(0.2, 9.8, 60), []
    for seed in range(releases):
        rng = np.random.default_rng(100 + seed)
        x = np.round(rng.uniform(0, 10, size=rows) * 20.0) / 20.0
        y = (rng.random(rows) < expit(curve(x))).astype(int)
        model = PrivateGPClassifier(classes=[0, 1], epsilon=1.0, delta=DELTA, random_state=seed)
        low, high = model.fit(x[:, None], y).interval(places[:, None])
        truth = expit(curve(places))
        held.append(np.mean((low[:, 1] <= truth) & (truth <= high[:, 1])))
    return float(np.mean(held))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--releases", type=int, default=20)
    parser.add_argument("--data", type=Path, default=BESIDE, help="folder with the data files")
    asked = parser.parse_args()
    flowers, count = load_iris(), asked.releases
    report: dict[str, Any] = {
        "iris by sepal": held_out(flowers.data[:, :2], flowers.target, 1.0, 1.0, count)
    }
    if (asked.data / "gambia_malaria.csv").exists():
        X, y = malaria(asked.data)
        for epsilon, kept in ((1.0, 1.0), (1.0, 0.15), (0.3, 0.15)):
            name = f"malaria, {100 * kept:g}% of the positives, epsilon {epsilon:g}"
            report[name] = held_out(X.astype(float), y.astype(int), epsilon, kept, count)
    report["coverage"] = {name: covered(curve, count) for name, curve in CURVES.items()}
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
