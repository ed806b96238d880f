"""How well a model predicts private validation records: a mean of bounded losses, one per record.
Neighbours differ in one validation record (inputs and output); their number is public. One record's
loss lies in declared bounds, so the mean, scaled to [0, 1], moves by at most 1/n."""

import math
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from scipy.sparse import issparse
from sklearn.base import is_regressor

from privgp.gp.arithmetic import UNIT_ROUNDOFF
from privgp.types import Array, Cells, Predicts, Table, UserData
from privgp.vault.validate import check_roles
from privgp.vault.values import (
    column,
    differ,
    entries,
    is_finite,
    is_plain,
    is_row,
    label,
    number,
    numbers,
    plain,
)

LossFunction = Callable[[Cells, Cells], object]  # of one output and one prediction, an array each
Numeric = TypeVar("Numeric", float, Array)


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
    record: Callable[[int], UserData] = field(repr=False)
    table: UserData = field(repr=False, default=None)


def check_questions(X: Table) -> Questions:
    """Inputs of validation records, read entry by entry.

    Parameters
    ----------
    X
        Private: an array, a frame, a sparse matrix, rows or texts.

    Raises
    ------
    ValueError
        It is not a table of finite numbers and texts; the sentence quotes nothing.

    """
    try:
        return _questions(X)
    except FloatingPointError:
        raise ValueError("Input X_val contains NaN or infinity.") from None
    except (TypeError, ValueError, LookupError, OverflowError):
        raise ValueError("X_val must be a table of numbers and texts, a row per record.") from None


def predict_records(model: Predicts, questions: Questions) -> Cells | list[object]:
    """The predictions for each record: an array or a list, (records,) or (records, values).

    All at once if the types of table and model allow it, otherwise record by record.
    """
    if questions.table is not None and _has_one_type(model):
        return entries(model.predict(questions.table))
    each = [entries(model.predict(questions.record(i))) for i in range(questions.rows)]
    if any(len(one) != 1 for one in each):
        raise LookupError
    return [one[0] for one in each]


def _has_one_type(model: object) -> bool:
    """Whether training fixed the type of a model's predictions: classes of one type, or numbers."""
    classes = getattr(model, "classes_", None)
    if classes is not None:
        return is_plain(classes)
    try:
        return bool(is_regressor(model))
    except Exception:  # no estimator of scikit-learn
        return False


def _questions(X: UserData) -> Questions:
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


def _one_row(cells: list[float | str]) -> Cells:
    kind = object if any(isinstance(cell, str) for cell in cells) else np.float64
    return np.array([cells], dtype=kind)


def _of_numbers(table: UserData) -> Questions:
    if table.ndim < 2:
        raise LookupError
    if not np.all(np.isfinite(table.data if issparse(table) else table)):
        raise FloatingPointError
    return Questions(table.shape[0], lambda i: table[i : i + 1], table)


def _of_frame(X: UserData) -> Questions:
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


def _cell(value: object) -> float | str:
    return str(value) if isinstance(value, str) else number(value)


def _check_finite(cells: Iterable[float | str]) -> None:
    """After all cells were read: which of two refusals is made does not depend on their order."""
    if not all(isinstance(cell, str) or np.isfinite(cell) for cell in cells):
        raise FloatingPointError


LOSSES = ("accuracy", "squared_error", "absolute_error")


@dataclass(frozen=True)
class Loss:
    """The loss of a prediction. Public.

    Attributes
    ----------
    kind : one of ``LOSSES``, or a function ``(y, prediction) -> loss`` of one record
    low, high : declared bounds, which every loss is clipped to

    """

    kind: str | LossFunction
    low: float
    high: float

    @property
    def name(self) -> str:
        """Its name in reports."""
        return self.kind if isinstance(self.kind, str) else "a given loss"

    @property
    def width(self) -> float:
        """How far apart the bounds are."""
        return self.high - self.low

    def score(self, share: Numeric) -> Numeric:
        """From a mean loss in [0, 1] to a score, larger for better: accuracy, or minus the loss."""
        best = 1.0 if self.kind == "accuracy" else -self.low
        return best - self.width * share


def make_loss(kind: UserData, bounds: UserData = None) -> Loss:
    """A loss with its bounds: (0, 1) for accuracy (a wrong label costs 1), else they are declared.

    Parameters
    ----------
    kind
        As the caller named it.
    bounds
        (low, high), or None for accuracy.

    Raises
    ------
    ValueError
        The loss is unknown, or its bounds are missing or wrong.

    """
    if not callable(kind) and not (isinstance(kind, str) and kind in LOSSES):
        raise ValueError(
            "scoring must be the name of a loss ('accuracy', 'squared_error' or 'absolute_error') or "
            "a function (y, prediction) -> loss of one record."
        )
    if kind == "accuracy":
        if bounds is not None:
            raise ValueError("loss_bounds of 'accuracy' are (0, 1): leave loss_bounds=None.")
        return Loss(kind, 0.0, 1.0)
    if bounds is None:
        raise ValueError(
            "loss_bounds must be given as (low, high): the bounds of one record's loss are declared, "
            "never read from the data."
        )
    try:
        low, high = (float(value) for value in bounds)
    except (TypeError, ValueError):
        raise ValueError("loss_bounds must be two numbers (low, high).") from None
    if not (low < high and math.isfinite(low) and math.isfinite(high - low)):
        raise ValueError("loss_bounds must be finite, with low < high.")
    return Loss(kind, low, high)


