"""The same question asked of another budget: a plan made again, and the least epsilon for an error."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from privgp.gp.threads import one_thread, threads_for
from privgp.plan.bins.build import make_records_plan
from privgp.plan.build import Budget, Question, make_plan
from privgp.privacy.budget import MAX_EPSILON, check_budget

if TYPE_CHECKING:
    from privgp.plan.plan import Plan

LEAST_EPSILON = 1e-6  # nothing useful is measured with less
STEP = 4.0
CLOSE = 1.01


def plan_again(plan: Plan, epsilon: float) -> Plan:
    """The plan that a model with this epsilon makes of the same inputs, groups and parameters.

    It lacks a fingerprint: to carry it out, plan with a model that has this epsilon.
    """
    made = plan.made_for
    if made is None or not plan.can_plan_again:
        raise ValueError(
            "a plan with inducing inputs does not hold the rows it was made for: plan again with a "
            "model that has this epsilon."
        )
    check_budget(epsilon, plan.delta, pure=True)
    epsilon, asked = float(epsilon), made.parameters
    budget = Budget(epsilon, plan.delta)
    question = Question(
        y_bounds=plan.y_bounds,
        objective=plan.objective,
        reconstruct=plan.reconstruct,
        exposures=plan.exposures,
        **asked.asks(),
    )
    strategy: Any = plan.strategy
    if plan.x_bounds is not None:
        with one_thread():
            people = bool(strategy.whole_people)
            again = make_records_plan(plan.rows, plan.x_bounds, question, budget, people=people)
    else:
        tally = strategy.tally
        X = plan.inputs[strategy.index] if tally is None else tally.coordinates
        X = np.ascontiguousarray(X)
        with one_thread() if plan.objective == "posterior" else threads_for(len(X)):
            again = make_plan(X, question, budget, strategy.people, tally=tally)
    return replace(again, made_for=replace(made, parameters=replace(asked, epsilon=epsilon)))


def check_error(error: Any) -> float:
    """Refuse what is no error to ask for."""
    if isinstance(error, bool) or not isinstance(error, Real) or not 0 < float(error) < math.inf:
        raise ValueError("error must be a positive number.")  # unquoted: it may be y by mistake
    return float(error)


def least_epsilon(plan_at: Callable[[float], Plan], error: float) -> float:
    """The least epsilon, within 1%, at which the plan expects at most this error.

    From 1 in steps of a factor of 4 to where the answer changes, then by halving the factor between.
    The error falls with epsilon but for small steps where the choice of groups changes; the epsilon
    that is returned was planned for and expects at most ``error``. Never less than 1e-6. ValueError
    if the largest epsilon is not enough.
    """

    def reaches_error(epsilon: float) -> bool:
        return bool(np.all(plan_at(epsilon).expected_error() <= error))

    enough = short = 1.0
    if reaches_error(1.0):
        while short >= enough:
            short = max(LEAST_EPSILON, enough / STEP)
            if reaches_error(short):
                enough = short
                if enough == LEAST_EPSILON:
                    return enough
    else:
        while enough <= short:
            if short == MAX_EPSILON:
                raise ValueError(_explain_limit(plan_at(MAX_EPSILON), error))
            enough = min(MAX_EPSILON, short * STEP)
            if not reaches_error(enough):
                short = enough
    while enough > CLOSE * short:
        middle = math.sqrt(short * enough)
        if reaches_error(middle):
            enough = middle
        else:
            short = middle
    return enough


def _explain_limit(plan: Plan, error: float) -> str:
    least, without = (
        ", ".join(f"{each:.4g}" for each in np.atleast_1d(errors))
        for errors in (plan.expected_error(), plan.error_without_privacy())
    )
    return (
        f"no epsilon reaches an expected error of {error:g}: at the largest that is accepted, "
        f"{MAX_EPSILON:g}, it is {least}, and without privacy it would be {without}."
    )
