"""Predictions from a release. Free, and of published bytes alone."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import Any

import numpy as np
import polars as pl

from privgp.models.load import unpacked
from privgp.server.errors import Refused, first_line
from privgp.server.work import finite
from privgp.types import Array

KEPT = 8  # models in memory


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


def _table(model: Any, X: Array) -> Any:
    names = getattr(model, "feature_names_in_", None)
    return X if names is None else pl.DataFrame(X, schema=[*map(str, names)], orient="row")
