"""The pictures of the docs whose data are made up on the spot."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import polars as pl
from sklearn.base import clone
from sklearn.gaussian_process.kernels import Matern

from benchmarks.calibration import interval_score
from privgp import PrivateGPClassifier, PrivateGPRegressor, audit
from privgp.pictures import style
from privgp.types import Array

T = TypeVar("T")
DPI = 120
CALLS = 600
RELEASES = 21  # odd, so that one of them is the middle one


def curve(path: Path) -> None:
    """The curve of the README, with the truth that only made-up data have.

    The same heights are released 21 times with fresh noise. Drawn is the release in the middle by the
    mean interval score of its 90% intervals over the whole range, so neither a lucky nor an unlucky one.
    """
    rng = np.random.default_rng(0)
    age = rng.uniform(0, 90, size=300)
    heights = _height(age) + rng.normal(0, 6, 300)
    ages = pl.DataFrame({"age (years)": age})
    x = np.linspace(age.min(), age.max(), 400)
    grid = pl.DataFrame({"age (years)": x})
    asked = PrivateGPRegressor(y_bounds=(60, 200), epsilon=1.0, delta=1e-5)
    plan = asked.plan(ages)
    releases = [clone(asked).fit(ages, heights, plan=plan) for _ in range(RELEASES)]
    model = middle(releases, [score(each, grid, _height(x)) for each in releases])
    figure = model.name_output("height", "cm").plot()
    ax = figure.axes[0]
    ax.plot(
        x,
        _height(x),
        color=style.BLACK,
        lw=1.4,
        ls="--",
        label="truth, as the data are made up",
    )
    figure.legends.clear()
    style.legend([ax], below=True)
    figure.savefig(path, dpi=DPI)


def score(model: PrivateGPRegressor, X: pl.DataFrame, truth: Array) -> float:
    """The mean interval score of 90% intervals of the function; smaller is better."""
    return float(np.mean(interval_score(*model.interval(X), truth)))


def middle(things: Sequence[T], scores: Sequence[float]) -> T:
    """The one of an odd number of things whose score is the median."""
    return things[int(np.argsort(scores)[len(things) // 2])]


def _height(age: Array) -> Array:
    return np.asarray(165 - 90 * np.exp(-age / 8))


def classes(path: Path) -> None:
    """A probability over villages, none of them in one corner."""
    rng = np.random.default_rng(1)
    villages = rng.uniform(0, 1, size=(90, 2)) * (100.0, 40.0)
    villages = villages[(villages[:, 0] < 70) | (villages[:, 1] < 20)]
    X = np.repeat(np.round(villages, 1), 20, axis=0)
    latent = 1.6 * np.sin(X[:, 0] / 15.0) + (X[:, 1] - 20.0) / 15.0
    y = rng.uniform(size=len(X)) < 1.0 / (1.0 + np.exp(-latent))
    model = PrivateGPClassifier(classes=["no", "yes"], epsilon=1.0, delta=1e-5)
    places = pl.DataFrame({"east (km)": X[:, 0], "north (km)": X[:, 1]})
    model.fit(places, np.where(y, "yes", "no"))
    model.plot(output="malaria").savefig(path, dpi=DPI)


def tables(path: Path) -> None:
    """Calls for help by date, region and hour of the day."""
    rng = np.random.default_rng(1)
    minutes = rng.integers(0, 365 * 24 * 60, CALLS)
    when = np.datetime64("2024-01-01", "us") + minutes.astype("timedelta64[m]")
    hour = (minutes / 60) % 24
    region = rng.choice(["centre", "north", "south"], CALLS)
    season = 6.0 * np.cos(2 * np.pi * minutes / (365 * 24 * 60))
    minutes_taken = 20.0 + season + 5.0 * np.cos(np.pi * (hour - 17) / 12)
    minutes_taken += np.select([region == "north", region == "south"], [6.0, -2.0])
    minutes_taken += rng.normal(0.0, 4.0, CALLS)
    model = PrivateGPRegressor(
        y_bounds=(0, 60), epsilon=1.0, delta=1e-5, columns={"hour": ("periodic", 24)}
    )
    model.fit(pl.DataFrame({"when": when, "region": region, "hour": hour}), minutes_taken)
    model.name_output("time to arrive", "minutes")
    model.plot().savefig(path, dpi=DPI)


def attack(path: Path) -> None:
    """The two audits with which docs/audits.md begins."""
    X = np.linspace(0, 1, 30)[:, None]
    model = PrivateGPRegressor(
        y_bounds=(0, 1), epsilon=4.0, delta=0.01, targets=[0.5], reconstruct="unbiased"
    )
    figure = style.new_figure(5.1, 8.8)
    what = f"Attacks on a release of 30 rows that promises {style.budget_text(4.0, 0.01)} to one output value"
    style.set_title(
        figure, f"{what}\nLeft: with the promised noise. Right: with 0.7 of it", room=110
    )
    for ax, scale in zip(figure.subplots(1, 2), (1.0, 0.7), strict=True):
        audit.trade_off(model.plan(X), draws=5_000, noise_scale=scale, random_state=0).plot(ax)
    figure.savefig(path, dpi=DPI)


def membership(path: Path) -> None:
    """The membership attack of docs/audits.md."""
    sizes: dict[str, Any] = {"n": 10, "n_paths": 3, "shadows": 10_000, "draws": 10_000}
    audit.membership(Matern(1.0, nu=0.5), 0.04, random_state=0, **sizes).plot().savefig(
        path, dpi=DPI
    )
