"""Whether accuracy grows with the data: errors, intervals and plans against what they should be.

``python -m benchmarks.growing [NAME ...] [--seeds 3] [--first 0] [--data DIR]`` measures by simulated
(seeded) releases with all defaults at epsilon 1, delta 1e-5 and prints one table. NAME: the beginning of
the name of a line; ``goal``: what was asked for. The bounds of London's prices, 0 to 2 million, are a
guess, so its goal is not comparable. Nothing is tuned on these data by this script.
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
from rich.console import Console
from rich.table import Table

from benchmarks.tasks import BESIDE, TASKS
from privgp import PrivateGPRegressor
from privgp.types import Array

Data = tuple[Any, Array, Any, Array]  # inputs and outputs to learn from and to test on


@dataclass(frozen=True)
class Line:
    """One line of the table.

    Attributes
    ----------
    draw : callable
        From the folder of data and a seed to rows to learn from, and to rows to test on.
    settings : dict
        Arguments of the regressor besides the budget.
    goal : float
        The error that was asked for, or 0.
    function : callable, optional
        The function at rows to test on, where it is known: errors are those of it.

    """

    name: str
    draw: Callable[[Path, int], Data]
    settings: dict[str, Any]
    goal: float = 0.0
    epsilon: float = 1.0
    delta: float = 1e-5
    function: Callable[[Path, Any, int], Array] | None = None


def bumps(seed: int) -> Callable[[Array], Array]:
    """Sixty bumps of random widths and heights on the unit square."""
    rng = np.random.default_rng(1000 + seed)
    centres, widths = rng.uniform(size=(60, 2)), rng.uniform(0.02, 0.12, 60)
    heights = rng.standard_normal(60)

    def f(X: Array) -> Array:
        out = np.zeros(len(X))
        for centre, width, height in zip(centres, widths, heights, strict=True):
            out += height * np.exp(-0.5 * np.square((X - centre) / width).sum(axis=1))
        return np.clip(0.35 * out, -1.0, 1.0)

    return f


def few_bumps(seed: int) -> Callable[[Array], Array]:
    """Twelve narrow bumps along one input."""
    rng = np.random.default_rng(2000 + seed)
    centres, heights = rng.uniform(size=12), rng.standard_normal(12)

    def f(X: Array) -> Array:
        apart = (X[:, :1] - centres) / 0.02
        return np.asarray(np.clip(0.5 * np.exp(-0.5 * apart**2) @ heights, -1.0, 1.0))

    return f


def wave(_: int) -> Callable[[Array], Array]:
    return lambda X: np.asarray(0.8 * np.sin(2.0 * np.pi * X[:, 0] + 2.0 * X[:, -1]))


def known(f: Callable[[int], Callable[[Array], Array]], columns: int, rows: int) -> dict[str, Any]:
    """A function on the unit cube, with outputs that scatter by .3."""

    def draw(_: Path, seed: int) -> Data:
        rng = np.random.default_rng(seed)
        X, Z = rng.uniform(size=(rows, columns)), rng.uniform(size=(3000, columns))
        y = f(seed)(X) + 0.3 * rng.standard_normal(rows)
        return X, y, Z, f(seed)(Z) + 0.3 * rng.standard_normal(len(Z))

    bounds = {"y_bounds": (-1.5, 1.5)}
    return {"draw": draw, "settings": bounds, "function": lambda _, X, seed: f(seed)(X)}


def split(
    load: Callable[[Path], tuple[Any, Array]], train: int | None, test: int = 2000
) -> Callable[[Path, int], Data]:
    def draw(data: Path, seed: int) -> Data:
        X, y = load(data)
        order = np.random.default_rng(seed).permutation(len(y))
        held, kept = order[:test], order[test:][:train]
        return X[kept], y[kept], X[held], y[held]

    return draw


def suite(name: str) -> dict[str, Any]:
    """A task of the development suite, a quarter of its rows held out."""
    task = next(each for each in TASKS if each.name == name)
    return {"draw": task.split, "settings": {"y_bounds": task.bounds}}


def _citi_bike(data: Path) -> tuple[Array, Array]:
    return next(each for each in TASKS if each.name == "Citi Bike").load(data)


def _london(data: Path) -> tuple[Array, Array]:
    table = pl.read_csv(data / "london_prices.csv.gz")
    price = table["price"].cast(pl.Float64).to_numpy()
    return table.select("easting", "northing").to_numpy() / 1000.0, np.clip(price, 0, 2e6)


def _weather(data: Path) -> tuple[Array, Array]:
    """Temperatures by time in days."""
    table = pl.read_csv(data / "suite/weather.csv.gz", null_values="NA", try_parse_dates=True)
    table = table.drop_nulls("temp")
    days = table["time_hour"].dt.epoch("s").to_numpy() / 86400.0
    return (days - days.min())[:, None], table["temp"].cast(pl.Float64).to_numpy()


def _day_means(data: Path, X: Array, _: int) -> Array:
    """The mean of all temperatures within half a day of every time."""
    days, y = _weather(data)
    order = np.argsort(days[:, 0])
    days, sums = days[order, 0], np.concatenate([[0.0], np.cumsum(y[order])])
    first, last = (np.searchsorted(days, X[:, 0] + shift) for shift in (-0.5, 0.5))
    return np.asarray((sums[last] - sums[first]) / np.maximum(last - first, 1))


def _diamonds(*columns: str) -> Callable[[Path], tuple[Any, Array]]:
    def load(data: Path) -> tuple[Any, Array]:
        table = pl.read_csv(data / "suite/diamonds.csv.gz")
        X = table.select(columns)
        price = table["price"].cast(pl.Float64).to_numpy()
        return (X.to_numpy() if len(columns) == 1 else X), price

    return load


def _visits(data: Path) -> tuple[Array, Array]:
    table = pl.read_csv(data / "suite/doctor_visits.csv")
    X = 100.0 * table.select("age").to_numpy()
    return X, table["visits"].cast(pl.Float64).to_numpy()


def _dates(rows: int) -> dict[str, Any]:
    """Made-up sales by date and weekday."""

    def draw(_: Path, seed: int) -> Data:
        rng = np.random.default_rng(seed)

        def some(count: int) -> tuple[Any, Array]:
            day = np.datetime64("2015-01-01") + rng.integers(0, 3650, count)
            weekday = (day.astype(int) + 3) % 7
            t = (day - np.datetime64("2015-01-01")).astype(float)
            y = 5000.0 + 0.4 * t + 900.0 * np.sin(2.0 * np.pi * t / 365.25)
            y = y + np.where(weekday >= 5, 1500.0, 0.0) + 800.0 * rng.standard_normal(count)
            names = np.array(["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"])[weekday]
            return pl.DataFrame({"day": day, "weekday": names}), y

        return *some(rows), *some(2000)

    return {"draw": draw, "settings": {"y_bounds": (0, 12000)}}


VISITS = {"y_bounds": (0, 10), "max_change": 10, "likelihood": "poisson"}
RATE = (1_000, 10_000, 100_000, 1_000_000)
RATES = (("wave", wave, 1), ("wave", wave, 2), ("bumps", few_bumps, 1), ("bumps", bumps, 2))

LINES = (
    Line("60 bumps, 20,000", **known(bumps, 2, 20_000), goal=0.056),
    Line("60 bumps, 100,000", **known(bumps, 2, 100_000), goal=0.033),
    Line("60 bumps, 1,000,000", **known(bumps, 2, 1_000_000), goal=0.024),
    Line("London, 16,000", split(_london, 16_000), {"y_bounds": (0, 2e6)}, 215e3),
    Line("Citi Bike, 31,705", split(_citi_bike, 31_705), {"y_bounds": (0, 2000)}, delta=0.01),
    Line("Citi Bike, 4,900", split(_citi_bike, 4_900), {"y_bounds": (0, 2000)}, delta=0.01),
    Line("Citi Bike, 4,900, epsilon .2", split(_citi_bike, 4_900), {"y_bounds": (0, 2000)},
         epsilon=0.2, delta=0.01),
    Line("Ames", **suite("Ames by place"), goal=55e3),
    Line("Milan", **suite("Milan"), goal=6.7),
    Line("quakes", **suite("quakes")),
    Line("mcycle", **suite("mcycle")),
    Line("lidar", **suite("lidar")),
    Line("wage", **suite("wage by age")),
    Line("meuse", **suite("meuse")),
    Line("!Kung", **suite("!Kung")),
    Line("diabetes", **suite("diabetes")),
    Line("weather, 5,000", split(_weather, 5_000), {"y_bounds": (0, 110)}, 7.1, function=_day_means),
    Line("diamonds by carat", split(_diamonds("carat"), 50_000), {"y_bounds": (0, 20_000)}, 1434),
    Line("diamonds by kinds, 5,000", split(_diamonds("carat", "cut", "color"), 5_000),
         {"y_bounds": (0, 20_000)}),
    Line("diamonds by kinds, 50,000", split(_diamonds("carat", "cut", "color"), 50_000),
         {"y_bounds": (0, 20_000)}),
    Line("doctor visits", split(_visits, None, 1300), VISITS),
    *(Line(f"dates, {rows:,}", **_dates(rows))
      for rows in (2_000, 3_000, 4_500, 5_500, 8_000, 12_000)),
    *(Line(f"rate, {name} {columns}-D, {rows:,}", **known(f, columns, rows))
      for name, f, columns in RATES for rows in RATE),
)  # fmt: skip


def measure(line: Line, data: Path, seed: int) -> dict[str, float]:
    """One release: errors, the plan's expectation, coverages, how much was measured, seconds."""
    X, y, X_test, y_test = line.draw(data, seed)
    asked: dict[str, Any] = {"epsilon": line.epsilon, "delta": line.delta, **line.settings}
    model = PrivateGPRegressor(**asked, random_state=seed)
    start = time.process_time()
    plan = model.plan(X)
    model.fit(X, y, plan=plan)
    seconds = time.process_time() - start
    mean = np.asarray(model.predict(X_test), dtype=float)
    low, high = model.interval(X_test, observation=True)
    found = {
        "rmse": float(np.sqrt(np.mean(np.square(mean - y_test)))),
        "outputs": float(np.mean((low <= y_test) & (y_test <= high))),
        "expected": float(plan.expected_error()),
        "numbers": float(plan.strategy.size),
        "seconds": seconds,
    }
    if line.function is not None:
        truth = line.function(data, X_test, seed)
        low, high = model.interval(X_test)
        found["function"] = float(np.sqrt(np.mean(np.square(mean - truth))))
        found["covered"] = float(np.mean((low <= truth) & (truth <= high)))
    return found


