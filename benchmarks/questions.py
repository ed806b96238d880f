"""What people ask of a release: how often bands hold whole curves, and intervals the means of districts.

``python -m benchmarks.questions [--releases N] [--first SEED] [--only NAME ...] [--out FILE]`` measures
simulated (seeded) releases with all defaults at epsilon 1, delta 1e-5, on functions of
``benchmarks.functions``, writes what every release showed into ``benchmarks/measured`` and
tables of it into docs/averages.md. Curves are those whose
pointwise intervals are calibrated in ``benchmarks/measured/calibration.json``; maps are all of them, cut
into 5 x 5 districts, whose 300 differences are asked too.
"""

from __future__ import annotations

import argparse
import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.calibration_page import DOCS, filled
from benchmarks.functions import BOUNDS, RANGE, TRUTHS, Truth
from privgp import PrivateGPRegressor

KEPT = Path(__file__).resolve().parent / "measured"
# Of pointwise intervals; with ten releases, the least share of many places is 0.6 to 0.7 where 0.9 is right.
CALIBRATED, WORST_PLACE = (0.85, 0.95), 0.6
SIDE, FINE = 5, 30  # districts along a side of a map, and points along a side of a district
SEED = 70_000
PAGE = DOCS / "averages.md"
Results = dict[str, list[dict[str, float]]]


def truths() -> tuple[Truth, ...]:
    """Curves with calibrated pointwise intervals, and all maps."""
    known = json.loads((KEPT / "calibration.json").read_text("utf-8"))

    def calibrated(name: str) -> bool:
        low, high = CALIBRATED
        one = known[name]
        return bool(low <= one["coverage"] <= high and one["worst_place"] >= WORST_PLACE)

    return tuple(each for each in TRUTHS if each.columns == 2 or calibrated(each.name))


def ask(truth: Truth, seed: int) -> dict[str, float]:
    """What one release of a function holds, as shares. Rows and noise are its own: releases of other
    functions with the same seed tell something new."""
    rng = np.random.default_rng([SEED + seed, TRUTHS.index(truth)])
    X, y = truth.sample(rng)
    noise = int(rng.integers(2**31))
    model = PrivateGPRegressor(y_bounds=BOUNDS, epsilon=1.0, delta=1e-5, random_state=noise)
    model.fit(X, y)
    return (_curve if truth.columns == 1 else _districts)(model, truth)


def _curve(model: PrivateGPRegressor, truth: Truth) -> dict[str, float]:
    places, goal = truth.places(), truth.f(truth.places())
    low, high = model.interval(places)
    all_low, all_high = model.interval(places, simultaneous=True)
    return {
        "points": float(np.mean((low <= goal) & (goal <= high))),
        "band": float(np.all((all_low <= goal) & (goal <= all_high))),
        "width": float(np.mean(all_high - all_low) / np.mean(high - low)),
    }


def _districts(model: PrivateGPRegressor, truth: Truth) -> dict[str, float]:
    steps = RANGE * (np.arange(SIDE * FINE) + 0.5) / (SIDE * FINE)
    at = np.stack(np.meshgrid(steps, steps, indexing="ij"), axis=-1).reshape(-1, 2)
    district = (at // (RANGE / SIDE) @ [SIDE, 1]).astype(int)
    goal = np.bincount(district, truth.f(at)) / np.bincount(district)
    found = model.average(at, by=district)
    goal = goal[np.array(found.labels)]
    gaps = []
    for i, j in itertools.combinations(range(len(goal)), 2):
        gap = found.difference(found.labels[i], found.labels[j])
        gaps.append(gap.low <= goal[i] - goal[j] <= gap.high)
    return {
        "districts": float(np.mean((found.low <= goal) & (goal <= found.high))),
        "differences": float(np.mean(gaps)),
    }


ASKED = (("curve", ("points", "band")), ("map", ("districts", "differences")))
HEADINGS = {
    "points": "at one place",
    "band": "the whole curve",
    "districts": "districts",
    "differences": "differences",
}


def tables(results: Results) -> str:
    """Shares that held, of curves and of maps, with standard errors of the means."""
    return "\n".join(_table(what, results, asked) for what, asked in ASKED)


def _table(what: str, results: Results, asked: tuple[str, ...]) -> str:
    known = {name: each for name, each in results.items() if asked[0] in each[0]}
    lines = [
        f"| {what} | releases | {' | '.join(HEADINGS[each] for each in asked)} |",
        "|---|---|---|---|",
    ]
    for name, each in known.items():
        means = [float(np.mean([one[key] for one in each])) for key in asked]
        lines.append(f"| {name} | {len(each)} | {' | '.join(f'{mean:.0%}' for mean in means)} |")
    every = [one for each in known.values() for one in each]
    cells = []
    for key in asked:
        found = [one[key] for one in every]
        error = np.std(found, ddof=1) / np.sqrt(len(found))
        cells.append(f"{np.mean(found):.1%} ± {error:.1%}")
    return "\n".join([*lines, f"| all | {len(every)} | {' | '.join(cells)} |", ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--releases", type=int, default=20, help="per function")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--only", nargs="+", help="functions; others stay as known")
    parser.add_argument("--out", type=Path, default=KEPT / "questions.json")
    arguments = parser.parse_args()
    chosen = [each for each in truths() if not arguments.only or each.name in arguments.only]
    known = json.loads(arguments.out.read_text("utf-8")) if arguments.out.exists() else {}
    results: dict[str, Any] = {
        each.name: [] if each in chosen else known[each.name]
        for each in truths()
        if each in chosen or each.name in known
    }
    for seed in range(arguments.first, arguments.first + arguments.releases):
        for truth in chosen:
            results[truth.name].append(ask(truth, seed))
    arguments.out.write_text(json.dumps(results) + "\n", encoding="utf-8")
    print(tables(results))
    if arguments.out == KEPT / "questions.json":
        PAGE.write_text(filled(PAGE.read_text("utf-8"), tables(results)), encoding="utf-8")


if __name__ == "__main__":
    main()
