"""``privgp search grid``: choose lengthscale and noise privately, release with what was chosen."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from privgp.command import options as o
from privgp.command.errors import Refusal, plural, refuse_given
from privgp.command.io.files import CERTIFICATES, PICTURES, RELEASES, TABLES, check_files
from privgp.command.io.screen import progress, table

if TYPE_CHECKING:
    from polars import DataFrame

    from privgp.models.search.grid import PrivateGridSearchCV

LENGTHSCALES_HELP = "Candidates, such as 3,9,27; for several inputs one each, such as 3:10,9:30."
NOISE_STD_HELP = "Candidates for the std of an output about the function."
METHOD_HELP = "By the private measurement, which costs nothing, or by cross-validation."
FOLDS_HELP = "The number of folds of the cross-validation."
SELECTION_SHARE_HELP = "The share of epsilon spent on a choice by cross-validation."


@o.take_options(o.ReleaseOptions, only="inputs bounds epsilon delta kernel groups targets")
def grid(
    context: typer.Context,
    data: o.Data,
    output: o.Output,
    lengthscales: Annotated[str, o.search(LENGTHSCALES_HELP, metavar="A,B,C")],
    out: Annotated[
        Path, o.destination("FILE", "The .privgp file to write; it contains the inputs.")
    ],
    noise_std: Annotated[
        str | None, o.search(NOISE_STD_HELP, *("--noise-std", "--noise"), metavar="A,B,C")
    ] = None,
    method: Annotated[
        Literal["measurement", "permute-and-flip", "exponential"], o.search(METHOD_HELP)
    ] = "measurement",
    folds: Annotated[int, o.search(FOLDS_HELP, min=2, max=1000)] = 5,
    selection_share: Annotated[float, o.search(SELECTION_SHARE_HELP)] = 0.3,
    certificate: o.Certificate = None,
    plot: o.Plot = None,
    force: o.Force = False,
    ledger: o.Ledger = None,
    dataset: o.Dataset = None,
    seed: o.Seed = None,
    json: o.Json = False,
    **asked: Any,
) -> None:
    """Choose lengthscale and noise from a grid, spend the budget once and write a release."""
    if method == "measurement":
        refuse_given(
            context, ("folds", "selection_share"), "--method measurement, which needs none"
        )
    if not 0 < selection_share < 1:
        raise Refusal("--selection-share must lie between 0 and 1.")
    files = [(out, RELEASES), (certificate, CERTIFICATES), (plot, PICTURES)]
    check_files([(data, TABLES)], files, force=force)
    from privgp.command.io.accounts import account_of, charge_facts, note_release
    from privgp.command.io.kernel_text import default_kernel, read_candidates
    from privgp.command.io.request import Request
    from privgp.command.io.results import Results
    from privgp.command.io.spending import guard_budget, rehearse
    from privgp.models.search.candidates import candidates_of
    from privgp.models.search.grid import PrivateGridSearchCV
    from privgp.tables.cells import FILL_IN

    request = Request(
        data=data, output=output, seed=seed, hyperparameters="fixed", about_missing=FILL_IN, **asked
    )
    request.check()
    account = account_of(ledger, dataset)
    results = Results(out, certificate, plot, force)
    model = request.model()
    given = default_kernel(request.bounds) if model.kernel is None else model.kernel
    candidates = read_candidates(lengthscales, noise_std, given, len(request.input_names))
    with progress(2) as step:
        step("Reading the table")
        X, people, y = request.all_columns(output)
        step("Planning and rehearsing")
        search = PrivateGridSearchCV(
            model.set_params(kernel=candidates["kernel"][0]), candidates, epsilon=request.epsilon,
            delta=request.delta, cv=folds, method=method, selection_share=selection_share,
            ledger=account, random_state=seed,
        )  # fmt: skip
        _check(search, X, people)
        rehearse(model, X, people, out)
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
    note_release(data, account, seed)


def _check(search: PrivateGridSearchCV, X: DataFrame, people: Any) -> None:
    """Whatever would stop the search before it spends, from public columns alone."""
    import numpy as np
    from sklearn.base import clone

    from privgp.command.io.request import make_plan, public_computation
    from privgp.models.search.candidates import candidates_of, models_of

    if search.method != "measurement":
        count = X.height if people is None else len(np.unique(people))
        if search.cv > count:
            raise Refusal(
                f"--folds must be at most the number of rows or people, {count}, got {search.cv}."
            )
    candidates = candidates_of(search.param_grid)
    with public_computation():
        models_of(search.estimator, candidates, X.to_numpy().astype(np.float64))
    for each in (candidates[0], candidates[-1]):
        make_plan(clone(search.estimator).set_params(**each), X, people)


def _row(search: PrivateGridSearchCV, place: int) -> dict[str, Any]:
    """What may be told of a candidate: its parameters, and what is public or was measured."""
    from numpy import ravel

    from privgp.command.io.kernel_text import find_scale_part

    results = search.cv_results_
    params = results["params"][place]
    row: dict[str, Any] = {
        "lengthscale": ravel(find_scale_part(params["kernel"]).length_scale).tolist()
    }
    if "noise_variance" in params:
        row["noise_std"] = math.sqrt(params["noise_variance"])
    if "log_evidence" in results:
        evidence = results["log_evidence"]
        row["log_evidence_below_best"] = float(evidence.max() - evidence[place])
    else:
        row["error_by_privacy"] = float(results["noise_std"][place])
    return row


def _number_text(value: object) -> str:
    values = value if isinstance(value, list) else [value]
    return ":".join(f"{number:.4g}" for number in values)
