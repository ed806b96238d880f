"""Run the benchmark: ``results.csv``, ``results.json`` and ``table.md`` into a folder.

``--releases``, ``--epsilon``, ``--task`` and ``--method`` choose a part of it. Releases are simulated: their
noise comes from a seed.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
from rich.progress import track

from benchmarks.calibration import interval_score
from benchmarks.suite.problem import (
    DATA,
    DELTA,
    FUNCTIONS,
    Method,
    Problem,
    all_methods,
    problem_of,
)
from benchmarks.tasks import BESIDE
from privgp import __version__

FIELDS = (
    "task", "method", "protects", "epsilon", "releases", "rmse", "rmse_se", "score", "coverage",
    "seconds", "failed",
)  # fmt: skip
RESULTS = Path("benchmarks") / "measured" / "suite"


def measure(method: Method, problem: Problem) -> dict[str, Any]:
    """One release: squared error, interval score, coverage, seconds; or why it failed."""
    start = time.perf_counter()
    try:
        answer = method.run(problem)
    except Exception as error:
        return {"failed": f"{type(error).__name__}: {error}".splitlines()[0][:200]}
    found = {"seconds": time.perf_counter() - start}
    found["square"] = float(np.mean((answer.mean - problem.truth) ** 2))
    if answer.low is not None and answer.high is not None:
        low, high, truth = answer.low, answer.high, problem.truth
        found["score"] = float(interval_score(low, high, truth).mean())
        found["coverage"] = float(np.mean((low <= truth) & (truth <= high)))
    return found


def summary(releases: list[dict[str, Any]]) -> dict[str, Any]:
    """What the releases of one method at one task and epsilon show."""
    done = [one for one in releases if "failed" not in one]
    failed = [one["failed"] for one in releases if "failed" in one]
    out: dict[str, Any] = {"releases": len(done), "failed": failed[0] if failed else None}
    if not done:
        return out
    squares = [one["square"] for one in done]
    out["rmse"] = math.sqrt(np.mean(squares))
    out["rmse_se"] = (
        float(np.std(np.sqrt(squares), ddof=1)) / math.sqrt(len(done)) if done[1:] else None
    )
    for name in ("score", "coverage", "seconds"):
        values = [one[name] for one in done if name in one]
        out[name] = float(np.mean(values)) if values else None
    return out


def table(rows: list[dict[str, Any]], epsilon: float) -> str:
    """A table in Markdown at one epsilon: RMSE of every method at every task, the least private one bold."""
    here = [row for row in rows if row["epsilon"] == epsilon]
    tasks = [*dict.fromkeys(row["task"] for row in here)]
    best = {
        task: min(
            (
                row["rmse"]
                for row in here
                if row["task"] == task
                and row.get("rmse") is not None
                and row["protects"] != "nothing"
                and "hindsight" not in row["method"]
            ),
            default=0.0,
        )
        for task in tasks
    }
    lines = [f"| method | {' | '.join(tasks)} |", "|---" * (len(tasks) + 1) + "|"]
    for method in dict.fromkeys(row["method"] for row in here):
        found = {row["task"]: row for row in here if row["method"] == method}
        cells = [_cell(found.get(task), best[task]) for task in tasks]
        lines.append(f"| {method} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(row: dict[str, Any] | None, best: float) -> str:
    if row is None:
        return ""
    if row.get("rmse") is None:
        return "failed"
    text = f"{row['rmse']:.3g}" if row["rmse"] < 1000 else f"{row['rmse']:,.0f}"
    return f"**{text}**" if row["rmse"] == best else text


def intervals(rows: list[dict[str, Any]], epsilon: float) -> str:
    """A table in Markdown at one epsilon: interval score, coverage and seconds, over all tasks.

    The score is the geometric mean of its ratio to that of the first method.
    """
    here = [row for row in rows if row["epsilon"] == epsilon]
    first = {row["task"]: row for row in here if row["method"] == here[0]["method"]}
    lines = [
        "| method | protects | RMSE | interval score | coverage | seconds |",
        "|---|---|---|---|---|---|",
    ]
    for name in dict.fromkeys(row["method"] for row in here):
        own = [row for row in here if row["method"] == name and row.get("rmse") is not None]
        if not own:
            lines.append(f"| {name} | | failed | | | |")
            continue
        cells = [_ratio(own, first, key) for key in ("rmse", "score")]
        covered = [row["coverage"] for row in own if row["coverage"] is not None]
        cells.append(f"{min(covered):.2f} to {max(covered):.2f}" if covered else "")
        cells.append(f"{np.mean([row['seconds'] for row in own]):.2g}")
        lines.append(f"| {name} | {own[0]['protects']} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _ratio(own: list[dict[str, Any]], first: dict[str, dict[str, Any]], key: str) -> str:
    pairs = [(row[key], first[row["task"]][key]) for row in own if row[key] is not None]
    logs = [math.log(a / b) for a, b in pairs if a and b]
    return f"× {math.exp(np.mean(logs)):.2f}" if logs else ""


def run(
    tasks: list[str],
    epsilons: list[float],
    methods: list[Method],
    releases: int,
    data: Path,
    out: Path,
) -> list[dict[str, Any]]:
    """A row for every task, epsilon and method; all so far are written after every task."""
    rows: list[dict[str, Any]] = []
    jobs = [(task, epsilon) for epsilon in epsilons for task in tasks]
    for task, epsilon in track(jobs, description="Tasks"):
        problems = [problem_of(task, epsilon, number, data) for number in range(releases)]
        for method in methods:
            if method.suits(problems[0]):
                found = summary([measure(method, problem) for problem in problems])
                rows.append({"task": task, "method": method.name, "protects": method.protects,
                             "epsilon": epsilon, **found})  # fmt: skip
        write(rows, out)
    return rows


def write(rows: list[dict[str, Any]], out: Path) -> None:
    """The rows as CSV and JSON, and the tables as Markdown."""
    out.mkdir(parents=True, exist_ok=True)
    with (out / "results.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS, restval="")
        writer.writeheader()
        writer.writerows(rows)
    facts = {"version": __version__, "delta": DELTA, "rows": rows}
    (out / "results.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    parts = [
        f"### ε = {epsilon:g}\n\n{table(rows, epsilon)}\n\n{intervals(rows, epsilon)}\n"
        for epsilon in dict.fromkeys(row["epsilon"] for row in rows)
    ]
    (out / "table.md").write_text("\n".join(parts), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--releases", type=int, default=3, help="per task, method and epsilon")
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.3, 1.0, 3.0])
    parser.add_argument("--task", nargs="+", help="names of tasks")
    parser.add_argument("--method", nargs="+", help="names of methods")
    parser.add_argument("--data", type=Path, default=BESIDE, help="folder with the data files")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder to write into")
    asked = parser.parse_args()
    known = [*FUNCTIONS, *(DATA if asked.data.exists() else ())]
    tasks = [name for name in known if not asked.task or name in asked.task]
    methods = [each for each in all_methods() if not asked.method or each.name in asked.method]
    if not tasks or not methods:
        parser.error("--task and --method must name what is known.")
    run(tasks, asked.epsilon, methods, asked.releases, asked.data, asked.out)


if __name__ == "__main__":
    main()
