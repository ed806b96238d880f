"""Whole functions and sample paths, drawn where they are asked for and kept in private files.

The charge is made once, before the file exists, and pays for every answer. An answer is on the disk,
and the database knows of it, before anybody gets it: a file that knows less than the database was put
back from an older copy, would draw anew, and is refused.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import polars as pl
from pydantic import TypeAdapter
from sklearn.base import clone

from privgp.ledger.account import Account
from privgp.models.rows.tables import example_records
from privgp.models.spending import names_of
from privgp.server.declared import Declared
from privgp.server.errors import Refused, explain
from privgp.server.functions import ESTIMATORS, AnyAsked, FunctionAsked, PathsAsked
from privgp.server.settings import Settings
from privgp.server.store.schema import Row
from privgp.server.store.store import Store
from privgp.types import Array

OPENED = 8  # in memory
GONE = "The file of this function is missing, damaged or an older copy: nothing is answered."
BUSY = "Others are asking this function: try again in a moment."
LAST_DRAW = "At most {:,} points of this are ever answered: ask for those that were."


class Keeper:
    """The files of a server's functions; one question of each at a time."""

    def __init__(self, settings: Settings, store: Store) -> None:
        self.settings, self.store = settings, store
        self._opened: OrderedDict[str, Any] = OrderedDict()
        self._busy: dict[str, Lock] = {}
        self._lock = Lock()

    def path(self, number: str) -> Path:
        return self.settings.states / f"{number}.private-state"

    def ask(self, row: Row, points: list[list[float]]) -> Array:
        """The answers at these points, always the same."""
        number = row["id"]
        with self._lock:
            busy = self._busy.setdefault(number, Lock())
        if not busy.acquire(timeout=self.settings.max_wait_seconds):
            raise Refused(503, BUSY)
        try:
            return self._follow_answers(number, row, points)
        finally:
            busy.release()

    def _follow_answers(self, number: str, row: Row, points: list[list[float]]) -> Array:
        """The answers, also where another server went on with the file."""
        for _ in range(2):
            try:
                return self._answers(number, row, points)
            except RuntimeError:
                self._forget(number)
        raise Refused(503, GONE)

    def _answers(self, number: str, row: Row, points: list[list[float]]) -> Array:
        made = self._model(number, row["kind"])
        if made.points_answered_ < row["points"]:
            raise RuntimeError("the file, or what is in memory of it, is behind")
        if any(len(point) != made.n_features_in_ for point in points):
            raise Refused(422, f"Every point must have {made.n_features_in_} numbers.")
        X, most = np.array(points, dtype=np.float64), self.settings.max_function_total
        names = names_of(made)
        asked = X if names is None else pl.DataFrame(X, schema=[*names], orient="row")
        with explain(ValueError):  # about the question
            if made.points_answered_ + made.points_unanswered(asked) > most:
                raise Refused(422, LAST_DRAW.format(most))
            answers: Array = made.release(asked)
        if made.points_answered_ > row["points"]:
            self.store.note_points(number, made.points_answered_)
        return answers

    def _model(self, number: str, kind: str) -> Any:
        with self._lock:
            made = self._opened.pop(number, None)
        if made is None:
            try:
                made = ESTIMATORS[kind].load_state(self.path(number))
            except (OSError, ValueError):
                raise Refused(503, GONE) from None
        with self._lock:
            self._opened[number] = made
            while len(self._opened) > OPENED:
                self._opened.popitem(last=False)
        return made

    def _forget(self, number: str) -> None:
        with self._lock:
            self._opened.pop(number, None)


def make(
    keeper: Keeper, number: str, declared: Declared, asked: Row, account: Account
) -> dict[str, Any]:
    """Charge, and take the data into a new file, unless a run before this one has; what is told."""
    wanted: FunctionAsked | PathsAsked = TypeAdapter(AnyAsked).validate_python(asked)
    path = keeper.path(number)
    if not path.exists():
        X, _, y = declared.all_columns(declared.usual_model(), declared.path(keeper.settings))
        wanted.check(declared, len(X), keeper.settings)
        with explain(ValueError, ArithmeticError):  # with nobody's values
            made = wanted.estimator(declared, len(X))
            trial = example_records(X, declared.domain, declared.bounds or (0.0, 0.0))
            clone(made).set_params(random_state=0).fit(*trial)
        with suppress(FileExistsError):  # another run was faster, under the same charge
            made.set_params(ledger=account).fit(X, y, state=path)
        del X, y
    made = ESTIMATORS[wanted.kind].load_state(path)
    return {"kind": wanted.kind, "told": json.dumps(_guarantee_summary(made))}


def _guarantee_summary(made: Any) -> dict[str, Any]:
    promised = made.guarantee_
    said = {"protects": promised.unit, "assumptions": [*promised.assumptions]}
    names = ("epsilon", "delta", "neighbours", "mechanism")
    return {**said, **{name: getattr(promised, name) for name in names}}
