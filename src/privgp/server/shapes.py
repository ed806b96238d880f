"""What the JSON endpoints answer, as models: checked when they answer, and listed in /openapi.json."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Annotated, Literal

from fastapi import Response
from pydantic import BaseModel, ConfigDict, Field
from pydantic.config import JsonDict

from privgp.privacy.guarantee import Guarantee

Number = Annotated[str, Field(description="an identifier", examples=["0f3c" * 8])]
Moment = Annotated[str, Field(description="in UTC, ISO 8601; empty: never")]
Each = Annotated[float | list[float], Field(description="one number, or one for every output")]
Columns = Annotated[
    list[float] | list[list[float]],
    Field(description="a number for every point, or one for each of its outputs or classes"),
]


EXAMPLES = json.loads(files("privgp.server").joinpath("examples.json").read_bytes())


def add_example(schema: JsonDict, model: type) -> None:
    """What a request or an answer looks like, for /openapi.json."""
    schema["examples"] = [EXAMPLES[model.__name__]] if model.__name__ in EXAMPLES else []


class Shape(BaseModel):
    model_config = ConfigDict(extra="forbid", json_schema_extra=add_example)


class Problem(Shape):
    error: Annotated[str, Field(examples=["There is nothing here for this key."])]


class Me(Shape):
    name: Annotated[str, Field(examples=["clara"])]
    role: Literal["custodian", "analyst"]


class Id(Shape):
    id: Number


class Key(Id):
    name: str
    role: Literal["custodian", "analyst"]
    made_at: Moment
    revoked_at: Moment
    ends: Moment
    identity: Annotated[str, Field(description="who signs in with it at the provider")]
    datasets: list[str]


class NewKey(Id):
    key: Annotated[str, Field(description="shown this once", examples=["privgp-0f3c…-9a1b…"])]


class Event(Shape):
    number: int
    at: Moment
    key: Annotated[str, Field(description="the number of the key that did it")]
    kind: Annotated[str, Field(examples=["plan approved"])]
    about: str


class Table(Shape):
    table: Annotated[str, Field(examples=["upload-0f3c0f3c.csv"])]


class Column(Shape):
    """A column of an uploaded table, as its header or its schema describes it."""

    name: str
    kind: Annotated[str, Field(examples=["number"], description="empty where the file states none")]


class Dataset(BaseModel):
    """What was declared of a dataset, and what is left of its budget."""

    model_config = ConfigDict(extra="allow", json_schema_extra=add_example)

    name: Annotated[str, Field(examples=["visits"])]
    inputs: list[str]
    output: str | list[str]
    public_inputs: list[str]
    epsilon: float
    delta: float
    remaining: Annotated[float, Field(description="the epsilon that is left")]
    made_at: Moment


class Entry(Shape):
    number: int
    kind: Literal["charge", "answer", "approval", "rejection"]
    at: Moment
    hash: str
    previous: str
    epsilon: Annotated[float, Field(description="of a charge")] = 0.0
    delta: Annotated[float, Field(description="of a charge")] = 0.0


class Chain(Shape):
    dataset: str
    remaining: float
    entries: list[Entry]


class Verified(Shape):
    whole: bool
    anchored: Annotated[bool, Field(description="whether an older copy would be found")]
    told: str


class Job(Id):
    kind: Literal["plan", "release", "update", "function"]
    dataset: str
    state: Literal["waiting", "running", "done", "failed"]
    progress: Annotated[float, Field(description="from 0 to 1")]
    doing: Annotated[str, Field(examples=["Planning"])]
    result: Annotated[str, Field(description="the number of what it made, once it is done")]
    error: Annotated[str, Field(description="why it failed; empty if it did not")]
    made_at: Moment


class PlanSummary(Id):
    dataset: str
    made_at: Moment
    approved_at: Moment
    approved_by: str
    rejected_at: Moment
    rejected_by: str
    epsilon: float
    delta: float
    hash: Annotated[str, Field(description="SHA-256 of the plan")]
    expected_error: Each
    fits: Annotated[bool, Field(description="whether the budget allows it now")]
    left_after: Annotated[float, Field(description="the epsilon that would be left")]
    state: Literal["planned", "approved", "rejected", "running", "failed", "released"]
    job: Annotated[str, Field(description="the job that carries it out; empty: none")]
    error: str
    carried_out_by: str
    comparison: Annotated[bool, Field(description="whether it compares several epsilons")]


class Axis(Shape):
    input: str
    output: str
    at: list[float]
    ticks: Annotated[str, Field(description="date: days since 1970; empty: numbers")] = ""


class Option(Shape):
    epsilon: float
    delta: float
    expected_error: Each
    noise: str
    bars: Annotated[list[list[float]], Field(description="stds along every axis")]


class Plan(PlanSummary):
    outputs: list[str]
    error_range: list[Each]
    error_without_privacy: Each
    summary: str
    description: str
    axes: list[Axis]
    options: Annotated[list[Option], Field(description="what each epsilon would buy")]


class ReleaseSummary(Id):
    dataset: str
    previous: Annotated[str, Field(description="the release that was updated; empty: none")]
    made_at: Moment


class Release(ReleaseSummary):
    epsilon: float
    delta: float
    protects: Annotated[str, Field(examples=["one row's output"])]


class Prediction(Shape):
    """Columns of numbers: of labels ``probability``, otherwise ``mean`` and ``std``."""

    mean: Columns = []
    std: Columns = []
    probability: Columns = []
    low: Columns = []
    high: Columns = []
    coverage: float = 0.9
    classes: list[str] = []
    outputs: list[str] = []


class View(BaseModel):
    """The curve, map or slices of a release as plain numbers."""

    model_config = ConfigDict(extra="allow", json_schema_extra=add_example)

    kind: Literal["curve", "map", "slices"]
    inputs: list[str]
    outputs: list[str]
    axes: list[list[float]]
    simulation: bool


class Function(Id):
    dataset: str
    kind: Literal["function", "paths"]
    made_at: Moment
    epsilon: float
    delta: float
    protects: str
    neighbours: str
    mechanism: str
    assumptions: list[str]
    points_answered: int


class Values(Shape):
    values: Annotated[list[float] | list[list[float]], Field(description="of paths, one list each")]


def file_of(kind: str) -> type[Response]:
    """A response of this media type, for /openapi.json."""
    return type("File", (Response,), {"media_type": kind})


def download(data: bytes, name: str, kind: str) -> Response:
    """A file to be kept under a name."""
    headers = {"content-disposition": f'attachment; filename="{name}"'}
    return Response(data, media_type=kind, headers=headers)


def budget_of(guarantee: Guarantee) -> dict[str, float]:
    """What was spent."""
    return {"epsilon": guarantee.epsilon, "delta": guarantee.delta}


def only(row: Mapping[str, object], model: type[BaseModel]) -> dict[str, object]:
    """The columns of a row that an answer has."""
    return {name: row[name] for name in model.model_fields if name in row}


TAGS = {
    "keys": "Who may ask: keys of custodians and analysts, and the log of events.",
    "tables": "Private tables, which stay on the server.",
    "datasets": "Registered tables with permanent budgets.",
    "plans": "What a release would cost and how accurate it would be: free.",
    "releases": "What was published: predictions, views, certificates and files.",
    "functions": "Whole functions and sample paths, drawn where they are asked for.",
    "jobs": "What takes long: plans, releases and updates.",
    "ledger": "What was charged, and whether it is whole.",
}


def tag_of(path: str) -> str:
    """The tag of an endpoint: the last word of its path that is one."""
    return next((word for word in reversed(path.split("/")) if word in TAGS), "keys")
