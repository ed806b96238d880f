"""Several outputs of one person in one release: planned and measured together, learned one by one.

Every output has a model of its own, which reads its own part of the one measurement.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from privgp.gp.threads import one_thread
from privgp.models.planned import PublicRows, accepted, bound
from privgp.models.promise import OUTPUTS_ASSUMPTIONS, noted, simulation
from privgp.models.spending import charge
from privgp.models.tables import located, remember, rows_to_fit
from privgp.plan.parameters import Parameters
from privgp.plan.several.arguments import checked_shares, output_bounds, per_output
from privgp.plan.several.build import make_joint_plan
from privgp.plan.several.plan import JointPlan
from privgp.privacy.guarantee import PERSON, ROW, Guarantee, promise
from privgp.release.certificate import utc
from privgp.release.spendings import FROM_THEM
from privgp.types import Array, Integers, Table
from privgp.vault.measure import measure
from privgp.vault.validate import checked_columns, column_names, person_ids

if TYPE_CHECKING:
    from privgp.models.regressor import PrivateGPRegressor

ALONE = {
    "protect": "outputs",
    "inducing": None,
    "objective": "posterior",
    "reconstruct": "posterior",
    "likelihood": "gaussian",
    "max_change": None,
}


def models_of(model: PrivateGPRegressor) -> tuple[PrivateGPRegressor, ...]:
    """An unfitted model of every output alone, with the whole budget."""
    for name, only in ALONE.items():
        if getattr(model, name) != only:
            raise ValueError(
                f"several outputs go with {name}={only!r} only: release them one by one."
            )
    bounds = output_bounds(model.y_bounds)
    checked_shares(model.shares, len(bounds))
    kernels = per_output("kernel", model.kernel, len(bounds))
    noises = per_output("noise_variance", model.noise_variance, len(bounds))
    given = {**model.get_params(deep=False), "shares": None, "ledger": None}
    each = tuple(
        type(model)(**{**given, "y_bounds": pair, "kernel": kernel, "noise_variance": noise})
        for pair, kernel, noise in zip(bounds, kernels, noises, strict=True)
    )
    for one in each:
        one.inputs_ = model.inputs_
    return each


def plan_several(model: PrivateGPRegressor, X: Array, people: Integers | None) -> JointPlan:
    """What a fit on these inputs would measure of all outputs."""
    each = models_of(model)
    questions = [one._question(X.shape[1]) for one in each]
    shares = checked_shares(model.shares, len(each))
    with one_thread():
        plan = make_joint_plan(X, questions, model._budget(), shares, people)
    return cast(JointPlan, bound(model, cast(Any, plan), PublicRows.of(X, people)))


def fit_several(model: PrivateGPRegressor, X: Any, y: Any, groups: Any, plan: Any) -> None:
    """Measure all outputs once, with noise, and learn each from its part of the measurement."""
    X = rows_to_fit(model, X)
    each = models_of(model)
    names = column_names(y)
    y = checked_columns(y, len(X), len(each))
    public = PublicRows.of(X, person_ids(groups, len(X)))
    if plan is None:
        made = plan_several(model, X, public.people)
    else:
        each[0]._question(X.shape[1])
        made = cast(JointPlan, accepted(model, plan, public))
    if names is not None and made.output_names not in (None, names):
        raise ValueError(
            f"plan was made for the outputs {', '.join(made.names)}: give y with these columns, in "
            "this order. Nothing was spent."
        )
    made = replace(made, output_names=names or made.names)
    charge(model, _promised(model, made), X)
    measured = cast(
        Any,
        measure(
            y, cast(Any, made.y_bounds), cast(Any, made.strategy), made.noise, simulation(model)
        ),
    )
    del y
    _release(model, each, made, measured)


def _promised(model: Any, plan: JointPlan) -> Guarantee:
    return noted(model, joint_guarantee(plan, simulated=model.random_state is not None))


def _release(
    model: Any,
    each: tuple[PrivateGPRegressor, ...],
    plan: JointPlan,
    measured: tuple[Any, ...],
) -> None:
    """All that follows from the measurement: post-processing."""
    for one, part, own in zip(each, plan.parts, measured, strict=True):
        one._release(part, own)
    model.guarantee_ = _promised(model, plan)
    model.plan_ = plan
    asked = model.get_params(deep=False) | located(model)
    model._asked = Parameters.of(asked, plan.targets.shape[1])
    model.released_at_ = utc(datetime.now(UTC))
    model.__dict__.pop("loaded_", None)
    answer_by(model, each, plan.names)


def answer_by(model: Any, each: tuple[PrivateGPRegressor, ...], names: tuple[str, ...]) -> None:
    """Predict by these fitted models, one per output."""
    for single in ("release_", "functionals_", "_models", "_at_targets"):
        model.__dict__.pop(single, None)  # of an earlier fit to one output
    for one in each:
        one.guarantee_ = model.guarantee_
        remember(one, None, model.n_features_in_)
    model._each, model.output_names_ = each, names
    model.measurements_ = tuple(measurement for one in each for measurement in one.measurements_)
    model.kernel_ = tuple(one.kernel_ for one in each)
    model.input_map_ = tuple(one.input_map_ for one in each)
    model.noise_variance_ = tuple(one.noise_variance_ for one in each)


def joint_guarantee(plan: JointPlan, *, simulated: bool) -> Guarantee:
    """What the measurement of several outputs promises."""
    squares = sum(part.energy_weight > 0 for part in plan.strategy.parts)
    of_squares = f", {squares} of them of squares," if squares else ","
    return promise(
        ROW if plan.strategy.people is None else PERSON,
        [plan.noise.event],
        (plan.epsilon, plan.delta),
        assumptions=OUTPUTS_ASSUMPTIONS,
        mechanism=f"{plan.strategy.size} noisy totals of the values of {len(plan.parts)} outputs"
        f"{of_squares} each value clipped to the declared range of its output "
        f"({plan.noise.describe()}){FROM_THEM}",
        sampler=plan.noise.sampler,
        simulated=simulated,
    )


def predicted(model: PrivateGPRegressor, X: Table, **asked: bool) -> Any:
    """What the models of all outputs predict, with one more axis, of the outputs, at the end."""
    each = [one.predict(X, **asked) for one in model._each]
    if not (asked["return_std"] or asked["return_cov"]):
        return np.stack(each, axis=-1)
    means, spreads = zip(*each, strict=True)
    return np.stack(means, axis=-1), np.stack(spreads, axis=-1)


def intervals(
    model: PrivateGPRegressor, X: Table, coverage: float, observation: bool
) -> tuple[Array, Array]:
    """The ends of the intervals of all outputs, each (rows, outputs)."""
    each = [one.interval(X, coverage, observation) for one in model._each]
    low, high = (np.stack(ends, axis=-1) for ends in zip(*each, strict=True))
    return low, high


def plot_several(
    model: PrivateGPRegressor, ax: Any, figure: Any, observation: bool, points: Any = None
) -> Any:
    """The curve, map or slices of every output, one above the other."""
    from privgp.models.picture import on_paper, released_model
    from privgp.pictures.several import plot_each

    if ax is not None:
        raise ValueError("several outputs are drawn in several panels: give figure, not ax.")
    names = getattr(model, "feature_names_in_", None)
    shown = zip(model._each, model.output_names_, strict=True)
    released = [released_model(one, name, observation) for one, name in shown]
    if model.inputs_ is None:
        released = [replace(one, names=names) for one in released]
    return plot_each([on_paper(model, one, points) for one in released], figure)
