"""``privgp release``: spend the budget once and write what may be published."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from privgp.command import options as o
from privgp.command.errors import Refusal, refuse_given
from privgp.command.io.files import (
    CERTIFICATES,
    MANY_TABLES,
    PICTURES,
    PLANS,
    RELEASES,
    check_files,
)
from privgp.command.io.screen import progress, warn

# What a plan does not say.
OF_THE_TABLE = ("missing", "delimiter", "decimal_comma", "encoding", "date_format")
NEEDED = ("inputs", "bounds", "epsilon", "delta")
LABELS = "; labels need --classes instead of --bounds"

OUT_HELP = "The .privgp file to write; it contains the inputs unless records are protected."
PLAN_HELP = (
    "The .plan file that privgp plan wrote: it says all but --output and how the table is written."
)


@o.take_options(o.ReleaseOptions, inputs=None, bounds=None, epsilon=None, delta=None)
def release(
    context: typer.Context,
    data: o.ManyData,
    output: o.Outputs,
    out: Annotated[Path, o.destination("FILE", OUT_HELP)],
    plan: Annotated[Path | None, o.plain(PLAN_HELP, metavar="FILE")] = None,
    certificate: o.Certificate = None,
    holder: o.Holder = None,
    plot: o.Plot = None,
    name: o.Name = None,
    units: o.Units = None,
    force: o.Force = False,
    ledger: o.Ledger = None,
    dataset: o.Dataset = None,
    scheduler: o.Scheduler = None,
    seed: o.Seed = None,
    json: o.Json = False,
    **asked: Any,
) -> None:
    """Spend the budget once and write a file that may be published."""
    files = [(out, RELEASES), (certificate, CERTIFICATES), (plot, PICTURES)]
    read = [(data, MANY_TABLES), (plan, PLANS), (holder, (".json",))]
    check_files(read, files, force=force)
    if certificate is None:
        refuse_given(context, ("holder",), "a release without --certificate")
    _check_complete(context, asked, by_plan=plan is not None)
    from privgp.command.io.accounts import account_of, charge_facts, note_release
    from privgp.command.io.request import PlannedRequest, Request, plan_warnings
    from privgp.command.io.results import Results, read_holder
    from privgp.command.io.spending import guard_budget, prepare_release

    own: Any = {"data": data, "output": output, "seed": seed, "scheduler": scheduler}
    written = {name: asked[name] for name in OF_THE_TABLE}
    if plan is None:
        request = Request(**own, about_labels=LABELS, **asked)
    else:
        request = PlannedRequest.of(plan, **own, **written)
    request.check()
    request = replace(request, account=account_of(ledger, dataset))
    results = Results(out, certificate, plot, force, name, units, read_holder(holder))
    results.check_output_names(request)
    with progress(2) as step:
        measure = prepare_release(request, output, out, step)
    with guard_budget(request.epsilon, request.delta) as saved:
        with progress(3) as step:
            step("Measuring with noise and learning from the measurement")
            model = measure()
            del measure  # it holds the outputs
            results.write(model, output, saved, step)
        facts, lines = charge_facts(model)
        facts["warnings"] = [*request.left_out, *plan_warnings(model.plan_)]
        results.tell(model.guarantee_, request, facts, *lines, as_json=json)
        if not json:
            warn(facts["warnings"])
    note_release(data, request.account, seed)


def _check_complete(context: typer.Context, asked: dict[str, Any], *, by_plan: bool) -> None:
    """Refuse options that are missing, or that say what a plan says already."""
    for name, value in asked.items():
        option = "--bounds" if name == "further_bounds" else "--" + name.replace("_", "-")
        source = context.get_parameter_source(name)
        if by_plan and name in OF_THE_TABLE:
            continue
        if by_plan and source is not None and source.name == "COMMANDLINE":
            raise Refusal(f"{option} does not go with --plan, which says it already.")
        if name == "bounds" and asked["classes"] is not None:
            continue
        if not by_plan and name in NEEDED and value is None:
            raise Refusal(f"Missing option '{option}': give it, or a --plan.")
