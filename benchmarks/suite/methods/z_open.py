"""What no private method can beat, and what every one should: a Gaussian process, and a constant."""

from __future__ import annotations

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

from benchmarks.suite.problem import Answer, Method, Problem

MOST_ROWS = 800
NORMAL = 1.6448536269514722


def _open(problem: Problem) -> Answer:
    chosen = np.random.default_rng(0).permutation(len(problem.X))[:MOST_ROWS]
    kernel = ConstantKernel(1.0) * Matern(np.full(problem.X.shape[1], 0.3), nu=2.5)
    model = GaussianProcessRegressor(kernel + WhiteKernel(0.3), normalize_y=True, random_state=0)
    model.fit(problem.scaled(problem.X[chosen]), problem.y[chosen])
    mean, std = model.predict(problem.scaled(problem.places), return_std=True)
    scatter = 0.0 if problem.observed else model.kernel_.k2.noise_level * model._y_train_std**2
    reach = NORMAL * np.sqrt(np.maximum(std**2 - scatter, 0.0))
    return Answer(mean, mean - reach, mean + reach)


def _constant(problem: Problem) -> Answer:
    return Answer(np.full(len(problem.places), problem.middle))


METHODS = (
    Method("middle of the bounds", "outputs", _constant, note="spends nothing"),
    Method("Gaussian process, not private", "nothing", _open, note=f"at most {MOST_ROWS} rows"),
)
