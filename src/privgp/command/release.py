"""``privgp release``: spend the budget once and write what may be published. ``privgp update``: measure more
rows for a release, or its rows once more, and write a new one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privgp.command import options as o
from privgp.command.errors import Refusal, refuse_options
from privgp.command.io.files import ANY_TABLES, PLANS, RELEASES, TABLES, check_release_files
from privgp.command.io.screen import Step, progress

if TYPE_CHECKING:
    from privgp.command.io.request import Request
    from privgp.command.io.results import Results
    from privgp.command.io.spending import Measure
    from privgp.models.published import Published

# What a plan does not say.
OF_THE_TABLE = ("missing", "delimiter", "decimal_comma", "encoding", "date_format")
UNPLANNED = (*OF_THE_TABLE, "data", "output", "charge", "scheduler")
NEEDED = ("inputs", "bounds", "epsilon", "delta")
LABELS = "; labels need --classes instead of --bounds"

OUT_HELP = "The .privgp file to write; it contains the inputs unless records are protected."
PLAN_HELP = "The .plan file that privgp plan wrote. Only --output and the format of the table are given again."

UPDATE_OUT_HELP = (
    "The .privgp file to write. It takes the place of FILE, which may stay public, and contains the "
    "inputs unless records are protected."
)
EXPOSURE_HELP = "For a FILE of rates: the public column by which counts are divided."
SAME_ROWS_HELP = (
    "DATA holds rows that FILE was made from, not new people: spend a further --epsilon and --delta "
    "on them."
)
FURTHER_EPSILON_HELP = "With --same-rows: the further epsilon. New people get the epsilon of FILE."
FURTHER_DELTA_HELP = "With --same-rows: the further delta; 0 with Laplace noise."


def release(
    context: typer.Context,
    asked: Annotated[o.ReleaseOptions, o.Pick(inputs=None, bounds=None, epsilon=None, delta=None)],
    data: o.AnyData,
    out: Annotated[Path, o.destination("FILE", OUT_HELP)],
    files: o.ReleaseFiles,
    charge: o.Charge,
    output: o.OptionalOutputs = None,
    plan: Annotated[Path | None, o.plain(PLAN_HELP, metavar="FILE")] = None,
    holder: o.Holder = None,
    name: o.Name = None,
    units: o.Units = None,
    scheduler: o.Scheduler = None,
    json: o.Json = False,
) -> None:
    """Spend the budget once and write a file that may be published."""
    read = [(data, ANY_TABLES), (plan, PLANS), (holder, (".json",))]
    check_release_files(read, out, files)
    if files.certificate is None:
        refuse_options(context, ("holder",), "a release without --certificate")
    _check_complete(context, asked, by_plan=plan is not None)
    from privgp.command.io.request import PlannedRequest, Request, plan_warnings
    from privgp.command.io.results import Results, read_holder
    from privgp.command.io.spending import prepare_release

    given = {**vars(asked), "data": data, "output": output, "charge": charge}
    given["scheduler"] = scheduler
    if plan is None:
        request = Request(**given, about_labels=LABELS)
    else:
        request = PlannedRequest.of(plan, **{name: given[name] for name in UNPLANNED})
    request.outcome.check_output(output)
    request.check()
    if not request.outcome.has_column:
        name, units = name or "points", units or "per unit"
    results = Results(out, files, name, units, read_holder(holder))
    results.check_output_names(request)

    def warnings(model: Published) -> list[str]:
        return [*request.left_out, *plan_warnings(model.plan_)]

    _spend(request, results, prepare_release, "the measurement", warnings, as_json=json)
    charge.note(data)


def update(
    release: o.Release,
    data: o.Data,
    output: o.Outputs,
    out: Annotated[Path, o.destination("NEW", UPDATE_OUT_HELP)],
    files: o.ReleaseFiles,
    charge: o.Charge,
    form: o.TableForm,
    missing: o.Missing = "refuse",
    inputs: Annotated[str | None, o.input_names_option("release", "DATA")] = None,
    groups: Annotated[str | None, o.privacy(o.GROUPS_HELP, metavar="COLUMN")] = None,
    exposure: Annotated[str | None, o.model(EXPOSURE_HELP, metavar="COLUMN")] = None,
    same_rows: Annotated[bool, o.privacy(SAME_ROWS_HELP, "--same-rows")] = False,
    epsilon: Annotated[float | None, o.privacy(FURTHER_EPSILON_HELP)] = None,
    delta: Annotated[float | None, o.privacy(FURTHER_DELTA_HELP)] = None,
    json: o.Json = False,
) -> None:
    """Add new people to a release, or measure the same rows again with a further budget."""
    check_release_files([(release, RELEASES), (data, TABLES)], out, files)
    budget = _further(same_rows, epsilon, delta)
    from privgp.command.io.results import Results
    from privgp.command.io.spending import UpdateRequest, prepare_update

    request = UpdateRequest.of(
        release, inputs, budget, data=data, output=output, groups=groups, exposure=exposure,
        charge=charge, missing=missing, **vars(form),
    )  # fmt: skip
    request.check()
    told = request.left_out
    _spend(
        request,
        Results(out, files),
        prepare_update,
        "all measurements",
        lambda _: told,
        as_json=json,
    )
    if not same_rows:
        charge.note(data)


def _spend(
    request: Request,
    results: Results,
    prepare: Callable[[Any, Path, Step], Measure],
    learned: str,
    warnings: Callable[[Published], list[str]],
    *,
    as_json: bool,
) -> None:
    """Read, plan and rehearse; then spend, write and tell. ``learned``: what a model is learned from."""
    from privgp.command.io.accounts import charge_facts
    from privgp.command.io.spending import guard_budget, spent_sentence

    output = request.output or ""
    request.charge.open()
    with progress(2) as step:
        measure = prepare(request, results.release, step)
    with guard_budget(request.epsilon, request.delta) as saved:
        with progress(3) as step:
            step(f"Measuring with noise and learning from {learned}")
            model = measure()
            del measure  # it holds the outputs
            results.write(model, output, saved, step)
        facts, lines = charge_facts(model)
        told = warnings(model)
        lines.append(spent_sentence(model))
        results.tell(
            model.guarantee_, request, {**facts, "warnings": told}, *lines, as_json=as_json
        )


def _check_complete(context: typer.Context, asked: o.ReleaseOptions, *, by_plan: bool) -> None:
    """Refuse options that are missing, or that say what a plan says already."""
    o.check_density(context, asked)
    for name, value in vars(asked).items():
        option = "--bounds" if name == "further_bounds" else "--" + name.replace("_", "-")
        source = context.get_parameter_source(name)
        if by_plan and name in OF_THE_TABLE:
            continue
        if by_plan and source is not None and source.name == "COMMANDLINE":
            raise Refusal(f"{option} does not go with --plan, which has it already.")
        if name == "bounds" and (asked.density or asked.classes):
            continue
        if not by_plan and name in NEEDED and value is None:
            raise Refusal(f"Missing option '{option}': give it, or a --plan.")


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
