"""Search over a private estimator by its own private data: free, or for a share of the budget."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from privgp.gp.arithmetic import one_thread
from privgp.gp.inference.evidence import fit as explain
from privgp.gp.measurement import Measurement
from privgp.gp.priors import Hyperparameters
from privgp.gp.smoothers import exact_smoother
from privgp.models.published import Search, SpendsAtFit, generator, seeds, simulation
from privgp.models.regressor import PrivateGPRegressor
from privgp.models.rows.tables import numbers_only
from privgp.models.search.candidates import centre_of, check_private, kernel_grid, models_of
from privgp.plan.build import make_part
from privgp.plan.plan import Plan, plan_of_parts
from privgp.plan.search.folds import Dealt, count_blocks, folds_of, public_splits
from privgp.privacy.guarantee import Event, Guarantee, epsilon_left, promise, total_epsilon
from privgp.privacy.noise import GAUSSIAN, GAUSSIAN_SAMPLER, LAPLACE, ON_LATTICE, PURE
from privgp.privacy.protected import Protected
from privgp.publish import guarantee_of
from privgp.question.parameters import RECONSTRUCTIONS
from privgp.question.rules import check_bounds, check_defaults
from privgp.types import Array, Column, Table
from privgp.vault.measure import measure, seal_outcome
from privgp.vault.select import SELECTION_SAMPLER, choose_by_blocks, choose_by_residuals, shuffle
from privgp.vault.validate import person_ids, seal_inputs, seal_outputs
from privgp.vault.values import Sealed

if TYPE_CHECKING:
    from privgp.models.search.grid import PrivateGridSearchCV

BLOCKS_ASSUMPTION = (
    "the candidates, the number of blocks, bounds, domain and budget were chosen without looking at the "
    "private values"
)
NEARLY = 1.0 - 2.0**-20  # so that a total is at most delta in floating point too
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
    check_private(search.estimator, search.method)
    params = kernel_grid(search.param_grid)
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
    predictions. Epsilon and noise distribution are the same for all, so that the guarantee does not
    depend on the choice: those that add least, among those that keep the guarantee beside the choice.
    Gaussian noise gets what exact accounting leaves, should that keep the guarantee, else what adding
    up leaves, which always keeps it for pure noise."""
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
    model, (left, _) = search.estimator, budget_after(search, spent)
    sums = model.objective == "posterior" and RECONSTRUCTIONS[model.reconstruct].averages
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
    """The guarantee of choice and release together, whichever plan is released. ``released``: the one
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


@dataclass(frozen=True)
class PrivateRows:
    """Private rows for a search: dealt out, sealed, and as far as they are public.

    Attributes
    ----------
    dealt : how they become blocks
    data : the private values, in a random order
    inputs : (rows, columns), the public ones; None where inputs are private

    """

    dealt: Dealt
    data: Sealed
    inputs: Array | None


def deal(search: Search, X: Table, y: Column, seed: int | None) -> PrivateRows:
    """Check private rows and deal them out to blocks at random; ``seed``: of a simulation."""
    model: SpendsAtFit = search.estimator
    if model.ledger is not None:
        raise ValueError("ledger belongs to the search, which spends for all: give it there.")
    search._check_call(X, y)
    domain = model._domain()
    public = _public_inputs(search, X) if domain is None else None
    inputs = seal_inputs(X, len(domain or ()) if public is None else public.shape[1])
    rows = len(inputs)
    dealt = Dealt(rows, count_blocks(search.blocks, rows), domain)
    sealed = seal_outcome(y, model._classes(), rows, inputs)
    return PrivateRows(dealt, shuffle(sealed, generator(seed)), public)


def _public_inputs(search: Search, X: Table) -> Array:
    """Public inputs as numbers, (rows, columns)."""
    numbers_only(search, X)
    return np.asarray(check_array(X, dtype=np.float64))


def budget_after(search: Search, spent: float, spent_delta: float = 0.0) -> tuple[float, float]:
    """What a choice leaves of the budget: epsilon to the last digit, and nearly all of delta."""
    left = float(search.epsilon) - spent
    while total_epsilon((spent, left)) > search.epsilon:
        left = float(np.nextafter(left, 0.0))
    return left, (float(search.delta) - spent_delta) * NEARLY


def rehearse_release(model: SpendsAtFit, rows: PrivateRows) -> Guarantee:
    """Release simulated values, so that whatever would stop a release stops it before anything is spent.

    Returns
    -------
    Guarantee
        What the model guarantees on its own.

    """
    X, count, domain = rows.inputs, rows.dealt.rows, rows.dealt.domain
    if domain is not None:
        X = np.tile(np.mean(domain, axis=1), (count, 1))
    made: SpendsAtFit = clone(model).set_params(random_state=0)
    return made._fit_for_search(X, made._rehearsal_outputs(count)).guarantee_


def promise_of(
    search: Search, own: Guarantee, chosen: Sequence[Event], left: tuple[float, float], how: str
) -> Guarantee:
    """The guarantee of a choice and of the release that follows, whichever candidate is released.

    Parameters
    ----------
    search
        With the whole budget.
    own
        What one candidate's release guarantees on its own.
    chosen
        The cost of the choice.
    left
        (epsilon, delta) of the release.
    how
        How the choice is made, in words.

    """
    released = Event(pure_epsilons=(left[0],), delta_slack=left[1])
    sampler = SELECTION_SAMPLER if chosen[0].is_pure else GAUSSIAN_SAMPLER
    return promise(
        Protected(own.unit, own.neighbours),
        [*chosen, released],
        (search.epsilon, search.delta),
        assumptions=(*own.assumptions, BLOCKS_ASSUMPTION),
        mechanism=f"{how}, then {own.mechanism}",
        sampler=f"{sampler}; then noise {ON_LATTICE}",
        simulated=search.random_state is not None,
    )


def fit_by_blocks(search: PrivateGridSearchCV, X: Table, y: Column, groups: Column | None) -> None:
    """Choose among candidates with a share of epsilon, then release the chosen one with the rest."""
    check_defaults(search, ("cv",), "a choice by blocks")
    if groups is not None:
        raise ValueError(
            "groups cannot be given for a choice by blocks: rows are protected singly."
        )
    params = kernel_grid(search.param_grid)
    chooser, seed, dealing = seeds(search, 3)
    rows = deal(search, X, y, dealing)
    spent = search.selection_share * float(search.epsilon)
    left = budget_after(search, spent)
    models: list[SpendsAtFit] = [
        clone(search.estimator)
        .set_params(**each, random_state=seed)
        ._with_budget(*left, rows.dealt.rows)
        for each in params
    ]
    trials = [each._trial(rows.inputs, rows.dealt.rows) for each in models]
    how = f"one of {len(models)} candidates by {search.method} on {rows.dealt.blocks} blocks of the rows"
    cost = Event(pure_epsilons=(spent,))
    promised = promise_of(search, rehearse_release(models[0], rows), [cost], left, how)

    def choose_and_release() -> int:
        given = search.method, rows.data, rows.dealt, trials, spent
        best = choose_by_blocks(*given, generator(chooser))
        search.guarantee_ = promised  # from here on it counts as spent, whatever happens
        models[best]._fit_for_search(X, y)
        return best

    def learn(best: int) -> None:
        text = f"{search.method} on {rows.dealt.blocks} blocks, with epsilon = {spent:g}"
        search._keep(best, models[best], {}, text)

    search._publish(promised, choose_and_release, learn, inputs=rows.inputs, rows=rows.dealt.rows)
