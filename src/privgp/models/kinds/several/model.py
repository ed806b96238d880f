"""Several outcomes of one person in one release: planned and measured together, learned one by one.

Every outcome has a model of its own, which reads its own part of the one measurement. A model of
several outcomes gives these by ``_alone()``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, cast

import numpy as np

from privgp.gp.threads import one_thread
from privgp.models.kinds.records import domain, row_count
from privgp.models.planned import OTHER, PublicRows, accepted, bound
from privgp.models.promise import (
    EXPOSURES,
    OUTPUTS_ASSUMPTIONS,
    PEOPLE_ASSUMPTIONS,
    RECORDS_ASSUMPTIONS,
    noted,
    simulation,
)
from privgp.models.spending import charge
from privgp.models.tables import domain_of, records_to_plan, remember, rows_to_fit
from privgp.plan.counts.exposures import Exposures
from privgp.plan.several.arguments import checked_shares
from privgp.plan.several.build import PlannedRows, PrivateInputs, PublicInputs, make_joint_plan
from privgp.plan.several.plan import JointPlan
from privgp.privacy.guarantee import (
    PEOPLE_RECORDS,
    PERSON,
    RECORDS,
    ROW,
    Guarantee,
    Protected,
    exactly,
    promise,
)
from privgp.release.certificate import utc
from privgp.release.spendings import FROM_THEM
from privgp.types import Array, Table
from privgp.vault.checks.roles import check_roles
from privgp.vault.labels import joint_data
from privgp.vault.measure import measure
from privgp.vault.people import count_people
from privgp.vault.tables import private_rows
from privgp.vault.validate import checked_inputs, column_names, person_ids

Exposed = Mapping[
    int, Array
]  # the exposure of every row, by the place of the outcome it belongs to


@dataclass(frozen=True)
class Given:
    """The rows that a joint plan is made for. ``planned``: what the plan is made from; ``public``: what
    it is bound to; ``exposed``: the exposures of counts."""

    planned: PlannedRows
    public: PublicRows
    exposed: Exposed


def public_rows(model: Any, X: Array, groups: Any, exposed: Exposed) -> Given:
    """Rows whose inputs are public, where the kernel has them."""
    people = person_ids(groups, len(X))
    exposures = np.column_stack([*exposed.values()]) if exposed else None
    public = PublicRows.of(X, people, exposures)
    return Given(PublicInputs(X, people), public, exposed)


def private_count(model: Any, X: Any, groups: Any) -> Given:
    """Private records: their number, or that of their people, and the declared domain."""
    check_roles(groups, called="groups", X=X)
    pairs = domain(domain_of(records_to_plan(model)))
    count, people = row_count(X), groups is not None
    count = count_people(groups, count) if people else count
    return Given(PrivateInputs(count, pairs, people), PublicRows(count, len(pairs)), {})


def plan_several(model: Any, rows: Given) -> JointPlan:
    """What a fit on these rows would measure of all outcomes."""
    if model.protect == "records":
        model = records_to_plan(model)
    each = model._alone()
    questions = [one._question(rows.public.columns) for one in each]
    for place, exposure in rows.exposed.items():
        counts = Exposures.of(exposure, questions[place].y_bounds)
        questions[place] = replace(questions[place], exposures=counts)
    shares = checked_shares(model.shares, len(each))
    with one_thread():
        plan = make_joint_plan(rows.planned, questions, model._budget(), shares)
    return cast(JointPlan, bound(model, cast(Any, plan), rows.public))


def fit_several(
    model: Any, X: Any, outputs: Sequence[Any], names: tuple[str, ...] | None, groups: Any,
    plan: Any = None, exposed: Exposed | None = None,
) -> None:  # fmt: skip
    """Measure all outcomes once, with noise, and learn each from its part of the measurement.

    ``outputs``: one column each, in the order of the models; ``names``: theirs, if known.
    """
    each = model._alone()
    inputs = people = None
    if model.protect == "records":
        check_roles(groups, called="groups", X=X)
        inputs = _private_inputs(model, X)
        people, count = person_ids(groups, len(inputs)), len(inputs)
        rows = private_count(model, count, groups)
    else:
        X = rows_to_fit(model, X)
        rows, count = public_rows(model, X, groups, exposed or {}), len(X)
    for one in each:
        one.inputs_ = model.inputs_
    data = joint_data(outputs, [one._classes() for one in each], count, inputs, people)
    made = _plan_for(model, rows, plan)
    if names is not None and made.output_names not in (None, names):
        raise ValueError(
            f"plan was made for the outputs {', '.join(made.names)}: give y with these columns, in "
            "this order. Nothing was spent."
        )
    made = replace(made, output_names=names or made.names)
    charge(model, _promised(model, made), rows.public.inputs, rows=count)
    bounds, strategy = cast(Any, made.y_bounds), cast(Any, made.strategy)
    measured: Any = measure(data, bounds, strategy, made.noise, simulation(model))
    del data, inputs, outputs
    _release(model, each, made, measured)


def _private_inputs(model: Any, X: Any) -> Any:
    """Where the kernel has private inputs: for the vault alone. The model remembers their columns."""
    model.inputs_ = None
    model.inputs_ = kinds = records_to_plan(model).inputs_
    columns = len(domain(domain_of(model)))
    inputs = checked_inputs(X, columns) if kinds is None else private_rows(X, kinds)
    remember(model, column_names(X) if kinds is None else kinds.names, columns)
    return inputs


def _plan_for(model: Any, rows: Given, plan: Any) -> JointPlan:
    """A new plan for these rows, or the given one if it was made for them."""
    if plan is None:
        return plan_several(model, rows)
    made = cast(JointPlan, accepted(model, plan, rows.public))
    whole = getattr(rows.planned, "people", None)
    if rows.public.inputs is None and made.strategy.whole_people != whole:
        raise ValueError(OTHER)
    return made


def _promised(model: Any, plan: JointPlan) -> Guarantee:
    return noted(model, joint_guarantee(plan, simulated=model.random_state is not None))


def _release(model: Any, each: Sequence[Any], plan: JointPlan, measured: Sequence[Any]) -> None:
    """All that follows from the measurement: post-processing."""
    columns = plan.targets.shape[1]
    model._asked = model._parameters(columns)
    made = plan.made_for
    assert made is not None
    for one, part, own, asked in zip(each, plan.parts, measured, model._asked.parts(), strict=True):
        one._release(replace(part, made_for=replace(made, parameters=asked)), own)
    model.guarantee_ = _promised(model, plan)
    model.plan_ = plan
    model.released_at_ = utc(datetime.now(UTC))
    model.__dict__.pop("loaded_", None)
    answer_by(model, each, plan.names)


def answer_by(model: Any, each: Sequence[Any], names: tuple[str, ...]) -> None:
    """Predict by these fitted models, one per outcome."""
    for single in ("release_", "functionals_", "_models", "_at_targets"):
        model.__dict__.pop(single, None)  # of an earlier fit to one output
    for one in each:
        one.guarantee_ = model.guarantee_
        remember(one, None, model.n_features_in_)
    model._each, model.output_names_ = tuple(each), names
    model.measurements_ = tuple(measurement for one in each for measurement in one.measurements_)
    model.kernel_ = tuple(one.kernel_ for one in each)
    model.input_map_ = tuple(one.input_map_ for one in each)
    model.noise_variance_ = tuple(vars(one).get("noise_variance_") for one in each)


def joint_guarantee(plan: JointPlan, *, simulated: bool) -> Guarantee:
    """What the measurement of several outcomes guarantees."""
    squares = sum(part.energy_weight > 0 for part in plan.strategy.parts)
    of_squares = f", {squares} of them of squares," if squares else ","
    protected, assumptions = _protected(plan)
    count = len(plan.parts)
    return promise(
        protected,
        [plan.noise.event],
        (plan.epsilon, plan.delta),
        assumptions=assumptions,
        mechanism=f"{plan.strategy.size} noisy totals of the values of {count} "
        f"output{'s' if count > 1 else ''}"
        f"{of_squares} each value clipped to the declared range of its output "
        f"({plan.noise.describe()}){FROM_THEM}",
        sampler=plan.noise.sampler,
        simulated=simulated,
    )


def _protected(plan: JointPlan) -> tuple[Protected, tuple[str, ...]]:
    """Whom the guarantee protects, and what it assumes."""
    if plan.x_bounds is not None:
        if plan.strategy.whole_people:
            return PEOPLE_RECORDS, PEOPLE_ASSUMPTIONS
        return RECORDS, RECORDS_ASSUMPTIONS
    protected = ROW if plan.strategy.people is None else PERSON
    assumptions: tuple[str, ...] = OUTPUTS_ASSUMPTIONS
    limits = [
        f"{name} by at most {exactly(change)}"
        for name, change in zip(plan.names, plan.max_changes, strict=True)
        if change is not None
    ]
    if limits:
        limited = "; ".join(limits)
        counts = ", ".join(limit.partition(" by ")[0] for limit in limits)
        protected = replace(
            protected,
            unit=f"{protected.unit}, of {counts} one person's contribution alone",
            neighbours=f"{protected.neighbours}, and {limited}",
        )
        assumptions = (*assumptions, f"one person changes no more than this: {limited}")
    if plan.unit is not None:
        assumptions = (*assumptions, EXPOSURES)
    return protected, assumptions


def predicted(model: Any, X: Table, **asked: bool) -> Any:
    """What the models of all outputs predict, with one more axis, of the outputs, at the end."""
    each = [one.predict(X, **asked) for one in model._each]
    if not (asked["return_std"] or asked["return_cov"]):
        return np.stack(each, axis=-1)
    means, spreads = zip(*each, strict=True)
    return np.stack(means, axis=-1), np.stack(spreads, axis=-1)


def intervals(model: Any, X: Table, coverage: float, observation: bool) -> tuple[Array, Array]:
    """The ends of the intervals of all outputs, each (rows, outputs)."""
    each = [one.interval(X, coverage, observation=observation) for one in model._each]
    low, high = (np.stack(ends, axis=-1) for ends in zip(*each, strict=True))
    return low, high


def plot_several(model: Any, ax: Any, figure: Any, observation: bool, points: Any = None) -> Any:
    """The curve, map or slices of every output, one above the other."""
    from privgp.models.picture import on_paper
    from privgp.pictures.several import plot_each

    if ax is not None:
        raise ValueError("several outputs are drawn in several panels: give figure, not ax.")
    names = getattr(model, "feature_names_in_", None)
    shown = zip(model._each, model.output_names_, strict=True)
    released = [one._pictured(name, observation) for one, name in shown]
    if model.inputs_ is None:
        released = [replace(one, names=names) for one in released]
    return plot_each([on_paper(model, one, points) for one in released], figure)
