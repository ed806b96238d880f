"""More than one measurement: rows of new people, or the same rows with more budget.

Each new measurement is planned by what the earlier ones left unknown, and everything is then learned
from all of them together.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from privgp.gp.inference.learning import learn
from privgp.gp.inference.posterior import Posterior, posterior
from privgp.gp.input_maps import collapse
from privgp.gp.measurement import Measurement
from privgp.gp.stacking import Stacked, sums_behind
from privgp.gp.threads import laid_out, one_thread
from privgp.models.planned import PublicRows, bound
from privgp.models.promise import seeds
from privgp.models.spending import charge
from privgp.models.tables import rows_at
from privgp.plan.build import make_plan
from privgp.plan.designs.earlier import Earlier, SameRows
from privgp.plan.fingerprint import fingerprint
from privgp.plan.inputs.start import starting_priors
from privgp.plan.plan import Plan
from privgp.plan.several.arguments import are_several
from privgp.privacy.guarantee import Guarantee
from privgp.privacy.noise import GAUSSIAN, LAPLACE, PURE
from privgp.privacy.stages import Stages, check_shares, kept_by, shared_out
from privgp.release.certificate import utc
from privgp.release.spendings import Spending, energy_of, places, promised
from privgp.types import Array, Integers, Random
from privgp.vault.measure import measure
from privgp.vault.validate import checked_outputs, person_ids

if TYPE_CHECKING:
    from privgp.models.regressor import PrivateGPRegressor

KINDS = (
    "only a release of one output, neither labels nor rates, at public inputs, made with "
    "reconstruct='posterior' and without inducing inputs, can be updated or refined. Nothing was spent."
)
OLD_FILE = (
    "the file was written by an earlier version of privgp, which did not keep what a further "
    "measurement needs. Nothing was spent."
)
MEASURED = (
    "these rows, by their X and groups, were measured already: for a second look at the same people "
    "use refine. Nothing was spent."
)
OTHER_ROWS = (
    "X and groups must be the rows of one earlier measurement, in the same order: for new people use "
    "update. Nothing was spent."
)
OTHER_PARAMETERS = (
    "{} must be as it was when the release was made: set it back, or fit anew. Nothing was spent."
)
OTHER_UNIT = (
    "groups must be given if they were given at first, and otherwise not: the promise protects one "
    "kind of unit. Nothing was spent."
)


def spent_first(plan: Plan, measurement: Measurement, guarantee: Guarantee) -> tuple[Spending, ...]:
    """The first measurement, as later ones need it; none where there can be no later ones."""
    distinct, inputs = plan.strategy.distinct_inputs, plan.inputs
    linear = plan.unbiased is None and plan.unit is None
    if inputs is None or distinct is None or not linear:
        return ()
    return (_spending(plan, measurement, guarantee, 0),)


def check_updatable(model: PrivateGPRegressor) -> None:
    """Refuse a release of a kind that no further measurement can be added to."""
    if not hasattr(model, "update"):
        raise ValueError(KINDS)
    check_is_fitted(model)
    alone = model.likelihood == "gaussian" and not model._each
    if model.protect != "outputs" or model.inducing is not None or not alone:
        raise ValueError(KINDS)
    if "plan_" in vars(model) and model.plan_.strategy.distinct_inputs is None:
        raise ValueError(KINDS)
    if model._at_targets is not None:
        raise ValueError(KINDS)
    if not model._spent:
        raise ValueError(OLD_FILE)
    loaded = vars(model).get("loaded_")
    before = model._asked if loaded is None else loaded.parameters
    now = model._parameters(model.functionals_.nodes.shape[1])
    for name in ("y_bounds", "max_change", "reconstruct"):
        if getattr(now, name) != getattr(before, name):
            raise ValueError(OTHER_PARAMETERS.format(name))


def measure_new(model: PrivateGPRegressor, X: Any, y: Any, groups: Any) -> None:
    """Measure rows of people who were in no batch before."""
    X, people, spent = _rows(model, X, groups)
    y = checked_outputs(y, len(X))
    if not {each.fingerprint for each in spent}.isdisjoint(_fingerprints(X, people)):
        raise ValueError(MEASURED)
    batch = 1 + max(each.batch for each in spent)
    plan = _plan(model, model, X, people, _earlier(model, spent, X))
    charge(model, model._promised(plan), X)
    measurement = measure(y, plan.y_bounds, plan.strategy, plan.noise, _simulation(model, spent))
    del y
    _release(model, plan, measurement, spent, batch)


def measure_again(
    model: PrivateGPRegressor, X: Any, y: Any, epsilon: float, delta: float, groups: Any
) -> None:
    """Measure the rows of one batch again, with a further budget."""
    X, people, spent = _rows(model, X, groups)
    y = checked_outputs(y, len(X))
    rows = _fingerprints(X, people)
    same = [each for each in spent if each.fingerprint in rows]
    if not same:
        raise ValueError(OTHER_ROWS)
    asking = clone(model).set_params(epsilon=epsilon, delta=delta)
    asking.inputs_ = model.inputs_
    earlier = _earlier(model, spent, X[:0])
    earlier = replace(earlier, again=_again(earlier, spent, same[0].batch, X))
    plan = _plan(model, asking, X, people, earlier)
    charge(model, model._promised(plan), X)
    measurement = measure(y, plan.y_bounds, plan.strategy, plan.noise, _simulation(model, spent))
    del y
    _release(model, plan, measurement, spent, same[0].batch)


def stages(model: PrivateGPRegressor, X: Any, shares: Any, groups: Any) -> Stages:
    """The model's budget in parts, with the noise distribution that leaves less error in the end."""
    shares = check_shares(shares)
    plain = model.likelihood == "gaussian" and not are_several(model.y_bounds)
    public = model.protect == "outputs" and model.inducing is None
    if not (plain and public and model.reconstruct == "posterior"):
        raise ValueError(KINDS)
    epsilon, delta = float(model.epsilon), float(model.delta)
    compared = (LAPLACE, GAUSSIAN) if model.mechanism == "auto" else (model.mechanism,)
    laws = [law for law in compared if delta > 0 or law in PURE]
    errors = {}
    for law in laws:
        together = epsilon * kept_by(law, shares)
        asked = clone(model).set_params(mechanism=law, epsilon=together)
        errors[law] = float(asked.plan(X, groups=groups).expected_error())
    if not errors:
        raise ValueError("delta must be positive for Gaussian noise.")
    best = min(errors, key=lambda law: errors[law])
    return Stages(best, shared_out(best, epsilon, delta, shares), errors)


