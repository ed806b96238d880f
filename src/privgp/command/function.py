"""``privgp function``: one private function, kept by the curator and asked at any points."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from privgp.command.columns import input_columns, output_column, split_names
from privgp.command.destinations import PICTURES, TABLES, check_apart, check_destination
from privgp.command.errors import Failure, Refusal, listed
from privgp.command.kernel_text import read_kernel, write_kernel
from privgp.command.paths_request import ranges
from privgp.command.release import SIMULATED
from privgp.command.request import Request, public_computation
from privgp.command.screen import progress, say, say_json
from privgp.command.tables import check_lines, check_readable, load, open_table, write_table
from privgp.models.function import PrivateFunction

STATES = (".private-state",)
BLOCK = 512
KEPT = "every answer that was given is kept in '{}', so ask again for the same function."


@dataclass(frozen=True)
class FunctionRequest:
    """The arguments of ``privgp function create`` as given."""

    base: Request
    kernel: str
    sensitivity: str
    inducing: int | None
    protect: str = "outputs"
    domain: str | None = None
    dominance: float | None = None

    def check(self) -> None:
        self.base.check()
        if self.base.output is None:
            raise Refusal("--output must name the private column.")
        if (self.protect == "records") != (self.domain is not None):
            raise Refusal("--protect records and --domain go together: give both or neither.")

    def function(self) -> PrivateFunction:
        """The function that was asked for; reads the kernel."""
        return PrivateFunction(
            read_kernel(self.kernel),
            self.base.noise_variance,
            y_bounds=self.base.bounds,
            epsilon=self.base.epsilon,
            delta=self.base.delta,
            sensitivity=self.sensitivity,
            dominance=self.dominance,
            inducing=self.inducing,
            protect=self.protect,
            domain=None if self.domain is None else ranges(self.domain, self.base.input_names),
            random_state=self.base.seed,
        )


def run_create(request: FunctionRequest, state: Path, *, as_json: bool) -> None:
    """Take the data into a new state. Spends nothing yet."""
    request.check()
    base = request.base
    check_destination(state, STATES, force=False)
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
            X = pl.DataFrame({n: output_column(frame, n, source) for n in base.input_names})
            rehearsed = _middle_of(function.domain, X)
        else:
            X = rehearsed = input_columns(frame, base.input_names, source)
        del frame
        middle = np.full(X.height, 0.5 * base.bounds[0] + 0.5 * base.bounds[1])
        with public_computation():
            function.fit(rehearsed, middle)  # nobody's values: what it refuses may be told
        step("Writing the state")
        try:
            function.fit(X, y, state=state)
        except Exception:
            raise Failure(f"'{state}' could not be written; nothing was spent.") from None
        del X, y
    if as_json:
        say_json({"state": str(state), **_facts(function)})
        return
    if function.guarantee_.is_simulation:
        say(SIMULATED)
    say(f"Created {state}.")
    say(
        f"PRIVATE: the file holds {'the records' if request.domain else 'sums of outputs'}. Keep it, "
        "never publish it, and never go back to an older copy."
    )
    say("")
    for line in _description(function):
        say(line)


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
    function = open_state(state)
    names = [str(name) for name in getattr(function, "feature_names_in_", ())]
    if inputs is not None:
        names = split_names(inputs, "--inputs")
    elif not names:
        raise Refusal(f"'{state}' does not name its inputs: give them with --inputs.")
    if len(names) != function.n_features_in_:
        raise Refusal(
            f"'{state}' has {function.n_features_in_} inputs, but --inputs names {len(names)}."
        )
    source = open_table(data)
    X = input_columns(load(source, names), names, source)
    points = X.to_numpy().astype(np.float64)
    label = "value" if "value" not in names else "released_value"
    with _asking(state), progress(-(-len(points) // BLOCK) + 2) as step:
        parts = []
        for start in range(0, len(points), BLOCK):
            step(f"Drawing from point {start + 1} of {len(points)}")
            parts.append(_released(function, points[start : start + BLOCK]))
        step("Writing")
        write_table(X.with_columns(pl.Series(label, np.concatenate(parts))), out)
        if plot is not None:
            step("Drawing")
            _draw(function, plot)
    if as_json:
        drawn = {} if plot is None else {"plot": str(plot)}
        say_json({"answers": str(out), "rows": X.height, "columns": [*names, label], **drawn})
        return
    if function.guarantee_.is_simulation:
        say(SIMULATED)
    say(
        f"Answered {X.height} rows into {out}: {label}, std of its noise {function.noise_std_:.4g}."
    )
    if plot is not None:
        say(f"Drawn in {plot}.")


def run_inspect_function(state: Path, *, as_json: bool) -> None:
    """Print what a state promises, and nothing that is private."""
    function = open_state(state)
    if as_json:
        say_json({"state": str(state), **_facts(function)})
        return
    for line in _description(function):
        say(line)


def open_state(path: Path) -> PrivateFunction:
    """The function of a .private-state file."""
    if path.suffix not in STATES:
        raise Refusal(f"'{path}' must end in .private-state.")
    check_readable(path)
    try:
        return PrivateFunction.load_state(path)
    except OSError:
        raise Refusal(f"The file '{path}' cannot be read.") from None
    except ValueError as problem:
        raise Refusal(str(problem)) from None


def _middle_of(domain: Sequence[tuple[float, float]], X: pl.DataFrame) -> pl.DataFrame:
    """As many records as there are, all in the middle of the domain."""
    columns = zip(X.columns, domain, strict=True)
    return pl.DataFrame(
        {n: np.full(X.height, 0.5 * low + 0.5 * high) for n, (low, high) in columns}
    )


def _released(function: PrivateFunction, points: np.ndarray) -> np.ndarray:
    names = getattr(function, "feature_names_in_", None)
    asked = points if names is None else pl.DataFrame(points, schema=list(names), orient="row")
    try:
        with np.errstate(all="ignore"):
            return function.release(asked)
    except ValueError as problem:
        sentence = str(problem)
        raise Refusal(sentence[:1].upper() + sentence[1:]) from None


def _draw(function: PrivateFunction, plot: Path) -> None:
    """A picture, for which the function is asked at a grid's points too."""
    from privgp.release.plots import save_figure

    try:
        save_figure(function.plot(), plot)
    except ValueError as problem:
        raise Refusal(f"The answers are written, but not drawn: {problem}") from None
    except OSError:
        raise Failure(f"'{plot}' could not be written; the answers are.") from None


