"""A table of whichever library as named columns of cells, and answers as a frame of the same library.

A column is handed on as its own library holds it. Nothing here looks at a value but to see of which kind a
public column is, so private columns may pass through.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from importlib.util import find_spec
from numbers import Real
from types import UnionType
from typing import TYPE_CHECKING, Self

import narwhals as nw
import numpy as np
from narwhals.exceptions import NarwhalsError

from privgp.types import Cells, UserData

if TYPE_CHECKING:
    from narwhals.typing import EagerAllowed, IntoBackend, IntoDataFrame

NO_TABLE = (
    "table must be a data frame (pandas, polars, pyarrow or another with Arrow columns) or a dict of "
    "columns, with a name for each column."
)
# Libraries whose frames scikit-learn reads.
KNOWN = (nw.Implementation.PANDAS, nw.Implementation.POLARS)
# The inferred kind of a column's cells, by numpy's kind of their type.
PLAIN = {"M": "date", "f": "number", "i": "number", "u": "number", "b": "boolean", "U": "category"}
OBJECTS: tuple[tuple[str, UnionType | type], ...] = (
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
    places : two columns that are a place, and its coordinate reference system, None for degrees
    orders : the levels of columns whose library knows an order of them, by name

    """

    names: tuple[str, ...]
    cells: tuple[Cells, ...]
    named: bool = True
    places: tuple[tuple[tuple[str, str], str | None], ...] = ()
    orders: Mapping[str, tuple[object, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, given: UserData) -> Self | None:
        """The table of a data frame, a mapping, records, a structured array, an array or rows.

        Returns
        -------
        Table or None
            None if there are no columns that could be distinguished by kind.

        """
        given = given if isinstance(given, Table) else in_memory(given)
        if isinstance(given, Table):
            return given  # type: ignore[return-value]
        if isinstance(given, list | tuple) and len(given) and isinstance(given[0], Mapping):
            given = {name: [row.get(name) for row in given] for name in given[0]}
        labels = labels_of(given)
        if labels is None:
            return cls._from_rows(given)
        if len(set(labels)) < len(labels):
            raise ValueError("The table has two columns of one name: rename one of them.")
        columns = [_cells(given[label]) for label in labels]
        if any(each.ndim != 1 or len(each) != len(columns[0]) for each in columns):
            return None
        if all(isinstance(label, str) for label in labels):
            known = {str(label): _order(given[label]) for label in labels}
            orders = {name: levels for name, levels in known.items() if levels}
            return cls(tuple(map(str, labels)), tuple(columns), orders=orders)
        return cls(_default_names(len(columns)), tuple(columns), named=False)

    @classmethod
    def _from_rows(cls, given: object) -> Self | None:
        """The columns of an array or of rows."""
        try:
            array = np.array(given, dtype=object) if _is_rows(given) else np.asarray(given)
        except ValueError:
            return None
        if array.ndim != 2 or array.shape[1] == 0:
            return None
        return cls(_default_names(array.shape[1]), tuple(array.T), named=False)

    @property
    def columns(self) -> tuple[str, ...] | None:
        """The names, as data frames have them; None if they are not the table's own."""
        return self.names if self.named else None

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

    def column(self, name: str) -> Cells:
        """The cells of the column with this name."""
        return self.cells[self.names.index(name)]


def is_lazy(given: object) -> bool:
    """Whether a table holds no cells before it is collected."""
    return hasattr(given, "collect_schema") and not hasattr(given, "shape")


def labels_of(given: UserData) -> list[object] | None:
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


def join_cells(parts: Sequence[Cells]) -> Cells:
    """The cells of several tables' columns in one array, each as its own table holds it.

    If types differ, they become Python's: instants to the microsecond, as finer ones would
    become whole numbers.
    """
    if len({part.dtype for part in parts}) > 1:
        plain = [part.astype("M8[us]") if part.dtype.kind == "M" else part for part in parts]
        parts = [part.astype(object) for part in plain]
    return np.concatenate(parts)


def kind_of(cells: Cells) -> str | None:
    """The kind of the cells: "number", "boolean", "date" or "category"; None if mixed."""
    if cells.dtype.kind != "O":
        return PLAIN.get(cells.dtype.kind)
    present = [cell for cell in cells if not has_no_value(cell)]
    for kind, types in OBJECTS if present else ():
        if all(isinstance(cell, types) for cell in present):
            return kind
    return None


def holds_others(cells: Cells) -> bool:
    """Whether a cell is of no type that any kind of column reads."""
    if cells.dtype.kind != "O":
        return False
    known = tuple(types for _, types in OBJECTS)
    return any(
        not has_no_value(cell) and not any(isinstance(cell, types) for types in known)
        for cell in cells
    )


def has_no_value(cell: object) -> bool:
    """None, NaN, NaT, NA, or an empty text."""
    if cell is None or (isinstance(cell, str) and not cell.strip()):
        return True
    try:
        return bool(cell != cell)
    except (TypeError, ValueError):  # what cannot be compared with itself, such as NA of pandas
        return True


def cells_without_value(cells: Cells) -> Cells:
    """Which cells are missing, (rows,) of bool."""
    if cells.dtype.kind == "M":
        return np.isnat(cells)
    if cells.dtype.kind in "fc":
        return np.isnan(cells)
    if cells.dtype.kind in "iub":
        return np.zeros(len(cells), dtype=bool)
    return np.array([has_no_value(cell) for cell in cells], dtype=bool)


def _cells(column: UserData) -> Cells:
    """One column as an array; instants with a time zone in UTC."""
    if getattr(getattr(column, "dtype", None), "tz", None) is not None:
        column = column.dt.tz_convert("UTC").dt.tz_localize(None)
    if hasattr(column, "to_numpy"):
        return cells_of(column)
    return column if isinstance(column, np.ndarray) else np.array(column, dtype=object)


def _order(column: UserData) -> tuple[object, ...]:
    """The levels of an ordered category of pandas or an enumeration of polars, in their order."""
    kind = getattr(column, "dtype", None)
    levels = getattr(kind, "categories", None)
    is_ordered = getattr(kind, "ordered", type(kind).__name__ == "Enum")
    return tuple(levels) if levels is not None and is_ordered else ()


def cells_of(column: UserData) -> Cells:
    """A column of whichever library as an array, of its own memory where that is to be had."""
    is_arrow = hasattr(column, "combine_chunks") or hasattr(column, "buffers")  # text has no array
    found: Cells = column.to_numpy(**({"zero_copy_only": False} if is_arrow else {}))
    return found


def _is_rows(given: object) -> bool:
    return isinstance(given, Sequence) and not isinstance(given, str)


def _default_names(count: int) -> tuple[str, ...]:
    return tuple(f"x{k + 1}" for k in range(count))


def columns_by_name(table: UserData) -> dict[str, UserData]:
    """The columns of a table by their names, each as its library holds it.

    Parameters
    ----------
    table : data frame or mapping
        A frame of any library that narwhals reads (a lazy one is collected), an object with an Arrow
        stream, or a mapping of names to columns.

    """
    if isinstance(table, Mapping) and not hasattr(table, "shape"):
        found = dict(table)
    else:
        frame = _frame(table)
        found = {name: frame[name].to_native() for name in frame.columns}
    if not found or not all(isinstance(name, str) for name in found):
        raise ValueError(NO_TABLE)
    return found


def frame_of(columns: Mapping[str, object], like: UserData = None) -> IntoDataFrame:
    """A data frame of these columns: of the library of the table that it is about, or of polars; where that
    is an array, of pandas, or of polars if pandas is not installed."""
    backend: IntoBackend[EagerAllowed] = "polars"
    if like is None or isinstance(like, np.ndarray | Sequence):
        backend = "pandas" if find_spec("pandas") else backend
    else:
        with suppress(TypeError):  # it is a mapping, or a stream that was read
            of = nw.from_native(like).implementation
            backend = of if of in (*KNOWN, nw.Implementation.PYARROW) else backend
    frame: nw.DataFrame[IntoDataFrame] = nw.from_dict(dict(columns), backend=backend)
    return frame.to_native()


def absent(columns: Mapping[str, object], wanted: Sequence[str]) -> list[str]:
    """The names of wanted columns that are not there."""
    return [name for name in wanted if name not in columns]


def in_memory(given: UserData) -> UserData:
    """A lazy frame, a frame of Arrow or an Arrow stream as one that holds its cells; the points of a
    GeoDataFrame as a place; all else as it is."""
    if hasattr(given, "active_geometry_name"):
        return _with_place(given)
    frame = None if isinstance(given, np.ndarray | Mapping | Sequence) else _find_frame(given)
    if frame is None or frame.implementation in KNOWN:
        return given if frame is None else frame.to_native()
    return frame.to_polars()


def _with_place(given: UserData) -> Table:
    """A GeoDataFrame with its points as two columns: latitude and longitude, or east and north."""
    geometry, crs = given.active_geometry_name, given.crs
    try:
        east, north = given[geometry].x.to_numpy(), given[geometry].y.to_numpy()
    except (ValueError, AttributeError, KeyError):  # whose texts may quote values
        raise ValueError(f"column {geometry!r} must hold points, one in every row.") from None
    degrees = crs is None or crs.to_epsg() == 4326
    names = ("latitude", "longitude") if degrees else ("easting", "northing")
    others = [str(label) for label in given.columns if label != geometry]
    if not {*names}.isdisjoint(others):
        raise ValueError(f"rename the column {names[0]!r} or {names[1]!r}: points are called so.")
    cells = [_cells(given[label]) for label in given.columns if label != geometry]
    place = (names, None if degrees else crs.to_string())
    points = (north, east) if degrees else (east, north)
    return Table((*others, *names), (*cells, *points), places=(place,))


def _frame(table: object) -> nw.DataFrame[IntoDataFrame]:
    found = _find_frame(table)
    if found is None:
        raise ValueError(NO_TABLE)
    return found


def _find_frame(table: UserData) -> nw.DataFrame[IntoDataFrame] | None:
    """The frame of any library that narwhals reads, a lazy one collected; None if it is none."""
    try:
        frame = nw.from_native(table)
    except TypeError:
        # a column has an Arrow stream too, and is an array
        if not hasattr(table, "__arrow_c_stream__") or hasattr(table, "__array__"):
            return None
        return nw.from_arrow(table, backend="polars")
    except NarwhalsError:  # columns of one name
        return None
    return frame.collect() if isinstance(frame, nw.LazyFrame) else frame
