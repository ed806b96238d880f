"""``privgp predict`` and ``privgp inspect``: use what was published, any number of times."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from privgp.command import options as o
from privgp.command.errors import Refusal, counted, listed
from privgp.command.io.files import (
    CERTIFICATES,
    NEW_TABLES,
    PICTURES,
    RELEASES,
    TABLES,
    check_files,
    open_stored,
)
from privgp.command.io.screen import progress, tell

OBSERVATION_HELP = "Give the std and the interval of a new output instead of the function's."
COVERAGE_HELP = "The probability of the interval from low to high."


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
    """Predict from a release: the inputs with columns mean, std, low and high; of labels, the most
    probable one and the probability of each with its interval. Free, as often as you like."""
    check_files(
        [(release, RELEASES), (data, TABLES)], [(out, NEW_TABLES), (plot, PICTURES)], force=force
    )
    from polars import Series

    from privgp.command.io.answers import answer_of
    from privgp.command.io.columns import answering, asked_rows
    from privgp.command.io.results import drawn, write_picture
    from privgp.command.io.tables import write_table
    from privgp.models.load import load as load_release
    from privgp.models.regressor import check_coverage

    with answering():
        check_coverage(coverage)
    model = open_stored(release, load_release)
    X, answer = asked_rows(model, release, data, inputs), answer_of(model)
    if observation and answer.of_labels:
        raise Refusal("--observation does not go with labels, whose probability says it already.")
    taken = {*answer.names} & {*X.columns}
    names = [f"predicted_{name}" for name in answer.names] if taken else [*answer.names]
    with progress(answer.steps(X.height) + 1) as step:
        predicted = answer.at(X, step, coverage, observation)
        step("Writing")
        frame = X.with_columns(map(Series, names, predicted))
        columns = write_table(frame, out, simulation=model.guarantee_.is_simulation)
        if plot is not None:
            write_picture(answer.plot(observation), plot)
    lines = [
        f"Predicted {counted(X.height, 'row')} into {out}: {answer.told(names, observation)}",
        f"{answer.interval(names)} of probability {coverage:g}.",
    ]
    facts = {
        "predictions": out,
        "rows": X.height,
        "columns": columns,
        **answer.facts(names),
        "coverage": coverage,
        "observation": observation,
        "plot": plot,
    }
    tell(facts, [*lines, *drawn(plot)], model.guarantee_, as_json=json)


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
    from privgp.command.io.answers import answer_of
    from privgp.models.kept import names_of
    from privgp.release.spendings import described

    names = names_of(model)
    inputs = f"{model.n_features_in_} without names" if names is None else listed(names)
    contains = "none" if model.protect == "records" else "their values"
    return [
        model.guarantee_.describe(),
        "",
        *described(model._spent),
        f"Inputs: {inputs}; the file contains {contains}.",
        *answer_of(model).described(),
        "",
        "The plan it was made with:",
        *str(model.plan_summary_).splitlines(),
    ]
