"""What a line declares of a table: what is private in a row, and what its inputs are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import ClassVar

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
from privgp.question.outcomes import CLASSIFIER, REGRESSOR, check_classes
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
class Numbers:
    """The private column of a request: a number in every row, between declared bounds.

    Attributes
    ----------
    rule : str
        What rules call it.
    estimator : str
        The name of the class that learns it.
    hides_inputs : str
        The option by which inputs are private, too.
    in_parts : bool
        Whether tables in several files are read in parts for it.
    numeric : bool
        Whether its cells are numbers.
    declared : str
        What is declared of it.
    classes : tuple of str, optional
        Its declared classes.
    bounds : (low, high), or one such pair per column

    """

    rule: ClassVar[str] = ONE
    estimator: ClassVar[str] = REGRESSOR
    hides_inputs: ClassVar[str] = "--protect records"
    in_parts: ClassVar[bool] = True
    numeric: ClassVar[bool] = True
    declared: ClassVar[str] = "bounds"
    classes: ClassVar[tuple[str, ...] | None] = None
    bounds: AnyBounds = ()

    def names(self, output: str | None) -> list[str]:
        """The private columns that --output names."""
        return [] if output is None else [output]

    def title(self, name: str | None, units: str | None) -> tuple[str | None, str | None]:
        """What pictures call the output, and its units; None where that is not known."""
        return name, units

    def check_output(self, output: str | None) -> None:
        """Refuse a release without an output."""
        if output is None:
            raise Refusal("Missing option '--output': give it, or --density for points.")

    def check(self, names: Sequence[str], missing: str) -> None:
        """Refuse what is declared wrongly, whatever the file holds. ``missing``: what is done with rows
        where a value is missing."""
        with refuse_questions():
            check_bounds("--bounds", self.bounds)

    def check_rules(self, given: Mapping[str, object]) -> None:
        """Refuse parameters and columns that do not go together."""
        check_rules(given, self.rule)

    def check_single_error(self) -> None:
        """Refuse to look for an epsilon by one error where there are several."""

    def arguments(self) -> dict[str, object]:
        """What the estimator is told of it."""
        return {"y_bounds": self.bounds}

    def private_values(
        self, frame: pl.DataFrame, names: Sequence[str], source: Source, choice: str
    ) -> PrivateValues:
        """The private values. ``choice``: what else the column may hold."""
        return output_column(frame, names[0], source, choice)


@dataclass(frozen=True)
class SeveralNumbers(Numbers):
    """A private number in each of several columns. ``shares``: of the budget, as they were given."""

    rule: ClassVar[str] = SEVERAL
    in_parts: ClassVar[bool] = False
    shares: str | None = None

    def names(self, output: str | None) -> list[str]:
        return [] if output is None else split_names(output, "--output")

    def check(self, names: Sequence[str], missing: str) -> None:
        with refuse_questions():
            pairs = output_bounds(self.bounds)
        if names and len(pairs) != len(names):
            raise Refusal(
                f"--bounds is given for {len(pairs)} outputs, but --output names "
                f"{plural(len(names), 'column')}."
            )
        self.arguments()

    def check_single_error(self) -> None:
        raise Refusal("--for-error is for one output: give --epsilon.")

    def arguments(self) -> dict[str, object]:
        count, said = len(self.bounds), self.shares
        wrong = f"--shares must be {count} positive numbers, one per output, such as 2,1."
        with refuse_on(wrong, ValueError):
            given = None if said is None else [float(share) for share in said.split(",")]
            shares = None if given is None else check_output_shares(given, count)
        return {"y_bounds": self.bounds, "shares": shares}

    def private_values(
        self, frame: pl.DataFrame, names: Sequence[str], source: Source, choice: str
    ) -> PrivateValues:
        return output_columns(frame, names, source)


@dataclass(frozen=True)
class Labels(Numbers):
    """One of several declared classes in every row."""

    rule: ClassVar[str] = LABELS
    estimator: ClassVar[str] = CLASSIFIER
    in_parts: ClassVar[bool] = False
    numeric: ClassVar[bool] = False
    declared: ClassVar[str] = "classes"
    classes: tuple[str, ...] = ()  # type: ignore[misc]

    def check(self, names: Sequence[str], missing: str) -> None:
        with refuse_questions():
            check_classes(self.classes)
        if not all(self.classes):
            raise Refusal("--classes must be labels separated by commas, such as yes,no.")
        if missing == "drop" and not complete_rows([[*self.classes]]).all():
            raise Refusal(
                "--missing drop takes the labels na, n/a, #n/a, nan, null, none, -, --, ? and . for "
                "missing ones: write the class otherwise."
            )

    def arguments(self) -> dict[str, object]:
        return {"classes": [*self.classes]}

    def private_values(
        self, frame: pl.DataFrame, names: Sequence[str], source: Source, choice: str
    ) -> PrivateValues:
        return outputs(frame, names[0], source, "classes")


@dataclass(frozen=True)
class Points(Numbers):
    """Nothing but private inputs: a density is released of where they lie."""

    estimator: ClassVar[str] = "PrivateGPDensity"
    hides_inputs: ClassVar[str] = "--density"
    in_parts: ClassVar[bool] = False
    numeric: ClassVar[bool] = False

    def names(self, output: str | None) -> list[str]:
        return []

    def title(self, name: str | None, units: str | None) -> tuple[str | None, str | None]:
        return name or "points", units or "per unit"

    def check_output(self, output: str | None) -> None:
        if output is not None:
            raise Refusal("--output does not go with a density: leave it out.")

    def check(self, names: Sequence[str], missing: str) -> None:
        pass

    def check_rules(self, given: Mapping[str, object]) -> None:
        pass  # which are about outputs

    def arguments(self) -> dict[str, object]:
        return {}

    def private_values(
        self, frame: pl.DataFrame, names: Sequence[str], source: Source, choice: str
    ) -> None:
        return None


def numbers_between(bounds: AnyBounds, shares: str | None = None) -> Numbers:
    """What bounds are of: one private column, or one for each of several pairs."""
    several = are_several(bounds)
    return SeveralNumbers(bounds, shares) if several else Numbers(bounds)


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
    def outcome(self) -> Numbers:
        """What is private in a row."""
        if self.density:
            return Points()
        if self.classes is not None:
            return Labels(classes=tuple(class_texts(self.classes.split(","))))
        if self.bounds is None:
            raise Refusal("Missing option '--bounds': give it, or --classes for labels.")
        further = read_ranges(self.further_bounds, None, "--bounds") if self.further_bounds else []
        return numbers_between((self.bounds, *further) if further else self.bounds, self.shares)

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
                f"{self.outcome.hides_inputs} needs --x-bounds LO HI, once per input: bounds that the private "
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
        """What the guarantee assumes of how the table was read."""
        return (MISSING,) if self.missing == "drop" else ()
