"""A million rows through 300 inducing inputs, as a multiple of the bare pass over the same blocks.

``python -m benchmarks.many_rows``: seconds of ``k(Z, X) k(X, Z)`` over all blocks of rows, of plan and
fit with learned hyperparameters, alternately in one process; peak memory; size of the file.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from privgp import PrivateGPRegressor
from privgp.engine.local import Threads
from privgp.gp.kernels.evaluate import evaluate
from privgp.plan.inputs.rows import ArrayRows, Chunk, block_number, sum_blocks
from privgp.types import Array

ROWS, COLUMNS, INDUCING = 1_000_000, 4, 300
REPEATS = 2


def bare(X: Array, model: PrivateGPRegressor) -> None:
    """What any method with these inducing inputs must do once, on the same blocks and threads."""
    kernel, Z = model.plan_.start.kernel, model.plan_.inputs

    def part(chunk: Chunk) -> Array:
        K = evaluate(kernel, Z, chunk.inputs)
        return np.asarray(K @ K.T)

    engine = Threads()
    blocks = ArrayRows(X).parts(block_number(len(X), engine))
    sum_blocks(part, np.add, blocks, engine)


def measured(rows: int = ROWS) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, COLUMNS))
    y = np.sin(X.sum(axis=1)) + 0.3 * rng.standard_normal(rows)
    model = PrivateGPRegressor(y_bounds=(-3, 3), inducing=INDUCING)
    model.fit(X[:3000], y[:3000])
    seconds: dict[str, list[float]] = {"bare": [], "fit": []}
    worked: dict[str, list[float]] = {"bare": [], "fit": []}
    for _ in range(REPEATS):
        for name, task in (("fit", lambda: model.fit(X, y)), ("bare", lambda: bare(X, model))):
            start, work = time.perf_counter(), time.process_time()
            task()
            seconds[name].append(time.perf_counter() - start)
            worked[name].append(time.process_time() - work)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "big.privgp"
        warnings.simplefilter("ignore")
        model.save(path)
        size = os.path.getsize(path)
    bare_seconds, fit_seconds = min(seconds["bare"]), min(seconds["fit"])
    return {
        "rows": rows,
        "inputs": COLUMNS,
        "inducing": INDUCING,
        "bare_pass_seconds": round(bare_seconds, 2),
        "plan_and_fit_multiple": round(fit_seconds / bare_seconds, 2),
        # of processor time: the same on a quiet machine, and steadier on a busy one
        "plan_and_fit_work_multiple": round(min(worked["fit"]) / min(worked["bare"]), 2),
        "peak_memory_mb": round(peak / 1e6),
        "file_mb": round(size / 1e6, 2),
    }


if __name__ == "__main__":
    print(json.dumps(measured(*map(int, sys.argv[1:]))))
