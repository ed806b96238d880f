"""More than one measurement: rows of new people, or the same rows with more budget.

Each new measurement is planned by what the earlier ones left unknown, and everything is then learned
from all of them together.
"""

from __future__ import annotations

from contextlib import suppress
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from privgp.models.kinds.fit import Exposed, plan_given
from privgp.models.kinds.further import PublicInputs, Rows, rows_of
from privgp.models.kinds.tallied import Tallied
from privgp.privacy.noise import GAUSSIAN, LAPLACE, PURE
from privgp.privacy.stages import Stages, check_shares, information_share, share_out
from privgp.vault.masked import Sealed

if TYPE_CHECKING:
    from privgp.models.published import Published

KINDS = (
    "only a release that was made with reconstruct='posterior' and without inducing inputs can be "
    "updated or refined. Nothing was spent."
)
OLD_FILE = (
    "the file was written by an earlier version of privgp, which did not keep what a further "
    "measurement needs. Nothing was spent."
)
OTHER_PARAMETERS = (
    "{} must be as it was when the release was made: set it back, or fit anew. Nothing was spent."
)
OTHER_UNIT = (
    "groups must be given if they were given at first, and otherwise not: the promise protects one "
    "kind of unit. Nothing was spent."
)
LOST = (
    "an earlier update or refinement failed after its noise was drawn: guarantee_ counts it, and nothing "
    "can be added to this release any more. Nothing was spent."
)
# What the released numbers rest on.
KEPT = (
    *("protect", "y_bounds", "x_bounds", "max_change", "likelihood", "reconstruct"),
    *("classes", "link"),
)


def check_updatable(model: Published) -> None:
    """Refuse a release of a kind that no further measurement can be added to."""
    check_is_fitted(model)
    before: Any = model._released.parameters
    if not model._released.spent:
        loaded = not hasattr(model, "plan_")
        old = loaded and (before.reconstruct, before.inducing) == ("posterior", None)
        raise ValueError(OLD_FILE if old else KINDS)
    now = model._parameters(model._released.columns)
    for one, other in [(now, before), *zip(now.parts(), before.parts(), strict=False)]:
        for name in KEPT:
            if getattr(one, name, None) != getattr(other, name, None):
                raise ValueError(OTHER_PARAMETERS.format(name))


def is_updatable(model: Published) -> bool:
    """Whether a further measurement can be added to a release."""
    with suppress(ValueError):
        check_updatable(model)
        return True
    return False


def measure_further(
    model: Published,
    X: Any,
    y: Any,
    groups: Any,
    exposed: Exposed,
    budget: tuple[float, float] | None = None,
) -> None:
    """Measure rows once more, and learn from all measurements together.

    Parameters
    ----------
    model : estimator
        A fitted one, which then holds the new release.
    X, y, groups : object
        The rows, their private outputs, and whose they are.
    exposed : mapping
        The exposures of counts, by the place of the output.
    budget : (epsilon, delta), optional
        A further budget for rows that were measured before. None: the model's own, for rows of people
        who were in no batch before.

    """
    _check_further(model)
    rows = rows_of(model, X, groups, exposed)
    measure_rows(model, rows, rows._private_data(model, X, y, groups), groups, budget)


def _check_further(model: Published) -> None:
    """Refuse a release that nothing can be added to."""
    check_updatable(model)
    if len(model._released.spent) > 1 and model.guarantee_ != model._released.guarantee:
        raise ValueError(LOST)


def measure_tally(
    model: Published, rows: Tallied, data: Sealed, budget: tuple[float, float] | None
) -> None:
    """The same for many rows, wherever they are."""
    _check_further(model)
    measure_rows(model, PublicInputs.given_rows(rows), data, None, budget)


def measure_rows(
    model: Published, rows: Rows, data: Sealed, groups: Any, budget: tuple[float, float] | None
) -> None:
    """The same for rows that are known, and outcomes that the vault holds."""
    if (rows.people is None) != (model._released.spent[0].people is None):
        raise ValueError(OTHER_UNIT)
    again = budget is not None
    each = [*enumerate(model._released.each)]
    batch = max(rows.batch(one, place, again=again) for place, one in each)
    questions = [one._question(model._released.columns) for one in model._alone()]
    earlier = tuple(rows.earlier(one, place, batch, questions[place]) for place, one in each)
    asking: Any = model
    if budget is not None:
        asking = copy(model).set_params(epsilon=budget[0], delta=budget[1])
    plan = plan_given(asking, rows.given(asking, groups), earlier)
    plan = replace(plan, output_names=model._released.output_names)
    data = rows._sum_for(data, plan)
    model._publish_plan(plan, data, inputs=rows.inputs, batch=batch)


def stages(model: Published, X: Any, shares: Any, groups: Any, **given: Any) -> Stages:
    """The model's budget in parts, with the noise distribution that leaves less error in the end: of
    several outputs, in the mean of logarithms. ``given``: further arguments of ``plan``."""
    shares = check_shares(shares)
    streamed = hasattr(model, "_streams") and model._streams(0)
    if streamed or getattr(model, "reconstruct", "posterior") != "posterior":
        raise ValueError(KINDS)
    epsilon, delta = float(model.epsilon), float(model.delta)
    compared = (LAPLACE, GAUSSIAN) if model.mechanism == "auto" else (model.mechanism,)
    laws = [law for law in compared if delta > 0 or law in PURE]
    errors = {}
    never = {"residuals": "never"} if hasattr(model, "residuals") else {}
    for law in laws:
        together = epsilon * information_share(law, shares)
        asked = clone(model).set_params(mechanism=law, epsilon=together, **never)
        expected = asked.plan(X, groups=groups, **given).expected_error()
        errors[law] = float(np.exp(np.mean(np.log(expected))))
    if not errors:
        raise ValueError("delta must be positive for Gaussian noise.")
    best = min(errors, key=lambda law: errors[law])
    return Stages(best, share_out(best, epsilon, delta, shares), errors)
