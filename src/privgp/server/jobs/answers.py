"""What a release answers: predictions, views and exports. Free, and of published bytes alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import polars as pl

from privgp.models.spending import names_of
from privgp.server.errors import Refused, explain
from privgp.server.store.schema import Row
from privgp.server.views import exports
from privgp.server.views.published import render_release
from privgp.server.views.view import view
from privgp.server.work import Work, finite

KEPT = 8  # models in memory
VIEWS: dict[str, Callable[..., str]] = {
    "view": lambda release, output: json.dumps(view(release, output), allow_nan=False),
    "csv": exports.csv_of,
    "geojson": exports.geojson_of,
    "page": render_release,
}


class Answers:
    """The releases of a server, and what they answer.

    Parameters
    ----------
    work : reads releases
    model : what answers for a release, by its number

    """

    def __init__(self, work: Work) -> None:
        self.work = work
        self.model = lru_cache(maxsize=KEPT)(work.model)

    def text(self, asked: Row) -> str:
        """The answer to a question: the ``points`` of a prediction as JSON, or a ``kind`` of view."""
        model = self.model(asked["release"])
        if "points" in asked:
            told = predict_points(model, asked["points"], asked["coverage"])
            return json.dumps(told, allow_nan=False)
        return VIEWS[asked["kind"]](model._released, *asked["words"])


def predict_points(
    model: Any, points: list[list[float | str]], coverage: float | None
) -> dict[str, object]:
    """Mean and std at every point, of classes probabilities; and intervals of this coverage. With several
    outputs, a number for each at every point."""
    if any(len(point) != model.n_features_in_ for point in points):
        raise Refused(422, f"Every point must have {model.n_features_in_} cells.")
    told: dict[str, object] = {}
    with np.errstate(all="ignore"), explain(ValueError, ArithmeticError):  # a release is public
        X = _table(model, points)
        if hasattr(model, "predict_proba"):
            told["classes"] = [str(each) for each in model.classes_]
            found = {"probability": model.predict_proba(X)}
        else:
            mean, std = model.predict(X, return_std=True)
            found = {"mean": mean, "std": std}
        if model._released.output_names is not None:
            told["outputs"] = [*model._released.output_names]
        if coverage is not None:
            told["coverage"] = coverage
            found["low"], found["high"] = model.interval(X, coverage)
    return {**told, **{name: finite(values).tolist() for name, values in found.items()}}


def _table(model: Any, points: list[list[float | str]]) -> object:
    """Points as a model takes them: cells by the names of its columns, or numbers."""
    names = names_of(model)
    if model.inputs_ is not None:
        return dict(zip(model.inputs_.names, map(list, zip(*points, strict=True)), strict=True))
    X = np.array(points, dtype=float)
    return X if names is None else pl.DataFrame(X, schema=[*names], orient="row")
