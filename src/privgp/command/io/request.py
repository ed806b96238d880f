"""What every command that plans a release is asked, checked before any table is read."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self, cast

import numpy as np
import polars as pl

from privgp.command.errors import Failure, Refusal, plural, refusal, refuse_on
from privgp.command.io.axes import read_ranges, read_targets
from privgp.command.io.columns import (
    check_decimals,
    output_column,
    output_columns,
    outputs,
    private_columns,
    private_table,
    refuse_questions,
    whole_rows,
)
from privgp.command.io.files import address_of, is_many, open_own, suffix_of
from privgp.command.io.kernel_text import read_kernel
from privgp.command.io.kinds import (
    bounds_by_name,
    columns_from_options,
    kinds_of,
    levels_of,
    split_names,
)
from privgp.command.options import PASSED, ReleaseOptions
from privgp.models.classifier import PrivateGPClassifier
from privgp.models.density import PrivateGPDensity
from privgp.models.load import estimator_for
from privgp.models.published import MISSING, Published
from privgp.models.regressor import PrivateGPRegressor
from privgp.models.rows.database import open_table as open_rows
from privgp.models.rows.files import FileInputs, Table
from privgp.models.rows.fit import domain as checked_domain
from privgp.models.rows.planned import with_column_names
from privgp.models.rows.tables import in_order
from privgp.plan.inputs.arguments import (
    are_several,
    check_bounds,
    check_output_shares,
    output_bounds,
)
from privgp.plan.inputs.inputs import Inputs
from privgp.plan.labels import check_classes
from privgp.plan.parameters import Parameters
from privgp.plan.plan import Plan, load_plan
from privgp.plan.wording import bounds_advice, budget_advice
from privgp.privacy.budget import check_budget
from privgp.question.parameters import check_values, names_of
from privgp.question.rules import LABELS, ONE, SEVERAL, check_column_roles, check_rules
from privgp.tables.cells import TEXTS, Kinds, identifiers, input_columns, null_words
from privgp.tables.parser import list_names
from privgp.tables.source import Form, Source, check_columns, load, open_many, open_source
from privgp.types import Array
from privgp.vault.labels import class_texts
from privgp.vault.tables import complete_rows
from privgp.vault.validate import person_ids

TOO_EXTREME = (
    "The plan could not be computed: the numbers are too large or too small, so choose other units "
    "for the inputs, the bounds or the kernel."
)
DROP_CHOICE = (
    "fill it in, or give --missing drop, which leaves out such rows and makes public which they are"
)
# The same whether there are such rows or not: how many rows a person has may be private.
LEFT_OUT = "Rows in which a value is missing are left out; their number is not shown, as records are private."
OF_POINTS = ("epsilon", "delta", "hyperparameters", "mechanism")  # what a density is asked
BESIDE = ("groups", "exposure", "shares")  # what rules ask for besides
ASIDE = {"exposure": "exposure", "weights": "sample_weight"}  # options, and the arguments they are


@dataclass(frozen=True, kw_only=True)
class Described(ReleaseOptions):
    """What is asked of which table. ``plan``: a saved one, of ``plan_path``, instead of options;
    ``about_missing``, ``about_labels``: what may be done about missing values, and about outputs that
    are labels; ``left_out``: what there is to say about rows that are, once the table is read."""

    hides_inputs: ClassVar[str] = "--protect records"  # the option that does
    data: Path
    output: str | None
    seed: int | None = None
    account: Any = None
    scheduler: str | None = None
    plan: Any = None
    plan_path: Path | None = None
    about_missing: str = DROP_CHOICE
    about_labels: str = ""
    left_out: list[str] = field(default_factory=list, compare=False)

    @property
    def y_bounds(self) -> Any:
        """The bounds of the output, or of every one of several."""
        if not self.further_bounds:
            return self.bounds
        return (self.bounds, *read_ranges(self.further_bounds, None, "--bounds"))

    @property
    def output_names(self) -> list[str]:
        """The private columns: one, unless there are bounds for several."""
        if self.output is None or not are_several(self.y_bounds):
            return [] if self.output is None else [self.output]
        return split_names(self.output, "--output")

    @property
    def outcome(self) -> str:
        """What is private, as rules have it."""
        if self.classes is not None:
            return LABELS
        return SEVERAL if are_several(self.y_bounds) else ONE

    @property
    def class_names(self) -> list[str] | None:
        """The declared classes, written as labels of a table are; None where outputs are numbers."""
        if self.classes is None:
            return None
        return class_texts(self.classes.split(","))

    def read_shares(self) -> tuple[float, ...] | None:
        if self.shares is None:
            return None
        wrong = (
            f"--shares must be {len(self.y_bounds)} positive numbers, one per output, such as 2,1."
        )
        with refuse_on(wrong, ValueError):
            return check_output_shares(
                [float(s) for s in self.shares.split(",")], len(self.y_bounds)
            )

    @property
    def input_names(self) -> list[str]:
        return split_names(self.inputs)

    @property
    def columns(self) -> Any:
        """What inputs are, as ``columns`` of a model has it."""
        said = self.dates, self.categories, self.places, self.periodic, self.booleans
        columns = columns_from_options(self.input_names, *said, self.crs, self.numbers)
        if columns is None or not self.inputs_are_private:
            return columns
        return in_order(columns, self.input_names)

    @property
    def kinds(self) -> Kinds | None:
        """What inputs are by their names; the others are inferred."""
        return kinds_of(self.columns)

    @property
    def levels(self) -> dict[str, list[str]]:
        """The declared levels of categories, by their names."""
        return levels_of(self.columns)

    @property
    def inputs_are_private(self) -> bool:
        return self.protect == "records"

    def private_inputs(self) -> Inputs | None:
        """What was declared of private inputs; None where they are numbers, or public."""
        if self.columns is None or not self.inputs_are_private:
            return None
        with refuse_questions():
            return Inputs.private(self.columns, self.domain())

    def domain(self) -> Any:
        """Declared bounds of private inputs: a pair for each, by their names if they are not all numbers."""
        if not self.inputs_are_private:
            return None
        if self.kinds:
            return bounds_by_name(self.x_bounds or (), self.kinds)
        if not self.x_bounds:
            raise Refusal(
                f"{self.hides_inputs} needs --x-bounds LO HI, once per input: bounds that the private "
                "inputs are known to lie in, chosen without looking at them."
            )
        with refuse_questions():
            return checked_domain(read_ranges(self.x_bounds, self.input_names, "--x-bounds"))

    @property
    def address(self) -> str | None:
        """The address of a table in a database; None for files."""
        return address_of(self.data)

    @property
    def is_many(self) -> bool:
        """Whether the table is a folder or a pattern, of any number of files."""
        return is_many(self.data)

    @property
    def is_written_otherwise(self) -> bool:
        """Whether a CSV file is said to be written otherwise than usual."""
        said = self.encoding, self.date_format
        return self.delimiter not in (None, ",") or bool(self.decimal_comma) or any(said)

    @property
    def public_names(self) -> list[str]:
        """The columns that a plan may load."""
        names = self.input_names
        return names if self.groups in (None, *names) else [*names, str(self.groups)]

    @property
    def table_assumptions(self) -> tuple[str, ...]:
        """What the promise assumes of how the table was read."""
        return (MISSING,) if self.missing == "drop" else ()


@dataclass(frozen=True, kw_only=True)
class Readable(Described):
    """The columns that were asked for, read from the table."""

    @property
    def in_parts(self) -> bool:
        """Whether the table is read in parts, never in memory as a whole: numbers of one column at public
        inputs, in several files; in one only where all inputs are numbers, written as plain numbers. A table in a
        database always is."""
        if self.address is not None:
            return True
        several = self.classes is not None or are_several(self.y_bounds)
        if several or self.likelihood != "gaussian" or self.inputs_are_private:
            return False
        if self.missing == "drop" or self.is_many or self.inducing is None or self.kinds:
            return self.is_many and self.missing != "drop"
        plain = suffix_of(self.data) == ".csv" and self.source.is_plain
        return plain or not self.source.is_csv

    def table(self, output: str | None) -> Table:
        """The table in files, whose private cells are checked."""
        with public_computation():
            table = open_rows(
                self.address or str(self.data),
                self.input_names,
                None if output is None else self.output_names,
                self.groups,
                self.columns,
                None if self.address is None else self.exposure,
            )
            table.check_output()
        return table

    @cached_property
    def source(self) -> Source:
        """The table, opened once: all columns are read of the same files. Public cells are looked at if
        they must show how numbers are written."""
        if self.is_many:
            return open_many(self.data)
        public = [] if self.inputs_are_private else self.public_names
        texts = tuple(name for name, kind in (self.kinds or {}).items() if kind in TEXTS)
        how = self.delimiter, self.decimal_comma, self.encoding, self.date_format
        return open_source(self.data, Form(*how, texts), public)

    def exposures(self) -> dict[str, Array]:
        """The public exposures and weights of rows for ``plan`` and ``fit``, if columns of them are named."""
        found: dict[str, Array] = {}
        for option, argument in ASIDE.items():
            name = getattr(self, option)
            if name is not None and self.address is None:
                frame = self._load_columns([name])
                read = input_columns(frame, [name], self.source)
                found[argument] = read.to_numpy()[:, 0].astype(np.float64)
        return found

    def _load_columns(self, wanted: list[str]) -> pl.DataFrame:
        """These columns, every line checked; without the rows where one that is used has no value, if
        these are to be left out."""
        source = self.source
        if self.missing == "refuse":
            return load(source, wanted)
        aside = [getattr(self, option) for option in ASIDE]
        used = dict.fromkeys([*wanted, *self.public_names, *aside, *self.output_names])
        names = [name for name in used if name in wanted or name in source.names]
        frame = load(source, names)
        kept = whole_rows(frame, self.levels)
        if kept.height == 0:
            raise Refusal(f"Every row of '{source.path}' has a missing value.")
        if self.inputs_are_private:
            self.left_out[:] = [LEFT_OUT]
            return kept.select(wanted)
        levels = self.levels
        words = null_words(frame, kept, [n for n in self.input_names if n not in levels])
        self.left_out[:] = _left_out(frame.height, kept.height, words)
        return kept.select(wanted)

    def public_columns(self) -> tuple[pl.DataFrame, Any]:
        """The inputs and, if asked for, person identifiers; the output column is never read."""
        return self._inputs_and_people(self._load_columns(self.public_names))

    def public_rows(self) -> tuple[pl.DataFrame | FileInputs | int, Any]:
        """All that a plan needs: as above, in parts if asked for, or the number of private records."""
        if self.inputs_are_private:
            check_columns(self.source, self.input_names)
            rows = self.source.files.rows
            if self.missing != "refuse":
                rows = self._load_columns(self.input_names).height
            if self.groups is None:
                return rows, None
            return rows, self._people(self._load_columns([self.groups]))
        if self.in_parts:
            table = self.table(None)
            return table.inputs, table.groups
        return self.public_columns()

    def all_columns(self, output: str) -> tuple[pl.DataFrame, Any, Any]:
        """Inputs, person identifiers and outputs, every line of the table checked."""
        several = are_several(self.y_bounds)
        names = self.output_names if several else [output]
        source = self.source
        if not several:
            self._check_one_output()
        frame = self._load_columns([*self.public_names, *names])
        if self.classes is None:
            check_decimals(source)
        X, people = self._inputs_and_people(frame)
        if several:
            return X, people, output_columns(frame, names, source)
        if self.classes is not None:
            return X, people, outputs(frame, output, source, "classes")
        return X, people, output_column(frame, output, source, self.about_labels)

    def _check_one_output(self) -> None:
        """Refuse the names of several columns where there is one output."""
        names, there = (self.output or "").split(","), self.source.names
        if self.output in there or not {*names} <= {*there} or len(names) < 2:
            return
        declared = "bounds" if self.classes is None else "classes"
        raise Refusal(
            f"--output names {len(names)} columns, but there are {declared} for one output."
        )

    def _inputs_and_people(self, frame: pl.DataFrame) -> tuple[pl.DataFrame, Any]:
        declared, source = self.private_inputs(), self.source
        if declared is not None:
            X = private_table(frame, declared, source)
        elif self.inputs_are_private:
            X = private_columns(frame, self.input_names, source)
        else:
            names = self.input_names
            X = input_columns(frame, names, source, kinds=self.kinds, choice=self.about_missing)
        return X, self._people(frame)

    def _people(self, frame: pl.DataFrame) -> Any:
        """Person identifiers; with private records one sentence says whatever is wrong with them."""
        if self.groups is None:
            return None
        if not self.inputs_are_private:
            return identifiers(frame, self.groups, self.source)
        sentence = f"Column '{self.groups}' of '{self.data}' must name a person in every row."
        with refuse_on(sentence, ValueError):
            found = identifiers(frame, self.groups, self.source)
            person_ids(found, len(found))
            return found


@dataclass(frozen=True, kw_only=True)
class Request(Readable):
    """What is asked of which table, checked, and the model that answers. ``elsewhere``: what options do
    not say here, in words."""

    elsewhere: ClassVar[Mapping[str, str]] = {}

    def title(self, name: str | None, units: str | None) -> tuple[str | None, str | None]:
        """What pictures call the output, and its units; None where that is not known."""
        return name, units

    def check_output(self) -> None:
        """Refuse a release without an output."""
        if self.output is None:
            raise Refusal("Missing option '--output': give it, or --density for points.")

    def check(self) -> None:
        """Refuse what is wrong whatever the file holds."""
        if self.classes is None and self.bounds is None:
            raise Refusal("Missing option '--bounds': give it, or --classes for labels.")
        given = {name: getattr(self, name) for name in (*PASSED, *BESIDE)}
        names = self.input_names, self.output_names
        with refuse_questions(**self.elsewhere):
            check_budget(self.epsilon, self.delta, pure=self.mechanism != "gaussian")
            check_values(given)
            bounds = {"x_bounds": self.x_bounds or None, "y_bounds": self.bounds}
            check_rules({**given, **bounds}, self.outcome)
            roles = self.groups, self.exposure, self.weights
            check_column_roles(*names, *roles, private=self.inputs_are_private)
            for pair in output_bounds(self.y_bounds) if are_several(self.y_bounds) else ():
                check_bounds("--bounds", pair)
            if self.outcome == ONE:
                check_bounds("--bounds", self.bounds)
        for name in ("output", "groups", *ASIDE):
            if getattr(self, name) == "":
                raise Refusal(f"--{name} must name a column.")
        self._check_classes()
        self._check_several()
        if self.inputs_are_private:
            declared = self.private_inputs()
            with refuse_questions():
                checked_domain(self.domain() if declared is None else declared.domain)
            if self.date_format is not None:
                raise Refusal(
                    "--date-format is for public dates: private ones must be in ISO 8601."
                )
        if self.scheduler is not None and "://" not in self.scheduler:
            raise Refusal("--scheduler must be an address such as tcp://host:8786.")
        if self.address is not None and (self.missing == "drop" or self.is_written_otherwise):
            raise Refusal(
                "A table in a database is taken as it is: make a view of it in the place of --missing drop, "
                "--delimiter, --encoding, --date-format or --decimal-comma."
            )
        if self.is_many and self.is_written_otherwise:
            raise Refusal(
                "Several CSV files must have commas between their fields: join them into one for "
                "--delimiter, --encoding, --date-format or --decimal-comma."
            )

    def _check_several(self) -> None:
        """Refuse bounds, shares and a plan that are for other outputs."""
        if not are_several(self.y_bounds):
            return
        bounds, names = len(self.y_bounds), len(self.output_names)
        if self.output is not None and bounds != names:
            raise Refusal(
                f"--bounds is given for {bounds} outputs, but --output names {plural(names, 'column')}."
            )
        planned = getattr(self.plan, "output_names", None)
        if planned is not None and [*planned] != self.output_names:
            raise Refusal(
                f"'{self.plan_path}' is for the outputs {','.join(planned)}, in this order."
            )
        self.read_shares()

    def _check_classes(self) -> None:
        """Refuse classes that are none."""
        if self.class_names is None:
            return
        with refuse_questions():
            check_classes(self.class_names)
        if not all(self.class_names):
            raise Refusal("--classes must be labels separated by commas, such as yes,no.")
        if self.missing == "drop" and not complete_rows([self.class_names]).all():
            raise Refusal(
                "--missing drop takes the labels na, n/a, #n/a, nan, null, none, -, --, ? and . for "
                "missing ones: write the class otherwise."
            )

    def model(self) -> Published:
        """The model that was asked for; reads the kernel and the targets."""
        given: dict[str, Any] = {
            "kernel": None if self.kernel is None else read_kernel(self.kernel),
            "x_bounds": self.domain(),
            "targets": None
            if self.targets is None
            else read_targets(self.targets, self.input_names, kinds=self.kinds),
            "columns": self.columns,
            "ledger": self.account,
            "random_state": self.seed,
            "engine": self.scheduler,
            "y_bounds": self.y_bounds,
            "shares": self.read_shares(),
            "classes": self.class_names,
            **{name: getattr(self, name) for name in PASSED},
        }
        kind = PrivateGPRegressor if self.classes is None else PrivateGPClassifier
        made = kind(**{name: given[name] for name in names_of(kind.__name__)})
        made._noted = self.table_assumptions
        return made

    def with_column_names(self, plan: Any) -> Any:
        """The plan with the names of its columns."""
        named = self.groups, self.exposure, self.weights
        made = with_column_names(plan, tuple(self.input_names), *named)
        several = are_several(self.y_bounds) and self.output is not None
        return replace(cast(Any, made), output_names=tuple(self.output_names)) if several else made


@dataclass(frozen=True, kw_only=True)
class KnownRequest(Request):
    """What a plan or a release was made for, in the place of options. ``known``: its parameters."""

    known: Parameters

    @staticmethod
    def said(known: Parameters, path: Path, advice: str) -> dict[str, Any]:
        """What options would say. ``advice``: what to do about a file that is for labels of numbers."""
        labels = known.labels()
        if labels is not None and labels != list(known.arguments()["classes"]):
            raise Refusal(f"'{path}' is for labels that are numbers: {advice}.")
        return {
            "known": known,
            "bounds": None if labels else np.ravel(known.y_bounds)[:2].tolist(),
            "classes": None if labels is None else ",".join(labels),
            "protect": known.protect,
            "likelihood": known.likelihood,
        }

    @property
    def y_bounds(self) -> Any:
        return self.known.y_bounds

    @property
    def class_names(self) -> list[str] | None:
        return self.known.labels()

    @property
    def columns(self) -> Any:
        return self.known.columns

    def domain(self) -> Any:
        return self.known.x_bounds


@dataclass(frozen=True, kw_only=True)
class PlannedRequest(KnownRequest):
    """What a saved plan was made for."""

    @classmethod
    def of(cls, path: Path, plan: Plan, **given: Any) -> Self:
        """``given``: what the plan does not say, such as the table and how it is written."""
        made: Any = plan.made_for
        asked = made.parameters
        if made.names is None or (plan.strategy.people is not None and made.groups is None):
            raise Refusal(f"'{path}' does not name the columns it is for: make it by privgp plan.")
        inducing = asked.inducing if asked.inducing is None else int(np.size(asked.inducing))
        same = ("epsilon", "delta", "mechanism", "max_change")
        return cls(
            plan=plan, plan_path=path, inputs=",".join(made.names), groups=made.groups,
            exposure=made.exposure, weights=made.weights, inducing=inducing, **{name: getattr(asked, name) for name in same},
            **cls.said(asked, path, "make it by privgp plan"), **given,
        )  # fmt: skip

    @property
    def input_names(self) -> list[str]:
        return [*self.plan.made_for.names]

    def model(self) -> Any:
        made = estimator_for(self.known)
        made._noted = self.table_assumptions
        given = {"random_state": self.seed, "ledger": self.account, "engine": self.scheduler}
        known = made.get_params(deep=False)
        return made.set_params(**{name: each for name, each in given.items() if name in known})


@dataclass(frozen=True, kw_only=True)
class OfPoints(Request):
    """What is asked where a density of private points is released. Points have no output."""

    hides_inputs: ClassVar[str] = "--density"

    @property
    def inputs_are_private(self) -> bool:
        return True

    @property
    def output_names(self) -> list[str]:
        return []

    def title(self, name: str | None, units: str | None) -> tuple[str | None, str | None]:
        return name or "points", units or "per unit"

    def check_output(self) -> None:
        """Points have none."""
        if self.output is not None:
            raise Refusal("--output does not go with a density: leave it out.")

    def check(self) -> None:
        with refuse_questions():
            check_budget(self.epsilon, self.delta, pure=True)
            check_column_roles(self.input_names, [])
            check_values({name: getattr(self, name) for name in OF_POINTS})
            declared = self.private_inputs()
            checked_domain(self.domain() if declared is None else declared.domain)

    def all_columns(self, output: str) -> tuple[pl.DataFrame, Any, Any]:
        """The points alone."""
        return (*self._inputs_and_people(self._load_columns(self.public_names)), None)

    def model(self) -> Published:
        made = PrivateGPDensity(
            kernel=None if self.kernel is None else read_kernel(self.kernel),
            x_bounds=self.domain(), columns=self.columns, ledger=self.account,
            random_state=self.seed, **{name: getattr(self, name) for name in OF_POINTS},
        )  # fmt: skip
        made._noted = self.table_assumptions
        return made


@dataclass(frozen=True, kw_only=True)
class PlannedPoints(OfPoints, PlannedRequest):
    """What a saved plan of a density was made for."""

    def model(self) -> Published:
        return PlannedRequest.model(self)  # type: ignore[no-any-return]


# What plans of these estimators ask for; all others ask for outputs.
PLANNED = {"PrivateGPDensity": PlannedPoints}


def request_of_plan(path: Path, **given: Any) -> PlannedRequest:
    """What a saved plan was made for. ``given``: what the plan does not say, such as the table."""
    plan = open_own(path, load_plan)
    assert plan.made_for is not None
    kind = PLANNED.get(plan.made_for.parameters.estimator, PlannedRequest)
    return kind.of(path, plan, **given)


def _left_out(rows: int, kept: int, words: Mapping[str, list[str]]) -> list[str]:
    """How many rows are left out, and what was taken for no value in public columns."""
    if kept == rows:
        return []
    told = [f"{rows - kept:,} of {plural(rows, 'row')} are left out: a value is missing."]
    for name, found in words.items():
        told.append(
            f"{list_names(found)} in column '{name}' {'counts' if len(found) == 1 else 'count'} as missing: "
            f"if this is a level, list all levels, such as --categories '{name}={found[0]}|other'."
        )
    return told


def make_plan(
    model: Published,
    X: pl.DataFrame | FileInputs | int,
    people: Any,
    exposures: Mapping[str, Array] | None = None,
) -> Plan:
    """The model's plan, from inputs in memory or in a file, or from the number of private records."""
    if model.protect == "records" and isinstance(X, pl.DataFrame):
        X = X.height
    with public_computation():
        plan: Plan = model.plan(X, groups=people, **(exposures or {}))
        if not np.all(np.isfinite(plan.starting_error)):
            raise ArithmeticError
    return plan


def plan_warnings(plan: Plan) -> list[str]:
    """Warnings about the budget and the bounds of a plan."""
    assert plan.made_for is not None
    bounds = [str(refusal(ValueError(each))) for each in bounds_advice(plan.made_for.parameters)]
    return [*budget_advice(plan), *bounds]


@contextmanager
def public_computation(**options: str) -> Iterator[None]:
    """Pass on, in one sentence, what a computation without private values refuses. ``options``:
    those of this command whose names differ from the usual ones."""
    try:
        with np.errstate(all="ignore"):
            yield
    except (np.linalg.LinAlgError, ArithmeticError):
        raise Failure(TOO_EXTREME) from None
    except (ValueError, NotImplementedError) as problem:
        if "not finite" in str(problem):  # the inputs are, so it is what was computed from them
            raise Failure(TOO_EXTREME) from None
        raise refusal(problem, **options) from None
