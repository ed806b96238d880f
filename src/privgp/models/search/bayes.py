"""PrivateBayesSearchCV: hyperparameters chosen by Bayesian optimisation on private records."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Self

from rich.progress import Progress
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from privgp.models.search.questions import check_arguments, guarantee_of, loss_of, plan_of
from privgp.models.search.runs import Task, run_kusner, run_measured
from privgp.models.spending import SpendsAtFit
from privgp.plan.search.scores import SearchPlan
from privgp.vault.scores import checked_validation

Tell = Callable[[int], None]


class PrivateBayesSearchCV(SpendsAtFit, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """The best hyperparameters on private validation records, and their score, under one budget.

    Models are trained on X and y alone; only the validation records are protected. Scores are
    larger for better settings: accuracy, or minus the mean loss.

    Parameters
    ----------
    estimator : scikit-learn classifier or regressor, which predicts every record by itself.
    space : dict of ``(low, high)``, ``(low, high, "log-uniform")`` or a list of values.
    epsilon, delta : the whole budget, of all scores and of the choice together.
    n_iter : how many settings are tried.
    method : "measured" (worst-case private), or the algorithms "kusner" and "kusner-noise-free",
        which hold only under the assumption that their guarantee names.
    scoring : "accuracy" (classifiers: the default), "squared_error", "absolute_error", or a function
        (y, prediction) -> loss of one record. loss_bounds : (low, high), declared; losses are clipped.
    acquisition : "ei" (expected improvement) or "ucb". exploration : posterior stds that "ucb" adds to the mean.
    budget_split : "even", or n_iter numbers: how the steps share the budget.
    final_share : share of the budget that measures the chosen setting once more; 0: none.
    candidates : how many settings stand for a space with continuous axes.
    assume : dict of what Kusner's algorithms assume, see docs/private-search.md.
    state_file : a file that lets a killed search go on without paying again.
    progress : True for a bar, or a function that is told how many steps are done.
    random_state : for simulations only: ordinary noise, and a guarantee that says so.

    Attributes
    ----------
    best_params_, best_index_ : the chosen setting; best_score_, best_score_std_ : its score on the
        validation records and the std of that score's error; best_estimator_ : trained on X, y;
        cv_results_ : what was measured; plan_, guarantee_ : what it cost.

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
        """What the budget buys on so many validation records. Reads nothing private, spends nothing."""
        return plan_of(self, n_val)

    def fit(self, X: Any, y: Any, X_val: Any = None, y_val: Any = None) -> Self:
        """Search. Spends the budget, at every call that does not go on with a state file."""
        if X_val is None or y_val is None:
            raise ValueError(
                "X_val and y_val must be given: the private validation records, on which models are "
                "scored and which are never used for training."
            )
        check_arguments(self)
        loss = loss_of(self)
        validation = checked_validation(X_val, y_val, loss)
        plan = plan_of(self, validation.rows)
        seed = None
        if self.random_state is not None:
            seed = int(check_random_state(self.random_state).randint(2**31))

        def train(place: int) -> Any:
            return clone(self.estimator).set_params(**plan.space.settings[place]).fit(X, y)

        run = run_measured if plan.constants is None else run_kusner
        with self._told(len(plan.noise) or int(self.n_iter)) as tell:
            found = run(self, plan, Task(loss, validation, train, seed, tell))
        self.plan_ = plan
        self.guarantee_ = guarantee_of(plan, simulated=seed is not None)
        self.best_index_ = found.place
        self.best_params_ = dict(plan.space.settings[found.place])
        self.best_score_, self.best_score_std_ = found.score, found.score_std
        self.best_estimator_ = found.model
        self.cv_results_ = found.results
        return self

    def predict(self, X: Any) -> Any:
        """What the chosen model predicts."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict(X)

    @contextmanager
    def _told(self, total: int) -> Iterator[Tell]:
        """Who is told of progress: a function, a bar, or nobody."""
        if callable(self.progress):
            yield self.progress
        elif not self.progress:
            yield lambda done: None
        else:
            with Progress(transient=True) as bar:
                task = bar.add_task("searching", total=total)
                yield lambda done: bar.update(task, completed=done)
