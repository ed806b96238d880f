"""Private places beside two plain numbers, and bounds that are found beside good ones that are declared.

``python -m benchmarks.places_and_bounds [--releases N] [--first SEED] [--data FOLDER]`` prints a table of
simulated (seeded) releases at epsilon 1, delta 1e-5. Places: the maps of ``benchmarks.functions`` on a
rectangle of latitude and longitude, records private, with ``columns`` that say what is a place and
without. Bounds: sales and durations; a tenth of epsilon finds the bounds and the rest is for the release,
against a release with all of it and declared bounds. The error is that of held-out outputs as they are,
beyond any bounds too.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks.functions import BOUNDS, RANGE, TRUTHS, Truth
from benchmarks.tasks import BESIDE
from privgp import PrivateGPRegressor, private_bounds
from privgp.types import Array

SEED = 90_000
BUDGET = {"epsilon": 1.0, "delta": 1e-5}
CORNER, DEGREES = (45.0, 8.0), (0.9, 1.28)  # of a rectangle that is square on the ground
SIDES = {"lat": (45.0, 45.9), "lon": (8.0, 9.28)}
PLACE = {("lat", "lon"): "place"}


def on_earth(X: Array) -> pl.DataFrame:
    """Inputs of a map as latitude and longitude."""
    return pl.DataFrame(
        np.asarray(CORNER) + X * (np.asarray(DEGREES) / RANGE), schema=["lat", "lon"]
    )


def places(truth: Truth, seed: int) -> dict[str, list[float]]:
    """RMSE, coverage and seconds of a release, by how inputs were declared."""
    X, y = truth.sample(np.random.default_rng(SEED + seed))
    at, goal = on_earth(truth.places()), truth.f(truth.places())
    found = {}
    for name, declared in (
        ("numbers", {"x_bounds": [*SIDES.values()]}),
        ("place", {"x_bounds": SIDES, "columns": PLACE}),
    ):
        given: dict[str, Any] = {"protect": "records", "random_state": seed, **BUDGET, **declared}
        began = time.process_time()
        model = PrivateGPRegressor(y_bounds=BOUNDS, **given).fit(on_earth(X), y)
        mean, (low, high) = model.predict(at), model.interval(at)
        seconds = time.process_time() - began
        error = float(np.sqrt(np.mean((mean - goal) ** 2)))
        found[name] = [error, float(np.mean((low <= goal) & (goal <= high))), seconds]
    return found


@dataclass(frozen=True)
class Skewed:
    """Skewed outputs with good bounds, from a table of data."""

    name: str
    read: Callable[[Path], pl.DataFrame]
    inputs: tuple[str, ...]
    output: str
    declared: tuple[float, float]
    most: int = 3000

    def errors(self, data: Path, seed: int) -> dict[str, list[float]]:
        """The RMSE with declared bounds and with those that are found."""
        table = self.read(data)
        order = np.random.default_rng(SEED + seed).permutation(table.height)[: self.most]
        table = table[order.tolist()]
        X = table.select(pl.col(self.inputs).cast(pl.Float64)).to_numpy()
        y = table[self.output].cast(pl.Float64).to_numpy()
        cut = len(y) // 4
        known = private_bounds(y[cut:], epsilon=0.1, low=0.0, random_state=seed)
        found = {}
        for name, bounds, epsilon in (
            ("declared", self.declared, 1.0),
            ("found", known.bounds, 0.9),
        ):
            model = PrivateGPRegressor(
                y_bounds=bounds, epsilon=epsilon, delta=1e-5, random_state=seed
            ).fit(X[cut:], y[cut:])
            left = model.predict(X[:cut]) - y[:cut]
            found[name] = [float(np.sqrt(np.mean(left**2))), bounds[1]]
        return found


def _trips(data: Path) -> pl.DataFrame:
    return pl.read_csv(data / "citibike_201706.csv.gz").filter(pl.col("subscriber") == 1)


TABLES = (
    Skewed("sales in Ames by area", lambda data: pl.read_csv(data / "suite" / "ames.csv"),
           ("Gr_Liv_Area",), "Sale_Price", (0, 600_000)),
    Skewed("sales in London by place", lambda data: pl.read_csv(data / "london_prices.csv.gz"),
           ("lat", "lon"), "price", (0, 1_000_000)),
    Skewed("durations of trips by place", _trips, ("start_lat", "start_lon"), "duration_s", (0, 2000)),
    Skewed("diamonds by carat", lambda data: pl.read_csv(data / "suite" / "diamonds.csv.gz"),
           ("carat",), "price", (0, 20_000)),
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--releases", type=int, default=5, help="per map and table")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--data", type=Path, default=BESIDE, help="folder with the data files")
    arguments = parser.parse_args()
    seeds = range(arguments.first, arguments.first + arguments.releases)
    print("| map | RMSE of a place / of numbers | covered | by numbers | time / of numbers |")
    print("|---|---|---|---|---|")
    for truth in (each for each in TRUTHS if each.columns == 2):
        each = [places(truth, seed) for seed in seeds]
        (error, covered, took), (error_2, covered_2, took_2) = (
            np.mean([one[name] for one in each], axis=0) for name in ("place", "numbers")
        )
        ratios = f"{error / error_2:.3f} | {covered:.3f} | {covered_2:.3f} | {took / took_2:.2f}"
        print(f"| {truth.name} | {ratios} |", flush=True)
    print("\n| table | RMSE with bounds found / declared | bounds found | declared |")
    print("|---|---|---|---|")
    for task in TABLES:
        tried = [task.errors(arguments.data, seed) for seed in seeds]
        ours, good = (np.mean([one[name][0] for one in tried]) for name in ("found", "declared"))
        ends = ", ".join(sorted({f"{one['found'][1]:,.0f}" for one in tried}))
        print(f"| {task.name} | {ours / good:.3f} | {ends} | {task.declared[1]:,} |", flush=True)


if __name__ == "__main__":
    main()
