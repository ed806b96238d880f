"""What is computed from a release: predictions, curves and maps. Free, and of published bytes alone."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import Any

import numpy as np
import polars as pl

from privgp.models.load import unpacked
from privgp.models.picture import privacy_range, released_model, released_probability
from privgp.pictures.released import PRIVACY, TOTAL
from privgp.server.errors import Refused, first_line
from privgp.server.work import finite
from privgp.types import Array

KEPT = 8  # models in memory
CURVE, MAP = 121, 31  # points along a curve, and along either side of a map


class Models:
    """The models of the releases that were asked for last."""

    def __init__(self) -> None:
        self._models: OrderedDict[str, Any] = OrderedDict()
        self._lock = Lock()

    def of(self, number: str, data: bytes) -> Any:
        with self._lock:
            model = self._models.pop(number, None)
        model = unpacked(data) if model is None else model
        with self._lock:
            self._models[number] = model
            while len(self._models) > KEPT:
                self._models.popitem(last=False)
        return model

    def known(self, number: str) -> Any:
        """The model, if it is in memory."""
        with self._lock:
            return self._models.get(number)


def predicted(model: Any, points: list[list[float]], coverage: float | None) -> dict[str, Any]:
    """Mean and std at every point, of classes probabilities; and intervals of this coverage."""
    if any(len(point) != model.n_features_in_ for point in points):
        raise Refused(422, f"Every point must have {model.n_features_in_} numbers.")
    X = _table(model, np.array(points, dtype=float))
    told: dict[str, Any] = {}
    with np.errstate(all="ignore"):
        try:
            if hasattr(model, "predict_proba"):
                told["classes"] = [str(each) for each in model.classes_]
                found = {"probability": model.predict_proba(X)}
            else:
                mean, std = model.predict(X, return_std=True)
                found = {"mean": mean, "std": std}
            if coverage is not None:
                told["coverage"] = coverage
                found["low"], found["high"] = model.interval(X, coverage)
        except (ValueError, ArithmeticError) as problem:  # about the question: a release is public
            raise Refused(422, first_line(problem)) from None
    return {**told, **{name: finite(values).tolist() for name, values in found.items()}}


def view(model: Any, output: str) -> dict[str, Any]:
    """A curve over one input, a map over two, slices over more, with the band of the privacy noise
    apart from that of the function in all. Of classes: the probability of the last one."""
    labels = hasattr(model, "predict_proba")
    if labels:
        shown = released_probability(model, len(model.classes_) - 1, output)
    else:
        shown = released_model(model, output, False)
    given = range(len(shown.extent)) if shown.names is None else shown.names
    names = [name if isinstance(name, str) else f"input {name}" for name in given]
    axes = [np.linspace(lo, hi, MAP if len(names) == 2 else CURVE) for lo, hi in shown.extent]
    panels = []
    for label, X in _panels(names, axes, shown.held_at):
        with np.errstate(all="ignore"):
            mean, bands = shown.values(X)
            inner = bands.get(PRIVACY)
            if inner is None and not labels:
                inner = privacy_range(model, X, mean, bands[TOTAL])
        numbers = {"mean": mean, "low": bands[TOTAL][0], "high": bands[TOTAL][1]}
        if inner is not None:
            numbers |= {"privacy_low": inner[0], "privacy_high": inner[1]}
        told = {name: finite(values).tolist() for name, values in numbers.items()}
        panels.append({"input": label, "points": X.tolist(), **told})
    kind = {1: "curve", 2: "map"}.get(len(names), "slices")
    return {
        "kind": kind,
        "inputs": names,
        "output": shown.output,
        "axes": [axis.tolist() for axis in axes],
        "held": "" if kind != "slices" else shown.held,
        "panels": panels,
    }


def table(model: Any, output: str) -> str:
    """The view as CSV."""
    shown = view(model, output)
    frames = [
        pl.DataFrame(panel["points"], schema=shown["inputs"], orient="row").with_columns(
            pl.Series(f"{name} of {output}", panel[name])
            for name in ("mean", "low", "high", "privacy_low", "privacy_high")
            if name in panel
        )
        for panel in shown["panels"]
    ]
    return pl.concat(frames).write_csv()


def _panels(names: list[str], axes: list[Array], held: Array) -> list[tuple[str, Array]]:
    if len(names) <= 2:
        grid = np.meshgrid(*axes, indexing="ij")
        return [(" and ".join(names), np.stack([each.ravel() for each in grid], axis=1))]
    made = []
    for place, name in enumerate(names):
        X = np.tile(held, (len(axes[place]), 1))
        X[:, place] = axes[place]
        made.append((name, X))
    return made


def _table(model: Any, X: Array) -> Any:
    names = getattr(model, "feature_names_in_", None)
    return X if names is None else pl.DataFrame(X, schema=[*map(str, names)], orient="row")
