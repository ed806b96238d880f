"""Two versions of this software on the same data, splits and seeds.

``python -m benchmarks.paired NAME=SRC NAME=SRC [--lines LINE ...] [--seeds 4] [--first 100]``: SRC is the
``src`` folder of a version, the first one is compared with. LINE: the beginning of the name of a line.
Every release is kept in ``--kept`` under the commit of its folder, so that a second call measures only what is
new. Printed are the ratio of errors (and of the distance to a Gaussian process without privacy, where no
function is known), that of interval scores, and what 90% intervals hold. Nothing is tuned on these
data by this script.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.functions import BOUNDS, TRUTHS, Truth
from benchmarks.growing import LINES, Data, Line, split
from benchmarks.tasks import BESIDE, TASKS
from privgp.types import Array

KEYS = ("rmse", "distance", "score", "covered", "outputs", "seconds")


def _truth(truth: Truth) -> Line:
    """A function of the calibration benchmark."""

    def draw(_: Path, seed: int) -> Data:
        X, y = truth.sample(np.random.default_rng(seed))
        Z, z = truth.sample(np.random.default_rng(10_000 + seed))
        places = truth.places()
        held = np.vstack([Z, places])
        return X, y, held, np.concatenate([z, np.full(len(places), np.nan)])

    bounds = {"y_bounds": BOUNDS}
    return Line(truth.name, draw, bounds, function=lambda _, X, __: truth.f(X))


def drawn(columns: int, rows: int, epsilon: float) -> Line:
    """A function drawn anew for every seed: sums of waves with a spectrum that falls like that of a Matern
    kernel, rough or smooth, isotropic or not, of inputs that are even or gathered about a few places."""

    def setting(seed: int) -> tuple[np.random.Generator, Callable[[Array], Array], float]:
        rng = np.random.default_rng([seed, columns, rows])
        smooth, scale = rng.choice([0.5, 1.5, 2.5, 8.0]), np.exp(rng.uniform(-2.5, 0.5))
        each = scale * np.exp(0.5 * rng.standard_normal(columns))
        waves = rng.standard_normal((400, columns))
        waves /= np.sqrt(rng.gamma(smooth, 1.0 / smooth, (400, 1)))
        phases, size = rng.uniform(0, 2 * np.pi, 400), rng.uniform(0.15, 0.6)

        def f(X: Array) -> Array:
            sums = np.cos((X / each) @ waves.T + phases).mean(axis=1) * np.sqrt(800.0)
            return np.asarray(np.clip(size * sums, -0.9, 0.9))

        return rng, f, float(rng.choice([0.05, 0.15, 0.3]))

    def draw(_: Path, seed: int) -> Data:
        rng, f, scatter = setting(seed)
        centres = rng.uniform(size=(5, columns))
        gathered = rng.uniform() < 0.4

        def some(count: int) -> tuple[Array, Array]:
            X = rng.uniform(size=(count, columns))
            if gathered:
                near = centres[rng.integers(0, 5, count)]
                X = np.clip(near + 0.1 * rng.standard_normal(X.shape), 0.0, 1.0)
            return X, np.clip(f(X) + scatter * rng.standard_normal(count), -1.0, 1.0)

        return *some(rows), *some(1000)

    return Line(
        f"drawn {columns}-D, {rows:,}, epsilon {epsilon:g}",
        draw,
        {"y_bounds": (-1.0, 1.0)},
        epsilon=epsilon,
        function=lambda _, X, seed: setting(seed)[1](X),
    )


Draw = Callable[[np.random.Generator], Callable[[Array], Array]]
Scatter = Callable[[np.random.Generator, int], Array]


def simple(name: str, columns: int, rows: int, make: Draw, scatter: Scatter) -> Line:
    """A simple function drawn anew for every seed, of even inputs."""

    def draw(_: Path, seed: int) -> Data:
        rng = np.random.default_rng([seed, columns, rows])
        f = make(rng)

        def some(count: int) -> tuple[Array, Array]:
            X = rng.uniform(size=(count, columns))
            return X, np.clip(f(X) + scatter(rng, count), -1.0, 1.0)

        return *some(rows), *some(1000)

    def truth(_: Path, X: Array, seed: int) -> Array:
        return make(np.random.default_rng([seed, columns, rows]))(X)

    return Line(f"simple: {name}", draw, {"y_bounds": (-1.0, 1.0)}, function=truth)


def _constant(rng: np.random.Generator) -> Callable[[Array], Array]:
    level = rng.uniform(-0.8, 0.8)
    return lambda X: np.full(len(X), level)


def _slopes(rng: np.random.Generator) -> Callable[[Array], Array]:
    slopes = rng.uniform(-0.6, 0.6, 4)
    return lambda X: np.asarray((X - 0.5) @ slopes[: X.shape[1]])


def _logistic(rng: np.random.Generator) -> Callable[[Array], Array]:
    centre, steep = rng.uniform(0.2, 0.8), np.exp(rng.uniform(0.7, 2.7))
    return lambda X: np.asarray(0.8 * np.tanh(steep * (X[:, 0] - centre)))


def _pieces(rng: np.random.Generator) -> Callable[[Array], Array]:
    knots = np.concatenate([[0.0], np.sort(rng.uniform(size=4)), [1.0]])
    levels = rng.uniform(-0.8, 0.8, 6)
    return lambda X: np.interp(X[:, 0], knots, levels)


def _normal(std: float) -> Scatter:
    return lambda rng, count: std * rng.standard_normal(count)


def _skewed(rng: np.random.Generator, count: int) -> Array:
    return np.asarray(0.25 * (rng.exponential(size=count) - 1.0))


def _heavy(rng: np.random.Generator, count: int) -> Array:
    return np.asarray(0.08 * rng.standard_t(3, count))


SIMPLE = (
    simple("constant, much scatter", 1, 100, _constant, _normal(0.25)),
    simple("constant, little scatter", 1, 1000, _constant, _normal(0.02)),
    simple("constant, 4-D", 4, 600, _constant, _normal(0.2)),
    simple("slope", 1, 300, _slopes, _normal(0.2)),
    simple("slopes, 3-D", 3, 800, _slopes, _normal(0.15)),
    simple("logistic", 1, 400, _logistic, _normal(0.1)),
    simple("pieces", 1, 250, _pieces, _normal(0.08)),
    simple("logistic, skewed scatter", 1, 500, _logistic, _skewed),
    simple("logistic, heavy tails", 1, 400, _logistic, _heavy),
)


def _small(name: str, rows: int, epsilon: float) -> Line:
    """Some rows of a task of the development suite, with a small budget."""
    task = next(each for each in TASKS if each.name == name)
    label = f"small {name}, {rows:,}, epsilon {epsilon:g}"
    return Line(label, split(task.load, rows, 500), {"y_bounds": task.bounds}, epsilon=epsilon)


SMALL = (("wage by age", 1000, 0.3), ("wage by age", 1000, 1.0), ("Milan", 1000, 0.3),
         ("Milan", 3000, 0.2), ("Ames by place", 2400, 0.2), ("Ames by place", 700, 1.0),
         ("Ames, place and area", 2400, 0.3), ("quakes", 500, 1.0), ("quakes", 500, 0.3),
         ("malaria", 1000, 0.3), ("Citi Bike", 1000, 0.5), ("Citi Bike", 3000, 0.2))  # fmt: skip
ALL = (
    *LINES,
    *(_truth(each) for each in TRUTHS),
    *(_small(*each) for each in SMALL),
    *(drawn(columns, rows, epsilon)
      for columns in (1, 2, 3, 4)
      for rows, epsilon in ((150, 1.0), (500, 0.3), (1000, 1.0), (5000, 0.2), (5000, 1.0))),
    *SIMPLE,
)  # fmt: skip


def without_privacy(X: Array, y: Array, Z: Array) -> Array:
    """The mean of a Gaussian process with all outputs, hyperparameters by evidence."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

    rows = np.random.default_rng(0).permutation(len(X))
    centre, spread = X.mean(axis=0), np.maximum(X.std(axis=0), 1e-12)
    X, Z = (X - centre) / spread, (Z - centre) / spread
    kernel = ConstantKernel(1.0) * Matern(np.ones(X.shape[1]), nu=1.5) + WhiteKernel(0.3)
    few, many = rows[:300], rows[:1500]
    first = GaussianProcessRegressor(kernel, normalize_y=True).fit(X[few], y[few])
    whole = GaussianProcessRegressor(first.kernel_, optimizer=None, normalize_y=True)
    return np.asarray(whole.fit(X[many], y[many]).predict(Z))


