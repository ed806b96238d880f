"""Speed against the machine's own limit, as ratios within one run. Prints JSON.

``python -m benchmarks.speed``: plan and fit at 4,900 rows and 4 inputs as a multiple of one kernel
matrix, its Cholesky factor and one solve; peak memory as a multiple of that matrix; the designs'
times and certified gaps; other sizes and the files of their plans, see benchmarks.many_rows; predictions as
multiples of scikit-learn's, see benchmarks.predictions; and ten million rows in files and in DuckDB, and a
million in PostgreSQL, as multiples of a grouped sum, see benchmarks.many_files.
"""

from __future__ import annotations

import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from rich.console import Console
from scipy.linalg import cho_factor, cho_solve
from sklearn.gaussian_process.kernels import Matern

from privgp import PrivateGPRegressor
from privgp.gp.kernels.evaluate import evaluate
from privgp.gp.smoothers import exact_smoother
from privgp.plan.designs.workload import design

ROWS, COLUMNS = 4900, 4


def problem(rows: int = ROWS, columns: int = COLUMNS) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, columns))
    y = np.sin(X.sum(axis=1)) + 0.3 * rng.standard_normal(rows)
    return X, y


def bare() -> None:
    """What any exact Gaussian process must do once."""
    X, y = problem()
    K = evaluate(Matern(2.0, nu=2.5), X).T  # symmetric: Fortran order without a copy
    K.flat[:: len(K) + 1] += 0.1
    factor = cho_factor(K, lower=True, overwrite_a=True, check_finite=False)
    cho_solve(factor, y, check_finite=False)


def release(hyperparameters: str) -> Callable[[], None]:
    def run() -> None:
        X, y = problem()
        PrivateGPRegressor(y_bounds=(-3, 3), hyperparameters=hyperparameters).fit(X, y)

    return run


TASKS: dict[str, Callable[[], None]] = {
    "bare": bare,
    "fixed": release("fixed"),
    "learned": release("learned"),
}


def timed(task: str) -> dict[str, float]:
    """Seconds and peak memory (in N x N arrays) of a task in a fresh process, after a warm-up."""
    code = f"from benchmarks.speed import once; once({task!r})"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


def once(task: str) -> None:
    small = problem(300)
    PrivateGPRegressor(y_bounds=(-3, 3), hyperparameters="fixed").fit(*small)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    TASKS[task]()
    seconds = time.perf_counter() - start
    used = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    print(json.dumps({"seconds": seconds, "arrays": used / (8 * ROWS**2)}))


def designs() -> list[dict[str, Any]]:
    rng = np.random.default_rng(1)
    out = []
    for targets, rows in ((100, 2000), (300, 5000)):
        X = rng.uniform(0, 10, size=(rows, 2))
        wanted = rng.uniform(0, 10, size=(targets, 2))
        C = exact_smoother(Matern(1.0, nu=2.5), 0.1, X, np.ones(rows), wanted).weights
        for objective in ("trace", "max", "logdet"):
            start = time.perf_counter()
            found = design(C, objective)
            seconds = time.perf_counter() - start
            out.append({"objective": objective, "targets": targets, "rows": rows,
                        "seconds": round(seconds, 3), "gap": found.gap})  # fmt: skip
    return out


def own_process(module: str, *arguments: str) -> list[Any]:
    """The lines that another benchmark prints, in a process of its own."""
    command = [sys.executable, "-m", f"benchmarks.{module}", *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def main() -> None:
    with Console(stderr=True).status("measuring plan and fit") as status:
        # Interleaved, so that a noisy minute hits all of them.
        runs = {task: [timed(task)] for task in TASKS}
        for task in TASKS:
            runs[task].append(timed(task))
        best = {task: min(r["seconds"] for r in results) for task, results in runs.items()}
        memory = {task: min(r["arrays"] for r in results) for task, results in runs.items()}
        status.update("measuring a million rows")
        (many,) = own_process("many_rows")
        status.update("measuring predictions")
        (predictions,) = own_process("predictions")
        status.update("measuring ten million rows in files and databases")
        files = own_process("many_files")
        files += own_process("many_files", "1000000", "postgresql")
        status.update("measuring designs")
        report = {
            "machine": {"processor": platform.processor(), "cores": os.cpu_count(),
                        "python": platform.python_version(), "numpy": np.__version__},
            "rows": ROWS,
            "inputs": COLUMNS,
            "kernel_cholesky_solve_seconds": round(best["bare"], 3),
            "plan_and_fit_multiple": {
                "fixed": round(best["fixed"] / best["bare"], 2),
                "learned": round(best["learned"] / best["bare"], 2),
            },
            "peak_memory_multiple": {task: round(value, 2) for task, value in memory.items()},
            "designs": designs(),
            "many_rows": many,
            "predictions": predictions,
            "files_and_databases": files,
        }  # fmt: skip
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
