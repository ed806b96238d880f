"""Which rows of a table have a value in every column: public where the data holder says so."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

NOTHING = {"", "na", "n/a", "nan", "null", "none"}  # how tables write that there is no value


def complete_rows(columns: Sequence[Sequence[Any]]) -> NDArray[np.bool_]:
    """Whether every cell of a row holds something, (rows,). Every cell is judged by itself."""
    held = [[_holds(cell) for cell in column] for column in columns]
    return np.asarray(np.all(held, axis=0))


def _holds(cell: Any) -> bool:
    if isinstance(cell, str):
        return cell.strip().lower() not in NOTHING
    return cell is not None and not (isinstance(cell, float) and np.isnan(cell))
