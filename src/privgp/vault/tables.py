"""Private tables: every cell is read separately, by what was declared of its column."""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privgp.plan.inputs.inputs import Inputs
from privgp.tables.table import Table, cells_without_value
from privgp.tables.texts import NOTHING
from privgp.types import Array, UserData
from privgp.vault.validate import clip_inputs, seal_outputs
from privgp.vault.values import Sealed, read_number, unseal

WRONG = "X must be a table with the declared columns, and hold a value of its kind in every cell."


def private_rows(X: Any, inputs: Inputs) -> Array:
    """The coordinates of private rows, moved into their declared bounds, (rows, width).

    Parameters
    ----------
    X
        Private table.
    inputs
        The declared kinds and bounds of its columns.

    Raises
    ------
    ValueError
        Whatever is wrong with them, the sentence is the same.

    """
    try:
        found = Table.of(unseal(X))
        if found is None or (not found.named and len(found.names) != len(inputs.names)):
            raise ValueError
        table = found if found.named else Table(inputs.names, found.cells)
        rows = np.hstack([_coordinates(column, table) for column in inputs.columns])
        if not np.all(np.isfinite(rows)):  # nothing read here is refused later, once it is paid for
            raise ValueError
        return rows
    except Exception:
        raise ValueError(WRONG) from None


def seal_rows(X: UserData, inputs: Inputs) -> Sealed:
    """The same, on the way to the vault's other functions."""
    rows = private_rows(X, inputs)
    return Sealed(rows, len(rows))


def seal_counts(points: Sealed, bins: Any) -> Sealed:
    """How many private points lie in every bin of the declared domain.

    Points outside are moved to it. A point whose category was not declared lies in no bin.

    Parameters
    ----------
    points : Sealed
        Where they lie, (points, columns).
    bins : PointBins
        Declared.

    """
    place = bins.find(clip_inputs(unseal(points), bins.low, bins.high))
    count = len(bins.places)
    return Sealed(np.bincount(place + 1, minlength=count + 1)[1:].astype(float), count)


def seal_values(y: UserData) -> Sealed:
    """A column of private numbers, checked; their number is public."""
    try:
        rows = len(y)
    except TypeError:
        rows = 0
    if rows < 1:
        raise ValueError("y must be a column of at least one value.")
    return seal_outputs(y, rows)


def seal_magnitudes(values: Sealed, ends: Array) -> Sealed:
    """How many private values lie below the first end, between every two, and above the last.

    Parameters
    ----------
    values : Sealed
        Private numbers.
    ends : array (ends,)
        Declared, rising.

    """
    places = np.searchsorted(ends, unseal(values), side="left")
    return Sealed(np.bincount(places, minlength=len(ends) + 1).astype(float), len(ends) + 1)


def _coordinates(column: Any, table: Table) -> Array:
    cells = [table.column(name) for name in column.names]
    if any(cells_without_value(each).any() for each in cells):
        raise ValueError
    if column.numeric:
        cells = [_numerals(each) for each in cells]
    return np.asarray(column.coordinates(column.within(column.numbers(cells))))


def _numerals(cells: Any) -> Any:
    """Cells that may be texts as numbers, each read as in any private column."""
    if cells.dtype.kind in "biufmM":  # of one machine type, or of none that holds numbers
        return cells
    return np.array([read_number(cell) for cell in cells], dtype=np.float64)


def complete_rows(
    columns: Sequence[Sequence[object]], levels: Sequence[Collection[str]] | None = None
) -> NDArray[np.bool_]:
    """Whether every cell of a row holds something, (rows,). Every cell is judged separately.

    Parameters
    ----------
    columns
        Cells, column by column.
    levels
        Those that were declared of each column, which are values, whatever they are called.

    """
    known = [()] * len(columns) if levels is None else levels
    held = [
        [_holds(cell, own) for cell in column] for column, own in zip(columns, known, strict=True)
    ]
    return np.asarray(np.all(held, axis=0))


def _holds(cell: object, levels: Collection[str]) -> bool:
    if isinstance(cell, str):
        word = cell.strip()
        return word.lower() not in NOTHING or word in levels
    return cell is not None and not (isinstance(cell, float) and np.isnan(cell))
