"""Data shared by the tests. Real data lie beside the project and are never part of it."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

import repeatable

gc.disable()  # until all tests are collected: nothing of them is garbage
repeatable.install()
from tests import migrated, planned  # noqa: E402 - the product binds its samplers when it is imported

os.environ.update(repeatable.environment())  # of the processes that tests start

# Machines that run these tests are noisy: a slow example is no failure.
settings.register_profile("steady", deadline=None, derandomize=True)
settings.load_profile("steady")
planned.install()
migrated.install()

DATA = Path(
    os.environ.get("PRIVGP_DATA", Path(__file__).resolve().parents[1].parent / "shared" / "data")
)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Before any fixture of a test: its noise repeats unless its failure probability is stated."""
    mark = item.get_closest_marker("statistical")
    repeatable.start(mark.kwargs.get("failure") if mark else None)
    planned.start(item)
    migrated.start(item)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """All that was collected stays: garbage is looked for in what tests make alone."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def _notes_of_the_command(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The command notes which tables it released: not in the home of anyone who runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


def real_data(name: str) -> Path:
    path = DATA / name
    if not path.exists():
        pytest.skip(f"{name} is not beside the project (looked in {DATA}; set PRIVGP_DATA).")
    return path


@pytest.fixture(scope="session")
def kung() -> tuple[np.ndarray, np.ndarray]:
    """Ages and heights of 287 women of the Dobe !Kung census."""
    table = np.loadtxt(real_data("kung.csv"), delimiter=",", skiprows=1)
    return table[:, :1], table[:, 1]


@pytest.fixture(scope="session")
def kung_square_errors(kung) -> Callable[[int], list[float]]:
    """Mean square errors of the first this many default releases; each is made once per worker."""
    from tests.releases import releases

    X, y = kung
    models = releases(X, y, count(), y_bounds=(75, 175), delta=0.01)
    made: list[float] = []

    def first(releases: int) -> list[float]:
        while len(made) < releases:
            made.append(float(np.mean((next(models).predict(X) - y) ** 2)))
        return made[:releases]

    return first
