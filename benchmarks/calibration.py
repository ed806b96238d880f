"""Errors and error bars with all defaults: on functions whose truth is known, and on real data.

``python -m benchmarks.calibration [--releases N] [--before SRC] [--only NAME ...] [--out FOLDER]``
measures by simulated (seeded) releases at epsilon 1, delta 1e-5 and writes ``calibration.json`` and
``calibration.png``. Beside every release stand the same Gaussian process without privacy and means of
bins with the same privacy, their number the best in hindsight. ``--before SRC`` measures another
version of privgp, whose ``src`` folder is given, on the same data and noise seeds, and compares.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.functions import BOUNDS, TRUTHS, Truth
from benchmarks.tasks import BESIDE, TASKS, Task
from privgp.types import Array, Integers

COVERAGE = 0.9
NORMAL = 1.6448536269514722  # of a 90% interval
SEED = 1000
BINS = (1, 2, 3, 4, 6, 8, 11, 16, 23, 32)


def interval_score(low: Array, high: Array, truth: Array) -> Array:
    """Width plus 2 / (1 - coverage) times the distance by which the interval misses the truth."""
    missed = np.maximum(low - truth, 0.0) + np.maximum(truth - high, 0.0)
    return np.asarray(high - low + 2.0 / (1.0 - COVERAGE) * missed)


def _interval(model: Any, X: Array, observation: bool) -> tuple[Array, Array]:
    """The interval; of a version that has none of its own, the normal one."""
    if hasattr(model, "interval"):
        low, high = model.interval(X, COVERAGE, observation=observation)
        return low, high
    mean, std = model.predict(X, return_std=True, observation=observation)
    return mean - NORMAL * std, mean + NORMAL * std


def _binned(
    X: Array, y: Array, places: Array, bounds: tuple[float, float], seed: int
) -> list[Array]:
    """Means of bins with Laplace noise of epsilon 1 on every sum, for every number of bins."""
    rng = np.random.default_rng(seed)
    low, high = X.min(axis=0), X.max(axis=0)
    middle, half = 0.5 * sum(bounds), 0.5 * (bounds[1] - bounds[0])
    u = (np.clip(y, *bounds) - middle) / half
    out = []
    for parts in BINS:

        def cells(Z: Array, parts: int = parts) -> Integers:
            steps = np.clip((Z - low) / np.maximum(high - low, 1e-300) * parts, 0, parts - 1)
            return np.asarray(
                np.ravel_multi_index(tuple(steps.astype(int).T), (parts,) * Z.shape[1])
            )

        number = parts ** X.shape[1]
        counts = np.bincount(cells(X), minlength=number)
        sums = np.bincount(cells(X), u, minlength=number) + rng.laplace(0.0, 2.0, number)
        means = np.clip(sums / np.maximum(counts, 1), -1.0, 1.0)
        out.append(middle + half * means[cells(places)])
        if number > len(X):
            break
    return out


def _without_privacy(X: Array, y: Array, places: Array) -> Array:
    """The mean of the same Gaussian process with all outputs, hyperparameters by evidence."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

    chosen = np.random.default_rng(0).permutation(len(X))[:1200]
    X, y = X[chosen], y[chosen]
    centre, spread = X.mean(axis=0), np.maximum(X.std(axis=0), 1e-12)
    kernel = ConstantKernel(1.0) * Matern(np.ones(X.shape[1]), nu=2.5) + WhiteKernel(0.3)
    model = GaussianProcessRegressor(kernel, normalize_y=True, random_state=0)
    return np.asarray(model.fit((X - centre) / spread, y).predict((places - centre) / spread))


def release(job: tuple[str, int, str | None, bool]) -> dict[str, Any]:
    """One release of a function or of a task; with ``peers``, the others beside it."""
    name, number, data, peers = job
    from privgp import PrivateGPRegressor

    truth = next((each for each in TRUTHS if each.name == name), None)
    facts: dict[str, Any] = {"name": name}
    if truth is not None:
        X, y = truth.sample(np.random.default_rng(SEED + number))
        places, goal = truth.places(), truth.f(truth.places())
        X_test, y_test = truth.sample(np.random.default_rng(5 * SEED + number))
        settings = {"y_bounds": BOUNDS, "epsilon": 1.0, "delta": 1e-5}
    else:
        task = next(each for each in TASKS if each.name == name)
        assert data is not None
        X, y, X_test, y_test = task.split(Path(data), number)
        places, goal, settings = X_test, y_test, task.settings
    model = PrivateGPRegressor(**settings, random_state=number)  # type: ignore[arg-type]
    plan = model.plan(X)
    model.fit(X, y, plan=plan)
    mean = model.predict(places)
    facts["square"] = float(np.mean((mean - goal) ** 2))
    low, high = _interval(model, X_test, observation=True)
    facts["outputs"] = float(np.mean((low <= y_test) & (y_test <= high)))
    facts["expected"] = float(plan.expected_error())
    if truth is not None:
        low, high = _interval(model, places, observation=False)
        facts["covered"] = ((low <= goal) & (goal <= high)).astype(int).tolist()
        range_ = getattr(plan, "error_range", None)
        facts["range"] = None if range_ is None else [float(end) for end in range_()]
    facts["score"] = float(interval_score(low, high, goal).mean())
    if peers:
        bounds = settings["y_bounds"]
        binned = _binned(X, y, places, bounds, number)  # type: ignore[arg-type]
        facts["bins"] = [float(np.mean((each - goal) ** 2)) for each in binned]
        facts["open"] = float(np.mean((_without_privacy(X, y, places) - goal) ** 2))
    return facts


