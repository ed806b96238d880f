"""The subcommands of ``privgp audit`` and their options."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from privgp.command import options as o

audit_app = typer.Typer(
    name="audit",
    help="Attack the promises, on public or made-up data, and see that they hold.",
    no_args_is_help=True,
)

ATTACK = "Attack"


class Mechanism(StrEnum):
    outputs = "outputs"
    records = "records"
    function = "function"
    paths = "paths"
    scores = "scores"
    permute_and_flip = "permute-and-flip"
    exponential = "exponential"


Draws = Annotated[
    int,
    typer.Option(
        min=100, max=10_000_000, help="Fresh releases on each side.", rich_help_panel=ATTACK
    ),
]
FailureProbability = Annotated[
    float,
    typer.Option(help="With which the bounds may be wrong.", rich_help_panel=ATTACK),
]


@audit_app.command("trade-off")
def trade_off(
    data: Annotated[
        Path | None,
        typer.Argument(
            metavar="[DATA]",
            help="A .csv or .parquet file whose public inputs are planned for; without it, thirty "
            "made-up ones called x. Outputs are never read: they are made up.",
        ),
    ] = None,
    inputs: Annotated[
        str | None, typer.Option(metavar="A,B", help="Public columns of DATA to predict from.")
    ] = None,
    mechanism: Annotated[Mechanism, typer.Option(help="What is attacked.")] = Mechanism.outputs,
    law: Annotated[
        o.Mechanism, typer.Option(help="The law of the noise on outputs or records.")
    ] = o.Mechanism.gaussian,
    bounds: o.Bounds = (0.0, 1.0),
    epsilon: o.Epsilon = 8.0,
    delta: o.Delta = 0.01,
    groups: o.Groups = None,
    kernel: o.KernelText = None,
    noise_variance: o.NoiseVariance = None,
    targets: o.Targets = None,
    objective: o.ObjectiveOption = o.Objective.posterior,
    reconstruct: o.ReconstructOption = o.Reconstruct.posterior,
    draws: Draws = 5_000,
    noise_scale: Annotated[
        float,
        typer.Option(
            help="Below 1 plants a fault, to see that it is found.", rich_help_panel=ATTACK
        ),
    ] = 1.0,
    failure_probability: FailureProbability = 1e-6,
    plot: o.Plot = None,
    force: o.Force = False,
    json: o.Json = False,
) -> None:
    """Try to tell the two worst neighbouring datasets apart. Exits with 1 if the promise is broken."""
    from privgp.command.audit import Attacked, run_trade_off
    from privgp.command.io.request import Request

    request = Request(
        data=data or Path(),
        inputs="x" if data is None and inputs is None else inputs or "",
        output=None,
        bounds=bounds,
        epsilon=epsilon,
        delta=delta,
        groups=groups,
        kernel=kernel,
        noise_variance=noise_variance,
        targets=targets,
        objective=objective.value,
        reconstruct=reconstruct.value,
        mechanism=law.value,
    )
    attacked = Attacked(
        request, data is not None, mechanism.value, draws, noise_scale, failure_probability
    )
    run_trade_off(attacked, plot=plot, force=force, as_json=json)


@audit_app.command("membership")
def membership(
    kernel: Annotated[
        str,
        typer.Option(
            metavar="TEXT|FILE",
            help="Of one input, such as 'exp(1)', or a text file that holds it.",
            rich_help_panel=o.MODEL,
        ),
    ] = "exp(1)",
    noise_variance: o.NoiseVariance = None,
    n: Annotated[int, typer.Option("--n", min=1, max=1000, help="Records of a dataset.")] = 10,
    paths: Annotated[
        float, typer.Option(help="How many paths are released; inf for the exact posterior.")
    ] = 1.0,
    record: Annotated[
        tuple[float, float],
        typer.Option(metavar="X Y", help="The record whose membership is asked for."),
    ] = (0.5, 1.0),
    domain: Annotated[
        tuple[float, float], typer.Option(metavar="LO HI", help="Where made-up inputs lie.")
    ] = (0.0, 1.0),
    label_noise: Annotated[
        float, typer.Option(help="Share of noise in made-up outputs, from 0 to below 1.")
    ] = 0.0,
    shadows: Annotated[
        int,
        typer.Option(
            min=100,
            max=1_000_000,
            help="Made-up datasets with the record, and without it, to learn from.",
            rich_help_panel=ATTACK,
        ),
    ] = 10_000,
    draws: Draws = 10_000,
    failure_probability: FailureProbability = 1e-6,
    seed: Annotated[
        int | None, typer.Option(min=0, max=2**32 - 1, help="For a repeatable audit.")
    ] = None,
    plot: o.Plot = None,
    force: o.Force = False,
    json: o.Json = False,
) -> None:
    """Ask posterior paths whether a record was in the data. Everything is made up."""
    from privgp.command.audit import Asked, run_membership

    asked = Asked(
        kernel, noise_variance, n, paths, record, domain, label_noise, shadows, draws,
        failure_probability, seed,
    )  # fmt: skip
    run_membership(asked, plot=plot, force=force, as_json=json)
