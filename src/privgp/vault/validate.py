"""Refuse or clip private values. Errors name the problem and never a value, a place or a count."""

import warnings
from collections.abc import Callable, Hashable, Iterator, Mapping
from hashlib import blake2b
from itertools import combinations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import DataConversionWarning

from privgp.tables.table import cells_of, is_lazy, labels_of
from privgp.types import Array, Column, Integers, Table, UserData
from privgp.vault.values import (
    Sealed,
    column,
    entries,
    is_row,
    numbers,
    person,
    read_label,
    read_number,
    unseal,
)

NOBODY = (
    "groups contain missing values, or texts such as NA or - in their place: every row needs an "
    "identifier."
)
WEIGHTS = "sample_weight must be one finite number for each row of X."
TOO_LARGE = (
    "groups hold numbers too large for floats to distinguish: give them as whole numbers or text."
)


def check_outputs(y: Column, rows: int) -> Array:
    """Outputs as finite float64 numbers, one per row, (rows,).

    Parameters
    ----------
    y
        Private numbers in any container, each read separately.
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
        raise ValueError("y must be numbers; for labels use PrivateGPClassifier.") from None
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


def seal_weights(data: Sealed, weights: Column, most: float) -> Sealed:
    """Private records with a private weight each, as ``measure`` takes them: larger ones than ``most`` are
    lowered to it, negative ones are 0, and then divided by it."""
    held = unseal(data)
    try:
        values = numbers(column(unseal(weights))[0])
    except (LookupError, TypeError, ValueError, OverflowError):
        raise ValueError(WEIGHTS) from None
    if len(values) != data.rows or not np.all(np.isfinite(values)):
        raise ValueError(WEIGHTS)
    return Sealed((*held, np.clip(values, 0.0, most) / most), data.rows)


def check_private_weights(weights: Array, rows: int) -> Array:
    """Weights of private records, (rows,), each between 0 and 1."""
    if weights.shape != (rows,) or not np.all((weights >= 0.0) & (weights <= 1.0)):
        raise ValueError(WEIGHTS)
    return weights


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
        raise ValueError("y must be numbers; for labels use PrivateGPClassifier.") from None
    if len(values) != rows:
        raise ValueError(
            "y must have one column per pair of y_bounds, and one row for each row of X."
        )
    if not np.all(np.isfinite(values)):
        raise ValueError("Input y contains NaN or infinity.")
    return values


def column_names(y: Column) -> tuple[str, ...] | None:
    """The names of a table's columns or of one, which are public; None unless they are different texts."""
    names = getattr(y, "columns", None)
    names = [getattr(y, "name", None)] if names is None else names
    if not all(isinstance(name, str) and name.strip() for name in names):
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
    """Cells of a table's column as labels, each read separately, (rows,)."""
    labels = [read_label(cell) for cell in cells]
    if any(label is None for label in labels):
        raise ValueError("y must have a label in every row.")
    return np.array(labels, dtype=str)


