"""A table of whichever library as named columns of cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from numbers import Real
from typing import Any, Self

import numpy as np

# What the cells of a column plainly are, by numpy's kind of their type.
PLAIN = {"M": "date", "f": "number", "i": "number", "u": "number", "b": "boolean", "U": "category"}
OBJECTS: tuple[tuple[str, Any], ...] = (
    ("boolean", bool | np.bool_),
    ("number", Real | Decimal),
    ("date", date | np.datetime64),
    ("category", str),
)


@dataclass(frozen=True)
class Table:
    """A table as named columns of cells.

    Attributes
    ----------
    names : names of the columns
    cells : an array per column, all of one length
    named : whether the names are the table's own; otherwise they are x1, x2, ...

    """

    names: tuple[str, ...]
    cells: tuple[Any, ...]
    named: bool = True

    @classmethod
    def of(cls, given: Any) -> Self | None:
        """The table of a data frame, a mapping, records, a structured array, an array or rows.

        Returns
        -------
        Table or None
            None if there are no columns that could be told apart by kind.

        Raises
        ------
        ValueError
            It is a lazy table, which holds no cells.

        """
        if isinstance(given, Table):
            return given  # type: ignore[return-value]
        if is_lazy(given):
            raise ValueError("X is a lazy table: give what its collect() returns.")
        if isinstance(given, list | tuple) and len(given) and isinstance(given[0], Mapping):
            given = {name: [row.get(name) for row in given] for name in given[0]}
        labels = labels_of(given)
        if labels is None:
            return cls._from_rows(given)
        columns = [_cells(given[label]) for label in labels]
        if any(each.ndim != 1 or len(each) != len(columns[0]) for each in columns):
            return None
        if all(isinstance(label, str) for label in labels):
            return cls(tuple(map(str, labels)), tuple(columns))
        return cls(_default_names(len(columns)), tuple(columns), named=False)

    @classmethod
    def _from_rows(cls, given: Any) -> Self | None:
        """The columns of an array or of rows."""
        try:
            array = np.array(given, dtype=object) if _is_rows(given) else np.asarray(given)
        except ValueError:
            return None
        if array.ndim != 2 or array.shape[1] == 0:
            return None
        return cls(_default_names(array.shape[1]), tuple(array.T), named=False)

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self.cells[0])

    @property
    def shape(self) -> tuple[int, int]:
        """As arrays have it."""
        return self.rows, len(self.names)

    def __len__(self) -> int:
        return self.rows

    def column(self, name: str) -> Any:
        """The cells of the column with this name."""
        return self.cells[self.names.index(name)]


def is_lazy(given: Any) -> bool:
    """Whether a table holds no cells before it is collected."""
    return hasattr(given, "collect_schema") and not hasattr(given, "shape")


def labels_of(given: Any) -> list[Any] | None:
    """The names by which a table of whichever library gives its columns; None if it has none."""
    if isinstance(given, Mapping) and not hasattr(given, "shape"):  # as a sparse matrix has
        return list(given)
    if getattr(getattr(given, "dtype", None), "names", None):
        return list(given.dtype.names)
    if not hasattr(given, "__getitem__"):
        return None
    found = getattr(given, "column_names", None)  # of Arrow, whose columns are the cells
    found = getattr(given, "columns", None) if found is None else found
    return None if found is None else list(found)


def join_cells(parts: Sequence[Any]) -> Any:
    """The cells of several tables' columns in one array, each as its own table holds it.

    If types differ, they become Python's: instants to the microsecond, as finer ones would
    become whole numbers.
    """
    if len({part.dtype for part in parts}) > 1:
        plain = [part.astype("M8[us]") if part.dtype.kind == "M" else part for part in parts]
        parts = [part.astype(object) for part in plain]
    return np.concatenate(parts)


def kind_of(cells: Any) -> str | None:
    """The kind of the cells: "number", "boolean", "date" or "category"; None if mixed."""
    if cells.dtype.kind != "O":
        return PLAIN.get(cells.dtype.kind)
    present = [cell for cell in cells if not is_missing(cell)]
    for kind, types in OBJECTS if present else ():
        if all(isinstance(cell, types) for cell in present):
            return kind
    return None


def holds_others(cells: Any) -> bool:
    """Whether a cell is of no type that any kind of column reads."""
    if cells.dtype.kind != "O":
        return False
    known = tuple(types for _, types in OBJECTS)
    return any(
        not is_missing(cell) and not any(isinstance(cell, types) for types in known)
        for cell in cells
    )


def is_missing(cell: Any) -> bool:
    """None, NaN, NaT, NA, or an empty text."""
    if cell is None or (isinstance(cell, str) and not cell.strip()):
        return True
    try:
        return bool(cell != cell)
    except (TypeError, ValueError):  # what cannot be compared with itself, such as NA of pandas
        return True


def missing_cells(cells: Any) -> Any:
    """Which cells are missing, (rows,) of bool."""
    if cells.dtype.kind == "M":
        return np.isnat(cells)
    if cells.dtype.kind in "fc":
        return np.isnan(cells)
    if cells.dtype.kind in "iub":
        return np.zeros(len(cells), dtype=bool)
    return np.array([is_missing(cell) for cell in cells], dtype=bool)


def _cells(column: Any) -> Any:
    """One column as an array; instants with a time zone in UTC."""
    if getattr(getattr(column, "dtype", None), "tz", None) is not None:
        column = column.dt.tz_convert("UTC").dt.tz_localize(None)
    if hasattr(column, "to_numpy"):
        return cells_of(column)
    return column if isinstance(column, np.ndarray) else np.array(column, dtype=object)


def cells_of(column: Any) -> Any:
    """A column of whichever library as an array, of its own memory where that is to be had."""
    if hasattr(column, "combine_chunks") or hasattr(column, "buffers"):  # Arrow: text has no array
        return column.to_numpy(zero_copy_only=False)
    return column.to_numpy()


def _is_rows(given: Any) -> bool:
    return isinstance(given, Sequence) and not isinstance(given, str)


def _default_names(count: int) -> tuple[str, ...]:
    return tuple(f"x{k + 1}" for k in range(count))
