"""The rows of the shared suite: a new strategy is one more row of ``ROWS`` and passes every test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from privgp.engine.workers import Serial
from privgp.plan.bins.bins import Bins, BinSums, HalvedBins
from privgp.plan.choice import of_every_class
from privgp.plan.features import Features
from privgp.plan.inputs.blocks import ArrayInputs, Blocks
from privgp.plan.inputs.tally import People, tally_rows
from privgp.plan.strategy import strategy_for_rows, strategy_of_groups
from privgp.plan.together import JointSums, factors
from privgp.privacy.noise import GAUSSIAN, LAPLACE
from privgp.vault.grouped.totals import ArrayOutcomes, Encoding, Totals
from privgp.vault.measure import exact
from privgp.vault.values import Sealed, unseal

BOUNDS = (-1.0, 1.0)
PEOPLE = np.array([0, 0, 0, 1, 1, 2, 3, 4, 5])
PLACES = np.linspace(0, 1, 9)[:, None]
WEIGHTS = np.array([1.0, 0.3, 0.5, 0.2, 0.9, 1.0, 0.1, 0.4, 0.7])
TALLIED = np.array([0.0, 0.0, 0.0, 1.0, 1.0, 2.0, 2.0, 3.0, 3.0])[:, None]


@dataclass(frozen=True)
class Row:
    """A strategy, simulated data for it, and data that differ in one person's.

    ``exact``: of a strategy and data; ``weights``: the measured sums as a matrix of all rows, where
    they are linear in the outputs; ``read``: every strategy for one output with its noise and what
    its released numbers say.
    """

    make: Callable[[np.random.Generator], Any]
    data: Callable[[Any, np.random.Generator], Any]
    neighbour: Callable[[Any, Any, np.random.Generator], Any]
    exact: Callable[[Any, Any], np.ndarray] = lambda strategy, data: exact(strategy, data, BOUNDS)
    weights: Callable[[Any], np.ndarray] | None = None
    read: Callable[[Any, Any, Any, float], list[tuple[Any, Any, Any]]] = lambda s, t, noise, half: [
        (s, noise, s.read(t, noise, half))
    ]


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


def _moved_outputs(strategy: Any, y: Any, rng: np.random.Generator) -> Any:
    """One person's outputs moved by as much as they may, or by less."""
    people = np.arange(strategy.rows) if strategy.people is None else strategy.people
    mine = people == rng.choice(people)
    moved = strategy.change * rng.choice([-1.0, 1.0, 1.0, float(rng.uniform(-1, 1))], size=len(y))
    return np.where(mine, np.clip(y + moved, -1.0, 1.0), y)


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


def _sums(
    people: Any = None, *, unit: bool = False, **asked: Any
) -> Callable[[np.random.Generator], Any]:
    def make(rng: np.random.Generator) -> Any:
        B, index = rng.standard_normal((3, 4)), np.arange(9) % 4
        B = B / np.linalg.norm(B, axis=0) if unit else B
        return strategy_for_rows(B, index, people, **{"energy": True, **asked})

    return make


def _groups(people: Any = None, **asked: Any) -> Callable[[np.random.Generator], Any]:
    def make(rng: np.random.Generator) -> Any:
        B = np.eye(2)[rng.permutation([0, 1, 0, 1])].T
        return strategy_of_groups(B, np.arange(9) % 4, people, **{"energy": True, **asked})

    return make


def _joint(people: Any = None, law: str = GAUSSIAN) -> Callable[[np.random.Generator], Any]:
    """Three outputs of which each has its own sums; everybody moves each of them as far."""

    def make(rng: np.random.Generator) -> Any:
        one = _groups(people)
        if law == GAUSSIAN:
            one = _sums(people, unit=True)
        return JointSums(tuple(one(rng) for _ in range(3)), factors((1.0, 2.0, 3.0), law))

    return make


def _labels(strategy: Any, rng: np.random.Generator) -> Any:
    return rng.integers(0, strategy.classes, size=strategy.rows).astype(float)


