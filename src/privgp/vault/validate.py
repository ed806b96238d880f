"""Refuse or clip private values. Errors name the problem and never a value, a place or a count."""

from __future__ import annotations

import warnings
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from sklearn.exceptions import DataConversionWarning

from privgp.types import Array


def checked_outputs(y: Any, rows: int) -> Array:
    """Outputs as finite float64 numbers, one per row, (rows,)."""
    try:
        values = np.asarray(y)
    except (TypeError, ValueError):
        raise ValueError("y must be numbers.") from None
    numbers = values.dtype.kind in "biuf" or (
        values.dtype.kind == "O"
        and all(isinstance(value, Real | Decimal | np.bool_) for value in values.ravel())
    )
    if not numbers or isinstance(y, np.ma.MaskedArray):
        raise ValueError("y must be numbers.")
    try:
        values = values.astype(np.float64)
    except (OverflowError, ValueError):
        raise ValueError("y must be finite numbers.") from None
    if values.ndim == 2 and values.shape[1] == 1:
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected.",
            DataConversionWarning,
            stacklevel=3,
        )
        values = values[:, 0]
    if values.ndim != 1 or values.shape[0] != rows:
        raise ValueError(
            f"y must be one-dimensional with one value for each of the {rows} rows of X."
        )
    if not np.all(np.isfinite(values)):
        raise ValueError("Input y contains NaN or infinity.")
    return values


def clipped_outputs(y: Any, rows: int, bounds: tuple[float, float]) -> Array:
    """Outputs clipped to their public bounds and scaled to [-1, 1], (rows,)."""
    values = checked_outputs(y, rows)
    low, high = bounds
    half = 0.5 * high - 0.5 * low
    scaled = (np.clip(values, low, high) - (0.5 * high + 0.5 * low)) / half
    return np.clip(scaled, -1.0, 1.0)


def checked_inputs(X: Any, columns: int) -> Array:
    """Private inputs as finite float64 numbers, (rows, columns)."""
    try:
        values = np.asarray(X)
    except (TypeError, ValueError):
        raise ValueError("X must be a table of numbers.") from None
    numbers = values.dtype.kind in "biuf" or (
        values.dtype.kind == "O"
        and all(isinstance(value, Real | Decimal | np.bool_) for value in values.ravel())
    )
    if not numbers or isinstance(X, np.ma.MaskedArray):
        raise ValueError("X must be a table of numbers.")
    if values.ndim != 2 or values.shape[1] != columns:
        raise ValueError(
            "X must have one row per record and one column per declared pair of bounds."
        )
    try:
        values = values.astype(np.float64)
    except (OverflowError, ValueError):
        raise ValueError("X must be finite numbers.") from None
    if not np.all(np.isfinite(values)):
        raise ValueError("Input X contains NaN or infinity.")
    return values
