"""A plan is bound to what it was made for, and measured only if it is used for that."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import wraps
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from privgp.models.spending import names_of
from privgp.plan.parameters import MadeFor, Parameters
from privgp.plan.part import unit_of
from privgp.plan.plan import Plan
from privgp.plan.wording import bounds_advice, budget_advice
from privgp.storage.codec import fingerprint
from privgp.types import Array, Integers, Table, added_field

if TYPE_CHECKING:
    from privgp.models.published import Published


BY_NAME = Parameter.KEYWORD_ONLY
Method = TypeVar("Method", bound=Callable[..., Any])
OTHER = (
    "plan was made for other inputs, groups, bounds or parameters, or was changed since: plan again. "
    "Nothing was spent."
)


@dataclass(frozen=True)
class PublicRows:
    """What is public of the rows: their number, and inputs, people, exposures and weights where these
    are."""

    count: int
    columns: int
    inputs: Array | None = None
    people: Integers | None = None
    exposure: Array | None = added_field(None)
    weights: Array | None = added_field(None)

    @classmethod
    def of(
        cls,
        X: Array,
        people: Integers | None,
        exposure: Array | None = None,
        weights: Array | None = None,
    ) -> Self:
        return cls(X.shape[0], X.shape[1], X, people, exposure, weights)


def from_inputs_alone(method: Method) -> Method:
    """Refuse a caller who gives y, or anything else by its place, to a method that takes X alone and names."""
    by_name = [each.name for each in signature(method).parameters.values() if each.kind is BY_NAME]

    @wraps(method)
    def check_call(model: object, X: Table, *others: object, **given: object) -> Any:
        if others:
            raise TypeError(
                f"{method.__name__} takes the inputs alone by their place: it needs no y, and the rest is "
                f"given by name: {', '.join(by_name)}."
            )
        return method(model, X, **given)

    return cast(Method, check_call)


def bind_plan(model: Published, plan: Plan, rows: PublicRows) -> Plan:
    """The plan with what it was made for, and the fingerprint of that."""
    asked = model._parameters(rows.columns)
    for sentence in [*budget_advice(plan), *bounds_advice(asked)]:
        warnings.warn(sentence, UserWarning, stacklevel=3)
    made = plan.with_question(MadeFor(asked), _of(asked, plan, rows))
    unit_of(made.parts[0])  # refuses rows that have no such unit
    return with_column_names(made, names_of(model))


def with_column_names(
    plan: Plan,
    names: tuple[str, ...] | None,
    groups: str | None = None,
    exposure: str | None = None,
    weights: str | None = None,
) -> Plan:
    assert plan.made_for is not None
    named = {"names": names, "groups": groups, "exposure": exposure, "weights": weights}
    made = replace(plan.made_for, **named)  # type: ignore[arg-type]
    return replace(plan, made_for=made)


def verify_plan(model: Published, plan: object, rows: PublicRows) -> Plan:
    """The plan, if it was made for this model and these rows, with the noise that it needs at the
    model's budget. Fixed hyperparameters also go with a plan that measures for learning."""
    made_for = getattr(plan, "made_for", None)
    if made_for is None or not isinstance(plan, Plan):
        raise ValueError("plan must be what plan(X, groups=groups) of such a model returned.")
    for one in model._alone():
        one._question(rows.columns)  # refuses parameters that no plan was made with
    asked = model._parameters(rows.columns)
    learned = replace(asked, hyperparameters="learned")
    # Anyone who writes a file can write its fingerprint too: what the guarantee rests on is compared.
    same = (
        plan.fingerprint in (_of(asked, plan, rows), _of(learned, plan, rows))
        and fingerprint(made_for.parameters) in (fingerprint(asked), fingerprint(learned))
        and (plan.epsilon, plan.delta) == (asked.epsilon, asked.delta)
        and [part.y_bounds for part in plan.parts] == [own.y_bounds for own in asked.parts()]
        and [part.strategy.change for part in plan.parts] == [own.change for own in asked.parts()]
        and plan.rows == rows.count
        and {part.kind.private_inputs for part in plan.parts} == {asked.private_inputs}
        and fingerprint(plan.strategy.people) == fingerprint(rows.people)
    )
    if not same:
        raise ValueError(OTHER)
    return plan.with_noise_for(asked.epsilon, asked.delta)


def _of(asked: Parameters, plan: Plan, rows: PublicRows) -> str:
    budget = plan.epsilon, plan.delta, plan.y_bounds, plan.strategy.law
    stages = () if plan.residuals is None else (plan.residuals,)
    return fingerprint(asked, rows, budget, plan.strategy, *stages)
