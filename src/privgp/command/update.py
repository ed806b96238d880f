"""``privgp update``: measure more rows for a release, or its rows once more, and write a new one."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from privgp.command import options as o
from privgp.command.errors import Refusal
from privgp.command.io.files import CERTIFICATES, PICTURES, RELEASES, TABLES, check_files
from privgp.command.io.screen import progress, warn

OUT_HELP = (
    "The .privgp file to write; it replaces FILE, which may be kept, and contains the inputs unless "
    "records are protected."
)
EXPOSURE_HELP = "A public column: what each count is counted over. For a FILE of rates."
SAME_ROWS_HELP = (
    "DATA is of the rows that FILE, or an update of it, was made from, not of new people: spend a "
    "further --epsilon and --delta on them."
)
EPSILON_HELP = "With --same-rows: the further budget. New people have that of FILE."
DELTA_HELP = "With --same-rows: the further delta; 0 with Laplace noise."


def update(
    release: o.Release,
    data: o.Data,
    output: o.Outputs,
    out: Annotated[Path, o.destination("NEW", OUT_HELP)],
    inputs: Annotated[str | None, o.input_names_option("release", "DATA")] = None,
    groups: Annotated[str | None, o.privacy(o.GROUPS_HELP, metavar="COLUMN")] = None,
    exposure: Annotated[str | None, o.model(EXPOSURE_HELP, metavar="COLUMN")] = None,
    same_rows: Annotated[bool, o.privacy(SAME_ROWS_HELP, "--same-rows")] = False,
    epsilon: Annotated[float | None, o.privacy(EPSILON_HELP)] = None,
    delta: Annotated[float | None, o.privacy(DELTA_HELP)] = None,
    missing: o.Missing = "refuse",
    delimiter: o.Delimiter = None,
    decimal_comma: o.DecimalComma = None,
    encoding: o.Encoding = None,
    date_format: o.DateFormat = None,
    certificate: o.Certificate = None,
    plot: o.Plot = None,
    force: o.Force = False,
    ledger: o.Ledger = None,
    dataset: o.Dataset = None,
    seed: o.Seed = None,
    json: o.Json = False,
) -> None:
    """Measure rows of new people, or the same rows again, planned by what a release left unknown."""
    files = [(out, RELEASES), (certificate, CERTIFICATES), (plot, PICTURES)]
    check_files([(release, RELEASES), (data, TABLES)], files, force=force)
    budget = _further(same_rows, epsilon, delta)
    from privgp.command.io.accounts import account_of, charge_facts, note_release
    from privgp.command.io.results import Results
    from privgp.command.io.spending import guard_budget
    from privgp.command.io.updating import UpdateRequest, prepare_update

    written: dict[str, Any] = {
        "missing": missing,
        "delimiter": delimiter,
        "decimal_comma": decimal_comma,
        "encoding": encoding,
        "date_format": date_format,
    }
    request = UpdateRequest.of(
        release, data, inputs, output, groups, exposure, budget, seed, **written
    )
    request.check()
    request = replace(request, account=account_of(ledger, dataset))
    results = Results(out, certificate, plot, force)
    with progress(2) as step:
        measure = prepare_update(request, output, out, step)
    with guard_budget(request.epsilon, request.delta) as saved:
        with progress(3) as step:
            step("Measuring with noise and learning from all measurements")
            model = measure()
            del measure  # it holds the outputs
            results.write(model, output, saved, step)
        facts, lines = charge_facts(model)
        results.tell(
            model.guarantee_, request, facts | {"warnings": request.left_out}, *lines, as_json=json
        )
        if not json:
            warn(request.left_out)
    if not same_rows:
        note_release(data, request.account, seed)


def _further(
    same_rows: bool, epsilon: float | None, delta: float | None
) -> tuple[float, float] | None:
    """The further budget for the same rows; None for new people."""
    if not same_rows:
        for option, value in (("--epsilon", epsilon), ("--delta", delta)):
            if value is not None:
                raise Refusal(
                    f"{option} goes with --same-rows: new people have the budget of FILE."
                )
        return None
    if epsilon is None or delta is None:
        raise Refusal("--same-rows needs --epsilon and --delta, the further budget.")
    return epsilon, delta
