"""Two stages with clipped residuals against one, by simulated (seeded) releases. Prints JSON.

``python -m benchmarks.residuals [--data DIR] [--releases 10] [--only NAME]``. Judged is the distance to the
function: the truth where it is known, else what the same software learns at epsilon 1,000, which is hardly
private. Every release has fresh noise and, but for the truths, another three quarters of the rows.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks.functions import BOUNDS, TRUTHS
from benchmarks.tasks import BESIDE, _columns
from privgp import PrivateGPRegressor
from privgp.types import Array

FIRST_SEED = 7000
Rows = tuple[Array, Array, Array, Array | None]  # inputs and outputs; where to judge, and the truth


@dataclass(frozen=True)
class Task:
    """Data with declared bounds. ``draw``: rows of one release; ``epsilon``: of the release."""

    name: str
    draw: Callable[[Path, int], Rows]
    bounds: tuple[float, float]
    epsilon: float = 1.0


def known(name: str, rows: int, noise: float = 6.0, grid: float | None = None) -> Task:
    """One of the functions whose truth is known, at whole years or at places of a grid."""
    truth = next(each for each in TRUTHS if each.name == name)
    step = grid or (1.0 if truth.columns == 1 else 9.0)

    def draw(_: Path, release: int) -> Rows:
        rng = np.random.default_rng(FIRST_SEED + release)
        X = np.round(truth.draw(rng, rows) / step) * step
        y = truth.f(X) + rng.normal(0.0, noise, rows)
        places = np.unique(X, axis=0)
        return X, y, places, truth.f(places)

    return Task(f"{name}, {rows} rows, scatter {noise:g}", draw, BOUNDS)


def table(
    name: str,
    load: Callable[[Path], tuple[Array, Array]],
    bounds: tuple[float, float],
    most: int = 4000,
    epsilon: float = 1.0,
) -> Task:
    """Real data: three quarters of ``most`` rows, judged at the others."""

    def draw(data: Path, release: int) -> Rows:
        X, y = load(data)
        order = np.random.default_rng(FIRST_SEED + release).permutation(len(X))[:most]
        test, train = np.split(order, [len(order) // 4])
        return X[train], y[train], X[test], None

    return Task(f"{name}, epsilon {epsilon:g}", draw, bounds, epsilon)


def london(data: Path) -> tuple[Array, Array]:
    """Sales of January 2016 in the 100 km square around London: km and thousands of pounds."""
    prices = pl.read_csv(data / "london_prices.csv.gz").filter(pl.col("source") == "pp2016")
    return prices.select("easting", "northing").to_numpy() / 1000.0, prices[
        "price"
    ].to_numpy() / 1e3


PLACE = ["Longitude", "Latitude"]
TASKS = (
    known("wave", 2000),
    known("growth", 2000),
    known("step", 1500),
    known("seasons", 3000, 14.0),
    known("hill", 3000),
    known("border", 2000),
    known("towns", 4000, 14.0),
    table("wage by age", _columns("suite/wage.csv", ["age"], "wage"), (0, 300)),
    table("Milan", _columns("suite/milan_mortality.csv", ["day.num"], "tot.mort"), (0, 100)),
    table("diamonds by carat", _columns("suite/diamonds.csv.gz", ["carat"], "price"), (0, 20_000)),
    table("Ames by place", _columns("suite/ames.csv", PLACE, "Sale_Price"), (0, 600_000)),
    table("London by place", london, (0, 1000), 6000),
    table("quakes", _columns("suite/quakes.csv", ["lat", "long"], "depth"), (0, 700), epsilon=2.0),
    known("wave", 800),
    known("hill", 600),
    table("quakes", _columns("suite/quakes.csv", ["lat", "long"], "depth"), (0, 700)),
)


def judge(task: Task, data: Path, releases: int) -> dict[str, object]:
    """The distances of both ways, and how often 90% intervals of the function hold where it is known."""
    distances: dict[str, list[float]] = {"never": [], "auto": []}
    held: dict[str, list[float]] = {"never": [], "auto": []}
    stages = 1
    for release in range(releases):
        X, y, places, truth = task.draw(data, release)
        given: dict[str, Any] = {
            "y_bounds": task.bounds,
            "delta": 1e-5,
            "random_state": FIRST_SEED + release,
        }
        if truth is None:
            free = PrivateGPRegressor(**given, epsilon=1000.0, residuals="never").fit(X, y)
            truth = free.predict(places)
        for way in distances:
            model = PrivateGPRegressor(**given, epsilon=task.epsilon, residuals=way).fit(X, y)
            low, high = model.interval(places)
            distances[way].append(float(np.sqrt(np.mean((model.predict(places) - truth) ** 2))))
            held[way].append(float(np.mean((low < truth) & (truth < high))))
            stages = len(model.plan_.noises)
    one, two = (np.array(distances[way]) for way in ("never", "auto"))
    return {
        "task": task.name,
        "people_times_epsilon": len(X) * task.epsilon,
        "stages": stages,
        "ratio": float(np.exp(np.mean(np.log(two / one)))),
        "one": float(np.sqrt(np.mean(one**2))),
        "two": float(np.sqrt(np.mean(two**2))),
        "held": {way: round(float(np.mean(each)), 3) for way, each in held.items()},
        "ratios": np.round(two / one, 3).tolist(),
    }


def run(data: Path, releases: int, only: str) -> Iterator[dict[str, object]]:
    for task in TASKS:
        if only in task.name:
            yield judge(task, data, releases)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=BESIDE)
    parser.add_argument("--releases", type=int, default=10)
    parser.add_argument("--only", default="")
    asked = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    for found in run(asked.data, asked.releases, asked.only):
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
