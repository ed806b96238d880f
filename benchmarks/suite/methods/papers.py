"""The methods of the papers, as this software implements them, with a kernel that is fixed beforehand."""

from __future__ import annotations

import numpy as np

from benchmarks.suite.problem import Answer, Method, Problem
from privgp import PrivateFunction, PrivateGPRegressor

TARGETS = 50


def _cloaking(problem: Problem) -> Answer:
    """Smith et al. (2018): unbiased predictions at targets, with the noise of the least determinant."""
    chosen = np.random.default_rng(0).permutation(len(problem.places))[:TARGETS]
    model = PrivateGPRegressor(
        kernel=problem.kernel(), noise_variance=(0.4 * problem.half) ** 2, y_bounds=problem.bounds,
        epsilon=problem.epsilon, delta=problem.delta, targets=problem.places[chosen],
        objective="logdet", reconstruct="unbiased", mechanism="gaussian", hyperparameters="fixed",
        random_state=problem.seed,
    )  # fmt: skip
    model.fit(problem.X, problem.y)
    low, high = model.interval(problem.places, 0.9, observation=problem.observed)
    return Answer(model.predict(problem.places), low, high)


def _function(problem: Problem) -> Answer:
    """Hall et al. (2013), Smith et al. (2016): the posterior mean plus one noisy function."""
    function = PrivateFunction(
        kernel=problem.kernel(), noise_variance=(0.4 * problem.half) ** 2, y_bounds=problem.bounds,
        epsilon=problem.epsilon, delta=problem.delta, random_state=problem.seed,
    )  # fmt: skip
    function.fit(problem.X, problem.y)
    return Answer(np.clip(function.release(problem.places), *problem.bounds))


METHODS = (
    Method("cloaking (Smith et al.)", "outputs", _cloaking),
    Method("noisy function (Hall et al.)", "outputs", _function),
)
