"""Where flats in Greater London sell above exp(13): hexagons of 2019, settings from older sales."""

from __future__ import annotations

import gzip
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from privgp.models.tune import ExcursionTask, tune_for
from privgp.plan.kernels import evaluate
from privgp.plan.tuning import PriorDraws
from privgp.release import plots_style as style
from privgp.reproduce.excursion_tasks import overlap
from privgp.reproduce.report import Request, Result, Section
from privgp.types import Array

FILE, THRESHOLD, CLIP = "london_prices.csv.gz", 13.0, 1.0
ACROSS = 45  # hexagons from west to east
EPSILON, FILTER, PATHS = 10.0, 0.05, 3


def london(request: Request) -> tuple[list[Result], Section]:
    """Three single-path releases beside the posterior's own set, compared over the hexagons.

    Settings are chosen on older sales: they are public here, as 2017 is in the paper.
    """
    title = "London: median log price of leasehold flats at least 13, 2019"
    file = None if request.data is None else Path(request.data) / FILE
    if file is None or not file.exists():
        return [], Section(title, (f"{FILE} is not there: the map is left out.",))
    table = _flats(file)
    frame = _frame(table)
    centres, y = _hexagons(table.filter(pl.col("source") == "lbs2019"), frame)
    n, law = len(y), {"domain": [(0.0, 1.0)] * 2, "y_bounds": (-1.0, 1.0), "delta": len(y) ** -1.1}
    older = _hexagons(table.filter(pl.col("source") != "lbs2019"), frame)
    draws = _resampled(*older, n, 2 if request.quick else 6)
    private, free = (
        tune_for(ExcursionTask(), draws, epsilon, rounds=0 if request.quick else 1, **law)
        for epsilon in (EPSILON, None)
    )
    kernel, noise = free.paths.kernel, (free.regularisation * free.scale) ** 2
    known = evaluate(kernel, centres) @ np.linalg.solve(
        evaluate(kernel, centres) + noise * np.eye(n), y
    )
    known = known >= 0.0
    sets = [
        private.paths.set_params(random_state=j).fit(centres, y)
        .excursion(centres, 0.0, smoothing=FILTER).inside
        for j in range(PATHS)
    ]  # fmt: skip
    found = float(np.mean([overlap(inside, known) for inside in sets]))
    text = (
        f"{n} hexagons with a sale (the paper: 1,075 of 2018, which is not in these data). One path "
        f"each, epsilon 10, delta n^-1.1, smoothed over {FILTER} of the width: mean overlap with "
        f"the posterior's own set {found:.2f}.",
    )
    result = Result("IoU of one path with the open set, London", None, None, found)
    return [result], Section(title, text, _picture(centres, known, sets))


def _resampled(centres: Array, y: Array, records: int, count: int) -> PriorDraws:
    """Datasets of as many records as there will be, drawn from older hexagons."""
    rng = np.random.default_rng(2017)
    rows = rng.integers(len(y), size=(count, records))
    return PriorDraws(centres[rows], y[rows], centres, np.tile(y, (count, 1)))


def _flats(file: Path) -> pl.DataFrame:
    """Leasehold flats of Greater London, and flats of unknown tenure from 2013 on."""
    with gzip.open(file) as stream:
        table = pl.read_csv(stream.read())
    return table.filter(
        (pl.col("type") == "F") & (pl.col("greater_london") == 1)
        & ((pl.col("tenure") == "L") | ((pl.col("source") == "smith") & (pl.col("date") >= "2013")))
    )  # fmt: skip


def _frame(table: pl.DataFrame) -> tuple[Array, float]:
    """The south-west corner and the width of the square that holds all flats."""
    place = table.select("easting", "northing").to_numpy().astype(float)
    low, high = place.min(axis=0), place.max(axis=0)
    return low, float((high - low).max())


def _hexagons(flats: pl.DataFrame, frame: tuple[Array, float]) -> tuple[Array, Array]:
    """Centres in the unit square and clipped median log prices about the threshold."""
    place = (flats.select("easting", "northing").to_numpy().astype(float) - frame[0]) / frame[1]
    width = 1.0 / ACROSS
    height = width * sqrt(3.0)
    # two shifted rectangular lattices: the nearer centre is that of the hexagon
    options = []
    for shift in (0.0, 0.5):
        index = np.round(place / (width, height) - shift)
        options.append((index + shift) * (width, height))
    away = [((place - centre) ** 2).sum(axis=1) for centre in options]
    nearest = np.where((away[0] <= away[1])[:, None], options[0], options[1])
    cells, member = np.unique(np.round(nearest, 9), axis=0, return_inverse=True)
    prices = np.log(flats["price"].to_numpy().astype(float))
    medians = np.array([np.median(prices[member.ravel() == k]) for k in range(len(cells))])
    return np.clip(cells, 0.0, 1.0), np.clip((medians - THRESHOLD) / CLIP, -1.0, 1.0)


def _picture(centres: Array, known: Any, sets: list[Any]) -> Figure:
    figure = style.new_figure(4.2)
    ax = figure.subplots()
    ax.plot(*centres[~known].T, ".", color=style.SKY, ms=2, label="below, without privacy")
    ax.plot(*centres[known].T, "h", color=style.ORANGE, ms=4, label="at least 13, without privacy")
    for k, inside in enumerate(sets):
        if 0 < inside.sum() < len(inside):
            ax.tricontour(centres[:, 0], centres[:, 1], inside.astype(float), levels=[0.5], colors=style.BLUE,
                linewidths=0.9, linestyles="--")  # fmt: skip
        ax.plot([], [], "--", color=style.BLUE, lw=0.9, label="private paths" if k == 0 else None)
    ax.set_aspect("equal")
    style.set_title(ax, "London, epsilon 10: boundaries of single private paths", simulation=True)
    style.legend([ax], below=True)
    return figure
