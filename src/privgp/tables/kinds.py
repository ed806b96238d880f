"""Kinds of input columns: how cells become numbers, and numbers coordinates of the kernel.

A column's *numbers* are what people know it by: a value, days since 1970, the place of a level, a
latitude and a longitude. Its *coordinates* are where the kernel measures distances; they share one
lengthscale. Every value is read separately, whatever the other rows hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from numbers import Real
from typing import Annotated, ClassVar

import numpy as np

from privgp.tables.dates import days_of, instants
from privgp.tables.places import from_crs, great_circle, in_degrees, on_sphere, to_crs
from privgp.types import Array, Cells, Integers, Pair, Within

MOST_LEVELS = 1000
LONGEST_PERIOD = 1e50  # and one over it the shortest, so that no value has a place that overflows
EDGE = 65  # points along either side of a box of places
TINY = 1e-9  # degrees
# Names that leave no doubt; x and y are not among them, as surveyors have them both ways.
LONGITUDES, LATITUDES = ("longitude", "lon", "lng", "long"), ("latitude", "lat")
EASTWARDS, NORTHWARDS = ("easting", "east"), ("northing", "north")
SECOND = 1.1 / 3600.0  # in hours: days often end at 23:59:59
EVEN_SPREAD = 0.5  # the std of a truth value that is true as often as not
EPOCH = "days since 1970-01-01 00:00:00"
TRUTHS = {"true": 1.0, "false": 0.0, "1": 1.0, "0": 0.0}


@dataclass(frozen=True)
class Number:
    """A number as it is."""

    dimensions: ClassVar[int] = 1
    name_count: ClassVar[int] = 1  # how many columns of a table it is made of
    width: ClassVar[int] = 1
    scales: ClassVar[int] = 1  # how many lengthscales its coordinates have, each as many
    ranked: ClassVar[bool] = True  # whether its ranks may hold more information than its values
    ticks: ClassVar[str | tuple[str, ...] | None] = None
    holds: ClassVar[str] = "numbers"
    picture_order: ClassVar[tuple[int, ...]] = (0,)  # the order of its numbers in pictures
    bounded: ClassVar[bool] = True  # whether private values need declared bounds
    numeric: ClassVar[bool] = True  # whether cells are numbers
    # Between the ends of a range; "|" between values of which there are few.
    apart: ClassVar[str] = ":"
    names: tuple[str, ...]
    kind: Annotated[str, ("number",)] = "number"
    bounds: tuple[Pair, ...] = ()

    @property
    def most(self) -> float:
        """The largest number with a meaning; infinite unless numbers are places of levels."""
        return np.inf

    @property
    def system(self) -> str | None:
        """The coordinate reference system, such as "EPSG:27700", if the column has one."""
        return None

    def conventions(self) -> list[dict[str, object]]:
        """The attributes that the CF conventions give each of its numbers, one mapping per name."""
        return [{}]

    def check(self) -> None:
        """Refuse another number of names or of bounds than the kind has; ValueError."""
        if len(self.names) != self.name_count or len(self.bounds) not in (0, self.name_count):
            raise ValueError("columns are broken.")

    def within(self, numbers: Array) -> Array:
        """Numbers moved into the declared bounds, each separately, (rows, names)."""
        return np.clip(numbers, *np.transpose(self.bounds)) if self.bounds else numbers

    def range_ends(self) -> Array:
        """The ends of the declared range, (names, 2)."""
        return np.array(self.bounds) if self.bounded else self.ends(np.empty((0, 1)))

    @property
    def has_round_bounds(self) -> bool:
        """Whether the declared bounds look so, and not read from the data."""
        return all(are_round(*pair) for pair in self.bounds)

    def domain(self) -> Array:
        """A box around the coordinates of all declared numbers, (width, 2); for private inputs."""
        return self.range_ends()

    def with_bounds(self, bounds: tuple[Pair, ...]) -> Number:
        """The same column where its values are private and lie in these bounds."""
        return replace(self, bounds=bounds)

    def numbers(self, cells: Sequence[Cells]) -> Array:
        """The numbers of cells, (rows, names).

        Every cell is read separately, as private tables are read by this too.

        Parameters
        ----------
        cells
            An array per name, none of them with missing cells.

        Raises
        ------
        ValueError
            A cell is of another kind; the text names no cell.

        """
        return _floats(cells[0])[:, None]

    def cells(self, numbers: Array) -> list[Cells]:
        """The cells that have these numbers, (rows, names): one array per name."""
        return [numbers[:, 0]]

    def coordinates(self, numbers: Array) -> Array:
        """The coordinates on which the kernel acts, (rows, width), from numbers, (rows, names)."""
        return numbers

    def back(self, coordinates: Array) -> Array:
        """The numbers at coordinates, (rows, names), from (rows, width)."""
        return coordinates

    def degrees(self, numbers: Array) -> Array | None:
        """Latitudes and longitudes, (rows, 2), if it is a place; None otherwise."""
        return None

    def unwrap(self, numbers: Array) -> Array:
        """The same numbers, written so that neighbours are next to each other."""
        return numbers

    def ends(self, numbers: Array) -> Array:
        """The ends of their range as ``unwrap``, (names, 2)."""
        return np.array([_limits(column) for column in self.unwrap(numbers).T])

    def axis(self, low: float, high: float, count: int) -> Array:
        """Points along a range from ``low`` to ``high``: at most ``count``, fewer of whole levels."""
        return np.linspace(low, high, count)

    def middle(self, numbers: Array) -> Array:
        """A typical value among numbers, (names,)"""
        return np.asarray(np.median(numbers, axis=0))

    def spread(self, coordinates: Array) -> float:
        """How far apart values typically are, along one of its dimensions, in units of the
        coordinates.

        1 if all are equal.
        """
        total = float(np.sum(np.var(coordinates, axis=0))) / self.dimensions
        floor = 1e-12 * float(np.abs(coordinates).max())
        return float(np.sqrt(total)) if total > floor**2 else 1.0

    def describe(self) -> str:
        """The column in words, with its kind and its declared bounds."""
        return f"{self.names[0]} (a number{self.describe_bounds()})"

    def range_of(self, coordinates: Array) -> str:
        """How far points reach, in words; empty for kinds with no ends."""
        low, high = self.cells(self.ends(self.back(coordinates)).T)[0]
        low, high = (f"{each:.7g}" if isinstance(each, float) else each for each in (low, high))
        return f"{self.names[0]} from {low} to {high}"

    def describe_bounds(self) -> str:
        """The declared bounds in words, if there are any."""
        cells = [self.cells(np.array([ends]).T)[0] for ends in self.bounds]
        return "".join(f", {low} to {high}" for low, high in cells)


@dataclass(frozen=True)
class Levelled(Number):
    """One of few values, in no order: its numbers are their places, and ``ticks`` their names."""

    ranked: ClassVar[bool] = False
    bounded: ClassVar[bool] = False
    numeric: ClassVar[bool] = False
    apart: ClassVar[str] = "|"

    @property
    def most(self) -> float:
        """The place of the last level; one more stands for an unknown level."""
        return len(self.ticks or ()) - 1.0

    def ends(self, numbers: Array) -> Array:
        return np.array([[0.0, self.most]])

    def axis(self, low: float, high: float, count: int) -> Array:
        return np.arange(np.rint(low), np.rint(high) + 1.0)

    def middle(self, numbers: Array) -> Array:
        """The most frequent level."""
        return np.array([float(np.bincount(numbers[:, 0].astype(np.int64)).argmax())])

    def spread(self, coordinates: Array) -> float:
        return EVEN_SPREAD

    def range_of(self, coordinates: Array) -> str:
        return ""


@dataclass(frozen=True)
class Boolean(Levelled):
    """True or false, as 1 or 0."""

    ticks: ClassVar[str | tuple[str, ...] | None] = ("false", "true")
    holds: ClassVar[str] = "true or false"
    kind: Annotated[str, ("boolean",)] = "boolean"

    def numbers(self, cells: Sequence[Cells]) -> Array:
        """1 for true and 0 for false, (rows, 1); texts such as "yes" are read too."""
        column = cells[0]
        if column.dtype.kind == "b":
            return np.asarray(column[:, None], dtype=np.float64)
        try:
            return np.array([[TRUTHS[level(cell).lower()]] for cell in column])
        except KeyError:
            raise ValueError("not true or false") from None

    def cells(self, numbers: Array) -> list[Cells]:
        return [numbers[:, 0] > 0.5]

    def describe(self) -> str:
        return f"{self.names[0]} (true or false)"


@dataclass(frozen=True)
class Date(Number):
    """An instant, in days since 1970-01-01 00:00 UTC."""

    numeric: ClassVar[bool] = False
    ticks: ClassVar[str | tuple[str, ...] | None] = "date"
    holds: ClassVar[str] = "dates"
    kind: Annotated[str, ("date",)] = "date"

    def numbers(self, cells: Sequence[Cells]) -> Array:
        """Days since 1970-01-01 00:00 UTC, (rows, 1)."""
        return days_of(cells[0])[:, None]

    def cells(self, numbers: Array) -> list[Cells]:
        return [instants(numbers[:, 0])]

    @property
    def has_round_bounds(self) -> bool:
        """Whether both bounds are whole hours."""
        hours = 24.0 * np.ravel(self.bounds)
        return bool(np.all(np.abs(hours - np.rint(hours)) < SECOND))

    def conventions(self) -> list[dict[str, object]]:
        return [{"standard_name": "time", "units": EPOCH, "calendar": "standard"}]

    def describe_bounds(self) -> str:
        return _short(super().describe_bounds())

    def range_of(self, coordinates: Array) -> str:
        return _short(super().range_of(coordinates))

    def describe(self) -> str:
        told = self.describe_bounds()
        return f"{self.names[0]} (a date, in days; UTC where no time zone is given{told})"


def _short(text: str) -> str:
    """Dates without a time of zero, and times without fractions of zero."""
    return text.replace("T00:00:00.000000", "").replace(".000000", "")


@dataclass(frozen=True)
class Periodic(Number):
    """A number on a circle, ``period`` around: coordinates in its own units."""

    width: ClassVar[int] = 2
    ranked: ClassVar[bool] = False
    bounded: ClassVar[bool] = False
    kind: Annotated[str, ("periodic",)] = "periodic"
    period: Annotated[float, Within(1.0 / LONGEST_PERIOD, LONGEST_PERIOD)] = 1.0

    def check(self) -> None:
        super().check()
        if not 1.0 / LONGEST_PERIOD <= self.period <= LONGEST_PERIOD:
            raise ValueError(
                f"the period of {self.names[0]!r} must lie between {1.0 / LONGEST_PERIOD:g} and "
                f"{LONGEST_PERIOD:g}, got {self.period:g}."
            )

    def numbers(self, cells: Sequence[Cells]) -> Array:
        """Numbers between 0 and the period, (rows, 1)."""
        return np.mod(super().numbers(cells), self.period)

    def ends(self, numbers: Array) -> Array:
        return np.array([[0.0, self.period]])

    def domain(self) -> Array:
        radius = self.period / (2.0 * np.pi)
        return np.array([[-radius, radius]] * 2)

    def coordinates(self, numbers: Array) -> Array:
        """Points on a circle whose circumference is the period, (rows, 2)."""
        angle = 2.0 * np.pi * numbers[:, 0] / self.period
        return self.period / (2.0 * np.pi) * np.column_stack([np.cos(angle), np.sin(angle)])

    def back(self, coordinates: Array) -> Array:
        turns = np.arctan2(coordinates[:, 1], coordinates[:, 0]) / (2.0 * np.pi)
        return np.asarray(np.mod(turns, 1.0)[:, None] * self.period)

    def range_of(self, coordinates: Array) -> str:
        return ""

    def describe(self) -> str:
        return f"{self.names[0]} (with period {self.period:g})"


@dataclass(frozen=True)
class Category(Levelled):
    """One of several levels, every two of them at distance 1. A level that is not among them is at
    distance 1 of them all: what is known of it is what they have in common."""

    holds: ClassVar[str] = "categories"
    kind: Annotated[str, ("category",)] = "category"
    levels: tuple[str, ...] = ()

    def check(self) -> None:
        super().check()
        if not 1 <= len({*self.levels}) == len(self.levels) <= MOST_LEVELS:
            raise ValueError(
                f"the levels of {self.names[0]!r} must be between 1 and {MOST_LEVELS:,}, none twice."
            )

    @property
    def width(self) -> int:  # type: ignore[override]
        """One coordinate per level."""
        return len(self.levels)

    @property
    def ticks(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.levels

    def conventions(self) -> list[dict[str, object]]:
        words = " ".join("_".join(name.split()) for name in self.levels)
        codes = np.arange(len(self.levels), dtype=np.int32)
        return [{"flag_values": codes, "flag_meanings": words}]

    def numbers(self, cells: Sequence[Cells]) -> Array:
        """The place of the level, from 0; their number for a level that is unknown."""
        places = {name: float(k) for k, name in enumerate(self.levels)}
        unknown = float(len(self.levels))
        return np.array([[places.get(level(cell), unknown)] for cell in cells[0]])

    def cells(self, numbers: Array) -> list[Cells]:
        levels = np.array([*self.levels, "another level"], dtype=object)
        return [levels[_places(numbers, len(self.levels))]]

    def domain(self) -> Array:
        points = self.coordinates(np.arange(len(self.levels) + 1.0)[:, None])
        return np.column_stack([points.min(axis=0), points.max(axis=0)])

    def coordinates(self, numbers: Array) -> Array:
        """Corners of a simplex with edges of length 1, (rows, levels).

        An unknown level is one more corner, at distance 1 of all others.
        """
        count = len(self.levels)
        # so far out along the diagonal, the other way, is the point at distance 1 of all levels
        apart = (1.0 - np.sqrt(1.0 + count)) / (count * np.sqrt(2.0))
        points = np.vstack([np.eye(count) / np.sqrt(2.0), np.full(count, apart)])
        return np.asarray(points[_places(numbers, count)])

    def back(self, coordinates: Array) -> Array:
        unknown = coordinates.max(axis=1) <= 0.0
        places = np.where(unknown, len(self.levels), coordinates.argmax(axis=1))
        return np.asarray(places[:, None], dtype=np.float64)

    def describe(self) -> str:
        shown = ", ".join(self.levels[:5]) + (", ..." if len(self.levels) > 5 else "")
        return f"{self.names[0]} (a category of {len(self.levels)}: {shown})"


@dataclass(frozen=True)
class Place(Number):
    """A latitude and a longitude in degrees, or east and north in a ``crs``; coordinates in
    kilometres, on the sphere."""

    dimensions: ClassVar[int] = 2
    name_count: ClassVar[int] = 2
    width: ClassVar[int] = 3
    ranked: ClassVar[bool] = False
    holds: ClassVar[str] = "coordinates, latitude and longitude in degrees unless a crs is given"
    kind: Annotated[str, ("place",)] = "place"
    crs: str | None = None

    def check(self) -> None:
        super().check()
        first, second = (name.strip().lower() for name in self.names)
        swapped = (
            first in LONGITUDES and second in LATITUDES
            if self.crs is None
            else first in (*LATITUDES, *NORTHWARDS) and second in (*LONGITUDES, *EASTWARDS)
        )
        if swapped:
            raise ValueError(
                f"the place {self.names[0]!r}, {self.names[1]!r} is the wrong way round: latitude comes "
                "before longitude, but in a crs east before north."
            )

    @property
    def picture_order(self) -> tuple[int, ...]:  # type: ignore[override]
        return (1, 0) if self.crs is None else (0, 1)

    def numbers(self, cells: Sequence[Cells]) -> Array:
        """Two numbers per row, (rows, 2), as the cells have them.

        Raises
        ------
        ValueError
            A place is not on the earth, or cells are no numbers.

        """
        numbers = np.column_stack([_floats(column) for column in cells])
        degrees = self.degrees(numbers)
        if not np.all(np.isfinite(degrees)) or np.any(np.abs(degrees) > (90.0, 360.0)):
            raise ValueError("not on the earth")
        return numbers

    def within(self, numbers: Array) -> Array:
        """In the declared bounds, each separately, a longitude after as many turns as it takes; in their
        middle where a CRS has no place there."""
        inside = super().within(self._wrap_longitudes(numbers))
        lost = ~np.all(np.isfinite(self.degrees(inside)), axis=1, keepdims=True)
        return np.where(lost, np.mean(self.bounds, axis=1), inside) if self.bounds else inside

    def _wrap_longitudes(self, numbers: Array) -> Array:
        """With longitudes between the bounds where the same place has one there: -175 is 185."""
        if self.crs is not None or not self.bounds:
            return numbers
        (low, high), lon = self.bounds[1], numbers[:, 1]
        east = low + np.mod(lon - low, 360.0)
        beyond = (lon < low) | (lon > high)
        return np.column_stack([numbers[:, 0], np.where(beyond & (east <= high), east, lon)])

    def cells(self, numbers: Array) -> list[Cells]:
        if self.crs is not None:
            return [*numbers.T]
        return [numbers[:, 0], np.mod(numbers[:, 1] + 180.0, 360.0) - 180.0]

    def unwrap(self, numbers: Array) -> Array:
        """Longitudes from the widest gap on: also beyond 180, where places lie on either side."""
        if self.crs is not None or not len(numbers):
            return numbers
        lon = np.unique(np.mod(numbers[:, 1], 360.0))
        gaps = np.diff(lon, append=lon[0] + 360.0)
        first = lon[(int(gaps.argmax()) + 1) % len(lon)]
        first -= (360.0 if first >= 180.0 else 0.0) + TINY  # lest rounding sends it round the globe
        return np.column_stack([numbers[:, 0], first + np.mod(numbers[:, 1] - first, 360.0)])

    @property
    def ticks(self) -> str | None:  # type: ignore[override]
        return "longitude" if self.crs is None else None

    @property
    def system(self) -> str | None:
        return self.crs

    def conventions(self) -> list[dict[str, object]]:
        if self.crs is not None:
            return [{"standard_name": f"projection_{side}_coordinate"} for side in "xy"]
        return [
            {"standard_name": "latitude", "units": "degrees_north"},
            {"standard_name": "longitude", "units": "degrees_east"},
        ]

    def with_bounds(self, bounds: tuple[Pair, ...]) -> Place:
        return FlatPlace(self.names, bounds=bounds, crs=self.crs)

    def domain(self) -> Array:
        points = self.coordinates(self._lattice())
        low, high = points.min(axis=0), points.max(axis=0)
        pad = 1e-3 * float((high - low).max()) + 1e-6  # for what lies between the points
        return np.column_stack([low - pad, high + pad])

    def _lattice(self) -> Array:
        """Places over the whole declared bounds, each of which is on the earth, (places, 2)."""
        turn = np.inf if self.crs is not None else 360.0  # beyond it come the same longitudes
        corners = [np.linspace(low, min(high, low + turn), EDGE) for low, high in self.bounds]
        lattice = np.stack([each.ravel() for each in np.meshgrid(*corners)], axis=1)
        if not np.all(np.isfinite(self.degrees(lattice))):
            raise ValueError(
                f"x_bounds of {self.names[0]!r} and {self.names[1]!r} reach beyond where {self.crs} can "
                "be turned into latitudes and longitudes: declare narrower ones."
            )
        return lattice

    def range_of(self, coordinates: Array) -> str:
        furthest = max(float(great_circle(coordinates, each).max()) for each in coordinates)
        return f"places up to {furthest:.4g} km apart"

    def describe_bounds(self) -> str:
        return "".join(f", {low:g} to {high:g}" for low, high in self.bounds)

    def degrees(self, numbers: Array) -> Array:
        """Latitudes and longitudes, (rows, 2); infinite if the CRS has no such place."""
        return numbers if self.crs is None else from_crs(self.crs, numbers)

    def coordinates(self, numbers: Array) -> Array:
        """Points on the sphere in kilometres, (rows, 3)."""
        return on_sphere(self.degrees(numbers))

    def back(self, coordinates: Array) -> Array:
        degrees = in_degrees(coordinates)
        return degrees if self.crs is None else to_crs(self.crs, degrees)

    def describe(self) -> str:
        where = "latitude and longitude" if self.crs is None else self.crs
        told = self.describe_bounds()
        return f"{self.names[0]} and {self.names[1]} (a place in {where}{told}; in kilometres)"


@dataclass(frozen=True)
class FlatPlace(Place):
    """A private place, on the rectangle that its declared bounds are: coordinates are kilometres from the
    middle along either side, as a kilometre is there.

    A box on the sphere has three sides, and most of it holds no place: it would waste bins. What is
    private may change faster along one side than along the other, and faster where many are.
    """

    width: ClassVar[int] = 2
    ranked: ClassVar[bool] = True
    scales: ClassVar[int] = 2
    kind: Annotated[str, ("flat place",)] = "flat place"

    def check(self) -> None:
        super().check()
        if len(self.bounds) != 2:
            raise ValueError("columns are broken.")

    @cached_property
    def _middle_and_scale(self) -> tuple[Array, Array]:
        """The middle of the rectangle, and kilometres per unit along either side, (2,) each."""
        low, high = np.transpose(self.bounds)
        middle, step = 0.5 * low + 0.5 * high, np.diag((high - low) / 128.0)
        ends = [on_sphere(self.degrees(middle + sign * step)) for sign in (-1.0, 1.0)]
        moved = np.linalg.norm(ends[1] - ends[0], axis=1)
        if not np.all(np.isfinite(moved)):
            self._lattice()  # which says what is wrong
        return middle, np.maximum(moved * 64.0 / (high - low), 1e-9)

    def coordinates(self, numbers: Array) -> Array:
        """Kilometres from the middle, (rows, 2)."""
        middle, scale = self._middle_and_scale
        return (self._wrap_longitudes(numbers) - middle) * scale

    def back(self, coordinates: Array) -> Array:
        middle, scale = self._middle_and_scale
        return middle + coordinates / scale

    def domain(self) -> Array:
        self._lattice()
        return self.coordinates(np.transpose(self.bounds)).T

    def range_of(self, coordinates: Array) -> str:
        sides = np.ptp(coordinates, axis=0)
        return f"places in a rectangle of {sides[0]:.4g} by {sides[1]:.4g} km"


# What columns are declared to be, as ``columns`` of a model has it: ("lat", "lon") is a place.
ColumnKinds = Mapping[str | tuple[str, ...], str | tuple[str, object]]
Column = Number | Boolean | Date | Periodic | Category | Place | FlatPlace
KINDS: dict[str, type[Column]] = {
    "number": Number, "boolean": Boolean, "date": Date,
    "periodic": Periodic, "category": Category, "place": Place,
}  # fmt: skip


def levels_of(cells: Iterable[object]) -> tuple[str, ...]:
    """The different levels among cells, in order."""
    return tuple(sorted({level(cell) for cell in cells}))


def level(cell: object) -> str:
    """A level as text: whole numbers without a point, so that 1, 1.0 and "1" are one level."""
    if isinstance(cell, Real) and not isinstance(cell, bool | np.bool_):
        number = float(cell)
        return str(int(number)) if number.is_integer() else str(number)
    return str(cell).strip()


def _floats(cells: Cells) -> Array:
    if cells.dtype.kind in "Mm":  # which would become a number of ticks
        raise ValueError("not numbers")
    try:
        numbers = np.asarray(cells, dtype=np.float64)
    except TypeError:
        raise ValueError("not numbers") from None
    if not np.all(np.isfinite(numbers)):
        raise ValueError("not finite")
    return numbers


def _limits(values: Array) -> tuple[float, float]:
    """The least and the largest; about a single value, a tenth of it either way."""
    low, high = float(values.min()), float(values.max())
    pad = 0.0 if high > low else 0.1 * abs(low) or 1.0
    return low - pad, high + pad


def _places(numbers: Array, most: int) -> Integers:
    """The nearest whole places, within those there are."""
    return np.clip(np.rint(numbers[:, 0]), 0, most).astype(np.int64)


CLOSE = 1e-6  # of the larger end: what rounding leaves of a number in other units
# Feet, inches, pounds, miles, kilometres an hour, turns, parts of an hour, kibibytes.
UNITS = (0.3048, 2.54, 0.45359237, 1.609344, 1.0 / 3.6, np.pi, 1.0 / 60.0, 1024.0)
LARGEST_LOGARITHM = 30.0


def _in_units(unit: float, number: float) -> float:
    return number / unit


def _power(base: float, number: float) -> float:
    return float(base**number) if abs(number) < LARGEST_LOGARITHM else np.nan


READINGS: tuple[Callable[[float], float], ...] = (
    lambda number: number,
    *(partial(_in_units, unit) for unit in UNITS),
    lambda number: number - 273.15,  # kelvin
    lambda number: (number - 32.0) / 1.8,  # degrees Fahrenheit
    lambda number: number * 1.8 + 32.0,
    lambda number: _power(np.e, number),  # logarithms
    lambda number: _power(10.0, number),
)


def are_round(low: float, high: float) -> bool:
    """Whether both bounds look declared, and not read from the data.

    They have at most three digits where their width has its first three: 61 and 198, not 61.4
    and 198.4; also in other units, or if the upper one is the last of this many whole numbers. It
    depends on the bounds alone.
    """
    if any(_round(read(low), read(high)) for read in READINGS):
        return True
    return float(high).is_integer() and any(
        _round(read(low), read(high + 1.0)) for read in READINGS
    )


def _round(low: float, high: float) -> bool:
    width = abs(high - low)
    if not 0.0 < width < np.inf:
        return False
    step = 10.0 ** (np.floor(np.log10(width * (1.0 + CLOSE))) - 2.0)
    slack = CLOSE * max(abs(low), abs(high), width)
    return all(
        abs(end - step * np.rint(end / step)) <= min(slack, 0.01 * step) for end in (low, high)
    )
