"""Files that the tests of the command start from."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from privgp.models.function import tune
from tests.command.running import BUDGET, COLUMNS, QUICK, people_table, run


@pytest.fixture(scope="package", autouse=True)
def _few_tries() -> Iterator[None]:
    """``privgp plan`` plans anew for every epsilon of its table: two do, but where it is tested.
    ``paths tune`` tries all pairs of a grid: tests/papers and tests/models search whole ones."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("privgp.command.io.documents.EPSILONS", (0.5, 2.0))
        patch.setattr(tune, "LENGTHS", tune.LENGTHS[::5])
        patch.setattr(tune, "RIDGES", tune.RIDGES[::5])
        yield


@pytest.fixture
def visits(tmp_path: Path) -> Path:
    path = tmp_path / "visits.csv"
    people_table().write_csv(path)
    return path


@pytest.fixture
def visits_parquet(tmp_path: Path) -> Path:
    path = tmp_path / "visits.parquet"
    people_table().write_parquet(path)
    return path


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write a file of the given content into the temporary folder."""

    def write_file(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write_file


@pytest.fixture(scope="session")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release that several tests predict from and inspect."""
    folder = tmp_path_factory.mktemp("release")
    people_table().write_csv(folder / "visits.csv")
    path = folder / "visits.privgp"
    result = run("release", folder / "visits.csv", *COLUMNS, *BUDGET, *QUICK, "-o", path)
    assert result.code == 0, result
    return path