def _other_labels(strategy: Any, codes: Any, rng: np.random.Generator) -> Any:
    people = np.arange(strategy.rows) if strategy.people is None else strategy.people
    fresh = rng.integers(-1, strategy.classes, size=strategy.rows).astype(float)
    one, other = rng.permutation(strategy.classes)[:2]
    mine = people == rng.choice(people)
    return np.where(mine, np.where(codes == one, other, fresh), codes)


def _every_class(of: Callable[..., Any], people: Any = None) -> Callable[[Any], Any]:
    """People whose rows point one way, so that the sum of their norms is how far they move."""

    def make(rng: np.random.Generator) -> Any:
        index = np.arange(9) % 4
        if of is strategy_of_groups:
            B = np.eye(2)[rng.permutation([0, 1, 0, 1])].T
        else:
            B = 1.0 + 0.05 * rng.standard_normal((3, 4))
        return of_every_class(of(B, index, people, energy=False), 3)

    return make


def _tables(strategy: Any, rng: np.random.Generator) -> Any:
    return np.column_stack([_ends(rng, strategy.rows) for _ in strategy.parts])


def _other_tables(strategy: Any, y: Any, rng: np.random.Generator) -> Any:
    people = np.arange(strategy.rows) if strategy.people is None else strategy.people
    mine = (people == rng.choice(people))[:, None]
    return np.where(mine, -y if rng.uniform() < 0.5 else _tables(strategy, rng), y)


def _mixed(people: Any = None, law: str = GAUSSIAN) -> Callable[[np.random.Generator], Any]:
    """A number and a label of three classes."""

    def make(rng: np.random.Generator) -> Any:
        pure = law == LAPLACE
        number = _groups(people) if pure else _sums(people, unit=True)
        label = _every_class(strategy_of_groups if pure else strategy_for_rows, people)
        return JointSums((number(rng), label(rng)), factors((1.0, 2.0), law))

    return make


def _number_and_label(strategy: Any, rng: np.random.Generator) -> Any:
    label = strategy.parts[1]
    return np.column_stack([_ends(rng, strategy.rows), _labels(label, rng)])


def _other_number_and_label(strategy: Any, y: Any, rng: np.random.Generator) -> Any:
    people = np.arange(strategy.rows) if strategy.people is None else strategy.people
    mine = people == rng.choice(people)
    one, other = rng.permutation(3)[:2]
    fresh = np.column_stack([-y[:, 0], np.where(y[:, 1] == one, other, rng.integers(-1, 3))])
    return np.where(mine[:, None], fresh, y)


def _joint_bins(law: str) -> Callable[[np.random.Generator], Any]:
    """Two outputs of private records, over their own bins."""

    def make(rng: np.random.Generator) -> Any:
        kind = Bins if law == GAUSSIAN else HalvedBins
        box, energy = (np.zeros(1), np.ones(1)), 1.0 if law == GAUSSIAN else 0.0
        parts = tuple(kind(*box, (k,), 5, np.eye(k), energy) for k in (3, 2))
        return JointSums(parts, factors((1.0, 2.0), law))

    return make


def _records_of_two(strategy: Any, rng: np.random.Generator) -> Any:
    y = np.column_stack([_ends(rng, strategy.rows), _ends(rng, strategy.rows)])
    return rng.uniform(size=(strategy.rows, 1)), y


def _other_records_of_two(strategy: Any, data: Any, rng: np.random.Generator) -> Any:
    (X, y), fresh = data, _records_of_two(strategy, rng)
    first = (np.arange(len(y)) == 0)[:, None]
    return np.where(first, fresh[0], X), np.where(first, fresh[1], y)


def _exact_joint(strategy: Any, y: Any) -> np.ndarray:
    return exact(strategy, y, (BOUNDS,) * len(strategy.parts))


def _read_joint(strategy: Any, numbers: Any, noise: Any, half: float) -> Any:
    read = strategy.read(numbers, noise, [half] * len(strategy.parts))
    return list(zip(strategy.parts, strategy.noises(noise), read, strict=True))


