"""``privgp paths``: sample paths of a posterior, kept by the curator and asked at any points."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import numpy as np
import polars as pl

from privgp.command.columns import output_column, split_names
from privgp.command.destinations import PICTURES, TABLES, check_apart, check_destination
from privgp.command.errors import Failure, Refusal, listed
from privgp.command.function import STATES
from privgp.command.kernel_text import write_kernel
from privgp.command.paths_request import PathsRequest
from privgp.command.release import SIMULATED
from privgp.command.request import public_computation
from privgp.command.screen import progress, say, say_json
from privgp.command.tables import check_lines, check_readable, load, open_table, write_table
from privgp.command.targets import read_targets
from privgp.models.paths import PosteriorPaths
from privgp.release.excursions import Excursion
from privgp.release.plots import save_figure
from privgp.types import Array

BLOCK = 512
KEPT = "every answer that was given is kept in '{}', so ask again for the same paths."


def run_calibrate(
    request: PathsRequest, rows: int, epsilon: float, by: str, *, as_json: bool
) -> None:
    """Print the least noise for a budget."""
    with public_computation():
        made = request.paths(None, calibrated=True)
        found = made.calibrate(epsilon, rows, by=by)
    if as_json:
        say_json(asdict(found))
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
    check_destination(state, STATES, force=False)
    check_apart([data], [state])
    with progress(3) as step:
        step("Reading the table")
        source = open_table(data)
        frame = load(source, [*names, output])
        check_lines(source, frame.height)
        X = pl.DataFrame({name: output_column(frame, name, source) for name in names})
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
        try:
            made.fit(X, y, state=state)
        except Exception:
            raise Failure(f"'{state}' could not be written; nothing was spent.") from None
        del X, y
    if as_json:
        say_json({"state": str(state), **_facts(made)})
        return
    if made.guarantee_.is_simulation:
        say(SIMULATED)
    say(f"Created {state}.")
    say(
        "PRIVATE: the file holds all records. Keep it, never publish it, and never go back to an "
        "older copy."
    )
    say("")
    for line in _description(made):
        say(line)


def run_release(state: Path, points: str, out: Path, *, force: bool, as_json: bool) -> None:
    """Write the inputs with one column per path, which may be published."""
    check_destination(out, TABLES, force=force)
    made, names, where = _opened(state, points, [out])
    labels = [f"path_{k + 1}" for k in range(made.n_paths)]
    with _asking(state), progress(-(-len(where) // BLOCK) + 1) as step:
        parts = []
        for start in range(0, len(where), BLOCK):
            step(f"Drawing from point {start + 1} of {len(where)}")
            parts.append(_released(made, where[start : start + BLOCK]))
        step("Writing")
        columns = [*where.T, *np.hstack(parts)]
        write_table(pl.DataFrame(dict(zip([*names, *labels], columns, strict=True))), out)
    if as_json:
        say_json({"answers": str(out), "rows": len(where), "columns": [*names, *labels]})
        return
    if made.guarantee_.is_simulation:
        say(SIMULATED)
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
    with _asking(state), progress(-(-len(where) // BLOCK) + 2) as step:
        for start in range(0, len(where), BLOCK):
            step(f"Drawing from point {start + 1} of {len(where)}")
            _released(made, where[start : start + BLOCK])
        step("Voting")
        found = _voted(made, where, threshold, vote, smoothing)
        step("Writing")
        columns = [*where.T, found.share, found.inside]
        write_table(pl.DataFrame(dict(zip([*names, "share", "inside"], columns, strict=True))), out)
        if plot is not None:
            save_figure(found.plot(), plot)
    if as_json:
        say_json({"answers": str(out), "rows": len(where), "inside": int(found.inside.sum())})
        return
    if made.guarantee_.is_simulation:
        say(SIMULATED)
    say(f"{int(found.inside.sum())} of {len(where)} points lie in the set, written into {out}.")


def run_inspect_paths(state: Path, *, as_json: bool) -> None:
    """Print what a state promises, and nothing that is private."""
    made = open_paths(state)
    if as_json:
        say_json({"state": str(state), **_facts(made)})
        return
    for line in _description(made):
        say(line)


def open_paths(path: Path) -> PosteriorPaths:
    """The paths of a .private-state file."""
    if path.suffix not in STATES:
        raise Refusal(f"'{path}' must end in .private-state.")
    check_readable(path)
    try:
        return PosteriorPaths.load_state(path)
    except OSError:
        raise Refusal(f"The file '{path}' cannot be read.") from None
    except ValueError as problem:
        raise Refusal(str(problem)) from None


def _opened(
    state: Path, points: str, destinations: Sequence[Path | None]
) -> tuple[PosteriorPaths, list[str], Array]:
    """The paths, the names of their inputs, and where they are asked."""
    table = Path(points) if Path(points).suffix.lower() in TABLES else None
    check_apart([state, table], destinations)
    made = open_paths(state)
    names = [str(name) for name in made.feature_names_in_]
    try:
        return made, names, read_targets(points, names)
    except Refusal as problem:
        raise Refusal(str(problem).replace("--targets", "FILE|GRID")) from None


def _table(made: PosteriorPaths, where: Array) -> pl.DataFrame:
    return pl.DataFrame(where, schema=[str(name) for name in made.feature_names_in_], orient="row")


def _released(made: PosteriorPaths, where: Array) -> Array:
    with _told():
        return made.release(_table(made, where))


def _voted(
    made: PosteriorPaths, where: Array, threshold: float, vote: float, smoothing: float | None
) -> Excursion:
    with _told():
        return made.excursion(_table(made, where), threshold, vote=vote, smoothing=smoothing)


@contextmanager
def _told() -> Iterator[None]:
    """What paths refuse to answer is about the question, and may be told."""
    try:
        yield
    except ValueError as problem:
        sentence = str(problem)
        raise Refusal(sentence[:1].upper() + sentence[1:]) from None


@contextmanager
def _asking(state: Path) -> Iterator[None]:
    try:
        yield
    except Refusal:
        raise
    except (KeyboardInterrupt, Exception) as problem:
        stopped = "Interrupted" if isinstance(problem, KeyboardInterrupt) else "Failed"
        raise Failure(f"{stopped}; {KEPT.format(state)}") from None


def _facts(made: PosteriorPaths) -> dict[str, object]:
    return {
        "noise_variance": made.noise_variance,
        "extra_noise": made.extra_noise,
        "n_paths": made.n_paths,
        "sensitivity": made.sensitivity_,
        "points_answered": made.points_answered_,
        "points_left": made.points_left_,
        "guarantee": json.loads(made.guarantee_.to_json()),
        "simulation": made.guarantee_.is_simulation,
    }


def _description(made: PosteriorPaths) -> list[str]:
    return [
        made.guarantee_.describe(),
        "",
        f"Inputs: {listed([str(name) for name in made.feature_names_in_])}.",
        f"Kernel: {write_kernel(made.kernel, figures=4)}; noise variance {made.noise_variance}; "
        f"extra noise {made.extra_noise:g}.",
        f"Points answered so far: {made.points_answered_:,}; more may be asked: "
        f"{made.points_left_:,}.",
        "The budget counts as spent once anything was answered.",
    ]