def interval_score(low: Array, high: Array, truth: Array) -> float:
    """Width plus twenty times the distance by which the interval misses the truth, on average."""
    missed = np.maximum(low - truth, 0.0) + np.maximum(truth - high, 0.0)
    return float(np.mean(high - low + 20.0 * missed))


def measure(line: Line, data: Path, seed: int, kept: Path) -> dict[str, float]:
    """One release by the software that is imported."""
    from privgp import PrivateGPRegressor

    X, y, Z, z = line.draw(data, seed)
    asked: dict[str, Any] = {"epsilon": line.epsilon, "delta": line.delta, **line.settings}
    model = PrivateGPRegressor(**asked, random_state=seed)
    start = time.process_time()
    plan = model.plan(X)
    model.fit(X, y, plan=plan)
    seconds = time.process_time() - start
    mean = np.asarray(model.predict(Z), dtype=float)
    told = np.isfinite(z)
    low, high = model.interval(Z[told], observation=True)
    found = {"seconds": seconds, "expected": float(plan.expected_error())}
    strategy: Any = plan.strategy
    found["numbers"] = float(len(strategy.matrix))
    found["stages"] = 2.0 if getattr(plan, "residuals", None) is not None else 1.0
    found["rmse"] = float(np.sqrt(np.mean(np.square(mean - z)[told])))
    found["outputs"] = float(np.mean((low <= z[told]) & (z[told] <= high)))
    if line.function is not None:
        truth = line.function(data, Z, seed)
        low, high = model.interval(Z)
        found["covered"] = float(np.mean((low <= truth) & (truth <= high)))
        found["score"] = interval_score(low, high, truth)
    else:
        found["score"] = interval_score(low, high, z)
        file = kept / "open" / f"{line.name}-{seed}.npy".replace("/", "-")
        if not isinstance(X, np.ndarray) or line.name.startswith("doctor"):
            return found
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            np.save(file, without_privacy(X, y, Z))
        truth = np.load(file)
        found["open"] = float(np.sqrt(np.mean(np.square(truth - z))))
    found["distance"] = float(np.sqrt(np.mean(np.square(mean - truth))))
    return found


