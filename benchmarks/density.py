"""Where private points lie: PrivateGPDensity beside Laplace histograms with the best bins in hindsight.

Run as ``python -m benchmarks.density [SEEDS [FIRST]]``. Total variation distances are those of the masses of 64
cells on a line and of 20 x 20 cells in a plane. A real pattern is a table of points that a release's
points are drawn from, with replacement: as for a synthetic one, its distribution is the truth, about which
points scatter. What every release showed is kept in ``benchmarks/measured``, and the
table in docs/density.md is written from it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks.calibration_page import DOCS, filled
from privgp import PrivateGPDensity
from privgp.plan.bins.points import LEAST_TOLD
from privgp.types import Array

KEPT, PAGE = Path(__file__).resolve().parent / "measured" / "density.json", DOCS / "density.md"
DATA = Path(__file__).parent.parent.parent / "shared" / "data"
CELLS = {1: 64, 2: 20}
EPSILON = 1.0
HISTOGRAMS = {
    1: (4, 6, 8, 12, 16, 24, 32, 48, 64, 96),
    2: (2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 28),
}
FINE = {1: 64 * 60, 2: 20 * 12}  # points per axis that masses are summed over
MANY = 400_000  # draws that tell the masses of a pattern


@dataclass(frozen=True)
class Pattern:
    """Points to be released: how they are drawn, and what the masses of the cells are."""

    name: str
    bounds: tuple[tuple[float, float], ...]
    draw: Callable[[np.random.Generator, int], Array]
    count: int

    def masses(self) -> Array:
        """The truth in every cell."""
        points = self.draw(np.random.default_rng(10**6), MANY)
        return shares(points, self.bounds, CELLS[len(self.bounds)])


def shares(points: Array, bounds: tuple[tuple[float, float], ...], cells: int) -> Array:
    """The share of points in the cells of a grid, (cells ** inputs,)."""
    low, high = np.array(bounds).T
    places = np.clip((points - low) / (high - low) * cells, 0, cells - 1).astype(int)
    keys = np.ravel_multi_index(tuple(places.T), (cells,) * len(bounds))
    return np.bincount(keys, minlength=cells ** len(bounds)) / len(points)


def distance(one: Array, other: Array) -> float:
    """The total variation distance of two distributions over cells."""
    return 0.5 * float(np.abs(one - other).sum())


def _bumps(rng: np.random.Generator, n: int) -> Array:
    first = rng.uniform(size=n) < 0.6
    return np.where(first, rng.normal(0.3, 0.06, n), rng.normal(0.72, 0.1, n)).clip(0, 1)[:, None]


def _skewed(rng: np.random.Generator, n: int) -> Array:
    return rng.beta(1.5, 6.0, n)[:, None]


def _three(rng: np.random.Generator, n: int) -> Array:
    centres = np.array([[0.3, 0.3], [0.7, 0.4], [0.5, 0.75]])
    which = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    return (centres[which] + rng.normal(0, 0.1, (n, 2))).clip(0, 1)


def _band(rng: np.random.Generator, n: int) -> Array:
    x = rng.uniform(size=n)
    return np.column_stack([x, 0.5 + 0.3 * np.sin(2 * np.pi * x) + rng.normal(0, 0.025, n)])


def _table(name: str, columns: tuple[str, str]) -> Callable[[np.random.Generator, int], Array]:
    def draw(rng: np.random.Generator, n: int) -> Array:
        table = pl.read_csv(DATA / name, columns=list(columns)).select(columns).to_numpy()
        return np.asarray(table[rng.integers(len(table), size=n)])

    return draw


UNIT = ((0.0, 1.0),)
PATTERNS = (
    Pattern("two bumps on a line", UNIT, _bumps, 1000),
    Pattern("a skewed distribution on a line", UNIT, _skewed, 1000),
    Pattern("three bumps in a square", UNIT * 2, _three, 1000),
    Pattern("a narrow winding band in a square", UNIT * 2, _band, 1000),
    Pattern(
        "starts of bicycle trips",
        ((40.65, 40.80), (-74.05, -73.93)),
        _table("citibike_201606_systematic.csv", ("start_lat", "start_lon")),
        1460,
    ),
    Pattern(
        "homes of children in 65 villages",
        ((340_000.0, 630_000.0), (1_450_000.0, 1_520_000.0)),
        _table("gambia_malaria.csv", ("x", "y")),
        2035,
    ),
)


def histogram(rng: np.random.Generator, points: Array, pattern: Pattern, bins: int) -> Array:
    """The masses of the cells by a Laplace histogram: negative counts are 0, the rest adds up to 1."""
    counts = shares(points, pattern.bounds, bins) * len(points)
    noisy = np.maximum(counts + rng.laplace(0.0, 2.0 / EPSILON, counts.shape), 0.0)
    noisy = noisy / max(noisy.sum(), 1e-9)
    inputs, cells = len(pattern.bounds), CELLS[len(pattern.bounds)]
    edges, ends = np.linspace(0, 1, bins + 1), np.linspace(0, 1, cells + 1)
    low, high = np.maximum.outer(ends[:-1], edges[:-1]), np.minimum.outer(ends[1:], edges[1:])
    share = np.maximum(high - low, 0.0) * bins  # of every bin in every cell
    grid = noisy.reshape((bins,) * inputs)
    for axis in range(inputs):
        grid = np.moveaxis(np.tensordot(share, grid, (1, axis)), 0, axis)
    return np.asarray(grid.ravel())


def released(model: PrivateGPDensity, pattern: Pattern) -> tuple[Array, float]:
    """The masses of the cells by a release, and the sum of all before it is made 1."""
    inputs, cells = len(pattern.bounds), CELLS[len(pattern.bounds)]
    fine = FINE[inputs]
    axes = [low + (high - low) * (np.arange(fine) + 0.5) / fine for low, high in pattern.bounds]
    grid = np.stack([each.ravel() for each in np.meshgrid(*axes, indexing="ij")], axis=1)
    density = np.concatenate(
        [np.exp(model.score_samples(part)) for part in np.array_split(grid, 20)]
    )
    masses = density.reshape((cells, fine // cells) * inputs)
    masses = masses.sum(axis=tuple(range(1, 2 * inputs, 2)))
    volume = np.prod([(high - low) / fine for low, high in pattern.bounds])
    return np.asarray((masses / masses.sum()).ravel()), float(masses.sum() * volume)


def compare(pattern: Pattern, seed: int) -> dict[str, Any]:
    """Of one release: its distance, those of histograms by their bins, coverage, and how far the sum of all
    masses is from 1."""
    truth, inputs = pattern.masses(), len(pattern.bounds)
    rng = np.random.default_rng(1000 + seed)
    points = pattern.draw(rng, pattern.count)
    rivals = [
        float(np.mean([distance(histogram(rng, points, pattern, bins), truth) for _ in range(10)]))
        for bins in HISTOGRAMS[inputs]
    ]
    model = PrivateGPDensity(x_bounds=pattern.bounds, epsilon=EPSILON, random_state=seed)
    masses, whole = released(model.fit(points), pattern)
    every, filled, share = coverage(model, pattern, truth)
    return {
        "seed": seed,
        "distance": distance(masses, truth),
        "histograms": rivals,
        "covered": every,
        "covered_filled": filled,
        "filled": share,
        "off": abs(whole - 1.0),
    }


def coverage(model: PrivateGPDensity, pattern: Pattern, truth: Array) -> tuple[float, float, float]:
    """How many of 90% intervals at the centres of cells hold the mean intensity of the cell: of all cells, and
    of those where at least half a point is expected; and the share of the latter. An interval of an empty cell
    begins at 0, and holds it, whatever its width."""
    cells = CELLS[len(pattern.bounds)]
    axes = [low + (high - low) * (np.arange(cells) + 0.5) / cells for low, high in pattern.bounds]
    grid = np.stack([each.ravel() for each in np.meshgrid(*axes, indexing="ij")], axis=1)
    volume = np.prod([(high - low) / cells for low, high in pattern.bounds])
    low, high = model.interval(grid)
    mean = truth * pattern.count / volume
    held, filled = (low <= mean) & (mean <= high), truth * pattern.count >= LEAST_TOLD
    return float(held.mean()), float(held[filled].mean()), float(filled.mean())


Results = dict[str, list[dict[str, Any]]]


def table(results: Results) -> str:
    """Means over releases: histograms have the number of bins with the least mean."""
    lines = [
        "| points | number | privgp | best histogram | 90% intervals cover | of cells that hold points |",
        "|---|---|---|---|---|---|",
    ]
    for pattern in PATTERNS:
        each = results[pattern.name]
        keys = ("distance", "covered", "covered_filled", "filled")
        ours, covered, of_filled, filled = (np.mean([one[key] for one in each]) for key in keys)
        best = np.mean([one["histograms"] for one in each], axis=0).min()
        numbers = f"{pattern.count:,} | {ours:.3f} | {best:.3f} | {covered:.0%}"
        numbers += f" | {of_filled:.0%} of {filled:.0%}"
        lines.append(f"| {pattern.name} | {numbers} |")
    seeds = [int(one["seed"]) for one in each]
    asked = f"python -m benchmarks.density {len(seeds)} {seeds[0]}"
    return "\n".join([*lines, "", f"Means of {len(seeds)} releases of each (`{asked}`)."])


def main() -> None:
    count, first = (int(each) for each in (*sys.argv[1:3], *("4", "0")[len(sys.argv) - 1 :]))
    results: Results = {pattern.name: [] for pattern in PATTERNS}
    for seed in range(first, first + count):
        for pattern in PATTERNS:
            results[pattern.name].append(compare(pattern, seed))
        KEPT.write_text(json.dumps(results) + "\n", encoding="utf-8")
        page = filled(PAGE.read_text("utf-8"), f"{table(results)}\n")
        PAGE.write_text(page, encoding="utf-8")
    print(table(results))


if __name__ == "__main__":
    main()
