"""One run of a row, with everything that it drew and everything that left it."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pytest

from tests.adversary.replay.freezing import Draw, frozen
from tests.adversary.replay.leaks import PLANTED, Secret, on_draw
from tests.adversary.replay.leaving import Left, heard


class Row(Protocol):
    """A mechanism by an entry point.

    ``neighbours``: two datasets, as far apart in what is measured as may be; ``data``: one as bytes;
    ``run``: spends the budget on one in a new folder, and returns what has its guarantee and what left;
    ``refused``: whether the datasets are refused.
    """

    @property
    def refused(self) -> bool: ...

    def neighbours(self) -> tuple[Any, Any]: ...

    def data(self, dataset: Any) -> bytes: ...

    def run(self, dataset: Any, folder: Path) -> tuple[Any, Left]: ...


@dataclass(frozen=True)
class Run:
    model: Any
    draws: list[Draw]
    left: Left


def run(
    row: Row, dataset: Any, folder: Path, recorded: Sequence[Draw] = (), byte: int | None = None
) -> Run:
    """Run a row on a dataset, with the released numbers of an earlier run, if any were recorded.

    ``byte``: that leaks give away, if they are to be planted.
    """
    place, model = folder / "run", None  # the same in every run, as messages name files
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    with pytest.MonkeyPatch.context() as patch, ExitStack() as stack:
        if byte is not None:
            for leak, _, plant in PLANTED:
                plant(patch, Secret(byte, leak))
        seen = (lambda exact: None) if byte is None else on_draw(byte)
        draws = stack.enter_context(frozen(recorded, seen))
        with heard() as left:
            model, more = row.run(dataset, place)
            left |= more
    return Run(model, draws, left)


def byte_of(row: Row, pair: tuple[Any, Any]) -> int:
    """The first byte of the second dataset that is another in the first."""
    one, other = map(row.data, pair)
    return next(b for a, b in zip(one, other, strict=False) if a != b)
