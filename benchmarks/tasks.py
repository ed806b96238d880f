"""Real data for judging errors and error bars: the development suite and four earlier data sets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from sklearn.datasets import load_diabetes

from privgp.types import Array

BESIDE = Path(__file__).resolve().parents[1].parent / "shared" / "data"


@dataclass(frozen=True)
class Task:
    """One data set with declared bounds; a share of its rows is held out in every release.

    ``load``: inputs and outputs from the folder of data; ``x_bounds``: given where whole records are
    protected; ``most``: rows that are drawn for one release at most.
    """

    name: str
    load: Callable[[Path], tuple[Array, Array]]
    bounds: tuple[float, float]
    x_bounds: tuple[tuple[float, float], ...] | None = None
    delta: float = 1e-5
    most: int = 6000

    @property
    def settings(self) -> dict[str, Any]:
        """Arguments of the regressor."""
        private = {} if self.x_bounds is None else {"protect": "records", "x_bounds": self.x_bounds}
        return {"y_bounds": self.bounds, "epsilon": 1.0, "delta": self.delta, **private}

    def split(self, data: Path, release: int) -> tuple[Array, Array, Array, Array]:
        """Inputs and outputs to learn from, and a quarter of the rows to test on."""
        X, y = self.load(data)
        order = np.random.default_rng(release).permutation(len(X))[: self.most]
        test, train = np.split(order, [len(order) // 4])
        return X[train], y[train], X[test], y[test]


def _columns(file: str, inputs: list[str], output: str) -> Callable[[Path], tuple[Array, Array]]:
    def load(data: Path) -> tuple[Array, Array]:
        table = pl.read_csv(data / file)
        X = table.select(pl.col(inputs).cast(pl.Float64)).to_numpy()
        return X, table[output].cast(pl.Float64).to_numpy()

    return load


def _citi_bike(data: Path) -> tuple[Array, Array]:
    table = pl.read_csv(data / "citibike_201706.csv.gz").filter(pl.col("subscriber") == 1)
    X = table.select("start_lat", "start_lon", "end_lat", "end_lon").to_numpy()
    return X, np.clip(table["duration_s"].to_numpy(), 0, 2000).astype(float)


def _diabetes(_: Path) -> tuple[Array, Array]:
    table = load_diabetes(scaled=False)
    return table.data[:, [2, 3]], table.target


_QUAKES = _columns("suite/quakes.csv", ["lat", "long"], "depth")
_MILAN = _columns("suite/milan_mortality.csv", ["day.num"], "tot.mort")
_WAGE = _columns("suite/wage.csv", ["age"], "wage")
_MALARIA = _columns("gambia_malaria.csv", ["x", "y"], "pos")
_KUNG = _columns("kung.csv", ["age"], "height")
_PLACE = ["Longitude", "Latitude"]

TASKS = (
    Task("mcycle", _columns("suite/mcycle.csv", ["times"], "accel"), (-150, 100)),
    Task("lidar", _columns("suite/lidar.csv", ["range"], "logratio"), (-1.2, 0.2)),
    Task("wage by age", _WAGE, (0, 300)),
    Task("quakes", _QUAKES, (0, 700)),
    Task("meuse", _columns("suite/meuse.csv", ["x", "y"], "zinc"), (0, 2000)),
    Task("Milan", _MILAN, (0, 100)),
    Task("Ames by place", _columns("suite/ames.csv", _PLACE, "Sale_Price"), (0, 600_000)),
    Task(
        "Ames, place and area",
        _columns("suite/ames.csv", [*_PLACE, "Gr_Liv_Area"], "Sale_Price"),
        (0, 600_000),
    ),
    Task("!Kung", _KUNG, (75, 175)),
    Task("diabetes", _diabetes, (25, 350)),
    Task("malaria", _MALARIA, (0, 1)),
    Task("Citi Bike", _citi_bike, (0, 2000)),
    Task("wage, records", _WAGE, (0, 300), ((16, 80),)),
    Task("Milan, records", _MILAN, (0, 100), ((0, 3700),)),
    Task("quakes, records", _QUAKES, (0, 700), ((-40, -10), (165, 190))),
    Task("!Kung, records", _KUNG, (75, 175), ((0, 90),)),
)
