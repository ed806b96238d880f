"""``privgp plan``: what a budget buys, before it is spent."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import polars as pl
from rich.table import Table

from privgp.command.errors import Failure
from privgp.command.io.destinations import PICTURES, check_apart, check_destination
from privgp.command.io.request import Request, make_plan, public_computation
from privgp.command.io.screen import progress, say, say_json, show
from privgp.command.io.streams import FileRows, file_rows
from privgp.command.io.tables import count_rows, load, open_table
from privgp.plan.bins.records import RecordsPlan
from privgp.plan.preview import Plan
from privgp.plan.streamed.columns import StreamedSums

EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)


def run_plan(request: Request, *, plot: Path | None, force: bool, as_json: bool) -> None:
    """Plan and print. Loads the inputs and the identifiers; the output column is never read.

    Where inputs are private nothing is loaded: rows are counted.
    """
    private = request.is_private_throughout
    request.check()
    check_destination(plot, PICTURES, force=force)
    check_apart([request.data], [plot])
    with progress(4) as step:
        step("Counting the records" if private else "Reading the public columns")
        source = open_table(request.data)
        X: pl.DataFrame | FileRows | int
        people: Any = None
        if private:
            X = count_rows(source, request.input_names)
        elif request.inducing is not None:
            X = file_rows(source, request.input_names)
        else:
            X, people = request.columns(load(source, request.public_names), source)
        model = request.model()
        step("Planning")
        plan = make_plan(model, X, people)
        step("Computing what other budgets buy")
        with public_computation():
            errors, text = errors_by_epsilon(plan), plan.describe()
            # What the text leaves out because it would take long, JSON leaves out too.
            gap = plan.gap if plan.is_quick else None
            gap = gap if gap is not None and math.isfinite(gap) else None
        step("Drawing")
        if plot is not None:
            draw_plan(plan, plot)
    if as_json:
        told = {**summary(plan, errors), "gap": gap, "description": text, "plot": _named(plot)}
        say_json(told, simulation=False)
        return
    show(error_table(plan, errors))
    say(text)
    if plot is not None:
        say(f"Drawn in {plot}.")


def errors_by_epsilon(plan: Plan | RecordsPlan) -> dict[float, float]:
    """The expected error at several budgets, the planned one among them."""
    errors = {}
    for epsilon in sorted({*EPSILONS, plan.epsilon}):
        try:
            errors[epsilon] = plan.expected_error(epsilon)
        except ValueError:  # no noise can be calibrated there
            errors[epsilon] = float("nan")
    errors[plan.epsilon] = plan.expected_error()
    return errors


def error_table(plan: Plan | RecordsPlan, errors: dict[float, float]) -> Table:
    width = plan.y_bounds[1] - plan.y_bounds[0]
    title = f"What a budget buys (delta = {plan.promised_delta:g})"
    table = Table(title=title, title_justify="left")
    table.add_column("epsilon", justify="right")
    table.add_column("expected error", justify="right")
    table.add_column("of the bounds' width", justify="right")
    table.add_column("")
    for epsilon, error in errors.items():
        chosen = epsilon == plan.epsilon
        table.add_row(
            f"{epsilon:g}",
            f"{error:.4g}",
            f"{100 * error / width:.3g}%",
            "<- this plan" if chosen else "",
            style="bold" if chosen else None,
        )
    return table


def draw_plan(plan: Plan | RecordsPlan, path: Path) -> None:
    from privgp.release.figures import save_figure  # slow to import

    try:
        with public_computation():
            save_figure(plan.plot(), path)
    except OSError:
        raise Failure(f"'{path}' could not be written.") from None


def summary(plan: Plan | RecordsPlan, errors: dict[float, float]) -> dict[str, Any]:
    streamed = isinstance(plan.strategy, StreamedSums)
    return {
        "epsilon": plan.epsilon,
        "delta": plan.promised_delta,
        "delta_offered": plan.delta,
        "bounds": list(plan.y_bounds),
        "rows": plan.rows,
        **{
            "inducing" if streamed else "distinct_inputs": None
            if isinstance(plan, RecordsPlan)
            else len(plan.inputs)
        },
        "measured": plan.strategy.size,
        "objective": plan.objective,
        "reconstruct": plan.reconstruct,
        "expected_error": errors[plan.epsilon],
        "expected_errors": [{"epsilon": e, "expected_error": v} for e, v in errors.items()],
        "spent": False,
    }


def _named(path: Path | None) -> str | None:
    return None if path is None else str(path)