def _tallied(
    make: Any, *, people: bool = False, classes: int = 2, **asked: Any
) -> Callable[[np.random.Generator], Any]:
    """Sums over cells of rows that were tallied: the rows of a person are in one cell."""

    def made(rng: np.random.Generator) -> Any:
        tally = tally_rows(_tallied_rows(people), Serial())
        whose = np.arange(tally.people) if people else None
        B = np.eye(2)[rng.permutation([0, 1, 0, 1])].T
        if make is strategy_for_rows:
            B = rng.standard_normal((3, 4))
        asked.setdefault("energy", classes == 2)
        index = tally.numbers[:, 0].astype(np.int64)
        return of_every_class(make(B, index, whose, tally=tally, **asked), classes)

    return made


def _tallied_rows(people: bool) -> Blocks:
    whose = People.of(PEOPLE.astype(np.int64), None) if people else None
    return Blocks.of(ArrayInputs(TALLIED), whose)


def _exact_tallied(strategy: Any, y: Any) -> np.ndarray:
    """As the vault sums rows in memory."""
    tally, kind = strategy.tally, Encoding(BOUNDS, getattr(strategy, "classes", 2))
    rows = ArrayOutcomes(_tallied_rows(tally.people is not None), Sealed(y, len(y)))
    sums = rows.sum_over(tally, [kind], Serial(), None)[:, 1:]
    return exact(strategy, Totals(sums, tally.bits, tally.rows, kind, unseal), BOUNDS)


def _by_rows(change: Any) -> Any:
    """Neighbours in the outcomes of one of ``PEOPLE``."""

    def changed(strategy: Any, y: Any, rng: np.random.Generator) -> Any:
        return change(replace(strategy, people=PEOPLE), y, rng)

    return changed


def _features(rng: np.random.Generator) -> Any:
    low, high, places = np.zeros(4), np.ones(4), rng.uniform(size=(20, 4))
    matrix, weight = rng.standard_normal((6, 20)), float(rng.choice([0.5**0.5, 1.0, 1.5]))
    return Features(low, high, 0.3, places, matrix, 5, weight)


def _bins(rng: np.random.Generator) -> Any:
    return Bins(np.zeros(1), np.ones(1), (3,), 5, np.eye(3))


def _halved(rng: np.random.Generator) -> Any:
    return HalvedBins(np.zeros(1), np.ones(1), (3,), 5, np.eye(3), 0.1)


def _bins_of_classes(rng: np.random.Generator) -> Any:
    """Columns of norm 1, some of which point away from others."""
    B = rng.standard_normal((3, 4))
    B = B / np.linalg.norm(B, axis=0)
    return Bins(np.zeros(1), np.ones(1), (4,), 5, B, 0.0, classes=3)


def _halved_bins_of_classes(rng: np.random.Generator) -> Any:
    return HalvedBins(np.zeros(1), np.ones(1), (3,), 5, np.eye(3), 0.0, classes=4)


def _features_of_classes(rng: np.random.Generator) -> Any:
    """One feature, which is 1 in some places and -1 in others: it moves as far as the bound."""
    places = rng.uniform(size=(20, 4))
    matrix, weight = rng.standard_normal((1, 20)), float(np.sqrt(0.5))
    matrix -= matrix.mean()
    return Features(np.zeros(4), np.ones(4), 0.3, places, matrix, 5, weight, 0.0, classes=3)


def _labelled(
    of: Callable[[Any, np.random.Generator], Any],
) -> Callable[[Any, np.random.Generator], Any]:
    """Records with places of labels among the classes, now and then of none, for their outputs."""

    def data(strategy: Any, rng: np.random.Generator) -> Any:
        X, y, *whose = of(strategy, rng)
        codes = rng.integers(-1, strategy.classes, size=len(y)).astype(float)
        if whose:  # of one person, one label
            codes[whose[0] == 0] = codes[0]
        return X, codes, *whose

    return data


def _other_labelled(strategy: Any, data: Any, rng: np.random.Generator) -> Any:
    (X, y), fresh = data, _labelled_records(strategy, rng)
    first = np.arange(len(y)) == 0
    return np.where(first[:, None], fresh[0], X), np.where(first, fresh[1], y)


def _other_labelled_people(strategy: Any, data: Any, rng: np.random.Generator) -> Any:
    (X, y, people), (X2, y2, people2) = data, _labelled_people(strategy, rng)
    keep, new = people != 0, people2 == 0
    joined = [(X[keep], X2[new]), (y[keep], y2[new]), (people[keep], people2[new])]
    return tuple(np.concatenate(pair) for pair in joined)


