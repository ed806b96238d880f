"""A private column of a table in files, and whose rows they are: read by whoever works on the rows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privgp.plan.inputs.rows import Chunk
from privgp.storage.tables import Files
from privgp.types import Integers
from privgp.vault.people import person_codes
from privgp.vault.stream import PrivateRows
from privgp.vault.validate import column_numbers

WRONG = "the output column must hold a finite number in every row."
NOBODY = "the column of groups must name a person in every row."


@dataclass(frozen=True)
class TableOutput:
    """The outputs in the column ``name``: never in memory but for the chunk that is worked on."""

    files: Files
    name: str

    def beside(self, rows: Any, number: int) -> Sequence[PrivateRows]:
        if not hasattr(rows, "files") or rows.files != self.files:
            raise ValueError("y must be the output of the table whose inputs are X.")
        return [PrivateRows(part, self) for part in rows.parts(number)]

    def chunks(self, rows: Any) -> Iterator[tuple[Chunk, Any]]:
        found: Iterator[tuple[Chunk, Any]] = rows.beside((self.name,), self.read)
        return found

    def check(self) -> None:
        """Refuse cells that are no finite number; what is spent later is then not spent in vain."""
        for _, _, table in self.files.batches((self.name,)):
            self.read(table)

    def read(self, table: Any) -> Any:
        return _values(table[self.name])


def gathered(outputs: TableOutput) -> Any:
    """All outputs of a table so small that it is not streamed."""
    parts = [outputs.read(table) for _, _, table in outputs.files.batches((outputs.name,))]
    return np.concatenate(parts)


def _values(column: Any) -> Any:
    """Cells as numbers, each read by itself; whatever is wrong, the sentence is the same."""
    is_text = str(column.dtype) == "String"
    if not is_text and not column.dtype.is_numeric():
        raise ValueError(WRONG)
    plain = column.dtype.is_integer() or column.dtype.is_float()
    try:
        if column.null_count():
            raise TypeError
        return column_numbers(column.to_numpy() if plain else column.to_list(), len(column))
    except (TypeError, ValueError):
        raise ValueError(WRONG) from None


def table_people(files: Files, name: str) -> Integers:
    """A code for the person of every row, (rows,); spaces around a text do not make another person."""
    codes = []
    for _, _, frame in files.batches((name,)):
        column = frame[name]
        if str(column.dtype) == "String":
            column = column.str.strip_chars()
            missing = column.is_null() | (column == "")
        else:
            missing = column.is_null()
        if missing.any():
            raise ValueError(NOBODY)
        codes.append(person_codes(column.to_numpy(), len(column)))
    return np.concatenate(codes)
