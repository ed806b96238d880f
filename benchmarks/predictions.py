"""Predictions of a release against scikit-learn's Gaussian process, as ratios within one run.

``python -m benchmarks.predictions``: 1,000 points, three sizes of tables. The calls are timed in turns, and the least
processor time of all turns counts, so that other programs matter little. Prints JSON.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from privgp import PrivateGPRegressor

SIZES = ((300, 1), (2000, 2), (5000, 4))  # rows, inputs
POINTS, TURNS = 1000, 15


def best_of_turns(*tasks: Callable[[], Any]) -> list[float]:
    """The least seconds of processor time of each task."""
    seconds = np.full((TURNS, len(tasks)), np.inf)
    for turn in range(TURNS):
        for place, task in enumerate(tasks):
            start = time.process_time()
            task()
            seconds[turn, place] = time.process_time() - start
    return [float(least) for least in seconds.min(axis=0)]


def compare(rows: int, inputs: int) -> dict[str, Any]:
    """Seconds and ratios for one size of table."""
    rng = np.random.default_rng(rows)
    X, points = rng.uniform(0, 10, (rows, inputs)), rng.uniform(0, 10, (POINTS, inputs))
    y = np.sin(X.sum(axis=1) / 2) + 0.3 * rng.standard_normal(rows)
    kernel = ConstantKernel() * RBF(2.0) + WhiteKernel(0.1)  # the fastest of scikit-learn's kernels
    other = GaussianProcessRegressor(kernel, optimizer=None).fit(X, y)
    model = PrivateGPRegressor(y_bounds=(-2, 2), epsilon=1.0, delta=1e-5, random_state=0).fit(X, y)
    plain, mean, std, ends = best_of_turns(
        lambda: other.predict(points),
        lambda: model.predict(points),
        lambda: other.predict(points, return_std=True),
        lambda: model.interval(points),
    )
    return {
        "rows": rows,
        "inputs": inputs,
        "predict_milliseconds": round(1e3 * mean, 1),
        "predict_multiple": round(mean / plain, 2),
        "interval_milliseconds": round(1e3 * ends, 1),
        "interval_multiple": round(ends / std, 2),
    }


def main() -> None:
    print(json.dumps([compare(*size) for size in SIZES]))


if __name__ == "__main__":
    main()
