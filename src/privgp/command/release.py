"""``privgp release``: spend the budget once and write what may be published."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from privgp.command import options as o
from privgp.command.io.files import CERTIFICATES, PICTURES, RELEASES, TABLES, check_files
from privgp.command.io.screen import progress


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
    check_files([(data, TABLES)], files, force=force)
    from numpy import errstate

    from privgp.command.io.request import Request
    from privgp.command.io.results import Results
    from privgp.command.io.spending import prepared, spending

    request = Request(
        data=data, inputs=inputs, output=output, groups=groups, bounds=bounds, epsilon=epsilon,
        delta=delta, protect=protect, x_bounds=x_bounds, kernel=kernel, targets=targets,
        noise_variance=noise_variance, objective=objective, reconstruct=reconstruct,
        hyperparameters=hyperparameters, inducing=inducing, mechanism=mechanism, seed=seed,
    )  # fmt: skip
    request.check()
    results = Results(out, certificate, plot, force)
    with progress(2) as step:
        measure = prepared(request, output, out, step)
    with spending(epsilon, delta) as saved:
        with progress(3) as step:
            step("Measuring with noise and learning from the measurement")
            with errstate(all="ignore"):
                model = measure()
            del measure  # it holds the outputs
            results.write(model, output, saved, step)
        results.tell(model.guarantee_, request, as_json=json)
