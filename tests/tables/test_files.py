"""Which files a table is of: every row once, as a row that is read twice is protected by half."""

from __future__ import annotations

import os
from pathlib import Path

import polars as pl
import pytest

from privgp.errors import TableError
from privgp.tables.files import open_files
from privgp.vault.table import table_people


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("a.csv", "day=1/b.parquet"):
        path = tmp_path / "t" / name
        path.parent.mkdir(exist_ok=True, parents=True)
        frame = pl.DataFrame({"x": [1.0, 2.0]})
        frame.write_csv(path) if path.suffix == ".csv" else frame.write_parquet(path)
    return tmp_path / "t"


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_a_file_and_a_link_to_it_are_refused(folder: Path, link: object) -> None:
    assert open_files(folder).rows == 4
    link(folder / "a.csv", folder / "latest.csv")  # type: ignore[operator]
    for given in (folder, str(folder / "*.csv"), [folder / "a.csv", folder / "latest.csv"]):
        with pytest.raises(TableError, match="given twice"):
            open_files(given)
    assert open_files(folder / "latest.csv").rows == 2


def test_a_file_with_two_paths_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    for other in ("./a.csv", "day=1/../a.csv", str(folder / "a.csv")):
        with pytest.raises(TableError, match="given twice"):
            open_files(["a.csv", other])


def test_copies_that_programs_put_aside_are_no_part_of_a_folder(folder: Path) -> None:
    aside = [".ipynb_checkpoints/a-checkpoint.csv", "_temporary/0/b.csv", ".a.csv", "_a.csv"]
    for name in [*aside, "_part=1/c.csv"]:
        path = folder / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_bytes((folder / "a.csv").read_bytes())
    assert open_files(folder).rows == 6
    for pattern, rows in {"*": 6, "**/*": 6, "*.csv": 2, "**/*.csv": 4, "_*.csv": 2}.items():
        assert len({file.path for file in open_files(str(folder / pattern)).files}) * 2 == rows
    for name in aside:  # anyone who names them means them
        assert open_files(folder / name).rows == 2
    assert open_files(folder / "_temporary").rows == 2


def test_people_in_names_of_folders_are_those_of_columns(tmp_path: Path) -> None:
    """A space is written as %20 there; rows of nobody were rows of somebody with a long name."""
    for name in ("who=Ann%20Lee", "who=07"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.csv").write_text("x\n1\n")
    (tmp_path / "b.csv").write_text("x,who\n1,Ann Lee\n2,7\n")
    assert len({*table_people(open_files(tmp_path), "who").tolist()}) == 2
    (tmp_path / "who=__HIVE_DEFAULT_PARTITION__").mkdir()
    (tmp_path / "who=__HIVE_DEFAULT_PARTITION__" / "a.csv").write_text("x\n1\n")
    with pytest.raises(ValueError, match="must name a person in every row"):
        table_people(open_files(tmp_path), "who")
