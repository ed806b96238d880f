"""From columns of a table to inputs, people and outputs. Private columns go to the vault."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Protocol

import numpy as np
import polars as pl

from privgp.command.errors import Refusal, plural, refusal, refuse_on
from privgp.command.io.files import TABLES, check_readable
from privgp.command.io.kinds import kinds_by_name, split_names
from privgp.command.io.screen import Step
from privgp.models.spending import names_of
from privgp.plan.inputs.arguments import (
    AnyBounds,
    are_several,
    check_bounds,
    check_output_shares,
    output_bounds,
)
from privgp.plan.inputs.inputs import Inputs
from privgp.question.outcomes import CLASSIFIER, REGRESSOR, check_classes
from privgp.question.rules import LABELS, ONE, SEVERAL, check_rules
from privgp.release.release import Release
from privgp.tables.cells import TEXTS, Kinds, input_columns
from privgp.tables.source import Form, Source, load, open_source
from privgp.types import Array, Cells
from privgp.vault.table import column_values, complete_rows, seal_rows
from privgp.vault.validate import column_labels

Rows = pl.DataFrame | Array
PrivateValues = (
    Array | Cells | pl.DataFrame | None
)  # numbers, labels, several columns; of points none
PLAINLY = ", such as 1250.5, without units or other signs"


class Fitted(Protocol):
    """A model that knows its inputs."""

    n_features_in_: int


def as_table(names: Sequence[str] | None, X: Rows) -> Rows:
    """Rows under the names that a model knows its inputs by, if any."""
    # without orient, a square array would be read by columns
    if isinstance(X, pl.DataFrame):
        return X.to_numpy() if names is None else X.rename(dict(zip(X.columns, names, strict=True)))
    return X if names is None else pl.DataFrame(X, schema=list(names), orient="row")


def in_blocks(
    names: Sequence[str] | None, X: Rows, size: int, step: Step, doing: str
) -> Iterator[Rows]:
    """The rows as above, some at a time; every block is a step of a bar."""
    for start in range(0, len(X), size):
        step(f"{doing} {start + 1} of {len(X)}")
        yield as_table(names, X[start : start + size])


@contextmanager
def refuse_questions(**options: str) -> Iterator[None]:
    """What is refused is about the question, and may be told. ``options``: as ``refusal`` has them."""
    try:
        with np.errstate(all="ignore"):
            yield
    except ValueError as problem:
        raise refusal(problem, **options) from None


def input_names(model: Fitted, path: Path, given: str | None) -> tuple[str, ...]:
    """The inputs by the names given with --inputs, else by those in the model's file."""
    names = names_of(model) if given is None else tuple(split_names(given))
    count = model.n_features_in_
    if names is None:
        raise Refusal(f"'{path}' does not name its {plural(count, 'input')}: do so with --inputs.")
    if len(names) != count:
        raise Refusal(f"'{path}' has {plural(count, 'input')}, but --inputs names {len(names)}.")
    return names


def question_rows(
    model: Fitted, path: Path, table: Path, given: str | None, form: Form | None = None
) -> pl.DataFrame:
    """The inputs in a new table."""
    names = input_names(model, path, given)
    return read_inputs(table, names, kinds_by_name(getattr(model, "inputs_", None), names), form)


def columns_to_keep(
    release: Release, table: Path, names: Sequence[str], form: Form | None = None
) -> pl.DataFrame:
    """All columns of a new table as they are, the inputs ``names`` among them; but not one that has the
    name of the private output, as the table may be the custodian's."""
    kinds = kinds_by_name(release.parameters.columns, names)
    source = open_source(table, _with_texts(form, kinds or {}), names)
    private = {*(release.output_names or ()), (release.facts.called or {}).get("column")}
    kept = [name for name in source.names if name not in private and source.names.count(name) == 1]
    return load(source, kept)


def read_inputs(
    path: Path, names: Sequence[str], kinds: Kinds | None = None, form: Form | None = None
) -> pl.DataFrame:
    check_readable(path, TABLES)
    source = open_source(path, _with_texts(form, kinds or {}), names)
    return input_columns(load(source, names), names, source, kinds=kinds)


def _with_texts(form: Form | None, kinds: Kinds) -> Form:
    texts = tuple(name for name, kind in kinds.items() if kind in TEXTS)
    return replace(form or Form(), texts=texts)


def whole_rows(frame: pl.DataFrame, levels: Mapping[str, Sequence[str]]) -> pl.DataFrame:
    """The rows that have a value in every column. Which they are is public, as the custodian chose.
    ``levels``: the declared ones of categories, by their names."""
    names = frame.columns
    cells = [frame[name].to_list() for name in names]
    return frame.filter(complete_rows(cells, [levels.get(name, ()) for name in names]))


def check_decimals(source: Source) -> None:
    """Refuse to guess how private numbers are written: 1.250 may be 1250."""
    layout = source.layout
    known = layout.decimal_comma is not None or layout.delimiter == ","
    if source.is_csv and not known:
        raise Refusal(
            f"'{source.path}' does not show in public columns how its private numbers are "
            "written: give --decimal-point or --decimal-comma."
        )


def private_columns(frame: pl.DataFrame, names: Sequence[str], source: Source) -> pl.DataFrame:
    """Private inputs. Whatever is wrong, and with whichever of them, the sentence is the same."""
    sentence = f"The input columns of '{source.path}' must hold a finite number in every row."
    with refuse_on(sentence, *([Refusal] if len(names) > 1 else [])):
        return output_columns(frame, names, source)


def output_column(frame: pl.DataFrame, name: str, source: Source, choice: str = "") -> Array:
    """The private outputs, read by the vault. Whatever is wrong with them, the sentence is the same.
    ``choice``: what else a column may hold."""
    sentence = f"Column '{name}' of '{source.path}' must hold a finite number in every row{PLAINLY}{choice}."
    with refuse_on(sentence, TypeError, ValueError, pl.exceptions.PolarsError):
        return column_values(frame[name])


def output_columns(frame: pl.DataFrame, names: Sequence[str], source: Source) -> pl.DataFrame:
    """Several private outputs, under their names."""
    return pl.DataFrame([pl.Series(name, output_column(frame, name, source)) for name in names])


def outputs(frame: pl.DataFrame, name: str, source: Source, task: str) -> Array | Cells:
    """Outputs to score against: numbers for regression, else labels as text. No row is named."""
    column = frame[name]
    if task == "regression":
        return output_column(frame, name, source)
    if not (column.dtype == pl.String or column.dtype.is_numeric() or column.dtype == pl.Boolean):
        raise Refusal(f"Column '{name}' of '{source.path}' must hold labels.")
    sentence = f"Column '{name}' of '{source.path}' must hold a label in every row."
    with refuse_on(sentence, ValueError):
        return column_labels(column.to_list())


def private_table(frame: pl.DataFrame, inputs: Inputs, source: Source) -> pl.DataFrame:
    """Private cells as they stand, once the vault has read each. Whatever is wrong, and with whichever
    of them, the sentence is the same."""
    sentence = f"The input columns of '{source.path}' must hold a value of their kind in every row."
    with refuse_on(sentence, ValueError):
        seal_rows(frame, inputs)
    return frame.select(inputs.names)


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
