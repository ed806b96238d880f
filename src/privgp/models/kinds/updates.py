"""More than one measurement: rows of new people, or the same rows with more budget.

Each new measurement is planned by what the earlier ones left unknown, and everything is then learned
from all of them together.
"""

from __future__ import annotations

from contextlib import suppress
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from privgp.models.kinds.further import Rows, rows_of
from privgp.models.kinds.several.model import plan_several, release_several
from privgp.models.kinds.several.rows import Exposed
from privgp.models.promise import seeds
from privgp.models.published import Further
from privgp.models.spending import charge
from privgp.privacy.noise import GAUSSIAN, LAPLACE, PURE
from privgp.privacy.stages import Stages, check_shares, kept_by, shared_out
from privgp.release.spendings import Spending
from privgp.types import Random
from privgp.vault.measure import measure

if TYPE_CHECKING:
    from privgp.models.classifier import PrivateGPClassifier
    from privgp.models.gp import PrivateGP
    from privgp.models.regressor import PrivateGPRegressor

    Model: TypeAlias = PrivateGPRegressor | PrivateGPClassifier | PrivateGP

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
# What the released numbers rest on.
KEPT = (
    *("protect", "y_bounds", "x_bounds", "max_change", "likelihood", "reconstruct"),
    *("classes", "link"),
)


def check_updatable(model: Model) -> None:
    """Refuse a release of a kind that no further measurement can be added to."""
    check_is_fitted(model)
    loaded = vars(model).get("loaded_")
    before: Any = model._asked if loaded is None else loaded.parameters
    if not model._spent:
        old = loaded is not None and (before.reconstruct, before.inducing) == ("posterior", None)
        raise ValueError(OLD_FILE if old else KINDS)
    now = model._parameters(_parts(model)[0].functionals_.nodes.shape[1])
    pairs = [(now, before)]
    if model._each:
        pairs += zip(now.parts(), before.parts(), strict=False)
    for one, other in pairs:
        for name in KEPT:
            if getattr(one, name, None) != getattr(other, name, None):
                raise ValueError(OTHER_PARAMETERS.format(name))


def is_updatable(model: Model) -> bool:
    """Whether a further measurement can be added to a release."""
    with suppress(ValueError):
        check_updatable(model)
        return True
    return False


def measure_new(model: Model, X: Any, y: Any, groups: Any, exposed: Exposed) -> None:
    """Measure rows of people who were in no batch before. ``exposed``: the exposures of counts."""
    rows = _rows(model, X, groups, exposed)
    _measure(model, model, rows, X, y, groups, again=False)


def measure_again(
    model: Model,
    X: Any,
    y: Any,
    epsilon: float,
    delta: float,
    groups: Any,
    exposed: Exposed,
) -> None:
    """Measure the rows of one batch again, with a further budget."""
    rows = _rows(model, X, groups, exposed)
    asking = copy(model).set_params(epsilon=epsilon, delta=delta)
    _measure(model, asking, rows, X, y, groups, again=True)


def stages(model: Model, X: Any, shares: Any, groups: Any, **given: Any) -> Stages:
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
    for law in laws:
        together = epsilon * kept_by(law, shares)
        asked = clone(model).set_params(mechanism=law, epsilon=together)
        expected = asked.plan(X, groups=groups, **given).expected_error()
        errors[law] = float(np.exp(np.mean(np.log(expected))))
    if not errors:
        raise ValueError("delta must be positive for Gaussian noise.")
    best = min(errors, key=lambda law: errors[law])
    return Stages(best, shared_out(best, epsilon, delta, shares), errors)


def _rows(model: Model, X: Any, groups: Any, exposed: Exposed) -> Rows:
    """The rows to be measured, checked."""
    check_updatable(model)
    rows = rows_of(model, X, groups, exposed)
    if (rows.people is None) != (model._spent[0].people is None):
        raise ValueError(OTHER_UNIT)
    return rows


def _measure(
    model: Model, asking: Model, rows: Rows, X: Any, y: Any, groups: Any, *, again: bool
) -> None:
    """Measure these rows with the budget of ``asking``, and learn from all measurements together."""
    data, parts = rows._data(model, X, y, groups), _parts(model)
    batch = max(rows.batch(one, place, again=again) for place, one in enumerate(parts))
    earlier = tuple(rows.earlier(one, place, batch) for place, one in enumerate(parts))
    plan: Any
    if model._each:
        plan = plan_several(asking, rows.given(asking, groups), earlier)
        plan = replace(plan, output_names=model.output_names_)
    else:
        given: Any = {"exposure": rows.exposed.get(0), "earlier": earlier[0]}
        plan = asking._plan(rows.planned, groups, **given)
    charge(model, model._promised(plan), rows.inputs)
    measured: Any = measure(data, plan.y_bounds, plan.strategy, plan.noise, _simulation(model))
    del data, y, X
    further = Further(_so_far(model), batch)
    if model._each:
        release_several(model, plan, measured, further)
    else:
        model._release(plan, measured, further=further)


def _parts(model: Model) -> tuple[Any, ...]:
    """The models of several outputs, or the model itself."""
    return model._each or (model,)


def _so_far(model: Model) -> tuple[Spending, ...]:
    """The measurements so far; the promise of a single one may include a choice of hyperparameters."""
    first, *others = model._spent
    return tuple(model._spent) if others else (replace(first, guarantee=model.guarantee_),)


def _simulation(model: Model) -> Random:
    """Other noise at every measurement, also from one seed."""
    (seed,) = seeds(model)
    return None if seed is None else np.random.default_rng([seed, len(model._spent)])
