"""Private tables: every cell is read by itself, by what was declared of its column."""

from typing import Any

from privgp.plan.inputs.inputs import Inputs
from privgp.types import Array

WRONG = "X must be a table with the declared columns, and hold a value of its kind in every cell."


def private_rows(X: Any, inputs: Inputs) -> Array:
    """Where the kernel has private rows, moved into their declared bounds, (rows, width). Whatever is
    wrong with them, the sentence is the same."""
    try:
        return inputs.coordinates(inputs.within(inputs.numbers(X)))
    except Exception:
        raise ValueError(WRONG) from None