@dataclass(frozen=True)
class Validation:
    """Private validation records and the loss they are scored by.

    Attributes
    ----------
    X, y : private
    loss : public, as is the number of records

    """

    X: Questions
    y: UserData = field(repr=False)
    loss: Loss

    @property
    def rows(self) -> int:
        """How many records there are; public."""
        return self.X.rows


def check_validation(X: UserData, y: UserData, loss: Loss) -> Validation:
    """Private validation records, refused before anything is spent if they could not be scored.

    Errors quote nothing.

    Parameters
    ----------
    X, y
        Private inputs and outputs.
    loss
        The loss of predictions.

    """
    if X is None or y is None:
        raise ValueError("give the private validation records as X_val and y_val.")
    check_roles(y, called="y_val", X_val=X)
    try:
        outputs, _ = column(y)
    except (TypeError, ValueError, LookupError):
        raise ValueError("y_val must be one-dimensional.") from None
    inputs = check_questions(X)
    if len(outputs) == 0 or len(outputs) != inputs.rows:
        raise ValueError("X_val and y_val must have the same number of records, at least one.")
    if loss.kind in ("squared_error", "absolute_error"):
        try:
            outputs = numbers(outputs)
        except (TypeError, OverflowError):
            raise ValueError("y_val must be numbers.") from None
    if not _all_finite(outputs):
        raise ValueError("Input y_val contains NaN or infinity.")
    if callable(loss.kind) or not is_plain(outputs):
        outputs = [plain(value) for value in outputs]
        if any(label(value) is None for value in outputs):
            raise ValueError("y_val must be labels: numbers, texts or bytes.")
    return Validation(inputs, outputs, loss)


def mean_loss(model: Predicts, validation: Validation) -> float:
    """The mean loss of a model on the validation records, scaled to [0, 1]: private until noised.

    Parameters
    ----------
    model
        Fitted without these records; it must predict each record separately.
    validation
        The records.

    """
    try:
        with warnings.catch_warnings():  # a warning could quote private values
            warnings.simplefilter("ignore")
            predictions = predict_records(model, validation.X)
    except Exception:
        raise ValueError("the model could not predict the records of X_val.") from None
    losses = record_losses(validation.y, predictions, validation.loss)
    return min(1.0, math.fsum(losses) / validation.rows)


def record_losses(y: UserData, predictions: object, loss: Loss) -> Array:
    """Every record's loss, clipped to the bounds and scaled to [0, 1]; (records,). Private.

    Each is made of its own output and prediction, a given function being called with one record
    at a time. What is not a number counts as the largest loss.
    """
    each = _one_value_each(predictions, len(y), several=callable(loss.kind))
    if loss.kind == "accuracy":
        return differ(y, each)
    with np.errstate(all="ignore"):
        if loss.kind == "squared_error":
            values = np.square(_numbers(each) - numbers(y))
        elif isinstance(loss.kind, str):
            values = np.abs(_numbers(each) - numbers(y))
        else:
            values = _one_at_a_time(y, each, loss.kind)
        values = np.where(np.isnan(values), loss.high, values)
        scaled = (np.clip(values, loss.low, loss.high) - loss.low) / loss.width
    return np.clip(scaled, 0.0, 1.0)


def score_sensitivity(rows: int) -> float:
    """How far one record can move ``mean_loss``: 1/n, and the rounding of its computed value.

    Sum and quotient are correctly rounded: errors below 2.1 units of roundoff for either
    neighbour.
    """
    return 1.0 / rows * (1.0 + 2.0 * UNIT_ROUNDOFF) + 5.0 * UNIT_ROUNDOFF


def _one_value_each(predictions: object, rows: int, *, several: bool) -> Cells | list[object]:
    """Predictions, one for each record; where there are ``several`` (probabilities), a row each."""
    try:
        each, _ = column(predictions)
    except (TypeError, LookupError):
        each = entries(predictions) if several else []
    if len(each) != rows:
        raise ValueError("the model must predict one value for each record of X_val.")
    return each


def _one_at_a_time(y: UserData, predictions: Cells | list[object], function: LossFunction) -> Array:
    values = np.empty(len(y))
    for i in range(len(y)):
        try:
            values[i] = np.asarray(function(_alone(y[i]), _alone(predictions[i]))).item()
        except Exception:
            raise ValueError(
                "scoring must return one number for one record: it is called with arrays of one "
                "output and one prediction."
            ) from None
    return values


def _alone(value: object) -> Cells:
    """An array of one record's value, of the type that this value has."""
    return np.asarray([value])


def _numbers(predictions: Cells | list[object]) -> Array:
    """Predictions as numbers; one that is missing is none."""
    try:
        if is_plain(predictions):
            return numbers(predictions)
        return numbers([math.nan if value is None else value for value in predictions])
    except (TypeError, OverflowError):
        raise ValueError("the model's predictions must be numbers.") from None


def _all_finite(outputs: UserData) -> bool:
    if is_plain(outputs):
        return outputs.dtype.kind != "f" or bool(np.all(np.isfinite(outputs)))
    return all(is_finite(value) for value in outputs)
