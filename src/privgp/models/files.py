"""Many files as one table that is never in memory: ``model.fit(table.inputs, table.output)``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from privgp.engine.local import Threads
from privgp.models.kinds.inducing import (
    MOST_ROWS,
    fit_rows,
    most_rows,
    plan_rows,
    rehearse_rows,
    streams,
)
from privgp.models.tables import remember
from privgp.plan.inputs.file_kinds import file_inputs, known_table
from privgp.plan.inputs.file_rows import TablePeople, TableRows
from privgp.plan.inputs.inputs import Inputs
from privgp.plan.several.arguments import are_several
from privgp.storage.tables import Files, open_files
from privgp.types import Integers
from privgp.vault.table import TableOutput, gathered, table_people

if TYPE_CHECKING:
    from privgp.models.regressor import PrivateGPRegressor


@dataclass(frozen=True)
class Groups:
    """The public column that says whose row it is."""

    files: Files
    name: str

    def codes(self) -> Integers:
        return table_people(self.files, self.name)


@dataclass(frozen=True)
class FileInputs:
    """The public columns ``names`` of a table in files, as X of a ``plan`` or a ``fit``. ``groups``: whose
    rows they are, if the table was opened with people: they are protected whether named again or not;
    ``kinds``: what the columns are, if not all numbers, of which this was ``declared``."""

    files: Files
    names: tuple[str, ...]
    groups: Groups | None = None
    kinds: Inputs | None = None
    declared: Any = field(default=None, repr=False)

    def known_by(self, columns: Any) -> FileInputs:
        """The same to a model, with what its ``columns`` say where the table was opened without."""
        if columns is None or columns == self.declared:
            return self
        if self.declared is not None:
            raise ValueError("columns must be given once: to open_table or to the model.")
        return replace(self, kinds=file_inputs(self.files, self.names, columns), declared=columns)

    def people(self, given: Any) -> Any:
        """The people to protect, given or of the table."""
        return self.groups if given is None else given

    @property
    def shape(self) -> tuple[int, int]:
        return self.files.rows, len(self.names)

    def __len__(self) -> int:
        return self.files.rows

    def check(self, groups: Any) -> None:
        """Refuse people of another table."""
        if not isinstance(groups, Groups) or groups.files != self.files:
            raise ValueError("groups must be the groups of the table whose inputs are X.")

    def rows(self, groups: Any, most: int = MOST_ROWS) -> TableRows | TablePeople:
        """As they are worked on."""
        if groups is None:
            return TableRows(self.files, self.names, 0, self.files.rows, self.kinds)
        self.check(groups)
        codes = groups.codes()
        return TablePeople.of(self.files, self.names, groups.name, codes, most, self.kinds)


@dataclass(frozen=True)
class Table:
    """Columns of many files as one table. ``inputs`` and ``groups`` are public, ``output`` is private:
    it is read by whoever works on a block of rows, and nowhere else."""

    inputs: FileInputs
    output: TableOutput | None
    groups: Groups | None

    def check_output(self) -> None:
        """Read every private cell once, and refuse those that are no finite number."""
        if self.output is not None:
            self.output.check()


def open_table(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    inputs: str | Sequence[str],
    output: str | None = None,
    groups: str | None = None,
    columns: Any = None,
) -> Table:
    """Many CSV or Parquet files as one table that is never in memory.

    ``paths``: a file, a folder, a pattern such as ``"trips/*.parquet"``, or a list of them; folders named
    ``key=value`` are columns too. ``inputs``, ``output``, ``groups``: names of columns. ``columns``: what
    inputs are, as a model has it; others are numbers, unless the type of a Parquet column says otherwise.
    """
    names = (inputs,) if isinstance(inputs, str) else tuple(inputs)
    others = [name for name in (output, groups) if name is not None]
    if not names or len({*names, *([output] if output else [])}) < len(names) + bool(output):
        raise ValueError("inputs must be names of different columns, the output not among them.")
    if output is not None and output == groups:
        raise ValueError("the private output cannot name the people.")
    files = open_files(paths)
    files.check([*names, *others])
    people = None if groups is None else Groups(files, groups)
    return Table(
        FileInputs(files, names, people, file_inputs(files, names, columns), columns),
        None if output is None else TableOutput(files, output),
        people,
    )


def plan_table(model: PrivateGPRegressor, X: FileInputs, groups: Any) -> Any:
    """What a fit on this table would measure."""
    check_streams(model)
    X, groups = X.known_by(model.columns), X.people(groups)
    if not streams(model, len(X)):
        array, people = _in_memory(X, groups)
        return model.plan(array, groups=people)
    model = copy(model)
    model.inputs_ = X.kinds
    return plan_rows(model, X.rows(groups, most_rows(model, groups)))


def fit_table(
    model: PrivateGPRegressor, X: FileInputs, y: Any, groups: Any, plan: Any, watch: Any = None
) -> None:
    """Measure a table in files once. Spends."""
    X = X.known_by(model.columns)
    model.inputs_ = X.kinds
    names = X.names if X.kinds is None else X.kinds.names
    remember(model, names, len(names))
    if not isinstance(y, TableOutput):
        raise ValueError("y must be the output of the table whose inputs are X.")
    check_streams(model)
    groups = X.people(groups)
    if not streams(model, len(X)):
        array, people = _in_memory(X, groups)
        outputs = gathered(y, X.files, None if groups is None else groups.name, people)
        model.fit(array, outputs, groups=people, plan=plan)
        model.feature_names_in_ = np.array(names, dtype=object)
        return
    fit_rows(model, X.rows(groups, most_rows(model, groups)), y, plan, watch)


def rehearse_table(model: PrivateGPRegressor, table: Table, plan: Any) -> None:
    """Fit made-up outputs, measured as planned: whatever would stop a release stops this first."""
    X, groups = table.inputs.known_by(model.columns), table.groups
    model.inputs_ = X.kinds
    if streams(model, len(X)):
        rehearse_rows(model, plan, X.rows(groups, most_rows(model, groups)))
    else:
        array, people = _in_memory(X, groups)
        model.fit(array, model._made_up(len(X)), groups=people, plan=plan)


def _in_memory(X: FileInputs, groups: Any) -> tuple[Any, Integers | None]:
    """The inputs and people of a table so small that it is not streamed."""
    array: Any = (
        X.rows(None).take(np.arange(len(X)), Threads())
        if X.kinds is None
        else known_table(X.files, X.kinds)
    )
    if groups is not None:
        X.check(groups)
    return array, None if groups is None else groups.codes()


def check_streams(model: PrivateGPRegressor) -> None:
    """Refuse what needs all rows in memory."""
    if model.protect == "records" or are_several(model.y_bounds) or model.likelihood != "gaussian":
        raise ValueError(
            "a table in files is for one output at public inputs: read it into memory for records, "
            "several outputs or counts."
        )
