"""The subcommands of ``privgp function`` and their options."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from privgp.command import options as o

function_app = typer.Typer(
    name="function",
    help="One private function, kept by the curator: create it, then ask it at any points.",
    no_args_is_help=True,
)


class Sensitivity(StrEnum):
    exact = "exact"
    infinity = "infinity"
    nonnegative = "nonnegative"
    varah = "varah"
    paper = "paper"


@function_app.command()
def create(
    data: o.Data,
    inputs: o.Inputs,
    output: o.Output,
    bounds: o.Bounds,
    epsilon: o.Epsilon,
    delta: o.Delta,
    kernel: o.KernelNeeded,
    out: o.NewState,
    noise_variance: o.NoiseVariance = None,
    sensitivity: Annotated[
        Sensitivity,
        typer.Option(
            help="Exact, or a bound with more noise; of records, exact or paper.",
            rich_help_panel=o.MODEL,
        ),
    ] = Sensitivity.exact,
    inducing: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=10_000,
            help="Pass through so many of the inputs: any number of points may be asked.",
            rich_help_panel=o.MODEL,
        ),
    ] = None,
    protect: o.ProtectOption = o.Protect.outputs,
    domain: Annotated[
        str | None,
        typer.Option(
            "--domain",
            "--x-bounds",
            metavar="RANGES",
            help=f"With --protect records. {o.DOMAIN_HELP}",
            rich_help_panel=o.PRIVACY,
        ),
    ] = None,
    dominance: Annotated[
        float | None,
        typer.Option(
            help="With --sensitivity varah: the declared dominance of the kernel matrix.",
            rich_help_panel=o.MODEL,
        ),
    ] = None,
    seed: o.Seed = None,
    json: o.Json = False,
) -> None:
    """Take the data into a new private state. The budget is spent with the first answer."""
    from privgp.command.function import run_create
    from privgp.command.function_request import FunctionRequest
    from privgp.command.io.request import Request

    base = Request(
        data=data,
        inputs=inputs,
        output=output,
        bounds=bounds,
        epsilon=epsilon,
        delta=delta,
        noise_variance=noise_variance,
        seed=seed,
    )
    request = FunctionRequest(
        base, kernel, sensitivity.value, inducing, protect.value, domain, dominance
    )
    run_create(request, out, as_json=json)


@function_app.command()
def ask(
    state: o.State,
    data: o.NewData,
    out: o.Answers,
    inputs: Annotated[str | None, o.named_otherwise("state")] = None,
    plot: o.Plot = None,
    force: o.Force = False,
    json: o.Json = False,
) -> None:
    """Ask the function at the rows of a table: the inputs with a column value."""
    from privgp.command.function import run_ask

    run_ask(state, data, out, inputs=inputs, plot=plot, force=force, as_json=json)


@function_app.command("inspect")
def inspect_function(state: o.State, json: o.Json = False) -> None:
    """Show what a function promises and how much of it was asked; nothing private."""
    from privgp.command.function import run_inspect_function

    run_inspect_function(state, as_json=json)
