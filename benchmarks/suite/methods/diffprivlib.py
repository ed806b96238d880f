"""diffprivlib in its own environment, ``.venv-peers``. One that is not there is reported so."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.peers import there
from benchmarks.suite.problem import Answer, Method, Problem

BINS = 10


def _ask(task: str, problem: Problem, **more: Any) -> dict[str, Any]:
    found = there(
        task, X=problem.X, test=problem.places, epsilon=problem.epsilon, releases=1,
        x_bounds=np.array(problem.domain, dtype=float).T, seed=problem.seed, **more,
    )  # fmt: skip
    if "failed" in found:
        raise RuntimeError(found["failed"])
    return found


def _regression(problem: Problem, which: str) -> Answer:
    found = _ask("diffprivlib", problem, y=problem.y, y_bounds=problem.bounds, bins=BINS)
    return Answer(np.clip(np.array(found[which][0]), *problem.bounds))


def _linear(problem: Problem) -> Answer:
    return _regression(problem, "linear")


def _binned(problem: Problem) -> Answer:
    return _regression(problem, "binned")


def _classes(problem: Problem, which: str) -> Answer:
    found = _ask("labels", problem, y=problem.y.astype(int))
    return Answer(np.array(found[which][0])[:, 1])


def _logistic(problem: Problem) -> Answer:
    return _classes(problem, "logistic")


def _bayes(problem: Problem) -> Answer:
    return _classes(problem, "bayes")


METHODS = (
    Method("diffprivlib linear", "records", _linear),
    Method("diffprivlib means", "outputs", _binned, note="10 bins of the first input"),
    Method("diffprivlib logistic", "records", _logistic, for_labels=True),
    Method("diffprivlib naive Bayes", "records", _bayes, for_labels=True),
)
