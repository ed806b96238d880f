"""The private table of the rows of command and server: all rows are alike but one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

ROWS = 24
ENDS = {"age": (1.0, 99.0), "cost": (0.0, 5000.0)}  # a record at two ends of its bounds


def table() -> pl.DataFrame:
    rng = np.random.default_rng(5)
    return pl.DataFrame(
        {
            "person": [f"person {i // 2}" for i in range(ROWS)],
            "age": [20.0 + 30 * (i % 3) for i in range(ROWS)],
            "bmi": [20.0 + (i % 5) for i in range(ROWS)],
            "cost": np.full(ROWS, 2500.0),
            "pay": np.full(ROWS, 50.0),
            "ill": ["no"] * ROWS,
            "cases": np.full(ROWS, 20.0),
            "when": ["2024-03-01"] * ROWS,
            "region": ["north"] * ROWS,
            "lat": np.round(rng.uniform(51, 52, ROWS), 3),
            "lon": np.round(rng.uniform(-1, 1, ROWS), 3),
            "hour": np.round(rng.uniform(0, 24, ROWS), 2),
            "ok": ["true"] * ROWS,
        }
    )


def table_with(
    cells: Mapping[str, tuple[Any, Any]], which: int, row: int | slice = 0
) -> pl.DataFrame:
    """The table in which one row, or some, have the first or the second of these cells."""
    made = table()
    for name, pair in cells.items():
        held = np.array(made[name].to_list(), dtype=object)
        held[row] = pair[which]
        made = made.with_columns(pl.Series(name, held.tolist(), strict=False))
    return made
