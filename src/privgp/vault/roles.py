"""A private column has one role, and the columns of a row stand in the same place of their tables.

Names, memory and pandas indexes are compared, never values: what is refused depends on no private value.
"""

from collections.abc import Hashable, Iterator, Mapping
from itertools import combinations, product
from typing import Any

import numpy as np

from privgp.tables.table import cells_of, is_lazy, labels_of

Column = tuple[Hashable, Any]  # its name, if it has one, and its cells, unless they are in files


def check_roles(private: Any, *, called: str = "y", **others: Any) -> None:
    """Refuse a private column that is also used for something else, and rows in another order.

    Parameters
    ----------
    private : column or table
        The private column, or several; None has no role.
    called : str
        The argument that it was given as.
    **others : column or table
        The other arguments by their names, such as X, groups and exposure; None where not given.

    """
    check_order(**others, **{called: private})
    for role, other in others.items():
        for (name, cells), (taken, held) in _pairs(private, other):
            if name is not None and name == taken:
                raise ValueError(
                    f"{called} is called {name!r}, like a column of {role}: a private column must not "
                    f"be used twice, as it could be published. Leave it out of {role}, or rename it if "
                    "it is another column. Nothing was spent."
                )
            if _share_memory(cells, held):
                raise ValueError(
                    f"{called} shares memory with a column of {role}: a private column must not be "
                    f"used twice, as it could be published. Leave it out of {role}. Nothing was spent."
                )


def check_order(**given: Any) -> None:
    """Refuse arguments, by their names, whose pandas indexes differ though they have equally many rows."""
    indexed = [(role, index) for role, table in given.items() for index in _indexes(table)]
    for (role, index), (other, another) in combinations(indexed, 2):
        if len(index) == len(another) and not index.equals(another):
            raise ValueError(
                f"{role} and {other} have different pandas indexes, so their rows may not belong "
                f"together: bring them into one order, such as {other} = {other}.loc[{role}.index], or "
                "give both reset_index(drop=True) if their rows correspond. Nothing was spent."
            )


def _pairs(private: Any, other: Any) -> Iterator[tuple[Column, Column]]:
    columns, others = [[*_columns(given)] for given in (private, other)]
    if [*getattr(private, "columns", ())] == [*range(len(columns))]:  # numbered, not named
        columns = [(None, cells) for _, cells in columns]
    return product(columns, others)


def _columns(given: Any) -> Iterator[Column]:
    """The columns of a table of whichever library, or the one that is given."""
    for name, cells in _pair_names(given):
        for part in _chunks(cells):
            yield None if isinstance(name, str) and not name else name, _memory(part)


def _pair_names(given: Any) -> Iterator[tuple[Hashable, Any]]:
    names = getattr(given, "names", None)
    if isinstance(names, tuple):  # a table of this package, whose cells may be in files
        yield from zip(names, getattr(given, "cells", (None,) * len(names)), strict=True)
    elif given is None:
        return
    elif is_lazy(given):
        yield from ((name, None) for name in given.collect_schema().names())
    elif isinstance(given, list | tuple) and given and isinstance(given[0], Mapping):
        yield from ((name, None) for name in given[0])
    elif (labels := labels_of(given)) is not None:
        yield from ((label, given[label]) for label in labels)
    elif isinstance(given, np.ndarray) and given.ndim > 1:
        yield from ((None, cells) for cells in np.moveaxis(given, 1, 0))
    else:
        yield getattr(given, "name", None), given


def _chunks(cells: Any) -> list[Any]:
    """The pieces of a column of Arrow or polars, each with memory of its own."""
    found = cells.get_chunks() if hasattr(cells, "get_chunks") else getattr(cells, "chunks", None)
    return found if isinstance(found, list) and found else [cells]


def _memory(cells: Any) -> Any:
    """Cells as an array of their own memory where that is to be had; a list as it is."""
    if hasattr(cells, "to_numpy"):
        return cells_of(cells)
    own = isinstance(cells, memoryview) or hasattr(cells, "__array_interface__")
    return np.asarray(cells) if own else cells  # which are not read


def _share_memory(cells: Any, others: Any) -> bool:
    if isinstance(cells, np.ndarray) and isinstance(others, np.ndarray):
        return bool(np.may_share_memory(cells, others) and np.shares_memory(cells, others))
    return cells is not None and cells is others


def _indexes(given: Any) -> Iterator[Any]:
    """The pandas indexes of a table or of its columns."""
    for each in given.values() if isinstance(given, dict) else (given,):
        index = getattr(each, "index", None)
        if hasattr(index, "equals"):
            yield index
