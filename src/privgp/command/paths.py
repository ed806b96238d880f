"""``privgp paths``: sample paths of a posterior, kept by the custodian and asked at any points."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from privgp.command import options as o
from privgp.command.errors import Refusal, plural
from privgp.command.io.files import (
    NEW_TABLES,
    PICTURES,
    STATES,
    TABLES,
    Files,
    check_files,
    open_own,
    suffix_of,
)
from privgp.command.io.screen import progress, tell

if TYPE_CHECKING:
    from polars import DataFrame

    from privgp.models.paths import PosteriorPaths
    from privgp.plan.functions.paths import Calibration
    from privgp.types import Array, Cells

POINTS_HELP = "The points: a .csv or .parquet file with the inputs, or a grid such as age=0:90:50."
MAX_POINTS_HELP = "The largest number of points to answer. More points need a little more noise."
SENSITIVITY_HELP = "The smallest proved bound, or the paper's bounds throughout."
BY_HELP = "What to find: the noise variance, or the extra noise."
SMOOTHING_HELP = "The std, in units of the inputs, of a filter that smooths every path."
N_PATHS_HELP = "The number of paths; each costs privacy."
EXTRA_NOISE_HELP = "The std of Gaussian-process noise added to every path."
PRIOR_HELP = (
    "What functions and outputs to simulate: a kernel with white(variance), such as "
    "'100*matern32(10) + white(25)', about the middle of the bounds."
)
TASK_HELP = "What the paths are for."
THRESHOLD_HELP = "With excursion and probability: the value to exceed."
EPSILON_HELP = "Choose the least noise variance that meets this budget."
Points = Annotated[str, typer.Argument(metavar="FILE|GRID", help=POINTS_HELP)]


@dataclass(frozen=True, kw_only=True)
class PathOptions:
    """What paths are drawn by, as given on the command line."""

    domain: Annotated[str, o.privacy(o.DOMAIN_HELP, metavar="RANGES")]
    bounds: o.Bounds
    delta: o.Delta
    kernel: o.Kernel
    noise_variance: o.NoiseVariance = None
    n_paths: Annotated[int, o.privacy(N_PATHS_HELP, min=1, max=10_000)] = 1
    extra_noise: Annotated[float, o.privacy(EXTRA_NOISE_HELP, min=0.0)] = 0.0
    sensitivity: Annotated[Literal["auto", "paper"], o.privacy(SENSITIVITY_HELP)] = "auto"
    max_points: Annotated[int, o.privacy(MAX_POINTS_HELP, min=1, max=10_000)] = 2000


def calibrate(
    asked: PathOptions,
    rows: Annotated[int, o.plain("The number of records.", min=1)],
    epsilon: o.Epsilon,
    by: Annotated[Literal["noise-variance", "extra-noise"], o.privacy(BY_HELP)] = "noise-variance",
    json: o.Json = False,
) -> None:
    """Find the least noise that meets a budget. Reads no data."""
    from privgp.command.io.request import public_computation

    with public_computation():
        least = calibrate_paths(_paths(None, asked), epsilon, rows, by.replace("-", "_"))
    lines = [
        f"Noise variance: {least.noise_variance:.6g} (regularisation r = "
        f"{least.regularisation:.4g}).",
        f"Extra noise: {least.extra_noise:.6g}.",
        f"They guarantee epsilon = {least.epsilon:.6g} at delta = {asked.delta:g} for "
        f"{plural(rows, 'record')}.",
    ]
    tell(asdict(least), lines, None, as_json=json)


def tune(
    rows: Annotated[int, o.plain("The number of records.", min=1, max=5_000)],
    domain: Annotated[str, o.privacy(o.DOMAIN_HELP, metavar="RANGES")],
    bounds: o.Bounds,
    epsilon: o.Epsilon,
    delta: o.Delta,
    kernel: Annotated[str, o.plain(PRIOR_HELP, metavar="KERNEL")],
    task: Annotated[Literal["excursion", "mean", "maximum", "probability"], o.plain(TASK_HELP)],
    threshold: Annotated[float | None, o.plain(THRESHOLD_HELP)] = None,
    n_paths: Annotated[int, o.privacy(N_PATHS_HELP, min=1, max=10_000)] = 1,
    draws: Annotated[int, o.plain("The number of simulated datasets.", min=1, max=1_000)] = 20,
    json: o.Json = False,
) -> None:
    """Find the kernel and the noise variance that serve a task best within a budget. Reads no data.

    They are tried on simulated datasets, drawn from the kernel that is given.
    """
    from privgp.command.io.axes import read_ranges
    from privgp.command.io.kernel_text import read_kernel, write_kernel
    from privgp.command.io.request import public_computation
    from privgp.models.function import tune as tuning

    if (threshold is not None) != (task in ("excursion", "probability")):
        raise Refusal(
            "--threshold goes with --task excursion and --task probability, and is needed there."
        )
    if threshold is not None and not math.isfinite(threshold):
        raise Refusal("--threshold must be a finite number.")
    law: dict[str, Any] = {"domain": read_ranges([domain], None, "--domain"), "y_bounds": bounds}
    middle = 0.5 * bounds[0] + 0.5 * bounds[1]
    tasks: dict[str, tuning.Task] = {
        "excursion": tuning.ExcursionTask((threshold or 0.0) - middle),
        "mean": tuning.MeanTask(),
        "maximum": tuning.MaximumTask(),
        "probability": tuning.ProbabilityTask((threshold or 0.0) - middle),
    }
    with public_computation():
        known = tuning.draw_datasets(read_kernel(kernel), None, rows=rows, draws=draws, **law)
        best = tuning.tune_for(
            tasks[task], known, epsilon, delta=delta, n_paths=n_paths, rounds=1, **law
        )
    found = write_kernel(best.paths.kernel, 6)
    lines = [
        f"Kernel: {found}",
        f"Noise variance: {best.paths.noise_variance:.6g} (regularisation r = "
        f"{best.regularisation:.4g}).",
        f"Expected loss: {best.loss:.4g}, over {plural(draws, 'simulated dataset')}.",
        f"They guarantee epsilon = {best.epsilon:.6g} at delta = {delta:g} for {plural(rows, 'record')}.",
    ]
    facts = {"kernel": found, "noise_variance": best.paths.noise_variance, "loss": best.loss,
             "epsilon": best.epsilon}  # fmt: skip
    tell(facts, lines, None, as_json=json)


def create(
    asked: PathOptions,
    data: o.Data,
    inputs: Annotated[str, o.plain("Input columns; they are private too.", metavar="A,B")],
    output: Annotated[str, o.plain("The output column; private.", metavar="COLUMN")],
    out: o.NewState,
    charge: o.Charge,
    epsilon: Annotated[float | None, o.privacy(EPSILON_HELP)] = None,
    json: o.Json = False,
) -> None:
    """Store the records in a new private state file. The first answer spends the budget."""
    check_files([(data, TABLES)], [(out, STATES)], force=None)
    from privgp.command.io.columns import output_column, private_columns, split_names
    from privgp.command.io.request import public_computation
    from privgp.command.io.states import guard_state
    from privgp.tables.source import load, open_source

    names = split_names(inputs)
    if not output or output in names:
        raise Refusal("--output must name a column that is not among the --inputs.")
    if epsilon is not None and asked.noise_variance is not None:
        raise Refusal("--epsilon chooses the noise variance: leave --noise-variance out.")
    account = charge.account
    with progress(3) as step:
        step("Reading the table")
        source = open_source(data)
        frame = load(source, [*names, output])
        X = private_columns(frame, names, source)
        y = output_column(frame, output, source)
        rows = frame.height
        del frame
        step("Computing the guarantee")
        with public_computation():
            paths = _paths(names, asked, charge.seed)
            if epsilon is not None:
                calibrate_paths(paths, epsilon, rows)
            paths.guarantee_for(rows)
        step("Writing the state")
        with guard_state(out):
            paths.set_params(ledger=account).fit(X, y, state=out)
        del X, y
    _tell(paths, out, "all records", as_json=json)
    charge.note(data)


def release(
    state: o.State, points: Points, out: o.Answers, force: o.Force = False, json: o.Json = False
) -> None:
    """Write the paths at these points, in new columns path_1, path_2, ..."""
    paths, names, where = _open_paths(state, points, [(out, NEW_TABLES)], force=force)
    from privgp.command.io.results import write_table
    from privgp.command.io.states import answers, guard_answers

    labels = [f"path_{k + 1}" for k in range(paths.n_paths)]
    with guard_answers(state, "paths", where, more=1) as step:
        frame = _table([*names, *labels], [*where.T, *answers(paths, where, step)])
        step("Writing")
        columns = write_table(frame, out, simulation=paths.guarantee_.is_simulation)
    written = f"{plural(paths.n_paths, 'path')} at {plural(len(where), 'point')}"
    facts = {"answers": out, "rows": len(where), "columns": columns}
    tell(facts, [f"Wrote {written} into {out}."], paths.guarantee_, as_json=json)


def excursion(
    state: o.State,
    points: Points,
    threshold: Annotated[float, o.plain("The least value that counts as inside.")],
    out: o.Answers,
    vote: Annotated[float, o.plain("The share of the paths that must agree.")] = 0.5,
    smoothing: Annotated[float | None, o.plain(SMOOTHING_HELP)] = None,
    plot: o.Plot = None,
    force: o.Force = False,
    json: o.Json = False,
) -> None:
    """Write where the function exceeds a threshold, in new columns share and inside."""
    paths, names, where = _open_paths(
        state, points, [(out, NEW_TABLES), (plot, PICTURES)], force=force
    )
    from privgp.command.io.columns import as_table, refuse_questions
    from privgp.command.io.results import picture_lines, write_picture, write_table
    from privgp.command.io.states import answers, guard_answers
    from privgp.models.paths import check_vote
    from privgp.models.published import names_of

    if plot is not None and len(names) > 2:
        raise Refusal("--plot draws one or two inputs.")
    with refuse_questions():
        check_vote(threshold, vote, smoothing)
    with guard_answers(state, "paths", where, more=2) as step:
        answers(paths, where, step)
        step("Voting")
        with refuse_questions():
            table = as_table(names_of(paths), where)
            voted = paths.excursion(table, threshold, vote=vote, smoothing=smoothing)
        step("Writing")
        frame = _table([*names, "share", "inside"], [*where.T, voted.share, voted.inside])
        columns = write_table(frame, out, simulation=paths.guarantee_.is_simulation)
        if plot is not None:
            write_picture(voted.plot(), plot)
    inside = int(voted.inside.sum())
    found = f"In the set: {inside} of {plural(len(where), 'point')}. Written into {out}."
    facts = {"answers": out, "rows": len(where), "inside": inside, "columns": columns, "plot": plot}
    tell(facts, [found, *picture_lines(plot)], paths.guarantee_, as_json=json)


def inspect(state: o.State, json: o.Json = False) -> None:
    """Show what the paths guarantee and how many points they have answered. Shows nothing private."""
    check_files([(state, STATES)], [], force=None)
    from privgp.models.paths import PosteriorPaths

    _tell(open_own(state, PosteriorPaths.load_state), state, as_json=json)


def _paths(inputs: list[str] | None, asked: PathOptions, seed: int | None = None) -> PosteriorPaths:
    """The paths that were asked for; ``inputs``: their names, if known."""
    from privgp.command.io.axes import read_ranges
    from privgp.command.io.kernel_text import read_kernel
    from privgp.models.paths import PosteriorPaths

    given = {**vars(asked), "kernel": read_kernel(asked.kernel), "y_bounds": asked.bounds}
    given["domain"] = read_ranges([asked.domain], inputs, "--domain")
    del given["bounds"]
    return PosteriorPaths(**given, random_state=seed)


def calibrate_paths(
    paths: PosteriorPaths, epsilon: float, rows: int, by: str = "noise_variance"
) -> Calibration:
    """The least noise that meets a budget, which the paths have from then on."""
    from privgp.gp.kernels.evaluate import split_noise, variance

    signal, white = split_noise(paths.kernel)
    if paths.noise_variance is None and white is None and signal is not None:
        paths.set_params(noise_variance=variance(signal))  # to start from
    least = paths.calibrate(epsilon, rows, by=by)
    paths.set_params(
        kernel=signal, noise_variance=least.noise_variance, extra_noise=least.extra_noise
    )
    return least


def _open_paths(
    state: Path, points: str, files: Files, *, force: bool
) -> tuple[PosteriorPaths, list[str], Array]:
    """The paths, the names of their inputs, and where they are asked."""
    table = Path(points) if suffix_of(Path(points)) in TABLES else None
    check_files([(state, STATES), (table, TABLES)], files, force=force)
    from numpy import asarray

    from privgp.command.io.axes import read_targets
    from privgp.command.io.states import input_names
    from privgp.models.paths import PosteriorPaths

    paths = open_own(state, PosteriorPaths.load_state)
    names = input_names(paths)
    return paths, names, asarray(read_targets(points, names, "FILE|GRID"))


def _table(names: Sequence[str], columns: Sequence[Cells]) -> DataFrame:
    from polars import DataFrame

    return DataFrame(dict(zip(names, columns, strict=True)))


def _tell(paths: PosteriorPaths, state: Path, holds: str = "", *, as_json: bool) -> None:
    from privgp.command.io.states import tell_state

    own = [f"noise variance {paths.noise_variance}; extra noise {paths.extra_noise:g}."]
    facts = ["noise_variance", "extra_noise", "n_paths"]
    tell_state(paths, state, own, facts, holds, as_json=as_json)
