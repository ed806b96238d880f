"""privgp with all defaults: outputs private, and whole records private."""

from __future__ import annotations

from typing import Any

from benchmarks.suite.problem import Answer, Method, Problem
from privgp import PrivateGPClassifier, PrivateGPRegressor


def _answer(problem: Problem, **protected: Any) -> Answer:
    model = PrivateGPRegressor(
        y_bounds=problem.bounds, epsilon=problem.epsilon, delta=problem.delta,
        random_state=problem.seed, **protected,
    )  # fmt: skip
    model.fit(problem.X, problem.y)
    low, high = model.interval(problem.places, 0.9, observation=problem.observed)
    return Answer(model.predict(problem.places), low, high)


def _outputs(problem: Problem) -> Answer:
    return _answer(problem)


def _records(problem: Problem) -> Answer:
    return _answer(problem, protect="records", x_bounds=problem.domain)


def _labels(problem: Problem) -> Answer:
    model = PrivateGPClassifier(
        classes=[0, 1], epsilon=problem.epsilon, delta=problem.delta, random_state=problem.seed
    )
    model.fit(problem.X, problem.y.astype(int))
    return Answer(model.predict_proba(problem.places)[:, 1])


METHODS = (
    Method("privgp", "outputs", _outputs),
    Method("privgp, records", "records", _records),
    Method("privgp, labels", "outputs", _labels, for_labels=True),
)
