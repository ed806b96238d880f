"""The subcommands of ``privgp paths`` and their options."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from privgp.command import options as o

paths_app = typer.Typer(
    name="paths",
    help="Sample paths of a posterior, whole records private, kept by the curator.",
    no_args_is_help=True,
)


class PathSensitivity(StrEnum):
    auto = "auto"
    paper = "paper"


class By(StrEnum):
    noise_variance = "noise-variance"
    extra_noise = "extra-noise"


Points = Annotated[
    str,
    typer.Argument(
        metavar="FILE|GRID",
        help="Where: a .csv or .parquet file with the inputs, or a grid such as age=0:90:50.",
    ),
]
PrivateInputs = Annotated[
    str, typer.Option("--inputs", metavar="A,B", help="Input columns; they are private too.")
]
Domain = Annotated[
    str,
    typer.Option(
        metavar="RANGES",
        help=o.DOMAIN_HELP,
        rich_help_panel=o.PRIVACY,
    ),
]
Paths = Annotated[
    int,
    typer.Option(
        "--n-paths",
        min=1,
        max=10_000,
        help="How many paths; each costs.",
        rich_help_panel=o.PRIVACY,
    ),
]
MaxPoints = Annotated[
    int,
    typer.Option(
        min=1,
        max=10_000,
        help="The most points that will ever be asked; more of them need a little more noise.",
        rich_help_panel=o.PRIVACY,
    ),
]
ExtraNoise = Annotated[
    float,
    typer.Option(
        min=0.0,
        help="Std of Gaussian-process noise added to every path.",
        rich_help_panel=o.PRIVACY,
    ),
]
SensitivityOption = Annotated[
    PathSensitivity,
    typer.Option(
        "--sensitivity",
        help="The least proved bound, or the paper's bounds throughout.",
        rich_help_panel=o.PRIVACY,
    ),
]


@paths_app.command()
def calibrate(
    rows: Annotated[int, typer.Option(min=1, help="The number of records.")],
    domain: Domain,
    bounds: o.Bounds,
    epsilon: o.Epsilon,
    delta: o.Delta,
    kernel: o.KernelNeeded,
    noise_variance: o.NoiseVariance = None,
    by: Annotated[
        By,
        typer.Option(
            help="What to find: the noise variance, or the extra noise.", rich_help_panel=o.PRIVACY
        ),
    ] = By.noise_variance,
    n_paths: Paths = 1,
    extra_noise: ExtraNoise = 0.0,
    sensitivity: SensitivityOption = PathSensitivity.auto,
    max_points: MaxPoints = 2000,
    json: o.Json = False,
) -> None:
    """Find the least noise that a budget asks for. Reads no data."""
    from privgp.command.paths import run_calibrate
    from privgp.command.paths_request import PathsRequest

    request = PathsRequest(
        kernel, noise_variance, domain, bounds, delta, n_paths, extra_noise, sensitivity.value,
        max_points,
    )  # fmt: skip
    run_calibrate(request, rows, epsilon, by.value.replace("-", "_"), as_json=json)


@paths_app.command()
def create(
    data: o.Data,
    inputs: PrivateInputs,
    output: Annotated[str, typer.Option(metavar="COLUMN", help="The output column; private.")],
    domain: Domain,
    bounds: o.Bounds,
    delta: o.Delta,
    kernel: o.KernelNeeded,
    out: o.NewState,
    epsilon: Annotated[
        float | None,
        typer.Option(
            help="Choose the least noise variance that meets this budget.",
            rich_help_panel=o.PRIVACY,
        ),
    ] = None,
    noise_variance: o.NoiseVariance = None,
    n_paths: Paths = 1,
    extra_noise: ExtraNoise = 0.0,
    sensitivity: SensitivityOption = PathSensitivity.auto,
    max_points: MaxPoints = 2000,
    seed: o.Seed = None,
    json: o.Json = False,
) -> None:
    """Take the records into a new private state. The budget is spent with the first answer."""
    from privgp.command.paths import run_create
    from privgp.command.paths_request import PathsRequest

    request = PathsRequest(
        kernel, noise_variance, domain, bounds, delta, n_paths, extra_noise, sensitivity.value,
        max_points, seed,
    )  # fmt: skip
    run_create(request, data, inputs, output, epsilon, out, as_json=json)


@paths_app.command()
def release(
    state: o.State, points: Points, out: o.Answers, force: o.Force = False, json: o.Json = False
) -> None:
    """Write the paths at these points: the inputs with columns path_1, path_2, ..."""
    from privgp.command.paths import run_release

    run_release(state, points, out, force=force, as_json=json)


@paths_app.command()
def excursion(
    state: o.State,
    points: Points,
    threshold: Annotated[float, typer.Option(help="Where the function is at least this.")],
    out: o.Answers,
    vote: Annotated[float, typer.Option(help="The share of the paths that must agree.")] = 0.5,
    smoothing: Annotated[
        float | None,
        typer.Option(help="Std, in units of the inputs, of a filter over every path."),
    ] = None,
    plot: o.Plot = None,
    force: o.Force = False,
    json: o.Json = False,
) -> None:
    """Write where the function exceeds a threshold: the inputs with columns share and inside."""
    from privgp.command.paths import run_excursion

    run_excursion(
        state, points, threshold, out,
        vote=vote, smoothing=smoothing, plot=plot, force=force, as_json=json,
    )  # fmt: skip


@paths_app.command("inspect")
def inspect_paths(state: o.State, json: o.Json = False) -> None:
    """Show what the paths promise and how much of them was asked; nothing private."""
    from privgp.command.paths import run_inspect_paths

    run_inspect_paths(state, as_json=json)
