"""A table in a database, as X and y of a model: rows stay there, and grouped sums come back."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from privgp.engine.database import DatabaseTable, open_database
from privgp.models.rows.files import NOT_OURS, FileInputs, Groups, Table
from privgp.models.rows.fit import is_tallied, most_rows
from privgp.plan.inputs.database import DatabaseRows, database_inputs
from privgp.plan.inputs.inputs import Inputs
from privgp.plan.inputs.tally import Source
from privgp.types import Column, UserData
from privgp.vault.grouped.database import DatabaseOutput, seal_database
from privgp.vault.masked import Sealed

if TYPE_CHECKING:
    from privgp.models.published import Published


NOT_THERE = (
    "a table in a database is summed there by cells of its public inputs: this does not go with "
    "protect='records', inducing, other objectives than 'posterior' or reconstruct='unbiased'. Read the "
    "table into memory for these."
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
        if not is_tallied(model, 2**31):
            raise ValueError(NOT_THERE)
        return True

    def source(
        self, model: Published, people: UserData, exposure: UserData
    ) -> tuple[Source, tuple[int, ...]]:
        """The rows where they are, and which outcomes are counts."""
        counts = tuple(model._exposures_by_place(None, 1))
        name = None if exposure is None else exposure.names[0]
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


def table_in_database(
    given: Any,
    names: tuple[str, ...],
    private: tuple[str, ...],
    groups: str | None,
    columns: Any,
    exposure: str | None,
) -> Table:
    """Columns of a table in a database; see ``open_table``."""
    table: Any = DatabaseTable(open_database(given))
    public = [name for name in (groups, exposure) if name is not None]
    table.check([*names, *private, *public])
    people = None if groups is None else Groups(table, groups)
    over = None if exposure is None else FileInputs(table, (exposure,))
    inputs = DatabaseInputs(table, names, people, over, columns)
    output: Any = DatabaseOutput(table, private) if private else None
    return Table(inputs, output, people, over)
