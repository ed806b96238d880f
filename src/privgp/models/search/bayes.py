"""PrivateBayesSearchCV: hyperparameters chosen by Bayesian optimisation on private records."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from rich.progress import Progress
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils.validation import check_is_fitted

from privgp.gp.surrogate import Surrogate, robust_prior
from privgp.models.search.arguments import loss_of, seeds
from privgp.models.search.bayes_plan import check_arguments, guarantee_of, plan_of
from privgp.models.spending import SpendsAtFit
from privgp.plan.search.acquisition import best_setting, next_setting
from privgp.plan.search.plan import SearchPlan
from privgp.vault.scores import Loss, Validation, checked_validation
from privgp.vault.search import Objective, kusner_search, measured_loss
from privgp.vault.states.search_file import SearchState, fingerprint

Report = Callable[[int], None]


class PrivateBayesSearchCV(SpendsAtFit, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """The best hyperparameters on private validation records, and their score, under one budget.

    Models are trained on X and y alone; only the validation records are protected. Scores are
    larger for better settings: accuracy, or minus the mean loss.

    Parameters
    ----------
    estimator : scikit-learn classifier or regressor, which predicts every record by itself.
    space : dict of ``(low, high)``, ``(low, high, "log-uniform")`` or a list of values.
    epsilon, delta : the whole budget, of all scores and of the choice together.
    n_iter : the number of settings to try.
    method : "measured" (worst-case private), or the algorithms "kusner" and "kusner-noise-free",
        which hold only under the assumption that their guarantee names.
    scoring : "accuracy" (classifiers: the default), "squared_error", "absolute_error", or a function
        (y, prediction) -> loss of one record. loss_bounds : (low, high), declared; losses are clipped.
    acquisition : "ei" (expected improvement) or "ucb". exploration : posterior stds that "ucb" adds to the mean.
    budget_split : "even", or n_iter numbers: how the steps share the budget.
    final_share : share of the budget that measures the chosen setting once more; 0: none.
    candidates : the number of settings that stand for a space with continuous axes.
    assume : dict of what Kusner's algorithms assume, see docs/private-search.md.
    state_file : a file that lets a killed search go on without paying again.
    progress : True for a bar, or a function that is called with the number of steps done.
    random_state : for simulations only: ordinary noise, and a guarantee that says so.

    Attributes
    ----------
    best_params_, best_index_ : the chosen setting.
    best_score_, best_score_std_ : its score on the validation records, and the std of its error.
    best_estimator_ : the model with it, trained on X, y.
    cv_results_ : what was measured.
    plan_, guarantee_ : what it cost.

    """

    def __init__(
        self,
        estimator: Any,
        space: Any,
        *,
        epsilon: float,
        delta: float,
        n_iter: int,
        method: str = "measured",
        scoring: Any = None,
        loss_bounds: Any = None,
        acquisition: str = "ei",
        exploration: float = 2.0,
        budget_split: Any = "even",
        final_share: float = 0.25,
        candidates: int = 1000,
        assume: Any = None,
        state_file: Any = None,
        progress: Any = False,
        random_state: Any = None,
    ) -> None:
        self.estimator, self.space = estimator, space
        self.epsilon, self.delta, self.n_iter, self.method = epsilon, delta, n_iter, method
        self.scoring, self.loss_bounds = scoring, loss_bounds
        self.acquisition, self.exploration = acquisition, exploration
        self.budget_split, self.final_share = budget_split, final_share
        self.candidates, self.assume = candidates, assume
        self.state_file, self.progress, self.random_state = state_file, progress, random_state

    def plan(self, n_val: int) -> SearchPlan:
        """What the budget buys on n_val validation records. Reads nothing private, spends nothing."""
        return plan_of(self, n_val)

    def fit(self, X: Any, y: Any, X_val: Any = None, y_val: Any = None) -> Self:
        """Search. Spends the budget, at every call that does not go on with a state file."""
        if X_val is None or y_val is None:
            raise ValueError(
                "X_val and y_val must be given: the private validation records, on which models are "
                "scored and which are never used for training."
            )
        check_arguments(self)
        loss = loss_of(self.estimator, self.scoring, self.loss_bounds)
        validation = checked_validation(X_val, y_val, loss)
        plan = plan_of(self, validation.rows)
        (seed,) = seeds(self.random_state, 1)

        def train(setting: int) -> Any:
            return clone(self.estimator).set_params(**plan.space.settings[setting]).fit(X, y)

        with self._reporting(len(plan.noise) or int(self.n_iter)) as report:
            run = _Run(plan, loss, validation, train, seed, report)
            choice = run.measured(self) if plan.constants is None else run.kusner()
        self.plan_ = plan
        self.guarantee_ = guarantee_of(plan, simulated=seed is not None)
        self.best_index_ = choice.setting
        self.best_params_ = dict(plan.space.settings[choice.setting])
        self.best_score_, self.best_score_std_ = choice.score, choice.score_std
        self.best_estimator_ = train(choice.setting) if choice.model is None else choice.model
        self.cv_results_ = choice.results
        return self

    def predict(self, X: Any) -> Any:
        """What the chosen model predicts."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict(X)

    @contextmanager
    def _reporting(self, total: int) -> Iterator[Report]:
        """Where progress is reported: to a function, a bar, or nowhere."""
        if callable(self.progress):
            yield self.progress
        elif not self.progress:
            yield lambda done: None
        else:
            with Progress(transient=True) as bar:
                task = bar.add_task("searching", total=total)
                yield lambda done: bar.update(task, completed=done)


