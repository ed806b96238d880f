"""``privgp function``: one private function, kept by the custodian and asked at any points."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from privgp.command import options as o
from privgp.command.errors import Refusal, plural
from privgp.command.io.files import NEW_TABLES, PICTURES, STATES, TABLES, check_files, open_own
from privgp.command.io.screen import progress, tell, warn

if TYPE_CHECKING:
    from privgp.models.function.estimator import PrivateFunction

INDUCING_HELP = "The number of inducing inputs. The function then answers any number of points."
SENSITIVITY_HELP = "Exact, or a bound that needs more noise. For records: exact or paper."
DOMAIN_HELP = f"With --protect records. {o.DOMAIN_HELP}"
DOMINANCE_HELP = "With --sensitivity varah: the declared dominance of the kernel matrix."


def create(
    asked: Annotated[o.ReleaseOptions, o.Pick("inputs bounds epsilon delta noise_variance")],
    data: o.Data,
    output: o.Output,
    kernel: o.Kernel,
    out: o.NewState,
    charge: o.Charge,
    sensitivity: Annotated[
        Literal["exact", "infinity", "nonnegative", "varah", "paper"], o.model(SENSITIVITY_HELP)
    ] = "exact",
    inducing: Annotated[int | None, o.model(INDUCING_HELP, min=1, max=10_000)] = None,
    protect: o.Protect = "outputs",
    domain: Annotated[
        list[str] | None, o.privacy(DOMAIN_HELP, "--domain", "--x-bounds", metavar="RANGES")
    ] = None,
    dominance: Annotated[float | None, o.model(DOMINANCE_HELP)] = None,
    json: o.Json = False,
) -> None:
    """Store the function of the data in a new private state file. The first answer spends the budget."""
    check_files([(data, TABLES)], [(out, STATES)], force=None)
    from sklearn.base import clone

    from privgp.command.io.axes import read_ranges
    from privgp.command.io.kernel_text import read_kernel
    from privgp.command.io.request import Request, public_computation
    from privgp.command.io.states import guard_state
    from privgp.models.function.estimator import PrivateFunction
    from privgp.models.rows.tables import example_records
    from privgp.tables.cells import FILL_IN

    given = {**vars(asked), "mechanism": "gaussian"}
    request = Request(data=data, output=output, about_missing=FILL_IN, **given)
    request.check()
    if (protect == "records") != bool(domain):
        raise Refusal("--protect records and --domain go together: give both or neither.")
    account = charge.account
    function = PrivateFunction(
        read_kernel(kernel), request.noise_variance, y_bounds=request.bounds,
        epsilon=request.epsilon, delta=request.delta, sensitivity=sensitivity,
        dominance=dominance, inducing=inducing, protect=protect, random_state=charge.seed,
        domain=read_ranges(domain, request.input_names, "--domain") if domain else None,
    )  # fmt: skip
    with progress(3) as step:
        step("Reading the table")
        X, _, y = replace(request, protect=protect).all_columns()
        step("Computing the sensitivity")
        with public_computation():  # nobody's values: what they are refused for may be told
            clone(function).set_params(random_state=0).fit(
                *example_records(X, function.domain, request.bounds)
            )
        step("Writing the state")
        with guard_state(out):
            function.set_params(ledger=account).fit(X, y, state=out)
        del X, y
    _tell(function, out, "the records" if domain else "sums of outputs", as_json=json)
    low, high = request.bounds
    if function.noise_std_ > high - low:
        warn(
            [
                f"the std of the noise, {function.noise_std_:.4g}, is more than the width of the bounds, "
                f"{high - low:.4g}: answers will be little but noise. Compare privgp release."
            ]
        )
    charge.note(data)


def ask(
    state: o.State,
    data: o.NewData,
    out: o.Answers,
    inputs: Annotated[str | None, o.input_names_option("state")] = None,
    plot: o.Plot = None,
    force: o.Force = False,
    json: o.Json = False,
) -> None:
    """Write the function at the rows of a table, in a new column value."""
    check_files(
        [(state, STATES), (data, TABLES)], [(out, NEW_TABLES), (plot, PICTURES)], force=force
    )
    from polars import Series

    from privgp.command.io.columns import question_rows
    from privgp.command.io.results import picture_lines, write_picture, write_table
    from privgp.command.io.states import answers, guard_answers
    from privgp.models.function.estimator import PrivateFunction

    function = open_own(state, PrivateFunction.load_state)
    X = question_rows(function, state, data, inputs)
    points = X.to_numpy().astype(float)
    label = "value" if "value" not in X.columns else "released_value"
    with guard_answers(state, "function", points, more=2) as step:
        table = X.with_columns(Series(label, answers(function, points, step)))
        step("Writing")
        columns = write_table(table, out, simulation=function.guarantee_.is_simulation)
        before = function.points_answered_
        if plot is not None:
            step("Drawing, which asks more points")
            try:
                figure = function.plot()  # asks at the points of a grid too
            except ValueError as problem:
                raise Refusal(f"The answers are written, but not drawn: {problem}") from None
            write_picture(figure, plot)
    noise = f"std of its noise {function.noise_std_:.4g}"
    answered = f"Answered {plural(X.height, 'row')} into {out}: {label}, {noise}."
    more = function.points_answered_ - before
    facts = {"answers": out, "rows": X.height, "columns": columns, "plot": plot}
    facts |= {"points_asked_to_draw": more}
    asked = [f"The picture asked {plural(more, 'further point')} of the function."] if more else []
    tell(facts, [answered, *picture_lines(plot), *asked], function.guarantee_, as_json=json)


def inspect(state: o.State, json: o.Json = False) -> None:
    """Show what a function guarantees and how many points it has answered. Shows nothing private."""
    check_files([(state, STATES)], [], force=None)
    from privgp.models.function.estimator import PrivateFunction

    _tell(open_own(state, PrivateFunction.load_state), state, as_json=json)


def _tell(function: PrivateFunction, state: Path, holds: str = "", *, as_json: bool) -> None:
    from privgp.command.io.states import tell_state

    own = [
        f"sensitivity {function.sensitivity_:.4g} ({function.sensitivity}).",
        f"Std of the noise at a point: {function.noise_std_:.4g}.",
    ]
    tell_state(function, state, own, ["noise_std_"], holds, as_json=as_json)
