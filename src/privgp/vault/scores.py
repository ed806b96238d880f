"""How well a model predicts private validation records: a mean of bounded losses, one per record.

The neighbours differ in one validation record (inputs and output); their number is public. One
record's loss lies in declared bounds, so the mean, scaled to [0, 1], moves by at most 1/n.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from privgp.gp.rounding import UNIT_ROUNDOFF
from privgp.types import Array

LOSSES = ("accuracy", "squared_error", "absolute_error")


@dataclass(frozen=True)
class Loss:
    """What a prediction costs: between ``low`` and ``high`` whatever the record is.

    ``kind``: one of ``LOSSES``, or a function ``(y, prediction) -> losses`` of the outputs and
    predictions of some records. Losses outside the bounds are clipped to them.
    """

    kind: str | Callable[[Any, Any], Any]
    low: float
    high: float

    @property
    def name(self) -> str:
        return self.kind if isinstance(self.kind, str) else "a given loss"

    def in_units(self, share: float) -> float:
        """From [0, 1] to the units of the loss: public arithmetic on a released number."""
        return self.low + (self.high - self.low) * share


def make_loss(kind: Any, bounds: Any = None) -> Loss:
    """A loss with its bounds: (0, 1) for accuracy (a wrong label costs 1), else they are declared."""
    if isinstance(kind, str):
        if kind not in LOSSES:
            raise ValueError(
                "scoring must be 'accuracy', 'squared_error', 'absolute_error', or a function "
                "(y, prediction) -> losses, one per record."
            )
    elif not callable(kind):
        raise ValueError("scoring must be the name of a loss or a function.")
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
    if not (math.isfinite(low) and math.isfinite(high) and low < high and high - low < math.inf):
        raise ValueError("loss_bounds must be finite, with low < high.")
    return Loss(kind, low, high)


@dataclass(frozen=True)
class Validation:
    """Private validation records. ``rows``, their number, is public."""

    X: Any
    y: Any
    rows: int

    def __repr__(self) -> str:
        return "Validation(private)"


def checked_validation(X: Any, y: Any, loss: Loss) -> Validation:
    """Refuse what could not be scored, before anything is spent; errors quote nothing."""
    if X is None or y is None:
        raise ValueError("give the private validation records as X_val and y_val.")
    try:
        outputs = np.asarray(y)
    except (TypeError, ValueError):
        raise ValueError("y_val must be one-dimensional.") from None
    if outputs.ndim == 2 and outputs.shape[1] == 1:
        outputs = outputs[:, 0]
    if outputs.ndim != 1:
        raise ValueError("y_val must be one-dimensional.")
    rows = len(outputs)
    shape = getattr(X, "shape", None)
    count = shape[0] if shape else len(X)
    if rows == 0 or count != rows:
        raise ValueError("X_val and y_val must have the same number of records, at least one.")
    if loss.kind in ("squared_error", "absolute_error"):
        if outputs.dtype.kind not in "biuf":
            raise ValueError("y_val must be numbers.")
        outputs = outputs.astype(np.float64)
    if not _finite(outputs):
        raise ValueError("Input y_val contains NaN or infinity.")
    if not _finite(X):
        raise ValueError("Input X_val contains NaN or infinity.")
    return Validation(X, outputs, rows)


def mean_loss(model: Any, validation: Validation, loss: Loss) -> float:
    """The mean loss of a model on the validation records, scaled to [0, 1]: private until noised.

    The model must have been fitted without these records and predict each record by itself.
    """
    try:
        with warnings.catch_warnings():  # a warning could quote what it is about
            warnings.simplefilter("ignore")
            predictions = np.asarray(model.predict(validation.X))
    except Exception:
        raise ValueError("the model could not predict the records of X_val.") from None
    if predictions.ndim == 2 and predictions.shape[1] == 1:
        predictions = predictions[:, 0]
    several = predictions.ndim > 1 and not isinstance(loss.kind, str)  # such as probabilities
    if predictions.shape[:1] != (validation.rows,) or not (predictions.ndim == 1 or several):
        raise ValueError("the model must predict one value for each record of X_val.")
    losses = record_losses(validation.y, predictions, loss)
    return min(1.0, math.fsum(losses) / validation.rows)


def record_losses(y: Any, predictions: Any, loss: Loss) -> Array:
    """Every record's loss, clipped to the bounds and scaled to [0, 1]; (records,).

    A given function is called with one record at a time, so that no record's loss can depend on
    another record. What is no number counts as the largest loss.
    """
    if loss.kind == "accuracy":
        return np.asarray(np.asarray(predictions) != y, dtype=np.float64)
    with np.errstate(all="ignore"):
        if loss.kind == "squared_error":
            values = np.square(_numbers(predictions) - y)
        elif loss.kind == "absolute_error":
            values = np.abs(_numbers(predictions) - y)
        else:
            values = _one_at_a_time(y, predictions, loss.kind)
        values = np.where(np.isnan(values), loss.high, values)
        scaled = (np.clip(values, loss.low, loss.high) - loss.low) / (loss.high - loss.low)
    return np.clip(scaled, 0.0, 1.0)


def score_sensitivity(rows: int) -> float:
    """How far one record can move ``mean_loss``: 1/n, and the rounding of its computed value.

    The sum is correctly rounded and at most n, and so is the quotient: an error below 2.1 units of
    roundoff for either neighbour.
    """
    return 1.0 / rows * (1.0 + 2.0 * UNIT_ROUNDOFF) + 5.0 * UNIT_ROUNDOFF


def _one_at_a_time(y: Any, predictions: Any, function: Any) -> Array:
    values = np.empty(len(y))
    for i in range(len(y)):
        try:
            values[i] = np.asarray(function(y[i : i + 1], predictions[i : i + 1])).item()
        except Exception:
            raise ValueError(
                "scoring must return one number for one record: it is called with arrays of one "
                "output and one prediction."
            ) from None
    return values


def _numbers(predictions: Any) -> Array:
    try:
        return np.asarray(predictions, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError("the model's predictions must be numbers.") from None


def _finite(values: Any) -> bool:
    try:
        held = np.asarray(values)
        return held.dtype.kind not in "fc" or bool(np.all(np.isfinite(held)))
    except (TypeError, ValueError):
        return True  # texts, tables of mixed columns: the model itself decides