COLUMNS = ("rmse", "function", "expected", "covered", "outputs", "numbers", "seconds")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="beginnings of the names of lines")
    parser.add_argument("--seeds", type=int, default=3, help="releases per line")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--data", type=Path, default=BESIDE, help="folder with the data files")
    arguments = parser.parse_args()
    table = Table(title="Errors, and shares that 90% intervals hold", title_justify="left")
    table.add_column("")
    for heading in ("goal", *COLUMNS):
        table.add_column(heading, justify="right")
    console = Console(width=130)
    for line in LINES:
        if arguments.names and not any(line.name.startswith(name) for name in arguments.names):
            continue
        seeds = range(arguments.first, arguments.first + arguments.seeds)
        try:
            found = [measure(line, arguments.data, seed) for seed in seeds]
        except FileNotFoundError:
            continue
        cells = [f"{line.goal:.4g}" if line.goal else ""]
        for key in COLUMNS:
            values = np.array([one[key] for one in found if key in one] or [np.nan])
            mean = np.sqrt(np.mean(values**2)) if key in ("rmse", "function") else values.mean()
            cells.append("" if np.isnan(mean) else f"{mean:.4g}")
        table.add_row(line.name, *cells)
        console.print(line.name, *cells, soft_wrap=True, style="dim")
    console.print(table)


if __name__ == "__main__":
    main()
