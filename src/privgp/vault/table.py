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
ANOTHER = "y must be the output of the table whose inputs are X."
CHANGED = "the table was changed while it was read. Nothing was released."
WITH_PEOPLE = [("value", np.float64), ("person", np.int64)]


@dataclass(frozen=True)
class TableOutput:
    """The outputs in the column ``name``: never in memory but for the chunk that is worked on."""

    files: Files
    name: str

    def beside(self, rows: Any, number: int) -> Sequence[PrivateRows]:
        if not hasattr(rows, "files") or rows.files != self.files:
            raise ValueError(ANOTHER)
        return [PrivateRows(part, self) for part in rows.parts(number)]

    def chunks(self, rows: Any) -> Iterator[tuple[Chunk, Any]]:
        if rows.persons is None:
            yield from rows.beside((self.name,), self.read)
            return

        def read(table: Any) -> Any:
            held = np.empty(table.height, dtype=WITH_PEOPLE)
            held["value"], held["person"] = self.read(table), _people(table[rows.people])
            return held

        # Whose rows they are was read before: it must be true of the rows that are multiplied.
        for chunk, held in rows.beside((self.name, rows.people), read):
            if not np.array_equal(held["person"], chunk.people):
                raise ValueError(CHANGED)
            yield chunk, held["value"]

    def check(self) -> None:
        """Refuse cells that are no finite number; what is spent later is then not spent in vain."""
        for _, _, table in self.files.batches((self.name,)):
            self.read(table)

    def check_unchanged(self) -> None:
        """Refuse files that are not those that were opened: rows read before and after a change could
        hold one person twice."""
        self.files.check_unchanged()

    def read(self, table: Any) -> Any:
        return _values(table[self.name])


def gathered(
    outputs: TableOutput, files: Files, people: str | None = None, codes: Integers | None = None
) -> Any:
    """All outputs of a table so small that it is not streamed. ``files``: those of its inputs;
    ``codes``: of the people in the column ``people``, who must still be those of the rows."""
    if outputs.files != files:
        raise ValueError(ANOTHER)
    wanted = (outputs.name,) if people is None else (outputs.name, people)
    tables = [table for _, _, table in outputs.files.batches(wanted)]
    if people is not None:
        now = np.concatenate([_people(table[people]) for table in tables])
        if codes is None or not np.array_equal(now, codes):
            raise ValueError(CHANGED)
    outputs.check_unchanged()
    return np.concatenate([outputs.read(table) for table in tables])


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
    return np.concatenate([_people(frame[name]) for _, _, frame in files.batches((name,))])


def _people(column: Any) -> Integers:
    if str(column.dtype) == "String":
        column = column.str.strip_chars()
        missing = column.is_null() | (column == "")
    else:
        missing = column.is_null()
    if missing.any():
        raise ValueError(NOBODY)
    kind = str(column.dtype)
    exact = kind.startswith("Decimal") or kind.endswith("128")  # of more digits than machine types
    return person_codes(column.to_list() if exact else column.to_numpy(), len(column))
