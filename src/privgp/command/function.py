"""``privgp function``: one private function, kept by the curator and asked at any points."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import polars as pl

from privgp.command.errors import Failure, Refusal, listed
from privgp.command.function_request import FunctionRequest
from privgp.command.io.columns import (
    asked_inputs,
    in_the_middle,
    input_columns,
    names_of_inputs,
    output_column,
    private_columns,
)
from privgp.command.io.destinations import PICTURES, STATES, TABLES, check_apart, check_destination
from privgp.command.io.kernel_text import write_kernel
from privgp.command.io.request import public_computation
from privgp.command.io.screen import progress, say, say_if_simulated, say_json
from privgp.command.io.states import (
    answers,
    asking,
    blocks_of,
    facts,
    open_state,
    tell_created,
    tell_state,
    writing,
)
from privgp.command.io.tables import check_lines, load, open_table, write_table
from privgp.models.function.estimator import PrivateFunction


def run_create(request: FunctionRequest, state: Path, *, as_json: bool) -> None:
    """Take the data into a new state. Spends nothing yet."""
    request.check()
    base = request.base
    check_destination(state, STATES, force=None)
    check_apart([base.data], [state])
    with progress(3) as step:
        step("Reading the table")
        source = open_table(base.data)
        frame = load(source, [*base.public_names, str(base.output)])
        check_lines(source, frame.height)
        y = output_column(frame, str(base.output), source)
        step("Computing the sensitivity")
        function = request.function()
        if request.protect == "records":
            # private inputs are read like outputs: a sentence that names no row
            X = private_columns(frame, base.input_names, source)
            rehearsed = in_the_middle(function.domain, X)
        else:
            X = rehearsed = input_columns(frame, base.input_names, source)
        del frame
        middle = np.full(X.height, 0.5 * base.bounds[0] + 0.5 * base.bounds[1])
        with public_computation():
            function.fit(rehearsed, middle)  # nobody's values: what it refuses may be told
        step("Writing the state")
        with writing(state):
            function.fit(X, y, state=state)
        del X, y
    if not as_json:
        tell_created(function, state, "the records" if request.domain else "sums of outputs")
    tell_state(function, state, _facts(function), _description(function), as_json=as_json)


def run_ask(
    state: Path,
    data: Path,
    out: Path,
    *,
    inputs: str | None,
    plot: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Write the inputs with a column for the function, which may be published."""
    check_destination(out, TABLES, force=force)
    check_destination(plot, PICTURES, force=force)
    check_apart([state, data], [out, plot])
    function = open_state(state, PrivateFunction)
    names = asked_inputs(function, state, inputs)
    source = open_table(data)
    X = input_columns(load(source, names), names, source)
    points = X.to_numpy().astype(np.float64)
    label = "value" if "value" not in names else "released_value"
    with asking(state, "function"), progress(blocks_of(points) + 2) as step:
        values = answers(function, points, step)
        step("Writing")
        simulation = function.guarantee_.is_simulation
        columns = write_table(X.with_columns(pl.Series(label, values)), out, simulation=simulation)
        if plot is not None:
            step("Drawing")
            _draw(function, plot)
    if as_json:
        drawn = {} if plot is None else {"plot": str(plot)}
        told = {"answers": str(out), "rows": X.height, "columns": columns, **drawn}
        say_json(told, simulation=simulation)
        return
    say_if_simulated(function.guarantee_)
    say(
        f"Answered {X.height} rows into {out}: {label}, std of its noise {function.noise_std_:.4g}."
    )
    if plot is not None:
        say(f"Drawn in {plot}.")


def run_inspect_function(state: Path, *, as_json: bool) -> None:
    """Print what a state promises, and nothing that is private."""
    function = open_state(state, PrivateFunction)
    tell_state(function, state, _facts(function), _description(function), as_json=as_json)


def _draw(function: PrivateFunction, plot: Path) -> None:
    """A picture, for which the function is asked at a grid's points too."""
    from privgp.release.figures import save_figure

    try:
        save_figure(function.plot(), plot)
    except ValueError as problem:
        raise Refusal(f"The answers are written, but not drawn: {problem}") from None
    except OSError:
        raise Failure(f"'{plot}' could not be written.") from None


def _facts(function: PrivateFunction) -> dict[str, object]:
    return {"noise_std": function.noise_std_, **facts(function)}


def _description(function: PrivateFunction) -> list[str]:
    names = names_of_inputs(function)
    left = function.points_left_
    more = "any number" if left == math.inf else f"{left:,.0f}"
    return [
        function.guarantee_.describe(),
        "",
        f"Inputs: {function.n_features_in_ if names is None else listed(names)}.",
        f"Kernel: {write_kernel(function.kernel, figures=4)}; "
        f"sensitivity {function.sensitivity_:.4g} ({function.sensitivity}).",
        f"Std of the noise at a point: {function.noise_std_:.4g}.",
        f"Points answered so far: {function.points_answered_:,}; more may be asked: {more}.",
        "The budget counts as spent once anything was answered.",
    ]
