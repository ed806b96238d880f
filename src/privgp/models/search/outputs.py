"""Search over a private regressor by its own private outputs: free, or for a share of the budget."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from privgp.gp.inference.evidence import fit as explain
from privgp.gp.measurement import Measurement
from privgp.gp.priors import Hyperparameters
from privgp.gp.smoothers import exact_smoother
from privgp.gp.threads import one_thread
from privgp.models.promise import generator, guarantee_of, seeds, simulation
from privgp.models.regressor import PrivateGPRegressor
from privgp.models.rows.tables import numbers_only
from privgp.models.search.candidates import candidates_of, centre_of, check_private, models_of
from privgp.plan.build import make_part
from privgp.plan.inputs.arguments import check_bounds
from privgp.plan.plan import Plan, plan_of_parts
from privgp.plan.search.folds import folds_of, public_splits
from privgp.privacy.guarantee import Event, Guarantee, epsilon_left, promise, total_epsilon
from privgp.privacy.noise import GAUSSIAN, LAPLACE, PURE
from privgp.privacy.protected import Protected
from privgp.types import Array
from privgp.vault.measure import measure
from privgp.vault.select import SELECTION_SAMPLER, choose_by_residuals
from privgp.vault.validate import person_ids, seal_outputs

if TYPE_CHECKING:
    from privgp.models.search.grid import PrivateGridSearchCV

GRID_ASSUMPTION = (
    "the candidates, bounds, targets, splits and budget were chosen without looking at the outputs"
)


def fit_by_evidence(search: PrivateGridSearchCV, X: object, y: object, groups: object) -> None:
    """One measurement with the whole budget, whose evidence ranks the candidates for nothing."""
    rows, params, models = _list_candidates(search, X)
    y = seal_outputs(y, len(rows))
    centre = centre_of(models)
    budget = {"epsilon": search.epsilon, "delta": search.delta}
    start = {"kernel": centre.kernel, "noise_variance": centre.noise_variance}
    planner = clone(search.estimator).set_params(**start, **budget, hyperparameters="learned")
    question = replace(planner._question(rows.shape[1]), ranked=True, residuals="never")
    with one_thread():
        part = make_part(rows, question, planner._budget(), person_ids(groups, len(rows)))
        plan = plan_of_parts([part])
    (seed,) = seeds(search)
    promised = _guarantee(search, [plan], plan)

    def learn(measurement: Measurement) -> None:
        search.guarantee_ = promised
        with one_thread():
            evidence = np.array([_evidence(plan, measurement, model) for model in models])
        best = int(np.argmax(evidence))
        if evidence[best] == -np.inf:
            raise RuntimeError("no candidate explains the measurement: count the budget as spent.")
        model = clone(search.estimator).set_params(
            **params[best], **budget, hyperparameters="fixed", random_state=seed
        )
        validate_data(model, X, dtype=np.float64)
        model._learn(plan, measurement, models=(models[best],), inputs=rows)
        ranks = rankdata(-evidence, method="ordinal").astype(int)
        results = {"log_evidence": evidence, "rank_test_score": ranks}
        how = "the private measurement itself, at no cost to the budget"
        search._keep(best, model, results, how)

    search._publish(
        promised,
        lambda: measure(y, plan.y_bounds, plan.parts[0].strategy, plan.noise, generator(seed)),
        learn,
        inputs=rows,
        rows=len(rows),
    )


def _list_candidates(
    search: PrivateGridSearchCV, X: object
) -> tuple[Array, list[dict[str, Any]], list[Hyperparameters]]:
    """The public rows, and every candidate as parameters and as a model."""
    params = candidates_of(search.param_grid)
    check_private(search.estimator, params, search.method)
    numbers_only(search, X)
    rows = check_array(X, dtype=np.float64)
    return rows, params, models_of(search.estimator, params, rows)


def _evidence(plan: Plan, measurement: Measurement, model: Hyperparameters) -> float:
    nodes = model.input_map(plan.functionals.nodes)
    try:
        explained = explain(
            plan.functionals, measurement, model.kernel, model.noise_variance, nodes
        )
    except np.linalg.LinAlgError:
        return -np.inf
    return explained.log_evidence if np.isfinite(explained.log_evidence) else -np.inf


def fit_by_cross_validation(
    search: PrivateGridSearchCV, X: object, y: object, groups: object
) -> None:
    """Choose by cross-validation residuals with a share of epsilon, then release with the rest."""
    rows, params, models = _list_candidates(search, X)
    y = seal_outputs(y, len(rows))
    people = person_ids(groups, len(rows))
    bounds = check_bounds("y_bounds", search.estimator.y_bounds)
    splits = public_splits(search.cv, rows, people)
    spent = search.selection_share * search.epsilon
    selection_seed, seed = seeds(search, 2)
    settings = {"delta": search.delta, "hyperparameters": "fixed", "random_state": seed}
    settings["residuals"] = "never"  # the candidates' guarantees are those of one stage
    trials = [clone(search.estimator).set_params(**each, **settings) for each in params]
    plans, added = _plan_candidates(search, trials, models, rows, groups, spent)
    tested = sum(len(test) for _, test in splits)
    half = 0.5 * (bounds[1] - bounds[0])
    noise = (np.sqrt(tested * added) / half).tolist()
    folds = (folds_of(model, rows, splits) for model in models)
    candidates, rng = zip(folds, noise, strict=True), generator(selection_seed)

    def choose_and_measure() -> tuple[int, float, Measurement]:
        with one_thread():
            best, sensitivity = choose_by_residuals(
                search.method, y, bounds, candidates, people, spent, rng
            )
        # from here on it counts as spent, whatever happens
        search.guarantee_ = _guarantee(search, plans, plans[best], spent)
        plan = plans[best]
        drawn = measure(
            y, plan.y_bounds, plan.parts[0].strategy, plan.noise, simulation(trials[best])
        )
        return best, sensitivity, drawn

    def learn(found: tuple[int, float, Measurement]) -> None:
        best, sensitivity, measurement = found
        plan = plans[best]
        model = trials[best].set_params(epsilon=plan.epsilon, mechanism=plan.noise.law)
        validate_data(model, X, dtype=np.float64)
        model._learn(plan, measurement, inputs=rows)
        sensitivities = np.full(len(params), sensitivity * half)
        results = {"noise_std": np.sqrt(added), "sensitivity": sensitivities}
        search._keep(best, model, results, f"{search.method}, with epsilon = {spent:g}")

    search._publish(
        _guarantee(search, plans, plans[0], spent),
        choose_and_measure,
        learn,
        inputs=rows,
        rows=len(rows),
    )


def _plan_candidates(
    search: PrivateGridSearchCV,
    trials: Sequence[PrivateGPRegressor],
    models: Sequence[Hyperparameters],
    X: Array,
    groups: object,
    spent: float,
) -> tuple[list[Plan], Array]:
    """A plan for every candidate, and what privacy adds to the mean square error of its
    predictions. Epsilon and noise distribution are the same for all, so that the promise does not
    depend on the choice: those that add least, among those that keep the promise beside the choice.
    Gaussian noise gets what exact accounting leaves, should that keep the promise, else what adding
    up leaves, which always does, as it does for pure noise."""
    tried: dict[str, tuple[list[Plan], Array]] = {}
    for epsilon, mechanism in _budgets(search, spent):
        if mechanism in tried:
            continue
        options = {"epsilon": epsilon, "mechanism": mechanism}
        plans = [trial.set_params(**options).plan(X, groups=groups) for trial in trials]
        if _guarantee(search, plans, plans[0], spent).delta_at(search.epsilon) <= search.delta:
            errors = [privacy_error(*pair) for pair in zip(plans, models, strict=True)]
            tried[mechanism] = plans, np.array(errors)
    if not tried:
        raise ValueError("the budget is too small to choose and to release: give a larger one.")
    return min(tried.values(), key=lambda way: float(np.mean(way[1])))


def _budgets(search: PrivateGridSearchCV, spent: float) -> Iterator[tuple[float, str]]:
    """The epsilon of the release and its noise distribution: what may be tried."""
    model, left = search.estimator, float(search.epsilon) - spent
    while total_epsilon((spent, left)) > search.epsilon:
        left = float(np.nextafter(left, 0.0))
    sums = model.objective == "posterior" and model.reconstruct == "posterior"
    if model.mechanism in PURE or (model.mechanism != GAUSSIAN and sums):
        yield left, model.mechanism if model.mechanism in PURE else LAPLACE
    if model.mechanism not in PURE and search.delta > 0:
        yield epsilon_left(search.epsilon, search.delta, spent), GAUSSIAN
        yield left, GAUSSIAN
    elif model.mechanism == GAUSSIAN or not sums:
        yield left, GAUSSIAN  # which refuses delta = 0


def privacy_error(plan: Plan, model: Hyperparameters) -> float:
    """Mean square, at the targets, of the difference that privacy makes to a model's predictions.
    Unbiased: the variance of the noise. Posterior: the expected square of what noise and shrinkage
    do together, the variance given the measurement less that given the outputs themselves."""
    weights = plan.target_weights / plan.target_weights.sum()
    if plan.unbiased is not None:
        return float(weights @ plan.noise_std**2)
    inputs, targets = model.input_map(plan.inputs), model.input_map(plan.targets)
    sums: Any = plan.strategy
    counts = np.bincount(sums.index).astype(float)
    exact = exact_smoother(model.kernel, model.noise_variance, inputs, counts, targets)
    lost = plan.expected_std(plan.targets) ** 2 - exact.variance
    return float(weights @ np.maximum(lost, 0.0))


def _guarantee(
    search: PrivateGridSearchCV, plans: Sequence[Plan], released: Plan, spent: float = 0.0
) -> Guarantee:
    """The promise of choice and release together, whichever plan is released. ``released``: the one
    described; ``spent``: the epsilon of the choice, 0 where it is free."""
    simulated = search.random_state is not None
    own = guarantee_of(released, simulated=simulated)
    events = [plan.noise.event for plan in plans]
    weakest = min(events, key=lambda event: event.noise_multipliers)
    weakest = replace(weakest, delta_slack=max(event.delta_slack for event in events))
    mechanism, sampler = own.mechanism, own.sampler
    if spent:
        mechanism = f"one of {len(plans)} candidates by {search.method}, then {mechanism}"
        sampler = f"{SELECTION_SAMPLER}; {sampler}"
    return promise(
        Protected(own.unit, own.neighbours),
        [Event(pure_epsilons=(spent,)), weakest] if spent else [weakest],
        (search.epsilon, search.delta),
        assumptions=(own.assumptions[0], GRID_ASSUMPTION, *own.assumptions[2:]),
        mechanism=mechanism,
        sampler=sampler,
        simulated=simulated,
    )
