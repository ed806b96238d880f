"""Questions to releases, answered by processes in turn: those of one key never keep others waiting."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import polars as pl
from anyio import create_task_group
from fastapi.concurrency import run_in_threadpool

from privgp.models.published import names_of
from privgp.server.errors import Refused, explain
from privgp.server.jobs.process import PREDICTORS, Process
from privgp.server.jobs.turns import Turns
from privgp.server.store.schema import Row
from privgp.server.views import exports
from privgp.server.views.exports import render_release
from privgp.server.views.view import view
from privgp.server.work import Work, finite

PART = 1000  # points that are predicted before it is somebody else's turn
MAX_KEPT = 64 * 2**20  # characters of views in memory


class Predictors:
    """Processes that answer questions to releases, or this one where the settings have none.

    Parameters
    ----------
    answers : what releases answer, in this process

    """

    def __init__(self, answers: Answers) -> None:
        self.answers, self.settings = answers, answers.work.settings
        count = self.settings.predictors
        while len(PREDICTORS) < count:
            PREDICTORS.append(Process())
        self._free = PREDICTORS[:count]
        self.turns = Turns(max(count, 1), max(count, 1))
        self._views: OrderedDict[str, str] = OrderedDict()

    def warm(self) -> None:
        """Start the processes, so that the first question need not wait."""
        for each in self._free:
            each.warm()

    async def predict(
        self, owner: str, release: str, points: list[list[float | str]], coverage: float | None
    ) -> str:
        """Predictions as JSON, a part of the points in every turn.

        Parameters
        ----------
        owner
            The key that asks.
        release
            Its number.
        points
            One cell per input in every one.
        coverage
            Of the intervals; None for none.

        """
        parts = [points[at : at + PART] for at in range(0, len(points), PART)]
        asked = [{"release": release, "points": part, "coverage": coverage} for part in parts]
        if len(asked) == 1:
            return await self._ask(owner, asked[0])
        texts = [""] * len(parts)

        async def answer(place: int) -> None:
            texts[place] = await self._ask(owner, asked[place])

        try:
            async with create_task_group() as group:
                for place in range(len(parts)):
                    group.start_soon(answer, place)
        except ExceptionGroup as several:
            raise several.exceptions[0] from None
        return await run_in_threadpool(_join, texts)

    async def view(self, owner: str, kind: str, release: str, *words: str) -> str:
        """A view or an export of a release, which is made once: a release never changes.

        Parameters
        ----------
        owner
            The key that asks.
        kind
            One of ``VIEWS``.
        release
            Its number.
        words
            What the kind takes besides: what the output is called, and for a page its title.

        """
        name = json.dumps([kind, release, *words])
        text = self._views.get(name)
        if text is None:
            text = await self._ask(owner, {"kind": kind, "release": release, "words": words})
        self._views[name] = text
        self._views.move_to_end(name)
        while sum(map(len, self._views.values())) > MAX_KEPT:
            self._views.popitem(last=False)
        return text

    async def _ask(self, owner: str, asked: Row) -> str:
        async with self.turns.turn(owner):
            if not self.settings.predictors:
                return await run_in_threadpool(self.answers.text, asked)
            process = self._free.pop()
            try:
                return await run_in_threadpool(process.ask, self.settings, asked)
            finally:
                self._free.append(process)


def _join(texts: list[str]) -> str:
    """One answer from those to its parts: columns of numbers, one for every point, are joined."""
    found = [json.loads(text) for text in texts]
    whole: Row = {**found[0]}
    for name in found[0]:
        if name not in ("classes", "outputs", "coverage"):
            whole[name] = [value for each in found for value in each[name]]
    return json.dumps(whole, allow_nan=False)


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
