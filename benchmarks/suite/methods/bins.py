"""Means in the cells of a regular grid, with Laplace noise on every sum; their counts are public."""

from __future__ import annotations

import numpy as np

from benchmarks.suite.problem import Answer, Method, Problem
from privgp.types import Array

SIDES = {1: 10, 2: 5, 3: 3}  # cells along each of so many inputs
HINDSIGHT = (1, 2, 3, 4, 6, 8, 11, 16, 23, 32)


def _means(problem: Problem, side: int) -> Answer:
    count = side ** problem.X.shape[1]

    def cells(rows: Array) -> Array:
        steps = np.minimum((problem.scaled(rows) * side).astype(int), side - 1)
        return np.asarray(np.ravel_multi_index(tuple(steps.T), (side,) * rows.shape[1]))

    rng, where, asked = np.random.default_rng(problem.seed), cells(problem.X), cells(problem.places)
    sums = np.bincount(where, problem.outputs(), minlength=count)
    scale = 2.0 / problem.epsilon
    rows = np.maximum(np.bincount(where, minlength=count), 1)
    means = np.clip((sums + rng.laplace(0.0, scale, count)) / rows, -1.0, 1.0)
    mean = problem.middle + problem.half * means[asked]
    if problem.observed:
        return Answer(mean)  # how outputs scatter is not learned
    reach = problem.half * np.minimum(np.log(10.0) * scale / rows, 2.0)[asked]
    return Answer(mean, mean - reach, mean + reach)


def _fixed(problem: Problem) -> Answer:
    return _means(problem, SIDES.get(problem.X.shape[1], 2))


def _best(problem: Problem) -> Answer:
    """The number of cells with the least error, which nobody can know."""
    answers = [_means(problem, side) for side in HINDSIGHT]
    errors = [float(np.mean((each.mean - problem.truth) ** 2)) for each in answers]
    return answers[int(np.argmin(errors))]


METHODS = (
    Method("bins", "outputs", _fixed, note="10 bins of one input, 5 x 5 of two"),
    Method("bins, best in hindsight", "outputs", _best, note="reads the truth to choose"),
)
