"""What a line declares of a table: what is private in a row, and what its inputs are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Self

import polars as pl

from privgp.command.errors import Refusal, plural, refuse_on
from privgp.command.io.axes import read_ranges
from privgp.command.io.columns import (
    PrivateValues,
    bounds_by_name,
    columns_from_options,
    kinds_of,
    levels_of,
    output_column,
    output_columns,
    outputs,
    refuse_questions,
    split_names,
)
from privgp.command.io.files import address_of, is_many
from privgp.command.options import Charge, ReleaseOptions
from privgp.models.published import MISSING
from privgp.models.rows.fit import domain as checked_domain
from privgp.models.rows.tables import in_order
from privgp.plan.inputs.inputs import Inputs
from privgp.plan.plan import Plan
from privgp.question.outcomes import Label, Number, Outcome, Presence, check_classes
from privgp.question.rules import (
    LABELS,
    ONE,
    SEVERAL,
    AnyBounds,
    are_several,
    check_bounds,
    check_output_shares,
    check_rules,
    output_bounds,
)
from privgp.tables.cells import Kinds
from privgp.tables.kinds import ColumnKinds
from privgp.tables.source import Source
from privgp.types import Pair
from privgp.vault.labels import class_texts
from privgp.vault.table import complete_rows

DROP_CHOICE = (
    "fill it in, or give --missing drop, which leaves out such rows and makes public which they are"
)
# Bounds of private inputs: a pair for all, one for each, or those of some by their names.
Domain = Pair | Sequence[Pair] | Mapping[str, tuple[str, str]] | None


@dataclass(frozen=True)
class Private:
    """What is private in a row: one declared outcome for each of its columns.

    Attributes
    ----------
    outcomes : tuple of Outcome
        Numbers between bounds, or one label; of a density, the presence of a record.
    shares : str, optional
        Of the budget, one for each outcome, as they were given.

    """

    outcomes: tuple[Outcome, ...]
    shares: str | None = None

    @classmethod
    def of_numbers(cls, bounds: AnyBounds, shares: str | None = None) -> Self:
        """One number between these bounds, or one for each of several pairs."""
        pairs = bounds if are_several(bounds) else (bounds,)
        return cls(tuple(Number(*pair) for pair in pairs), shares)

    @property
    def estimator(self) -> str:
        """The name of the class that learns it."""
        return self.outcomes[0].estimator

    @property
    def has_column(self) -> bool:
        """Whether anything but the inputs is private."""
        return self.outcomes[0].column

    @property
    def classes(self) -> tuple[str, ...] | None:
        """The declared classes of a label."""
        return getattr(self.outcomes[0], "classes", None)

    @property
    def bounds(self) -> list[Pair]:
        """The declared bounds of every number."""
        return [pair for outcome in self.outcomes for pair in outcome.bounds]

    @property
    def is_several(self) -> bool:
        """Whether several columns are private."""
        return len(self.outcomes) > 1

    @property
    def is_numeric(self) -> bool:
        """Whether cells are numbers."""
        return self.has_column and not self.classes

    def names(self, output: str | None) -> list[str]:
        """The private columns that --output names."""
        if output is None or not self.has_column:
            return []
        return split_names(output, "--output") if self.is_several else [output]

    def check_output(self, output: str | None) -> None:
        """Refuse a release without an output, and a density with one."""
        if output is None and self.has_column:
            raise Refusal("Missing option '--output': give it, or --density for points.")
        if output is not None and not self.has_column:
            raise Refusal("--output does not go with a density: leave it out.")

    def check(self, names: Sequence[str], missing: str) -> None:
        """Refuse what is declared wrongly, whatever the file holds.

        Parameters
        ----------
        names : sequence of str
            The private columns.
        missing : str
            What is done with rows where a value is missing.

        """
        with refuse_questions():
            if self.classes:
                check_classes(self.classes)
            elif self.is_several:
                output_bounds(self.bounds)
            else:
                for pair in self.bounds:
                    check_bounds("--bounds", pair)
        if self.classes and not all(self.classes):
            raise Refusal("--classes must be labels separated by commas, such as yes,no.")
        if self.classes and missing == "drop" and not complete_rows([[*self.classes]]).all():
            raise Refusal(
                "--missing drop takes the labels na, n/a, #n/a, nan, null, none, -, --, ? and . for "
                "missing ones: write the class otherwise."
            )
        if self.is_several and names and len(self.outcomes) != len(names):
            raise Refusal(
                f"--bounds is given for {len(self.outcomes)} outputs, but --output names "
                f"{plural(len(names), 'column')}."
            )
        self.arguments()

    def check_rules(self, given: Mapping[str, object]) -> None:
        """Refuse parameters and columns that do not go together; the rules are about outputs."""
        if self.has_column:
            numbers = SEVERAL if self.is_several else ONE
            check_rules(given, LABELS if self.classes else numbers)

    def arguments(self) -> dict[str, object]:
        """What the estimator is told of it."""
        if not self.is_several:
            return self.outcomes[0].parameters("outputs")
        count, said = len(self.outcomes), self.shares
        wrong = f"--shares must be {count} positive numbers, one per output, such as 2,1."
        with refuse_on(wrong, ValueError):
            given = None if said is None else [float(share) for share in said.split(",")]
            shares = None if given is None else check_output_shares(given, count)
        return {"y_bounds": tuple(self.bounds), "shares": shares}

    def private_values(
        self, frame: pl.DataFrame, names: Sequence[str], source: Source, choice: str
    ) -> PrivateValues:
        """The private values, None of points. ``choice``: what else the column may hold."""
        if self.is_several:
            return output_columns(frame, names, source)
        if self.classes:
            return outputs(frame, names[0], source, "classes")
        return output_column(frame, names[0], source, choice) if self.has_column else None


@dataclass(frozen=True, kw_only=True)
class Described(ReleaseOptions):
    """What is asked of which table. ``plan``: a saved one, of ``plan_path``, instead of options;
    ``about_missing``, ``about_labels``: what may be done about missing values, and about outputs that
    are labels; ``left_out``: what there is to say about rows that are, once the table is read."""

    data: Path
    output: str | None
    charge: Charge = field(default_factory=Charge)
    scheduler: str | None = None
    plan: Plan | None = None
    plan_path: Path | None = None
    about_missing: str = DROP_CHOICE
    about_labels: str = ""
    left_out: list[str] = field(default_factory=list, compare=False)

    @cached_property
    def outcome(self) -> Private:
        """What is private in a row."""
        if self.density:
            return Private((Presence(),))
        if self.classes is not None:
            return Private((Label(*class_texts(self.classes.split(","))),))
        if self.bounds is None:
            raise Refusal("Missing option '--bounds': give it, or --classes for labels.")
        further = read_ranges(self.further_bounds, None, "--bounds") if self.further_bounds else []
        return Private.of_numbers((self.bounds, *further) if further else self.bounds, self.shares)

    @property
    def output_names(self) -> list[str]:
        """The private columns."""
        return self.outcome.names(self.output)

    @property
    def input_names(self) -> list[str]:
        return split_names(self.inputs)

    @property
    def columns(self) -> Inputs | ColumnKinds | None:
        """What inputs are, as ``columns`` of a model has it."""
        columns = columns_from_options(self.input_names, self)
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
        return self.density or self.protect == "records"

    def private_inputs(self) -> Inputs | None:
        """What was declared of private inputs; None where they are numbers, or public."""
        if self.columns is None or not self.inputs_are_private:
            return None
        with refuse_questions():
            return Inputs.private(self.columns, self.domain())

    def domain(self) -> Domain:
        """Declared bounds of private inputs: a pair for each, by their names if they are not all numbers."""
        if not self.inputs_are_private:
            return None
        if self.kinds:
            return bounds_by_name(self.x_bounds or (), self.kinds)
        if not self.x_bounds:
            raise Refusal(
                f"{'--density' if self.density else '--protect records'} needs --x-bounds LO HI, once per input: bounds that the private "
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
        """Whether a CSV file is declared to have an unusual format."""
        said = self.encoding, self.date_format
        return self.delimiter not in (None, ",") or bool(self.decimal_comma) or any(said)

    @property
    def public_names(self) -> list[str]:
        """The columns that a plan may load."""
        names = self.input_names
        return names if self.groups in (None, *names) else [*names, str(self.groups)]

    @property
    def table_assumptions(self) -> tuple[str, ...]:
        """What the guarantee assumes of how the table was read."""
        return (MISSING,) if self.missing == "drop" else ()
