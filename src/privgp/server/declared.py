"""What a custodian declares of a dataset and what an analyst may choose, checked before any use."""

from __future__ import annotations

import hashlib
from codecs import BOM_UTF8
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, create_model, model_validator

from privgp.models.load import estimator_of
from privgp.models.published import Published
from privgp.models.rows.database import open_table
from privgp.models.rows.files import columns_to_fit, columns_to_plan
from privgp.models.rows.fit import Aside, domain
from privgp.models.rows.tables import domain_of, in_order, records_to_plan, rows_to_plan
from privgp.plan.inputs.inputs import OPTIONS
from privgp.question.outcomes import BY_LIKELIHOOD, CLASSIFIER, REGRESSOR
from privgp.question.parameters import TABLE
from privgp.question.rules import LABELS, ONE, SEVERAL, check_column_roles, check_rules
from privgp.server.errors import Refused, explain
from privgp.server.settings import Settings
from privgp.server.shapes import add_example
from privgp.server.store import tables
from privgp.tables.kinds import KINDS, ColumnKinds
from privgp.types import Array, Pair
from privgp.vault.labels import class_texts

Finite = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Delta = Annotated[float, Field(ge=0, lt=1, allow_inf_nan=False)]
Name = Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[A-Za-z0-9][A-Za-z0-9 _.-]*$")]
Column = Annotated[str, Field(min_length=1, max_length=200)]
TableName = Annotated[
    str, Field(max_length=200, pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*\.(csv|parquet)$")
]
MOST_INPUTS, MOST_OUTPUTS, MOST_COMPARED = 20, 20, 12
LEARNED_BY = {ONE: REGRESSOR, SEVERAL: REGRESSOR, LABELS: CLASSIFIER}
LARGEST = 1e9  # magnitude of values whose bounds are searched for
Line = Annotated[str, Field(max_length=160, pattern=r"^[^\x00-\x1f\x7f]*$")]
Cell = Finite | Annotated[str, Field(max_length=200)]


def _check_pair(pair: tuple[float, float]) -> tuple[float, float]:
    if not pair[0] < pair[1]:
        raise ValueError("bounds must be low < high")
    return pair


Ends = Annotated[tuple[Finite, Finite], AfterValidator(_check_pair)]
Dates = tuple[Column, Column]


class Asked(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, json_schema_extra=add_example)


def _fields_at(where: str, *required: str) -> dict[str, Any]:
    """The fields of the parameters that the server takes there."""
    made: dict[str, Any] = {}
    for each in TABLE:
        if each.served == where and each.values is not None:
            limits: Any = each.values.limits(each.most_served)
            kind: Any = Annotated[each.type, Field(**limits)]
            made[each.name] = (kind, ... if each.name in required else each.default)
    return made


PlanFields: Any = create_model(
    "PlanFields", __base__=Asked, **_fields_at("plan", "epsilon", "delta")
)
DatasetFields: Any = create_model("DatasetFields", __base__=Asked, **_fields_at("dataset"))


class KindAsked(Asked):
    """What an input column is that is not a number, or what two are together: a place."""

    columns: Annotated[tuple[Column, ...], Field(min_length=1, max_length=2)]
    kind: Literal["number", "date", "category", "place", "periodic", "boolean"]
    levels: Annotated[tuple[Column, ...], Field(min_length=1, max_length=1000)] | None = None
    period: Positive | None = None
    crs: Annotated[str, Field(min_length=1, max_length=100)] | None = None

    @model_validator(mode="after")
    def _together(self) -> Self:
        given = [name for name in OPTIONS.values() if getattr(self, name) is not None]
        if any(name != OPTIONS.get(self.kind) for name in given):
            raise ValueError(f"{given[0]} does not go with kind {self.kind}")
        return self

    def said(self) -> tuple[Any, Any]:
        """As ``columns`` of an estimator has it: names and kind."""
        option = getattr(self, OPTIONS.get(self.kind, "kind"))
        key = self.columns[0] if len(self.columns) == 1 else self.columns
        return key, self.kind if option in (None, self.kind) else (self.kind, option)


class BoundsAsked(Asked):
    """Bounds of the outcome, to be found with this part of the budget (``private_bounds``).

    Attributes
    ----------
    epsilon : float
        The part of the budget.
    share : float
        The share of the values that the bounds should cover.
    low : float, optional
        A lower bound that is known, such as 0 for costs.

    """

    epsilon: Annotated[float, Field(gt=0, le=1000, examples=[0.1])]
    share: Annotated[float, Field(ge=0.5, lt=1)] = 0.95
    low: Annotated[float, Field(gt=-LARGEST, lt=LARGEST)] | None = None

    @property
    def widest(self) -> tuple[float, float]:
        """Bounds that no value is assumed to exceed."""
        return -LARGEST if self.low is None else self.low, LARGEST


class Declared(DatasetFields):  # type: ignore[misc]
    """A dataset: its table, the kinds of its columns, their bounds, and its permanent budget.

    Attributes
    ----------
    public_inputs : tuple of str
        The inputs that everyone may see of every person. The others are private, and so are all of
        them if one is.
    account : str, optional
        The dataset whose budget is shared, because it has the same table.
    unrelated : bool
        Whether a custodian states that a table with the same public columns is about other people.
    find_bounds : BoundsAsked, optional
        How bounds that nobody could declare were found, or are to be.

    """

    name: Name
    account: Name | None = None
    unrelated: bool = False
    table: TableName
    inputs: Annotated[tuple[Column, ...], Field(min_length=1, max_length=MOST_INPUTS)]
    output: Column | Annotated[tuple[Column, ...], Field(min_length=2, max_length=MOST_OUTPUTS)]
    bounds: Ends | Annotated[tuple[Ends, ...], Field(min_length=2)] | None = None
    find_bounds: BoundsAsked | None = None
    classes: Annotated[tuple[Column, ...], Field(min_length=2, max_length=50)] | None = None
    groups: Column | None = None
    exposure: Column | None = None
    kinds: Annotated[tuple[KindAsked, ...], Field(max_length=MOST_INPUTS)] = ()
    public_inputs: Annotated[tuple[Column, ...], Field(max_length=MOST_INPUTS)] = ()
    x_bounds: Annotated[tuple[Ends | Dates, ...], Field(max_length=MOST_INPUTS)] | None = None
    epsilon: Annotated[float, Field(gt=0, le=1000)]
    delta: Delta
    reserve: Annotated[float, Field(ge=0, le=1000)] = 0.0

    @model_validator(mode="after")
    def _together(self) -> Self:
        if (self.bounds is None and self.find_bounds is None) == (self.classes is None):
            raise ValueError("give either bounds or classes")
        if self.find_bounds is not None and (self.groups or self.is_count or self.outcome != ONE):
            raise ValueError("find_bounds needs one number and one row per person: give bounds")
        if self.find_bounds is not None and self.find_bounds.epsilon >= self.epsilon:
            raise ValueError("find_bounds must leave a part of epsilon")
        given = {each.name: getattr(self, each.name) for each in TABLE if hasattr(self, each.name)}
        bounds = self.bounds if self.find_bounds is None else self.find_bounds.widest
        columns = {"groups": self.groups, "exposure": self.exposure, "y_bounds": bounds}
        check_rules({**given, **columns}, self.outcome)
        check_column_roles(self.inputs, self.outputs, self.groups, self.exposure)
        if self.groups in self.inputs or self.exposure in (*self.inputs, self.groups or ""):
            raise ValueError("a column is named twice")
        if self.bounds is not None and len(self.pairs) != len(self.outputs):
            raise ValueError("bounds must have one pair per output")
        if not {*self.public_inputs} <= {*self.inputs}:
            raise ValueError("public_inputs must be names of inputs")
        private = [name for name in self.inputs if name not in self.public_inputs]
        if private and self.x_bounds is None:
            raise ValueError(
                f"the input {private[0]} is private: give protect = records and x_bounds, or list it "
                "in public_inputs if everyone may see it of every person"
            )
        if not private and self.x_bounds is not None:
            raise ValueError("public inputs need no x_bounds: leave out one or the other")
        if self.x_bounds is not None and len(self.x_bounds) != len(self.names_with_bounds):
            raise ValueError("x_bounds must have one pair per input that has bounds")
        return self

    @property
    def outputs(self) -> tuple[str, ...]:
        """The private columns."""
        return (self.output,) if isinstance(self.output, str) else self.output

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """The bounds of every output."""
        return () if self.bounds is None else tuple(map(tuple, np.reshape(self.bounds, (-1, 2))))

    @property
    def outcome(self) -> str:
        """What is private, as rules have it."""
        if self.classes is not None:
            return LABELS
        return ONE if isinstance(self.output, str) else SEVERAL

    @property
    def title(self) -> str:
        """The outputs in words."""
        return ", ".join(self.outputs)

    @property
    def headline(self) -> str:
        """What a release is called before somebody gives it a headline."""
        return f"{self.title[:1].upper()}{self.title[1:]} by {', '.join(self.inputs)}"

    @property
    def is_plain(self) -> bool:
        """Whether outputs are single numbers between bounds, one row per person, at numbers."""
        plain = self.outcome == ONE and not self.is_count
        return plain and not (self.kinds or self.groups or self.max_change)

    @property
    def is_count(self) -> bool:
        """Whether the output is a count."""
        return BY_LIKELIHOOD[self.likelihood].has_rate

    def with_bounds(self, bounds: Sequence[float]) -> Self:
        """The same with these bounds of its output."""
        return type(self)(**{**self.model_dump(), "bounds": bounds})

    def path(self, settings: Settings) -> Path:
        return settings.tables / self.table

    def digests(self, settings: Settings) -> tuple[str, str]:
        """SHA-256 of the table's lines, whatever their order and their ends, and of its bytes, which
        earlier versions kept."""
        content = self.path(settings).read_bytes()
        lines = sorted(line for line in content.removeprefix(BOM_UTF8).splitlines() if line)
        return hashlib.sha256(b"\n".join(lines)).hexdigest(), hashlib.sha256(content).hexdigest()

    @classmethod
    def from_store(cls, kept: Mapping[str, object]) -> Self:
        """As it was registered; earlier versions took inputs without bounds for public ones."""
        public = () if kept.get("x_bounds") else kept["inputs"]
        return cls(**{"public_inputs": public, **kept})

    @property
    def payer(self) -> str:
        """The account of the ledger that its releases are charged to."""
        return self.account or self.name

    def public_part(self, *, names: bool) -> dict[str, object]:
        """What everybody with a key for it may know: all but where the table lies and, without
        ``names``, the name of the dataset whose budget it shares."""
        hidden = {"table"} if names else {"table", "account"}
        return dict(self.model_dump(mode="json", exclude=hidden, exclude_none=True))

    @property
    def columns(self) -> ColumnKinds | None:
        """What inputs are, in their order, as an estimator has it. Private ones are all declared."""
        said = dict(each.said() for each in self.kinds)
        private = said and self.x_bounds is not None
        return in_order(said, self.inputs) if private else said or None

    @property
    def domain(self) -> Any:
        """Bounds of private inputs, as an estimator has them: by name where they are not all numbers."""
        if self.x_bounds is None or not self.kinds:
            return self.x_bounds
        return dict(zip(self.names_with_bounds, self.x_bounds, strict=True))

    @property
    def names_with_bounds(self) -> list[str]:
        """The inputs that have bounds where they are private: levels and angles have none."""
        free = {n for each in self.kinds if not KINDS[each.kind].bounded for n in each.columns}
        return [name for name in self.inputs if name not in free]

    def model(self, asked: PlanAsked) -> Published:
        """The estimator for a plan, without a ledger."""
        given = {
            **{each.name: getattr(self, each.name) for each in TABLE if each.served == "dataset"},
            **{each.name: getattr(asked, each.name) for each in TABLE if each.served == "plan"},
            "x_bounds": self.domain,
            "columns": self.columns,
            "y_bounds": self.bounds,
            "classes": class_texts(self.classes or ()),
        }
        return estimator_of(LEARNED_BY[self.outcome], given)

    def usual_model(self) -> Published:
        """The estimator that would spend the whole budget."""
        return self.model(PlanAsked(epsilon=self.epsilon, delta=self.delta))

    def all_columns(self, model: Published, path: Path) -> tuple[Any, dict[str, object], Any]:
        """What ``fit`` of a model takes: inputs, people and exposures by name, and outputs. What is wrong
        with any of it is never told."""
        with tables.hide_problems():
            t = open_table(str(path), self.inputs, self.outputs, self.groups, None, self.exposure)
            beside = Aside(t.exposure)
            X, y, people, over = columns_to_fit(model, t.inputs, t.output, t.groups, beside)
        return X, _arguments(people, over.exposure), y

    def public_columns(self, model: Published, path: Path) -> tuple[Any, dict[str, object]]:
        """What ``plan`` of a model takes: inputs, or the number of records where inputs are private, and
        people and exposures by name."""
        with tables.hide_problems():
            t = open_table(str(path), self.inputs, None, self.groups, None, self.exposure)
            X, people, over = columns_to_plan(model, t.inputs, t.groups, Aside(t.exposure))
        return X, _arguments(people, over.exposure)

    def public_rows(self, path: Path) -> Array | None:
        """Where the kernel has public rows, by which a table is recognised; None where inputs are
        private, and where a custodian stated that the people are others."""
        if self.x_bounds is not None or self.unrelated:
            return None
        model = self.usual_model()
        X, _ = self.public_columns(model, path)
        with tables.hide_problems():
            return rows_to_plan(model, X)[1]

    def check(self, settings: Settings) -> None:
        """Refuse a table that no release could be made of."""
        path = self.path(settings)
        if not path.is_file() or path.is_symlink():
            raise Refused(422, "There is no such table in the server's folder.")
        tables.check_table(path, settings)
        with explain(ValueError):
            model = self.usual_model()
            for one in model._alone() if self.outcome == SEVERAL else (model,):
                asked = one if self.x_bounds is None else records_to_plan(one)
                private = domain_of(asked)
                asked._question(len(self.inputs if private is None else domain(private)))
        self.all_columns(model, path)


def _arguments(people: object, exposure: object) -> dict[str, object]:
    """Arguments of ``fit`` that are given."""
    return {"groups": people, **({} if exposure is None else {"exposure": exposure})}


class PlanAsked(PlanFields):  # type: ignore[misc]
    """``compare``: further epsilons to tell the error of."""

    compare: Annotated[
        tuple[Annotated[float, Field(gt=0, le=1000)], ...], Field(max_length=MOST_COMPARED)
    ] = ()


class ReleaseAsked(Asked):
    """The plan to carry out."""

    plan: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$", examples=["0f3c" * 8])]


class PredictAsked(Asked):
    """``interval``: whether intervals of this coverage are wanted, which double the time."""

    points: Annotated[
        list[Annotated[list[Cell], Field(min_length=1, max_length=MOST_INPUTS)]],
        Field(min_length=1, examples=[[[30.0], [45.0]]]),
    ]
    coverage: Annotated[float, Field(gt=0, lt=1)] = 0.9
    interval: bool = True


class KeyAsked(Asked):
    """A key. ``name``: of the person who has it; ``days``: until it expires; none: it is valid until it is revoked. ``identity``: who signs in
    with it at the OpenID Connect provider."""

    name: Annotated[str, Field(min_length=1, max_length=100, pattern=r"^\w[^\x00-\x1f\x7f]*$")]
    role: Literal["custodian", "analyst"]
    datasets: Annotated[tuple[Name, ...], Field(max_length=1000)] = ()
    days: Annotated[int, Field(ge=1, le=3660)] | None = None
    identity: Annotated[Line, Field(max_length=200, examples=["clara@hospital.example"])] = ""


class Title(Asked):
    """A headline of a release, which states the finding, and the unit of its outcome."""

    headline: Line = ""
    unit: Annotated[Line, Field(max_length=40)] = ""
