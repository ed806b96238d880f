"""The rows of the shared suite: a new strategy is one more row of ``ROWS`` and passes every test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import RBF

from privgp.plan.bins.bins import Bins, BinSums, HalvedBins
from privgp.plan.features.features import Features
from privgp.plan.strategy import strategy_for_rows, strategy_of_groups
from privgp.plan.streamed.columns import Columns, streamed_strategy
from privgp.privacy.noise import LAPLACE
from privgp.vault.measure import exact

BOUNDS = (-1.0, 1.0)
PEOPLE = np.array([0, 0, 0, 1, 1, 2, 3, 4, 5])
PLACES = np.linspace(0, 1, 9)[:, None]


@dataclass(frozen=True)
class Row:
    """A strategy, made up data for it, and data that differ in one person's.

    ``exact``: of a strategy and data; ``weights``: the measured sums as a matrix of all rows, where
    they are linear in the outputs.
    """

    make: Callable[[np.random.Generator], Any]
    data: Callable[[Any, np.random.Generator], Any]
    neighbour: Callable[[Any, Any, np.random.Generator], Any]
    exact: Callable[[Any, Any], np.ndarray] = lambda strategy, data: exact(strategy, data, BOUNDS)
    weights: Callable[[Any], np.ndarray] | None = None


def _ends(rng: np.random.Generator, size: int) -> np.ndarray:
    """Numbers in [-1, 1], more often than not at its ends."""
    return rng.choice([-1.0, 1.0, -1.0, 1.0, 0.0, float(rng.uniform(-1, 1))], size=size)


def _outputs(strategy: Any, rng: np.random.Generator) -> Any:
    return _ends(rng, strategy.rows)


def _other_outputs(strategy: Any, y: Any, rng: np.random.Generator) -> Any:
    people = np.arange(strategy.rows) if strategy.people is None else strategy.people
    mine = people == rng.choice(people)
    sign = rng.choice([-1.0, 1.0])
    return np.where(mine, sign * y if rng.uniform() < 0.5 else _ends(rng, len(y)), y)


def _records(strategy: Any, rng: np.random.Generator) -> Any:
    return rng.uniform(size=(strategy.rows, len(strategy.low))), _ends(rng, strategy.rows)


def _other_records(strategy: Any, data: Any, rng: np.random.Generator) -> Any:
    (X, y), fresh, first = data, _records(strategy, rng), np.arange(len(data[1])) == 0
    return np.where(first[:, None], fresh[0], X), np.where(first, fresh[1], y)


def _people_records(strategy: Any, rng: np.random.Generator) -> Any:
    """Several records of every person, of some of them more."""
    people = np.append(np.arange(strategy.rows), rng.integers(strategy.rows, size=6))
    X = rng.uniform(size=(len(people), len(strategy.low)))
    X[people == 0] = X[0]  # one person's records in one place, or averages move less
    y = _ends(rng, len(people))
    return X, np.where(people == 0, y[0], y), people


def _other_people_records(strategy: Any, data: Any, rng: np.random.Generator) -> Any:
    """All records of the first person are others, and more or fewer of them."""
    (X, y, people), (X2, y2, people2) = data, _people_records(strategy, rng)
    keep, new = people != 0, people2 == 0
    joined = [(X[keep], X2[new]), (y[keep], y2[new]), (people[keep], people2[new])]
    return tuple(np.concatenate(pair) for pair in joined)


def _sums(people: Any = None) -> Callable[[np.random.Generator], Any]:
    def make(rng: np.random.Generator) -> Any:
        B, index = rng.standard_normal((3, 4)), np.arange(9) % 4
        return strategy_for_rows(B, index, people, energy=True, equal_weights=False)

    return make


def _groups(people: Any = None) -> Callable[[np.random.Generator], Any]:
    def make(rng: np.random.Generator) -> Any:
        B = np.eye(2)[rng.permutation([0, 1, 0, 1])].T
        return strategy_of_groups(B, np.arange(9) % 4, people, energy=True)

    return make


def _columns(rng: np.random.Generator) -> Any:
    columns = Columns(RBF(0.3), PLACES[::4], rng.standard_normal((3, 3)), True)
    return streamed_strategy(columns, columns.totals([PLACES]), energy=True)


def _streamed(strategy: Any, u: np.ndarray) -> np.ndarray:
    B = strategy.columns.at(PLACES)[0]
    return np.append(B @ u, strategy.energy_weight * u @ u)


def _features(rng: np.random.Generator) -> Any:
    low, high, places = np.zeros(4), np.ones(4), rng.uniform(size=(20, 4))
    matrix, weight = rng.standard_normal((6, 20)), float(rng.choice([0.5**0.5, 1.0, 1.5]))
    return Features(low, high, 0.3, places, matrix, 5, weight)


def _of_rows(strategy: Any) -> np.ndarray:
    return np.asarray(strategy.matrix[:, strategy.index] * strategy.row_weights)


OUTPUTS = (_outputs, _other_outputs)
RECORDS = (_records, _other_records)
PEOPLE_RECORDS = (_people_records, _other_people_records)
ROWS: dict[str, Row] = {
    "OutputSums": Row(_sums(), *OUTPUTS, weights=_of_rows),
    "OutputSums of people": Row(_sums(PEOPLE), *OUTPUTS, weights=_of_rows),
    "GroupSums": Row(_groups(), *OUTPUTS, weights=_of_rows),
    "GroupSums of people": Row(_groups(PEOPLE), *OUTPUTS, weights=_of_rows),
    "StreamedSums": Row(_columns, *OUTPUTS, _streamed, lambda s: s.columns.at(PLACES)[0]),
    "BinSums": Row(
        lambda rng: BinSums(LAPLACE, rng.permutation(np.arange(9) % 3), 3),
        *OUTPUTS,
        weights=lambda s: np.eye(3)[:, s.index],
    ),
    "Bins": Row(lambda rng: Bins(np.zeros(1), np.ones(1), (3,), 5, np.eye(3)), *RECORDS),
    "Features": Row(_features, *RECORDS),
    "PeopleFeatures": Row(lambda rng: _features(rng).of_people(), *PEOPLE_RECORDS),
    "PeopleBins": Row(
        lambda rng: Bins(np.zeros(1), np.ones(1), (3,), 5, np.eye(3)).of_people(), *PEOPLE_RECORDS
    ),
    "PeopleHalvedBins": Row(
        lambda rng: HalvedBins(np.zeros(1), np.ones(1), (3,), 5, np.eye(3), 0.1).of_people(),
        *PEOPLE_RECORDS,
    ),
    "HalvedBins": Row(
        lambda rng: HalvedBins(np.zeros(1), np.ones(1), (3,), 5, np.eye(3), 0.1), *RECORDS
    ),
}
