"""Rows in 40 Parquet files, plan and fit against the bare pass over them; a cluster; a cost model.

``python -m benchmarks.many_files [ROWS]``: writes the files to a temporary folder and prints one line of
JSON for each of 1e5, ..., ROWS rows: seconds of the bare pass (read the inputs, the kernel at the same
inducing inputs, its product), of plan and fit, peak memory, and the same fit on two processes of Dask.
``python -m benchmarks.many_files cells [ROWS]``: plan and fit by cells, for one, two and four inputs, as a
multiple of a plain grouped sum by Polars.
``python -m benchmarks.many_files schedule``: what the cost model of docs/engine.md expects, and its
picture.
"""

from __future__ import annotations

import heapq
import json
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from privgp import PrivateGPRegressor, open_table
from privgp.engine.cluster import Cluster, engine_of
from privgp.engine.local import Engine
from privgp.gp.kernels.evaluate import evaluate
from privgp.plan.inputs.rows import Chunk, block_number, sum_blocks
from privgp.types import Array

FILES, COLUMNS = 40, ("a", "b", "c", "d")
SIZES = (100_000, 1_000_000, 10_000_000)
START = 25_000  # rows of a first fit, so that no later one pays for imports


def write(folder: Path, rows: int) -> Path:
    """The files of a table, each made by itself."""
    folder.mkdir()
    for number, part in enumerate(np.array_split(np.arange(rows), FILES)):
        rng = np.random.default_rng(number)
        X = rng.normal(size=(len(part), len(COLUMNS)))
        y = np.sin(X.sum(axis=1)) + 0.3 * rng.standard_normal(len(part))
        held = {name: X[:, k] for k, name in enumerate(COLUMNS)}
        pl.DataFrame({**held, "y": y}).write_parquet(folder / f"part-{number:02d}.parquet")
    return folder


def timed(task: Callable[[], Any]) -> tuple[float, float, Any]:
    """Seconds, and seconds of the processor in this process."""
    start, work = time.perf_counter(), time.process_time()
    result = task()
    return time.perf_counter() - start, time.process_time() - work, result


def bare(table: Any, plan: Any, engine: Engine) -> None:
    kernel, Z = plan.start.kernel, plan.inputs

    def part(chunk: Chunk) -> Array:
        K = evaluate(kernel, Z, chunk.inputs)
        return np.asarray(K @ K.T)

    rows = table.inputs.rows(None)
    sum_blocks(part, np.add, rows.parts(block_number(rows.count, engine)), engine)


def measured(rows: int, folder: Path, cluster: Any = None) -> dict[str, Any]:
    """One size: fit and bare pass in this process, then the fit on the cluster."""
    table = open_table(folder / "*.parquet", COLUMNS, "y")

    output = table.output
    assert output is not None

    def model(**more: Any) -> PrivateGPRegressor:
        return PrivateGPRegressor(y_bounds=(-3, 3), inducing=300, random_state=0, **more)

    fit_seconds, fit_work, fitted = timed(lambda: model().fit(table.inputs, output))
    bare_seconds, bare_work, _ = timed(lambda: bare(table, fitted.plan_, engine_of(None)))
    columns, engine = fitted.plan_.strategy.columns, engine_of(None)
    pass_seconds, pass_work, _ = timed(lambda: columns.totals(table.inputs.rows(None), engine))
    found = {
        "rows": rows,
        "bare_seconds": round(bare_seconds, 2),
        "fit_seconds": round(fit_seconds, 2),
        "fit_multiple": round(fit_seconds / bare_seconds, 2),
        "fit_work_multiple": round(fit_work / bare_work, 2),
        "pass_microseconds_per_row": round(1e6 * pass_work / rows, 2),
        "pass_seconds": round(pass_seconds, 2),
        "peak_memory_gb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
    }
    if cluster is not None:
        far = model(engine=cluster)
        seconds, _, _ = timed(lambda: far.fit(table.inputs, output))
        X = np.random.default_rng(1).normal(size=(100, len(COLUMNS)))
        same = np.array_equal(
            far.release_.mean_and_variance(X), fitted.release_.mean_and_variance(X)
        )
        on_pass, _, _ = timed(lambda: columns.totals(table.inputs.rows(None), Cluster(cluster)))
        found |= {"cluster_seconds": round(seconds, 2), "cluster_equal": bool(same)}
        found |= {"cluster_pass_seconds": round(on_pass, 2)}
    return found


