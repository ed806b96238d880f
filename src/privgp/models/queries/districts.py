"""Averages over areas, from what a model knows of its inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from numbers import Integral
from typing import Any

import numpy as np

from privgp.release.queries.areas import LEAST_POINTS, MOST_POINTS, Areas, Plane, Polygons
from privgp.release.queries.averages import Average, average
from privgp.release.release import Release
from privgp.tables.table import absent, columns_by_name
from privgp.types import Array

MOST_TOGETHER = 4_000_000  # points of all areas


def average_areas(
    model: Any,
    release: Release,
    polygons: Any,
    X: Any,
    weights: Any,
    name: str | None,
    fixed: Mapping[str, Any] | None,
    points: Any,
    coverage: float,
) -> Areas:
    """Averages over polygons; arguments as ``Queries.areas`` has them."""
    inputs, names = release.parameters.columns, release.names
    count = int(model.n_features_in_)
    plane = Plane.of(inputs, names, count)
    found = Polygons.read(polygons, name, plane)
    if X is None:
        if weights is not None:
            raise ValueError("weights are those of the rows of X: give X.")
        whole = isinstance(points, Integral) and not isinstance(points, bool)
        if not whole or not LEAST_POINTS <= points <= MOST_POINTS:
            raise ValueError(f"points must be a whole number from {LEAST_POINTS} to {MOST_POINTS}.")
        if points * len(found.shapes) > MOST_TOGETHER:
            raise ValueError(
                f"points must be at most {MOST_TOGETHER // len(found.shapes)} for so many areas."
            )
        at, weights, places = found.grid(int(points), plane.degrees)
        table = _rows(plane, at, names, count, fixed)
    else:
        if fixed is not None:
            raise ValueError("fixed is for inputs that X does not have: X has all of them.")
        table, at, weights = _given(X, weights, plane, names)
        places = found.holding(at)
        empty = np.bincount(places[places >= 0], minlength=len(found.shapes)) == 0
        if empty.any():
            label = found.labels[int(empty.argmax())]
            raise ValueError(f"X has no row in the area {label!r}: leave it out of polygons.")
    rows = model._locate(table)
    inside = places >= 0
    weights = None if weights is None else np.asarray(weights)[inside]
    made = average(release, rows[inside], weights, places[inside], coverage, name="area")
    given = {each.name: getattr(made, each.name) for each in fields(Average)}
    given |= {"labels": found.labels, "table": X}
    return Areas(**given, polygons=found, output=release.label("output"))


def _rows(plane: Plane, at: Array, names: Any, count: int, fixed: Mapping[str, Any] | None) -> Any:
    """Rows of inputs at points of a plane, with all other inputs fixed."""
    others = {} if fixed is None else dict(fixed)
    if names is None:
        if count != 2 or others:
            raise ValueError("fixed goes by names, and this model was fitted without them.")
        return at
    place = (names[plane.east], names[plane.north])
    missing = [name for name in names if name not in place and name not in others]
    if missing:
        raise ValueError(
            f"fixed must have a value for {missing[0]!r}, such as fixed={{{missing[0]!r}: ...}}, or give X."
        )
    wrong = [name for name in others if name not in names or name in place]
    if wrong:
        raise ValueError(f"fixed has {wrong[0]!r}, which is none of the other inputs.")
    columns: dict[str, Any] = {
        name: at[:, place.index(name)] if name in place else [others[name]] * len(at)
        for name in names
    }
    return columns


def _given(X: Any, weights: Any, plane: Plane, names: Any) -> tuple[Any, Array, Any]:
    """The rows of X as the model takes them, where they lie, and their weights."""
    if names is None:
        rows = np.asarray(X, dtype=np.float64)
        return rows, rows[:, [plane.east, plane.north]], weights
    given = columns_by_name(X)
    if isinstance(weights, str):
        if absent(given, [weights]):
            raise ValueError(f"X has no column {weights!r}, which weights names.")
        weights = np.asarray(given[weights], dtype=np.float64)
    missing = absent(given, names)
    if missing:
        raise ValueError(f"X has no column {missing[0]!r}: the inputs are {', '.join(names)}.")
    place = [given[names[each]] for each in (plane.east, plane.north)]
    at = np.column_stack([np.asarray(each, dtype=np.float64) for each in place])
    return {name: given[name] for name in names}, at, weights
