"""Tables that models are given: what their columns are, and where the kernel has their rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from numbers import Integral
from typing import Any

import numpy as np
import polars as pl
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from privgp.plan.inputs.inputs import Inputs
from privgp.question.rules import domain_pairs
from privgp.tables.kinds import ColumnKinds
from privgp.tables.table import Table, in_memory
from privgp.types import Array, UserData

# Beginnings of what scikit-learn says, and what we say instead.
REFUSALS = {
    "Input X contains NaN": "X has missing values (NaN): fill them in, or leave out their rows.",
    "Expected 2D array": "X must have one row per record and one column per input. Reshape your data: "
    "X.reshape(-1, 1) is one input, X.reshape(1, -1) is one record.",
}


@contextmanager
def _plain_refusals() -> Iterator[None]:
    """What scikit-learn refuses, in one or two sentences that quote no value."""
    try:
        yield
    except ValueError as problem:
        first = str(problem).partition(",")[0].partition(".")[0]
        if first not in REFUSALS:
            raise
        raise ValueError(REFUSALS[first]) from None


def rows_to_plan(model: Any, X: UserData) -> tuple[Any, Array]:
    """A model that knows what the columns of X are, and where its kernel has the rows."""
    table, inputs = _columns_of(model, X)
    if inputs is None:
        with _plain_refusals():
            return model, check_array(as_frame(X), dtype=np.float64, estimator=model)
    asked = copy(model)
    asked.inputs_ = inputs
    return asked, inputs.locate_table(table)


def rows_to_fit(model: Any, X: UserData) -> Array:
    """Where the kernel of a model that is fitted to X has its rows; the model remembers the columns."""
    table, inputs = _columns_of(model, X)
    if inputs is None:
        model.inputs_ = None
        with _plain_refusals():
            return np.asarray(validate_data(model, as_frame(X), dtype=np.float64))
    rows = inputs.locate_table(table)
    model.inputs_ = inputs
    remember(model, inputs.names if table is not None and table.named else None, rows.shape[1])
    return rows


def _columns_of(model: Any, X: UserData) -> tuple[Table | None, Inputs | None]:
    """X as a table, and what its columns are where they are not all numbers. An array of numbers is read as
    it is."""
    if model.columns is None and isinstance(X, np.ndarray) and X.dtype.kind in "fiu":
        return None, None
    table = Table.of(X)
    return table, Inputs.of(table, model.columns)


def records_to_plan(model: Any) -> Any:
    """A model of private records that knows what was declared of their columns."""
    if model.columns is None and not isinstance(model.x_bounds, Mapping):
        return model
    asked = copy(model)
    asked.inputs_ = Inputs.private(model.columns or {}, model.x_bounds)
    return asked


def in_order(columns: ColumnKinds, inputs: Sequence[str]) -> ColumnKinds:
    """What every private input is, in their order: what was not mentioned is a number."""
    keys = {name: key for key in columns for name in (key if isinstance(key, tuple) else (key,))}
    return {key: columns.get(key, "number") for key in (keys.get(name, name) for name in inputs)}


def any_column(X: UserData) -> Any:
    """A column of a table that is a mapping, as its length is that of the rows; else X itself."""
    named = isinstance(X, Mapping) and not hasattr(X, "shape")
    return next(iter(X.values()), ()) if named else X


def domain_of(model: Any) -> Any:
    """Declared bounds of private inputs, where the kernel has them."""
    return model.x_bounds if model.inputs_ is None else model.inputs_.domain


def example_records(X: Any, domain: Any, y_bounds: UserData) -> tuple[object, Array]:
    """Inputs, in the middle of their bounds where they are private, and outputs in that of theirs."""
    names, outputs = X.columns, np.full(len(X), np.mean(y_bounds))
    return X if domain is None else _middle_rows("domain", domain, names, len(outputs)), outputs


def rehearsal_inputs(model: Any, X: UserData) -> Any:
    """Inputs to rehearse with: private ones in the middle of what was declared, public ones as they
    are. For private ones, the number and the names of columns alone are used."""
    if model.x_bounds is None:
        return X
    inputs, rows = records_to_plan(model).inputs_, len(X)
    if inputs is None:
        return _middle_rows("x_bounds", model.x_bounds, X.columns, rows)
    return inputs.table(np.tile(inputs.range_ends().mean(axis=1), (rows, 1)))


def _middle_rows(called: str, bounds: object, names: Sequence[str], rows: int) -> pl.DataFrame:
    middle = np.mean(domain_pairs(called, bounds), axis=1)
    return pl.DataFrame(np.tile(middle, (rows, 1)), schema=[*names], orient="row")


def rows_at(model: Any, X: UserData) -> Array:
    """Where the kernel of a fitted model has these rows."""
    X = in_memory(X)
    if model.inputs_ is None:
        X = as_frame(X, model)
        numbers_only(model, X)
        with _plain_refusals():
            return np.asarray(validate_data(model, X, reset=False, dtype=np.float64))
    return np.asarray(model.inputs_.locate_table(X))


def as_frame(X: UserData, model: object = None) -> Any:
    """Columns by their names, rows that are dicts, or a structured array as a table that scikit-learn
    reads; anything else as it is. ``model``: one that is fitted, whose columns alone are taken."""
    rows = isinstance(X, list | tuple) and len(X) > 0 and isinstance(X[0], Mapping)
    columns = isinstance(X, Mapping) and not hasattr(X, "shape")
    structured = getattr(getattr(X, "dtype", None), "names", None) is not None
    if not (rows or columns or structured):
        return X
    table = Table.of(X)
    if table is None or not table.named:
        raise ValueError("X must have a name and equally many cells in every column.")
    names = table.names if model is None else _known(model, table)
    try:
        numbers = {name: np.asarray(table.column(name), dtype=np.float64) for name in names}
    except (TypeError, ValueError):
        numbers = {names[0]: np.array([np.nan])}
    if not all(np.all(np.isfinite(column)) for column in numbers.values()):
        raise ValueError("X must hold a finite number in every cell.")
    return pl.DataFrame(numbers)


def _known(model: object, table: Table) -> Sequence[str]:
    """The names of a model's columns, all of which the table has."""
    names: Sequence[str] | None = getattr(model, "feature_names_in_", None)
    if names is None:
        raise ValueError(
            f"X names its columns, but this {type(model).__name__} was fitted without names: give X as "
            "rows of numbers."
        )
    absent = [name for name in names if name not in table.names]
    if absent:
        raise ValueError(f"X has no column {absent[0]!r}: the inputs are {', '.join(names)}.")
    return names


def numbers_only(model: object, X: UserData) -> None:
    """Refuse a public table with other columns than numbers, for models that would misread them."""
    if Inputs.of(Table.of(X), None) is not None:
        raise ValueError(
            f"X holds dates or categories where this {type(model).__name__} has numbers: turn them into "
            "numbers first."
        )


def remember(model: Any, names: tuple[str, ...] | None, columns: int) -> None:
    """The number of columns and their names, as scikit-learn has them; ``columns``: of the kernel."""
    model.n_features_in_ = columns if model.inputs_ is None else len(model.inputs_.names)
    model.__dict__.pop("feature_names_in_", None)
    if names is not None:
        model.feature_names_in_ = np.array(names, dtype=object)


def locate_columns(model: Any) -> dict[str, Any]:
    """The arguments of a model that are about columns, with points where its kernel has them."""
    inputs = model.inputs_
    if inputs is None:
        return {"columns": None}
    points = {name: getattr(model, name, None) for name in ("targets", "inducing")}
    declared = None if model.x_bounds is None else domain_of(model)
    return {"columns": inputs, "x_bounds": declared} | {
        name: given if given is None or isinstance(given, Integral) else inputs.locate_table(given)
        for name, given in points.items()
        if hasattr(model, name)
    }
