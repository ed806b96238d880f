"""``privgp search``: choose lengthscale and noise from a grid, or tune a model on private validation records."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from json import loads
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from privgp.command import options as o
from privgp.command.errors import (
    Failure,
    Refusal,
    one_line,
    plural,
    refusal,
    refuse_options,
    stop_phrase,
)
from privgp.command.io.files import (
    TABLES,
    check_apart,
    check_files,
    check_release_files,
    write_json,
)
from privgp.command.io.screen import progress, table, tell
from privgp.question.outcomes import has_private_inputs

if TYPE_CHECKING:
    from polars import DataFrame
    from sklearn.pipeline import Pipeline

    from privgp.models.search.bayes import PrivateBayesSearchCV
    from privgp.models.search.grid import PrivateGridSearchCV
    from privgp.plan.search.plan import SearchPlan
    from privgp.types import Array, Cells

LENGTHSCALES_HELP = (
    "Candidates, such as 3,9,27. With several inputs, one value for each: 3:10,9:30."
)
NOISE_STD_HELP = "Candidates for the std of an output about the function."
GRID_METHOD_HELP = "How to choose: by the private measurement, which costs nothing, by cross-validation, or by blocks."
FOLDS_HELP = "The number of folds of the cross-validation."
BLOCKS_HELP = (
    "The number of blocks of private records or labels. Default: the root of the number of rows."
)
SELECTION_SHARE_HELP = "The share of epsilon spent on a choice by cross-validation or by blocks."

PREFIX = "model__"
GRID_OPTIONS = "inputs bounds classes protect x_bounds epsilon delta kernel groups targets"
UNIT = (0.0, 1.0)  # bounds of a label's share
# Options that have no use, and where.
BY_BLOCKS = ("folds", "groups"), "records and labels, which are compared by blocks"
BY_MEASUREMENT = ("folds", "selection_share"), "--method measurement, which needs none"
BY_OUTPUTS = ("blocks",), "numbers at public inputs"

SPACE_HELP = (
    "Such as 'C=1e-3:1e3:log,gamma=1e-4:1:log'; values as in 'kernel=rbf|linear', whole numbers as "
    "in 'n_neighbors=1:30:int'."
)
LOSS_BOUNDS_HELP = "For regression: public bounds of one record's loss, clipped to them."
METHOD_HELP = "measured is private in the worst case, kusner under the assumption of its paper."
STATE_HELP = "A file from which a stopped search continues without spending again."
ACQUISITION_HELP = "How the next setting is chosen."
PLAN_HELP = "Only show what the budget buys. Spends nothing."

Estimator = Literal["svm", "ridge", "knn", "random-forest"]
Task = Literal["classification", "regression"]
Loss = Literal["squared_error", "absolute_error"]


def grid(
    context: typer.Context,
    asked: Annotated[o.ReleaseOptions, o.Pick(GRID_OPTIONS, bounds=None)],
    data: o.Data,
    output: o.Output,
    lengthscales: Annotated[str, o.search(LENGTHSCALES_HELP, metavar="A,B,C")],
    out: Annotated[
        Path, o.destination("FILE", "The .privgp file to write; it contains the inputs.")
    ],
    files: o.ReleaseFiles,
    charge: o.Charge,
    noise_std: Annotated[
        str | None, o.search(NOISE_STD_HELP, *("--noise-std", "--noise"), metavar="A,B,C")
    ] = None,
    method: Annotated[
        Literal["measurement", "permute-and-flip", "exponential"], o.search(GRID_METHOD_HELP)
    ] = "measurement",
    folds: Annotated[int, o.search(FOLDS_HELP, min=2, max=1000)] = 5,
    selection_share: Annotated[float, o.search(SELECTION_SHARE_HELP)] = 0.3,
    blocks: Annotated[int | None, o.search(BLOCKS_HELP, min=2)] = None,
    json: o.Json = False,
) -> None:
    """Choose lengthscale and noise from a grid, spend the budget once and write a release."""
    by_blocks = asked.classes is not None or has_private_inputs(asked.protect)
    if method == "measurement":
        if by_blocks:
            raise Refusal(
                "Records and labels are compared by blocks: give --method permute-and-flip."
            )
        refuse_options(context, *BY_MEASUREMENT)
    refuse_options(context, *(BY_BLOCKS if by_blocks else BY_OUTPUTS))
    if not 0 < selection_share < 1:
        raise Refusal("--selection-share must lie between 0 and 1.")
    check_release_files([(data, TABLES)], out, files)
    from privgp.command.io.accounts import charge_facts
    from privgp.command.io.kernel_text import default_kernel, read_candidates
    from privgp.command.io.request import Request
    from privgp.command.io.results import Results
    from privgp.command.io.spending import guard_budget, rehearse
    from privgp.models.search.candidates import candidates_of
    from privgp.models.search.grid import PrivateGridSearchCV
    from privgp.tables.cells import FILL_IN

    request = Request(
        data=data,
        output=output,
        charge=o.Charge(seed=charge.seed),  # the search is charged, not its model
        about_missing=FILL_IN,
        **{**vars(asked), "hyperparameters": "fixed"},
    )
    request.check()
    account = charge.account
    results = Results(out, files)
    model = request.model()
    given = default_kernel(request.bounds or UNIT) if model.kernel is None else model.kernel
    candidates = read_candidates(lengthscales, noise_std, given, len(request.input_names))
    with progress(2) as step:
        step("Reading the table")
        X, people, y = request.all_columns()
        step("Planning and rehearsing")
        search = PrivateGridSearchCV(
            model.set_params(kernel=candidates["kernel"][0]), candidates, epsilon=request.epsilon,
            delta=request.delta, cv=folds, method=method, selection_share=selection_share,
            blocks=blocks, random_state=charge.seed,
        )  # fmt: skip
        _rehearse_choice(search, X, people)
        rehearse(model, X, people, out)
        search.set_params(ledger=account)
    with guard_budget(request.epsilon, request.delta) as saved:
        with progress(3) as step:
            count = len(candidates_of(search.param_grid))
            step(f"Choosing among {plural(count, 'candidate')} and measuring with noise")
            search.fit(X, y, groups=people)
            del y
            results.write(search.best_estimator_, output, saved, step)
        rows = [_row(search, place) for place in range(len(search.cv_results_["params"]))]
        facts = {"method": method, "candidates": rows, "chosen": search.best_index_}
        headings = [*(name.replace("_", " ") for name in rows[0]), "chosen"]
        cells = [[_number_text(value) for value in row.values()] for row in rows]
        title = f"Candidates, chosen among by {method}"
        shown = table(title, headings, cells, search.best_index_)
        more, lines = charge_facts(search)
        results.tell(search.guarantee_, request, {**facts, **more}, shown, *lines, as_json=json)
    charge.note(data)


def _rehearse_choice(search: PrivateGridSearchCV, X: DataFrame, people: Cells | None) -> None:
    """Search among the first and the last candidate for simulated values: what stops that stops the search."""
    from sklearn.base import clone

    from privgp.command.io.request import public_computation
    from privgp.models.rows.tables import rehearsal_inputs
    from privgp.models.search.candidates import candidates_of

    every, model = candidates_of(search.param_grid), search.estimator
    ends = [{name: [value] for name, value in each.items()} for each in (every[0], every[-1])]
    trial = clone(search).set_params(param_grid=ends, random_state=0)
    inputs, outputs = rehearsal_inputs(model, X), model._rehearsal_outputs(X.height)
    with public_computation(cv="--folds", blocks="--blocks", noise_variance="--noise-std"):
        trial.fit(inputs, outputs, groups=people)


def _row(search: PrivateGridSearchCV, place: int) -> dict[str, object]:
    """What may be told of a candidate: its parameters, and what is public or was measured."""
    from numpy import ravel

    from privgp.command.io.kernel_text import find_scale_part

    results = search.cv_results_
    params = results["params"][place]
    row: dict[str, object] = {
        "lengthscale": ravel(find_scale_part(params["kernel"]).length_scale).tolist()
    }
    if "noise_variance" in params:
        row["noise_std"] = math.sqrt(params["noise_variance"])
    if "log_evidence" in results:
        evidence = results["log_evidence"]
        row["log_evidence_below_best"] = float(evidence.max() - evidence[place])
    if "noise_std" in results:
        row["error_by_privacy"] = float(results["noise_std"][place])
    return row


def _number_text(value: object) -> str:
    values = value if isinstance(value, list) else [value]
    return ":".join(f"{number:.4g}" for number in values)


def bayes(
    context: typer.Context,
    train: Annotated[Path, o.plain("Training records, which are not protected.", metavar="TABLE")],
    validation: Annotated[Path, o.plain("Private records, never trained on.", metavar="TABLE")],
    inputs: Annotated[str, o.plain("Columns to predict from.", metavar="A,B")],
    output: Annotated[str, o.plain("The column to predict.", metavar="COLUMN")],
    space: Annotated[str, o.search(SPACE_HELP, metavar="TEXT")],
    epsilon: o.Epsilon,
    delta: o.Delta,
    out: Annotated[Path, o.destination("FILE", "The .json file to write; it may be published.")],
    charge: o.Charge,
    estimator: Annotated[Estimator, o.search("What is tuned; inputs are standardised.")] = "svm",
    task: Annotated[Task, o.search("Is the output a label or a number?")] = "classification",
    loss: Annotated[Loss, o.search("For regression; accuracy scores labels.")] = "squared_error",
    loss_bounds: Annotated[
        tuple[float, float] | None, o.privacy(LOSS_BOUNDS_HELP, metavar="LO HI")
    ] = None,
    steps: Annotated[int, o.search("The number of settings to try.", min=1, max=500)] = 25,
    method: Annotated[Literal["measured", "kusner"], o.search(METHOD_HELP)] = "measured",
    acquisition: Annotated[Literal["ei", "ucb"], o.search(ACQUISITION_HELP)] = "ei",
    state: Annotated[Path | None, o.search(STATE_HELP, metavar="FILE")] = None,
    plan: Annotated[bool, o.plain(PLAN_HELP, "--plan")] = False,
    force: o.Force = False,
    json: o.Json = False,
) -> None:
    """Tune a model by Bayesian optimisation on private validation records."""
    if task == "classification":
        refuse_options(context, ("loss",), "--task classification, which scores accuracy")
    if method != "measured":
        refuse_options(context, ("acquisition",), f"--method {method}")
    if task == "classification" and loss_bounds is not None:
        raise Refusal("--loss-bounds are for --task regression: accuracy has bounds 0 and 1.")
    if task == "regression" and loss_bounds is None:
        raise Refusal("--task regression needs --loss-bounds LO HI, declared beforehand.")
    if method != "measured" and state is not None:
        raise Refusal("--state is for --method measured.")
    check_files([(train, TABLES), (validation, TABLES)], [(out, (".json",))], force=force)
    if state is not None:  # it may exist: the search then goes on with it
        check_apart([train, validation, out], [state])
    import numpy as np

    from privgp.command.io.accounts import charge_facts
    from privgp.command.io.columns import outputs, private_columns, split_names
    from privgp.command.io.request import public_computation
    from privgp.models.search.bayes import PrivateBayesSearchCV
    from privgp.privacy.budget import check_budget
    from privgp.tables.cells import input_columns
    from privgp.tables.source import load, open_source

    with public_computation():
        check_budget(epsilon, delta)
    names = split_names(inputs)
    if not output or output in names:
        raise Refusal("--output must name a column that is not among --inputs.")
    account = charge.account
    search = PrivateBayesSearchCV(
        *_model_and_space(estimator, task, space), epsilon=epsilon, delta=delta, n_iter=steps,
        method=method, scoring=loss if task == "regression" else "accuracy",
        loss_bounds=loss_bounds, acquisition=acquisition, random_state=charge.seed,
        state_file=None if state is None else str(state), progress=False, ledger=account,
    )  # fmt: skip
    held_out = open_source(validation)
    private = load(held_out, [*names, output])
    with public_computation():
        planned = search.plan(private.height)
    if plan:
        _tell_plan(planned, as_json=json)
        return
    source = open_source(train)
    frame = load(source, [*names, output])
    X = input_columns(frame, names, source).to_numpy().astype(np.float64)
    y = outputs(frame, output, source, task)
    X_val = private_columns(private, names, held_out)
    y_val = outputs(private, output, held_out, task)
    del frame, private
    _rehearse(search, planned, X, y)
    with _guard_budget(epsilon, delta, state), progress(len(planned.noise) or steps) as step:
        search.set_params(progress=lambda done: step(f"Step {done} done"))
        with np.errstate(all="ignore"):
            search.fit(X, y, X_val=X_val, y_val=y_val)
        del X_val, y_val
        facts = {**_facts(search), **charge_facts(search)[0]}
        write_json(out, facts)
    tell({"result": out, **facts}, _lines(search, out), search.guarantee_, as_json=json)
    charge.note(validation)


def _model_and_space(estimator: str, task: str, space: str) -> tuple[Pipeline, dict[str, object]]:
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
    from sklearn.linear_model import Ridge, RidgeClassifier
    from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC, SVR

    from privgp.command.io.axes import read_space

    classifier, regressor = {
        "svm": (SVC(), SVR()),
        "ridge": (RidgeClassifier(), Ridge()),
        "knn": (KNeighborsClassifier(), KNeighborsRegressor()),
        "random-forest": (
            RandomForestClassifier(random_state=0),
            RandomForestRegressor(random_state=0),
        ),
    }[estimator]
    model = classifier if task == "classification" else regressor
    axes = read_space(space)
    for name in axes:
        if name not in model.get_params() or name == "random_state":
            raise Refusal(f"--space names '{name}', which is not a parameter of {estimator}.")
    pipeline = Pipeline([("scale", StandardScaler()), ("model", model)])
    return pipeline, {PREFIX + name: axis for name, axis in axes.items()}


def _rehearse(search: PrivateBayesSearchCV, plan: SearchPlan, X: Array, y: object) -> None:
    """Train once at either end of the space: what stops that would stop the search."""
    from sklearn.base import clone

    for setting in (plan.space.settings[0], plan.space.settings[-1]):
        try:
            clone(search.estimator).set_params(**setting).fit(X, y).predict(X[:1])
        except Exception as problem:
            shown = one_line(str(problem)).rstrip(".")
            raise Refusal(
                f"The model cannot be trained with {_plain(setting)}: {shown}; nothing was spent."
            ) from None


@contextmanager
def _guard_budget(epsilon: float, delta: float, state: Path | None) -> Iterator[None]:
    """From here on some or all of the budget may be spent."""
    from privgp.errors import LedgerError

    try:
        yield
    except LedgerError as problem:  # raised before anything is drawn
        raise refusal(problem) from None
    except (KeyboardInterrupt, Exception) as problem:
        if isinstance(problem, ValueError) and "state_file" in str(problem):
            raise Refusal(str(problem).replace("state_file", "--state")) from None
        spent = f"count epsilon = {epsilon:g}, delta = {delta:g} as spent"
        if state is not None:
            spent = f"what was measured is kept in '{state}': run the same command to go on"
        raise Failure(f"{stop_phrase(problem)} during the search; {spent}.") from None


def _plain(setting: dict[str, object]) -> dict[str, object]:
    return {name.removeprefix(PREFIX): value for name, value in setting.items()}


def _facts(search: PrivateBayesSearchCV) -> dict[str, object]:
    results = search.cv_results_
    facts: dict[str, object] = {
        "best_params": _plain(search.best_params_),
        "best_score": search.best_score_,
        "best_score_std": search.best_score_std_,
        "scoring": search.scoring,
        "method": search.method,
        "records": search.plan_.rows,
        "guarantee": loads(search.guarantee_.to_json()),
        "simulation": search.guarantee_.is_simulation,
    }
    if "score" in results:
        tried = zip(results["params"], results["score"], results["noise_std"], strict=True)
        facts["tried"] = [
            {
                "params": _plain(setting),
                "score": float(score) if score == score else None,  # NaN: it was not measured
                "noise_std": float(noise_std),
            }
            for setting, score, noise_std in tried
        ]
    return facts


def _lines(search: PrivateBayesSearchCV, out: Path) -> list[str]:
    best = _plain(search.best_params_).items()
    name = "accuracy" if search.scoring == "accuracy" else f"minus the mean {search.scoring}"
    public = "" if search.guarantee_.is_simulation else ", which may be published"
    return [
        *(f"{k} = {v:.6g}" if isinstance(v, float) else f"{k} = {v}" for k, v in best),
        f"Score ({name}): {search.best_score_:.4g}, std of its noise {search.best_score_std_:.2g}.",
        f"Written to {out}{public}.",
        "",
        search.guarantee_.describe(),
    ]


def _tell_plan(plan: SearchPlan, *, as_json: bool) -> None:
    facts = {
        "records": plan.rows,
        "settings": len(plan.space),
        "noise_std": plan.noise_std.tolist(),
        "score_std": plan.score_std,
        "theorem_bounds": plan.theorem_bounds(),
    }
    tell(facts, [plan.describe().replace(PREFIX, "")], None, as_json=as_json)