def _rows(
    model: PrivateGPRegressor, X: Any, groups: Any
) -> tuple[Array, Integers | None, tuple[Spending, ...]]:
    """Inputs, people and the measurements so far, checked."""
    check_updatable(model)
    X = rows_at(model, X)
    people = person_ids(groups, len(X))
    spent = model._spent
    if len(spent) == 1:  # whose promise may include a choice of hyperparameters
        spent = (replace(spent[0], guarantee=model.guarantee_),)
    if (people is None) != (spent[0].people is None):
        raise ValueError(OTHER_UNIT)
    return X, people, spent


def _fingerprints(X: Array, people: Integers | None) -> tuple[str, str]:
    """Of the rows with people numbered as they come, whatever identifiers are written as, and 0 for -0;
    and as earlier versions have it in their files."""
    if people is None:
        return fingerprint(X + 0.0, None), fingerprint(X, None)
    firsts, places = np.unique(people, return_index=True, return_inverse=True)[1:]
    return fingerprint(X + 0.0, np.argsort(np.argsort(firsts))[places]), fingerprint(X, people)


def _earlier(model: PrivateGPRegressor, spent: tuple[Spending, ...], X: Array) -> Earlier:
    """What is known, with priors for the rows so far, as the nodes tell of them, and new ones."""
    f, total = model.functionals_, sum(each.rows for each in _each_batch(spent))
    mass = np.maximum(f.energy_gram.sum(axis=1), 0.0)
    counts = np.maximum(1, np.rint(mass * (total / mass.sum()))).astype(int)
    question = model._question(X.shape[1])
    seen = np.vstack([np.repeat(f.nodes, counts, axis=0), X])
    priors = starting_priors(seen, question, learned=question.energy)
    return Earlier(Stacked(f, model._measured), cast(Posterior, model.release_), priors)


