"""What every command that plans a release is asked, checked before any table is read."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import polars as pl

from privgp.command.errors import Failure, Refusal, plural, refusal, refuse_on
from privgp.command.io.axes import read_targets
from privgp.command.io.columns import (
    check_decimals,
    output_column,
    private_columns,
    private_table,
    refuse_questions,
    whole_rows,
)
from privgp.command.io.declared import Described, Domain, Private
from privgp.command.io.files import open_own, suffix_of
from privgp.command.io.kernel_text import read_kernel
from privgp.command.options import PASSED
from privgp.models.load import estimator_for, estimator_of
from privgp.models.published import Published
from privgp.models.rows.database import open_table as open_rows
from privgp.models.rows.files import FileInputs, Groups, Table
from privgp.models.rows.fit import domain as checked_domain
from privgp.models.rows.fit import with_column_names
from privgp.plan.inputs.inputs import Inputs
from privgp.plan.parameters import MadeFor, Parameters, bounds_advice
from privgp.plan.plan import Plan, budget_advice, load_plan, output_columns
from privgp.privacy.budget import check_budget
from privgp.question.outcomes import BY_LIKELIHOOD, POINTS, Label, Presence
from privgp.question.parameters import check_values
from privgp.question.rules import GIVEN, check_column_roles
from privgp.tables.cells import TEXTS, identifiers, input_columns, null_words
from privgp.tables.kinds import LATITUDES, LONGITUDES, ColumnKinds
from privgp.tables.parser import list_names
from privgp.tables.source import Form, Source, check_columns, load, open_many, open_source
from privgp.types import Array, Cells, UserData
from privgp.vault.validate import person_ids

TOO_EXTREME = (
    "The plan could not be computed: the numbers are too large or too small, so choose other units "
    "for the inputs, the bounds or the kernel."
)
# The same whether there are such rows or not: how many rows a person has may be private.
LEFT_OUT = "Rows in which a value is missing are left out; their number is not shown, as records are private."
BESIDE = ("groups", "exposure", "shares")  # what rules ask for besides
People = Cells | Groups | None  # whose rows they are
ASIDE = {"exposure": "exposure", "weights": "sample_weight"}  # options, and the arguments they are


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
        rates = BY_LIKELIHOOD[self.likelihood].has_rate
        outcome = self.outcome
        numbers = outcome.is_numeric and not outcome.is_several
        if rates or self.inputs_are_private or not numbers:
            return False
        if self.missing == "drop" or self.is_many or self.inducing is None or self.kinds:
            return self.is_many and self.missing != "drop"
        plain = suffix_of(self.data) == ".csv" and self.source.is_plain
        return plain or not self.source.is_csv

    def table(self, *, private: bool) -> Table:
        """The table in files; its ``private`` cells too, which are checked."""
        with public_computation():
            table = open_rows(
                self.address or str(self.data),
                self.input_names,
                self.output_names if private else None,
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
            if name is not None and self.address is None and not self.inputs_are_private:
                frame = self._load_columns([name])
                read = input_columns(frame, [name], self.source)
                found[argument] = read.to_numpy()[:, 0].astype(np.float64)
        return found

    def private_weights(self) -> Array | None:
        """The weights of private records, read by the vault, if a column of them is named."""
        if self.weights is None or not self.inputs_are_private:
            return None
        return output_column(self._load_columns([self.weights]), self.weights, self.source)

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
        self.left_out[:] = _omission_lines(frame.height, kept.height, words)
        return kept.select(wanted)

    def public_columns(self) -> tuple[pl.DataFrame, Cells | None]:
        """The inputs and, if asked for, person identifiers; the output column is never read."""
        return self._inputs_and_people(self._load_columns(self.public_names))

    def public_rows(self) -> tuple[pl.DataFrame | FileInputs | int, People]:
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
            table = self.table(private=False)
            return table.inputs, table.groups
        return self.public_columns()

    def all_columns(self) -> tuple[pl.DataFrame, Cells | None, UserData]:
        """Inputs, person identifiers and outputs, every line of the table checked."""
        names, source = self.output_names, self.source
        self._check_one_output()
        frame = self._load_columns([*self.public_names, *names])
        if self.outcome.is_numeric:
            check_decimals(source)
        X, people = self._inputs_and_people(frame)
        return X, people, self.outcome.private_values(frame, names, source, self.about_labels)

    def _check_one_output(self) -> None:
        """Refuse the names of several columns where there is one output."""
        if len(self.output_names) != 1:
            return
        names, there = self.output_names[0].split(","), self.source.names
        if self.output in there or not {*names} <= {*there} or len(names) < 2:
            return
        declared = "classes" if self.outcome.classes else "bounds"
        raise Refusal(
            f"--output names {len(names)} columns, but there are {declared} for one output."
        )

    def _inputs_and_people(self, frame: pl.DataFrame) -> tuple[pl.DataFrame, Cells | None]:
        declared, source = self.private_inputs(), self.source
        if declared is not None:
            X = private_table(frame, declared, source)
        elif self.inputs_are_private:
            X = private_columns(frame, self.input_names, source)
        else:
            names = self.input_names
            X = input_columns(frame, names, source, kinds=self.kinds, choice=self.about_missing)
        return X, self._people(frame)

    def _people(self, frame: pl.DataFrame) -> Cells | None:
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

    def check(self) -> None:
        """Refuse what is wrong whatever the file holds."""
        outcome = self.outcome
        given = {name: getattr(self, name) for name in (*PASSED, *BESIDE)}
        names = self.input_names, self.output_names
        with refuse_questions(**self.elsewhere):
            check_budget(self.epsilon, self.delta, pure=self.mechanism != "gaussian")
            check_values(given)
            bounds = {"x_bounds": self.x_bounds or None, "y_bounds": self.bounds}
            if self.weights is not None and self.inputs_are_private and self.max_weight is None:
                given["sample_weight"] = GIVEN
            outcome.check_rules({**given, **bounds})
            roles = self.groups, self.exposure, self.weights
            check_column_roles(*names, *roles, private=self.inputs_are_private)
        for name in ("output", "groups", *ASIDE):
            if getattr(self, name) == "":
                raise Refusal(f"--{name} must name a column.")
        outcome.check(self.output_names, self.missing)
        planned = [] if self.plan is None else output_columns(self.plan)
        if planned and planned != self.output_names:
            order = ", in this order" if len(planned) > 1 else ""
            raise Refusal(f"'{self.plan_path}' is for --output {','.join(planned)}{order}.")
        if self.inputs_are_private:
            declared = self.private_inputs()
            with refuse_questions():
                checked_domain(self.domain() if declared is None else declared.domain)
            if self.date_format is not None:
                raise Refusal(
                    "--date-format is for public dates: write private ones as 2024-12-31 in the table."
                )
        if self.scheduler is not None and "://" not in self.scheduler:
            raise Refusal("--scheduler must be an address such as tcp://host:8786.")
        if self.address is not None and (self.missing == "drop" or self.is_written_otherwise):
            raise Refusal(
                "A table in a database is taken as it is: make a view of it instead of --missing drop, "
                "--delimiter, --encoding, --date-format or --decimal-comma."
            )
        if self.is_many and self.is_written_otherwise:
            raise Refusal(
                "Several CSV files must have commas between their fields: join them into one for "
                "--delimiter, --encoding, --date-format or --decimal-comma."
            )

    def model(self) -> Published:
        """The model that was asked for; reads the kernel and the targets."""
        given: dict[str, object] = {
            "kernel": None if self.kernel is None else read_kernel(self.kernel),
            "x_bounds": self.domain(),
            "targets": None
            if self.targets is None
            else read_targets(self.targets, self.input_names, kinds=self.kinds),
            "columns": self.columns,
            "ledger": self.charge.account,
            "random_state": self.charge.seed,
            "engine": self.scheduler,
            **self.outcome.arguments(),
            **{name: getattr(self, name) for name in PASSED},
        }
        made = estimator_of(self.outcome.estimator, given)
        made._noted = self.table_assumptions
        return made

    def with_column_names(self, plan: Plan) -> Plan:
        """The plan with the names of its columns."""
        names, several = tuple(self.output_names), len(self.output_names) > 1
        others = {"exposure": self.exposure, "weights": self.weights}
        others |= {"output": None if several or not names else names[0]}
        made = with_column_names(plan, tuple(self.input_names), self.groups, **others)
        return replace(made, output_names=names) if several else made


@dataclass(frozen=True, kw_only=True)
class KnownRequest(Request):
    """What a plan or a release was made for, instead of options.

    Attributes
    ----------
    known : Parameters
        What it was made with.
    names : tuple of str
        The input columns.
    kind : Private
        What is private in a row.

    """

    known: Parameters
    names: tuple[str, ...]
    kind: Private

    @staticmethod
    def said(known: Parameters, path: Path, advice: str) -> dict[str, Any]:
        """What options would say. ``advice``: what to do about a file that is for labels of numbers."""
        labels, density = known.labels(), known.estimator == POINTS
        if labels:
            kind = Private((Label(*labels),))
        else:
            kind = Private((Presence(),)) if density else Private.of_numbers(known.y_bounds)
        if labels and labels != list(known.arguments()["classes"]):
            raise Refusal(f"'{path}' is for labels that are numbers: {advice}.")
        said = {name: getattr(known, name) for name in ("protect", "likelihood")}
        return {"known": known, "kind": kind, "bounds": None, "density": density, **said}

    @property
    def outcome(self) -> Private:
        return self.kind

    @property
    def input_names(self) -> list[str]:
        return [*self.names]

    @property
    def columns(self) -> Inputs | ColumnKinds | None:
        return self.known.columns

    def domain(self) -> Domain:
        return self.known.x_bounds


@dataclass(frozen=True, kw_only=True)
class PlannedRequest(KnownRequest):
    """What a saved plan was made for."""

    @classmethod
    def of(cls, path: Path, **given: Any) -> Self:
        """``given``: what the plan does not say, such as the table and how it is written."""
        plan = open_own(path, load_plan)
        made = plan.made_for
        assert made is not None
        asked = made.parameters
        if made.names is None or (plan.strategy.people is not None and made.groups is None):
            raise Refusal(f"'{path}' does not name the columns it is for: make it by privgp plan.")
        inducing = asked.inducing if asked.inducing is None else int(np.size(asked.inducing))
        same = ("epsilon", "delta", "mechanism", "max_change")
        return cls(
            plan=plan, plan_path=path, inputs="", names=made.names, groups=made.groups,
            exposure=made.exposure, weights=made.weights, inducing=inducing, **{name: getattr(asked, name) for name in same},
            **cls.said(asked, path, "make it by privgp plan"), **given,
        )  # fmt: skip

    def model(self) -> Published:
        made = estimator_for(self.known)
        made._noted = self.table_assumptions
        charged = {"random_state": self.charge.seed, "ledger": self.charge.account}
        given = {**charged, "engine": self.scheduler}
        known = made.get_params(deep=False)
        made.set_params(**{name: each for name, each in given.items() if name in known})
        return made


def _omission_lines(rows: int, kept: int, words: Mapping[str, list[str]]) -> list[str]:
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
    people: People,
    exposures: Mapping[str, Array] | None = None,
) -> Plan:
    """The model's plan, from inputs in memory or in a file, or from the number of private records."""
    with public_computation():
        plan: Plan = model.plan(X, groups=people, **(exposures or {}))
        if not np.all(np.isfinite(plan.starting_error)):
            raise ArithmeticError
    return plan


PLACES = (
    "The inputs look like places, and this release does not protect them: if they are homes or other "
    "places of people, use --protect records with --x-bounds."
)


def plan_warnings(plan: Plan) -> list[str]:
    """Warnings about the budget and the bounds of a plan."""
    assert plan.made_for is not None
    bounds = [str(refusal(ValueError(each))) for each in bounds_advice(plan.made_for.parameters)]
    return [*budget_advice(plan), *bounds, *_places_advice(plan.made_for)]


def _places_advice(made_for: MadeFor) -> list[str]:
    """A sentence about public inputs that are places, or look like it."""
    asked, words = made_for.parameters, {name.strip().lower() for name in made_for.names or ()}
    kinds = () if asked.columns is None else asked.columns.columns
    declared = any(each.degrees(np.empty((0, each.name_count))) is not None for each in kinds)
    named = not any(map(words.isdisjoint, (LONGITUDES, LATITUDES)))
    return [PLACES] if asked.x_bounds is None and (declared or named) else []


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
