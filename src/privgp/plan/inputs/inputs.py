"""All input columns of a release: from a table to numbers, to coordinates of the kernel, and back."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from privgp.gp.kernels.registry import parts
from privgp.question.rules import check_bounds
from privgp.tables.kinds import KINDS, Column, Number, level, levels_of
from privgp.tables.table import Table, cells_without_value, holds_others, kind_of
from privgp.tables.texts import ISO_DATE, disguise_of
from privgp.types import Array, Pair, UserData

MOST_PLAIN_LEVELS = 50  # of a column of text that was not declared
NUMBERS = ("number", "boolean")
OPTIONS = {"category": "levels", "periodic": "period", "place": "crs"}
NEED_PERIOD = "is periodic, so give its period, such as ('periodic', 24)."
FORM = (
    "columns must say what inputs are by their names, such as {'when': 'date', 'region': 'category', "
    "('lat', 'lon'): 'place', 'hour': ('periodic', 24)}."
)
PRIVATE_FORM = (
    "with protect='records' and columns, x_bounds must have a pair for every input that has bounds, by "
    "its name, and columns must say what is not a number, such as columns={'when': 'date'} and "
    "x_bounds={'when': ('2020-01-01', '2024-12-31'), 'age': (0, 90)}."
)


def list_columns(columns: object) -> list[str]:
    """The names of all columns that a declaration is about."""
    if not isinstance(columns, Mapping | None):
        raise ValueError(FORM)
    return [n for key in columns or () for n in (key if isinstance(key, tuple) else (key,))]


@dataclass(frozen=True)
class Inputs:
    """The columns in their order."""

    columns: tuple[Column, ...]

    @classmethod
    def of(cls, table: Table | None, declared: Any) -> Self | None:
        """What the columns of a public table are: as declared, or inferred.

        None if all of them are numbers anyway, or if they are no table's.
        """
        known = getattr(table, "kinds", declared)  # a table read from files may know it already
        if isinstance(known, Inputs):
            return known  # type: ignore[return-value]
        if table is not None and table.places:
            declared = {key: ("place", crs) for key, crs in table.places} | dict(declared or {})
        if declared is None:
            _refuse_others(table)
            kinds = [] if table is None else [kind_of(cells) for cells in table.cells]
            if table is None or None in kinds or all(kind in NUMBERS for kind in kinds):
                return None
        if table is None:
            raise ValueError(
                "columns goes with a table: give X as one, with a name for each column."
            )
        asked = _declarations(declared or {}, table)
        columns, seen = [], set[str]()
        for name in table.names:
            if name not in seen:
                names, kind, option = asked.get(name) or _plain(table, name)
                columns.append(_column(names, kind, option, table))
                seen.update(names)
        return cls(tuple(columns))

    @classmethod
    def private(cls, declared: object, x_bounds: object) -> Self:
        """What private columns are, as declared: nothing is known of them but this.

        A column that has bounds and is not in ``declared`` is a number.
        """
        if isinstance(declared, Inputs):
            return declared  # type: ignore[return-value]
        if not isinstance(declared, Mapping) or not isinstance(x_bounds, Mapping):
            raise ValueError(PRIVATE_FORM)
        every = list_columns(declared)
        numbers = {name: "number" for name in x_bounds if name not in every}
        declared, every = {**declared, **numbers}, [*every, *numbers]
        table = Table(tuple(map(str, every)), tuple(np.empty(0, dtype=object) for _ in every))
        columns = []
        for key in declared:
            names, kind, option = _declarations({key: declared[key]}, table)[np.ravel(key)[0]]
            if kind == "category" and option is None:
                raise ValueError(
                    f"the levels of the private column {names[0]!r} must be declared, such as "
                    "('category', ['north', 'south'])."
                )
            columns.append(_with_bounds(_column(names, kind, option, table), x_bounds))
        return cls(tuple(columns))

    def check(self) -> None:
        if len({*self.names}) != len(self.names) or not self.columns:
            raise ValueError("columns are broken.")

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for column in self.columns for name in column.names)

    @property
    def widths(self) -> tuple[int, ...]:
        """How many coordinates every column has."""
        return tuple(column.width for column in self.columns)

    @property
    def width(self) -> int:
        return sum(self.widths)

    @property
    def dimensions(self) -> int:
        """How many inputs vary on their own."""
        return max(1, sum(column.dimensions for column in self.columns))

    @property
    def plain_coordinates(self) -> tuple[int, ...]:
        """The coordinates whose ranks mean nothing."""
        ranked = np.repeat([column.ranked for column in self.columns], self.widths)
        return tuple(map(int, np.flatnonzero(~ranked)))

    @property
    def ticks(self) -> tuple[str | tuple[str, ...] | None, ...]:
        """How numbers along every input are written: None, "date", or the names of levels."""
        return tuple(column.ticks for column in self.columns for _ in column.names)

    @property
    def drawn(self) -> list[int]:
        """The order of the numbers in pictures: of places, east goes to the right."""
        starts = np.cumsum([0, *(column.name_count for column in self.columns)])
        pairs = zip(starts, self.columns, strict=False)
        return [int(start) + place for start, column in pairs for place in column.picture_order]

    def unwrap(self, numbers: Array) -> Array:
        """The same numbers, written so that neighbours are next to each other."""
        pairs = zip(self.columns, self._split(numbers), strict=True)
        return np.hstack([column.unwrap(part) for column, part in pairs])

    @property
    def domain(self) -> tuple[Pair, ...] | None:
        """Bounds of every coordinate, where they were declared."""
        if any(column.bounded and not column.bounds for column in self.columns):
            return None
        pairs = np.vstack([column.domain() for column in self.columns]).tolist()
        return tuple((low, high) for low, high in pairs)

    def range_ends(self) -> Array:
        """The ends of the declared range of every input, (names, 2)."""
        return np.vstack([column.range_ends() for column in self.columns])

    def ends(self, numbers: Array) -> Array:
        """The ends of the range of every input, (names, 2)."""
        pairs = zip(self.columns, self._split(numbers), strict=True)
        return np.vstack([column.ends(part) for column, part in pairs])

    def middle(self, numbers: Array) -> Array:
        """A typical row."""
        pairs = zip(self.columns, self._split(numbers), strict=True)
        return np.concatenate([column.middle(part) for column, part in pairs])

    def numbers(self, given: UserData) -> Array:
        """The cells of a table, (rows, names). The table may have other columns too."""
        table = Table.of(given)
        if table is None:
            raise ValueError(f"X must be a table with the columns {', '.join(self.names)}.")
        if not table.named:
            if len(table.names) != len(self.names):
                raise ValueError(
                    f"X has {len(table.names)} columns, but the inputs are {', '.join(self.names)}."
                )
            table = Table(self.names, table.cells)
        absent = [name for name in self.names if name not in table.names]
        if absent:
            raise ValueError(f"X has no column {absent[0]!r}.")
        return np.hstack([_numbers(column, table) for column in self.columns])

    def table(self, numbers: Array) -> dict[str, Any]:
        """The cells that have these numbers, by their names."""
        cells = (c.cells(part) for c, part in zip(self.columns, self._split(numbers), strict=True))
        return dict(zip(self.names, (cell for each in cells for cell in each), strict=True))

    def coordinates(self, numbers: Array) -> Array:
        """Where the kernel has these rows, (rows, width)."""
        pairs = zip(self.columns, self._split(numbers), strict=True)
        return np.hstack([column.coordinates(part) for column, part in pairs])

    def back(self, coordinates: Array) -> Array:
        """The numbers at coordinates."""
        pairs = zip(self.columns, np.split(coordinates, self._ends, axis=1), strict=True)
        return np.hstack([column.back(part) for column, part in pairs])

    def locate_table(self, given: object) -> Array:
        """Where the kernel has the rows of a table."""
        return self.coordinates(self.numbers(given))

    def scales(self, coordinates: Array) -> Array:
        """A typical lengthscale for every coordinate: the spread of its column, the more the more
        columns there are."""
        total = sum(column.dimensions for column in self.columns)
        parts = np.split(coordinates, self._ends, axis=1)
        pairs = zip(self.columns, parts, strict=True)
        scales = [column.spread(part) * np.sqrt(total) for column, part in pairs]
        return np.repeat(scales, self.widths)

    def kernel(self, kernel: Kernel) -> Kernel:
        """A kernel whose lengthscales are one per column, as one whose are one per coordinate."""
        kernel, count = deepcopy(kernel), len(self.columns)
        for leaf in parts(kernel):
            scales = getattr(leaf, "length_scale", 1.0)
            if np.size(scales) == count and count > 1:
                leaf.length_scale = np.repeat(scales, self.widths)
        return kernel

    def describe(self) -> list[str]:
        """What every column is, in words."""
        return [column.describe() for column in self.columns]

    @property
    def _ends(self) -> Any:
        return np.cumsum(self.widths)[:-1]

    def _split(self, numbers: Array) -> list[Array]:
        return np.split(numbers, np.cumsum([c.name_count for c in self.columns])[:-1], axis=1)


def scale_widths(inputs: Inputs) -> tuple[int, ...]:
    """How many neighbouring coordinates have one lengthscale, for every lengthscale."""
    return tuple(c.width // c.scales for c in inputs.columns for _ in range(c.scales))


def narrow_kernel(inputs: Inputs, kernel: Kernel) -> Kernel:
    """The kernel without lengthscales that repeat others: those of one column."""
    widths = scale_widths(inputs)
    kernel, firsts = deepcopy(kernel), np.cumsum((0, *widths[:-1]))
    for leaf in parts(kernel):
        scales = np.ravel(getattr(leaf, "length_scale", 1.0))
        if len(scales) == inputs.width > 1:
            one = len(widths) == 1
            leaf.length_scale = float(scales[0]) if one else scales[firsts]
    return kernel


def unknown_rows(inputs: Inputs, given: object) -> int:
    """How many rows of a table have a level that is not among those known."""
    limited = Inputs(tuple(c for c in inputs.columns if c.most < np.inf))
    if not limited.columns:
        return 0
    most = np.array([column.most for column in limited.columns])
    return int(np.any(limited.numbers(given) > most, axis=1).sum())


def ranges(inputs: Inputs, coordinates: Array) -> list[str]:
    """How far these points reach along every column, in words, where that can be said."""
    pairs = zip(
        inputs.columns, np.split(coordinates, np.cumsum(inputs.widths)[:-1], axis=1), strict=True
    )
    told = [column.range_of(part) for column, part in pairs]
    return [each for each in told if each]


def _with_bounds(column: Column, x_bounds: Mapping[Any, Any]) -> Column:
    """A private column with its declared bounds, in its numbers."""
    if not column.bounded:
        return column
    pairs = []
    single = column if column.name_count == 1 else Number(column.names[:1])
    for name in column.names:
        if name not in x_bounds:
            raise ValueError(
                f"x_bounds must have a pair for {name!r}: bounds of private inputs are declared, "
                "never read from the data."
            )
        ends = np.array([*x_bounds[name]], dtype=object)
        try:
            low, high = single.numbers([ends])[:, 0].tolist()
        except (ValueError, TypeError, OverflowError):
            raise ValueError(f"x_bounds must be two {column.holds} for {name!r}.") from None
        pairs.append(check_bounds(f"x_bounds of {name!r}", (low, high)))
    bounded: Column = column.with_bounds(tuple(pairs))
    return bounded


def _declarations(declared: object, table: Table) -> dict[str, tuple[tuple[str, ...], str, object]]:
    """What was declared of every column, by each of its names."""
    if not isinstance(declared, Mapping):
        raise ValueError(FORM)
    asked: dict[str, tuple[tuple[str, ...], str, object]] = {}
    for key, said in declared.items():
        names = key if isinstance(key, tuple) else (key,)
        if not table.named:
            names = tuple(_name_at(table, name) for name in names)
        kind, option = said if isinstance(said, tuple | list) and len(said) == 2 else (said, None)
        if not isinstance(kind, str) or kind not in KINDS:
            listed = ", ".join(repr(each) for each in KINDS)
            raise ValueError(f"columns must name one of {listed} for {key!r}, got {said!r}.")
        for name in names:
            if name not in table.names:
                raise ValueError(f"columns has {name!r}, which is not a column of X.")
            if name in asked:
                raise ValueError(f"columns has {name!r} twice.")
            asked[name] = names, kind, option
    return asked


def _name_at(table: Table, place: Any) -> Any:
    """The name of a column without one, which is told by its place from 0."""
    whole = isinstance(place, Integral) and not isinstance(place, bool)
    return table.names[int(place)] if whole and 0 <= place < len(table.names) else place


def _refuse_others(table: Table | None) -> None:
    """Refuse durations, which would become a number of ticks, and what is no cell of any kind, such as
    a shape or a month."""
    for name, cells in () if table is None else zip(table.names, table.cells, strict=True):
        if cells.dtype.kind == "m":
            raise ValueError(
                f"column {name!r} holds durations: turn them into numbers first, such as days."
            )
        if table is not None and table.named and holds_others(cells):
            raise ValueError(
                f"column {name!r} holds neither numbers nor dates, truth values or text: leave it out, "
                "or turn it into columns that do, such as latitude and longitude."
            )


def _plain(table: Table, name: str) -> tuple[tuple[str, ...], str, object]:
    """The inferred kind of a column."""
    cells = table.column(name)
    kind = kind_of(cells)
    if kind is None:
        raise ValueError(
            f"column {name!r} holds neither numbers nor dates, truth values or text alone: declare "
            "its kind with columns, or leave it out."
        )
    if kind == "category":
        levels = levels_of(cells[~cells_without_value(cells)])
        looks = disguise_of(levels)
        if looks == "dates" and all(map(ISO_DATE.match, levels)):
            return (name,), "date", None
        if looks is not None:
            raise ValueError(
                f"column {name!r} holds {looks} as text, such as {levels[0]!r}: turn them into "
                f"{looks}, or say with columns that it is a {looks[:-1]} or a category."
            )
        count = len(levels)
        if count > MOST_PLAIN_LEVELS:
            raise ValueError(
                f"column {name!r} holds {count} different texts: leave it out, or say that it is a "
                "category or a date with columns (--categories, --dates)."
            )
    return (name,), kind, None


def _column(names: tuple[str, ...], kind: str, option: Any, table: Table) -> Column:
    made = KINDS[kind]
    if kind not in OPTIONS and option is not None:
        raise ValueError(f"columns has {option!r} for {names[0]!r}, but a {kind} takes no option.")
    if len(names) != made(names).name_count:
        two = "two columns, such as ('lat', 'lon')" if kind == "place" else "one column"
        raise ValueError(f"columns has {', '.join(map(repr, names))} as {kind}, which is {two}.")
    if kind == "periodic":
        try:
            option = float(option)
        except (TypeError, ValueError):
            raise ValueError(f"column {names[0]!r} {NEED_PERIOD}") from None
        if not 0.0 < option < np.inf:
            raise ValueError(f"column {names[0]!r} {NEED_PERIOD}")
    if kind == "category":
        cells = table.column(names[0])
        declared = None if option is None else tuple(map(level, option))
        found = levels_of(cells[~cells_without_value(cells)])
        ordered = [each for each in map(level, table.orders.get(names[0], ())) if each in found]
        option = declared or tuple(ordered) or found
    column: Column = made(names, **({OPTIONS[kind]: option} if kind in OPTIONS else {}))
    column.check()
    return column


def _numbers(column: Column, table: Table) -> Array:
    """The numbers of one column, every cell of which must hold one; rows are counted from 1."""
    cells = [table.column(name) for name in column.names]
    for name, each in zip(column.names, cells, strict=True):
        missing = cells_without_value(each)
        if missing.any():
            raise ValueError(
                f"column {name!r} has no value in row {int(missing.argmax()) + 1}: fill it in, or "
                "leave out the rows where values are missing."
            )
    try:
        return column.numbers(cells)
    except (ValueError, OverflowError) as problem:
        told = " and ".join(map(repr, column.names))
        plural = "s" if len(cells) > 1 else ""
        if str(problem).startswith(("pyproj", "a place with")):
            raise
        other = "; categories and dates must be declared" if column.kind == "number" else ""
        raise ValueError(
            f"column{plural} {told} must hold {column.holds}: row {_first_wrong(column, cells)} does "
            f"not{other}."
        ) from None


def _first_wrong(column: Column, cells: list[Any]) -> int:
    """The first row, counted from 1, that cannot be read, found by halves."""
    low, high = 0, len(cells[0])
    while high - low > 1:
        middle = (low + high) // 2
        try:
            column.numbers([each[low:middle] for each in cells])
            low = middle
        except (ValueError, OverflowError):
            high = middle
    return low + 1
