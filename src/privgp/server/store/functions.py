"""Whole functions and sample paths: what they are asked to be. They are drawn where they are asked for and
kept in private files.

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
from typing import Annotated, Any, Literal

import numpy as np
import polars as pl
from pydantic import Field, TypeAdapter
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Kernel, Matern

from privgp.ledger.account import Account
from privgp.models.function.estimator import PrivateFunction
from privgp.models.paths import PosteriorPaths
from privgp.models.published import names_of
from privgp.models.rows.tables import example_records
from privgp.server.declared import MOST_INPUTS, Asked, Declared, Finite
from privgp.server.errors import Refused, explain
from privgp.server.settings import Settings
from privgp.server.store.schema import Row
from privgp.server.store.store import Store
from privgp.types import Array

OPENED = 8  # in memory
GONE = "The file of this function is missing, damaged or an older copy: nothing is answered."
BUSY = "Others are asking this function: try again in a moment."
LAST_DRAW = "At most {:,} points of this are ever answered: ask for those that were."
TOO_MANY = "More than {:,} rows: this would take too long."
NO_RECORDS = "Paths hide whole records: register the table with protect = records."
Size = Annotated[float, Field(ge=1e-30, le=1e30)]
SMOOTHNESS = {"matern12": 0.5, "matern32": 1.5, "matern52": 2.5}
ESTIMATORS: dict[str, Any] = {"function": PrivateFunction, "paths": PosteriorPaths}


class Prior(Asked):
    """The kernel, in units of the inputs and squared units of the output, chosen without the data."""

    shape: Literal["rbf", "matern12", "matern32", "matern52"] = "rbf"
    variance: Size
    lengthscales: Annotated[tuple[Size, ...], Field(min_length=1, max_length=MOST_INPUTS)]
    epsilon: Annotated[float, Field(gt=0, le=1000)]
    delta: Annotated[float, Field(gt=0, lt=1)]

    def check(self, declared: Declared, rows: int, settings: Settings) -> None:
        """Refuse a dataset whose people this could not guarantee anything to."""
        if not declared.is_plain:
            raise Refused(422, "Functions and paths need numbers, one row per person, and bounds.")
        if len(self.lengthscales) not in (1, len(declared.inputs)):
            raise Refused(422, "lengthscales must be one number, or one per input.")
        self.check_size(rows, settings)

    def check_size(self, rows: int, settings: Settings) -> None:
        if rows > settings.max_exact_rows:
            raise Refused(422, TOO_MANY.format(settings.max_exact_rows))

    @property
    def kernel(self) -> Kernel:
        scale = self.lengthscales[0] if len(self.lengthscales) == 1 else [*self.lengthscales]
        nu = SMOOTHNESS.get(self.shape)
        return ConstantKernel(self.variance) * (RBF(scale) if nu is None else Matern(scale, nu=nu))


class FunctionAsked(Prior):
    """The posterior mean as one noisy function. ``inducing``: this many numbers fix it, and any number
    of points is then answered; otherwise as many as the server allows."""

    kind: Literal["function"]
    noise_variance: Size
    inducing: Annotated[int, Field(ge=1, le=1000)] | None = None

    def check_size(self, rows: int, settings: Settings) -> None:
        if self.inducing is None:
            super().check_size(rows, settings)

    def estimator(self, declared: Declared, _: int) -> Any:
        given: Row = {"domain": declared.domain, "y_bounds": declared.pairs[0], "delta": self.delta}
        given |= {"epsilon": self.epsilon, "protect": declared.protect, "inducing": self.inducing}
        return PrivateFunction(self.kernel, self.noise_variance, **given)


class PathsAsked(Prior):
    """Paths of the posterior, of whole records. The least noise variance that keeps the budget is
    found; or, where one is given, the least further noise."""

    kind: Literal["paths"]
    noise_variance: Size | None = None
    n_paths: Annotated[int, Field(ge=1, le=50)] = 1
    max_points: Annotated[int, Field(ge=1, le=4000)] = 1000

    def estimator(self, declared: Declared, rows: int) -> Any:
        if declared.x_bounds is None:
            raise Refused(422, NO_RECORDS)
        noise = self.variance if self.noise_variance is None else self.noise_variance
        given: Row = {"domain": declared.domain, "y_bounds": declared.pairs[0], "delta": self.delta}
        given |= {"n_paths": self.n_paths, "max_points": self.max_points}
        made = PosteriorPaths(self.kernel, noise, **given)
        by = "noise_variance" if self.noise_variance is None else "extra_noise"
        least = made.calibrate(self.epsilon, rows, by=by)
        return made.set_params(noise_variance=least.noise_variance, extra_noise=least.extra_noise)


AnyAsked = Annotated[FunctionAsked | PathsAsked, Field(discriminator="kind")]


class PointsAsked(Asked):
    points: Annotated[
        list[Annotated[list[Finite], Field(min_length=1, max_length=MOST_INPUTS)]],
        Field(min_length=1),
    ]


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
                with self._lock:
                    self._opened.pop(number, None)
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
