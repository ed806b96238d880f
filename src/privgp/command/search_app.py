"""The subcommands of ``privgp search`` and their options."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from privgp.command import options as o

search_app = typer.Typer(
    name="search",
    help="Choose hyperparameters among candidates without telling more than the budget allows.",
    no_args_is_help=True,
)


class Method(StrEnum):
    measurement = "measurement"
    permute_and_flip = "permute-and-flip"
    exponential = "exponential"


@search_app.callback()
def search() -> None:
    """Choose hyperparameters among candidates without telling more than the budget allows."""


@search_app.command()
def grid(
    data: o.Data,
    inputs: o.Inputs,
    output: o.Output,
    bounds: o.Bounds,
    epsilon: o.Epsilon,
    delta: o.Delta,
    lengthscales: Annotated[
        str,
        typer.Option(
            metavar="A,B,C",
            help="Candidates, such as 3,9,27; for several inputs one each, such as 3:10,9:30.",
            rich_help_panel=o.SEARCH,
        ),
    ],
    out: Annotated[
        Path, o.destination("FILE", "The .privgp file to write; it contains the inputs.")
    ],
    noise_std: Annotated[
        str | None,
        typer.Option(
            "--noise-std",
            "--noise",
            metavar="A,B,C",
            help="Candidates for the std of an output about the function.",
            rich_help_panel=o.SEARCH,
        ),
    ] = None,
    method: Annotated[
        Method,
        typer.Option(
            help="By the private measurement, which costs nothing, or by cross-validation.",
            rich_help_panel=o.SEARCH,
        ),
    ] = Method.measurement,
    folds: Annotated[
        int,
        typer.Option(
            min=2, max=1000, help="Folds of the cross-validation.", rich_help_panel=o.SEARCH
        ),
    ] = 5,
    selection_share: Annotated[
        float,
        typer.Option(
            help="The part of epsilon that a choice by cross-validation spends.",
            rich_help_panel=o.SEARCH,
        ),
    ] = 0.3,
    kernel: o.KernelText = None,
    groups: o.Groups = None,
    targets: o.Targets = None,
    certificate: o.Certificate = None,
    plot: o.Plot = None,
    force: o.Force = False,
    seed: o.Seed = None,
    json: o.Json = False,
) -> None:
    """Choose lengthscale and noise from a grid, spend the budget once and write a release."""
    from privgp.command.io.request import Request
    from privgp.command.io.results import Results
    from privgp.command.search import Grid, run_grid

    request = Request(
        data=data,
        inputs=inputs,
        output=output,
        bounds=bounds,
        epsilon=epsilon,
        delta=delta,
        groups=groups,
        kernel=kernel,
        targets=targets,
        hyperparameters="fixed",
        seed=seed,
    )
    asked = Grid(lengthscales, noise_std, method.value, folds, selection_share)
    run_grid(request, asked, Results(out, certificate, plot), force=force, as_json=json)
