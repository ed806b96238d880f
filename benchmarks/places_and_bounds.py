"""Private places beside two plain numbers, and bounds that are found beside good ones that are declared.

``python -m benchmarks.places_and_bounds [--releases N] [--first SEED] [--data FOLDER] [--only NAME ...]``
prints tables of simulated (seeded) releases at epsilon 1, delta 1e-5, keeps their numbers in
``benchmarks/measured`` and writes those of places into docs/private-inputs.md; what ``--only`` leaves out
stays as it is known. Places: the maps of
``benchmarks.functions`` on a rectangle of latitude and longitude, records private, with ``columns`` that
say what is a place and without. Bounds: sales and durations; a tenth of epsilon finds the bounds and the
rest is for the release, against a release with all of it and the best declared bounds: of the round
numbers that cover 90, 95, 98 and 99% of all outputs, the one with the least error over the same
releases. The error is that of held-out outputs as they are, beyond any bounds too.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks.calibration_page import DOCS, filled
from benchmarks.functions import BOUNDS, RANGE, TRUTHS, Truth
from benchmarks.tasks import BESIDE
from privgp import PrivateGPRegressor, private_bounds
from privgp.models.bounds import bin_ends
from privgp.types import Array

KEPT = Path(__file__).resolve().parent / "measured"
SEED = 90_000
BUDGET = {"epsilon": 1.0, "delta": 1e-5}
CORNER, DEGREES = (45.0, 8.0), (0.9, 1.28)  # of a rectangle that is square on the ground
SIDES = {"lat": (45.0, 45.9), "lon": (8.0, 9.28)}
PLACE = {("lat", "lon"): "place"}
SHARES = (0.9, 0.95, 0.98, 0.99)  # of the outputs, that declared bounds may cover


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
    """Skewed outputs, from a table of data."""

    name: str
    read: Callable[[Path], pl.DataFrame]
    inputs: tuple[str, ...]
    output: str
    most: int = 3000

    def errors(self, data: Path, seed: int) -> dict[str, Any]:
        """The RMSE with the upper bound that is found, this bound, and the RMSE by a declared one."""
        table = self.read(data)
        every = table[self.output].cast(pl.Float64).to_numpy()
        order = np.random.default_rng(SEED + seed).permutation(table.height)[: self.most]
        X = table[order.tolist()].select(pl.col(self.inputs).cast(pl.Float64)).to_numpy()
        y, cut = every[order], len(order) // 4

        def error(high: float, epsilon: float) -> float:
            model = PrivateGPRegressor(
                y_bounds=(0.0, high), epsilon=epsilon, delta=1e-5, random_state=seed
            ).fit(X[cut:], y[cut:])
            return float(np.sqrt(np.mean((model.predict(X[:cut]) - y[:cut]) ** 2)))

        known = private_bounds(y[cut:], epsilon=0.1, low=0.0, random_state=seed).high
        declared = {str(high): error(high, 1.0) for high in round_bounds(every)}
        return {"error": error(known, 0.9), "high": known, "declared": declared}


def round_bounds(values: Array) -> list[float]:
    """The least round numbers below which given shares of all values lie: what could be declared."""
    ends = bin_ends(0.01, 1e9, 0.0, fine=True)
    return sorted({float(ends[np.searchsorted(ends, np.quantile(values, q))]) for q in SHARES})


def _trips(data: Path) -> pl.DataFrame:
    return pl.read_csv(data / "citibike_201706.csv.gz").filter(pl.col("subscriber") == 1)


TABLES = (
    Skewed("sales in Ames by area", lambda data: pl.read_csv(data / "suite" / "ames.csv"),
           ("Gr_Liv_Area",), "Sale_Price"),
    Skewed("sales in London by place", lambda data: pl.read_csv(data / "london_prices.csv.gz"),
           ("lat", "lon"), "price"),
    Skewed("durations of trips by place", _trips, ("start_lat", "start_lon"), "duration_s"),
    Skewed("diamonds by carat", lambda data: pl.read_csv(data / "suite" / "diamonds.csv.gz"),
           ("carat",), "price"),
)  # fmt: skip


def table_of_places(results: dict[str, list[dict[str, list[float]]]]) -> str:
    """Means over releases of every map: a place beside two plain numbers."""
    lines = [
        "| map | releases | RMSE of a place / of numbers | covered | by numbers | time / of numbers |",
        "|---|---|---|---|---|---|",
    ]
    for name, each in results.items():
        (error, covered, took), (error_2, covered_2, took_2) = (
            np.mean([one[kind] for one in each], axis=0) for kind in ("place", "numbers")
        )
        ratio = f"{len(each)} | {error / error_2:.3f} | {covered:.0%} | {covered_2:.0%}"
        lines.append(f"| {name} | {ratio} | {took / took_2:.2f} |")
    return "\n".join(lines)


def table_of_bounds(results: dict[str, list[dict[str, Any]]]) -> str:
    """Errors with bounds that were found over those with the best declared ones."""
    lines = [
        "| output | releases | upper bounds found | best declared | RMSE found / best declared |",
        "|---|---|---|---|---|",
    ]
    for name, each in results.items():
        declared = {
            float(high): np.mean([one["declared"][high] for one in each])
            for high in each[0]["declared"]
        }
        best = min(declared, key=lambda high: declared[high])
        found = ", ".join(f"{end:,.0f}" for end in sorted({one["high"] for one in each}))
        ratio = np.mean([one["error"] for one in each]) / declared[best]
        lines.append(f"| {name} | {len(each)} | {found} | {best:,.0f} | {ratio:.3f} |")
    return "\n".join(lines)


PAGES = {"places": (DOCS / "private-inputs.md",)}
SHOWN: dict[str, Callable[[Any], str]] = {"places": table_of_places, "bounds": table_of_bounds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--releases", type=int, default=5, help="per map and table")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--data", type=Path, default=BESIDE, help="folder with the data files")
    parser.add_argument(
        "--only", nargs="+", help="maps and tables, by the first words of their names"
    )
    arguments = parser.parse_args()
    seeds = range(arguments.first, arguments.first + arguments.releases)
    maps = {each.name: partial(places, each) for each in TRUTHS if each.columns == 2}
    skewed = {each.name: partial(each.errors, arguments.data) for each in TABLES}
    for name, tasks in (("places", maps), ("bounds", skewed)):
        kept = KEPT / f"{name}.json"
        known = json.loads(kept.read_text("utf-8")) if kept.exists() else {}
        results = {}
        for task, measure in tasks.items():
            if not arguments.only or task.startswith(tuple(arguments.only)):
                results[task] = [measure(seed) for seed in seeds]
            elif task in known:
                results[task] = known[task]
        if results != known:
            kept.write_text(json.dumps(results) + "\n", encoding="utf-8")
            print(SHOWN[name](results), flush=True)
            for page in PAGES.get(name, ()):
                shown = filled(page.read_text("utf-8"), f"{SHOWN[name](results)}\n")
                page.write_text(shown, encoding="utf-8")


if __name__ == "__main__":
    main()
