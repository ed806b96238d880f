"""Many files as one table: ``model.fit(table.inputs, table.output)``.

Outcomes at many public inputs are tallied: never in memory together. Everything else is read into memory,
private columns by the vault alone, and then fitted as if it had been there from the start.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import polars as pl

from privgp.engine.workers import Watch
from privgp.models.rows.fit import (
    NOTHING,
    Aside,
    Tallied,
    fit_for_rows,
    most_rows,
    plan_for,
    row_count,
    uses_tally,
)
from privgp.models.rows.tables import records_to_plan, remember
from privgp.plan.inputs.blocks import Blocks
from privgp.plan.inputs.blocks import FileColumns as FileNumbers
from privgp.plan.inputs.files import all_numbers, file_inputs, table_of_columns
from privgp.plan.inputs.inputs import Inputs
from privgp.plan.inputs.tally import People, Source
from privgp.plan.plan import Plan
from privgp.question.outcomes import has_private_inputs
from privgp.release.learn import zeros_of
from privgp.tables.files import Files
from privgp.tables.table import columns_by_name
from privgp.types import Column, Integers, UserData
from privgp.vault.table import TableOutput, gather_inputs, gather_outputs, seal_files, table_people
from privgp.vault.validate import check_roles, column_names
from privgp.vault.values import Sealed

if TYPE_CHECKING:
    from privgp.models.published import Published


NOT_OURS = "y must be the output of the table whose inputs are X."


@dataclass(frozen=True)
class Groups:
    """The public column that says whose row it is."""

    files: Files
    name: str

    def codes(self) -> Integers:
        return table_people(self.files, self.name)


@dataclass(frozen=True)
class FileInputs:
    """The input columns ``names`` of a table in files, as X of a ``plan`` or a ``fit``.

    Attributes
    ----------
    groups : Groups, optional
        Whose rows they are, if the table was opened with people: they are protected whether named again
        or not.
    exposure : FileInputs, optional
        What counts are counted over, if the table was opened with it.
    declared : mapping, optional
        What the columns are, as given to ``open_table``.
    weights : FileInputs, optional
        The sample weights of rows, if the table was opened with them.

    """

    files: Files
    names: tuple[str, ...]
    groups: Groups | None = None
    exposure: FileInputs | None = None
    declared: Any = field(default=None, repr=False)
    weights: FileInputs | None = None

    @cached_property
    def kinds(self) -> Inputs | None:
        """What public columns are, if not all numbers. Private ones are never looked at for it."""
        return file_inputs(self.files, self.names, self.declared)

    def known_by(self, columns: object) -> FileInputs:
        """The same to a model, with what its ``columns`` say where the table was opened without."""
        if columns is None or columns == self.declared:
            return self
        if self.declared is not None:
            raise ValueError("columns must be given once: to open_table or to the model.")
        return replace(self, declared=columns)

    def people(self, given: object) -> Any:
        """The people to protect, given or of the table."""
        groups = self.groups if given is None else given
        if groups is not None and (not isinstance(groups, Groups) or groups.files != self.files):
            raise ValueError("groups must be the groups of the table whose inputs are X.")
        return groups

    def choose_aside(self, given: Aside) -> Aside:
        """Exposures and sample weights, given or of the table."""
        exposure = self.exposure if given.exposure is None else given.exposure
        weights = self.weights if given.weights is None else given.weights
        for called, column in Aside(exposure, weights).roles.items():
            if isinstance(column, FileInputs) and column.files != self.files:
                raise ValueError(f"{called} must be that of the table whose inputs are X.")
        return Aside(exposure, weights)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names, as data frames have them."""
        return self.names

    @property
    def shape(self) -> tuple[int, int]:
        return self.files.rows, len(self.names)

    def __len__(self) -> int:
        return self.files.rows

    def stays(self, model: Published) -> bool:
        """Whether sums alone of these rows are ever in memory."""
        return uses_tally(model, len(self))

    def source(
        self, model: Published, people: UserData, aside: Aside
    ) -> tuple[Source, tuple[int, ...]]:
        """The rows where they are, and which outcomes are counts."""
        most = most_rows(model, people)
        whose = None if people is None else People.of(people.codes(), most)
        beside = model._beside(_in_memory(aside), len(self))
        names = self.names if self.kinds is None else self.kinds.names
        held = FileNumbers(self.files, names, self.kinds)
        return Blocks.of(held, whose, beside), tuple(beside.exposures)

    def _seal(self, y: Column, rows: object, model: Published) -> Sealed:
        """The outcomes, on the way to the pass that sums them."""
        if not isinstance(y, TableOutput):
            raise ValueError(NOT_OURS)
        return seal_files(y, self.files, rows, model._classes())

    def public_table(self) -> Any:
        """All rows of public columns, in memory."""
        if self.kinds is not None:
            return table_of_columns(self.files, self.kinds)
        return pl.DataFrame(
            all_numbers(self.files, self.names), schema=list(self.names), orient="row"
        )


