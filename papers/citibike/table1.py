"""Table 1 of the papers: one cell at a time, on one split of the trips."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import RBF

from papers.shared.cloaking import Cloak, algorithm_1, converged, hall_multiplier, workload
from papers.shared.data import citi_bike
from papers.shared.report import Request
from privgp.models.binned import BinnedGP, BinnedMeans
from privgp.models.regressor import PrivateGPRegressor
from privgp.types import Array

BOUNDS, DELTA = (0.0, 2000.0), 0.01
EPSILONS = (1e4, 1.0, 0.5, 0.2)  # the first stands for no privacy
COLUMNS = ("No DP", "1", "0.5", "0.2")
LENGTHSCALES = (0.781, 0.312, 0.125, 0.05, 0.02)
BINS = (10, 6, 3)
SIGNAL, NOISE = 1581.0**2, 1605.0**2  # as printed
DRAWS, BIN_DRAWS = 10, 40

# Printed: mean RMSE in seconds and half the width of its 95% interval.
PRINTED: dict[str, tuple[tuple[float, float], ...]] = {
    "cloaking 0.781": ((490, 14), (493, 13), (498, 13), (525, 19)),
    "cloaking 0.312": ((492, 15), (497, 12), (502, 17), (545, 26)),
    "cloaking 0.125": ((402, 7), (437, 21), (476, 17), (758, 94)),
    "cloaking 0.05": ((333, 11), (434, 27), (612, 78), (1163, 147)),
    "cloaking 0.02": ((314, 12), (478, 22), (854, 54), (1868, 106)),
    "integral binning 10^4": ((581, 5), (586, 7), (597, 12), (627, 23)),
    "integral binning 6^4": ((641, 6), (640, 9), (658, 17), (736, 41)),
    "integral binning 3^4": ((643, 6), (649, 13), (677, 22), (770, 51)),
    "simple binning 10^4": ((596, 12), (1064, 69), (1927, 191), (4402, 434)),
    "simple binning 6^4": ((587, 11), (768, 58), (1202, 206), (2373, 358)),
    "simple binning 3^4": ((550, 12), (575, 24), (629, 58), (809, 110)),
}


@dataclass(frozen=True)
class Settings:
    """How much is run; ``steps`` are those of the papers' algorithm 1."""

    data: Path
    splits: int = 30
    rows: int = 4900
    tested: int = 100
    steps: int = 100
    bins: tuple[int, ...] = BINS
    lengthscales: tuple[float, ...] = LENGTHSCALES


@dataclass(frozen=True)
class Cell:
    """A row of the table on one split: ``kind`` with its parameter."""

    settings: Settings
    split: int
    kind: str
    parameter: float


Errors = dict[str, tuple[float, ...]]


def cells(settings: Settings) -> list[Cell]:
    """Everything that is computed, split by split."""
    parts = [("cloaking", value) for value in settings.lengthscales]
    parts += [("binning", float(value)) for value in settings.bins]
    parts += [("default", value) for value in EPSILONS[1:]]
    return [
        Cell(settings, split, kind, value)
        for split in range(settings.splits)
        for kind, value in parts
    ]


def errors_of(cell: Cell) -> Errors:
    """RMSE by the name of the row: one number per epsilon; of the default one alone."""
    X, y, points, truth = split_of(cell)
    if cell.kind == "default":
        model = PrivateGPRegressor(
            y_bounds=BOUNDS, epsilon=cell.parameter, delta=DELTA, random_state=cell.split
        )
        return {f"default {cell.parameter:g}": (_rmse(model.fit(X, y).predict(points), truth),)}
    if cell.kind == "binning":
        return _binning(cell, X, y, points, truth)
    return _cloaking(cell, X, y, points, truth)


def split_of(cell: Cell) -> tuple[Array, Array, Array, Array]:
    """Training inputs and outputs, test inputs and outputs."""
    X, y = _trips(cell.settings.data)
    order = np.random.default_rng(cell.split).permutation(len(X))
    test, rest = order[: cell.settings.tested], order[cell.settings.tested :]
    train = rest[: cell.settings.rows]
    return X[train], y[train], X[test], y[test]


def constant_error(settings: Settings) -> float:
    """The mean RMSE over the splits of predicting the mean of all training trips."""
    parts = [split_of(Cell(settings, split, "constant", 0.0)) for split in range(settings.splits)]
    return float(np.mean([_rmse(y.mean(), truth) for _, y, _, truth in parts]))


def _cloaking(cell: Cell, X: Array, y: Array, points: Array, truth: Array) -> Errors:
    """By algorithm 1 as printed, and by the optimum of log det M. Centred at the mean, as published."""
    made = workload(SIGNAL * RBF(cell.parameter), NOISE, X, points)
    mean = made.mean(y, float(y.mean()))
    roots = {
        "cloaking": algorithm_1(made.matrix, cell.settings.steps, cell.split),
        "converged": converged(made.matrix),
    }
    return {
        f"{name} {cell.parameter:g}": _with_noise(Cloak(mean, root), truth, cell.split)
        for name, root in roots.items()
    }


def _with_noise(cloaked: Cloak, truth: Array, seed: int) -> tuple[float, ...]:
    """The mean RMSE of a few draws of noise, the same draws for every epsilon."""
    width = BOUNDS[1] - BOUNDS[0]
    out = [_rmse(cloaked.mean, truth)]
    for epsilon in EPSILONS[1:]:
        rng, scale = np.random.default_rng(seed), width * hall_multiplier(epsilon, DELTA)
        draws = [_rmse(cloaked.release(scale, rng), truth) for _ in range(DRAWS)]
        out.append(float(np.mean(draws)))
    return tuple(out)


def _binning(cell: Cell, X: Array, y: Array, points: Array, truth: Array) -> Errors:
    """Both binnings as they seem to have been printed, and both as they should be.

    "simple binning": noisy bin means, those of empty bins the mean of all trips, compared with the
    wrong test trips. "integral binning": one constant, the mean of the noisy bin means.
    """
    bins, middle = int(cell.parameter), 0.5 * sum(BOUNDS)
    rows: list[tuple[float, ...]] = []
    for epsilon in EPSILONS:
        common: dict[str, Any] = {"bins": bins, "y_bounds": BOUNDS, "epsilon": epsilon}
        found = []
        for draw in range(BIN_DRAWS):
            seed = BIN_DRAWS * cell.split + draw
            means = BinnedMeans(**common, random_state=seed).fit(X, y)
            at_points = means.predict(points)
            printed = np.where(at_points == middle, y.mean(), at_points)
            wrong = np.random.default_rng(seed).permutation(printed)
            constant = np.full(len(truth), means.means_.mean())
            found.append([_rmse(p, truth) for p in (wrong, constant, at_points)])
        process = BinnedGP(SIGNAL * RBF(0.05), NOISE, **common, random_state=cell.split).fit(X, y)
        rows.append((*np.mean(found, axis=0), _rmse(process.predict(points), truth)))
    names = ("simple binning", "integral binning", "binned means", "integral kernel")
    columns = zip(*rows, strict=True)
    return {f"{name} {bins}^4": values for name, values in zip(names, columns, strict=True)}


@lru_cache(maxsize=1)
def _trips(data: Path) -> tuple[Array, Array]:
    return citi_bike(Request(data=data))


def _rmse(prediction: Array | float, truth: Array) -> float:
    return float(np.sqrt(np.mean((prediction - truth) ** 2)))
