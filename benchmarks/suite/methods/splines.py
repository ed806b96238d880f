"""Regression on B-splines: AdaSSP (Wang, UAI 2018, algorithm 2), and Laplace sums at public inputs."""

from __future__ import annotations

import math

import numpy as np
from sklearn.preprocessing import SplineTransformer

from benchmarks.suite.problem import Answer, Method, Problem
from privgp.types import Array

KNOTS = {1: 8, 2: 4}
FAILURE = 0.05  # of AdaSSP's choice of its ridge


def _features(problem: Problem, rows: Array) -> Array:
    """Products of cubic B-splines over the declared domain: positive, and they add up to 1."""
    count = KNOTS.get(rows.shape[1], 3)
    basis = SplineTransformer(n_knots=count, degree=3).fit(np.linspace(0.0, 1.0, 100)[:, None])
    out = np.ones((len(rows), 1))
    for column in problem.scaled(rows).T:
        one = basis.transform(column[:, None])
        out = (out[:, :, None] * one[:, None, :]).reshape(len(rows), -1)
    return out


def _answer(problem: Problem, weights: Array) -> Answer:
    found = np.clip(_features(problem, problem.places) @ weights, -1.0, 1.0)
    return Answer(problem.middle + problem.half * found)


def _adassp(problem: Problem) -> Answer:
    """Rows have norm at most 1 and outputs lie in [-1, 1]."""
    rng, F = np.random.default_rng(problem.seed), _features(problem, problem.X)
    width = F.shape[1]
    share, log = problem.epsilon / 3.0, math.log(6.0 / problem.delta)
    noise = math.sqrt(log) / share
    gram = F.T @ F
    least = np.linalg.eigvalsh(gram)[0] + noise * rng.normal() - log / share
    ridge = math.sqrt(width * log * math.log(2.0 * width**2 / FAILURE)) / share - max(least, 0.0)
    upper = np.triu(rng.normal(size=gram.shape))
    gram += noise * (upper + np.triu(upper, 1).T)
    sums = F.T @ problem.outputs() + noise * rng.normal(size=width)
    return _answer(problem, np.linalg.solve(gram + max(ridge, 0.0) * np.eye(width), sums))


def _laplace(problem: Problem) -> Answer:
    """Features of a row add up to 1, so one output moves the sums by at most 2 in total."""
    rng, F = np.random.default_rng(problem.seed), _features(problem, problem.X)
    width, scale = F.shape[1], 2.0 / problem.epsilon
    sums = F.T @ problem.outputs() + rng.laplace(0.0, scale, width)
    # the ridge of weights of variance 1/4, scatter 1/10 and this noise
    ridge = 4.0 * (0.1 + 2.0 * scale**2 * width / max(len(F), 1))
    return _answer(problem, np.linalg.solve(F.T @ F + ridge * np.eye(width), sums))


METHODS = (
    Method("AdaSSP on splines", "records", _adassp),
    Method("Laplace sums of splines", "outputs", _laplace),
)
