"""Data frames of any library: columns by name, and answers as a frame of the same library.

A column is handed on as its own library holds it. Nothing here looks at a value, so private columns
may pass through.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any

import narwhals as nw
from narwhals.typing import IntoBackend

NO_TABLE = (
    "table must be a data frame (pandas, polars, pyarrow or another with Arrow columns) or a dict of "
    "columns, with a name for each column."
)


def columns_by_name(table: Any) -> dict[str, Any]:
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


def frame_like(table: Any, columns: Mapping[str, Any]) -> Any:
    """A data frame of these columns, of the library that the table is of, or of polars."""
    backend: IntoBackend[Any] = "polars"
    if not isinstance(table, Mapping):
        backend = _frame(table).implementation
    return nw.from_dict(dict(columns), backend=backend).to_native()


def frame_of(columns: Mapping[str, Any], like: Any = None) -> Any:
    """A data frame of these columns: of the library of the table that it is about; where that is an
    array, of pandas, or of polars if pandas is not installed."""
    if isinstance(like, Mapping) or (like is not None and _is_frame(like)):
        return frame_like(like, columns)
    backend: IntoBackend[Any] = "pandas" if find_spec("pandas") else "polars"
    return nw.from_dict(dict(columns), backend=backend).to_native()


def _is_frame(table: Any) -> bool:
    try:
        nw.from_native(table)
    except TypeError:
        return hasattr(table, "__arrow_c_stream__")
    return True


def absent(columns: Mapping[str, Any], wanted: Sequence[str]) -> list[str]:
    """The names of wanted columns that are not there."""
    return [name for name in wanted if name not in columns]


def _frame(table: Any) -> nw.DataFrame[Any]:
    try:
        frame = nw.from_native(table)
    except TypeError:
        if not hasattr(table, "__arrow_c_stream__"):
            raise ValueError(NO_TABLE) from None
        return nw.from_arrow(table, backend="polars")
    return frame.collect() if isinstance(frame, nw.LazyFrame) else frame
