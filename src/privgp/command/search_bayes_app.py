"""The options of ``privgp search bayes``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from privgp.command import options as o


class Model(StrEnum):
    svm = "svm"
    ridge = "ridge"
    knn = "knn"
    random_forest = "random-forest"


class Task(StrEnum):
    classification = "classification"
    regression = "regression"


class BayesMethod(StrEnum):
    measured = "measured"
    kusner = "kusner"


class Acquisition(StrEnum):
    ei = "ei"
    ucb = "ucb"


class LossName(StrEnum):
    squared_error = "squared_error"
    absolute_error = "absolute_error"


def bayes(
    train: Annotated[
        Path, typer.Option(metavar="TABLE", help="Training records, which are not protected.")
    ],
    validation: Annotated[
        Path, typer.Option(metavar="TABLE", help="Private records, never trained on.")
    ],
    inputs: Annotated[str, typer.Option(metavar="A,B", help="Columns to predict from.")],
    output: Annotated[str, typer.Option(metavar="COLUMN", help="The column to predict.")],
    space: Annotated[
        str,
        typer.Option(
            metavar="TEXT",
            help="Such as 'C=1e-3:1e3:log,gamma=1e-4:1:log'; values as in 'kernel=rbf|linear', whole "
            "numbers as in 'n_neighbors=1:30:int'.",
            rich_help_panel=o.SEARCH,
        ),
    ],
    epsilon: o.Epsilon,
    delta: o.Delta,
    out: Annotated[Path, o.destination("FILE", "The .json file to write; it may be published.")],
    estimator: Annotated[
        Model,
        typer.Option(help="What is tuned; inputs are standardised.", rich_help_panel=o.SEARCH),
    ] = Model.svm,
    task: Annotated[
        Task,
        typer.Option(help="Whether the output is a label or a number.", rich_help_panel=o.SEARCH),
    ] = Task.classification,
    loss: Annotated[
        LossName,
        typer.Option(
            help="For regression; labels are scored by accuracy.", rich_help_panel=o.SEARCH
        ),
    ] = LossName.squared_error,
    loss_bounds: Annotated[
        tuple[float, float] | None,
        typer.Option(
            metavar="LO HI",
            help="For regression: public bounds of one record's loss, clipped to them.",
            rich_help_panel=o.PRIVACY,
        ),
    ] = None,
    steps: Annotated[
        int, typer.Option(min=1, max=500, help="Settings to try.", rich_help_panel=o.SEARCH)
    ] = 25,
    method: Annotated[
        BayesMethod,
        typer.Option(
            help="Private in the worst case, or the paper's algorithm under its assumption.",
            rich_help_panel=o.SEARCH,
        ),
    ] = BayesMethod.measured,
    acquisition: Annotated[
        Acquisition, typer.Option(help="How the next setting is chosen.", rich_help_panel=o.SEARCH)
    ] = Acquisition.ei,
    state: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A file that lets a killed search go on without paying again.",
            rich_help_panel=o.SEARCH,
        ),
    ] = None,
    plan: Annotated[
        bool, typer.Option("--plan", help="Only say what the budget buys; spends nothing.")
    ] = False,
    force: o.Force = False,
    seed: o.Seed = None,
    json: o.Json = False,
) -> None:
    """Tune a model by Bayesian optimisation on private validation records."""
    from privgp.command.search_bayes import BayesRequest, run_bayes

    request = BayesRequest(
        train=train,
        validation=validation,
        inputs=inputs,
        output=output,
        space=space,
        epsilon=epsilon,
        delta=delta,
        out=out,
        estimator=estimator.value,
        task=task.value,
        loss=loss.value,
        loss_bounds=loss_bounds,
        steps=steps,
        method=method.value,
        acquisition=acquisition.value,
        state=state,
        seed=seed,
    )
    run_bayes(request, only_plan=plan, force=force, as_json=json)
