"""Posteriors of 10,000 + 10,000 shadow datasets at once, against one at a time. Prints JSON.

``python -m benchmarks.shadows``: both in one run, interleaved, each at its best of several rounds.
"""

from __future__ import annotations

import json
import time

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.gaussian_process.kernels import Kernel, Matern

from privgp.audit.shadows import Population, posteriors
from privgp.gp.kernels.evaluate import evaluate, variance
from privgp.types import Array

SHADOWS, ROWS, ROUNDS = 10_000, 10, 3


def one_at_a_time(
    kernel: Kernel, noise_variance: float, X: Array, y: Array, point: Array
) -> tuple[Array, Array]:
    """The same posteriors by one Cholesky factor per dataset."""
    mean, var = np.empty(len(X)), np.empty(len(X))
    prior = variance(kernel)
    for k, (inputs, outputs) in enumerate(zip(X, y, strict=True)):
        K = evaluate(kernel, inputs)
        K.flat[:: len(K) + 1] += noise_variance
        cross = evaluate(kernel, inputs, point[None, :])[:, 0]
        solved = cho_solve(cho_factor(K, lower=True, check_finite=False), cross, check_finite=False)
        mean[k], var[k] = solved @ outputs, prior - solved @ cross
    return mean, var


def main() -> None:
    kernel, rng = Matern(1.0, nu=0.5), np.random.default_rng(0)
    population = Population(ROWS, np.zeros(1), np.ones(1), np.array([0.5]), 1.0)
    datasets = [population.draw(SHADOWS, member, rng) for member in (True, False)]
    best = {"together": np.inf, "one_at_a_time": np.inf}
    results = {}
    for _ in range(ROUNDS):
        for name, compute in (("together", posteriors), ("one_at_a_time", one_at_a_time)):
            start = time.perf_counter()
            results[name] = [compute(kernel, 0.25, X, y, population.point) for X, y in datasets]
            best[name] = min(best[name], time.perf_counter() - start)
    gap = np.abs(np.array(results["together"]) - np.array(results["one_at_a_time"])).max()
    report = {
        "shadows": 2 * SHADOWS,
        "rows": ROWS,
        "seconds": {name: round(seconds, 4) for name, seconds in best.items()},
        "times_faster": round(best["one_at_a_time"] / best["together"], 1),
        "largest_difference": float(gap),
    }
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
