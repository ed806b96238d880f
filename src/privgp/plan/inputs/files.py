"""What public columns of a table in files are, and where the kernel has their rows. Every cell is read
separately, so that files, batches and memory give the same numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from privgp.errors import TableError
from privgp.plan.inputs.inputs import Inputs, list_columns
from privgp.tables.files import Files
from privgp.tables.kinds import MOST_LEVELS, levels_of
from privgp.tables.table import Table, cells_without_value, join_cells
from privgp.types import Array, UserData

PLAIN = {"Date": "date", "Datetime": "date", "Categorical": "category", "Enum": "category"}


@dataclass(frozen=True)
class KnownTable(Table):
    """A table whose columns are known for what they are.

    Attributes
    ----------
    kinds : kinds of the columns

    """

    kinds: Inputs | None = None


def file_inputs(files: Files, names: tuple[str, ...], declared: UserData) -> Inputs | None:
    """The kinds of the columns of a table in files; None if all are numbers.

    Parameters
    ----------
    files
        Files of the table.
    names
        Names of the columns.
    declared
        Kinds by name, or None; other columns have the kind of their Parquet type. Levels that
        are not declared are read from all files, by one pass over the column.

    """
    if isinstance(declared, Inputs):
        return declared
    said = list_columns(declared)
    held = files.files[0].read(names, 0, min(1, files.files[0].rows))
    types = {name: str(held[name].dtype.base_type()) for name in names}
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


def all_numbers(files: Files, names: tuple[str, ...]) -> Array:
    """All rows of public columns of numbers, (rows, columns)."""
    return np.concatenate([numbers(frame, names, path) for _, path, frame in files.batches(names)])


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
