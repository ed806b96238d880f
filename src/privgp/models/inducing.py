"""Plans and fits with inducing inputs, for rows in memory or in a file."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from privgp.models.promise import simulation
from privgp.plan.inputs.rows import Rows
from privgp.plan.preview import Plan
from privgp.types import Array
from privgp.vault.stream import measure_rows

if TYPE_CHECKING:
    from privgp.models.regressor import PrivateGPRegressor


def plan_rows(model: PrivateGPRegressor, rows: Rows, groups: Any = None) -> Plan:
    """What a fit on these rows would measure, by one pass over them."""
    sketch = model._sketch(rows, groups)
    return sketch.finish(sketch.columns.totals(rows.blocks()))


def fit_rows(
    model: PrivateGPRegressor,
    rows: Rows,
    pairs: Iterable[tuple[Array, Any]],
    groups: Any = None,
) -> None:
    """Measure once, in one pass over ``pairs``: blocks of the rows with their outputs. Spends."""
    sketch = model._sketch(rows, groups)
    plan, measurement = measure_rows(
        pairs, sketch.y_bounds, sketch.columns, sketch.finish, simulation(model)
    )
    model._release(plan, measurement)
