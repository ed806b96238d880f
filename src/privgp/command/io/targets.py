"""Where a release should be accurate: a table of points, or a grid such as ``bmi=18:42:20``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from privgp.command.errors import Refusal, listed
from privgp.command.io.columns import read_inputs
from privgp.command.io.files import TABLES
from privgp.types import Array

MOST_POINTS = 100_000


def read_targets(text: str, inputs: Sequence[str]) -> Array:
    """Points (targets, inputs) from a file with the input columns, or from a grid."""
    if Path(text).suffix.lower() in TABLES:
        points = read_inputs(Path(text), inputs).to_numpy().astype(np.float64)
        if len(points) > MOST_POINTS:
            raise Refusal(f"--targets '{text}' has more than {MOST_POINTS:,} points.")
        return points
    return grid(text, inputs)


def grid(text: str, inputs: Sequence[str]) -> Array:
    """All combinations of ``name=start:stop:count`` axes, the last input varying fastest."""
    axes: dict[str, tuple[float, float, int]] = {}
    for part in text.split(","):
        name, equals, span = part.rpartition("=")
        name = name.strip()
        if not equals:
            raise _malformed(text)
        if name in axes:
            raise Refusal(f"--targets has the input '{name}' twice.")
        axes[name] = _span(span, text)
    if set(axes) != set(inputs):
        raise Refusal(
            f"--targets must have one axis for each input, {listed(list(inputs))}; "
            f"it has {listed(list(axes))}."
        )
    if math.prod(count for _, _, count in axes.values()) > MOST_POINTS:
        raise Refusal(f"--targets has more than {MOST_POINTS:,} points.")
    lines = [np.linspace(*axes[name]) for name in inputs]
    return np.stack([axis.ravel() for axis in np.meshgrid(*lines, indexing="ij")], axis=1)


def _span(text: str, whole: str) -> tuple[float, float, int]:
    try:
        start, stop, count = text.split(":")
        low, high, points = float(start), float(stop), int(count)
    except ValueError:
        raise _malformed(whole) from None
    if not (math.isfinite(low) and math.isfinite(high) and math.isfinite(high - low)):
        raise Refusal(f"--targets '{whole}' must have finite ends.")
    if points < 1 or low > high or (points > 1 and low == high):
        raise Refusal(f"--targets '{whole}' must have start < stop and a count of at least 1.")
    return low, high, points


def _malformed(text: str) -> Refusal:
    return Refusal(
        f"--targets '{text}' is neither a .csv or .parquet file nor a grid such as age=0:90:50 "
        "(start:stop:count, axes separated by commas)."
    )
