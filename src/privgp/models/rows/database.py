"""Tables in files and in databases, opened as X and y of a model. Rows of a database stay there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from privgp.engine.database import DatabaseTable, is_ibis, is_url, open_database
from privgp.models.rows.files import NOT_OURS, FileInputs, Groups, Table
from privgp.models.rows.fit import Aside, most_rows, uses_tally
from privgp.plan.inputs.database import DatabaseRows, database_inputs
from privgp.plan.inputs.inputs import Inputs
from privgp.plan.inputs.tally import Source
from privgp.question.rules import check_column_roles
from privgp.tables.files import open_files
from privgp.types import Column, UserData
from privgp.vault.grouped.database import DatabaseOutput, seal_database
from privgp.vault.table import TableOutput
from privgp.vault.values import Sealed

if TYPE_CHECKING:
    from privgp.models.published import Published


NOT_THERE = (
    "a table in a database is summed there by cells of its public inputs: this does not go with "
    "protect='records', nor without inducing with other objectives than 'posterior' or "
    "reconstruct='unbiased'. Read the table into memory for these."
)


@dataclass(frozen=True)
class DatabaseInputs(FileInputs):
    """The input columns of a table in a database; ``files`` is the table."""

    @cached_property
    def kinds(self) -> Inputs | None:
        """What public columns are, if not all numbers."""
        return database_inputs(self._table, self.names, self.declared)

    @property
    def _table(self) -> DatabaseTable:
        table: Any = self.files
        return table  # type: ignore[no-any-return]

    def stays(self, model: Published) -> bool:
        """Always: rows of a database are never in memory."""
        if not uses_tally(model, 2**31):
            raise ValueError(NOT_THERE)
        return True

    def source(
        self, model: Published, people: UserData, aside: Aside
    ) -> tuple[Source, tuple[int, ...]]:
        """The rows where they are, and which outcomes are counts."""
        if aside.weights is not None:
            raise ValueError(
                "sample_weight goes with tables in memory or in files: read the table first."
            )
        counts = tuple(model._exposures_by_place(None, 1))
        name = None if aside.exposure is None else aside.exposure.names[0]
        rows = DatabaseRows(
            self._table,
            self.names if self.kinds is None else self.kinds.names,
            self.kinds,
            None if people is None else people.name,
            (name,) * len(counts),
            most_rows(model, people),
        )
        return rows, counts

    def _seal(self, y: Column, rows: object, model: Published) -> Sealed:
        """The outcomes, on the way to the query that sums them."""
        if not isinstance(y, DatabaseOutput):
            raise ValueError(NOT_OURS)
        return seal_database(y, rows, [model._classes()] * len(y.names))


def open_table(
    paths: Any,
    inputs: str | Sequence[str],
    output: str | Sequence[str] | None = None,
    groups: str | None = None,
    columns: Any = None,
    exposure: str | None = None,
    weights: str | None = None,
) -> Table:
    """Many CSV or Parquet files as one table, or a table in a database.

    Parameters
    ----------
    paths : path or sequence of paths, address of a database, or Ibis table
        A file, a folder, a pattern such as ``"trips/*.parquet"``, or a list of them; folders named
        ``key=value`` are columns too. Or ``"duckdb:///path?table=NAME"`` or
        ``"postgresql://user@host/database?table=NAME"``: rows then stay in the database, which sends
        grouped sums (extra ``database``).
    inputs : str or sequence of str
        Names of the input columns.
    output : str or sequence of str, optional
        Name of the private column of numbers, counts or labels, or of several columns of numbers.
    groups : str, optional
        Name of the column of person identifiers.
    columns : mapping, optional
        What inputs are, as a model has it; others are numbers, unless the type of a Parquet column says
        otherwise.
    exposure : str, optional
        Name of the public column that counts are counted over.
    weights : str, optional
        Name of the public column of sample weights.

    """
    names, private = _names(inputs), _names(output)
    check_column_roles(names, private, groups, exposure, weights)
    in_database = is_url(paths) or is_ibis(paths)
    if in_database and weights is not None:
        raise ValueError("weights go with tables in memory or in files: read the table first.")
    table: Any = DatabaseTable(open_database(paths)) if in_database else open_files(paths)
    table.check([*names, *private, *_names(groups), *_names(exposure), *_names(weights)])
    people = None if groups is None else Groups(table, groups)
    over = None if exposure is None else FileInputs(table, (exposure,))
    own = None if weights is None else FileInputs(table, (weights,))
    kind, secret = (DatabaseInputs, DatabaseOutput) if in_database else (FileInputs, TableOutput)
    outcomes: Any = secret(table, private) if private else None
    return Table(kind(table, names, people, over, columns, own), outcomes, people, over, own)


def _names(given: str | Sequence[str] | None) -> tuple[str, ...]:
    if given is None:
        return ()
    return (given,) if isinstance(given, str) else tuple(given)
