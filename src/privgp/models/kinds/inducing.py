"""Plans and fits with inducing inputs, for rows in memory or in a file."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from privgp.models.planned import OTHER, PublicRows, bound
from privgp.models.promise import simulation
from privgp.models.spending import charge
from privgp.plan.fingerprint import fingerprint
from privgp.plan.inputs.rows import Rows
from privgp.plan.plan import Plan
from privgp.plan.streamed.columns import Totals, streamed_strategy
from privgp.types import Array
from privgp.vault.stream import measure_rows

if TYPE_CHECKING:
    from privgp.models.regressor import PrivateGPRegressor


def plan_rows(model: PrivateGPRegressor, rows: Rows, groups: Any = None) -> Plan:
    """What a fit on these rows would measure, by one pass over them."""
    sketch = model._sketch(rows, groups)
    plan = sketch.finish(sketch.columns.totals(rows.blocks()))
    return bound(model, plan, PublicRows(rows.count, rows.columns))


def fit_rows(
    model: PrivateGPRegressor,
    rows: Rows,
    pairs: Iterable[tuple[Array, Any]],
    groups: Any = None,
    plan: Any = None,
) -> None:
    """Measure once, in one pass over ``pairs``: blocks of the rows with their outputs. Spends."""
    if plan is None:
        sketch = model._sketch(rows, groups)
        bounds, columns = sketch.question.y_bounds, sketch.columns
    else:
        plan = model._plan_for(PublicRows(rows.count, rows.columns), groups, plan)
        bounds, columns = plan.y_bounds, plan.strategy.columns

    def charged(totals: Totals) -> Plan:
        made = finish(totals)
        charge(model, model._promised(made))
        return made

    def finish(totals: Totals) -> Plan:
        if plan is None:
            return bound(model, sketch.finish(totals), PublicRows(rows.count, rows.columns))
        energy, change = plan.strategy.energy_weight > 0, plan.strategy.change
        strategy = streamed_strategy(columns, totals, energy=energy, change=change)
        if fingerprint(strategy) != fingerprint(plan.strategy):  # it was made of other rows
            raise ValueError(OTHER)
        return plan  # type: ignore[no-any-return]

    made, measurement = measure_rows(pairs, bounds, columns, charged, simulation(model))
    model._release(made, measurement)
