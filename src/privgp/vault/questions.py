"""Inputs of private validation records, as a model is asked about them.

Each record is a table of one row that is made of that record alone: numbers as float64, texts as
they are. Where all cells are numbers, the rows make one table of float64 numbers, on which a model
predicts all records at once. Proof: docs/proofs/values.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.sparse import issparse

from privgp.vault.values import LARGEST_EXACT, entries, is_row, number, numbers


@dataclass(frozen=True)
class Questions:
    """``record(i)``: the table of record i; ``table``: all of them, None where there are texts."""

    rows: int
    record: Callable[[int], Any] = field(repr=False)
    table: Any = field(repr=False, default=None)


def checked_questions(X: Any) -> Questions:
    """Refuse what is no table of finite numbers and texts; errors quote nothing."""
    try:
        found = _questions(X)
    except (TypeError, ValueError, LookupError, OverflowError):
        raise ValueError(
            "X_val must be a table of numbers and texts with one row for each record."
        ) from None
    if found is None:
        raise ValueError("Input X_val contains NaN or infinity.")
    return found


def predicted(model: Any, questions: Questions) -> Any:
    """What a model predicts for each record: an array or a list, (records,) or (records, values).

    At once for a table of numbers, unless the records may have been given one type for all that not
    each of their predictions has; then, and for texts, one record at a time.
    """
    if questions.table is not None:
        found = entries(model.predict(questions.table))
        if not _may_be_promoted(found, model):
            return found
    each = [entries(model.predict(questions.record(i))) for i in range(questions.rows)]
    if any(len(one) != 1 for one in each):
        raise LookupError
    return [one[0] for one in each]


def _may_be_promoted(found: Any, model: Any) -> bool:
    """Whether a prediction may have become text, or a rounded number, for the sake of another's.

    Numbers below 2^53 survive in any type of numbers. Texts were texts if all classes of the model,
    which come from training, are.
    """
    if not isinstance(found, np.ndarray) or found.dtype.kind in "biuO":
        return False
    if found.dtype.kind == "f":
        with np.errstate(all="ignore"):
            return bool(np.any(np.abs(found) >= LARGEST_EXACT))
    classes = getattr(model, "classes_", None)
    return classes is None or np.asarray(classes).dtype.kind != found.dtype.kind


def _questions(X: Any) -> Questions | None:
    """None: some number is not finite."""
    if issparse(X):
        return _of_numbers(_floats(X.tocsr()))
    if hasattr(X, "columns") and hasattr(X, "dtypes"):
        return _of_frame(X)
    held = entries(X)
    if isinstance(held, np.ndarray) and held.dtype.kind in "biuf":
        return _of_numbers(numbers(held))
    if not any(is_row(row) for row in held):
        if not all(isinstance(text, str) for text in held):
            raise TypeError
        texts = [str(text) for text in held]
        return Questions(len(texts), lambda i: texts[i : i + 1])
    rows = [[_cell(cell) for cell in entries(row)] for row in held]
    if len({len(row) for row in rows}) > 1:
        raise LookupError
    if not _finite(cell for row in rows for cell in row):
        return None
    if not any(isinstance(cell, str) for row in rows for cell in row):
        return _of_numbers(np.array(rows, dtype=np.float64))
    return Questions(len(rows), lambda i: _one_row(rows[i]))


def _one_row(cells: list[float | str]) -> Any:
    kind = object if any(isinstance(cell, str) for cell in cells) else np.float64
    return np.array([cells], dtype=kind)


def _of_numbers(table: Any) -> Questions | None:
    if table.ndim < 2:
        raise LookupError
    if not np.all(np.isfinite(table.data if issparse(table) else table)):
        return None
    return Questions(table.shape[0], lambda i: table[i : i + 1], table)


def _of_frame(X: Any) -> Questions | None:
    """A frame of pandas or polars: the same kind of frame, its columns float64 or text."""
    kind, columns = type(X), {}
    for name in X.columns:
        held = entries(X[name])
        if not isinstance(held, np.ndarray) or held.ndim != 1:  # two columns of one name
            raise LookupError
        is_numbers = held.dtype.kind in "biuf"
        cells = numbers(held) if is_numbers else [_cell(value) for value in held]
        if not _finite(cells):
            return None
        columns[name] = cells
    if len(columns) == 0:
        raise LookupError
    rows = len(next(iter(columns.values())))
    texts = any(isinstance(cell, str) for cells in columns.values() for cell in cells)
    table = None
    if not texts:
        table = kind({name: np.asarray(cells, float) for name, cells in columns.items()})
    return Questions(
        rows, lambda i: kind({name: [cells[i]] for name, cells in columns.items()}), table
    )


def _cell(value: Any) -> float | str:
    return str(value) if isinstance(value, str) else number(value)


def _finite(cells: Any) -> bool:
    return all(isinstance(cell, str) or np.isfinite(cell) for cell in cells)


def _floats(table: Any) -> Any:
    if table.dtype.kind not in "biuf":
        raise TypeError
    return table.astype(np.float64)
