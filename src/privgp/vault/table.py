"""Private tables: every cell is read separately, by what was declared of its column, in memory or in files."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privgp.plan.inputs.inputs import Inputs
from privgp.tables.files import Files
from privgp.tables.table import Table, cells_without_value, join_cells
from privgp.tables.texts import NOTHING
from privgp.types import Array, Integers, UserData
from privgp.vault.grouped.totals import FileOutcomes
from privgp.vault.labels import values_of
from privgp.vault.validate import clip_inputs, column_numbers, person_codes, seal_outputs
from privgp.vault.values import Sealed, label, read_label, read_number, unseal

WRONG_KINDS = (
    "X must be a table with the declared columns, and hold a value of its kind in every cell."
)


def private_rows(X: object, inputs: Inputs) -> Array:
    """The coordinates of private rows, moved into their declared bounds, (rows, width).

    Parameters
    ----------
    X
        Private table.
    inputs
        The declared kinds and bounds of its columns.

    Raises
    ------
    ValueError
        Whatever is wrong with them, the sentence is the same.

    """
    try:
        found = Table.of(unseal(X))
        if found is None or (not found.named and len(found.names) != len(inputs.names)):
            raise ValueError
        table = found if found.named else Table(inputs.names, found.cells)
        rows = np.hstack([_coordinates(column, table) for column in inputs.columns])
        if not np.all(np.isfinite(rows)):  # nothing read here is refused later, once it is paid for
            raise ValueError
        return rows
    except Exception:
        raise ValueError(WRONG_KINDS) from None


def seal_rows(X: UserData, inputs: Inputs) -> Sealed:
    """The same, on the way to the vault's other functions."""
    rows = private_rows(X, inputs)
    return Sealed(rows, len(rows))


def seal_counts(points: Sealed, bins: Any) -> Sealed:
    """How many private points lie in every bin of the declared domain.

    Points outside are moved to it. A point whose category was not declared lies in no bin.

    Parameters
    ----------
    points : Sealed
        Where they lie, (points, columns).
    bins : PointBins
        Declared.

    """
    place = bins.find(clip_inputs(unseal(points), bins.low, bins.high))
    count = len(bins.places)
    return Sealed(np.bincount(place + 1, minlength=count + 1)[1:].astype(float), count)


def seal_values(y: UserData) -> Sealed:
    """A column of private numbers, checked; their number is public."""
    try:
        rows = len(y)
    except TypeError:
        rows = 0
    if rows < 1:
        raise ValueError("y must be a column of at least one value.")
    return seal_outputs(y, rows)


def seal_magnitudes(values: Sealed, ends: Array) -> Sealed:
    """How many private values lie below the first end, between every two, and above the last.

    Parameters
    ----------
    values : Sealed
        Private numbers.
    ends : array (ends,)
        Declared, rising.

    """
    places = np.searchsorted(ends, unseal(values), side="left")
    return Sealed(np.bincount(places, minlength=len(ends) + 1).astype(float), len(ends) + 1)


def _coordinates(column: Any, table: Table) -> Array:
    cells = [table.column(name) for name in column.names]
    if any(cells_without_value(each).any() for each in cells):
        raise ValueError
    if column.numeric:
        cells = [_numerals(each) for each in cells]
    return np.asarray(column.coordinates(column.within(column.numbers(cells))))


def _numerals(cells: Any) -> Any:
    """Cells that may be texts as numbers, each read as in any private column."""
    if cells.dtype.kind in "biufmM":  # of one machine type, or of none that holds numbers
        return cells
    return np.array([read_number(cell) for cell in cells], dtype=np.float64)


def complete_rows(
    columns: Sequence[Sequence[object]], levels: Sequence[Collection[str]] | None = None
) -> NDArray[np.bool_]:
    """Whether every cell of a row holds something, (rows,). Every cell is judged separately.

    Parameters
    ----------
    columns
        Cells, column by column.
    levels
        Those that were declared of each column, which are values, whatever they are called.

    """
    known = [()] * len(columns) if levels is None else levels
    held = [
        [_holds(cell, own) for cell in column] for column, own in zip(columns, known, strict=True)
    ]
    return np.asarray(np.all(held, axis=0))


