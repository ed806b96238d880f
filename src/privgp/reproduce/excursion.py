"""Excursion sets from one private sample path: tables 1, 3 and 4 of the paper, and London.

Paper's method: its bounds, settings chosen by cross-entropy. Default: the least proved bounds,
settings chosen for one path, and a filter over the path chosen on synthetic data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from privgp.models.regressor import PrivateGPRegressor
from privgp.models.tune import ExcursionTask, Tuned, tune_for
from privgp.plan.tuning import PriorDraws
from privgp.reproduce.excursion_london import london
from privgp.reproduce.excursion_tasks import (
    best_cutoff,
    best_smoothing,
    line_draws,
    overlap,
    path_overlaps,
    plume_draws,
    posterior_overlaps,
)
from privgp.reproduce.report import Report, Request, Result, Section

EPSILON = 10.0
NOISES, FREE = (0.1, 0.3, 0.5, 0.6), (0.957, 0.922, 0.874, 0.844)
ONE_PATH = (0.854, 0.833, 0.801, 0.772)
SIZES = {50: (0.852, 0.727), 100: (0.874, 0.797), 200: (0.888, 0.835), 400: (0.913, 0.874)}
PLUMES = {0.1: (0.979, 0.824), 0.3: (0.950, 0.800), 0.5: (0.908, 0.776)}
LINE_FILTERS, PLANE_FILTERS = (None, 0.01, 0.02, 0.04), (None, 0.03, 0.06, 0.1)


@dataclass(frozen=True)
class Effort:
    """How many draws: to tune on, to choose filters on, to judge on; how many paths for each."""

    tuned: int
    chosen: int
    judged: int
    repeats: int
    fitted: int


FULL, QUICK = Effort(100, 100, 1000, 20, 100), Effort(12, 12, 40, 5, 3)
FULL_LARGE, QUICK_LARGE = Effort(24, 24, 200, 20, 20), Effort(5, 5, 12, 5, 1)


@dataclass(frozen=True)
class Row:
    """Medians over the judged draws at one setting; ``spread``: std over paths of one dataset.

    ``regressor`` and ``path_there``: over those draws to which the regressor was fitted.
    """

    free: float
    papers: float
    papers_for_a_path: float
    default: float
    spread: float
    regressor: float
    path_there: float
    tuned: Tuned


def run(request: Request) -> Report:
    """Tables 1, 3 and 4 and, where the data are, the map of London."""
    small, large = (QUICK, QUICK_LARGE) if request.quick else (FULL, FULL_LARGE)
    results: list[Result] = []
    done = iter(np.linspace(0.0, 0.95, 12))
    lines: dict[tuple[int, float], Row] = {}
    for noise, free, path in zip(NOISES, FREE, ONE_PATH, strict=True):
        request.progress(float(next(done)), f"table 1, noise {noise}")
        row = lines[100, noise] = judged(_line(100, noise), small, _law(1, 0.005), LINE_FILTERS)
        results += _results(f"noise to signal {noise / (1.0 - noise):.2f}", free, path, row)
    for size, (free, path) in SIZES.items():
        if size == 100 or (request.quick and size > 50):
            continue
        request.progress(float(next(done)), f"table 3, {size} records")
        effort = small if size < 200 else large
        row = lines[size, 0.5] = judged(_line(size, 0.5), effort, _law(1, 0.5 / size), LINE_FILTERS)
        results += _results(f"{size} records, noise to signal 1.00", free, path, row)
    for noise, (free, path) in PLUMES.items():
        if request.quick and noise != 0.5:
            continue
        request.progress(float(next(done)), f"table 4, noise {noise}")
        records, side = (100, 10) if request.quick else (400, 20)
        plane = judged(_plane(records, noise, side), large, _law(2, 0.001), PLANE_FILTERS)
        results += _results(
            f"two inputs, noise to signal {noise / (1.0 - noise):.2f}", free, path, plane
        )
    sections = [Section("Which to take", _advice(lines))]
    request.progress(0.95, "London")
    more, section = london(request)
    return Report(
        "excursion", "Excursion sets from one private sample path",
        (*results, *more), (*sections, section),
    )  # fmt: skip


def judged(
    draw: Callable[[int, np.random.Generator], PriorDraws], effort: Effort, law: dict[str, object],
    filters: tuple[float | None, ...],
) -> Row:  # fmt: skip
    """Tune on some draws, choose cutoff and filter on others, judge on a third lot."""
    rng = np.random.default_rng(20260616)
    known, chosen, fresh = (draw(n, rng) for n in (effort.tuned, effort.chosen, effort.judged))
    entropy, one_path = ExcursionTask(score="cross-entropy"), ExcursionTask(score="path")

    def tuned(task: ExcursionTask, epsilon: float | None, sensitivity: str) -> Tuned:
        return tune_for(task, known, epsilon, sensitivity=sensitivity, rounds=1, **law)  # type: ignore[arg-type]

    def one(setting: Tuned) -> float:
        return float(np.median(path_overlaps(fresh, setting, effort.repeats, None, rng)[0]))

    free = tuned(entropy, None, "auto")
    best = tuned(one_path, EPSILON, "auto")
    smoothing = best_smoothing(chosen, best, filters, rng)
    means, stds = path_overlaps(fresh, best, effort.repeats, smoothing, rng)
    return Row(
        float(np.median(posterior_overlaps(fresh, free, best_cutoff(chosen, free)))),
        one(tuned(entropy, EPSILON, "paper")),
        one(tuned(one_path, EPSILON, "paper")),
        float(np.median(means)),
        float(np.median(stds)),
        _regressor(fresh, effort.fitted, law),
        float(np.median(means[: effort.fitted])),
        best,
    )


def _regressor(draws: PriorDraws, count: int, law: dict[str, object]) -> float:
    """The same sets from PrivateGPRegressor(protect="records") at the same budget."""
    found = []
    for j in range(min(count, len(draws.truth))):
        model = PrivateGPRegressor(
            protect="records", x_bounds=law["domain"], y_bounds=law["y_bounds"], epsilon=EPSILON,
            delta=float(str(law["delta"])), random_state=j,
        ).fit(draws.inputs[j], draws.outputs[j])  # fmt: skip
        found.append(overlap(model.predict(draws.points) >= 0.0, draws.truth[j] >= 0.0))
    return float(np.median(found))


def _results(where: str, free: float, path: float, row: Row) -> list[Result]:
    return [
        Result(f"IoU without privacy, {where}", free, row.free, None),
        Result(f"IoU of one path, {where}", path, row.papers, row.default),
        Result(f"IoU of one path, settings chosen for a path, {where}", path, row.papers_for_a_path,
            row.default),
        Result(f"std of that IoU over paths, {where}", None, None, row.spread),
        Result(f"IoU of PrivateGPRegressor for records, {where}", None, None, row.regressor),
        Result(f"IoU of one path on the same data, {where}", None, None, row.path_there),
    ]  # fmt: skip


def _line(records: int, noise: float) -> Callable[[int, np.random.Generator], PriorDraws]:
    return lambda count, rng: line_draws(count, records, noise, 200 if count > 150 else 100, rng)


def _plane(
    records: int, noise: float, side: int
) -> Callable[[int, np.random.Generator], PriorDraws]:
    return lambda count, rng: plume_draws(count, records, noise, side, rng)


def _law(inputs: int, delta: float) -> dict[str, object]:
    return {"domain": [(0.0, 1.0)] * inputs, "y_bounds": (-1.0, 1.0), "delta": delta}


def _advice(rows: dict[tuple[int, float], Row]) -> tuple[str, ...]:
    said = [
        f"{size} records, noise {noise}: one path {row.path_there:.3f}, regressor "
        f"{row.regressor:.3f} on the same data; one path {row.default:.3f}, no privacy "
        f"{row.free:.3f} on all."
        for (size, noise), row in rows.items()
    ]
    return (
        "Median overlap (intersection over union) of the released set with the true one, whole "
        "records private, epsilon 10. One path at its best setting against the mean of "
        "PrivateGPRegressor(protect='records') with learned hyperparameters:",
        *said,
        "Table 1 has delta 0.005, table 3 delta 0.5/n, table 4 delta 0.001. The paper does not say "
        "how wide or steep its plumes are, so table 4 compares trends.",
    )
