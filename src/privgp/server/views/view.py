"""What a page shows of a release, as plain numbers: curves, maps or slices with their bands."""

from __future__ import annotations

from typing import Any

import numpy as np

from privgp.models.kept import names_of
from privgp.models.picture import (
    kernel_points,
    part_of,
    privacy_share,
    released_model,
    released_probability,
)
from privgp.pictures.released import TOTAL, Released
from privgp.release.exports.geojson import places_in
from privgp.server.errors import Refused
from privgp.types import Array

LONGITUDE = "longitude"  # the ticks of one
CURVE, MAP = 121, 41  # points along a curve, and along either side of a map
COLUMNS = (
    "mean", "low", "high", "privacy_low", "privacy_high", "model_low", "model_high",
)  # fmt: skip
AT_TARGETS = "This release has values at its targets alone: there is no curve or map to show."
TOO_LARGE = "The numbers are too large or too small: choose other units or bounds."


def view(model: Any, output: str) -> dict[str, Any]:
    """A panel for every output, of labels for every class (of two, for the last one); over more than
    two inputs, for every input as well.

    A panel has the mean, the 90% interval (low, high), the part of it that the privacy noise makes,
    and the part that the model makes, which is there without any noise: variances add up.
    Probabilities have the interval only.
    """
    each = _shown(model, output)
    first = each[0]
    if first.targets is not None:
        raise Refused(422, AT_TARGETS)
    known = names_of(model) if model.inputs_ is None else first.names
    names = [str(name) for name in known or [f"input {k}" for k in range(len(first.extent))]]
    ticks = first.ticks or (None,) * len(names)
    count = MAP if len(names) == 2 else CURVE
    axes = [
        _axis(low, high, count, each) for (low, high), each in zip(first.extent, ticks, strict=True)
    ]
    kind = {1: "curve", 2: "map"}.get(len(names), "slices")
    panels = [
        {"output": shown.output, "input": place, "points": X.tolist(), **_numbers(one, shown, X)}
        for one, shown in zip(model._each or (model,) * len(each), each, strict=True)
        for place, X in _panels(axes, first.held_at)
    ]
    return {
        "kind": kind,
        "inputs": names,
        "outputs": [shown.output for shown in each],
        "curve": first.curve,
        "places": places_of(names, axes),
        "axes": [axis.tolist() for axis in axes],
        "ticks": ["" if each in (None, LONGITUDE) else each for each in ticks],
        "held": first.held if kind == "slices" else "",
        "held_at": np.asarray(first.held_at, dtype=float).tolist(),
        "simulation": first.simulation,
        "panels": panels,
    }


def places_of(names: list[str], axes: list[Array]) -> list[int]:
    """Where longitude and latitude are, if those are the two inputs; otherwise nothing."""
    found = places_in(names) if len(names) == 2 else None
    if found is None:
        return []
    reach = [float(np.abs(axes[place]).max()) for place in found]
    return [*found] if reach[0] <= 180.0 and reach[1] <= 90.0 else []


def _axis(low: float, high: float, count: int, ticks: Any) -> Array:
    """Points along an input: every level, or as many as asked for, longitudes from -180 on."""
    if isinstance(ticks, tuple):
        return np.arange(len(ticks), dtype=float)
    turns = np.floor((low + 180.0) / 360.0) if ticks == LONGITUDE else 0.0
    return np.linspace(low, high, count) - 360.0 * turns


def _shown(model: Any, output: str) -> list[Released]:
    if hasattr(model, "predict_proba"):
        count = len(model.classes_)
        places = [1] if count == 2 else range(count)
        return [released_probability(model, place, output) for place in places]
    if model._each:
        pairs = zip(model._each, model.output_names_, strict=True)
        return [released_model(one, str(name), False) for one, name in pairs]
    return [released_model(model, output or "output", False)]


def _panels(axes: list[Array], held: Array) -> list[tuple[int, Array]]:
    """The input that is varied, the first of all of them, and the points."""
    if len(axes) <= 2:
        grid = np.meshgrid(*axes, indexing="ij")
        return [(0, np.stack([each.ravel() for each in grid], axis=1))]
    made = []
    for place, axis in enumerate(axes):
        X = np.tile(held, (len(axis), 1))
        X[:, place] = axis
        made.append((place, X))
    return made


def _numbers(model: Any, shown: Released, X: Array) -> dict[str, list[float]]:
    with np.errstate(all="ignore"):
        mean, bands = shown.values(X)
        total = bands[TOTAL]
        columns = [mean, *total]
        if not hasattr(model, "predict_proba"):
            share = privacy_share(model, kernel_points(model, X))
            columns += [*part_of(total, mean, share), *part_of(total, mean, 1.0 - share)]
    if not all(np.all(np.isfinite(column)) for column in columns):
        raise Refused(422, TOO_LARGE)
    return {name: column.tolist() for name, column in zip(COLUMNS, columns, strict=False)}