def identities(groups: Column | None) -> Callable[[int], object]:
    """From the place of a row to what its person is distinguished by.

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


Named = tuple[Hashable, Any]  # its name, if it has one, and its cells, unless they are in files


def check_roles(private: object, *, called: str = "y", **others: object) -> None:
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
    check_order(**{**others, called: private, "targets": None, "inducing": None})  # no rows
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


def check_order(**given: object) -> None:
    """Refuse arguments, by their names, whose pandas indexes differ though they have equally many rows."""
    indexed = [(role, index) for role, table in given.items() for index in _indexes(table)]
    for (role, index), (other, another) in combinations(indexed, 2):
        if len(index) == len(another) and not index.equals(another):
            raise ValueError(
                f"{role} and {other} have different pandas indexes, so their rows may not belong "
                f"together: bring them into one order, such as {other} = {other}.loc[{role}.index], or "
                "give both reset_index(drop=True) if their rows correspond. Nothing was spent."
            )


def _pairs(private: object, other: object) -> Iterator[tuple[Named, Named]]:
    columns, others = [[*_columns(given)] for given in (private, other)]
    if [*getattr(private, "columns", ())] == [*range(len(columns))]:  # numbered, not named
        columns = [(None, cells) for _, cells in columns]
    return product(columns, others)


def _columns(given: object) -> Iterator[Named]:
    """The columns of a table of whichever library, or the one that is given."""
    for name, cells in _pair_names(given):
        for part in _chunks(cells):
            yield None if isinstance(name, str) and not name else name, _memory(part)


def _pair_names(given: UserData) -> Iterator[tuple[Hashable, object]]:
    names = getattr(given, "names", None)
    if given is None:
        return
    if isinstance(given, np.ndarray) and given.dtype.names is None:
        columns = np.moveaxis(given, 1, 0) if given.ndim > 1 else (given,)
        yield from ((None, cells) for cells in columns)
    elif isinstance(names, tuple):  # a table of this package, whose cells may be in files
        yield from zip(names, getattr(given, "cells", (None,) * len(names)), strict=True)
    elif is_lazy(given):
        yield from ((name, None) for name in given.collect_schema().names())
    elif isinstance(given, list | tuple) and given and isinstance(given[0], Mapping):
        yield from ((name, None) for name in given[0])
    elif (labels := labels_of(given)) is not None:
        yield from ((label, given[label]) for label in labels)
    else:
        yield getattr(given, "name", None), given


def _chunks(cells: object) -> list[object]:
    """The pieces of a column of Arrow or polars, each with its own memory."""
    found = cells.get_chunks() if hasattr(cells, "get_chunks") else getattr(cells, "chunks", None)
    return found if isinstance(found, list) and found else [cells]


def _memory(cells: object) -> Any:
    """Cells as an array of their own memory where that is to be had; a list as it is."""
    if hasattr(cells, "to_numpy"):
        return cells_of(cells)
    own = isinstance(cells, memoryview) or hasattr(cells, "__array_interface__")
    return np.asarray(cells) if own else cells  # which are not read


def _share_memory(cells: object, others: object) -> bool:
    if isinstance(cells, np.ndarray) and isinstance(others, np.ndarray):
        return bool(np.may_share_memory(cells, others) and np.shares_memory(cells, others))
    return cells is not None and cells is others


def _indexes(given: object) -> Iterator[Any]:
    """The pandas indexes of a table or of its columns."""
    for each in given.values() if isinstance(given, dict) else (given,):
        index = getattr(each, "index", None)
        if hasattr(index, "equals"):
            yield index


WHOLE_CODES = 2**61  # below it codes are whole numbers, above it hashes
MOST_DIGITS = 18  # of whole numbers that stand for themselves


def count_people(groups: Column | None, rows: int) -> int:
    """The number of different people, which is public.

    Parameters
    ----------
    groups
        Identifiers of any kind, one per row.
    rows
        How many there must be.

    """
    people = person_ids(groups, rows)
    assert people is not None
    return int(people.max(initial=-1)) + 1


def shares(people: Integers, most: int) -> tuple[Integers, Array]:
    """The rows that are used, the first ``most`` of every person, and the weight of each.

    A weight is one over the number of used rows of its person, so that nobody weighs more than
    1.

    Parameters
    ----------
    people
        (rows,), 0, 1, 2, ...
    most
        Rows of one person that are used.

    """
    order = np.argsort(people, kind="stable")
    counts = np.bincount(people)
    first = np.cumsum(counts) - counts
    place = np.empty(len(people), dtype=np.int64)
    place[order] = np.arange(len(people)) - first[people[order]]
    kept = np.flatnonzero(place < most)
    return kept, 1.0 / np.minimum(counts, most)[people[kept]]


def person_codes(groups: Column | None, rows: int) -> Integers:
    """A number below 2**62 for each row's person: a whole number stands for itself.

    It is the same wherever the person is read. That two people share one is next to impossible,
    and would protect both as one.
    """
    given = entries(groups)
    if isinstance(given, np.ndarray) and given.dtype.kind in "iu" and given.shape == (rows,):
        ends = (int(given.min(initial=0)), int(given.max(initial=0)))
        if max(map(abs, ends)) < 10**MOST_DIGITS:
            return np.asarray(given, dtype=np.int64)
    people = person_ids(groups, rows)
    assert people is not None
    firsts = np.unique(people, return_index=True)[1]
    held = identities(groups)
    codes = np.array([_code(held(place)) for place in firsts.tolist()], dtype=np.int64)
    return np.asarray(codes[people])


def _code(person: Any) -> int:
    """The whole number that a person is distinguished by, or a hash of a text or of another identifier."""
    digits = person.removeprefix("-") if isinstance(person, str) else ""
    whole = digits.isascii() and digits.isdigit() and len(digits) <= MOST_DIGITS
    if whole and person == str(int(person)):
        return int(person)
    text = person if isinstance(person, str) else " ".join(map(str, person[1:]))
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return WHOLE_CODES + (int.from_bytes(digest, "little") >> 3)
