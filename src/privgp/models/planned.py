"""A plan is bound to what it was made for, and measured only if that is what it is used for."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from privgp.plan.bins.records import RecordsPlan
from privgp.plan.fingerprint import fingerprint
from privgp.plan.preview import Plan
from privgp.plan.strategy import noise_of

if TYPE_CHECKING:
    from privgp.models.regressor import PrivateGPRegressor

Planned = TypeVar("Planned", Plan, RecordsPlan)

IRRELEVANT = ("hyperparameters", "random_state")
SAME_NOISE = 1e-9  # the order of sums may change the last digits
OTHER = (
    "plan was made for other inputs, groups, bounds or parameters, or was changed since: make it "
    "anew with plan(X, groups). Nothing was spent."
)


def bound(model: PrivateGPRegressor, plan: Planned, *inputs: Any) -> Planned:
    """The plan with the fingerprint of what it was made for.

    ``inputs``: what is public of the rows, such as X and the person of every row.
    """
    return replace(plan, fingerprint=_of(model, model.hyperparameters, plan, inputs))


def accepted(model: PrivateGPRegressor, plan: Any, *inputs: Any) -> Any:
    """The plan, if it was made for this model and these inputs; with the noise that its stored
    strategy needs at the model's budget.

    A model with fixed hyperparameters also takes a plan that measures what it takes to learn them.
    """
    if not isinstance(plan, Plan | RecordsPlan):
        raise ValueError("plan must be what plan(X, groups) of such a model returned.")
    known = {_of(model, how, plan, inputs) for how in (model.hyperparameters, "learned")}
    if plan.fingerprint not in known:
        raise ValueError(OTHER)
    return _with_noise_checked(model, plan)


def _with_noise_checked(model: PrivateGPRegressor, plan: Any) -> Any:
    """The plan with its noise computed anew; refused where that is not the noise it holds."""
    needed = noise_of(plan.strategy, float(model.epsilon), float(model.delta))
    same = plan.noise.law == needed.law and plan.noise.size == needed.size
    if not same or not abs(plan.noise.std - needed.std) <= SAME_NOISE * needed.std:
        raise ValueError("plan holds other noise than its budget asks for. Nothing was spent.")
    return plan if plan.noise == needed else replace(plan, noise=needed)


def _of(model: PrivateGPRegressor, hyperparameters: str, plan: Any, inputs: Any) -> str:
    parameters = model.get_params(deep=False)
    asked = {name: value for name, value in parameters.items() if name not in IRRELEVANT}
    budget = plan.epsilon, plan.delta, plan.y_bounds
    return fingerprint(asked, hyperparameters, inputs, budget, plan.strategy)