@contextmanager
def _asking(state: Path) -> Iterator[None]:
    try:
        yield
    except (Refusal, Failure):
        raise
    except (KeyboardInterrupt, Exception) as problem:
        stopped = "Interrupted" if isinstance(problem, KeyboardInterrupt) else "Failed"
        raise Failure(f"{stopped}; {KEPT.format(state)}") from None


def _facts(function: PrivateFunction) -> dict[str, object]:
    return {
        "sensitivity": function.sensitivity_,
        "noise_std": function.noise_std_,
        "points_answered": function.points_answered_,
        "points_left": function.points_left_,
        "guarantee": json.loads(function.guarantee_.to_json()),
        "simulation": function.guarantee_.is_simulation,
    }


def _description(function: PrivateFunction) -> list[str]:
    names = getattr(function, "feature_names_in_", None)
    left = function.points_left_
    more = "any number" if left == math.inf else f"{left:,.0f}"
    return [
        function.guarantee_.describe(),
        "",
        f"Inputs: {function.n_features_in_ if names is None else listed(list(names))}.",
        f"Kernel: {write_kernel(function.kernel, figures=4)}; "
        f"sensitivity {function.sensitivity_:.4g} ({function.sensitivity}).",
        f"Std of the noise at a point: {function.noise_std_:.4g}.",
        f"Points answered so far: {function.points_answered_:,}; more may be asked: {more}.",
        "The budget counts as spent once anything was answered.",
    ]
