"""PrivateBayesSearchCV: hyperparameters chosen by Bayesian optimisation on private records."""

import fcntl
import hashlib
import json
import math
import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import KW_ONLY, dataclass, replace
from typing import IO, Any, Self

import numpy as np
from rich.progress import Progress
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils.validation import check_is_fitted

from privgp.gp.surrogate import Surrogate, robust_prior
from privgp.ledger.account import Account
from privgp.models.published import (
    Search,
    SpendsAtFit,
    generator,
    has_private_rows,
    refuse_spenders,
    seeds,
)
from privgp.models.search.candidates import VALIDATION_ASSUMPTIONS, check_names, loss_of
from privgp.models.search.outputs import budget_after, deal, promise_of, rehearse_release
from privgp.plan.search.folds import Trial, count_blocks
from privgp.plan.search.plan import (
    ACQUISITIONS,
    SETTINGS,
    SearchPlan,
    Space,
    best_setting,
    kusner_plan,
    make_space,
    next_setting,
)
from privgp.privacy.budget import check_budget
from privgp.privacy.guarantee import Guarantee, promise
from privgp.privacy.noise import GAUSSIAN_SAMPLER, GaussianNoise, budget_shares, noise_of_shares
from privgp.privacy.protected import VALIDATION
from privgp.question.rules import check_choice, check_defaults, is_number, whole_number
from privgp.storage.state_file import lock_folder
from privgp.types import Bounds, Column, Predicts, Random, RandomState, Table
from privgp.vault.scores import Loss, Validation, check_validation, score_sensitivity
from privgp.vault.select import Objective, kusner_search, measure_block_loss, measure_loss

FORMAT = "privgp-search"
HEAD = b'{"format": "privgp-search", "version": 1, '
LARGEST = 2**24


class SearchState:
    """The steps of one search; without a path they are kept in memory only. ``settings``: the
    indices of those asked for, one per step; ``values``: what came of each, NaN if it was lost."""

    def __init__(self, path: str | os.PathLike[str] | None, question: dict[str, object]) -> None:
        self.settings: list[int] = []
        self.values: list[float] = []
        self._secret: str | None = None
        self._file: IO[bytes] | None = None
        if path is None:
            return
        self._name = f"state_file {os.fspath(path)!r}"
        try:
            # held open, and locked, while searching; its owner alone may read it
            self._file = open(path, "a+b", opener=lambda p, how: os.open(p, how, 0o600))  # noqa: SIM115
        except OSError:
            raise ValueError(f"{self._name} cannot be written there.") from None
        try:
            self._read(self._file, question)
        except BaseException:
            self.close()
            raise

    def check(self, steps: int, settings: int) -> None:
        """Refuse steps that this search cannot have made."""
        if len(self.settings) > steps or any(not 0 <= k < settings for k in self.settings):
            raise ValueError(f"{self._name} is damaged.")

    def pay(self) -> str | None:
        """The key under which a ledger is charged once for all steps: a search that goes on is not charged
        again. A reader of the ledger does not learn what a file must hold to go on with it."""
        if self._file is None:
            return None
        if self._secret is None:
            self._secret = secrets.token_hex(16)
            self._append({"secret": self._secret})
        return hashlib.sha256(f"search {self._secret}".encode()).hexdigest()

    def ask(self, setting: int) -> None:
        """Say that a step is about to be drawn: from here on it counts as spent."""
        self._append({"asked": len(self.settings), "place": setting})
        self.settings.append(setting)
        self.values.append(math.nan)

    def got(self, value: float) -> None:
        self._append({"got": len(self.settings) - 1, "value": value})
        self.values[-1] = value

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _read(self, file: IO[bytes], question: dict[str, object]) -> None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ValueError(f"{self._name} is in use by another search.") from None
        file.seek(0)
        data = file.read(LARGEST + 1)
        if not data.startswith(HEAD[: len(data)]) or len(data) > LARGEST:
            raise ValueError(f"{self._name} is not the file of a search.")
        *lines, torn = data.split(b"\n")
        if torn:  # killed while writing: an unfinished line never took effect
            file.truncate(len(data) - len(torn))
        if not lines:
            self._append({"format": FORMAT, "version": 1, "question": question})
            with lock_folder(file.name) as folder:
                os.fsync(folder)  # brings the new file's name to the disk too
            return
        try:
            same = json.loads(lines[0])["question"] == json.loads(json.dumps(question))
        except (ValueError, KeyError, TypeError):
            same = False
        if not same:
            raise ValueError(
                f"{self._name} belongs to another search (another space, budget, number of records "
                "or estimator): give another name."
            )
        for line in lines[1:]:
            self._replay(line)

    def _replay(self, line: bytes) -> None:
        try:
            event = json.loads(line)
            if "asked" in event and event["asked"] == len(self.settings):
                self.settings.append(int(event["place"]))
                self.values.append(math.nan)
                return
            if "secret" in event:
                self._secret = str(event["secret"])
                return
            if "charged" in event:  # of earlier versions, which believed what a file said was paid
                return
            value = float(event["value"])
            if event["got"] == len(self.settings) - 1 and math.isfinite(value):
                self.values[-1] = value
                return
        except (ValueError, LookupError, TypeError):
            pass
        raise ValueError(f"{self._name} is damaged.")

    def _append(self, event: dict[str, object]) -> None:
        if self._file is None:
            return
        try:
            self._file.write(json.dumps(event).encode("utf-8") + b"\n")
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError:
            raise RuntimeError(f"{self._name} could not be written; go on with it later.") from None


