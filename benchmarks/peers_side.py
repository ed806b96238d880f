"""What runs in the peers' own environment: ``python peers_side.py TASK problem.npz``. Prints JSON.

Only numpy and the peer itself are imported, by name, so that a peer that did not install is told
from one that failed.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
import time
import warnings
from importlib import import_module
from importlib.metadata import version
from typing import Any

import numpy as np


def versions(*names: str) -> dict[str, str]:
    return {name: version(name) for name in names}


def seeds(problem: Any) -> range:
    """Of all releases; ``seed``: the first, if it is given."""
    first = int(problem["seed"]) if "seed" in problem else 0
    return range(first, first + int(problem["releases"]))


def dp4gp(problem: Any) -> dict[str, Any]:
    """Its default search for the noise: 7 attempts of up to 1,000 steps of gradient descent.

    One attempt is run to its end and multiplied by 7, unless ``steps`` asks for less; then a step's
    time is multiplied, as every step costs the same, and there is no design to compare.
    """
    np.Inf = np.inf  # type: ignore[attr-defined]  # the package wants a name that numpy dropped
    module = import_module("dp4gp.dp4gp")
    C, steps = problem["C"], int(problem["steps"])
    search = module.DPGP_cloaking.__new__(module.DPGP_cloaking)
    columns = [C[:, i][:, None] for i in range(C.shape[1])]
    np.random.seed(0)
    start = time.perf_counter()
    weights = search.findLambdas_grad(columns, steps)
    attempt = (time.perf_counter() - start) * 1000 / steps
    return {
        "seconds": 7 * attempt,
        "attempt_seconds": attempt,
        "steps_run": steps,
        "M": None if steps < 1000 else search.calcM(weights, columns).tolist(),
        "versions": versions("dp4gp", "GPy", "numpy"),
    }


def convex(problem: Any) -> dict[str, Any]:
    """The dual of the log-determinant or the trace design, as anyone would write it in cvxpy."""
    cp = import_module("cvxpy")
    C, objective = problem["C"], str(problem["objective"])
    # Without directions that hardly any column has, which no solver survives.
    U, S, _ = np.linalg.svd(C, full_matrices=False)
    A = U[:, S / S[0] > 1e-6].T @ C
    scale = np.abs(A).max()
    A = A / scale
    v = cp.Variable(A.shape[1], nonneg=True)
    G = A @ cp.diag(v) @ A.T if A.shape[1] <= 200 else (A @ cp.multiply(v[:, None], A.T))
    if objective == "logdet":
        goal, rules = cp.Maximize(cp.log_det(G)), [cp.sum(v) == 1]
    else:
        Z = cp.Variable((len(A), len(A)))
        joint = cp.bmat([[G, Z], [Z.T, np.eye(len(A))]])
        goal, rules = cp.Maximize(2 * cp.trace(Z) - cp.sum(v)), [0.5 * (joint + joint.T) >> 0]
    asked = cp.Problem(goal, rules)
    start = time.perf_counter()
    asked.solve(solver=cp.SCS, eps_rel=float(problem["gap"]), eps_abs=float(problem["gap"]),
                time_limit_secs=float(problem["limit"]))  # fmt: skip
    seconds = time.perf_counter() - start
    return {
        "seconds": seconds,
        "status": asked.status,
        "v": np.maximum(v.value, 0.0).tolist(),
        "versions": versions("cvxpy", "scs"),
    }


def diffprivlib(problem: Any) -> dict[str, Any]:
    """Linear regression and binned means of diffprivlib: predictions of many releases."""
    module = import_module("diffprivlib")
    X, y, test, epsilon = problem["X"], problem["y"], problem["test"], float(problem["epsilon"])
    low, high = problem["y_bounds"]
    below, above = problem["x_bounds"]
    clipped = np.clip(y, low, high)
    linear, binned = [], []
    edges = np.linspace(below[0], above[0], int(problem["bins"]) + 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in seeds(problem):
            model = module.models.LinearRegression(
                epsilon=epsilon, bounds_X=(below, above), bounds_y=(low, high), random_state=seed
            )
            linear.append(model.fit(X, clipped).predict(test).tolist())
            rng = np.random.RandomState(seed)
            inside = np.clip(np.digitize(X[:, 0], edges) - 1, 0, len(edges) - 2)
            where = np.clip(np.digitize(test[:, 0], edges) - 1, 0, len(edges) - 2)
            means = np.full(len(edges) - 1, 0.5 * (low + high))
            for b in np.unique(inside):
                means[b] = module.tools.mean(
                    clipped[inside == b], epsilon=epsilon, bounds=(low, high), random_state=rng
                )
            binned.append(means[where].tolist())
    return {"linear": linear, "binned": binned, "versions": versions("diffprivlib")}


def labels(problem: Any) -> dict[str, Any]:
    """Logistic regression and naive Bayes of diffprivlib: probabilities of many releases."""
    models = import_module("diffprivlib.models")
    y, epsilon = problem["y"], float(problem["epsilon"])
    low, high = problem["x_bounds"]
    # Logistic regression wants rows of bounded norm: the domain becomes a cube about 0.
    X, test = ((2.0 * np.clip(rows, low, high) - low - high) / (high - low)
               for rows in (problem["X"], problem["test"]))  # fmt: skip
    norm, box = float(np.sqrt(len(low))), (-np.ones(len(low)), np.ones(len(low)))
    logistic, bayes = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in seeds(problem):
            model = models.LogisticRegression(
                epsilon=epsilon, data_norm=norm, max_iter=1000, random_state=seed
            )
            logistic.append(model.fit(X, y).predict_proba(test).tolist())
            naive = models.GaussianNB(epsilon=epsilon, bounds=box, random_state=seed)
            bayes.append(naive.fit(X, y).predict_proba(test).tolist())
    return {"logistic": logistic, "bayes": bayes, "versions": versions("diffprivlib")}


TASKS = {"dp4gp": dp4gp, "convex": convex, "diffprivlib": diffprivlib, "labels": labels}


def main() -> None:
    task, path = sys.argv[1:]
    with contextlib.redirect_stdout(io.StringIO()):  # peers print as they go
        found = TASKS[task](np.load(path))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
