"""``privgp search bayes``: tune a model on private validation records."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from privgp.command.errors import Failure, Refusal, one_line, refusal
from privgp.command.io.columns import input_columns, split_names
from privgp.command.io.destinations import check_apart, check_destination, whole_file
from privgp.command.io.records import outputs, private_records
from privgp.command.io.request import public_computation
from privgp.command.io.screen import progress, say, say_if_simulated, say_json
from privgp.command.io.space_text import read_space
from privgp.command.io.tables import check_lines, load, open_table
from privgp.models.search.bayes import PrivateBayesSearchCV
from privgp.plan.search.plan import SearchPlan
from privgp.privacy.budget import check_budget
from privgp.types import Array

PREFIX = "model__"
MODELS: dict[tuple[str, str], Callable[[], Any]] = {
    ("svm", "classification"): SVC,
    ("svm", "regression"): SVR,
    ("ridge", "classification"): RidgeClassifier,
    ("ridge", "regression"): Ridge,
    ("knn", "classification"): KNeighborsClassifier,
    ("knn", "regression"): KNeighborsRegressor,
    ("random-forest", "classification"): lambda: RandomForestClassifier(random_state=0),
    ("random-forest", "regression"): lambda: RandomForestRegressor(random_state=0),
}


@dataclass(frozen=True)
class BayesRequest:
    """The arguments of ``privgp search bayes`` as given."""

    train: Path
    validation: Path
    inputs: str
    output: str
    space: str
    epsilon: float
    delta: float
    out: Path
    estimator: str
    task: str
    loss: str
    loss_bounds: tuple[float, float] | None
    steps: int
    method: str
    acquisition: str
    state: Path | None
    seed: int | None

    def check(self) -> None:
        try:
            check_budget(self.epsilon, self.delta)
        except ValueError as problem:
            raise refusal(problem) from None
        if not self.output or self.output in split_names(self.inputs, "--inputs"):
            raise Refusal("--output must name a column that is not among --inputs.")
        if self.task == "classification" and self.loss_bounds is not None:
            raise Refusal("--loss-bounds are for --task regression: accuracy has bounds 0 and 1.")
        if self.task == "regression" and self.loss_bounds is None:
            raise Refusal("--task regression needs --loss-bounds LO HI, declared beforehand.")
        if self.method != "measured" and self.state is not None:
            raise Refusal("--state is for --method measured.")

    def search(self, tell: Any) -> PrivateBayesSearchCV:
        model = MODELS[self.estimator, self.task]()
        axes = read_space(self.space)
        known = model.get_params()
        for name in axes:
            if name not in known or name == "random_state":
                raise Refusal(f"--space names '{name}', which is no parameter of {self.estimator}.")
        regression = self.task == "regression"
        return PrivateBayesSearchCV(
            Pipeline([("scale", StandardScaler()), ("model", model)]),
            {PREFIX + name: axis for name, axis in axes.items()},
            epsilon=self.epsilon,
            delta=self.delta,
            n_iter=self.steps,
            method=self.method,
            scoring=self.loss if regression else "accuracy",
            loss_bounds=self.loss_bounds,
            acquisition=self.acquisition,
            state_file=None if self.state is None else str(self.state),
            progress=tell,
            random_state=self.seed,
        )


def run_bayes(request: BayesRequest, *, only_plan: bool, force: bool, as_json: bool) -> None:
    """Check and rehearse everything on public data, then search, then write."""
    request.check()
    check_destination(request.out, (".json",), force=force)
    check_apart([request.train, request.validation], [request.out, request.state])
    search = request.search(False)
    names = split_names(request.inputs, "--inputs")
    held = open_table(request.validation)
    private = load(held, [*names, request.output])
    check_lines(held, private.height)
    with public_computation():
        plan = search.plan(private.height)
    if only_plan:
        _tell_plan(plan, as_json=as_json)
        return
    source = open_table(request.train)
    frame = load(source, [*names, request.output])
    check_lines(source, frame.height)
    X = input_columns(frame, names, source).to_numpy().astype(np.float64)
    y = outputs(frame, request.output, source, request.task)
    X_val, y_val = private_records(private, names, request.output, held, request.task)
    del frame, private
    _rehearse(search, plan, X, y)
    with _spending(request), progress(len(plan.noise) or request.steps) as step:
        search.set_params(progress=lambda done: step(f"Step {done} done"))
        with np.errstate(all="ignore"):
            search.fit(X, y, X_val, y_val)
        del X_val, y_val
        result = _facts(search)
        with whole_file(request.out) as part:
            part.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    _report(search, request, result, as_json=as_json)


def _rehearse(search: PrivateBayesSearchCV, plan: SearchPlan, X: Array, y: Any) -> None:
    """Train once at either end of the space: what stops that would stop the search."""
    for setting in (plan.space.settings[0], plan.space.settings[-1]):
        try:
            clone(search.estimator).set_params(**setting).fit(X, y).predict(X[:1])
        except Exception as problem:
            shown = one_line(str(problem)).rstrip(".")
            raise Refusal(
                f"The model cannot be trained with {_plain(setting)}: {shown}; nothing was spent."
            ) from None


@contextmanager
def _spending(request: BayesRequest) -> Iterator[None]:
    """From here on some or all of the budget may be spent."""
    try:
        yield
    except (KeyboardInterrupt, Exception) as problem:
        stopped = "Interrupted" if isinstance(problem, KeyboardInterrupt) else "Failed"
        if isinstance(problem, ValueError) and "state_file" in str(problem):
            raise Refusal(str(problem).replace("state_file", "--state")) from None
        spent = f"count epsilon = {request.epsilon:g}, delta = {request.delta:g} as spent"
        if request.state is not None:
            spent = f"what was measured is kept in '{request.state}': run the same command to go on"
        raise Failure(f"{stopped} during the search; {spent}.") from None


def _plain(setting: dict[str, Any]) -> dict[str, Any]:
    return {name.removeprefix(PREFIX): value for name, value in setting.items()}


def _facts(search: PrivateBayesSearchCV) -> dict[str, Any]:
    told = search.cv_results_
    facts: dict[str, Any] = {
        "best_params": _plain(search.best_params_),
        "best_score": search.best_score_,
        "best_score_std": search.best_score_std_,
        "scoring": search.scoring,
        "method": search.method,
        "records": search.plan_.rows,
        "guarantee": json.loads(search.guarantee_.to_json()),
        "simulation": search.guarantee_.is_simulation,
    }
    if "score" in told:
        facts["tried"] = [
            {
                "params": _plain(setting),
                "score": None if np.isnan(s) else float(s),
                "noise_std": float(n),
            }
            for setting, s, n in zip(told["params"], told["score"], told["noise_std"], strict=True)
        ]
    return facts


def _tell_plan(plan: SearchPlan, *, as_json: bool) -> None:
    if not as_json:
        say(plan.describe().replace(PREFIX, ""))
        return
    say_json(
        {
            "records": plan.rows,
            "settings": len(plan.space),
            "noise_std": plan.noise_std.tolist(),
            "score_std": plan.score_std,
            "theorem_bounds": plan.theorem_bounds(),
        },
        simulation=False,
    )


def _report(
    search: PrivateBayesSearchCV, request: BayesRequest, facts: dict[str, Any], *, as_json: bool
) -> None:
    if as_json:
        told = {"result": str(request.out), **facts}
        say_json(told, simulation=search.guarantee_.is_simulation)
        return
    say_if_simulated(search.guarantee_)
    name = "accuracy" if search.scoring == "accuracy" else f"minus the mean {search.scoring}"
    for parameter, value in facts["best_params"].items():
        say(f"{parameter} = {value:.6g}" if isinstance(value, float) else f"{parameter} = {value}")
    say(f"Score ({name}): {search.best_score_:.4g}, std of its noise {search.best_score_std_:.2g}.")
    public = "" if search.guarantee_.is_simulation else ", which may be published"
    say(f"Written to {request.out}{public}.")
    say("")
    say(search.guarantee_.describe())