_labelled_records = _labelled(_records)
_labelled_people = _labelled(_people_records)


def _weighted(
    of: Callable[[Any, np.random.Generator], Any],
) -> Callable[[Any, np.random.Generator], Any]:
    """The same records with private weights between 0 and 1, more often than not at an end."""

    def data(strategy: Any, rng: np.random.Generator) -> Any:
        found = of(strategy, rng)
        own = rng.choice([0.0, 1.0, 1.0, float(rng.uniform())], size=len(found[1]))
        return *found, own

    return data


def _other_weighted(
    of: Callable[[Any, np.random.Generator], Any],
) -> Callable[[Any, Any, np.random.Generator], Any]:
    """The first record, or all of the first person, are others, weights and all."""

    def neighbour(strategy: Any, data: Any, rng: np.random.Generator) -> Any:
        fresh = _weighted(of)(strategy, rng)
        mine = [
            each[2] == 0 if strategy.whole_people else np.arange(len(each[1])) == 0
            for each in (data, fresh)
        ]
        pairs = zip(data, fresh, strict=True)
        return tuple(np.concatenate([new[mine[1]], old[~mine[0]]]) for old, new in pairs)

    return neighbour


def _of_rows(strategy: Any) -> np.ndarray:
    return np.asarray(strategy.matrix[:, strategy.index] * strategy.row_weights)


