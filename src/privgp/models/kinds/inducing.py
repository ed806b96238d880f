"""Plans and fits with inducing inputs, for rows in memory or in files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from privgp.engine.cluster import engine_of
from privgp.models.planned import OTHER, PublicRows, bound
from privgp.models.promise import simulation
from privgp.models.spending import charge
from privgp.plan.fingerprint import fingerprint
from privgp.plan.inputs.arguments import whole_number
from privgp.plan.inputs.rows import LARGEST, STREAMED, ArrayRows, PeopleRows, Rows, marked
from privgp.plan.plan import Plan
from privgp.plan.several.arguments import are_several
from privgp.plan.streamed.columns import Totals
from privgp.plan.streamed.sums import streamed_strategy
from privgp.question.rules import ONE, check_rules
from privgp.types import Array
from privgp.vault.people import person_codes
from privgp.vault.stream import Outputs, measure_rows

if TYPE_CHECKING:
    from privgp.models.regressor import PrivateGPRegressor

MOST_ROWS = 1000  # of one person that are used, unless declared


def streams(model: PrivateGPRegressor, rows: int) -> bool:
    """Whether this many rows go through inducing inputs, in blocks: one number at public inputs. Anything
    else is reduced to distinct inputs, or to sums."""
    one = not are_several(model.y_bounds) and model.likelihood == "gaussian"
    if not one or model.protect == "records":
        return False
    if model.inducing is not None or model.most_rows is not None:
        return True
    usual = model.objective == "posterior" and model.reconstruct == "posterior"
    return rows > STREAMED and usual


def array_rows(model: PrivateGPRegressor, X: Array, groups: Any) -> ArrayRows | PeopleRows:
    """Rows in memory, with whole people together where people are given."""
    most = most_rows(model, groups)
    if groups is None:
        return ArrayRows(X)
    return PeopleRows.of(X, person_codes(groups, len(X)), most)


def most_rows(model: PrivateGPRegressor, groups: Any) -> int:
    """The most rows of one person that are used."""
    if model.most_rows is None:
        return MOST_ROWS
    check_rules({"most_rows": model.most_rows, "groups": groups}, ONE)
    return whole_number("most_rows", model.most_rows, LARGEST)


def plan_rows(model: PrivateGPRegressor, rows: Rows, watch: Any = None) -> Plan:
    """What a fit on these rows would measure, by one pass over them."""
    sketch, engine = model._sketch(rows), engine_of(model.engine)
    totals = sketch.columns.totals(rows, engine, change=sketch.question.change, watch=watch)
    return bound(model, sketch.finish(totals), _public(rows))


def fit_rows(
    model: PrivateGPRegressor, rows: Rows, outputs: Outputs, plan: Any = None, watch: Any = None
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
        plan = model._plan_for(_public(rows), None, plan)
        bounds, columns, change = plan.y_bounds, plan.strategy.columns, plan.strategy.change

    def charged(totals: Totals) -> Plan:
        made = finish(totals)
        charge(model, model._promised(made), rows=rows.count)
        return made

    def finish(totals: Totals) -> Plan:
        if plan is None:
            return bound(model, sketch.finish(totals), _public(rows))
        energy, people = plan.strategy.energy_weight > 0, plan.strategy.persons is not None
        asked: Any = {"energy": energy, "change": change, "people": people}
        if fingerprint(streamed_strategy(columns, totals, **asked)) != fingerprint(plan.strategy):
            raise ValueError(OTHER)  # it was made of other rows
        return plan  # type: ignore[no-any-return]

    made, measurement = measure_rows(
        rows,
        outputs,
        bounds,
        columns,
        charged,
        simulation(model),
        engine=engine_of(model.engine),
        whole=plan is None,
        change=change,
        watch=watch,
    )
    model._release(made, measurement)


def rehearse_rows(model: PrivateGPRegressor, plan: Plan, rows: Rows) -> None:
    """All that follows a measurement, as if zeros had been measured. Reads the inputs, to see that the
    plan was made for them, and spends nothing."""
    plan = model._plan_for(_public(rows), None, plan)
    strategy: Any = plan.strategy
    if strategy.mark != marked(rows, engine_of(model.engine)):
        raise ValueError(OTHER)
    zeros = strategy.read(np.zeros(strategy.size), plan.noise, plan.half_width)
    model._release(plan, zeros)


def _public(rows: Rows) -> PublicRows:
    """What a plan is bound to: the rows themselves are compared by the pass over them."""
    persons = rows.persons
    return PublicRows(
        rows.count, rows.columns, people=None if persons is None else np.arange(persons)
    )