def _each_batch(spent: tuple[Spending, ...]) -> list[Spending]:
    """One measurement of every batch."""
    return list({each.batch: each for each in spent}.values())


def _again(
    earlier: Earlier, spent: tuple[Spending, ...], batch: int, X: Array
) -> tuple[SameRows, ...]:
    """How earlier measurements of these rows weighed them."""
    inputs, index = collapse(X)
    f, start = earlier.known.functionals, earlier.priors[0].start
    found = []
    for each, place in zip(spent, places(spent), strict=True):
        if each.batch == batch:
            weights = np.ones(len(X)) if each.row_weights is None else each.row_weights
            mass = np.bincount(index, weights, minlength=len(inputs)).astype(float)
            sums = sums_behind(f.weights[place], f.nodes, inputs, mass, start)
            found.append(SameRows(place.start, sums, weights))
    return tuple(found)


def _plan(
    model: PrivateGPRegressor,
    asking: PrivateGPRegressor,
    X: Array,
    people: Integers | None,
    earlier: Earlier,
) -> Plan:
    """The plan of a measurement with the budget of ``asking``."""
    question = asking._question(X.shape[1])
    with one_thread():
        plan = make_plan(X, question, asking._budget(), people, earlier)
    plan = bound(asking, plan, PublicRows.of(X, people))
    made = plan.made_for
    assert made is not None
    return replace(plan, made_for=replace(made, names=_names(model)))


def _names(model: PrivateGPRegressor) -> tuple[str, ...] | None:
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else tuple(map(str, names))


def _simulation(model: PrivateGPRegressor, spent: tuple[Spending, ...]) -> Random:
    """Other noise at every measurement, also from one seed."""
    (seed,) = seeds(model)
    return None if seed is None else np.random.default_rng([seed, len(spent)])


def _spending(plan: Plan, measured: Measurement, guarantee: Guarantee, batch: int) -> Spending:
    strategy: Any = plan.strategy
    people, weights = strategy.people, strategy.row_weights
    return Spending(
        batch=batch,
        fingerprint=_fingerprints(plan.inputs[strategy.index], people)[0],
        rows=strategy.rows,
        people=None if people is None else int(people.max()) + 1,
        row_weights=None if np.all(weights == 1.0) else weights,
        values=measured.values,
        noise_std=measured.noise_std,
        energy=measured.energy,
        energy_noise_std=measured.energy_noise_std,
        is_laplace=bool(measured.laplace.all()),
        guarantee=guarantee,
    )


def _release(
    model: PrivateGPRegressor,
    plan: Plan,
    measurement: Measurement,
    spent: tuple[Spending, ...],
    batch: int,
) -> None:
    """All that follows from the measurements: post-processing."""
    assert plan.earlier is not None
    strategy: Any = plan.strategy
    guarantee = model._promised(plan)
    spent = (*spent, _spending(plan, measurement, guarantee, batch))
    with one_thread():
        both = plan.earlier.with_another(plan.functionals, measurement, strategy)
        energy, std = energy_of(spent)
        measured = replace(both.measurement, energy=energy, energy_noise_std=std)
        functionals, models = laid_out(both.functionals), model._models
        if model.hyperparameters == "learned":
            models = learn(functionals, measured, plan.priors)
        centre = 0.5 * plan.y_bounds[0] + 0.5 * plan.y_bounds[1]
        found = posterior(functionals, measured, models, centre)
    asked = model._parameters(plan.targets.shape[1])
    loaded = model.__dict__.pop("loaded_", None)
    if loaded is not None:
        model.chosen_by_ = loaded.certificate["hyperparameters"]["source"]
    model.guarantee_, model.plan_ = promised(spent), plan
    model.measurements_ = tuple(each.measurement for each in spent)
    model.released_at_ = utc(datetime.now(UTC))
    model.functionals_, model._asked = functionals, asked
    model._spent, model._measured = spent, measured
    model._answer_by(found, models)