def measure(names: list[str], releases: int, data: Path, *, peers: bool) -> dict[str, Any]:
    """All releases, summed up by name."""
    jobs = [(name, k, str(data), peers and k < 5) for name in names for k in range(releases)]
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        done = pool.map(release, jobs, chunksize=2)
        for one in track(done, total=len(jobs), console=Console(stderr=True)):
            found[one["name"]].append(one)
    return {name: summary(each) for name, each in found.items()}


def summary(releases: list[dict[str, Any]]) -> dict[str, Any]:
    """What several releases of one function or data set show."""
    outputs = [one["outputs"] for one in releases]
    out: dict[str, Any] = {
        "releases": len(releases),
        "rmse": math.sqrt(np.mean([one["square"] for one in releases])),
        "score": float(np.mean([one["score"] for one in releases])),
        "outputs": float(np.mean(outputs)),
        "worst_release": min(outputs),
        "expected_error": float(np.mean([one["expected"] for one in releases])),
    }
    if "covered" in releases[0]:
        places = np.mean([one["covered"] for one in releases], axis=0)
        out |= {"coverage": float(places.mean()), "worst_place": float(places.min())}
        out["by_place"] = places.tolist()
        if releases[0]["range"] is not None:
            out["range"] = np.mean([one["range"] for one in releases], axis=0).tolist()
    beside = [one for one in releases if "bins" in one]
    if beside:
        each = np.mean([one["bins"] for one in beside], axis=0)
        out |= {"best_bins": math.sqrt(each.min()), "bins": BINS[int(each.argmin())]}
        out["without_privacy"] = math.sqrt(np.mean([one["open"] for one in beside]))
    return out


def show(results: dict[str, Any], before: dict[str, Any] | None) -> None:
    """A table on the screen."""
    table = Table(title="Errors and 90% intervals, epsilon 1, delta 1e-5", title_justify="left")
    headings = ["", "RMSE", "no privacy", "best bins", "score", "function", "worst place"]
    for heading in [
        *headings,
        "outputs",
        "worst release",
        *(["RMSE x", "score x"] if before else []),
    ]:
        table.add_column(heading, justify="left" if not heading else "right")
    for name, one in results.items():
        function = [f"{one[key]:.2f}" if key in one else "" for key in ("coverage", "worst_place")]
        cells = [
            *(f"{one[key]:.4g}" if key in one else "" for key in ("rmse", "without_privacy")),
            f"{one['best_bins']:.4g}" if "best_bins" in one else "",
            f"{one['score']:.4g}",
            *function,
            *(f"{one[key]:.2f}" for key in ("outputs", "worst_release")),
        ]
        if before is not None:
            cells += [f"{one[key] / before[name][key]:.2f}" for key in ("rmse", "score")]
        table.add_row(name, *cells)
    console = Console(width=140)
    console.print(table)
    known = [name for name, one in results.items() if "coverage" in one]
    if before is not None and known:
        logs = [math.log(results[name]["score"] / before[name]["score"]) for name in known]
        console.print(f"Mean log interval score of the functions: {np.mean(logs):+.3f}.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--releases", type=int, default=20, help="per function and data set")
    parser.add_argument("--data", type=Path, default=BESIDE, help="folder with the data files")
    parser.add_argument("--only", nargs="+", help="names of functions and data sets")
    parser.add_argument("--before", type=Path, help="the src folder of another version")
    parser.add_argument(
        "--out", type=Path, default=Path("calibration"), help="folder to write into"
    )
    parser.add_argument("--no-peers", action="store_true", help="this software alone")
    arguments = parser.parse_args()
    known: list[Truth | Task] = [*TRUTHS, *(TASKS if arguments.data.exists() else ())]
    names = [each.name for each in known if not arguments.only or each.name in arguments.only]
    if not names:
        parser.error("--only names nothing that is known.")
    arguments.out.mkdir(parents=True, exist_ok=True)
    results = measure(names, arguments.releases, arguments.data, peers=not arguments.no_peers)
    (arguments.out / "calibration.json").write_text(json.dumps(results, indent=2))
    before = None
    if arguments.before is not None:
        folder = arguments.out / "before"
        command = [sys.executable, "-m", "benchmarks.calibration", "--no-peers", "--only", *names]
        command += ["--releases", str(arguments.releases), "--data", str(arguments.data)]
        environment = {**os.environ, "PYTHONPATH": str(arguments.before.resolve())}
        subprocess.run([*command, "--out", str(folder)], check=True, env=environment)
        before = json.loads((folder / "calibration.json").read_text())
    show(results, before)
    if not arguments.no_peers:
        from benchmarks.calibration_picture import draw

        draw(results, before, arguments.out / "calibration.png")


if __name__ == "__main__":
    main()
