"""The two datasets that a mechanism hides worst."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from privgp import PrivateGPRegressor
from privgp.privacy.noise import PURE
from privgp.vault.measure import exact

Pair = tuple[Any, Any]
INPUTS = np.linspace(0, 1, 12)[:, None]
PEOPLE = np.repeat(np.arange(4), 3)


def ends(row: int = 0, rows: int = 12) -> Callable[[], Pair]:
    """Outputs in the middle of (0, 1), one row's at either end."""

    def pair() -> Pair:
        y = np.full((2, rows), 0.5)
        y[:, row] = 0.0, 1.0
        return y[0], y[1]

    return pair


def of_plan(model: PrivateGPRegressor, groups: Any = None, **given: Any) -> Callable[[], Pair]:
    """Outputs in (0, 1) of the person who moves the measurement most, as far as that person may."""

    def pair() -> Pair:
        plan = model.plan(INPUTS, groups=groups, **given)
        people = np.arange(len(INPUTS)) if groups is None else groups
        order = 1 if plan.noise.pure else 2
        found = max(_ends_of_people(people), key=lambda u: _moved(plan.strategy, u, order))
        most = 1.0 if model.max_change is None else model.max_change
        low = 0.5 - 0.5 * found
        return low, low + most * found

    return pair


def of_joint_plan(model: PrivateGPRegressor, groups: Any = None) -> Callable[[], Pair]:
    """All outputs in (0, 1) of the person who moves the measurement of all of them most."""

    def pair() -> Pair:
        plan = model.plan(INPUTS, groups=groups)
        people = np.arange(len(INPUTS)) if groups is None else groups
        order, count = 1 if plan.noise.pure else 2, len(plan.parts)
        tables = (
            np.column_stack([found] * count)
            for found in _ends_of_people(people)  # the outputs are planned alike
        )
        found = max(tables, key=lambda u: _moved(plan.strategy, u, order, count))
        return 0.5 - 0.5 * found, 0.5 + 0.5 * found

    return pair


def _ends_of_people(people: np.ndarray) -> Iterator[np.ndarray]:
    """One person's outputs at the ends of (-1, 1), in every way, all others in the middle."""
    for person in np.unique(people):
        rows = np.flatnonzero(people == person)
        for signs in product((-1.0, 1.0), repeat=len(rows)):
            outputs = np.zeros(len(people))
            outputs[rows] = signs
            yield outputs


def _moved(strategy: Any, outputs: np.ndarray, order: int, count: int = 1) -> float:
    """How far these outputs and their opposites are apart in what is measured."""
    bounds: Any = (-1.0, 1.0) if count == 1 else ((-1.0, 1.0),) * count
    low, high = (exact(strategy, u, bounds) for u in (-outputs, outputs))
    return float(np.linalg.norm(high - low, order))


def of_bins(bins: Any, *, stay: bool = False) -> Pair:
    """Two records (x, y), y in (0, 1), as far apart in what is measured as any, or in one bin."""
    places = bins.centres()
    if stay:
        return (places[0], 0.0), (places[0], 1.0)
    one = [(place, u) for place in places for u in (-1.0, 0.0, 1.0)]
    single = replace(bins, rows=1)
    measured = np.array([exact(single, (p[None], np.array([u])), (-1.0, 1.0)) for p, u in one])
    apart = np.square(measured[:, None] - measured[None]).sum(axis=2)
    found = (one[k] for k in np.unravel_index(np.argmax(apart), apart.shape))
    return tuple((place, 0.5 + 0.5 * u) for place, u in found)  # type: ignore[return-value]


def of_features(features: Any) -> Pair:
    """Two records (x, y) with outputs at the ends of (0, 1), of many random places the two that are
    furthest apart in what is measured."""
    places = np.random.default_rng(0).uniform(features.low, features.high, (80, len(features.low)))
    single = replace(features, rows=1)
    low, high = (
        np.array([exact(single, (place[None], np.array([u])), (-1.0, 1.0)) for place in places])
        for u in (-1.0, 1.0)
    )
    apart = np.square(low).sum(axis=1)[:, None] + np.square(high).sum(axis=1) - 2.0 * low @ high.T
    i, j = np.unravel_index(np.argmax(apart), apart.shape)
    return (places[i], 0.0), (places[j], 1.0)


def of_labels(strategy: Any) -> Pair:
    """Two records (x, label), of many places the two that are furthest apart in what is measured."""
    rng = np.random.default_rng(0)
    places = rng.uniform(strategy.low, strategy.high, (200, len(strategy.low)))
    single = replace(strategy, rows=1)
    whose = (np.zeros(1, np.int64),) if strategy.whole_people else ()
    one = [(place, label) for place in places for label in (0, 1)]
    order = 1 if strategy.law in PURE else 2
    measured = np.array(
        [exact(single, (p[None], np.array([float(k)]), *whose), (0.0, 1.0)) for p, k in one]
    )
    apart = [np.linalg.norm(measured - each, order, axis=1) for each in measured]
    i, j = np.unravel_index(int(np.argmax(apart)), np.shape(apart))
    return one[i], one[j]
