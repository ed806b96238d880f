"""The pictures of the docs whose data are made up on the spot."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import polars as pl
from matplotlib.figure import Figure
from sklearn.base import clone
from sklearn.gaussian_process.kernels import Matern

from benchmarks.calibration import interval_score
from privgp import PrivateGPClassifier, PrivateGPRegressor, audit
from privgp.pictures import style
from privgp.privacy.budget import gaussian_epsilon, gaussian_multiplier
from privgp.types import Array

T = TypeVar("T")
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
    for text in list(ax.texts):
        text.remove()
    ax.plot(x, _height(x), color=style.BLACK, lw=1.4, ls="--", label="truth (simulated)")
    style.label_curves(ax)
    mean, young = model.predict(grid), int(np.searchsorted(x, 30.0))
    share = (mean[young] - mean[0]) / (mean[len(x) // 2 :].mean() - mean[0])  # of the older half
    finding = f"{share:.0%} of the growth is over by age 30"
    figure.suptitle(finding, x=0.01, ha="left", fontsize=style.TITLE)
    save(figure, path)


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
    save(model.plot(output="malaria"), path)


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
    save(model.plot(), path)


def attack(path: Path) -> None:
    """The two audits with which docs/audits.md begins."""
    X = np.linspace(0, 1, 30)[:, None]
    model = PrivateGPRegressor(
        y_bounds=(0, 1), epsilon=4.0, delta=0.01, targets=[0.5], reconstruct="unbiased"
    )
    figure = style.new_figure(5.1, 8.8)
    finding = "The attack stays within the guarantee, and breaks it with 0.7 of the noise"
    of = f"A release of 30 rows that guarantees {style.budget_text(4.0, 0.01)} to one output value"
    foot = f"{of}. Left: with the guaranteed noise. Right: with 0.7 of it"
    style.set_title(figure, f"{finding}\n{foot}", room=110)
    for ax, scale in zip(figure.subplots(1, 2), (1.0, 0.7), strict=True):
        audit.trade_off(model.plan(X), draws=5_000, noise_scale=scale, random_state=0).plot(ax)
    save(figure, path)


def membership(path: Path) -> None:
    """The membership attack of docs/audits.md."""
    sizes: dict[str, Any] = {"n": 10, "n_paths": 3, "shadows": 10_000, "draws": 10_000}
    save(audit.membership(Matern(1.0, nu=0.5), 0.04, random_state=0, **sizes).plot(), path)


def ledger(path: Path) -> None:
    """What is left of a budget after releases of one tenth of it, with either noise."""
    epsilon, delta, each = 1.0, 1e-5, 0.1
    gaussian = gaussian_multiplier(each, delta / 100.0)
    releases = np.arange(41)
    pure = np.maximum(epsilon - each * releases, 0.0)
    spent = [0.0, *(gaussian_epsilon(delta, gaussian / count**0.5) for count in releases[1:])]
    figure = style.new_figure(3.2)
    ax = figure.subplots()
    ax.step(releases, pure, where="post", color=style.BLUE, label="Laplace noise")
    ax.plot(releases, np.maximum(epsilon - np.array(spent), 0.0), "--", color=style.VERMILION,
        label="Gaussian noise")  # fmt: skip
    ax.set(xlim=(0, 40), ylim=(0, 1))
    style.set_labels(ax, "number of releases with ε = 0.1 each", "ε left of 1")
    used = int(np.argmax(pure < 1e-9))
    style.set_title(
        figure,
        f"Laplace noise uses up a budget of ε = 1 in {used} releases; Gaussian noise lasts longer\n"
        f"Total budget {style.budget_text(epsilon, delta)}; "
        f"Gaussian releases with δ = {style.number(delta / 100.0)} each.",
        room=80,
    )
    style.label_curves(ax)
    save(figure, path)


def rates(path: Path) -> None:
    """The rates of docs/counts.md: the truth, the counts, and what was released."""
    rng = np.random.default_rng(0)
    place = rng.uniform(0, 100, size=(300, 2))
    people = np.round(np.exp(rng.normal(np.log(4000), 0.7, size=300)))
    east, north = place.T
    rate = 0.004 * np.exp(1.2 * np.exp(-((east - 70) ** 2 + (north - 60) ** 2) / 800))
    cases = rng.poisson(people * rate)
    model = PrivateGPRegressor(
        y_bounds=(0, 400), epsilon=1.0, delta=1e-5, likelihood="poisson", max_change=1
    )
    model.fit(place, cases, exposure=people)
    figure = style.new_figure(2.9, 7.2)
    panels = figure.subplots(1, 3, sharex=True, sharey=True)
    shown = {"true rate (simulated)": rate, "counted, private": cases / people,
        "released": model.predict(place)}  # fmt: skip
    limits = {"vmin": 0.0, "vmax": 1000.0 * float(np.quantile(cases / people, 0.99))}
    for ax, (title, values) in zip(panels, shown.items(), strict=True):
        dots = ax.scatter(east, north, 9, 1000.0 * values, cmap=style.SEQUENTIAL, **limits)
        ax.set_aspect("equal")
        style.set_title(ax, title)
        style.set_labels(ax, "east (km)", "north (km)" if ax is panels[0] else "")
    bar = figure.colorbar(dots, ax=panels, pad=0.02)
    style.set_labels(bar.ax, y="cases per 1,000 people")
    style.set_title(
        figure,
        "The released rates are smooth again and show the cluster\n"
        "300 areas (dots); protects one person's contribution to one count with "
        f"{style.budget_text(model.guarantee_.epsilon, model.guarantee_.delta)}.",
    )
    save(figure, path)


def save(figure: Figure, path: Path) -> None:
    """Write a picture, the same bytes for the same figure."""
    path.write_bytes(style.figure_bytes(figure, path.suffix))