def _holds(cell: object, levels: Collection[str]) -> bool:
    if isinstance(cell, str):
        word = cell.strip()
        return word.lower() not in NOTHING or word in levels
    return cell is not None and not (isinstance(cell, float) and np.isnan(cell))


WRONG = "the output column must hold a finite number in every row."
WRONG_INPUTS = "the input columns must hold a finite number in every row."
NO_LABEL = "the output column must hold a label in every row."
NOT_ONE = "y must be one-dimensional, one value for each row of X."
NOBODY = "the column of groups must name a person in every row."
ANOTHER = "y must be the output of the table whose inputs are X."
CHANGED = "the table was changed while it was read. Nothing was released."


@dataclass(frozen=True)
class TableOutput:
    """The outputs in some columns of a table in files: private.

    Attributes
    ----------
    files : files of the table
    names : names of the columns

    """

    files: Files
    names: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The names, as data frames have them."""
        return self.names

    @property
    def name(self) -> str:
        """The name of the only column; ValueError if there are several."""
        if len(self.names) != 1:
            raise ValueError(NOT_ONE)
        return self.names[0]

    def check(self) -> None:
        """Refuse cells that are no finite number; what is spent later is then not spent in vain."""
        for _, _, table in self.files.batches((self.name,)):
            column_values(table[self.name])

    def reader(self, classes: Sequence[object] | None) -> NumberReading | LabelReading:
        """From frames to the outcomes of their rows.

        Parameters
        ----------
        classes
            The declared classes, where outcomes are labels; None: they are numbers.

        """
        return LabelReading(self.names, tuple(classes)) if classes else NumberReading(self.names)


def seal_files(
    outputs: TableOutput, files: Files, rows: Any, classes: Sequence[Any] | None
) -> Sealed:
    """The outcomes of rows in files, on the way to the pass that sums them.

    Parameters
    ----------
    outputs
        Must be of the same files as the rows.
    files
        Those of the inputs.
    rows
        Blocks of them.
    classes
        As ``TableOutput.reader`` has it.

    """
    if outputs.files != files:
        raise ValueError(ANOTHER)
    held = FileOutcomes(rows, files, outputs.names, outputs.reader(classes))
    return Sealed(held, files.rows, outputs.names)


@dataclass(frozen=True, repr=False)
class NumberReading:
    """Numbers in frames under these names."""

    names: tuple[str, ...]

    def __call__(self, table: UserData) -> Array:
        """The outcomes in a frame, (rows, columns)."""
        return np.column_stack([column_values(table[name]) for name in self.names])

    def gather(self, frames: Sequence[UserData]) -> Sealed:
        """All of them, as ``fit`` takes them from memory."""
        found = _numbers(frames, self.names)
        alone = len(self.names) == 1
        names = () if alone else self.names
        return Sealed(found.values[:, 0] if alone else found, len(found.values), names)


@dataclass(frozen=True, repr=False)
class LabelReading:
    """Labels in frames, in a column of this one name."""

    names: tuple[str, ...]
    classes: tuple[object, ...]

    def __call__(self, table: UserData) -> Array:
        """What stands for the labels in a frame, (rows, 1)."""
        labels = self._labels(table)
        return values_of(labels, self.classes, len(labels))[:, None]

    def gather(self, frames: Sequence[UserData]) -> Sealed:
        """All of them, as ``fit`` takes them from memory."""
        labels = [each for frame in frames for each in self._labels(frame)]
        return Sealed(labels, len(labels))

    def _labels(self, table: UserData) -> list[object]:
        if len(self.names) != 1:
            raise ValueError("y must be one-dimensional, one label for each row of X.")
        return _labels(table[self.names[0]], self.classes)


@dataclass(frozen=True, repr=False)
class Numbers:
    """Private numbers under the names of their columns, as a data frame has them.

    Attributes
    ----------
    columns : their names
    values : (rows, columns)

    """

    columns: tuple[str, ...]
    values: Array

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape

    def __len__(self) -> int:
        return len(self.values)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self.values, dtype=dtype, copy=copy)


def gather_outputs(
    outputs: TableOutput,
    files: Files,
    classes: Sequence[Any] | None = None,
    people: str | None = None,
    codes: Integers | None = None,
) -> Sealed:
    """All outputs of a table, as ``fit`` takes them from memory.

    Parameters
    ----------
    outputs : TableOutput
        Must be of the same files as the inputs.
    files : Files
        Those of the inputs.
    classes : sequence, optional
        The declared classes, where outputs are labels. None: they are numbers.
    people, codes : str and array, optional
        The column of people, and whose rows they were when it was read before: they must still be.

    Returns
    -------
    Sealed
        Numbers (rows,), labels (rows,), or several columns of numbers.

    """
    if outputs.files != files:
        raise ValueError(ANOTHER)
    wanted = dict.fromkeys([*outputs.names, *([] if people is None else [people])])
    frames = [frame for _, _, frame in files.batches([*wanted])]
    if people is not None:
        now = np.concatenate([_people(frame[people]) for frame in frames])
        if codes is None or not np.array_equal(now, codes):
            raise ValueError(CHANGED)
    files.refuse_changes()  # rows read before and after a change could hold one person twice
    return outputs.reader(classes).gather(frames)


def gather_inputs(files: Files, names: Sequence[str], kinds: Inputs | None) -> Numbers | Table:
    """All private inputs of a table, as ``fit`` takes them from memory.

    Parameters
    ----------
    files
        Files of the table.
    names
        Names of the columns.
    kinds
        Declared kinds of the columns; None: they are numbers.

    Raises
    ------
    ValueError
        Whatever is wrong, and with whichever of them, the sentence is the same.

    """
    frames = [frame for _, _, frame in files.batches(names)]
    if kinds is None:
        try:
            return _numbers(frames, names)
        except ValueError:
            raise ValueError(WRONG_INPUTS) from None
    try:
        cells = [join_cells([frame[name].to_numpy() for frame in frames]) for name in names]
    except Exception:  # of other libraries: they may quote values
        raise ValueError(WRONG_KINDS) from None
    return Table(tuple(names), tuple(cells))


def _numbers(frames: Sequence[Any], names: Sequence[str]) -> Numbers:
    columns = [np.concatenate([column_values(frame[name]) for frame in frames]) for name in names]
    return Numbers(tuple(names), np.column_stack(columns))


def _labels(column: UserData, classes: Sequence[object]) -> list[object]:
    """Every cell as the declared class that it is: the same value, as in memory, or else written as the
    class is. A cell that is none of them stays a text, which belongs to no class."""
    exact = {label(each): each for each in classes}
    written = {read_label(each): each for each in reversed(classes)}
    found = []
    for cell in column.to_list():
        text = read_label(cell)
        if text is None:
            raise ValueError(NO_LABEL)
        found.append(exact.get(label(cell), written.get(text, text)))
    return found


def column_values(column: UserData) -> Array:
    """Cells as numbers, each read separately; whatever is wrong, the sentence is the same."""
    kind = str(column.dtype)
    if kind not in ("String", "Boolean") and not column.dtype.is_numeric():
        raise ValueError(WRONG)
    plain = column.dtype.is_integer() or column.dtype.is_float() or kind == "Boolean"
    try:
        if column.null_count():
            raise TypeError
        return column_numbers(column.to_numpy() if plain else column.to_list(), len(column))
    except (TypeError, ValueError):
        raise ValueError(WRONG) from None


def table_people(files: Files, name: str) -> Integers:
    """A code for the person of every row, (rows,); spaces around a text do not make another person.

    Raises
    ------
    ValueError
        A row names nobody.

    """
    return np.concatenate([_people(frame[name]) for _, _, frame in files.batches((name,))])


def _people(column: UserData) -> Integers:
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
