"""``privgp predict`` and ``privgp inspect``: use what was published, any number of times."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from privgp.command import options as o
from privgp.command.errors import Refusal, counted, listed
from privgp.command.io.files import (
    CERTIFICATES,
    PICTURES,
    RELEASES,
    TABLES,
    check_files,
    open_stored,
)
from privgp.command.io.screen import Step, progress, tell

if TYPE_CHECKING:
    from privgp.types import Array

BLOCK = 4096

OBSERVATION_HELP = "Give the std and the interval of a new output instead of the function's."
COVERAGE_HELP = "The probability of the interval from low to high."
NAMES = ("mean", "std", "low", "high")


def predict(
    release: o.Release,
    data: o.NewData,
    out: Annotated[Path, o.destination("TABLE", "The .csv or .parquet file to write.")],
    inputs: Annotated[str | None, o.named_otherwise("release")] = None,
    coverage: Annotated[float, o.plain(COVERAGE_HELP)] = 0.9,
    observation: Annotated[bool, o.plain(OBSERVATION_HELP, "--observation")] = False,
    plot: o.Plot = None,
    force: o.Force = False,
    json: o.Json = False,
) -> None:
    """Predict from a release: the inputs with columns mean, std, low and high. Free, as often as you
    like."""
    check_files(
        [(release, RELEASES), (data, TABLES)], [(out, TABLES), (plot, PICTURES)], force=force
    )
    from polars import Series

    from privgp.command.io.columns import answering, asked_rows
    from privgp.command.io.results import drawn, write_picture
    from privgp.command.io.tables import write_table
    from privgp.models.load import load as load_release
    from privgp.models.regressor import check_coverage

    with answering():
        check_coverage(coverage)
    model = open_stored(release, load_release)
    X = asked_rows(model, release, data, inputs)
    names = [f"predicted_{name}" for name in NAMES] if {*NAMES} & {*X.columns} else [*NAMES]
    with progress(-(-X.height // BLOCK) + 1) as step:
        numbers = X.to_numpy().astype(float)
        predicted = _predictions(model, numbers, step, coverage=coverage, observation=observation)
        step("Writing")
        frame = X.with_columns(map(Series, names, predicted))
        columns = write_table(frame, out, simulation=model.guarantee_.is_simulation)
        if plot is not None:
            write_picture(model.plot(observation=observation), plot)
    mean, std, low, high = names
    what = "a new output" if observation else "the function"
    lines = [
        f"Predicted {counted(X.height, 'row')} into {out}: {mean}, and {std} of {what}.",
        f"From {low} to {high} is its interval of probability {coverage:g}.",
    ]
    facts = {
        "predictions": out,
        "rows": X.height,
        "columns": columns,
        **dict(zip(NAMES, names, strict=True)),
        "coverage": coverage,
        "observation": observation,
        "plot": plot,
    }
    tell(facts, [*lines, *drawn(plot)], model.guarantee_, as_json=json)


def _predictions(model: Any, X: Array, step: Step, *, coverage: float, observation: bool) -> Array:
    """Mean, std and interval (4, rows) by blocks of rows, so that any number fits into memory."""
    import numpy as np

    from privgp.command.io.columns import answering, in_blocks

    parts = []
    for rows in in_blocks(model, X, BLOCK, step, "Predicting row"):
        with answering():
            spread = model.predict(rows, return_std=True, observation=observation)
            parts.append([*spread, *model.interval(rows, coverage, observation=observation)])
    predicted = np.concatenate(parts, axis=-1)
    if not np.all(np.isfinite(predicted)):
        raise Refusal("Some rows are too far away: their predictions would overflow.")
    return predicted


def inspect(
    release: o.Release,
    certificate: o.Certificate = None,
    force: o.Force = False,
    json: o.Json = False,
) -> None:
    """Show what a release promises and what it holds."""
    check_files([(release, RELEASES)], [(certificate, CERTIFICATES)], force=force)
    from privgp.command.io.results import write_certificate
    from privgp.models.load import load
    from privgp.release.certificate import certificate as facts_of

    model = open_stored(release, load)
    facts = facts_of(model)
    lines = _description(model)
    if "ledger" in facts:
        entry, dataset = facts["ledger"]["entry"], facts["ledger"]["dataset"]
        lines += ["", f"Charged to '{dataset}' as entry {entry} of the holder's ledger."]
    if certificate is not None:
        write_certificate(model, certificate)
        lines.append(f"Certificate: {certificate}")
    tell(facts, lines, model.guarantee_, as_json=json)


def _description(model: Any) -> list[str]:
    from privgp.command.io.kernel_text import write_kernel
    from privgp.models.kept import names_of

    names = names_of(model)
    inputs = f"{model.n_features_in_} without names" if names is None else listed(names)
    contains = "none" if model.protect == "records" else "their values"
    return [
        model.guarantee_.describe(),
        "",
        f"Inputs: {inputs}; the file contains {contains}.",
        f"Most plausible kernel: {write_kernel(model.kernel_, figures=4)}.",
        f"Variance of an output about the function: {model.noise_variance_:.4g}.",
        "Error bars: 'privgp predict' gives intervals of the function, of new outputs with --observation.",
        "",
        "The plan it was made with:",
        *str(model.plan_summary_).splitlines(),
    ]