@dataclass(frozen=True)
class Table:
    """Columns of many files as one table. ``inputs``, ``groups``, ``exposure`` and ``weights`` are public (except for the inputs of private records), ``output`` is private: it is read by the worker on a block of rows, and
    nowhere else."""

    inputs: FileInputs
    output: TableOutput | None
    groups: Groups | None
    exposure: FileInputs | None = None
    weights: FileInputs | None = None

    def check_output(self) -> None:
        """Read every private cell once, and refuse those that are no finite number."""
        if self.output is not None:
            self.output.check()


IN_MEMORY = "sample_weight of private records goes with tables in memory: read the table first."


def columns_to_plan(
    model: Published, X: FileInputs, groups: UserData = None, aside: Aside = NOTHING
) -> tuple[Any, Any, Aside]:
    """X, groups and what is beside them of a ``plan``, in memory. For private records their number."""
    X = X.known_by(model.columns)
    people = X.people(groups)
    codes = None if people is None else people.codes()
    if has_private_inputs(model.protect):
        return len(X), codes, aside
    return X.public_table(), codes, _in_memory(aside)


def columns_to_fit(
    model: Published, X: FileInputs, y: UserData, groups: UserData = None, aside: Aside = NOTHING
) -> tuple[Any, Any, Any, Aside]:
    """X, y, groups and what is beside them of a ``fit``, in memory. Private columns are gathered by the vault,
    last of all, which then sees whether the files are still those of before."""
    if not isinstance(y, TableOutput):
        raise ValueError(NOT_OURS)
    people = X.people(groups)
    rows, codes, aside = columns_to_plan(model, X, people, aside)
    if has_private_inputs(model.protect):
        rows = private_table(model, X, people)
    name = None if people is None else people.name
    if has_private_inputs(model.protect) and aside.weights is not None:
        raise ValueError(IN_MEMORY)
    return rows, gather_outputs(y, X.files, model._classes(), name, codes), codes, aside


def private_table(model: Published, X: FileInputs, people: Groups | None) -> Any:
    """All rows of private inputs, for the vault alone, as the model declares them."""
    check_roles(people, called="groups", X=X)
    if X.declared is not None and X.declared != model.columns:
        raise ValueError(
            "columns of private inputs must be given to the model, beside x_bounds: open the table "
            "without."
        )
    kinds = records_to_plan(model).inputs_
    names = X.names if kinds is None else kinds.names
    absent = [name for name in names if name not in X.names]
    if absent:
        raise ValueError(f"X has no column {absent[0]!r}, which x_bounds or columns declares.")
    return gather_inputs(X.files, names, kinds)


def _numbers(exposure: UserData) -> Any:
    """An exposure of every row, in memory."""
    if not isinstance(exposure, FileInputs):
        return exposure
    return all_numbers(exposure.files, exposure.names)[:, 0]


def _in_memory(aside: Aside) -> Aside:
    return Aside(_numbers(aside.exposure), _numbers(aside.weights))


@dataclass(frozen=True, eq=False)
class FileColumns(Mapping[str, Any]):
    """A table in files as columns by their names, for a model that names its own: a column is in memory
    once it is asked for, an outcome by the vault alone.

    Attributes
    ----------
    table : Table
    outcomes : mapping
        The column of every outcome by its name, and its declared classes, None where it is a number.
    groups : str, optional
        The name of the column of people.

    """

    table: Table
    outcomes: Mapping[str, tuple[str, Any]]
    groups: str | None

    @classmethod
    def of(cls, model: Published, table: Table) -> FileColumns:
        people = None if table.groups is None else table.groups.name
        if people not in (None, model.groups):
            raise ValueError(
                f"the table was opened with the people in {people!r}: give groups={people!r} to the "
                "model as well."
            )
        names = [*model._outcomes_by_name()]
        columns = names if isinstance(model.outcomes, Mapping) else _only(table)
        each = zip(names, columns, model._alone(), strict=True)
        found = cls(table, {name: (c, one._classes()) for name, c, one in each}, model.groups)
        counted = (one.exposure for one in model._outcomes_by_name().values())
        over = tuple(name for name in counted if name is not None)
        check_roles(found._private, groups=found.people, exposure=FileInputs(found._files, over))
        return found

    @property
    def _private(self) -> TableOutput:
        """All outcomes, none of which may be anything else."""
        return TableOutput(self._files, tuple(column for column, _ in self.outcomes.values()))

    @property
    def people(self) -> Groups | None:
        return None if self.groups is None else Groups(self._files, self.groups)

    def inputs(self, names: Sequence[str]) -> FileInputs:
        """The input columns of these names."""
        X = replace(self.table.inputs, names=tuple(names))
        check_roles(self._private, X=X)
        return X

    @cached_property
    def codes(self) -> Integers | None:
        """Whose rows they are."""
        return None if self.people is None else self.people.codes()

    @property
    def _files(self) -> Files:
        return self.table.inputs.files

    def __getitem__(self, name: str) -> Any:
        if name == self.groups:
            return self.codes
        if name not in self.outcomes:
            return _numbers(FileInputs(self._files, (name,)))
        column, classes = self.outcomes[name]
        self._files.check([column])
        one = TableOutput(self._files, (column,))
        return gather_outputs(one, self._files, classes, self.groups, self.codes)

    def __contains__(self, name: object) -> bool:
        column = self.outcomes[name][0] if name in self.outcomes else name  # type: ignore[index]
        return all(column in file.columns for file in self._files.files)

    def __iter__(self) -> Iterator[str]:
        return iter(self.table.inputs.names)

    def __len__(self) -> int:
        return len(self.table.inputs.names)