def cells(rows: int, folder: Path) -> list[dict[str, Any]]:
    """Plan and fit without inducing inputs beside a grouped sum of the same columns."""
    found = []
    for inputs, steps in ((COLUMNS[:1], 4096), (COLUMNS[:2], 512), (COLUMNS, 16)):
        grid = [(pl.col(name) * (steps / 8.0)).floor().cast(pl.Int32) for name in inputs]
        query = pl.scan_parquet(folder / "*.parquet").group_by(grid).agg(pl.col("y").sum())
        plain, _, _ = timed(lambda query=query: query.collect(engine="streaming"))  # type: ignore[misc]
        table = open_table(folder / "*.parquet", inputs, "y")
        model = PrivateGPRegressor(y_bounds=(-3, 3), random_state=0)
        plan_seconds, _, plan = timed(lambda m=model, t=table: m.plan(t.inputs))  # type: ignore[misc]
        assert table.output is not None
        seconds, _, _ = timed(
            lambda m=model, t=table, p=plan: m.fit(t.inputs, t.output, plan=p)  # type: ignore[misc]
        )
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        found.append(
            {
                "rows": rows,
                "inputs": len(inputs),
                "grouped_sum_seconds": round(plain, 2),
                "plan_seconds": round(plan_seconds, 2),
                "plan_and_fit_seconds": round(plan_seconds + seconds, 2),
                "multiple_beyond_15_seconds": round((plan_seconds + seconds - 15.0) / plain, 2),
                "cells": plan.kind.cells,
                "peak_memory_gb": round(peak, 2),
            }
        )
    return found


def schedule(
    rows: float, workers: int, *, row: float, start: float, part: float, ends: float, block: float
) -> float:
    """Seconds until a pass is done: blocks go to whoever is free, which costs ``start`` each and ``row``
    per row; the curator adds up parts one by one, ``part`` seconds each; ``ends`` come before and after."""
    blocks = int(max(4 * workers, -(-rows // block)))
    each = start + row * rows / blocks
    free = [0.0] * workers
    added = 0.0
    for _ in range(blocks):
        done = heapq.heappop(free) + each
        heapq.heappush(free, done)
        added = max(added, done) + part
    return ends + added


# Of the machine that docs/engine.md names.
SHOWN = {1e7: "10 million", 1e8: "100 million", 1e9: "1 billion"}
COSTS = {"row": 1.1e-5, "start": 0.1, "part": 0.02, "ends": 15.0, "block": 2.0**18}


def picture(path: Path) -> None:
    """Seconds of a fit against the number of workers, by the cost model."""
    from privgp.pictures import style

    figure = style.new_figure(3.8)
    axes = figure.subplots()
    workers = np.unique(np.geomspace(1, 400, 30).astype(int))
    looks = ((style.BLUE, "-"), (style.ORANGE, "--"), (style.VERMILION, "-."))
    for (colour, line), (rows, name) in zip(looks, SHOWN.items(), strict=True):
        seconds = [schedule(rows, int(count), **COSTS) for count in workers]
        axes.loglog(workers, seconds, line, color=colour, label=f"{name} rows")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.grid(alpha=0.3)
    style.set_labels(axes, "number of workers, one thread each", "seconds of a fit")
    style.set_title(
        axes,
        "How long a fit of many rows takes by number of workers\nSimulated from costs measured on one machine",
    )
    style.legend([axes], below=True, columns=3)
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    if sys.argv[1:] == ["schedule"]:
        for count, many in ((1e7, 2), (1e8, 10), (1e9, 100), (1e9, 400)):
            print(f"{count:.0e} rows, {many} workers: {schedule(count, many, **COSTS):.0f} s")
        picture(Path("docs/pictures/engine-schedule.png"))
        sys.exit()
    if sys.argv[1:2] == ["cells"]:
        most = int(sys.argv[2]) if len(sys.argv) > 2 else SIZES[-1]
        with tempfile.TemporaryDirectory() as temporary:
            for line in cells(most, write(Path(temporary) / "rows", most)):
                print(json.dumps(line), flush=True)
        sys.exit()
    most = int(sys.argv[1]) if len(sys.argv) > 1 else SIZES[-1]
    import distributed

    dask: Any = distributed
    with tempfile.TemporaryDirectory() as temporary:
        measured(START, write(Path(temporary) / "start", START))
        with (
            dask.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as local,
            dask.Client(local) as client,
        ):
            for size in [size for size in SIZES if size <= most]:
                folder = write(Path(temporary) / str(size), size)
                print(json.dumps(measured(size, folder, client)), flush=True)