@dataclass(frozen=True)
class _Choice:
    """The chosen setting with its score, the std of that score's error, and what was measured.

    ``model``: the very model that was scored last, if it is the chosen one
    """

    setting: int
    score: float
    score_std: float
    results: dict[str, Any]
    model: Any = None


@dataclass(frozen=True)
class _Run:
    """One search, from its plan to a choice. Scores come from the vault alone.

    ``train``: from the index of a setting to its model, trained on public data
    ``seed``: of a simulation, None for the noise that protects
    ``report``: called with the number of steps done
    """

    plan: SearchPlan
    loss: Loss
    validation: Validation
    train: Callable[[int], Any]
    seed: int | None
    report: Report

    def measured(self, search: PrivateBayesSearchCV) -> _Choice:
        """Measure, choose by the noisy scores, measure again; then measure the best once more.

        The last measurement is made after the choice and is reported alone, so that its error is
        the noise, whatever the surrogate believes.
        """
        plan, points, model = self.plan, self.plan.space.points, None
        steps = len(plan.noise) - plan.has_final
        prior = robust_prior(points.shape[1], scores=len(plan.noise), settings=len(points))
        surrogate = Surrogate(points, prior)
        with SearchState(search.state_file, self._question(search)) as state:
            state.check(len(plan.noise), len(plan.space))
            for step, noise in enumerate(plan.noise):
                if step >= len(state.events):
                    tried = [event.place for event in state.events]
                    if step < steps:
                        how = search.acquisition, float(search.exploration)
                        setting = next_setting(surrogate, tried, *how)
                    else:
                        setting = best_setting(surrogate)
                    model = self.train(setting)
                    rng = None if self.seed is None else np.random.default_rng([self.seed, step])
                    state.ask(setting)
                    state.got(measured_loss(model, self.validation, self.loss, noise, rng))
                event = state.events[step]
                if event.value is not None and step < steps:
                    # from a loss in [0, 1] to a score in [-1, 1]
                    surrogate.observe(event.place, 1.0 - 2.0 * event.value, 2.0 * noise.std)
                self.report(step + 1)
        tried = [event.place for event in state.events]
        losses = np.array([np.nan if e.value is None else e.value for e in state.events])
        mean, std = surrogate.posterior()
        mean, std = self.loss.score(0.5 - 0.5 * np.clip(mean, -1.0, 1.0)), 0.5 * plan.width * std
        results = {
            "params": [dict(plan.space.settings[i]) for i in tried],
            "score": self.loss.score(losses),
            "noise_std": plan.noise_std,
            "share": np.array(plan.shares),
            "posterior_mean": mean[tried],
            "posterior_std": std[tried],
        }
        chosen = tried[-1] if plan.has_final else best_setting(surrogate)
        if plan.has_final and not np.isnan(losses[-1]):
            return _Choice(chosen, float(results["score"][-1]), plan.score_std, results, model)
        return _Choice(chosen, float(mean[chosen]), float(std[chosen]), results)

    def kusner(self) -> _Choice:
        """Algorithm 1 or 2 in the vault, which keeps its course: the setting and its value return."""
        plan = self.plan
        assert plan.constants is not None
        assert plan.prior is not None
        objective = Objective(
            self.train, self.validation, self.loss, plan.prior_mean, plan.prior_std
        )
        rng = None if self.seed is None else np.random.default_rng(self.seed)
        chosen, value = kusner_search(
            objective, plan.space.points, plan.prior, plan.constants, self.report, rng
        )
        score = plan.prior_mean + plan.prior_std * value
        results = {"params": [dict(plan.space.settings[chosen])]}
        return _Choice(chosen, score, plan.score_std, results)

    def _question(self, search: PrivateBayesSearchCV) -> dict[str, Any]:
        """What tells this search from others; public."""
        return {
            "estimator": repr(search.estimator),
            "settings": fingerprint(self.plan.space),
            "epsilon": self.plan.epsilon,
            "delta": self.plan.delta,
            "records": self.plan.rows,
            "shares": self.plan.shares,
            "final": self.plan.has_final,
            "loss": [self.loss.name, self.loss.low, self.loss.high],
            "acquisition": [search.acquisition, float(search.exploration)],
            "simulation": self.seed,
        }
