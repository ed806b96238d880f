"""``privgp release``: spend the budget once and write what may be published."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from privgp.command import options as o
from privgp.command.io.files import CERTIFICATES, PICTURES, RELEASES, TABLES, check_files
from privgp.command.io.screen import Step, progress, tell

if TYPE_CHECKING:
    from privgp.command.io.request import Request
    from privgp.command.io.tables import Source
    from privgp.models.regressor import PrivateGPRegressor


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
    from privgp.command.io.spending import spending
    from privgp.command.io.tables import open_table

    request = Request(
        data=data, inputs=inputs, output=output, groups=groups, bounds=bounds, epsilon=epsilon,
        delta=delta, protect=protect, x_bounds=x_bounds, kernel=kernel, targets=targets,
        noise_variance=noise_variance, objective=objective, reconstruct=reconstruct,
        hyperparameters=hyperparameters, inducing=inducing, mechanism=mechanism, seed=seed,
    )  # fmt: skip
    request.check()
    results = Results(out, certificate, plot)
    prepare = _from_memory if inducing is None else _from_file
    with progress(2) as step:
        step("Reading the table")
        measure = prepare(request, output, open_table(data), out, step)
    with spending(epsilon, delta) as saved:
        with progress(3) as step:
            step("Measuring with noise and learning from the measurement")
            with errstate(all="ignore"):
                model = measure()
            del measure  # it holds the outputs
            results.write(model, output, saved, step, force=force)
        promised = model.guarantee_
        facts, lines = results.facts(promised, request), results.lines(promised, request)
        tell(facts, lines, promised, as_json=json)


Measure = Callable[[], "PrivateGPRegressor"]


def _from_memory(request: Request, output: str, source: Source, out: Path, step: Step) -> Measure:
    """Load and check a table, plan and rehearse; what is handed back spends."""
    from privgp.command.io.columns import output_column
    from privgp.command.io.request import make_plan
    from privgp.command.io.spending import rehearse
    from privgp.command.io.tables import check_lines, load

    frame = load(source, [*request.public_names, output])
    check_lines(source, frame.height)
    X, people = request.columns(frame, source)
    y = output_column(frame, output, source)
    model = request.model()
    step("Planning and rehearsing")
    make_plan(model, X, people)
    rehearse(model, X, people, out)
    return lambda: model.fit(X, y, people)


def _from_file(request: Request, output: str, source: Source, out: Path, step: Step) -> Measure:
    """The same for a table that is read in parts; the rehearsal is for its first rows."""
    import numpy as np
    import polars as pl

    from privgp.command.io.request import make_plan
    from privgp.command.io.spending import rehearse
    from privgp.command.io.streams import file_rows
    from privgp.command.io.tables import check_lines
    from privgp.models.inducing import fit_rows

    rows = file_rows(source, request.input_names, output)
    check_lines(source, rows.count)
    model = request.model()
    model.n_features_in_ = rows.columns
    model.feature_names_in_ = np.array(rows.names, dtype=object)
    step("Planning and rehearsing")
    first = pl.DataFrame(next(rows.blocks()), schema=request.input_names, orient="row")
    make_plan(model, first, None)
    rehearse(model, first, None, out)

    def measure() -> PrivateGPRegressor:
        fit_rows(model, rows, rows.with_outputs(output))
        return model

    return measure
