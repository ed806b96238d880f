"""Refuse or clip private values. Errors name the problem and never a value, a place or a count."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import DataConversionWarning

from privgp.types import Array, Column, Integers, Table, UserData
from privgp.vault.masked import Sealed, unseal
from privgp.vault.values import column, entries, is_row, numbers, person, read_label, read_number

NOBODY = (
    "groups contain missing values, or texts such as NA or - in their place: every row needs an "
    "identifier."
)
TOO_LARGE = (
    "groups hold numbers too large for floats to tell apart: give them as whole numbers or text."
)


def check_outputs(y: Column, rows: int) -> Array:
    """Outputs as finite float64 numbers, one per row, (rows,).

    Parameters
    ----------
    y
        Private numbers in any container, each read by itself.
    rows
        How many there must be.

    Raises
    ------
    ValueError
        The sentence names the problem, never a value or its place.

    """
    values, is_table = None, False
    try:
        held, is_table = column(unseal(y))
        values = numbers(held)
    except LookupError:
        pass  # of another shape: refused below
    except OverflowError:
        raise ValueError("y must be finite numbers.") from None
    except (TypeError, ValueError):
        raise ValueError("y must be numbers.") from None
    if is_table:
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected.",
            DataConversionWarning,
            stacklevel=3,
        )
    if values is None or len(values) != rows:
        raise ValueError("y must be one-dimensional, one value for each row of X.")
    if not np.all(np.isfinite(values)):
        raise ValueError("Input y contains NaN or infinity.")
    return values


def seal_outputs(y: UserData, rows: int) -> Sealed:
    """The same, on the way to the vault's other functions."""
    return Sealed(check_outputs(y, rows), rows)


def seal_inputs(X: Table, columns: int) -> Sealed:
    """Private inputs, checked, on the way to the vault's other functions."""
    inputs = check_private_inputs(X, columns)
    return Sealed(inputs, len(inputs))


def check_output_columns(y: UserData, rows: int, columns: int) -> Array:
    """Several outputs of every row as finite float64 numbers, (rows, columns); refuses as above."""
    try:
        values = _table(unseal(y), columns)
    except LookupError:
        values = np.empty((0, columns))  # of another shape: refused below
    except OverflowError:
        raise ValueError("y must be finite numbers.") from None
    except (TypeError, ValueError):
        raise ValueError("y must be numbers.") from None
    if len(values) != rows:
        raise ValueError(
            "y must have one column per pair of y_bounds, and one row for each row of X."
        )
    if not np.all(np.isfinite(values)):
        raise ValueError("Input y contains NaN or infinity.")
    return values


def column_names(y: Column) -> tuple[str, ...] | None:
    """The names of a table's columns, which are public; None unless they are different texts."""
    names = getattr(y, "columns", None)
    if names is None or not all(isinstance(name, str) for name in names):
        return None
    return tuple(map(str, names)) if len({*names}) == len(names) else None


def clip_outputs(y: UserData, rows: int, bounds: tuple[float, float]) -> Array:
    """Outputs clipped to their public bounds and scaled to [-1, 1], (rows,).

    Parameters
    ----------
    y, rows
        As in ``check_outputs``.
    bounds
        Declared, (low, high).

    """
    values = check_outputs(y, rows)
    low, high = bounds
    half = 0.5 * high - 0.5 * low
    scaled = (np.clip(values, low, high) - (0.5 * high + 0.5 * low)) / half
    return np.clip(scaled, -1.0, 1.0)


def check_private_inputs(X: Table, columns: int) -> Array:
    """Private inputs as finite float64 numbers, (rows, columns).

    Raises
    ------
    ValueError
        The sentence names the problem, never a value or its place.

    """
    try:
        values = _table(unseal(X), columns)
    except LookupError:
        raise ValueError("X must be a table, one column per declared pair of bounds.") from None
    except OverflowError:
        raise ValueError("X must be finite numbers.") from None
    except (TypeError, ValueError):
        raise ValueError("X must be a table of numbers.") from None
    if not np.all(np.isfinite(values)):
        raise ValueError("Input X contains NaN or infinity.")
    return values


def clip_inputs(X: Table, low: Array, high: Array) -> Array:
    """Private inputs projected onto the domain.

    Parameters
    ----------
    X
        Private table.
    low, high
        (columns,), the corners of the declared domain.

    Returns
    -------
    Array
        (rows, columns)

    """
    return np.clip(check_private_inputs(X, len(low)), low, high)


def _table(X: UserData, columns: int) -> Array:
    held = entries(X)
    found: NDArray[Any]
    if isinstance(held, np.ndarray):
        found = numbers(held).reshape(held.shape)
    elif all(is_row(row) for row in held):
        rows = [entries(row) for row in held]
        if not rows or any(len(row) != columns for row in rows):
            raise LookupError
        found = numbers([cell for row in rows for cell in row]).reshape(len(rows), columns)
    else:
        found = numbers(held)
    if found.ndim != 2 or found.shape[1] != columns:
        raise LookupError
    return found


def column_numbers(cells: Any, rows: int) -> Array:
    """Cells of a table's column, numbers or texts that hold one, as finite numbers, (rows,)."""
    if not isinstance(cells, np.ndarray):
        try:
            cells = [read_number(cell) for cell in cells]
        except (TypeError, OverflowError):
            raise ValueError("y must be finite numbers.") from None
    return check_outputs(cells, rows)


def column_labels(cells: list[object]) -> NDArray[np.str_]:
    """Cells of a table's column as labels, each read by itself, (rows,)."""
    labels = [read_label(cell) for cell in cells]
    if any(label is None for label in labels):
        raise ValueError("y must have a label in every row.")
    return np.array(labels, dtype=str)


def identities(groups: Column | None) -> Callable[[int], object]:
    """From the place of a row to what its person is told apart by.

    Parameters
    ----------
    groups
        Identifiers that ``person_ids`` accepted.

    """
    found = entries(groups)
    return lambda place: person(found[place])


def person_ids(groups: UserData, rows: int) -> Integers | None:
    """Person identifiers of any kind as 0, 1, 2, ..., in the order of their first rows or sorted.

    1, 1.0, "1" and "01" are one person, as in tables of files.

    Parameters
    ----------
    groups
        One identifier per row, or None.
    rows
        How many there must be.

    Returns
    -------
    Integers or None
        (rows,); None for no groups.

    Raises
    ------
    ValueError
        An identifier is missing or cannot be compared; the sentence quotes none.

    """
    if groups is None:
        return None
    try:
        found = entries(groups)
    except TypeError:
        found = []
    if len(found) != rows or getattr(found, "ndim", 1) != 1:
        raise ValueError("groups must be one identifier for each row of X.")
    inverse: Any = None
    if isinstance(found, np.ndarray) and found.dtype.kind in "biuUS":  # of one type
        written, inverse = np.unique(found, return_inverse=True)
        if found.dtype.kind in "biu":
            return np.asarray(inverse, dtype=np.int64)
        found = written
    try:
        people = [person(value) for value in found]
    except OverflowError:
        raise ValueError(TOO_LARGE) from None
    except Exception:  # of a value's own methods, which may quote it
        raise ValueError("groups must be plain identifiers such as numbers or text.") from None
    if any(each is None for each in people):
        raise ValueError(NOBODY)
    places: dict[Any, int] = {}
    ids = np.array([places.setdefault(each, len(places)) for each in people], dtype=np.int64)
    return ids if inverse is None else ids[inverse]
