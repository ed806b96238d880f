"""Many private inputs: errors and coverage on simulated tasks and on Citi Bike, and a picture.

``python -m benchmarks.features --releases 3 --picture features.svg`` takes a few minutes.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.ticker import MaxNLocator
from sklearn.ensemble import HistGradientBoostingRegressor

from benchmarks.tasks import BESIDE, Task, _citi_bike
from privgp import PrivateGPRegressor
from privgp.pictures import style
from privgp.pictures.maps import UNCERTAINTY
from privgp.types import Array

PLACE = ((40.65, 40.82), (-74.03, -73.90))
CITI_BIKE = Task("Citi Bike", _citi_bike, (0, 2000), PLACE * 2)
TRIPS = 31_000  # to learn from; the other 2,700 are held out
SIMULATED = {
    "4 inputs, even, 10,000 records": (4, 10_000, False),
    "5 inputs, clustered, 10,000 records": (5, 10_000, True),
    "6 inputs, even, 20,000 records": (6, 20_000, False),
    "4 inputs, clustered, 3,000 records": (4, 3_000, True),
}
LOOK: dict[str, Any] = {"cmap": style.SEQUENTIAL, "vmin": 0, "vmax": 30}
FROM = (40.735, -73.99)  # where the trips of the picture start


def simulated(inputs: int, rows: int, clustered: bool, seed: int) -> tuple[Array, Array, Array]:
    """Records of a random smooth function of three directions, and 2,000 more to test on."""
    rng = np.random.default_rng(100 + seed)
    count = rows + 2000
    X = rng.uniform(size=(count, inputs))
    if clustered:
        centres = rng.uniform(0.2, 0.8, size=(5, inputs))
        X = centres[rng.integers(5, size=count)] + 0.12 * rng.standard_normal(X.shape)
        X = np.clip(X, 0.0, 1.0)
    A = rng.standard_normal((3, inputs)) / np.sqrt(inputs)
    f = 0.35 * np.sin(4.5 * X @ A[0]) + 0.3 * np.tanh(4.5 * (X - 0.5) @ A[1])
    f = f + 0.3 * np.exp(-4.0 * ((X - 0.5) @ A[2]) ** 2)
    return X, np.clip(f + 0.25 * rng.standard_normal(count), -1.5, 1.5), f


def covered(ends: tuple[Array, Array], values: Array) -> float:
    return float(np.mean((ends[0] <= values) & (values <= ends[1])))


def error(predicted: Array, values: Array) -> float:
    return float(np.sqrt(np.mean((predicted - values) ** 2)))


def one_simulated(inputs: int, rows: int, clustered: bool, seed: int) -> list[float]:
    """Error of a constant and of the release, coverage of outputs, error of f, coverage of f."""
    X, y, f = simulated(inputs, rows, clustered, seed)
    model = PrivateGPRegressor(
        y_bounds=(-1.5, 1.5), protect="records", x_bounds=[(0, 1)] * inputs, delta=1e-5,
        random_state=seed,
    )  # fmt: skip
    model.fit(X[:rows], y[:rows])
    T, v, g = X[rows:], y[rows:], f[rows:]
    mean, outputs = model.predict(T), covered(model.interval(T, observation=True), v)
    return [float(v.std()), error(mean, v), outputs, error(mean, g), covered(model.interval(T), g)]


def one_citi_bike(data: Path, seed: int) -> tuple[list[float], Any, tuple[Array, Array]]:
    X, y = CITI_BIKE.load(data)
    order = np.random.default_rng(seed).permutation(len(X))
    train, test = np.split(order, [TRIPS])
    X, y, T, v = X[train], y[train], X[test], y[test]
    model = PrivateGPRegressor(**CITI_BIKE.settings, random_state=seed).fit(X, y)
    outputs = covered(model.interval(T, observation=True), v)
    return [float(v.std()), error(model.predict(T), v), outputs], model, (X, y)


def draw(model: Any, data: tuple[Array, Array], path: Path) -> None:
    """Trips from one place to everywhere: without privacy, released, and how wide its intervals are."""
    (south, north), (west, east) = PLACE
    lat, lon = np.meshgrid(
        np.linspace(south, north, 60), np.linspace(west, east, 60), indexing="ij"
    )
    to = np.column_stack([lat.ravel(), lon.ravel()])
    trips = np.hstack([np.tile(FROM, (len(to), 1)), to])
    open_ = HistGradientBoostingRegressor(random_state=0).fit(*data).predict(trips)
    low, high = model.interval(trips)
    figure = style.new_figure(5.0, 7.4)
    axes = figure.subplots(1, 3, sharey=True)
    shown: tuple[tuple[str, Array, dict[str, Any]], ...] = (
        ("without privacy (boosted trees)", open_ / 60, LOOK),
        ("released", model.predict(trips) / 60, LOOK),
        ("± of its 90% interval", (high - low) / 120, {"cmap": UNCERTAINTY, "vmin": 0}),
    )
    known = data[0][:: len(data[0]) // 1500]
    for ax, (title, values, look) in zip(axes, shown, strict=True):
        drawn = ax.pcolormesh(
            lon, lat, values.reshape(lat.shape), shading="nearest", rasterized=True, **look
        )
        ax.plot(FROM[1], FROM[0], "*", color=style.VERMILION, mec="white", markersize=12,
            label="start of the trip", ls="none")  # fmt: skip
        ax.set_aspect(1.0 / np.cos(np.radians(0.5 * (south + north))))
        ax.xaxis.set_major_locator(MaxNLocator(3))
        style.set_ticks(ax.xaxis, "longitude")
        style.set_ticks(ax.yaxis, "latitude")
        style.set_title(ax, title)
        style.set_labels(ax, "longitude of the end", "latitude of the end" if ax is axes[0] else "")
        is_value = look is LOOK
        bar = figure.colorbar(
            drawn, ax=ax, location="bottom", extend="max" if is_value else "neither"
        )
        style.set_labels(bar.ax, "minutes: dark is short" if is_value else "± minutes")
    axes[0].plot(
        known[:, 3], known[:, 2], ".", color="white", markersize=1, alpha=0.4, rasterized=True
    )
    axes[0].plot([], [], ".", color=style.GREY, label="ends of some trips (white)")
    for ax in axes:
        ax.tick_params(axis="x", labelrotation=30)
    axes[0].set(xlim=(west, east), ylim=(south, north))
    title = f"How long a trip from the star takes, from {TRIPS:,} trips of Citi Bike"
    budget = style.budget_text(1.0, 1e-5)
    promised = f"Protects one whole trip, start, end and duration, with {budget}"
    style.set_title(figure, f"{title}\n{promised}", simulation=True)
    style.legend([axes[0]], below=True)
    path.write_bytes(style.figure_bytes(figure, path.suffix))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--releases", type=int, default=3)
    parser.add_argument("--data", type=Path, default=BESIDE)
    parser.add_argument("--picture", type=Path)
    asked = parser.parse_args()
    print(
        "| task | a constant | privgp | coverage | error of f | coverage of f |\n|---|---|---|---|---|---|"
    )
    for name, setting in SIMULATED.items():
        _row(name, [one_simulated(*setting, seed) for seed in range(asked.releases)])
    if asked.data.exists():
        runs = [one_citi_bike(asked.data, seed) for seed in range(asked.releases)]
        _row("Citi Bike trips, 31,000 records, seconds", [numbers for numbers, _, _ in runs])
        if asked.picture:
            draw(*runs[0][1:], asked.picture)


def _row(name: str, numbers: list[list[float]]) -> None:
    means = np.mean(numbers, axis=0)
    cells = [f"{m:.3g}" for m in means] + ["–"] * (5 - len(means))
    print(f"| {name} | {' | '.join(cells)} |", numbers, flush=True)


if __name__ == "__main__":
    main()
