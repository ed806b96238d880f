"""Plans and fits with inducing inputs, for rows in memory or in files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from privgp.engine.cluster import engine_of
from privgp.models.rows.planned import OTHER, PublicRows, bind_plan, verify_plan
from privgp.models.spending import simulation
from privgp.plan.inputs.arguments import whole_number
from privgp.plan.inputs.rows import LARGEST, ArrayRows, PeopleRows, Rows, mark_rows
from privgp.plan.plan import Plan, plan_of_parts
from privgp.plan.streamed.sums import strategy_of_columns
from privgp.question.rules import ONE, check_rules
from privgp.release.learn import zeros_of
from privgp.storage.codec import fingerprint
from privgp.types import Array, Column, UserData
from privgp.vault.people import person_codes
from privgp.vault.stream import Outputs, sum_rows

if TYPE_CHECKING:
    from privgp.models.published import Published


MOST_ROWS = 1000  # of one person that are used, unless declared


def array_rows(model: Published, X: Array, groups: UserData) -> ArrayRows | PeopleRows:
    """Rows in memory, with whole people together where people are given."""
    most = most_rows(model, groups)
    if groups is None:
        return ArrayRows(X)
    return PeopleRows.of(X, person_codes(groups, len(X)), most)


def most_rows(model: Published, groups: Column | None) -> int:
    """The most rows of one person that are used."""
    if model.most_rows is None:
        return MOST_ROWS
    check_rules({"most_rows": model.most_rows, "groups": groups}, ONE)
    return whole_number("most_rows", model.most_rows, LARGEST)


def plan_rows(model: Published, rows: Rows, watch: Any = None) -> Plan:
    """What a fit on these rows would measure, by one pass over them."""
    sketch, engine = model._sketch(rows), engine_of(model.engine)
    totals = sketch.columns.totals(rows, engine, change=sketch.question.change, watch=watch)
    return bind_plan(model, plan_of_parts([sketch.finish(totals)]), _public(rows))


def fit_rows(
    model: Published, rows: Rows, outputs: Outputs, plan: Any = None, watch: Any = None
) -> None:
    """Measure once, in one pass over rows and their outputs. Spends."""
    if plan is None:
        sketch = model._sketch(rows)
        bounds, columns, change = (
            sketch.question.y_bounds,
            sketch.columns,
            sketch.question.change,
        )
    else:
        plan = verify_plan(model, plan, _public(rows))
        bounds, columns, change = plan.y_bounds, plan.strategy.columns, plan.strategy.change

    sums = sum_rows(
        rows,
        outputs,
        bounds,
        columns,
        engine=engine_of(model.engine),
        whole=plan is None,
        change=change,
        watch=watch,
    )
    if plan is None:
        plan = bind_plan(model, plan_of_parts([sketch.finish(sums.totals)]), _public(rows))
    else:
        energy, people = plan.strategy.energy_weight > 0, plan.strategy.persons is not None
        asked: Any = {"energy": energy, "change": change, "people": people}
        found = strategy_of_columns(columns, sums.totals, **asked)
        if fingerprint(found) != fingerprint(plan.strategy):
            raise ValueError(OTHER)  # it was made of other rows
    random_state = simulation(model)
    model._publish(
        model._guarantee(plan),
        lambda: sums.measure(plan.parts[0], random_state),
        lambda measured: model._learn(plan, measured),
        rehearse=lambda: model._rehearse(plan),
        rows=rows.count,
    )


def rehearse_rows(model: Published, plan: Plan, rows: Rows) -> None:
    """All that follows a measurement, as if zeros had been measured. Reads the inputs, to see that the
    plan was made for them, and spends nothing."""
    plan = verify_plan(model, plan, _public(rows))
    strategy: Any = plan.strategy
    if strategy.mark != mark_rows(rows, engine_of(model.engine)):
        raise ValueError(OTHER)
    model._learn(plan, zeros_of(plan))


def _public(rows: Rows) -> PublicRows:
    """What a plan is bound to: the rows themselves are compared by the pass over them."""
    persons = rows.persons
    return PublicRows(
        rows.count, rows.columns, people=None if persons is None else np.arange(persons)
    )
