"""``privgp search grid``: choose lengthscale and noise privately, release with what was chosen."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from rich.table import Table
from sklearn.base import clone
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    ExpSineSquared,
    Kernel,
    Matern,
    RationalQuadratic,
)

from privgp.command.errors import Refusal
from privgp.command.io.columns import output_column
from privgp.command.io.request import Request, make_plan, public_computation
from privgp.command.io.results import Results
from privgp.command.io.screen import progress, say_json, show
from privgp.command.io.tables import check_lines, load, open_table
from privgp.command.release import rehearse, spending
from privgp.gp.kernels.evaluate import split_noise
from privgp.models.search.candidates import candidates_of, models_of
from privgp.models.search.grid import PrivateGridSearchCV
from privgp.plan.inputs.start import SIGNAL_SHARE

MOST = 200
SCALED = (RBF, RationalQuadratic, ExpSineSquared)


@dataclass(frozen=True)
class Grid:
    """The search as asked for on the command line."""

    lengthscales: str
    noise_std: str | None
    method: str
    folds: int
    selection_share: float

    def check(self) -> None:
        if not 0 < self.selection_share < 1:
            raise Refusal("--selection-share must lie between 0 and 1.")

    def params(self, kernel: Kernel, columns: int) -> dict[str, list[Any]]:
        """A grid for the regressor: one kernel per lengthscale, and the noise variances."""
        lengthscales = [_scales(entry, columns) for entry in self.lengthscales.split(",")]
        found: dict[str, list[Any]] = {"kernel": [_with(kernel, each) for each in lengthscales]}
        if self.noise_std is not None:
            if split_noise(kernel)[1] is not None:
                raise Refusal("Give the noise once: as --noise-std or as white(...) in --kernel.")
            stds = [_positive(entry, "--noise-std") for entry in self.noise_std.split(",")]
            found["noise_variance"] = [std**2 for std in stds]
        if math.prod(len(values) for values in found.values()) > MOST:
            raise Refusal(f"There are more than {MOST} candidates: name fewer.")
        return found


def run_grid(request: Request, grid: Grid, results: Results, *, force: bool, as_json: bool) -> None:
    """Check everything, then choose and spend, then write."""
    request.check()
    grid.check()
    if request.output is None:
        raise Refusal("--output must name the private column.")
    results.check(request.data, force=force)
    columns = len(request.input_names)
    estimator = request.model()
    kernel = estimator.kernel if estimator.kernel is not None else _default(request.bounds)
    params = grid.params(kernel, columns)
    with progress(2) as step:
        step("Reading the table")
        source = open_table(request.data)
        frame = load(source, [*request.public_names, request.output])
        check_lines(source, frame.height)
        X, people = request.columns(frame, source)
        y = output_column(frame, request.output, source)
        del frame
        step("Planning and rehearsing")
        search = PrivateGridSearchCV(
            estimator.set_params(kernel=params["kernel"][0]),
            params,
            epsilon=request.epsilon,
            delta=request.delta,
            cv=grid.folds,
            method=grid.method,
            selection_share=grid.selection_share,
            random_state=request.seed,
        )
        _check(search, X, people, grid)
        rehearse(estimator, X, people, results.release)
    with spending(request) as saved:
        with progress(3) as step:
            step(f"Choosing among {len(candidates_of(params))} candidates and measuring with noise")
            with np.errstate(all="ignore"):
                search.fit(X, y, people)
            del y
            model = search.best_estimator_
            results.write(model, request.output, saved, step, force=force)
        _report(search, request, results, as_json=as_json)


def _check(search: PrivateGridSearchCV, X: pl.DataFrame, people: Any, grid: Grid) -> None:
    """Whatever would stop the search before it spends, from public columns alone."""
    rows = X.to_numpy().astype(np.float64)
    if grid.method != "measurement":
        count = X.height if people is None else len(np.unique(people))
        if grid.folds > count:
            raise Refusal(
                f"--folds must be at most the number of rows or people, {count}, got {grid.folds}."
            )
    with public_computation():
        candidates = candidates_of(search.param_grid)
        models_of(search.estimator, candidates, rows)
    for each in (candidates[0], candidates[-1]):
        make_plan(clone(search.estimator).set_params(**each), X, people)


def _report(
    search: PrivateGridSearchCV, request: Request, results: Results, *, as_json: bool
) -> None:
    chosen = search.best_index_
    rows = [_row(search, place) for place in range(len(search.cv_results_["params"]))]
    if as_json:
        found = {"method": search.method, "candidates": rows, "chosen": chosen}
        facts = results.facts(search.guarantee_, request) | found
        say_json(facts, simulation=search.guarantee_.is_simulation)
        return
    table = Table(title=f"Candidates, chosen among by {search.method}")
    for name in (*rows[0], ""):
        table.add_column(name.replace("_", " "), justify="right")
    for place, row in enumerate(rows):
        cells = [_shown(value) for value in row.values()]
        table.add_row(*cells, "chosen" if place == chosen else "")
    show(table)
    results.tell(search.guarantee_, request)


def _row(search: PrivateGridSearchCV, place: int) -> dict[str, Any]:
    """What may be told of a candidate: its parameters, and what is public or was measured."""
    told = search.cv_results_
    params = told["params"][place]
    row: dict[str, Any] = {
        "lengthscale": np.ravel(_scaled_part(params["kernel"]).length_scale).tolist()
    }
    if "noise_variance" in params:
        row["noise_std"] = math.sqrt(params["noise_variance"])
    if "log_evidence" in told:
        evidence = told["log_evidence"]
        row["log_evidence_below_best"] = float(evidence.max() - evidence[place])
    else:
        row["error_by_privacy"] = float(told["noise_std"][place])
    return row


def _shown(value: Any) -> str:
    values = value if isinstance(value, list) else [value]
    return ":".join(f"{number:.4g}" for number in values)


def _default(bounds: tuple[float, float]) -> Kernel:
    """As without a kernel: Matern 5/2 about an unknown constant, both of std d/4."""
    signal = (SIGNAL_SHARE * (bounds[1] - bounds[0])) ** 2
    return ConstantKernel(signal) * Matern(1.0, nu=2.5) + ConstantKernel(signal)


def _with(kernel: Kernel, scales: list[float]) -> Kernel:
    """The kernel with these lengthscales."""
    changed = clone(kernel)
    part = _scaled_part(changed)
    if len(scales) > 1 and not isinstance(part, RBF):
        raise Refusal("--lengthscales: rq and periodic have one lengthscale for all inputs.")
    part.length_scale = scales[0] if len(scales) == 1 else scales
    return changed


def _scaled_part(kernel: Kernel) -> Any:
    """The one part of the kernel that has a lengthscale."""
    parts = _parts(kernel)
    if len(parts) != 1:
        raise Refusal(
            f"--kernel must have one part with a lengthscale to search over, not {len(parts)}."
        )
    return parts[0]


def _parts(kernel: Kernel) -> list[Kernel]:
    if hasattr(kernel, "k1"):
        return [*_parts(kernel.k1), *_parts(kernel.k2)]
    return [kernel] if isinstance(kernel, SCALED) else []


def _scales(text: str, columns: int) -> list[float]:
    values = [_positive(part, "--lengthscales") for part in text.split(":")]
    if len(values) not in (1, columns):
        raise Refusal(
            f"--lengthscales: give one number, or one for each of the {columns} inputs joined by "
            f"colons, not {len(values)}."
        )
    return values


def _positive(text: str, option: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 1e-50 <= value <= 1e50:
        raise Refusal(f"{option} must be positive numbers separated by commas, such as 3,9,27.")
    return value
