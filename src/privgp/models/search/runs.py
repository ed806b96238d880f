"""The two ways to search, from a plan to a chosen setting. Scores come from the vault alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from privgp.gp.surrogate import Surrogate, robust_prior
from privgp.models.search.kusner import assumptions, kusner_prior
from privgp.models.search.questions import scale_of
from privgp.plan.search.acquisition import best_setting, next_setting
from privgp.plan.search.scores import SearchPlan
from privgp.vault.scores import Loss, Validation
from privgp.vault.search import Objective, kusner_search, measured_loss
from privgp.vault.states.search_file import Event, SearchState, fingerprint

if TYPE_CHECKING:
    from privgp.models.search.bayes import PrivateBayesSearchCV


@dataclass(frozen=True)
class Task:
    """``train``: the model of a setting, from public data; ``seed``: of a simulation, else None;
    ``tell``: is called with the number of steps done."""

    loss: Loss
    validation: Validation
    train: Callable[[int], Any]
    seed: int | None
    tell: Callable[[int], None]


@dataclass(frozen=True)
class Outcome:
    """The chosen setting, its score with the std of its error, its model, and what was measured."""

    place: int
    score: float
    score_std: float
    model: Any
    results: dict[str, Any]


def run_measured(search: PrivateBayesSearchCV, plan: SearchPlan, task: Task) -> Outcome:
    """Measure, choose by the noisy scores, measure again; then measure the best once more.

    The last measurement is made after the choice and is reported alone, so that its error is the
    noise, whatever the surrogate believes.
    """
    points = plan.space.points
    prior = robust_prior(points.shape[1], scores=len(plan.noise), settings=len(points))
    surrogate = Surrogate(points, prior)
    steps, model = len(plan.noise) - plan.has_final, None
    with SearchState(search.state_file, _question(search, plan, task)) as state:
        state.check(len(plan.noise), len(plan.space))
        for step, noise in enumerate(plan.noise):
            if step >= len(state.events):
                place = _next_place(search, surrogate, state.events, step == steps)
                model = task.train(place)
                rng = None if task.seed is None else np.random.default_rng([task.seed, step])
                state.ask(place)
                state.got(measured_loss(model, task.validation, task.loss, noise, rng))
            event = state.events[step]
            if event.value is not None and step < steps:
                # from a loss in [0, 1] to a score in [-1, 1]
                surrogate.observe(event.place, 1.0 - 2.0 * event.value, 2.0 * noise.std)
            task.tell(step + 1)
        events = state.events
    return _outcome(plan, task, surrogate, events, model)


def _next_place(
    search: PrivateBayesSearchCV, surrogate: Surrogate, events: list[Event], is_last: bool
) -> int:
    if is_last:
        return best_setting(surrogate)
    tried = [event.place for event in events]
    return next_setting(surrogate, tried, search.acquisition, float(search.exploration))


def _outcome(
    plan: SearchPlan, task: Task, surrogate: Surrogate, events: list[Event], model: Any
) -> Outcome:
    top, width = scale_of(task.loss)
    mean, std = surrogate.posterior()
    mean, std = top - width * 0.5 * (1.0 - np.clip(mean, -1.0, 1.0)), 0.5 * width * std
    place = events[-1].place if plan.has_final else best_setting(surrogate)
    last = events[-1].value if plan.has_final else None
    score, score_std = float(mean[place]), float(std[place])
    if last is not None:
        score, score_std = top - width * last, plan.score_std
    if last is None or model is None:  # else the very model that was scored
        model = task.train(place)
    tried = [event.place for event in events]
    values = [np.nan if event.value is None else event.value for event in events]
    results = {
        "params": [dict(plan.space.settings[i]) for i in tried],
        "score": top - width * np.array(values),
        "noise_std": plan.noise_std,
        "share": np.array(plan.shares),
        "posterior_mean": mean[tried],
        "posterior_std": std[tried],
    }
    return Outcome(place, score, score_std, model, results)


def run_kusner(search: PrivateBayesSearchCV, plan: SearchPlan, task: Task) -> Outcome:
    """Algorithm 1 or 2 in the vault; its course is private, so only the setting and its value return."""
    assert plan.constants is not None
    assumed = assumptions(search, scale_of(task.loss))
    prior, centre, spread = kusner_prior(assumed, plan.space), assumed["prior_mean"], plan.unit_std
    objective = Objective(
        task.train, task.validation, task.loss, *scale_of(task.loss), centre, spread
    )
    rng = None if task.seed is None else np.random.default_rng(task.seed)
    place, value = kusner_search(
        objective, plan.space.points, prior, plan.constants, task.tell, rng
    )
    results = {"params": [dict(plan.space.settings[place])]}
    score = centre + spread * value
    return Outcome(place, score, plan.score_std, task.train(place), results)


def _question(search: PrivateBayesSearchCV, plan: SearchPlan, task: Task) -> dict[str, Any]:
    """What makes this search another one than others; public."""
    return {
        "estimator": repr(search.estimator),
        "settings": fingerprint(plan.space),
        "epsilon": plan.epsilon,
        "delta": plan.delta,
        "records": plan.rows,
        "shares": plan.shares,
        "final": plan.has_final,
        "loss": [task.loss.name, task.loss.low, task.loss.high],
        "acquisition": [search.acquisition, float(search.exploration)],
        "simulation": task.seed,
    }
