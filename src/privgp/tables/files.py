"""Many CSV or Parquet files as one table of rows in order, of which any range of any columns can be
read."""

import glob
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

import polars as pl

from privgp.errors import TableError
from privgp.tables.parser import PLAIN, Layout, count_rows, is_csv, read_header, read_rows
from privgp.tables.texts import use_decimal_points

ENDINGS = (".csv", ".parquet")
FilePath = str | os.PathLike[str]
READ = 2**20  # rows that are read at a time: files hold groups of many rows, which are read whole
PATTERN = re.compile(r"[*?\[]")
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"  # how programs name the folder of rows without one
PARTITION = re.compile(r"([^=/\\]+)=([^=/\\]*)")


@dataclass(frozen=True)
class File:
    """One file of a table.

    Attributes
    ----------
    path : its path
    names : names of its columns
    rows : how many
    partition : columns that its folders name, and their values, as in ``year=2024/``
    stamp : size, inode and times of changes when it was opened
    layout : how a CSV file is written

    """

    path: str
    names: tuple[str, ...]
    rows: int
    partition: tuple[tuple[str, str], ...] = ()
    stamp: tuple[int, ...] = ()
    layout: Layout = PLAIN

    @property
    def is_csv(self) -> bool:
        return is_csv(self.path)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of all columns, those of its folders last."""
        return *self.names, *(name for name, _ in self.partition)

    def read(self, wanted: Sequence[str], first: int = 0, stop: int | None = None) -> pl.DataFrame:
        """These columns of the rows from ``first`` to ``stop``, cells of a CSV file as text.

        Numbers are written with decimal points, as the layout says, every cell separately.
        """
        held, stop = dict(self.partition), self.rows if stop is None else stop
        if all(name in held for name in wanted):  # a constant alone would be one row
            return pl.DataFrame({name: [held[name]] * (stop - first) for name in wanted})
        columns = [
            pl.lit(held[name]) if name in held else self._cells(self.names.index(name))
            for name in wanted
        ]
        named = [cells.alias(name) for cells, name in zip(columns, wanted, strict=True)]
        return read_rows(self.path, named, self.rows, first, stop, self.layout)

    def _cells(self, place: int) -> pl.Expr:
        cells, layout = pl.nth(place), self.layout
        if not self.is_csv or self.names[place] in layout.texts:
            return cells
        return use_decimal_points(cells, layout.decimal_comma)


@dataclass(frozen=True)
class Files:
    """The files of a table, one after the other."""

    files: tuple[File, ...]

    @property
    def rows(self) -> int:
        """How many rows all files have together."""
        return sum(file.rows for file in self.files)

    def check(self, wanted: Sequence[str]) -> None:
        """Refuse columns that some file does not have, or has twice, by TableError."""
        for file in self.files:
            for name in wanted:
                count = file.columns.count(name)
                if count != 1:
                    many = "several columns named" if count else "no column"
                    raise TableError(f"'{file.path}' has {many} '{name}'.")

    def refuse_changes(self) -> None:
        """Refuse files that were rewritten, replaced or removed since they were opened.

        Rows read before and after would not be those of one table.
        """
        for file in self.files:
            if stamp_of(file.path) != file.stamp:
                raise TableError(
                    f"'{file.path}' was changed since the table was opened. Nothing was released: open "
                    "the table again, once nobody writes to it."
                )

    def read(self, wanted: Sequence[str]) -> pl.DataFrame:
        """These columns of all rows.

        Raises
        ------
        TableError
            A column has not one type in all files: none is read by that of another.

        """
        self.check(wanted)
        first, *others = read = [file.read(wanted) for file in self.files]
        for file, frame in zip(self.files[1:], others, strict=True):
            for name in wanted:
                if frame[name].dtype != first[name].dtype:
                    raise TableError(
                        f"Column '{name}' of '{file.path}' has another type than in "
                        f"'{self.files[0].path}': write all files alike."
                    )
        return pl.concat(read)

    def batches(
        self, wanted: Sequence[str], first: int = 0, stop: int | None = None, size: int = READ
    ) -> Iterator[tuple[int, str, pl.DataFrame]]:
        """The rows of a range in order.

        Parameters
        ----------
        wanted
            The columns.
        first, stop
            The range, of all files together.
        size
            How many rows at a time.

        Yields
        ------
        place, path, frame
            The place of the first row, the file they are in, and a table.

        """
        before, stop = 0, self.rows if stop is None else stop
        for file in self.files:
            start, end = max(first - before, 0), min(stop - before, file.rows)
            for place in range(start, end, size):
                last = min(place + size, end)
                yield before + place, file.path, file.read(wanted, place, last)
            before += file.rows


def open_files(paths: FilePath | Iterable[FilePath]) -> Files:
    """The files of a table: a file, a folder, a pattern such as ``trips/*.parquet``, or several of
    them.

    Every line of every file is checked, and hidden or unfinished files in folders are left out.

    Raises
    ------
    TableError
        Nothing is found, a file is given twice, or no file has rows.

    """
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    found: list[str] = []
    for each in given:
        found += _list_files(os.fspath(each))
    if not found:
        raise TableError("no table was given.")
    if len({_same(path) for path in found}) < len(found):
        raise TableError("a file of the table is given twice, by its name or by a link to it.")
    files = tuple(_describe_file(path) for path in found)
    if not sum(file.rows for file in files):
        raise TableError(f"'{found[0]}' has a header but no rows: add at least one.")
    return Files(files)


def _list_files(path: str) -> list[str]:
    if os.path.isfile(path):
        if not path.lower().endswith(ENDINGS):
            raise TableError(f"'{path}' must end in {' or '.join(ENDINGS)}.")
        return [path]
    held = [path]
    if not os.path.isdir(path):
        if not PATTERN.search(path):
            raise TableError(f"The file '{path}' does not exist: check its name and folder.")
        held = _match_paths(path)
    found: list[str] = []
    for each in held:
        inside = _inside(Path(each)) if os.path.isdir(each) else [each]
        found += [name for name in inside if name.lower().endswith(ENDINGS)]
    if not found:
        raise TableError(f"'{path}' has no file that ends in {' or '.join(ENDINGS)}.")
    return list(dict.fromkeys(found))


def _inside(folder: Path) -> list[str]:
    """What a folder holds, except for what programs put aside."""
    found = (each for each in folder.rglob("*") if not _is_aside(each.relative_to(folder).parts))
    return sorted(map(str, found))


def _match_paths(pattern: str) -> list[str]:
    """What has the pattern, except for what programs put aside and the pattern does not name."""
    parts = Path(pattern).parts
    fixed = next(k for k, part in enumerate(parts) if PATTERN.search(part))
    found = sorted(glob.glob(pattern, recursive=True))
    if _is_aside(parts[fixed:]):
        return found
    return [each for each in found if not _is_aside(Path(each).parts[fixed:])]


def _is_aside(parts: Sequence[str]) -> bool:
    """Whether a name begins with a dot or an underscore: programs call copies and unfinished files so,
    whose rows are there once more. A folder that names a column may be called anything."""
    return any(part.startswith((".", "_")) and "=" not in part for part in parts)


def _same(path: str) -> tuple[object, ...]:
    """Equal for all names of one file."""
    try:
        found = os.stat(path)
    except OSError:
        return (path,)
    return found.st_dev, found.st_ino


def _describe_file(path: str) -> File:
    parts, stamp = Path(path).parent.parts, stamp_of(path)  # before anything is read of it
    matched = (PARTITION.fullmatch(part) for part in parts)
    partition = tuple((found[1], _folder_value(found[2])) for found in matched if found)
    rows, names = count_rows(path), read_header(path)
    held = tuple(pair for pair in partition if pair[0] not in names)
    return File(path, names, rows, held, stamp)


def _folder_value(written: str) -> str:
    """The value in the name of a folder, as programs write it; empty where there is none."""
    return "" if written == NO_VALUE else unquote(written)


def stamp_of(path: str) -> tuple[int, ...]:
    """What changes with a file, except for its content; empty where there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return ()
    return found.st_size, found.st_ino, found.st_mtime_ns, found.st_ctime_ns
