"""``privgp paths``: sample paths of a posterior, kept by the curator and asked at any points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import polars as pl

from privgp.command.errors import Refusal, listed
from privgp.command.io.columns import names_of_inputs, output_column, private_columns, split_names
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
    table_of,
    tell_created,
    tell_state,
    told,
    writing,
)
from privgp.command.io.tables import check_lines, load, open_table, write_table
from privgp.command.io.targets import read_targets
from privgp.command.paths_request import PathsRequest
from privgp.models.paths import PosteriorPaths
from privgp.release.excursions import check_vote
from privgp.release.figures import save_figure
from privgp.types import Array


def run_calibrate(
    request: PathsRequest, rows: int, epsilon: float, by: str, *, as_json: bool
) -> None:
    """Print the least noise for a budget."""
    with public_computation():
        made = request.paths(None, calibrated=True)
        found = made.calibrate(epsilon, rows, by=by)
    if as_json:
        say_json(asdict(found), simulation=False)
        return
    say(
        f"Noise variance: {found.noise_variance:.6g} (regularisation r = {found.regularisation:.4g})."
    )
    say(f"Extra noise: {found.extra_noise:.6g}.")
    say(
        f"They promise epsilon = {found.epsilon:.6g} at delta = {request.delta:g} for {rows} records."
    )


def run_create(
    request: PathsRequest, data: Path, inputs: str, output: str, epsilon: float | None,
    state: Path, *, as_json: bool,
) -> None:  # fmt: skip
    """Take the records into a new state. Spends nothing yet."""
    names = split_names(inputs, "--inputs")
    if not output or output in names:
        raise Refusal("--output must name a column that is not among the --inputs.")
    if epsilon is not None and request.noise_variance is not None:
        raise Refusal("--epsilon chooses the noise variance: leave --noise-variance out.")
    check_destination(state, STATES, force=None)
    check_apart([data], [state])
    with progress(3) as step:
        step("Reading the table")
        source = open_table(data)
        frame = load(source, [*names, output])
        check_lines(source, frame.height)
        X = private_columns(frame, names, source)
        y = output_column(frame, output, source)
        rows = frame.height
        del frame
        step("Computing the promise")
        with public_computation():
            if epsilon is None:
                made = request.paths(names, calibrated=False)
            else:
                made = request.calibrated(names, epsilon, rows, "noise_variance")
            made.guarantee_for(rows)
        step("Writing the state")
        with writing(state):
            made.fit(X, y, state=state)
        del X, y
    if not as_json:
        tell_created(made, state, "all records")
    tell_state(made, state, _facts(made), _description(made), as_json=as_json)


def run_release(state: Path, points: str, out: Path, *, force: bool, as_json: bool) -> None:
    """Write the inputs with one column per path, which may be published."""
    check_destination(out, TABLES, force=force)
    made, names, where = _opened(state, points, [out])
    labels = [f"path_{k + 1}" for k in range(made.n_paths)]
    with asking(state, "paths"), progress(blocks_of(where) + 1) as step:
        values = answers(made, where, step)
        step("Writing")
        frame = pl.DataFrame(dict(zip([*names, *labels], [*where.T, *values], strict=True)))
        written = write_table(frame, out, simulation=made.guarantee_.is_simulation)
    if as_json:
        told_of = {"answers": str(out), "rows": len(where), "columns": written}
        say_json(told_of, simulation=made.guarantee_.is_simulation)
        return
    say_if_simulated(made.guarantee_)
    say(f"Wrote {made.n_paths} path{'s' * (made.n_paths > 1)} at {len(where)} points into {out}.")


def run_excursion(
    state: Path, points: str, threshold: float, out: Path, *, vote: float,
    smoothing: float | None, plot: Path | None, force: bool, as_json: bool,
) -> None:  # fmt: skip
    """Write the inputs with the share of the paths above a threshold; draw the set."""
    check_destination(out, TABLES, force=force)
    check_destination(plot, PICTURES, force=force)
    made, names, where = _opened(state, points, [out, plot])
    if plot is not None and len(names) > 2:
        raise Refusal("--plot draws one or two inputs.")
    with told():
        check_vote(threshold, vote, smoothing)
    with asking(state, "paths"), progress(blocks_of(where) + 2) as step:
        answers(made, where, step)
        step("Voting")
        with told():
            found = made.excursion(table_of(made, where), threshold, vote=vote, smoothing=smoothing)
        step("Writing")
        columns = [*where.T, found.share, found.inside]
        frame = pl.DataFrame(dict(zip([*names, "share", "inside"], columns, strict=True)))
        written = write_table(frame, out, simulation=made.guarantee_.is_simulation)
        if plot is not None:
            save_figure(found.plot(), plot)
    if as_json:
        inside = int(found.inside.sum())
        told_of = {"answers": str(out), "rows": len(where), "inside": inside, "columns": written}
        say_json(told_of, simulation=made.guarantee_.is_simulation)
        return
    say_if_simulated(made.guarantee_)
    say(f"{int(found.inside.sum())} of {len(where)} points lie in the set, written into {out}.")


def run_inspect_paths(state: Path, *, as_json: bool) -> None:
    """Print what a state promises, and nothing that is private."""
    made = open_state(state, PosteriorPaths)
    tell_state(made, state, _facts(made), _description(made), as_json=as_json)


def _opened(
    state: Path, points: str, destinations: Sequence[Path | None]
) -> tuple[PosteriorPaths, list[str], Array]:
    """The paths, the names of their inputs, and where they are asked."""
    table = Path(points) if Path(points).suffix.lower() in TABLES else None
    check_apart([state, table], destinations)
    made = open_state(state, PosteriorPaths)
    names = _names(made)
    try:
        return made, names, read_targets(points, names)
    except Refusal as problem:
        raise Refusal(str(problem).replace("--targets", "FILE|GRID")) from None


def _names(made: PosteriorPaths) -> list[str]:
    """The inputs' names; those of an array have none and are called x1, x2, ..."""
    return names_of_inputs(made) or [f"x{k + 1}" for k in range(made.n_features_in_)]


def _facts(made: PosteriorPaths) -> dict[str, object]:
    return {
        "noise_variance": made.noise_variance,
        "extra_noise": made.extra_noise,
        "n_paths": made.n_paths,
        **facts(made),
    }


def _description(made: PosteriorPaths) -> list[str]:
    return [
        made.guarantee_.describe(),
        "",
        f"Inputs: {listed(_names(made))}.",
        f"Kernel: {write_kernel(made.kernel, figures=4)}; noise variance {made.noise_variance}; "
        f"extra noise {made.extra_noise:g}.",
        f"Points answered so far: {made.points_answered_:,}; more may be asked: "
        f"{made.points_left_:,}.",
        "The budget counts as spent once anything was answered.",
    ]