def fingerprint(space: Space) -> str:
    text = repr([sorted((k, repr(v)) for k, v in s.items()) for s in space.settings])
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


Train = Callable[[int], Any]  # from the index of a setting to its model, on public data
Score = Callable[..., float]  # the noisy loss of it, which spends
Report = Callable[[int], None]  # called with the number of steps done
Seed = int | None  # of a simulation; None: the noise that protects


@dataclass(eq=False, repr=False)
class PrivateBayesSearchCV(Search, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """The best hyperparameters on private validation records, and their score, under one budget.

    Models are trained on X and y alone; only the validation records are protected. Scores are
    larger for better settings: accuracy, or minus the mean loss. Without validation records, X and y
    are private: settings are compared on blocks of their rows, and the best one is released.

    Parameters
    ----------
    estimator : scikit-learn classifier or regressor, which predicts every record separately; without
        validation records a PrivateGPRegressor, PrivateGPClassifier, PrivateFunction or PosteriorPaths.
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
    selection_share : without validation records, the part of epsilon and delta that the search spends.
    blocks : without validation records, the number of blocks; None: the root of the number of rows.
    candidates : the number of settings that stand for a space with continuous axes.
    assume : dict of what Kusner's algorithms assume, see docs/private-search.md.
    state_file : a file that lets a killed search go on without paying again.
    progress : True for a bar, or a function that is called with the number of steps done.
    ledger : the Account of the private records, which a fit charges before it draws; None: none.
    random_state : for simulations only: ordinary noise, and a guarantee that states this.

    Attributes
    ----------
    best_params_, best_index_, best_estimator_ : the chosen setting, and the model trained with it.
    best_score_, best_score_std_ : its score on the validation records, and the std of its error.
    cv_results_, plan_, guarantee_ : what was measured, and what it cost.

    """

    estimator: BaseEstimator
    space: Mapping[str, Any]
    _: KW_ONLY
    epsilon: float
    delta: float
    n_iter: int
    method: str = "measured"
    scoring: str | Callable[..., float] | None = None
    loss_bounds: Bounds | None = None
    acquisition: str = "ei"
    exploration: float = 2.0
    budget_split: Any = "even"
    final_share: float = 0.25
    selection_share: float = 0.3
    blocks: int | None = None
    candidates: int = 1000
    assume: Any = None
    state_file: str | os.PathLike[str] | None = None
    progress: Any = False
    ledger: Account | None = None
    random_state: RandomState = None

    def plan(self, n_val: int) -> SearchPlan:
        """What the budget buys on n_val validation records; of a model that is itself private, on that many
        rows. Reads nothing private, spends nothing."""
        if has_private_rows(self.estimator) and self.scoring is None:
            return block_plan(self, n_val)
        return plan_of(self, n_val)

    def fit(
        self, X: Table, y: Column, *, X_val: Table | None = None, y_val: Column | None = None
    ) -> Self:
        """Search. Spends the budget, at every call that does not continue a state file.

        Parameters
        ----------
        X : table (rows, inputs)
            The inputs.
        y : column (rows,)
            The training rows: public if validation records are given. Without these, blocks of the private
            rows serve for the choice, for models of private records, labels, functions and paths.
        X_val, y_val : table and column, optional
            The private validation records, which are protected.

        Returns
        -------
        self

        """
        if X_val is None and y_val is None and has_private_rows(self.estimator):
            self._fit_by_blocks(X, y)
            return self
        if X_val is None or y_val is None:
            raise ValueError(
                "X_val and y_val must be given: the private validation records, on which models are "
                "scored and which are never used for training."
            )
        check_validation_search(self)
        loss = loss_of(self.estimator, self.scoring, self.loss_bounds)
        validation = check_validation(X_val, y_val, loss)
        plan = plan_of(self, validation.rows)
        (seed,) = seeds(self)

        def train(setting: int) -> Any:
            return clone(self.estimator).set_params(**plan.space.settings[setting]).fit(X, y)

        search = self._measure if plan.constants is None else self._search_in_vault
        with self._report_progress(len(plan.noise) or int(self.n_iter)) as report:
            model = search(plan, validation, train, seed, report)
        self.plan_ = plan
        self.guarantee_ = guarantee_of(plan, simulated=seed is not None)
        self.best_params_ = dict(plan.space.settings[self.best_index_])
        self.best_estimator_ = train(self.best_index_) if model is None else model
        return self

    def _fit_by_blocks(self, X: Table, y: Column) -> None:
        """Search by blocks of private rows, and release the best setting with the rest of the budget."""
        searching, seed, dealing = seeds(self, 3)
        rows = deal(self, X, y, dealing)
        plan, count = block_plan(self, rows.dealt.rows), rows.dealt.rows
        left = budget_after(self, plan.epsilon, plan.delta)

        def ready(setting: int) -> SpendsAtFit:
            given = {**plan.space.settings[setting], "random_state": seed}
            model: SpendsAtFit = clone(self.estimator).set_params(**given)
            return model._with_budget(*left, count)

        def score(trial: Trial, noise: GaussianNoise, rng: Random) -> float:
            return measure_block_loss(rows.data, rows.dealt, trial, noise, rng)

        surrogate, state = surrogate_of(plan), SearchState(None, {})
        own = rehearse_release(ready(next_setting(surrogate, [], self.acquisition, 0.0)), rows)
        how = f"Gaussian noise on {len(plan.noise)} mean losses of {rows.dealt.blocks} blocks of the rows"
        promised = promise_of(self, own, [each.event for each in plan.noise], left, how)

        def draw() -> SpendsAtFit:
            def prepare(setting: int) -> Trial:
                return ready(setting)._trial(rows.inputs, count)

            self._walk(plan, surrogate, state, prepare, score, searching, report)
            self.guarantee_ = promised  # from here on it counts as spent, whatever happens
            self._choose(plan, BLOCK_LOSS, surrogate, state, None)
            return ready(self.best_index_)._fit_for_search(X, y)

        def keep(model: SpendsAtFit) -> None:
            self.plan_, self.guarantee_, self.best_estimator_ = plan, promised, model
            self.best_params_ = dict(plan.space.settings[self.best_index_])
            text = f"{len(plan.noise)} noisy mean losses of {rows.dealt.blocks} blocks"
            model._state(promised, vars(self).get("charged_"), f"chosen by {text}")

        with self._report_progress(len(plan.noise)) as report:
            self._publish(promised, draw, keep, inputs=rows.inputs, rows=count)

    def predict(self, X: Table) -> Any:
        """Predict at the rows of X with the chosen model."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict(X)

    @contextmanager
    def _report_progress(self, total: int) -> Iterator[Report]:
        """Where progress is reported: to a function, a bar, or nowhere."""
        if callable(self.progress):
            yield self.progress
        elif not self.progress:
            yield lambda done: None
        else:
            with Progress(transient=True) as bar:
                task = bar.add_task("searching", total=total)
                yield lambda done: bar.update(task, completed=done)

    def _measure(
        self, plan: SearchPlan, validation: Validation, train: Train, seed: Seed, report: Report
    ) -> Any:
        """Measure, choose by the noisy scores, measure again; then the best once more, reported
        alone, so that its error is the noise. Returns the model that it measured, if any."""
        loss, surrogate = validation.loss, surrogate_of(plan)
        with closing(SearchState(self.state_file, self._question(plan, loss, seed))) as state:
            state.check(len(plan.noise), len(plan.space))

            def score(model: Predicts, noise: GaussianNoise, rng: Random) -> float:
                return measure_loss(model, validation, noise, rng)

            def draw() -> Any:
                return self._walk(plan, surrogate, state, train, score, seed, report)

            return self._publish(
                guarantee_of(plan, simulated=seed is not None),
                draw,
                lambda model: self._choose(plan, loss, surrogate, state, model),
                rows=None if state.settings else validation.rows,
                key=None if self.ledger is None else state.pay(),
            )

    def _walk(
        self,
        plan: SearchPlan,
        surrogate: Surrogate,
        state: SearchState,
        prepare: Train,
        score: Score,
        seed: Seed,
        report: Report,
    ) -> object:
        """Measure setting after setting; returns what was prepared for the last one measured, if any."""
        prepared, steps = None, len(plan.noise) - plan.has_final
        for step, noise in enumerate(plan.noise):
            if step == len(state.settings):
                if step < steps:
                    how = self.acquisition, float(self.exploration)
                    setting = next_setting(surrogate, state.settings, *how)
                else:
                    setting = best_setting(surrogate)
                prepared = prepare(setting)
                rng = generator(None if seed is None else [seed, step])
                state.ask(setting)
                state.got(score(prepared, noise, rng))
            if step < steps and not np.isnan(state.values[step]):
                # from a loss in [0, 1] to a score in [-1, 1]
                scored = 1.0 - 2.0 * state.values[step]
                surrogate.observe(state.settings[step], scored, 2.0 * noise.std)
            report(step + 1)
        return prepared

    def _choose(
        self, plan: SearchPlan, loss: Loss, surrogate: Surrogate, state: SearchState, model: object
    ) -> Any:
        """The best setting by the noisy scores; returns the model of the last one, if it is that."""
        tried, losses = state.settings, np.array(state.values)
        mean, std = surrogate.posterior()
        mean, std = loss.score(0.5 - 0.5 * np.clip(mean, -1.0, 1.0)), 0.5 * plan.width * std
        self.cv_results_: dict[str, Any] = {
            "params": [dict(plan.space.settings[i]) for i in tried],
            "score": loss.score(losses),
            "noise_std": plan.noise_std,
            "share": np.array(plan.shares),
            "posterior_mean": mean[tried],
            "posterior_std": std[tried],
        }
        best = self.best_index_ = tried[-1] if plan.has_final else best_setting(surrogate)
        if plan.has_final and not np.isnan(losses[-1]):
            self.best_score_, self.best_score_std_ = float(loss.score(losses[-1])), plan.score_std
            return model
        self.best_score_, self.best_score_std_ = float(mean[best]), float(std[best])
        return None

    def _search_in_vault(
        self, plan: SearchPlan, validation: Validation, train: Train, seed: Seed, report: Report
    ) -> None:
        """Kusner's algorithm 1 or 2. Its course stays in the vault; the setting and a value return."""
        assert plan.constants is not None
        assert plan.prior is not None
        objective = Objective(train, validation, plan.prior_mean, plan.prior_std)
        known, rng = (plan.space.points, plan.prior, plan.constants), generator(seed)

        def learn(found: tuple[int, float]) -> None:
            self.best_index_, value = found
            self.best_score_ = plan.prior_mean + plan.prior_std * value
            self.best_score_std_ = plan.score_std
            self.cv_results_ = {"params": [dict(plan.space.settings[self.best_index_])]}

        self._publish(
            guarantee_of(plan, simulated=seed is not None),
            lambda: kusner_search(objective, *known, report, rng),
            learn,
            rows=validation.rows,
        )

    def _question(self, plan: SearchPlan, loss: Loss, seed: Seed) -> dict[str, Any]:
        """What tells this search from others; public."""
        return {
            "estimator": repr(self.estimator),
            "settings": fingerprint(plan.space),
            "epsilon": plan.epsilon,
            "delta": plan.delta,
            "records": plan.rows,
            "shares": plan.shares,
            "final": plan.has_final,
            "loss": [loss.name, loss.low, loss.high],
            "acquisition": [self.acquisition, float(self.exploration)],
            "simulation": seed,
        }


BLOCK_LOSS = Loss("square error of blocks", 0.0, 1.0)
PRIVATE_ROWS = ("selection_share", "blocks")
VALIDATION_ALONE = ("scoring", "loss_bounds", "state_file")
METHODS = ("measured", "kusner", "kusner-noise-free")
MOST_STEPS = 500
MEASURED_ALONE = ("acquisition", "exploration", "budget_split", "final_share")
NOT_WITH: dict[str, tuple[str, ...]] = {
    "measured": ("assume",),
    "kusner": MEASURED_ALONE,
    "kusner-noise-free": MEASURED_ALONE,
    "ei": ("exploration",),
    "ucb": (),
}
KUSNER_ASSUMPTION = (
    "assumption 1 of Kusner et al. (2015): the objectives of all validation sets are draws from one "
    "Gaussian process with the declared kernel, mean, std and correlation of neighbours; delta is in "
    "part the probability of such a draw, so this is no worst-case guarantee"
)
KUSNER_SAMPLER = (
    "exponential mechanism and Laplace noise on a lattice (OpenDP), cryptographic randomness"
)
FREITAS_ASSUMPTION = (
    "the assumptions of de Freitas et al. (2012), theorem 2, with the declared constants A and tau"
)


def check_arguments(search: PrivateBayesSearchCV) -> None:
    check_budget(search.epsilon, search.delta)
    check_choice("method", search.method, METHODS)
    check_choice("acquisition", search.acquisition, ACQUISITIONS)
    whole_number("n_iter", search.n_iter, MOST_STEPS)
    for name, high in (("exploration", 100.0), ("final_share", 0.99), ("selection_share", 0.99)):
        value = getattr(search, name)
        if not is_number(value) or not 0.0 <= value <= high:
            raise ValueError(f"{name} must be a number between 0 and {high:g}.")
    check_defaults(search, NOT_WITH[search.method], f"method={search.method!r}")
    check_defaults(search, NOT_WITH[search.acquisition], f"acquisition={search.acquisition!r}")
    if search.method != "measured" and search.state_file is not None:
        raise ValueError("state_file is for method='measured': the course of others is private.")


def check_validation_search(search: PrivateBayesSearchCV) -> None:
    """Refuse arguments of a search on validation records, whose models are trained on other data."""
    check_arguments(search)
    if not all(hasattr(search.estimator, name) for name in ("fit", "predict", "set_params")):
        raise ValueError("estimator must have fit, predict and set_params, as in scikit-learn.")
    refuse_spenders(estimator=search.estimator, space=search.space)
    check_defaults(search, PRIVATE_ROWS, "validation records X_val, y_val")


def plan_of(search: PrivateBayesSearchCV, n_val: object) -> SearchPlan:
    check_validation_search(search)
    rows = whole_number("n_val", n_val, 2**40)
    loss = loss_of(search.estimator, search.scoring, search.loss_bounds)
    epsilon, delta = float(search.epsilon), float(search.delta)
    plan = SearchPlan(search.method, epsilon, delta, rows, _space_of(search), loss.width)
    if search.method != "measured":
        bounds = loss.score(1.0), loss.score(0.0)
        return kusner_plan(plan, search.assume, int(search.n_iter), bounds)
    return _with_noise(search, plan)


def block_plan(search: PrivateBayesSearchCV, n: object) -> SearchPlan:
    """What a share of the budget buys on blocks of n private rows; the rest is for the release."""
    check_arguments(search)
    if search.method != "measured":
        raise ValueError("without validation records only method='measured' is available.")
    if not 0.0 < search.selection_share < 1.0:
        raise ValueError("selection_share must be a number between 0 and 1.")
    check_defaults(search, VALIDATION_ALONE, "private rows X, y")
    refuse_spenders(space=search.space)
    space, blocks = _space_of(search), count_blocks(search.blocks, whole_number("n", n, 2**40))
    check_names(space.names)
    share = float(search.selection_share)
    budget = share * float(search.epsilon), share * float(search.delta)
    return _with_noise(search, SearchPlan("measured", *budget, blocks, space, BLOCK_LOSS.width))


def surrogate_of(plan: SearchPlan) -> Surrogate:
    """What learns from the noisy scores."""
    points = plan.space.points
    prior = robust_prior(points.shape[1], scores=len(plan.noise), settings=len(points))
    return Surrogate(points, prior)


def _space_of(search: PrivateBayesSearchCV) -> Space:
    space = make_space(search.space, search.candidates)
    if space.whole and len(space) <= SETTINGS:
        check_defaults(search, ("candidates",), f"a space of at most {SETTINGS:,} settings")
    known = search.estimator.get_params(deep=True)
    for name in space.names:
        if name not in known:
            raise ValueError(f"space names {name!r}, which is no parameter of the estimator.")
    return space


def _with_noise(search: PrivateBayesSearchCV, plan: SearchPlan) -> SearchPlan:
    """The plan of a measured search with its noise."""
    steps = int(search.n_iter)
    shares = _shares(search.budget_split, steps, float(search.final_share))
    noise = noise_of_shares(plan.epsilon, plan.delta, shares, score_sensitivity(plan.rows))
    return replace(plan, shares=shares, has_final=len(shares) > steps, noise=noise)


def _shares(split: Any, steps: int, final: float) -> tuple[float, ...]:
    """The share of every step; the last is that of the chosen setting, unless it has none."""
    if isinstance(split, str):
        check_choice("budget_split", split, ("even",))
        split = [1.0] * steps
    elif not (isinstance(split, Sequence) or hasattr(split, "tolist")):
        raise ValueError("budget_split must be 'even' or a sequence of positive numbers.")
    parts = budget_shares(list(split))
    if len(parts) != steps:
        raise ValueError(f"budget_split must hold n_iter={steps} numbers, got {len(parts)}.")
    last = [final] if final > 0 else []
    return budget_shares([*(part * (1.0 - final) for part in parts), *last])


def guarantee_of(plan: SearchPlan, *, simulated: bool) -> Guarantee:
    """The measured search adds up Gaussian events; Kusner's guarantee stands alone."""
    assumptions: tuple[str, ...] = ()
    mechanism = (
        f"Gaussian noise on {len(plan.noise)} mean losses of adaptively chosen settings; the choice "
        "of setting is post-processing"
    )
    if plan.constants is not None:
        noise_free = plan.constants.noise_free
        assumptions = (KUSNER_ASSUMPTION, *((FREITAS_ASSUMPTION,) if noise_free else ()))
        mechanism = (
            f"algorithm {2 if noise_free else 1} of Kusner et al. (2015): exponential mechanism for "
            "the setting and Laplace mechanism for its score, with half of epsilon and of delta each"
        )
    return promise(
        VALIDATION,
        [each.event for each in plan.noise],
        (plan.epsilon, plan.delta),
        assumptions=(*assumptions, *VALIDATION_ASSUMPTIONS),
        mechanism=mechanism,
        sampler=GAUSSIAN_SAMPLER if plan.constants is None else KUSNER_SAMPLER,
        simulated=simulated,
    )