def _only(table: Table) -> list[str]:
    """The column of the only output."""
    if table.output is None or len(table.output.names) != 1:
        raise ValueError("an outcome without a name is the output of the table: open it with one.")
    return [*table.output.names]


def columns_of(model: Published, table: object) -> Mapping[str, Any]:
    """The columns of a table by their names."""
    if isinstance(table, Table) and not isinstance(table.inputs.files, Files):
        raise ValueError("PrivateGP takes tables in memory or in files: read the table first.")
    return FileColumns.of(model, table) if isinstance(table, Table) else columns_by_name(table)


def inputs_to_plan(model: Published, given: Mapping[str, object], names: Sequence[str]) -> Any:
    """The input columns of these names, public ones as a table in memory."""
    if not isinstance(given, FileColumns):
        return {name: given[name] for name in names}
    X = given.inputs(names)
    return X if has_private_inputs(model.protect) else X.known_by(model.columns).public_table()


def inputs_to_fit(model: Published, given: Mapping[str, object], names: Sequence[str]) -> Any:
    """The same, private ones for the vault alone."""
    if isinstance(given, FileColumns) and has_private_inputs(model.protect):
        return private_table(model, given.inputs(names), given.people)
    return inputs_to_plan(model, given, names)


def rows_in(given: Mapping[str, object], names: Sequence[str]) -> int:
    """The number of rows, which is all that a plan needs of private records."""
    if isinstance(given, FileColumns):
        return len(given.table.inputs)
    return row_count({name: given[name] for name in names})


def rows_in_place(
    model: Published, X: FileInputs, groups: UserData, aside: Aside, plan: Plan | None = None
) -> tuple[Any, Tallied]:
    """A model that knows what the columns of a table are, and the tally of its rows."""
    X = X.known_by(model.columns)
    asked = copy(model)
    asked.inputs_ = X.kinds
    source, counts = X.source(asked, X.people(groups), aside)
    return asked, Tallied.of(asked, source, counts, plan)


def fit_in_place(
    model: Published,
    X: FileInputs,
    y: UserData,
    groups: UserData,
    plan: Plan | None,
    aside: Aside = NOTHING,
    watch: Watch | None = None,
) -> None:
    """Measure a table once, of which sums alone are ever in memory. Spends."""
    asked, rows = rows_in_place(model, X, groups, aside, plan)
    model.inputs_ = asked.inputs_
    names = X.names if asked.inputs_ is None else asked.inputs_.names
    remember(model, names, len(names))
    data = X._seal(y, rows.source, model)
    outputs = column_names(y) if len(model._alone()) > 1 else None
    fit_for_rows(model, rows, data, plan, outputs, watch)


def rehearse_table(model: Published, table: Table, plan: Plan) -> None:
    """Fit simulated outputs, measured as planned: whatever would stop a release stops this first."""
    X, groups = table.inputs, table.groups
    if X.stays(model):
        aside = Aside(table.exposure, table.weights)
        asked, rows = rows_in_place(model, X, groups, aside, plan)
        model.inputs_ = asked.inputs_
        made = plan_for(asked, rows, plan)
        model._learn(made, zeros_of(made), inputs=rows.inputs)
    else:
        array, people, _ = columns_to_plan(model, X, groups)
        model.fit(array, model._rehearsal_outputs(len(X)), groups=people, plan=plan)
