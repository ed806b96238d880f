"""What a custodian declares of a dataset and what an analyst may choose, checked before any use."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, Self

import numpy as np
import polars as pl
from pydantic import BaseModel, ConfigDict, Field, model_validator

from privgp.models.classifier import PrivateGPClassifier
from privgp.models.regressor import PrivateGPRegressor
from privgp.server import reading
from privgp.server.errors import Refused, first_line
from privgp.server.settings import Settings
from privgp.vault.labels import written_classes

Finite = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Delta = Annotated[float, Field(ge=0, lt=1, allow_inf_nan=False)]
Name = Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[A-Za-z0-9][A-Za-z0-9 _.-]*$")]
Column = Annotated[str, Field(min_length=1, max_length=200)]
TableName = Annotated[
    str, Field(max_length=200, pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*\.(csv|parquet)$")
]
MOST_INPUTS, MOST_COMPARED = 20, 12


class Asked(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Declared(Asked):
    """A dataset: its table, the kinds of its columns, their bounds, and its budget for ever."""

    name: Name
    table: TableName
    inputs: Annotated[tuple[Column, ...], Field(min_length=1, max_length=MOST_INPUTS)]
    output: Column
    bounds: tuple[Finite, Finite] | None = None
    classes: Annotated[tuple[Column, ...], Field(min_length=2, max_length=50)] | None = None
    groups: Column | None = None
    protect: Literal["outputs", "records"] = "outputs"
    x_bounds: Annotated[tuple[tuple[Finite, Finite], ...], Field(max_length=MOST_INPUTS)] | None = (
        None
    )
    max_change: Positive | None = None
    epsilon: Annotated[float, Field(gt=0, le=1000)]
    delta: Delta
    reserve: Annotated[float, Field(ge=0, le=1000)] = 0.0

    @model_validator(mode="after")
    def _together(self) -> Self:
        if (self.bounds is None) == (self.classes is None):
            raise ValueError("give either bounds or classes")
        for low, high in [pair for pair in (self.bounds, *(self.x_bounds or ())) if pair]:
            if not low < high:
                raise ValueError("bounds must be low < high")
        if (self.protect == "records") != (self.x_bounds is not None):
            raise ValueError("x_bounds goes with protect = records, and must then be given")
        if self.x_bounds is not None and len(self.x_bounds) != len(self.inputs):
            raise ValueError("x_bounds must have one pair per input")
        if self.classes is not None and self.max_change is not None:
            raise ValueError("max_change does not go with classes")
        columns = [*self.inputs, self.output, *([self.groups] if self.groups else [])]
        if len({*columns}) != len(columns):
            raise ValueError("a column is named twice")
        return self

    @property
    def columns(self) -> list[str]:
        return [*self.inputs, self.output, *([self.groups] if self.groups else [])]

    def path(self, settings: Settings) -> Path:
        return settings.tables / self.table

    def told(self) -> dict[str, Any]:
        """What everybody with a key for it may know: all but where the table lies."""
        return self.model_dump(mode="json", exclude={"table"}, exclude_none=True)

    def model(self, asked: PlanAsked) -> Any:
        """The estimator for a plan, without a ledger."""
        shared: dict[str, Any] = {
            "epsilon": asked.epsilon,
            "delta": asked.delta,
            "protect": self.protect,
            "x_bounds": self.x_bounds,
            "mechanism": asked.mechanism,
            "hyperparameters": asked.hyperparameters,
            "inducing": asked.inducing,
        }
        if self.classes is not None:
            return PrivateGPClassifier(classes=written_classes(self.classes), **shared)
        return PrivateGPRegressor(y_bounds=self.bounds, max_change=self.max_change, **shared)

    def all_columns(self, path: Path) -> tuple[Any, Any, Any]:
        """Inputs, people and outputs of a table, all of which count as private here."""
        frame = reading.columns_of(path, self.columns)
        X = reading.number_columns(frame, self.inputs)
        people = None if self.groups is None else reading.person_column(frame, self.groups)
        if self.classes is not None:
            return X, people, reading.output_labels(frame, self.output)
        return X, people, reading.output_numbers(frame, self.output)

    def middle(self, rows: int) -> pl.DataFrame:
        """Made-up records in the middle of the bounds of private inputs."""
        pairs = zip(self.inputs, self.x_bounds or (), strict=True)
        return pl.DataFrame({name: np.full(rows, 0.5 * lo + 0.5 * hi) for name, (lo, hi) in pairs})

    def public_rows(self, path: Path) -> tuple[Any, Any]:
        """What a plan needs: inputs and people, or the number of records where inputs are private."""
        people = None
        if self.groups is not None:
            people = reading.person_column(reading.columns_of(path, [self.groups]), self.groups)
        if self.protect == "records":
            return reading.count_rows(path), people
        return reading.number_columns(reading.columns_of(path, self.inputs), self.inputs), people

    def check(self, settings: Settings) -> int:
        """Refuse a table that no release could be made of; the number of its rows."""
        path = self.path(settings)
        if not path.is_file() or path.is_symlink():
            raise Refused(422, "There is no such table in the server's folder.")
        rows = reading.count_rows(path)
        if rows > settings.most_rows:
            raise Refused(422, f"The table has more than {settings.most_rows} rows.")
        self.all_columns(path)
        try:
            asked = PlanAsked(epsilon=self.epsilon, delta=self.delta)
            self.model(asked)._question(len(self.inputs))
        except ValueError as problem:
            raise Refused(422, first_line(problem)) from None
        return rows


class PlanAsked(Asked):
    """``compare``: further epsilons to tell the error of."""

    epsilon: Annotated[float, Field(gt=0, le=1000)]
    delta: Delta
    mechanism: Literal["auto", "gaussian", "laplace"] = "auto"
    hyperparameters: Literal["learned", "fixed"] = "learned"
    inducing: Annotated[int, Field(ge=1, le=1000)] | None = None
    compare: Annotated[
        tuple[Annotated[float, Field(gt=0, le=1000)], ...], Field(max_length=MOST_COMPARED)
    ] = ()


class ReleaseAsked(Asked):
    plan: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]


class PredictAsked(Asked):
    """``interval``: whether intervals of this coverage are wanted, which double the time."""

    points: Annotated[
        list[Annotated[list[Finite], Field(min_length=1, max_length=MOST_INPUTS)]],
        Field(min_length=1),
    ]
    coverage: Annotated[float, Field(gt=0, lt=1)] = 0.9
    interval: bool = True


class KeyAsked(Asked):
    name: Name
    role: Literal["custodian", "analyst"]
    datasets: Annotated[tuple[Name, ...], Field(max_length=1000)] = ()
