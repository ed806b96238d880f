"""Records to score: labels or numbers, and inputs that are private too."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from privgp.command.errors import Refusal
from privgp.command.io.columns import output_column, private_columns
from privgp.command.io.tables import Source
from privgp.types import Array
from privgp.vault.values import read_label


def outputs(frame: pl.DataFrame, name: str, source: Source, task: str) -> Any:
    """Numbers for regression, else labels as text, each cell read by itself.

    Sentences name no row: outputs may be private.
    """
    column = frame[name]
    if task == "regression":
        return output_column(frame, name, source)
    if not (column.dtype == pl.String or column.dtype.is_numeric() or column.dtype == pl.Boolean):
        raise Refusal(f"Column '{name}' of '{source.path}' must hold labels.")
    labels = [read_label(cell) for cell in column.to_list()]
    if any(label is None for label in labels):
        raise Refusal(f"Column '{name}' of '{source.path}' must hold a label in every row.")
    return np.array(labels, dtype=str)


def private_records(
    frame: pl.DataFrame, names: list[str], output: str, source: Source, task: str
) -> tuple[Array, Any]:
    """Inputs and outputs. Whatever is wrong with the inputs, the sentence is the same."""
    try:
        X = private_columns(frame, names, source).to_numpy()
    except Refusal:
        raise Refusal(
            f"The input columns of '{source.path}' must hold a finite number in every row."
        ) from None
    return X, outputs(frame, output, source, task)
