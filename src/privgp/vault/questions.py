"""Inputs of private validation records, as a model is asked about them.

Each record is a table of one row made of that record alone: numbers as float64, texts as they are.
An array, frame or sparse matrix of numbers is also one table of float64 numbers, on which a model
whose predictions have one type predicts all records at once. Which way is taken depends on the
types of table and model, never on a cell. Proof: docs/proofs/values.md."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import is_regressor

from privgp.vault.values import entries, is_plain, is_row, number, numbers


@dataclass(frozen=True)
class Questions:
    """Inputs of private validation records.

    Attributes
    ----------
    rows : how many; public
    record : from the place of a record to a table of it alone
    table : all of them, if they are numbers

    """

    rows: int
    record: Callable[[int], Any] = field(repr=False)
    table: Any = field(repr=False, default=None)


def check_questions(X: Any) -> Questions:
    """Inputs of validation records, read entry by entry.

    Parameters
    ----------
    X
        Private: an array, a frame, a sparse matrix, rows or texts.

    Raises
    ------
    ValueError
        It is no table of finite numbers and texts; the sentence quotes nothing.

    """
    try:
        return _questions(X)
    except FloatingPointError:
        raise ValueError("Input X_val contains NaN or infinity.") from None
    except (TypeError, ValueError, LookupError, OverflowError):
        raise ValueError("X_val must be a table of numbers and texts, a row per record.") from None


def predict_records(model: Any, questions: Questions) -> Any:
    """The predictions for each record: an array or a list, (records,) or (records, values).

    All at once if the types of table and model allow it, otherwise record by record.
    """
    if questions.table is not None and _has_one_type(model):
        return entries(model.predict(questions.table))
    each = [entries(model.predict(questions.record(i))) for i in range(questions.rows)]
    if any(len(one) != 1 for one in each):
        raise LookupError
    return [one[0] for one in each]


def _has_one_type(model: Any) -> bool:
    """Whether training fixed the type of a model's predictions: classes of one type, or numbers."""
    classes = getattr(model, "classes_", None)
    if classes is not None:
        return is_plain(classes)
    try:
        return bool(is_regressor(model))
    except Exception:  # no estimator of scikit-learn
        return False


def _questions(X: Any) -> Questions:
    if issparse(X):
        if X.dtype.kind not in "biuf":
            raise TypeError
        return _of_numbers(X.tocsr().astype(np.float64))
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
    _check_finite(cell for row in rows for cell in row)
    return Questions(len(rows), lambda i: _one_row(rows[i]))


def _one_row(cells: list[float | str]) -> Any:
    kind = object if any(isinstance(cell, str) for cell in cells) else np.float64
    return np.array([cells], dtype=kind)


def _of_numbers(table: Any) -> Questions:
    if table.ndim < 2:
        raise LookupError
    if not np.all(np.isfinite(table.data if issparse(table) else table)):
        raise FloatingPointError
    return Questions(table.shape[0], lambda i: table[i : i + 1], table)


def _of_frame(X: Any) -> Questions:
    """A frame of pandas or polars: the same kind of frame, its columns float64 or text."""
    kind, columns, is_numbers, rows = type(X), {}, True, 0
    for name in X.columns:
        held = entries(X[name])
        if not isinstance(held, np.ndarray) or held.ndim != 1:  # two columns of one name
            raise LookupError
        is_numbers &= held.dtype.kind in "biuf"
        columns[name], rows = [_cell(value) for value in held], len(held)
        _check_finite(columns[name])
    if not columns:
        raise LookupError
    table = kind(columns) if is_numbers else None
    return Questions(
        rows, lambda i: kind({name: [cells[i]] for name, cells in columns.items()}), table
    )


def _cell(value: Any) -> float | str:
    return str(value) if isinstance(value, str) else number(value)


def _check_finite(cells: Iterable[float | str]) -> None:
    """After all cells were read: which of two refusals is made does not depend on their order."""
    if not all(isinstance(cell, str) or np.isfinite(cell) for cell in cells):
        raise FloatingPointError
