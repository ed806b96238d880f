"""What public columns of a table in files are, and where the kernel has their rows. Every cell is read
separately, so that files, batches and memory give the same numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from privgp.engine.local import Engine
from privgp.plan.inputs.inputs import FORM, Inputs
from privgp.plan.inputs.rows import BLOCK, PER_WORKER, Chunk, chunk_edges, runs, sort_by_person
from privgp.tables.files import BATCH, Files
from privgp.tables.kinds import MOST_LEVELS, levels_of
from privgp.tables.parser import TableError
from privgp.tables.table import Table, cells_without_value, join_cells
from privgp.types import Array, Integers, UserData

PLAIN = {"Date": "date", "Datetime": "date", "Categorical": "category", "Enum": "category"}


@dataclass(frozen=True)
class KnownTable(Table):
    """A table whose columns are known for what they are.

    Attributes
    ----------
    kinds : kinds of the columns

    """

    kinds: Inputs | None = None


def file_inputs(files: Files, names: tuple[str, ...], declared: object) -> Inputs | None:
    """The kinds of the columns of a table in files; None if all are numbers.

    Parameters
    ----------
    files
        Files of the table.
    names
        Names of the columns.
    declared
        Kinds by name, or None; other columns have the kind of their Parquet type. Levels that
        are not declared are read off all files, by one pass over the column.

    """
    if isinstance(declared, Inputs):
        return declared
    if not isinstance(declared, Mapping | None):
        raise ValueError(FORM)
    held = files.files[0].read(names, 0, min(1, files.files[0].rows))
    types = {name: str(held[name].dtype.base_type()) for name in names}
    said = [n for key in declared or () for n in (key if isinstance(key, tuple) else (key,))]
    plain = {name: PLAIN.get(types[name]) for name in names if name not in said}
    if declared is None and not any(plain.values()):
        return None
    truths = {name: "boolean" for name in plain if types[name] == "Boolean"}
    columns = dict(declared or {}) | {n: kind or "number" for n, kind in plain.items()} | truths
    cells = [_levels(files, n) if _is_open(columns.get(n)) else np.empty(0, object) for n in names]
    return Inputs.of(Table(names, tuple(cells)), columns)


def _is_open(said: object) -> bool:
    """Whether a column is a category whose levels are not declared."""
    return bool(said in ("category", ("category", None)))


def _levels(files: Files, name: str) -> Any:
    """The levels of a public column, by one pass over it."""
    found = set[str]()
    for _, _, frame in files.batches((name,)):
        cells = np.array(frame[name].unique().to_list(), dtype=object)
        found.update(levels_of(cells[~cells_without_value(cells)]))
        if len(found) > MOST_LEVELS:
            raise TableError(f"Column '{name}' has more than {MOST_LEVELS:,} levels: leave it out.")
    return np.array(sorted(found), dtype=object)


def table_of_columns(files: Files, kinds: Inputs) -> KnownTable:
    """All rows of a table that is read into memory, with their kinds."""
    read = [frame for _, _, frame in files.batches(kinds.names)]
    cells = [join_cells([frame[name].to_numpy() for frame in read]) for name in kinds.names]
    return KnownTable(kinds.names, tuple(cells), kinds=kinds)


def locate_rows(frame: UserData, kinds: Inputs, path: str) -> Array:
    """The coordinates of rows of a file, (rows, width); see ``read_numbers``."""
    return kinds.coordinates(read_numbers(frame, kinds, path))


def read_numbers(frame: UserData, kinds: Inputs, path: str) -> Array:
    """The numbers of rows of a file, (rows, names).

    Parameters
    ----------
    frame
        Some rows.
    kinds
        Kinds of the columns.
    path
        Path of the file, named in an error.

    Raises
    ------
    TableError
        A cell is missing or of another kind; the column is named, no cell.

    """
    parts = []
    for column in kinds.columns:
        cells = [frame[name].to_numpy() for name in column.names]
        told = f"Column{'s' if len(cells) > 1 else ''} " + " and ".join(
            f"'{name}'" for name in column.names
        )
        if any(cells_without_value(each).any() for each in cells):
            raise TableError(f"{told} of '{path}' must hold a value in every row.")
        try:
            parts.append(column.numbers(cells))
        except (ValueError, OverflowError):
            raise TableError(f"{told} of '{path}' must hold {column.holds} in every row.") from None
    return np.hstack(parts)


Read = Callable[[Any], Any]


@dataclass(frozen=True)
class TableRows:
    """The input columns of a range of rows in files; see ``Rows``.

    Attributes
    ----------
    files : files of the table
    names : names of the input columns
    first, stop : the range of rows
    kinds : the kinds of the columns, if they are not all numbers

    """

    files: Files
    names: tuple[str, ...]
    first: int
    stop: int
    kinds: Inputs | None = None

    @property
    def count(self) -> int:
        """How many rows are used."""
        return self.stop - self.first

    @property
    def total(self) -> int:
        """How many rows there are: all are used."""
        return self.count

    @property
    def columns(self) -> int:
        """How many coordinates the kernel has of a row."""
        return len(self.names) if self.kinds is None else self.kinds.width

    @property
    def persons(self) -> None:
        """None: every row is a person."""
        return None

    def parts(self, number: int) -> list[Self]:
        """Runs of whole chunks, about this many; each can be sent to a worker."""
        return [
            replace(
                self,
                first=self.first + BLOCK * first,
                stop=min(self.first + BLOCK * stop, self.stop),
            )
            for first, stop in runs(-(-self.count // BLOCK), number)
        ]

    def chunks(self) -> Iterator[Chunk]:
        """All rows in order, 2,048 at a time."""
        return (chunk for chunk, _ in self.beside((), _unread_column))

    def beside(self, others: tuple[str, ...], read: Read) -> Iterator[tuple[Chunk, object]]:
        """Every chunk with what is ``read`` of other columns of its rows, file by file.

        Parameters
        ----------
        others
            Names of the other columns, which may be private.
        read
            From a frame to one value per row.

        """
        for start in range(self.first, self.stop, BATCH):
            stop = min(start + BATCH, self.stop)
            inputs, beside = [], []
            for _, path, frame in self.files.batches([*self.names, *others], start, stop):
                inputs.append(coordinates(frame, self.names, self.kinds, path))
                beside.append(read(frame))
            X, held = np.concatenate(inputs), np.concatenate(beside)
            for first in range(0, len(X), BLOCK):
                here = slice(first, first + BLOCK)
                yield Chunk(start + first, np.ascontiguousarray(X[here])), held[here]

    def take(self, places: Integers, engine: Engine) -> Array:
        """The inputs at these ascending places, (places, columns)."""
        return take_rows(self.files, self.names, self.kinds, places + self.first, engine)


@dataclass(frozen=True)
class TablePeople:
    """The same with whole people in every chunk, as ``PeopleRows`` has them in memory.

    The person of every row is in memory; the rows themselves are read anew for every block.

    Attributes
    ----------
    files, names, kinds : as in ``TableRows``
    people : the column of people
    codes : (rows,), of people, ascending
    places : (rows,), where each row is in the table
    edges : (chunks + 1,), of chunks among all sorted rows
    total : number of rows, those that are not used included

    """

    files: Files
    names: tuple[str, ...]
    people: str
    codes: Integers
    places: Integers
    edges: Integers
    total: int
    kinds: Inputs | None = None

    @classmethod
    def of(
        cls,
        files: Files,
        names: tuple[str, ...],
        people: str,
        codes: Integers,
        most: int,
        kinds: Inputs | None = None,
    ) -> Self:
        """All rows, but those beyond a person's first ``most``.

        Parameters
        ----------
        files, names, people, kinds
            As above.
        codes
            (rows,), the person of every row in the order of the table.
        most
            Rows of one person that are used.

        """
        order = sort_by_person(codes, most)
        edges = chunk_edges(codes[order], len(codes))
        return cls(files, names, people, codes[order], order, edges, len(codes), kinds)

    @property
    def count(self) -> int:
        """How many rows are used."""
        return len(self.codes)

    @property
    def columns(self) -> int:
        """How many coordinates the kernel has of a row."""
        return len(self.names) if self.kinds is None else self.kinds.width

    @property
    def persons(self) -> int:
        """How many people the rows are of."""
        return len(np.unique(self.codes))

    def parts(self, number: int) -> list[Self]:
        """Runs of whole chunks, about this many; each can be sent to a worker."""
        found, before = [], self.edges[0]
        for first, stop in runs(len(self.edges) - 1, number):
            here = slice(self.edges[first] - before, self.edges[stop] - before)
            edges = self.edges[first : stop + 1]
            held = self.codes[here], self.places[here]
            found.append(replace(self, codes=held[0], places=held[1], edges=edges))
        return found

    def chunks(self) -> Iterator[Chunk]:
        """All rows that are used, chunk by chunk."""
        return (chunk for chunk, _ in self.beside((), _unread_column))

    def beside(self, others: tuple[str, ...], read: Read) -> Iterator[tuple[Chunk, object]]:
        """Every chunk with what is ``read`` of other columns of its rows, file by file.

        Parameters
        ----------
        others
            Names of the other columns, which may be private.
        read
            From a frame to one value per row.

        """
        order = np.argsort(self.places)
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        inputs, beside = [], []
        wanted = list(dict.fromkeys([*self.names, *others]))  # people may be an input too
        for _, path, frame in self.files.take_batches(wanted, self.places[order]):
            inputs.append(coordinates(frame, self.names, self.kinds, path))
            beside.append(read(frame))
        X, held = np.concatenate(inputs)[back], np.concatenate(beside)[back]
        for first, stop in zip(self.edges[:-1], self.edges[1:], strict=True):
            here = slice(first - self.edges[0], stop - self.edges[0])
            yield Chunk(int(first), np.ascontiguousarray(X[here]), self.codes[here]), held[here]

    def take(self, places: Integers, engine: Engine) -> Array:
        """The inputs at these ascending places, (places, columns)."""
        return take_rows(self.files, self.names, self.kinds, places, engine)


def _unread_column(frame: UserData) -> Array:
    return np.empty(frame.height)


@dataclass(frozen=True, repr=False)
class Taking:
    """The inputs at ascending places, and which of several runs of them they are; for workers."""

    files: Files
    names: tuple[str, ...]
    kinds: Inputs | None

    def __call__(self, run: tuple[int, Integers]) -> tuple[int, Array]:
        read = self.files.take_batches(self.names, run[1])
        found = [coordinates(frame, self.names, self.kinds, path) for _, path, frame in read]
        return run[0], np.concatenate(found)


def take_rows(
    files: Files, names: tuple[str, ...], kinds: Inputs | None, places: Integers, engine: Engine
) -> Array:
    """The inputs at ascending places, (places, columns), looked up by many workers.

    Parameters
    ----------
    files, names, kinds
        As in ``TableRows``.
    places
        Ascending.
    engine
        The workers that look them up.

    """
    each = runs(len(places), PER_WORKER * engine.workers)
    held = [(k, places[first:stop]) for k, (first, stop) in enumerate(each)]
    found = dict(engine.map(Taking(files, names, kinds), held))
    return np.concatenate([found[k] for k in range(len(held))])


def coordinates(frame: UserData, names: tuple[str, ...], kinds: Inputs | None, path: str) -> Array:
    """Where the kernel has rows of a file, (rows, columns)."""
    return numbers(frame, names, path) if kinds is None else locate_rows(frame, kinds, path)


def numbers(frame: Any, names: tuple[str, ...], path: str) -> Array:
    """Public columns as finite numbers, (rows, columns).

    Raises
    ------
    TableError
        A column holds something else; file and column are named.

    """
    import polars as pl

    out = np.empty((frame.height, len(names)))
    for k, name in enumerate(names):
        column = frame[name]
        if column.dtype == pl.String:
            column = column.str.strip_chars()
        elif not (column.dtype.is_numeric() or column.dtype == pl.Boolean):
            raise TableError(f"Column '{name}' of '{path}' must hold numbers.")
        values = column.cast(pl.Float64, strict=False).to_numpy()
        if not np.all(np.isfinite(values)):
            other = "; categories and dates must be declared" if column.dtype == pl.String else ""
            raise TableError(
                f"Column '{name}' of '{path}' must hold a finite number in every row{other}."
            )
        out[:, k] = values
    return out
