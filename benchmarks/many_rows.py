"""Rows in memory: plan and fit in seconds of the processor, and the size of the plan's file.

``python -m benchmarks.many_rows [ROWS,INPUTS ...]``: a list in JSON, by default 4,900 rows
of four inputs, 20,000 of two and a million of two; beside it the kernel matrix of 4,900 rows and its
Cholesky factor, the machine's own limit.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.speed import bare, problem
from privgp import PrivateGPRegressor

SIZES = ((4900, 4), (20_000, 2), (1_000_000, 2))
TURNS = 2


def work_of(task: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of the processor in this process."""
    start = time.process_time()
    result = task()
    return time.process_time() - start, result


def measured(rows: int, inputs: int) -> dict[str, Any]:
    """The least of some turns."""
    X, y = problem(rows, inputs)
    found = []
    for _ in range(TURNS):
        model = PrivateGPRegressor(y_bounds=(-3, 3), random_state=0)
        planned, plan = work_of(lambda m=model: m.plan(X))  # type: ignore[misc]
        fitted, _ = work_of(lambda m=model, p=plan: m.fit(X, y, plan=p))  # type: ignore[misc]
        found.append((planned + fitted, planned, work_of(bare)[0]))
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / "rows.plan"
        plan.save(path)
        size = path.stat().st_size
    work, plan_work, limit = map(min, zip(*found, strict=True))
    return {
        "rows": rows,
        "inputs": inputs,
        "plan_work": round(plan_work, 2),
        "work": round(work, 2),
        "multiple_of_kernel_cholesky_solve": round(work / limit, 2),
        "plan_file_mb": round(size / 1e6, 3),
    }


if __name__ == "__main__":
    asked = [tuple(map(int, each.split(","))) for each in sys.argv[1:]]
    print(json.dumps([measured(*size) for size in asked or SIZES]))
