"""One setting of the excursion tables: tuned, judged, and summed up over many datasets.

Paper's method: settings chosen by cross-entropy under the bound of the author's scripts, the lemma's
divided by the root of 2; with two inputs a filter over the path of 2 of 60 pixels. With one input that
bound is proved (docs/proofs/paths.md); with two it is false, and serves the comparison only. Default:
the least proved bounds, settings chosen for one path, a filter chosen on synthetic data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from papers.excursion.printed import (
    DIMENSION,
    ENTROPY,
    EPSILON,
    GAP,
    OPEN,
    PATH,
    PRIVATE_DIMENSION,
    SPREAD,
    Cell,
)
from papers.excursion.tasks import (
    GRID,
    Judged,
    Known,
    best_cutoff,
    best_smoothing,
    first,
    line_draws,
    overlap,
    path_overlaps,
    plume_draws,
    posteriors,
    thin,
)
from privgp.models.function.tune import ExcursionTask, Tuned, tune_for
from privgp.models.regressor import PrivateGPRegressor
from privgp.types import Array

BUDGET, ROUNDS = 10.0, 2
TUNED_POINTS = 100  # of those on which a function is known, for the cross-entropy of settings
SCRIPT_FILTER = 2.0 / 60.0
# Bounds are proportional to the outputs': the scripts' bound is the lemma's for outputs within this.
SCRIPT_REACH = math.sqrt(0.5)
LINE_FILTERS, PLANE_FILTERS = (None, 0.01, 0.02, 0.04), (None, 0.03, 0.06, 0.1)
# The paper prints no ranges for its search: these are those of public scripts of its author, ours
# reach further
LINE_SEARCH: dict[str, Any] = {
    "lengthscales": np.geomspace(0.08, 1.0, 7),
    "regularisations": np.geomspace(0.05, 5.0, 12),
}
PLANE_SEARCH: dict[str, Any] = {
    "lengthscales": np.geomspace(0.05, 0.5, 6),
    "regularisations": np.geomspace(0.25, 8.0, 12),
}


@dataclass(frozen=True)
class Effort:
    """How many draws: to tune on, to choose filters on, to judge on; how many paths for each."""

    tuned: int
    chosen: int
    judged: int
    repeats: int
    fitted: int


@dataclass(frozen=True)
class Setting:
    """What is measured: a line (``side`` 0) or a square with side^2 points, records, noise M, delta."""

    records: int
    noise: float
    delta: float
    effort: Effort
    side: int = 0

    @property
    def ratio(self) -> float:
        """Noise to signal."""
        return self.noise / (1.0 - self.noise)

    @property
    def law(self) -> dict[str, Any]:
        box = [(0.0, 1.0)] * (2 if self.side else 1)
        return {"domain": box, "y_bounds": (-1.0, 1.0), "delta": self.delta}

    @property
    def points(self) -> tuple[int, int]:
        """On how many points settings are tuned, and on how many sets are judged."""
        return (self.side**2, self.side**2) if self.side else (TUNED_POINTS, GRID)

    def draw(self, count: int, rng: np.random.Generator) -> Known:
        if self.side:
            return plume_draws(count, self.records, self.noise, self.side, rng)
        return line_draws(count, self.records, self.noise, GRID, rng, author_rule=True)

    def run(self) -> Row:
        return judged(self)


@dataclass(frozen=True)
class Release:
    """How one path is made into a set: a tuned setting and a filter."""

    tuned: Tuned
    smoothing: float | None


@dataclass(frozen=True)
class Row:
    """``papers`` and ``default``: quantity -> median and quartiles over the judged draws.

    ``regressor`` and ``path_there``: medians over those draws to which the regressor was fitted.
    """

    setting: Setting
    papers: dict[str, Cell]
    default: dict[str, Cell]
    papers_for_a_path: float
    regressor: float
    path_there: float
    free: Tuned
    cutoff: float
    papers_release: Release
    default_release: Release


def judged(setting: Setting) -> Row:
    """Tune on some draws, choose cutoff and filters on others, judge on a third lot."""
    rng, effort = np.random.default_rng(20260616), setting.effort
    drawn, chosen, fresh = (
        setting.draw(n, rng) for n in (effort.tuned, effort.chosen, effort.judged)
    )
    known = thin(drawn, setting.points[0])
    entropy, one_path = ExcursionTask(score="cross-entropy"), ExcursionTask(score="path")

    ranges = PLANE_SEARCH if setting.side else LINE_SEARCH

    def tuned(task: ExcursionTask, epsilon: float | None, grid: dict[str, Any]) -> Tuned:
        law = {**setting.law, "y_bounds": (-SCRIPT_REACH, SCRIPT_REACH)}
        return tune_for(task, known, epsilon, sensitivity="paper", rounds=ROUNDS, **grid, **law)

    def paths(made: Release) -> tuple[Array, Array]:
        return path_overlaps(fresh, made.tuned, effort.repeats, made.smoothing, rng)

    free = tuned(entropy, None, ranges)
    proved = clone(free.paths).set_params(sensitivity="auto", y_bounds=setting.law["y_bounds"])
    sharper = proved.guarantee_for(setting.records)
    cutoff = best_cutoff(chosen, free)
    alone = posteriors(fresh, free)
    best = overlap(alone.probability >= cutoff, fresh.truth >= 0.0)
    theirs = Release(tuned(entropy, BUDGET, ranges), SCRIPT_FILTER if setting.side else None)
    least = tune_for(one_path, known, BUDGET, rounds=ROUNDS, **setting.law)
    filters = PLANE_FILTERS if setting.side else LINE_FILTERS
    ours = Release(least, best_smoothing(chosen, least, filters, rng))
    in_between = Release(tuned(one_path, BUDGET, {}), None)
    private, default_one = (posteriors(fresh, made.tuned) for made in (theirs, ours))
    papers = _private(private, paths(theirs), best)
    default = _private(default_one, paths(ours), best)
    rise = private.loss / alone.loss - 1.0
    open_ones = {
        EPSILON: (free.epsilon,), DIMENSION: middle(alone.dimension), OPEN: middle(best),
        ENTROPY: middle(100.0 * rise),
    }  # fmt: skip
    here, path_there = _regressor(fresh, setting, ours, rng)
    return Row(
        setting, {**open_ones, **papers}, {EPSILON: (sharper.epsilon,), **default},
        float(np.median(paths(in_between)[0])), here, path_there, free, cutoff, theirs, ours,
    )  # fmt: skip


def middle(values: Any) -> Cell:
    """The median and the quartiles."""
    low, median, high = np.quantile(values, (0.25, 0.5, 0.75)).tolist()
    return median, low, high


def _private(posterior: Judged, found: tuple[Array, Array], best: Array) -> dict[str, Cell]:
    """What of a table is about the private paths; the gap is taken dataset by dataset."""
    means, stds = found
    lost = np.where(best > 0.0, 1.0 - means / np.maximum(best, 1e-12), 0.0)
    return {
        PRIVATE_DIMENSION: middle(posterior.dimension), PATH: middle(means), SPREAD: middle(stds),
        GAP: middle(100.0 * lost),
    }  # fmt: skip


def _regressor(
    draws: Known, setting: Setting, ours: Release, rng: np.random.Generator
) -> tuple[float, float]:
    """The same sets from PrivateGPRegressor(protect="records") at the same budget, and from paths."""
    count = min(setting.effort.fitted, len(draws.truth))
    law, found = setting.law, []
    for j in range(count):
        model = PrivateGPRegressor(
            protect="records", x_bounds=law["domain"], y_bounds=law["y_bounds"], epsilon=BUDGET,
            delta=setting.delta, random_state=j,
        ).fit(draws.inputs[j], draws.outputs[j])  # fmt: skip
        found.append(overlap(model.predict(draws.points) >= 0.0, draws.truth[j] >= 0.0))
    same = first(draws, count)
    means, _ = path_overlaps(same, ours.tuned, setting.effort.repeats, ours.smoothing, rng)
    return float(np.median(found)), float(np.median(means))
