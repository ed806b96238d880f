"""What blocks of private rows compare: candidates for a release, and how rows are dealt out. Public."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sklearn.gaussian_process.kernels import Kernel

from privgp.plan.inputs.arguments import whole_number
from privgp.types import Pair

LEAST_ROWS = 4  # of a block: two to learn from, two to predict


@dataclass(frozen=True)
class Trial:
    """One candidate for a release, as blocks judge it.

    Attributes
    ----------
    kernel, noise_variance : of the posterior that all rows would have
    added : variance that the release adds to this posterior's mean at a point, in squared units of y
    is_draw : whether a draw from the posterior is released, so that its variance is an error too

    """

    kernel: Kernel
    noise_variance: float
    added: float = 0.0
    is_draw: bool = False


@dataclass(frozen=True)
class Dealt:
    """How private rows become blocks: by their place alone.

    Attributes
    ----------
    rows, blocks : how many there are
    columns : how many inputs a row has
    bounds : of the outputs, declared
    classes : how many labels were declared; 2 also for numbers, which are one number each
    domain : of private inputs, which are moved into it; None where inputs are public

    """

    rows: int
    blocks: int
    columns: int
    bounds: Pair
    classes: int
    domain: tuple[Pair, ...] | None


def count_blocks(asked: object, rows: int) -> int:
    """How many blocks: as asked for, or the root of the number of rows.

    Parameters
    ----------
    asked
        A whole number from 2 on, or None.
    rows
        How many rows there are.

    Raises
    ------
    ValueError
        There are too few rows for blocks.

    """
    most = rows // LEAST_ROWS
    if most < 2:
        raise ValueError(f"a choice by blocks needs at least {2 * LEAST_ROWS} rows.")
    if asked is None:
        return min(max(2, math.isqrt(rows)), most)
    count = whole_number("blocks", asked, most)
    if count < 2:
        raise ValueError(f"blocks must be a whole number from 2 to {most}.")
    return count