OUTPUTS = (_outputs, _other_outputs)
MOVED = (_outputs, _moved_outputs)
COUNTS = {"energy": False, "change": 0.1, "expected": np.arange(1.0, 10.0)}
LABELS = (_labels, _other_labels)
RECORDS = (_records, _other_records)
MIXED = (_number_and_label, _other_number_and_label)
TWO = (_records_of_two, _other_records_of_two)
PEOPLE_RECORDS = (_people_records, _other_people_records)
LABELLED = (_labelled_records, _other_labelled)
LABELLED_PEOPLE = (_labelled_people, _other_labelled_people)
ROWS: dict[str, Row] = {
    "OutputSums": Row(_sums(), *OUTPUTS, weights=_of_rows),
    "OutputSums of people": Row(_sums(PEOPLE), *OUTPUTS, weights=_of_rows),
    "OutputSums with weights": Row(_sums(unit=True, weights=WEIGHTS), *OUTPUTS, weights=_of_rows),
    "OutputSums of people with weights": Row(
        _sums(PEOPLE, weights=WEIGHTS), *OUTPUTS, weights=_of_rows
    ),
    "GroupSums of people with weights": Row(
        _groups(PEOPLE, weights=WEIGHTS), *OUTPUTS, weights=_of_rows
    ),
    "GroupSums": Row(_groups(), *OUTPUTS, weights=_of_rows),
    "GroupSums of people": Row(_groups(PEOPLE), *OUTPUTS, weights=_of_rows),
    "ClassSums": Row(_every_class(strategy_for_rows), *LABELS),
    "ClassSums of people": Row(_every_class(strategy_for_rows, PEOPLE), *LABELS),
    "ClassGroupSums": Row(_every_class(strategy_of_groups), *LABELS),
    "ClassGroupSums of people": Row(_every_class(strategy_of_groups, PEOPLE), *LABELS),
    "OutputSums of a tally": Row(_tallied(strategy_for_rows), *OUTPUTS, _exact_tallied),
    "OutputSums of a tally of people": Row(
        _tallied(strategy_for_rows, people=True), _outputs, _by_rows(_other_outputs), _exact_tallied
    ),
    "GroupSums of a tally": Row(_tallied(strategy_of_groups), *OUTPUTS, _exact_tallied),
    "GroupSums of a tally that changes": Row(
        _tallied(strategy_of_groups, change=0.1), *MOVED, _exact_tallied
    ),
    "GroupSums of a tally of people": Row(
        _tallied(strategy_of_groups, people=True),
        _outputs,
        _by_rows(_other_outputs),
        _exact_tallied,
    ),
    "ClassSums of a tally": Row(_tallied(strategy_for_rows, classes=3), *LABELS, _exact_tallied),
    "ClassGroupSums of a tally of people": Row(
        _tallied(strategy_of_groups, people=True, classes=3),
        _labels,
        _by_rows(_other_labels),
        _exact_tallied,
    ),
    **{
        f"JointSums of {name}": Row(
            _joint(people, law),
            *(_tables, _other_tables),
            exact=lambda strategy, y: _exact_joint(strategy, y),
            read=_read_joint,
        )
        for name, people, law in (
            ("sums", None, GAUSSIAN),
            ("sums of people", PEOPLE, GAUSSIAN),
            ("groups", None, LAPLACE),
            ("groups of people", PEOPLE, LAPLACE),
        )
    },
    **{
        f"JointSums of {name}": Row(
            make,
            *data,
            exact=lambda strategy, y: _exact_joint(strategy, y),
            read=_read_joint,
        )
        for name, make, data in (
            ("a number and a label", _mixed(), MIXED),
            ("a number and a label of people", _mixed(PEOPLE), MIXED),
            ("groups of a number and a label", _mixed(None, LAPLACE), MIXED),
            ("records, Gaussian", _joint_bins(GAUSSIAN), TWO),
            ("records, Laplace", _joint_bins(LAPLACE), TWO),
        )
    },
    "OutputSums that change by 0.1": Row(_sums(change=0.1), *MOVED, weights=_of_rows),
    "OutputSums that change by 1.5": Row(_sums(change=1.5), *MOVED, weights=_of_rows),
    "OutputSums of people that change": Row(_sums(PEOPLE, change=0.1), *MOVED, weights=_of_rows),
    "OutputSums of counts": Row(_sums(**COUNTS), *MOVED, weights=_of_rows),
    "GroupSums that change by 0.1": Row(_groups(change=0.1), *MOVED, weights=_of_rows),
    "GroupSums that change by 1.5": Row(_groups(change=1.5), *MOVED, weights=_of_rows),
    "GroupSums of people that change": Row(_groups(PEOPLE, change=0.1), *MOVED, weights=_of_rows),
    "GroupSums of counts of people": Row(_groups(PEOPLE, **COUNTS), *MOVED, weights=_of_rows),
    "BinSums": Row(
        lambda rng: BinSums(LAPLACE, rng.permutation(np.arange(9) % 3), 3),
        *OUTPUTS,
        weights=lambda s: np.eye(3)[:, s.index],
    ),
    "Bins": Row(lambda rng: Bins(np.zeros(1), np.ones(1), (3,), 5, np.eye(3)), *RECORDS),
    "Features": Row(_features, *RECORDS),
    **{
        f"{name} with weights": Row(
            lambda rng, make=make: replace(make(rng), weighted=True),
            _weighted(of),
            _other_weighted(of),
        )
        for name, make, of in (
            ("Bins", _bins, _records),
            ("HalvedBins", _halved, _records),
            ("Features", _features, _records),
            ("PeopleBins", lambda rng: _bins(rng).of_people(), _people_records),
            ("PeopleHalvedBins", lambda rng: _halved(rng).of_people(), _people_records),
            ("PeopleFeatures", lambda rng: _features(rng).of_people(), _people_records),
            ("Bins of classes", _bins_of_classes, _labelled_records),
            ("HalvedBins of classes", _halved_bins_of_classes, _labelled_records),
            ("Features of classes", _features_of_classes, _labelled_records),
        )
    },
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
    "Bins of classes": Row(_bins_of_classes, *LABELLED),
    "HalvedBins of classes": Row(_halved_bins_of_classes, *LABELLED),
    "Features of classes": Row(_features_of_classes, *LABELLED),
    "PeopleBins of classes": Row(lambda rng: _bins_of_classes(rng).of_people(), *LABELLED_PEOPLE),
    "PeopleHalvedBins of classes": Row(
        lambda rng: _halved_bins_of_classes(rng).of_people(), *LABELLED_PEOPLE
    ),
    "PeopleFeatures of classes": Row(
        lambda rng: _features_of_classes(rng).of_people(), *LABELLED_PEOPLE
    ),
}
