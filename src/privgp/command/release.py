"""``privgp release``: spend the budget once and write what may be published."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from privgp.command import options as o
from privgp.command.errors import Refusal
from privgp.command.io.files import CERTIFICATES, PICTURES, PLANS, RELEASES, TABLES, check_files
from privgp.command.io.screen import progress

PLANNED = (
    "inputs", "bounds", "epsilon", "delta", "groups", "protect", "x_bounds", "kernel", "mechanism",
    "noise_variance", "targets", "objective", "reconstruct", "hyperparameters", "inducing",
)  # fmt: skip


def release(
    context: typer.Context,
    data: o.Data,
    output: o.Output,
    out: Annotated[
        Path,
        o.destination(
            "FILE",
            "The .privgp file to write; it contains the inputs unless records are protected.",
        ),
    ],
    plan: Annotated[
        Path | None,
        o.plain("The .plan file that privgp plan wrote: it says all but --output.", metavar="FILE"),
    ] = None,
    inputs: o.PlannedInputs = None,
    bounds: o.PlannedBounds = None,
    epsilon: o.PlannedEpsilon = None,
    delta: o.PlannedDelta = None,
    groups: o.Groups = None,
    protect: o.Protect = "outputs",
    x_bounds: o.XBounds = None,
    kernel: o.KernelText = None,
    noise_variance: o.NoiseVariance = None,
    targets: o.Targets = None,
    objective: o.Objective = "posterior",
    reconstruct: o.Reconstruct = "posterior",
    hyperparameters: o.Hyperparameters = "learned",
    inducing: o.Inducing = None,
    mechanism: o.Mechanism = "auto",
    certificate: o.Certificate = None,
    plot: o.Plot = None,
    force: o.Force = False,
    seed: o.Seed = None,
    json: o.Json = False,
) -> None:
    """Spend the budget once and write a file that may be published."""
    files = [(out, RELEASES), (certificate, CERTIFICATES), (plot, PICTURES)]
    check_files([(data, TABLES), (plan, PLANS)], files, force=force)
    if plan is not None:
        _check_alone(context)
    from numpy import errstate

    from privgp.command.io.request import PlannedRequest, Request
    from privgp.command.io.results import Results
    from privgp.command.io.spending import prepared, spending

    request: Request
    if plan is not None:
        request = PlannedRequest.of(plan, data, output, seed)
    elif inputs is None or bounds is None or epsilon is None or delta is None:
        needed = {"--inputs": inputs, "--bounds": bounds, "--epsilon": epsilon, "--delta": delta}
        missing = next(name for name, value in needed.items() if value is None)
        raise Refusal(f"Missing option '{missing}': give it, or a --plan.")
    else:
        request = Request(
            data=data, inputs=inputs, output=output, groups=groups, bounds=bounds,
            epsilon=epsilon, delta=delta, protect=protect, x_bounds=x_bounds, kernel=kernel,
            targets=targets, noise_variance=noise_variance, objective=objective,
            reconstruct=reconstruct, hyperparameters=hyperparameters, inducing=inducing,
            mechanism=mechanism, seed=seed,
        )  # fmt: skip
    request.check()
    results = Results(out, certificate, plot, force)
    with progress(2) as step:
        measure = prepared(request, output, out, step)
    with spending(request.epsilon, request.delta) as saved:
        with progress(3) as step:
            step("Measuring with noise and learning from the measurement")
            with errstate(all="ignore"):
                model = measure()
            del measure  # it holds the outputs
            results.write(model, output, saved, step)
        results.tell(model.guarantee_, request, as_json=json)


def _check_alone(context: typer.Context) -> None:
    """Refuse options that say what a plan says already."""
    for name in PLANNED:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            option = "--" + name.replace("_", "-")
            raise Refusal(f"{option} does not go with --plan, which says it already.")