def version(source: str) -> str:
    """The commit of a folder and what differs from it."""
    run = ["git", "-C", source]
    commit = subprocess.run(
        [*run, "rev-parse", "--short", "HEAD:./"], capture_output=True, text=True
    )
    changes = subprocess.run([*run, "diff", "HEAD", "--", "."], capture_output=True).stdout
    import hashlib

    more = f"-{hashlib.sha256(changes).hexdigest()[:8]}" if changes else ""
    return commit.stdout.strip() + more


def work(line: str, seeds: list[int], data: Path, kept: Path, mark: str) -> None:
    """Measure one line with the software that is imported."""
    (found,) = (each for each in ALL if each.name == line)
    for seed in seeds:
        file = kept / mark / f"{line}-{seed}.json".replace("/", "-")
        if file.exists():
            continue
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(measure(found, data, seed, kept)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("versions", nargs="*", help="NAME=SRC, the first is compared with")
    parser.add_argument("--lines", nargs="+", help="beginnings of the names of lines")
    parser.add_argument("--seeds", type=int, default=4, help="releases per line")
    parser.add_argument("--first", type=int, default=100, help="the first seed")
    parser.add_argument("--data", type=Path, default=BESIDE, help="folder with the data files")
    parser.add_argument(
        "--kept", type=Path, default=Path("paired"), help="folder of what was found"
    )
    parser.add_argument("--work", nargs=2, metavar=("LINE", "MARK"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    seeds = list(range(arguments.first, arguments.first + arguments.seeds))
    if arguments.work:
        work(arguments.work[0], seeds, arguments.data, arguments.kept, arguments.work[1])
        return
    versions = [each.split("=", 1) for each in arguments.versions]
    marks = {name: version(source) for name, source in versions}
    lines = [each.name for each in ALL
             if not arguments.lines or any(each.name.startswith(n) for n in arguments.lines)]  # fmt: skip
    logs: dict[str, list[list[float]]] = {name: [] for name, _ in versions[1:]}
    for line in lines:
        each: dict[str, list[dict[str, float]]] = {}
        for name, source in versions:
            command = [
                sys.executable,
                "-W",
                "ignore",
                "-m",
                "benchmarks.paired",
                "--work",
                line,
                marks[name],
            ]
            command += ["--seeds", str(arguments.seeds), "--first", str(arguments.first)]
            command += ["--data", str(arguments.data), "--kept", str(arguments.kept)]
            folder = arguments.kept / marks[name]
            files = [folder / f"{line}-{seed}.json".replace("/", "-") for seed in seeds]
            if not all(file.exists() for file in files):
                environment = {**os.environ, "PYTHONPATH": str(Path(source).resolve())}
                subprocess.run(command, check=False, env=environment)
            each[name] = [json.loads(f.read_text()) if f.exists() else {} for f in files]
        base = each[versions[0][0]]
        for name, found in each.items():
            cells, ratios = [], []
            for key in KEYS:
                pairs = [
                    (a[key], b[key])
                    for a, b in zip(base, found, strict=True)
                    if key in a and key in b
                ]
                if not pairs:
                    cells.append(f"{key} -")
                    ratios.append(np.nan)
                    continue
                first, own = np.array(pairs).T
                squares = key in ("rmse", "distance")
                mean = np.sqrt(np.mean(own**2)) if squares else own.mean()
                ratio = (
                    np.mean(np.log(own / first))
                    if np.all(first > 0) and np.all(own > 0)
                    else np.nan
                )
                ratios.append(float(ratio))
                shown = (
                    f" x{np.exp(ratio):.3f}"
                    if name in logs and key not in ("covered", "outputs")
                    else ""
                )
                cells.append(f"{key} {mean:.4g}{shown}")
            extra = [
                np.mean([o[k] for o in found if k in o] or [np.nan])
                for k in ("open", "numbers", "stages")
            ]
            cells.append(f"open {extra[0]:.4g} m {extra[1]:.0f} st {extra[2]:.1f}")
            if name in logs:
                logs[name].append(ratios)
            print(f"{line:34s} {name:8s} " + "  ".join(cells), flush=True)
    for name, every in logs.items():
        means = np.nanmean(np.array(every), axis=0)
        shown = "  ".join(
            f"{k} x{np.exp(m):.3f}"
            for k, m in zip(KEYS, means, strict=True)
            if k not in ("covered", "outputs")
        )
        print(f"{name}: geometric means over {len(every)} lines: {shown}", flush=True)


if __name__ == "__main__":
    main()
