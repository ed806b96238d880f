"""Axes in one line: ranges ``age=0:90``, grids ``age=0:90:50``, spaces ``C=1e-3:1e3:log,k=rbf|linear``."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from privgp.command.errors import Refusal, listed, refusing
from privgp.command.io.cells.kinds import Kinds
from privgp.command.io.columns import read_inputs
from privgp.command.io.files import TABLES, ending
from privgp.types import Array

MOST_POINTS, MOST_VALUES, LONGEST_SPACE = 100_000, 1000, 2000


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
            f"{option} must have one range for each input, {listed(inputs)}; it has {listed(names)}."
        )


def read_ranges(
    words: Sequence[str], inputs: Sequence[str] | None, option: str
) -> list[tuple[float, float]]:
    """One (low, high) per input, from ``0:90`` in the order of the inputs or ``age=0:90`` by name,
    one or several in a word, separated by commas. ``inputs`` None: any number of them."""
    such = "--x-bounds 0 90" if option == "--x-bounds" else "age=0:90,bmi=15:50"
    malformed = f"{option} must be two numbers for each input, such as {such}."
    entries = _entries(",".join(words), option)
    names = [name for name, _ in entries if name]
    if names and len(names) < len(entries):
        raise Refusal(malformed)
    with refusing(malformed, ValueError):
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
) -> Any:
    """Points (targets, inputs) from a file with the input columns, or from a grid; a table where the
    inputs, which are of these kinds, are not all numbers."""
    if ending(Path(text)) not in TABLES:
        return grid(text, inputs, option)
    table = read_inputs(Path(text), inputs, kinds)
    numbers = not kinds and all(dtype.is_numeric() for dtype in table.dtypes)
    points = table.to_numpy().astype(np.float64) if numbers else table
    if len(points) > MOST_POINTS:
        raise Refusal(f"{option} '{text}' has more than {MOST_POINTS:,} points.")
    return points


def grid(text: str, inputs: Sequence[str], option: str = "--targets") -> Array:
    """All combinations of ``name=start:stop:count`` axes, the last input varying fastest."""
    malformed = (
        f"{option} '{text}' is neither a .csv or .parquet file nor a grid such as age=0:90:50 "
        "(start:stop:count, axes separated by commas)."
    )
    axes: dict[str, tuple[float, float, int]] = {}
    for name, span in _entries(text, option):
        with refusing(malformed, ValueError):
            start, stop, count = span.split(":")
            axes[name] = low, high, points = float(start), float(stop), int(count)
        if not math.isfinite(high - low):
            raise Refusal(f"{option} '{text}' must have finite ends.")
        if points < 1 or low > high or (points > 1 and low == high):
            raise Refusal(f"{option} '{text}' must have start < stop and a count of at least 1.")
    _check_names(list(axes), inputs, option)
    if math.prod(count for _, _, count in axes.values()) > MOST_POINTS:
        raise Refusal(f"{option} has more than {MOST_POINTS:,} points.")
    lines = [np.linspace(*axes[name]) for name in inputs]
    return np.stack([axis.ravel() for axis in np.meshgrid(*lines, indexing="ij")], axis=1)


def read_space(text: str) -> dict[str, Any]:
    """The axes: ``low:high``, ``low:high:log``, ``low:high:int``, or values separated by |."""
    if len(text) > LONGEST_SPACE:
        raise Refusal("--space is too long.")
    form = "C=1e-3:1e3:log,kernel=rbf|linear,n_neighbors=1:30:int"
    axes = _entries(text, "--space")
    with refusing(f"--space '{text}' is not of the form {form}.", ValueError):
        if not all(name and axis for name, axis in axes):
            raise ValueError
        return {
            name: _range(axis) if ":" in axis else [_value(each) for each in axis.split("|")]
            for name, axis in axes
        }


def _range(axis: str) -> Any:
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


def _value(text: str) -> Any:
    text = text.strip()
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return {"none": None, "true": True, "false": False}.get(text.lower(), text)
