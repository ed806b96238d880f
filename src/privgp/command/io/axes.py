"""Axes in one line: ranges ``age=0:90``, grids ``age=0:90:50``, spaces ``C=1e-3:1e3:log,k=rbf|linear``;
and grids over the range of a release's inputs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from privgp.command.errors import Refusal, refuse_on
from privgp.command.io.columns import read_inputs
from privgp.command.io.files import TABLES, suffix_of
from privgp.plan.inputs.inputs import Inputs
from privgp.release.release import Release
from privgp.tables.cells import Kinds
from privgp.tables.dates import days_of, instants
from privgp.tables.kinds import KINDS, Column, Number
from privgp.tables.parser import list_names
from privgp.types import Array, Cells

LEVELLED = [name for name, kind in KINDS.items() if kind.apart == "|"]
MOST_POINTS, MOST_VALUES, LONGEST_SPACE = 100_000, 1000, 2000
MOST_GRID_POINTS = 1_000_000
POINTS = 100  # along an input, where --grid does not say
GRID_FORM = "--grid-bounds must be such as age=20:80,when=2023-01-01:2023-12-31,region=north|south."


def _entries(text: str, option: str) -> list[tuple[str, str]]:
    """The name and the rest of every ``name=...``, separated by commas; no name where there is no =."""
    entries: list[tuple[str, str]] = []
    for part in text.split(","):
        name, _, rest = part.rpartition("=")
        if name and name.strip() in dict(entries):
            raise Refusal(f"{option} has '{name.strip()}' twice.")
        entries.append((name.strip(), rest.strip()))
    return entries


def _check_names(names: Sequence[str], inputs: Sequence[str], option: str) -> None:
    if set(names) != set(inputs):
        raise Refusal(
            f"{option} must have one range for each input, {list_names(inputs)}; it has {list_names(names)}."
        )


def read_ranges(
    words: Sequence[str], inputs: Sequence[str] | None, option: str
) -> list[tuple[float, float]]:
    """One (low, high) per input, from ``0:90`` in the order of the inputs or ``age=0:90`` by name,
    one or several in a word, separated by commas. ``inputs`` None: any number of them."""
    such = "--x-bounds 0 90" if option == "--x-bounds" else "age=0:90,bmi=15:50"
    dated = "; dates need --dates" if option == "--x-bounds" else ""
    malformed = f"{option} must be two numbers for each input, such as {such}{dated}."
    entries = _entries(",".join(words), option)
    names = [name for name, _ in entries if name]
    if names and len(names) < len(entries):
        raise Refusal(malformed)
    with refuse_on(malformed, ValueError):
        ranges = [(float(low), float(high)) for low, high in (s.split(":") for _, s in entries)]
    if inputs is None:
        return ranges
    if names:
        _check_names(names, inputs, option)
        return [ranges[names.index(name)] for name in inputs]
    if len(ranges) != len(inputs):
        raise Refusal(f"{option} needs one range for each input: {len(inputs)}, not {len(ranges)}.")
    return ranges


def read_targets(
    text: str, inputs: Sequence[str], option: str = "--targets", kinds: Kinds | None = None
) -> Array | pl.DataFrame:
    """Points (targets, inputs) from a file with the input columns, or from a grid; a table where the
    inputs, which are of these kinds, are not all numbers."""
    if suffix_of(Path(text)) not in TABLES:
        return grid(text, inputs, option, kinds)
    table = read_inputs(Path(text), inputs, kinds)
    numbers = not kinds and all(dtype.is_numeric() for dtype in table.dtypes)
    points = table.to_numpy().astype(np.float64) if numbers else table
    if len(points) > MOST_POINTS:
        raise Refusal(f"{option} '{text}' has more than {MOST_POINTS:,} points.")
    return points


def grid(
    text: str, inputs: Sequence[str], option: str = "--targets", kinds: Kinds | None = None
) -> Array | pl.DataFrame:
    """All combinations of ``name=start:stop:count`` axes and ``name=a|b`` levels, the last input varying
    fastest; a table where they are not all numbers."""
    such = "age=0:90:50" if kinds is None else "age=0:90:50,when=2024-01-01:2024-12-31:12"
    malformed = (
        f"{option} '{text}' is neither a .csv or .parquet file nor a grid such as {such} "
        "(start:stop:count, axes separated by commas)."
    )
    lines: dict[str, Cells] = {}
    for name, span in _entries(text, option):
        levels = kinds is not None and ("|" in span or kinds.get(name) in LEVELLED)
        with refuse_on(malformed, ValueError, OverflowError):
            line = _levels(span) if levels else _line(span, text, option, dates=kinds is not None)
        lines[name] = line
    _check_names(list(lines), inputs, option)
    if math.prod(map(len, lines.values())) > MOST_POINTS:
        raise Refusal(f"{option} has more than {MOST_POINTS:,} points.")
    ordered = [lines[name] for name in inputs]
    columns = [axis.ravel() for axis in np.meshgrid(*ordered, indexing="ij")]
    if all(line.dtype.kind == "f" for line in ordered):
        return np.stack(columns, axis=1)
    return pl.DataFrame(dict(zip(inputs, columns, strict=True)))


def _levels(span: str) -> Cells:
    words = [word.strip() for word in span.split("|")]
    if not all(words):
        raise ValueError
    return np.array(words)


def _line(span: str, text: str, option: str, *, dates: bool) -> Cells:
    """The points of ``start:stop:count``; where ``dates`` may be meant, instants between them."""
    start, stop, count = span.split(":")
    points = int(count)
    try:
        low, high, are_dates = float(start), float(stop), False
    except ValueError:
        if not dates:
            raise
        low, high = days_of(np.array([start, stop], dtype=object)).tolist()
        are_dates = True
    if not math.isfinite(high - low):
        raise Refusal(f"{option} '{text}' must have finite ends.")
    if points < 1 or low > high or (points > 1 and low == high):
        raise Refusal(f"{option} '{text}' must have start < stop and a count of at least 1.")
    if points > MOST_POINTS:
        raise Refusal(f"{option} has more than {MOST_POINTS:,} points.")
    line = np.linspace(low, high, points)
    return instants(line) if are_dates else line


def read_space(text: str) -> dict[str, object]:
    """The axes: ``low:high``, ``low:high:log``, ``low:high:int``, or values separated by |."""
    if len(text) > LONGEST_SPACE:
        raise Refusal("--space is too long.")
    form = "C=1e-3:1e3:log,kernel=rbf|linear,n_neighbors=1:30:int"
    axes = _entries(text, "--space")
    with refuse_on(f"--space '{text}' is not of the form {form}.", ValueError):
        if not all(name and axis for name, axis in axes):
            raise ValueError
        return {
            name: _range(axis) if ":" in axis else [_value(each) for each in axis.split("|")]
            for name, axis in axes
        }


def _range(axis: str) -> list[int] | tuple[float | str, ...]:
    start, stop, *kinds = (piece.strip() for piece in axis.split(":"))
    if kinds not in ([], ["log"], ["int"]):
        raise ValueError
    whole = kinds == ["int"]
    low, high = (int(start), int(stop)) if whole else (float(start), float(stop))
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise Refusal(f"--space '{axis}' must have finite ends with low < high.")
    if whole and high - low >= MOST_VALUES:
        raise Refusal(f"--space '{axis}' has more than {MOST_VALUES} values.")
    if whole:
        return list(range(int(low), int(high) + 1))
    if kinds and low <= 0:
        raise Refusal(f"--space '{axis}' must begin above 0 to be logarithmic.")
    return (low, high, "log-uniform") if kinds else (low, high)


def _value(text: str) -> str | int | float | None:
    text = text.strip()
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return {"none": None, "true": True, "false": False}.get(text.lower(), text)


@dataclass(frozen=True)
class Grid:
    """``axes``: the numbers along every input."""

    inputs: Inputs
    axes: tuple[Array, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(map(len, self.axes))

    def table(self) -> pl.DataFrame:
        """All combinations, the last input varying fastest."""
        points = np.meshgrid(*self.axes, indexing="ij")
        numbers = np.stack([axis.ravel() for axis in points], axis=1)
        return pl.DataFrame(self.inputs.table(numbers))


def grid_of(release: Release, count: int | None, bounds: str | None) -> Grid:
    """``count`` points along every input of a release, over its range unless bounds are given."""
    reached, asked = release.outermost, release.parameters
    inputs = release.kinds
    given, plain = _bounds(bounds, inputs), asked.columns is None
    numbers = reached if plain else inputs.back(reached)
    ends = inputs.ends(numbers)
    if asked.x_bounds is not None:  # whose nodes lie inside of the declared bounds
        declared = np.array(asked.x_bounds).reshape(-1, 2) if plain else inputs.range_ends()
        ends = np.broadcast_to(declared, ends.shape)
    axes, place = [], 0
    for column in inputs.columns:
        for name in column.names:
            low, high = ends[place]
            if name in given:
                axes.append(_axis(column, name, given[name], count or POINTS))
            else:
                axes.append(column.axis(float(low), float(high), count or POINTS))
            place += 1
    if math.prod(map(len, axes)) > MOST_GRID_POINTS:
        raise Refusal(
            f"The grid would have {math.prod(map(len, axes)):,} points, more than {MOST_GRID_POINTS:,}: "
            "give a smaller --grid."
        )
    return Grid(inputs, tuple(axes))


def _bounds(text: str | None, inputs: Inputs) -> dict[str, str]:
    bounds = {} if text is None else dict(_entries(text, "--grid-bounds"))
    for name, said in bounds.items():
        if not (name and said):
            raise Refusal(GRID_FORM)
        if name not in inputs.names:
            raise Refusal(
                f"--grid-bounds names '{name}', but the inputs are {list_names(inputs.names)}."
            )
    return bounds


def _axis(column: Column, name: str, said: str, count: int) -> Array:
    """Points between the ends that were given, or at the levels."""
    words = said.split(column.apart)
    single = column if column.name_count == 1 else Number((name,))  # one side of a place
    try:
        ends = single.numbers([np.array(words, dtype=object)])[:, 0]
    except (ValueError, OverflowError):
        raise Refusal(GRID_FORM) from None
    if column.apart == "|":
        if np.any(ends > single.ends(ends[:, None])[0, 1]):
            raise Refusal(f"--grid-bounds has a level of '{name}' that is not in the release.")
        return np.asarray(ends)
    if len(ends) != 2 or not ends[0] < ends[1]:
        raise Refusal(GRID_FORM)
    return np.asarray(single.axis(float(ends[0]), float(ends[1]), count))
