"""Accuracy and coverage with all defaults on real data, by simulated (seeded) releases. Prints JSON.

``python -m benchmarks.accuracy [--data DIR]``. RMSE is the root mean square over all releases;
coverage is of 90% intervals for outputs. Nothing here is tuned on these data by this script.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from rich.progress import track
from sklearn.datasets import load_diabetes

from privgp import PrivateGPRegressor
from privgp.types import Array

BESIDE = Path(__file__).resolve().parents[1].parent / "shared" / "data"


@dataclass(frozen=True)
class Task:
    """A dataset with its budget; ``held_out`` rows are tested, or all rows when it is 0."""

    name: str
    load: Callable[[Path], tuple[Array, Array]]
    bounds: tuple[float, float]
    epsilon: float
    delta: float
    releases: int
    held_out: int
    train: int | None = None
    x_bounds: tuple[tuple[float, float], ...] | None = None  # given: whole records are protected

    @property
    def settings(self) -> dict[str, Any]:
        if self.x_bounds is None:
            return {}
        return {"protect": "records", "x_bounds": self.x_bounds}


def kung(data: Path) -> tuple[Array, Array]:
    table = pl.read_csv(data / "kung.csv")
    return table.select("age").to_numpy(), table["height"].to_numpy()


def citi_bike(data: Path) -> tuple[Array, Array]:
    table = pl.read_csv(data / "citibike_201706.csv.gz").filter(pl.col("subscriber") == 1)
    X = table.select("start_lat", "start_lon", "end_lat", "end_lon").to_numpy()
    return X, np.clip(table["duration_s"].to_numpy(), 0, 2000).astype(float)


def malaria(data: Path) -> tuple[Array, Array]:
    table = pl.read_csv(data / "gambia_malaria.csv")
    return table.select("x", "y").to_numpy(), table["pos"].to_numpy()


def london(data: Path) -> tuple[Array, Array]:
    """Sales of January 2016 in the 100 km square around London: km and thousands of pounds."""
    table = pl.read_csv(data / "london_prices.csv.gz").filter(pl.col("source") == "pp2016")
    X = table.select("easting", "northing").to_numpy() / 1000.0
    return X, np.clip(table["price"].to_numpy() / 1000.0, 100, 500)


def diabetes(_: Path) -> tuple[Array, Array]:
    table = load_diabetes(scaled=False)
    return table.data[:, [2, 3]], table.target


TASKS = (
    Task("!Kung heights", kung, (75, 175), 1.0, 0.01, 100, 0),
    Task("!Kung heights, held out", kung, (75, 175), 1.0, 0.01, 40, 60),
    Task("diabetes (bmi, bp), held out", diabetes, (25, 350), 1.0, 1e-5, 20, 120),
    Task("malaria (x, y), held out", malaria, (0, 1), 1.0, 1e-5, 20, 400),
    Task("Citi Bike, held out", citi_bike, (0, 2000), 1.0, 0.01, 5, 2000, 4900),
    Task("Citi Bike, held out", citi_bike, (0, 2000), 0.2, 0.01, 5, 2000, 4900),
    Task("!Kung, records private", kung, (75, 175), 1.0, 0.01, 100, 0, x_bounds=((0, 90),)),
    Task("!Kung, records private", kung, (75, 175), 1.0, 1e-5, 100, 0, x_bounds=((0, 90),)),
    Task("!Kung, records private", kung, (75, 175), 0.5, 1e-5, 100, 0, x_bounds=((0, 90),)),
    Task(
        *("London, records private, held out", london, (100, 500), 1.0, 1e-5, 4, 2000),
        x_bounds=((480, 580), (130, 230)),
    ),
)


def run(task: Task, data: Path) -> dict[str, float | str]:
    X, y = task.load(data)
    squares, covered = [], []
    for release in track(range(task.releases), description=f"{task.name}, eps={task.epsilon}"):
        order = np.random.default_rng(release).permutation(len(X))
        test, train = order[: task.held_out], order[task.held_out :][: task.train]
        test = test if task.held_out else order
        model = PrivateGPRegressor(
            y_bounds=task.bounds,
            epsilon=task.epsilon,
            delta=task.delta,
            random_state=release,
            **task.settings,
        ).fit(X[train], y[train])
        low, high = model.interval(X[test], observation=True)
        squares.append(np.mean((y[test] - model.predict(X[test])) ** 2))
        covered.append(np.mean((low < y[test]) & (y[test] < high)))
    return {
        "task": task.name,
        "epsilon": task.epsilon,
        "delta": task.delta,
        "releases": task.releases,
        "rmse": float(np.sqrt(np.mean(squares))),
        "coverage_90": float(np.mean(covered)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=BESIDE, help="folder with the data files")
    arguments = parser.parse_args()
    results = []
    for task in TASKS:
        try:
            results.append(run(task, arguments.data))
        except FileNotFoundError:
            results.append({"task": task.name, "skipped": f"no data in {arguments.data}"})
    print(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
