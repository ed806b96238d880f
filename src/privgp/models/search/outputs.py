"""Search over a private regressor by its own private outputs: free, or for a share of the budget."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from privgp.gp.evidence import fit as explain
from privgp.gp.priors import Hyperparameters
from privgp.gp.smoothers import exact_smoother
from privgp.gp.threads import one_thread
from privgp.models.promise import outputs_guarantee
from privgp.models.regressor import PrivateGPRegressor
from privgp.models.search.candidates import centre_of, check_private, models_of
from privgp.plan.inputs.arguments import check_bounds
from privgp.plan.preview import Plan
from privgp.plan.search.folds import Split, folds_of, public_splits
from privgp.plan.strategy import OutputSums
from privgp.privacy.guarantee import SIMULATED_SAMPLER, Guarantee
from privgp.privacy.noise import GAUSSIAN, LAPLACE
from privgp.privacy.pure import remaining_epsilon, total_epsilon
from privgp.privacy.residuals import Fold
from privgp.types import Array
from privgp.vault.measure import measure
from privgp.vault.people import person_ids
from privgp.vault.residuals import root_utilities
from privgp.vault.select import MECHANISMS, SELECTION_SAMPLER
from privgp.vault.validate import checked_outputs

if TYPE_CHECKING:
    from privgp.models.search.grid import PrivateGridSearchCV

GRID_ASSUMPTION = (
    "the candidates, bounds, targets, splits and budget were chosen without looking at the outputs"
)
CHOSEN_FREELY = (
    "chosen among {count} candidates by the private measurement itself, at no cost to the budget"
)
CHOSEN_AT_COST = "chosen among {count} candidates by {method}, with epsilon = {epsilon:g}"


def fit_measured(search: PrivateGridSearchCV, X: Any, y: Any, groups: Any) -> None:
    """One measurement with the whole budget; candidates are ranked by its evidence: post-processing.

    The measurement is planned for the centre of the grid, on inputs as they are and ranked.
    """
    params = search._candidates()
    check_private(search.estimator, params, search.method)
    rows = check_array(X, dtype=np.float64)
    y = checked_outputs(y, len(rows))
    models = models_of(search.estimator, params, rows)
    centre = centre_of(models)
    budget = {"epsilon": search.epsilon, "delta": search.delta}
    planner = clone(search.estimator).set_params(
        kernel=centre.kernel,
        noise_variance=centre.noise_variance,
        hyperparameters="learned",
        **budget,
    )
    plan = planner._plan(rows, groups, ranked=True)
    (seed,) = search._seeds(1)
    rng = None if seed is None else np.random.default_rng(seed)
    measurement = measure(y, plan.y_bounds, plan.strategy, plan.noise, rng)
    del y
    planner.set_params(random_state=seed)
    search.guarantee_ = _of_the_grid(outputs_guarantee(plan, simulated=seed is not None))
    with one_thread():
        evidence = np.array([_evidence(plan, measurement, model) for model in models])
    best = int(np.argmax(evidence))
    if evidence[best] == -np.inf:
        raise RuntimeError("no candidate explains the measurement: count the budget as spent.")
    model = clone(search.estimator).set_params(
        **params[best], **budget, hyperparameters="fixed", random_state=seed
    )
    validate_data(model, X, dtype=np.float64)
    model._release(plan, measurement, (models[best],))
    model.guarantee_ = search.guarantee_
    model.chosen_by_ = CHOSEN_FREELY.format(count=len(params))
    order = np.argsort(-evidence, kind="stable")
    ranks = np.empty(len(params), dtype=int)
    ranks[order] = np.arange(1, len(params) + 1)
    search._finish(params, best, model, {"log_evidence": evidence, "rank_test_score": ranks})


def _evidence(plan: Plan, measurement: Any, model: Hyperparameters) -> float:
    nodes = model.input_map(plan.functionals.nodes)
    try:
        found = explain(plan.functionals, measurement, model.kernel, model.noise_variance, nodes)
    except np.linalg.LinAlgError:
        return -np.inf
    return found.log_evidence if np.isfinite(found.log_evidence) else -np.inf


def fit_selected(search: PrivateGridSearchCV, X: Any, y: Any, groups: Any) -> None:
    """Choose by cross-validation residuals with a share of epsilon, then release with the rest."""
    params = search._candidates()
    check_private(search.estimator, params, search.method)
    rows = check_array(X, dtype=np.float64)
    y = checked_outputs(y, len(rows))
    people = person_ids(groups, len(rows))
    bounds = check_bounds("y_bounds", search.estimator.y_bounds)
    models = models_of(search.estimator, params, rows)
    splits = public_splits(search.cv, rows, people)
    spent = search.selection_share * search.epsilon
    selection_seed, seed = search._seeds(2)
    settings = {"delta": search.delta, "hyperparameters": "fixed", "random_state": seed}
    trials = [clone(search.estimator).set_params(**each, **settings) for each in params]
    noise, promise = _planned(search, trials, models, rows, groups, spent)
    tested = sum(len(test) for _, test in splits)
    half = 0.5 * (bounds[1] - bounds[0])
    inside = np.sqrt(tested * noise) / half
    candidates = _candidates(models, rows, splits, inside)
    with one_thread():
        utilities, sensitivity = root_utilities(y, bounds, len(rows), candidates, people)
    choose = MECHANISMS[search.method]
    rng = None if selection_seed is None else np.random.default_rng(selection_seed)
    best = choose(utilities, sensitivity, spent, rng)
    del utilities
    search.guarantee_ = promise  # from here on it counts as spent, whatever happens
    model = trials[best]
    model.fit(X, y, groups)
    del y
    told = f"{_chosen_by(search, len(params))}, then {model.guarantee_.mechanism}"
    model.guarantee_ = search.guarantee_ = replace(promise, mechanism=told)
    model.chosen_by_ = CHOSEN_AT_COST.format(count=len(params), method=search.method, epsilon=spent)
    public = {
        "noise_std": np.sqrt(noise),
        "sensitivity": np.full(len(params), sensitivity * half),
    }
    search._finish(params, best, model, public)


def _planned(
    search: PrivateGridSearchCV,
    trials: Sequence[PrivateGPRegressor],
    models: Sequence[Hyperparameters],
    X: Array,
    groups: Any,
    spent: float,
) -> tuple[Array, Guarantee]:
    """For every candidate the mean square at the targets of what privacy adds to its predictions,
    and what choice and release promise together whichever is chosen. All public; sets the trials'
    epsilon and law of noise.

    The law is the same for all candidates, so that the promise does not depend on the choice. A
    release with Gaussian noise gets what exact accounting leaves, should that keep the promise, else
    what adding up leaves, which always does, as it does for Laplace noise. The one that adds least
    is taken.
    """
    found: list[tuple[Array, Guarantee, float, str]] = []
    for rest, mechanism in _ways(search, spent):
        if mechanism in (way[3] for way in found):
            continue
        plans = [
            trial.set_params(epsilon=rest, mechanism=mechanism).plan(X, groups) for trial in trials
        ]
        promise = _with_choice(search, plans, spent)
        if promise.delta_at(search.epsilon) <= search.delta:
            pairs = zip(plans, models, strict=True)
            added = np.array([privacy_error(plan, model) for plan, model in pairs])
            found.append((added, promise, rest, mechanism))
    if not found:
        raise ValueError("the budget is too small to choose and to release: give a larger one.")
    added, promise, rest, mechanism = min(found, key=lambda way: float(np.mean(way[0])))
    for trial in trials:
        trial.set_params(epsilon=rest, mechanism=mechanism)
    return added, promise


def _ways(search: PrivateGridSearchCV, spent: float) -> Iterator[tuple[float, str]]:
    """The epsilon of the release and its law of noise: what may be tried."""
    model, left = search.estimator, float(search.epsilon) - spent
    while total_epsilon((spent, left)) > search.epsilon:
        left = float(np.nextafter(left, 0.0))
    sums = model.objective == "posterior" and model.reconstruct == "posterior"
    if model.mechanism == LAPLACE or (model.mechanism != GAUSSIAN and sums):
        yield left, LAPLACE
    if model.mechanism != LAPLACE and search.delta > 0:
        yield remaining_epsilon(search.epsilon, search.delta, spent), GAUSSIAN
        yield left, GAUSSIAN
    elif model.mechanism == GAUSSIAN or not sums:
        yield left, GAUSSIAN  # which refuses delta = 0


def privacy_error(plan: Plan, model: Hyperparameters) -> float:
    """Mean square, at the targets, of the difference that privacy makes to a model's predictions.

    Unbiased: the variance of the noise. Posterior: the expected square of what noise and shrinkage
    do together, the variance given the measurement less that given the outputs themselves.
    """
    weights = plan.target_weights / plan.target_weights.sum()
    if plan.unbiased is not None:
        return float(weights @ plan.noise_std**2)
    inputs, targets = model.input_map(plan.inputs), model.input_map(plan.targets)
    assert isinstance(plan.strategy, OutputSums)
    counts = np.bincount(plan.strategy.index).astype(float)
    exact = exact_smoother(model.kernel, model.noise_variance, inputs, counts, targets)
    lost = plan.expected_std(plan.targets) ** 2 - exact.variance
    return float(weights @ np.maximum(lost, 0.0))


def _candidates(
    models: Sequence[Hyperparameters], X: Array, splits: Sequence[Split], noise: Array
) -> Iterator[tuple[Iterator[Fold], float]]:
    for model, inside in zip(models, noise, strict=True):
        yield folds_of(model, X, splits), float(inside)


def _chosen_by(search: PrivateGridSearchCV, count: int) -> str:
    return f"one of {count} candidates by {search.method}"


def _of_the_grid(promise: Guarantee) -> Guarantee:
    return replace(promise, assumptions=(promise.assumptions[0], GRID_ASSUMPTION))


def _with_choice(search: PrivateGridSearchCV, plans: Sequence[Plan], spent: float) -> Guarantee:
    """The choice and the release together: the promise that holds whichever of them is released."""
    each = [outputs_guarantee(plan, simulated=search.random_state is not None) for plan in plans]
    weakest = min(each, key=lambda one: one.noise_multipliers)
    promise = replace(weakest, delta_slack=max(one.delta_slack for one in each))
    sampler = f"{SELECTION_SAMPLER}; {promise.sampler}"
    if search.random_state is not None:
        sampler = SIMULATED_SAMPLER
    return replace(
        _of_the_grid(promise),
        epsilon=float(search.epsilon),
        delta=0.0 if promise.is_pure else float(search.delta),
        mechanism=f"{_chosen_by(search, len(plans))}, then {promise.mechanism}",
        sampler=sampler,
        pure_epsilons=(spent, *promise.pure_epsilons),
    )
