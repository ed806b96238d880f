"""Where flats in Greater London sell above exp(13): hexagons of 2019, settings from older sales.

Figure 4 of Maciazek 2026, whose flats of 2018 and 2017 are not in these data.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist

from papers.excursion.tasks import best_cutoff, overlap, posteriors
from papers.shared.data import MissingData
from privgp.models.function.tune import ExcursionTask, PriorDraws, Tuned, tune_for
from privgp.types import Array

FILE, THRESHOLD, CLIP = "london_prices.csv.gz", 13.0, 1.0
ACROSS = 45  # hexagons from west to east
EPSILON, FILTER = 10.0, 0.05


@dataclass(frozen=True)
class London:
    """Hexagons, the posterior's own set, and single private paths at the hexagons.

    ``excess`` is the excursion probability less its cutoff; ``papers`` and ``default`` are values of
    paths, (paths, hexagons), by the paper's method and by the default.
    """

    centres: Array = field(repr=False)
    y: Array = field(repr=False)
    excess: Array = field(repr=False)
    papers: Array = field(repr=False)
    default: Array = field(repr=False)
    kilometres: float  # from west to east

    @property
    def known(self) -> Any:
        return self.excess >= 0.0

    @property
    def parts(self) -> list[Any]:
        """The connected parts of the posterior's own set, the largest first, as index arrays."""
        inside = np.flatnonzero(self.known)
        near = cdist(self.centres[inside], self.centres[inside]) < 1.2 / ACROSS
        count, member = connected_components(near, directed=False)
        return sorted((inside[member == k] for k in range(count)), key=len, reverse=True)

    def kept(self, paths: Array) -> tuple[float, float, float]:
        """Means over paths: overlap with the open set; shares of the largest part and of islands kept.

        An island counts as kept if at least half of its hexagons are inside.
        """
        first, *islands = self.parts
        sets = paths >= 0.0
        seen = [[inside[island].mean() >= 0.5 for island in islands] for inside in sets]
        return (
            float(overlap(sets, self.known).mean()),
            float(sets[:, first].mean()),
            float(np.mean(seen)) if islands else float("nan"),
        )


@dataclass(frozen=True)
class LondonTask:
    """Where the data lie, and whether a short run is enough."""

    data: Path | None
    quick: bool

    def run(self) -> London | None:
        """None where the data are not."""
        file = None if self.data is None else Path(self.data) / FILE
        if file is None or not file.exists():
            return None
        return mapped(flats(file), draws=1 if self.quick else 6, paths=6 if self.quick else 30)


def mapped(table: pl.DataFrame, draws: int, paths: int) -> London:
    """Settings are chosen on older sales: they are public here, as those of 2017 are in the paper.

    The paper's method chooses by cross-entropy under its generic bound and thresholds paths as they
    are; the default chooses for a path and smooths it over FILTER of the width.
    """
    box = frame(table)
    centres, y = hexagons(table.filter(pl.col("source") == "lbs2019"), box)
    law = {"domain": [(0.0, 1.0)] * 2, "y_bounds": (-1.0, 1.0), "delta": len(y) ** -1.1}
    older = hexagons(table.filter(pl.col("source") != "lbs2019"), box)
    known = _resampled(*older, len(y), draws)
    entropy = ExcursionTask(score="cross-entropy")

    def tuned(task: ExcursionTask, epsilon: float | None, sensitivity: str) -> Tuned:
        rounds = 0 if draws == 1 else 1
        return tune_for(task, known, epsilon, sensitivity=sensitivity, rounds=rounds, **law)

    def released(found: Tuned, smoothing: float | None) -> Array:
        return np.array([
            found.paths.set_params(random_state=j).fit(centres, y)
            .excursion(centres, 0.0, smoothing=smoothing).paths[0]
            for j in range(paths)
        ])  # fmt: skip

    free = tuned(entropy, None, "paper")
    now = PriorDraws(centres[None], y[None], centres, y[None])
    return London(
        centres, y, posteriors(now, free).probability[0] - best_cutoff(known, free),
        released(tuned(entropy, EPSILON, "paper"), None),
        released(tuned(ExcursionTask(), EPSILON, "auto"), FILTER), box[1] / 1000.0,
    )  # fmt: skip


def _resampled(centres: Array, y: Array, records: int, count: int) -> PriorDraws:
    """Datasets of as many records as there will be, drawn from older hexagons."""
    rng = np.random.default_rng(2017)
    rows = rng.integers(len(y), size=(count, records))
    return PriorDraws(centres[rows], y[rows], centres, np.tile(y, (count, 1)))


def flats(file: Path) -> pl.DataFrame:
    """Leasehold flats of Greater London, and flats of unknown tenure from 2013 on."""
    known = (pl.col("tenure") == "L") | ((pl.col("source") == "smith") & (pl.col("date") >= "2013"))
    try:
        return pl.read_csv(file).filter(
            (pl.col("type") == "F") & (pl.col("greater_london") == 1) & known
        )
    except (OSError, pl.exceptions.PolarsError):
        raise MissingData(f"'{file}' cannot be read as the table it should be.") from None


def frame(table: pl.DataFrame) -> tuple[Array, float]:
    """The south-west corner and the width of the square that holds all flats."""
    place = table.select("easting", "northing").to_numpy().astype(float)
    low, high = place.min(axis=0), place.max(axis=0)
    return low, float((high - low).max())


def hexagons(sold: pl.DataFrame, box: tuple[Array, float]) -> tuple[Array, Array]:
    """Centres in the unit square and clipped median log prices about the threshold."""
    place = (sold.select("easting", "northing").to_numpy().astype(float) - box[0]) / box[1]
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
    prices = np.log(sold["price"].to_numpy().astype(float))
    medians = np.array([np.median(prices[member.ravel() == k]) for k in range(len(cells))])
    return np.clip(cells, 0.0, 1.0), np.clip((medians - THRESHOLD) / CLIP, -1.0, 1.0)
