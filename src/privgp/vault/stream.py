"""Sums over rows that stream past, plus noise: a measurement in one pass over inputs and outputs."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from privgp.gp.measurement import Measurement
from privgp.plan.inputs.rows import in_blocks
from privgp.plan.plan import Plan
from privgp.plan.streamed.columns import Columns, Totals
from privgp.types import Array, Pair, Random
from privgp.vault.noise import add_noise
from privgp.vault.validate import clipped_outputs


def measure_rows(
    blocks: Iterable[tuple[Array, Any]],
    bounds: Pair,
    columns: Columns,
    finish: Callable[[Totals], Plan],
    random_state: Random = None,
) -> tuple[Plan, Measurement]:
    """Spend the budget once: validate, clip, add up, finish the plan, add noise. ``blocks``: inputs
    and outputs of rows. The plan is made of the columns' public totals: of the very numbers that
    the outputs were multiplied by. Before the last block nothing is released."""
    totals: Totals | None = None
    sums, energy = np.zeros(len(columns.matrix)), 0.0
    parts = in_blocks(lambda block: _part(block, bounds, columns), blocks)
    for added, moved, squares in parts:
        totals = added if totals is None else totals + added
        sums += moved
        energy += squares
    if totals is None:
        raise ValueError("there are no rows.")
    plan = finish(totals)
    weight = float(plan.strategy.energy_weight)
    exact = np.append(sums, weight * energy) if weight > 0 else sums
    numbers = add_noise(exact, plan.noise, random_state)
    return plan, plan.strategy.read(numbers, plan.noise, 0.5 * bounds[1] - 0.5 * bounds[0])


def with_outputs(blocks: Iterable[Array], y: Array) -> Iterator[tuple[Array, Array]]:
    """Every block of inputs with its share of the outputs."""
    first = 0
    for X in blocks:
        yield X, y[first : first + len(X)]
        first += len(X)
    if first != len(y):
        raise ValueError("y must have one value for each row of X.")


def equal_blocks(parts: Iterable[tuple[Array, ...]], size: int) -> Iterator[tuple[Array, ...]]:
    """Rows in blocks of ``size``, whatever the parts they come in: equal bits from memory and file.
    A part is the inputs of some rows, or their inputs and outputs."""
    left: tuple[Array, ...] = ()
    for part in parts:
        rows = [np.concatenate(both) for both in zip(left, part, strict=True)] if left else part
        whole = len(rows[0]) - len(rows[0]) % size
        for first in range(0, whole, size):
            yield tuple(array[first : first + size] for array in rows)
        left = tuple(array[whole:] for array in rows)
    if left and len(left[0]):
        yield left


def _part(block: tuple[Array, Any], bounds: Pair, columns: Columns) -> tuple[Totals, Array, float]:
    """What a block adds: public totals, and ``B u`` and ``sum u^2``, which are private."""
    X, y = block
    u = clipped_outputs(y, X.shape[0], bounds)
    B, totals = columns.block(X)
    return totals, B @ u, float(np.dot(u, u))
