"""Several outcomes of one person in one release: planned and measured together, learned one by one.

Every outcome has a model of its own, which reads its own part of the one measurement. A model of
several outcomes gives these by ``_alone()``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

import numpy as np

from privgp.gp.threads import one_thread
from privgp.models.kinds.records import domain, private_inputs
from privgp.models.kinds.several.rows import Exposed, Given, private_count, public_rows
from privgp.models.planned import OTHER, accepted, bound
from privgp.models.promise import (
    EXPOSURES,
    OUTPUTS_ASSUMPTIONS,
    PEOPLE_ASSUMPTIONS,
    RECORDS_ASSUMPTIONS,
    VALUES,
    Told,
    regressor_guarantee,
    simulation,
)
from privgp.models.published import FIRST, Further
from privgp.models.spending import charge
from privgp.models.tables import domain_of, records_to_plan, remember, rows_to_fit
from privgp.plan.counts.exposures import Exposures
from privgp.plan.several.arguments import checked_shares
from privgp.plan.several.build import make_joint_plan
from privgp.plan.several.plan import JointPlan, default_names
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
from privgp.vault.validate import column_names, person_ids


def plan_several(model: Any, rows: Given, earlier: Sequence[Any] = ()) -> JointPlan:
    """What a fit on these rows would measure of all outcomes. ``earlier``: what was measured of each
    before, if anything."""
    if model.protect == "records":
        model = records_to_plan(model)
    each = model._alone()
    questions = [one._question(rows.public.columns) for one in each]
    for place, exposure in rows.exposed.items():
        unit = earlier[place].unit if earlier else None
        counts = Exposures.of(exposure, questions[place].y_bounds, unit)
        questions[place] = replace(questions[place], exposures=counts)
    shares = checked_shares(model.shares, len(each))
    with one_thread():
        plan = make_joint_plan(rows.planned, questions, model._budget(), shares, earlier)
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
    charge(model, model._promised(made), rows.public.inputs, rows=count)
    bounds, strategy = cast(Any, made.y_bounds), cast(Any, made.strategy)
    measured: Any = measure(data, bounds, strategy, made.noise, simulation(model))
    del data, inputs, outputs
    release_several(model, made, measured, each=each)


def _private_inputs(model: Any, X: Any) -> Any:
    """Where the kernel has private inputs: for the vault alone. The model remembers their columns."""
    model.inputs_ = None
    model.inputs_ = kinds = records_to_plan(model).inputs_
    inputs = private_inputs(model, X)
    columns = len(domain(domain_of(model)))
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


def check_names(model: Any, names: tuple[str, ...] | None) -> None:
    """Refuse outcomes of a further measurement under other names than they were released by."""
    known = model.output_names_
    if names is not None and known not in (names, default_names(len(known))):
        raise ValueError(
            f"y must have the columns {', '.join(known)}, in this order. Nothing was spent."
        )


def release_several(
    model: Any,
    plan: JointPlan,
    measured: Sequence[Any],
    further: Further = FIRST,
    each: Sequence[Any] = (),
) -> None:
    """All that follows from the measurement: post-processing. ``further``: the measurements that it is
    added to, those of the first outcome; ``each``: unfitted models of the outcomes, if it is the first."""
    each, columns = each or model._each, plan.targets.shape[1]
    further = replace(further, guarantee=model._promised(plan))
    model._asked = model._parameters(columns)
    made = plan.made_for
    assert made is not None
    for one, part, own, asked in zip(each, plan.parts, measured, model._asked.parts(), strict=True):
        before = one._spent if further.before else ()
        bound_part = replace(part, made_for=replace(made, parameters=asked))
        one._release(bound_part, own, further=replace(further, before=before))
    model.guarantee_ = each[0].guarantee_
    model.plan_ = plan
    model.released_at_ = utc(datetime.now(UTC))
    loaded = model.__dict__.pop("loaded_", None)
    if further.before and loaded is not None:
        model.chosen_by_ = loaded.certificate["hyperparameters"]["source"]
    answer_by(model, each, plan.names)


def answer_by(model: Any, each: Sequence[Any], names: tuple[str, ...]) -> None:
    """Predict by these fitted models, one per outcome."""
    for single in ("release_", "functionals_", "_models", "_at_targets"):
        model.__dict__.pop(single, None)  # of an earlier fit to one output
    for one in each:
        one.guarantee_ = model.guarantee_
        remember(one, None, model.n_features_in_)
    model._each, model.output_names_, model._spent = tuple(each), names, each[0]._spent
    model.measurements_ = tuple(measurement for one in each for measurement in one.measurements_)
    model.kernel_ = tuple(one.kernel_ for one in each)
    model.input_map_ = tuple(one.input_map_ for one in each)
    model.noise_variance_ = tuple(vars(one).get("noise_variance_") for one in each)


@regressor_guarantee.register(JointPlan)
def joint_guarantee(plan: JointPlan, *, simulated: bool, told: Told = VALUES) -> Guarantee:
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
