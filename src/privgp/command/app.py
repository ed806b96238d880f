"""The subcommands and their options. What they need is imported when they run: help stays quick."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from privgp.command import options as o
from privgp.command.audit_app import audit_app
from privgp.command.function_app import function_app
from privgp.command.paths_app import paths_app
from privgp.command.search_app import search_app
from privgp.command.search_bayes_app import bayes

app = typer.Typer(
    name="privgp",
    help="Publish Gaussian-process curves and maps of private data under a proved privacy "
    "guarantee, and use what was published.",
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.add_typer(audit_app)
app.add_typer(function_app)
app.add_typer(paths_app)
app.add_typer(search_app)
search_app.command()(bayes)


def _version(asked: bool) -> None:
    if asked:
        from privgp import __version__

        typer.echo(f"privgp {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def privgp(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Publish curves and maps of private data under a proved guarantee, and use what was published."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command()
def plan(
    data: o.Data,
    inputs: o.Inputs,
    bounds: o.Bounds,
    epsilon: o.Epsilon,
    delta: o.Delta,
    output: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="The private column; it is not read, nor needed."),
    ] = None,
    groups: o.Groups = None,
    protect: o.ProtectOption = o.Protect.outputs,
    x_bounds: o.XBounds = None,
    kernel: o.KernelText = None,
    noise_variance: o.NoiseVariance = None,
    targets: o.Targets = None,
    objective: o.ObjectiveOption = o.Objective.posterior,
    reconstruct: o.ReconstructOption = o.Reconstruct.posterior,
    hyperparameters: o.HyperparametersOption = o.Hyperparameters.learned,
    inducing: o.Inducing = None,
    mechanism: o.MechanismOption = o.Mechanism.auto,
    plot: o.Plot = None,
    force: o.Force = False,
    json: o.Json = False,
) -> None:
    """Show what accuracy a budget buys. Reads the public columns only and spends nothing."""
    from privgp.command.io.request import Request
    from privgp.command.plan import run_plan

    request = Request(
        data=data,
        inputs=inputs,
        output=output,
        bounds=bounds,
        epsilon=epsilon,
        delta=delta,
        groups=groups,
        kernel=kernel,
        noise_variance=noise_variance,
        targets=targets,
        objective=objective.value,
        reconstruct=reconstruct.value,
        hyperparameters=hyperparameters.value,
        inducing=inducing,
        mechanism=mechanism.value,
        protect=protect.value,
        x_bounds=x_bounds,
    )
    run_plan(request, plot=plot, force=force, as_json=json)


@app.command()
def release(
    data: o.Data,
    inputs: o.Inputs,
    output: o.Output,
    bounds: o.Bounds,
    epsilon: o.Epsilon,
    delta: o.Delta,
    out: Annotated[
        Path,
        o.destination(
            "FILE",
            "The .privgp file to write; it contains the inputs unless records are protected.",
        ),
    ],
    groups: o.Groups = None,
    protect: o.ProtectOption = o.Protect.outputs,
    x_bounds: o.XBounds = None,
    kernel: o.KernelText = None,
    noise_variance: o.NoiseVariance = None,
    targets: o.Targets = None,
    objective: o.ObjectiveOption = o.Objective.posterior,
    reconstruct: o.ReconstructOption = o.Reconstruct.posterior,
    hyperparameters: o.HyperparametersOption = o.Hyperparameters.learned,
    inducing: o.Inducing = None,
    mechanism: o.MechanismOption = o.Mechanism.auto,
    certificate: o.Certificate = None,
    plot: o.Plot = None,
    force: o.Force = False,
    seed: o.Seed = None,
    json: o.Json = False,
) -> None:
    """Spend the budget once and write a file that may be published."""
    from privgp.command.io.request import Request
    from privgp.command.io.results import Results
    from privgp.command.release import run_release

    request = Request(
        data=data,
        inputs=inputs,
        output=output,
        bounds=bounds,
        epsilon=epsilon,
        delta=delta,
        groups=groups,
        kernel=kernel,
        noise_variance=noise_variance,
        targets=targets,
        objective=objective.value,
        reconstruct=reconstruct.value,
        hyperparameters=hyperparameters.value,
        inducing=inducing,
        mechanism=mechanism.value,
        protect=protect.value,
        x_bounds=x_bounds,
        seed=seed,
    )
    run_release(request, Results(out, certificate, plot), force=force, as_json=json)


@app.command()
def predict(
    release: o.Release,
    data: o.NewData,
    out: Annotated[Path, o.destination("TABLE", "The .csv or .parquet file to write.")],
    inputs: Annotated[str | None, o.named_otherwise("release")] = None,
    observation: Annotated[
        bool,
        typer.Option("--observation", help="Let std be of a new output, not of the function."),
    ] = False,
    plot: o.Plot = None,
    force: o.Force = False,
    json: o.Json = False,
) -> None:
    """Predict from a release: the inputs with columns mean and std. Free, as often as you like."""
    from privgp.command.predict import run_predict

    run_predict(
        release,
        data,
        out,
        inputs=inputs,
        observation=observation,
        plot=plot,
        force=force,
        as_json=json,
    )


@app.command()
def inspect(
    release: o.Release,
    certificate: o.Certificate = None,
    force: o.Force = False,
    json: o.Json = False,
) -> None:
    """Show what a release promises and what it holds."""
    from privgp.command.inspect import run_inspect

    run_inspect(release, certificate_path=certificate, force=force, as_json=json)


@app.command()
def demo(
    out: Annotated[
        Path, typer.Option("--out", metavar="FOLDER", help="Where to put everything.")
    ] = Path("privgp-demo"),
    force: Annotated[
        bool, typer.Option("--force", help="Use the folder again instead of a numbered new one.")
    ] = False,
) -> None:
    """Show the whole way on public data: plan, release, predict, inspect. Under a minute."""
    from privgp.command.demo import run_demo

    run_demo(out, force=force)
