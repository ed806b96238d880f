"""``privgp plan``: what a budget buys, before it is spent."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from privgp.command import options as o
from privgp.command.errors import Refusal
from privgp.command.io.files import ANY_TABLES, PICTURES, PLANS, check_files, whole_file
from privgp.command.io.screen import progress, table, tell

if TYPE_CHECKING:
    from rich.table import Table

    from privgp.command.io.documents import Errors
    from privgp.command.io.request import Request
    from privgp.plan.plan import Plan

UNNEEDED = "a plan needs no output."
LOOKED = "the plan read only which rows have an output, and this counts as public."
DECLARED = "The file contains what was declared, such as bounds and targets, and no record."
OUTPUT_TOO = (
    "release --plan also leaves out rows without an output and will then refuse this plan: give --output "
    "here, so that the plan leaves them out."
)
EVERY_EPSILON = "To use another epsilon, plan again with it."
OUT_HELP = (
    "Also write the plan, to be approved and carried out by release --plan: a .plan file. It "
    "contains the inputs unless records are protected."
)
FOR_ERROR_HELP = "Instead of --epsilon: find the least epsilon with this expected error."
OUTPUT_HELP = (
    "The private column or columns. They are not read and may be absent. With --missing drop, rows "
    "without an output are left out."
)


def plan(
    context: typer.Context,
    asked: Annotated[o.ReleaseOptions, o.Pick(bounds=None, epsilon=None)],
    data: o.AnyData,
    output: Annotated[str | None, o.plain(OUTPUT_HELP, metavar="COLUMN")] = None,
    for_error: Annotated[float | None, o.privacy(FOR_ERROR_HELP, metavar="ERROR")] = None,
    out: Annotated[Path | None, o.destination("FILE", OUT_HELP)] = None,
    plot: o.Plot = None,
    scheduler: o.Scheduler = None,
    force: o.Force = False,
    json: o.Json = False,
) -> None:
    """Show what accuracy a budget buys. Reads the public columns only and spends nothing."""
    check_files([(data, ANY_TABLES)], [(out, PLANS), (plot, PICTURES)], force=force)
    from numpy import asarray

    from privgp.command.io.documents import EPSILONS, errors_by_epsilon
    from privgp.command.io.request import Request, make_plan, plan_warnings, public_computation
    from privgp.command.io.results import contains, picture_lines, write_picture
    from privgp.plan.accuracy import check_error, least_epsilon
    from privgp.plan.plan import save_plan

    if (asked.epsilon is None) == (for_error is None):
        raise Refusal("Give either --epsilon or --for-error.")
    if for_error is not None:
        asked = replace(asked, epsilon=1.0)  # until the least is found
        with public_computation(error="--for-error"):
            check_error(for_error)
    o.check_density(context, asked)
    request = Request(data=data, output=output, scheduler=scheduler, **vars(asked))
    request.check()
    if for_error is not None and request.outcome.is_several:
        raise Refusal("--for-error is for one output: give --epsilon.")
    with progress(None if for_error is not None else 4 + len(EPSILONS)) as step:
        step("Counting the records" if request.inputs_are_private else "Reading the public columns")
        (rows, people), exposure = request.public_rows(), request.exposures()
        if for_error is not None:

            def plan_at(epsilon: float) -> Plan:
                step(f"Planning for epsilon = {epsilon:.4g}")
                return make_plan(replace(request, epsilon=epsilon).model(), rows, people, exposure)

            with public_computation():
                request = replace(request, epsilon=least_epsilon(plan_at, for_error))
        step("Planning")
        made = request.with_column_names(make_plan(request.model(), rows, people, exposure))
        with public_computation():
            errors = errors_by_epsilon(made, step)
            text = made.describe()
            if request.missing == "drop" and request.output_names:
                text = text.replace(UNNEEDED, LOOKED)
            # What the text leaves out because it would take long, JSON leaves out too.
            gap = made.gap if made.is_quick else None
            error_range = asarray(made.error_range()).tolist()
        step("Writing and drawing")
        if out is not None:
            with public_computation(), whole_file(out) as part:
                save_plan(made, part, overwrite=True)
        if plot is not None:
            with public_computation():
                write_picture(made.plot(), plot)
    facts = {**_facts(made, request, errors), "gap": gap, "description": text}
    facts |= {"error_range": error_range, "for_error": for_error}
    warnings = [*request.left_out, *plan_warnings(made)]
    if request.missing == "drop" and not (request.output_names or asked.density):
        warnings.append(OUTPUT_TOO)
    facts |= {"hash": made.hash, "plan": out, "plot": plot, "warnings": warnings}
    held = DECLARED if request.inputs_are_private else contains(request)
    written = [] if out is None else [f"Planned in {out}, hash {made.hash}.", held]
    lines: list[str | Table] = [
        _error_table(made, errors),
        EVERY_EPSILON,
        text,
        *written,
        *picture_lines(plot),
    ]
    tell(facts, lines, None, as_json=json)


def _error_table(made: Plan, errors: Errors) -> Table:
    import numpy as np

    widths, share = np.ptp(np.atleast_2d(made.y_bounds), axis=1), "of the bounds' width"
    if made.unit is not None:
        widths, share = np.ones(1), "of the rate"
    if made.made_for is not None and made.made_for.parameters.labels():
        share = "as a probability"
    title = f"What a budget buys (delta = {made.delta:g} offered)"
    each = [""] if len(widths) == 1 else [f" of {name}" for name in made.names]
    headings = [text for name in each for text in (f"expected error{name}", share)]
    rows = [
        (
            f"{e:g}",
            *(
                text
                for pair in zip(np.atleast_1d(v), widths, strict=True)
                for text in _cells(*pair)
            ),
        )
        for e, v in errors.items()
    ]
    return table(title, ("epsilon", *headings, "<- this plan"), rows, [*errors].index(made.epsilon))


def _cells(error: float, width: float) -> tuple[str, str]:
    return f"{error:.4g}", f"{100 * error / width:.3g}%"


def _facts(made: Plan, request: Request, errors: Errors) -> dict[str, object]:
    from privgp.plan.part import table_rows

    return {
        "epsilon": made.epsilon,
        "delta": made.promised_delta,
        "delta_offered": made.delta,
        "bounds": made.y_bounds,
        "classes": request.outcome.classes,
        "rows": table_rows(made.parts[0]),
        "distinct_inputs": None if request.inputs_are_private else len(made.inputs),
        "measured": made.strategy.size,
        "objective": made.objective,
        "reconstruct": made.reconstruct,
        "expected_error": errors[made.epsilon],
        "expected_errors": [{"epsilon": e, "expected_error": v} for e, v in errors.items()],
        "planned_again": made.can_plan_again,
        "spent": False,
    }
