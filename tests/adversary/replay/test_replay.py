"""Two neighbouring datasets, the same released numbers: nothing else may differ.

Every mechanism by every entry point has a row. Before the noise a row's two runs are no further apart
than their guarantee states, and nearly as far; after it, every byte that leaves is the same.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import planned
from tests.adversary.replay.command import COMMANDS
from tests.adversary.replay.leaks import DRAWN, WARNED, missed
from tests.adversary.replay.leaving import differing
from tests.adversary.replay.python import ESTIMATORS
from tests.adversary.replay.reach import reached
from tests.adversary.replay.running import Row, Run, byte_of, run
from tests.adversary.replay.server import SERVED

ENTRIES: dict[str, dict[str, Row]] = {
    "python": {**ESTIMATORS}, "command": {**COMMANDS}, "server": {**SERVED},
}  # fmt: skip
ROWS = [(entry, name) for entry, rows in ENTRIES.items() for name in rows]
NEAR, ROUNDING = 0.9, 1e-9
# Where no two datasets are known that are as far apart as is stated.
LEAST = {  # the first that is part of the name
    "blocks, then": 0.29,  # the choice reaches its 0.3; the noise of the release has its own rows
    "path": 0.5,  # the curve bounds every kernel, and mean and covariance apart
    "kusner": 0.01,  # the objective is assumed to move; here it hardly does
    "one fewer": 0.3,  # a record less, not all of them elsewhere
    "missing": 0.2,
    "permute-and-flip, choice": 0.3,  # the bound adds up the moves of all folds in one direction
    "permute-and-flip, release": 0.3,
    "measured, blocks": 0.7,  # an error of one block is never 0 or infinite
    "blocks of labels": 0.69,  # the release reaches its 0.7; one label leaves the better kernel the better
    "grid, permute-and-flip": 0.3,
    "grid, exponential": 0.3,
}


class Pair:
    """Both runs of a row."""

    def __init__(self, entry: str, name: str, folder: Path) -> None:
        row = ENTRIES[entry][name]
        self.entry, self.name, self.row, self.folder = entry, name, row, folder
        self.datasets = row.neighbours()
        planned.forget()
        self.first = run(row, self.datasets[0], folder)
        planned.forget()
        self.second = run(row, self.datasets[1], folder, self.first.draws)

    def with_leaks(self) -> tuple[Run, int]:
        byte = byte_of(self.row, self.datasets)
        return run(self.row, self.datasets[1], self.folder, self.first.draws, byte), byte


@pytest.fixture(scope="module", params=ROWS, ids=": ".join)
def pair(request, tmp_path_factory) -> Pair:
    return Pair(*request.param, tmp_path_factory.mktemp("replay"))


def test_nothing_else_differs(pair):
    one, other = pair.first, pair.second
    assert ("exception" in one.left or one.model is None) == pair.row.refused, one.left.get(
        "exception"
    )
    assert [draw.shape for draw in one.draws] == [draw.shape for draw in other.draws]
    assert differing(one.left, other.left) == []


def test_numbers_move_as_far_as_stated(pair):
    if pair.row.refused:
        assert not pair.first.draws + pair.second.draws
        return
    shares = reached((pair.first.model, pair.second.model), pair.first.draws, pair.second.draws)
    least = next((share for part, share in LEAST.items() if part in pair.name.lower()), NEAR)
    assert all(least <= share <= 1.0 + ROUNDING for share in shares.values()), shares


def test_every_planted_leak_is_found(pair):
    leaking, byte = pair.with_leaks()
    drawn = {**DRAWN, **(WARNED if pair.entry == "python" else {})} if pair.first.draws else {}
    assert missed(pair.first.left, leaking.left, byte, drawn) == []
