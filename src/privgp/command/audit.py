"""``privgp audit``: attacks on the guarantees, on public inputs and simulated outputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from privgp.command import options as o
from privgp.command.errors import Refusal
from privgp.command.io.files import PICTURES, TABLES, check_files
from privgp.command.io.screen import tell, terminal_bar

if TYPE_CHECKING:
    from privgp.audit.result import Membership, TradeOff
    from privgp.command.io.request import Request
    from privgp.models.function.estimator import PrivateFunction
    from privgp.models.paths import PosteriorPaths
    from privgp.models.published import Published
    from privgp.models.search.bayes import PrivateBayesSearchCV
    from privgp.models.search.grid import PrivateGridSearchCV
    from privgp.types import Array, Cells

FUNCTION_KERNEL = "matern52(0.2) + white(0.3)"
PATHS_KERNEL = "exp(1)"
MEMBERS_KERNEL, MEMBERS_NOISE = "exp(1)", 0.04
LABELS, COUNTED, SEVERAL, FEATURED = 3, 20, 2, 4  # classes, people in a count, outputs, inputs
SEARCHES, SETTINGS, RECORDS = ("scores", "permute-and-flip", "exponential"), 6, 100
# What JSON tells of a result, by the names that the result has for it.
TRADE_OFF = """promised_mu mu_low mu_high false_positive_rate false_negative_rate draws
    failure_probability is_tight"""
MEMBERSHIP = "n shadows draws auc auc_bounds failure_probability"
THRESHOLD = "false_positive_rate true_positive_rate true_positive_bounds"
PUBLIC = "Public or simulated data only: nobody's outputs were read."

DRAWS_HELP = "The number of fresh releases on each side."
DATA_HELP = (
    "A .csv or .parquet file with public inputs to plan for. Default: thirty simulated inputs called x. "
    "Outputs are never read: they are simulated."
)
NOISE_SCALE_HELP = (
    "Multiplies the noise. A value below 1 plants a fault that the attack should find."
)
KERNEL_HELP = "A kernel of one input, or a text file that holds it; exp(1) with a noise variance of 0.04 by default."
SHADOWS_HELP = "The number of simulated datasets with the record, and without it, to learn from."
PATHS_HELP = "The number of paths released; inf for the exact posterior."
RECORD_HELP = "The record whose membership is attacked."
DOMAIN_HELP = "The range of the simulated inputs."
LABEL_NOISE_HELP = "The share of noise in simulated outputs, from 0 to below 1."

Draws = Annotated[int, o.attack(DRAWS_HELP, min=100, max=10_000_000)]
FailureProbability = Annotated[float, o.attack("The probability that the bounds are wrong.")]
Mechanism = Literal[
    "outputs", "labels", "counts", "several", "records", "features", "function", "paths", "scores",
    "permute-and-flip", "exponential",
]  # fmt: skip
ATTACKED = "inputs bounds epsilon delta groups kernel noise_variance targets objective reconstruct"
AT_PUBLIC_INPUTS = ("outputs", "labels", "counts", "several", "function")


def trade_off(
    asked: Annotated[
        o.ReleaseOptions,
        o.Pick(ATTACKED, inputs=None, bounds=(0.0, 1.0), epsilon=8.0, delta=0.01),
    ],
    data: Annotated[Path | None, typer.Argument(metavar="DATA", help=DATA_HELP)] = None,
    mechanism: Annotated[Mechanism, o.plain("What is attacked.")] = "outputs",
    law: Annotated[o.Law, o.plain("The noise distribution for outputs or records.")] = "gaussian",
    draws: Draws = 5_000,
    noise_scale: Annotated[float, o.attack(NOISE_SCALE_HELP)] = 1,
    failure_probability: FailureProbability = 1e-6,
    plot: o.Plot = None,
    force: o.Force = False,
    json: o.Json = False,
) -> None:
    """Try to distinguish the two worst neighbouring datasets. Exits with 1 if a guarantee is broken."""
    if data is None and (asked.groups or asked.inputs not in (None, "x")):
        raise Refusal("--inputs and --groups name columns of DATA: give it, or leave them out.")
    if data is not None and not asked.inputs:
        raise Refusal("--inputs must name the public columns of DATA.")
    if data is not None and mechanism not in AT_PUBLIC_INPUTS:
        raise Refusal(f"--mechanism {mechanism} protects whole records: leave DATA out.")
    if mechanism == "paths" and noise_scale != 1.0:
        raise Refusal("--noise-scale is not for --mechanism paths.")
    if asked.groups and mechanism not in AT_PUBLIC_INPUTS[:-1]:
        raise Refusal(f"--groups goes with --mechanism {', '.join(AT_PUBLIC_INPUTS[:-1])} only.")
    if not 0 < noise_scale < math.inf:
        raise Refusal(f"--noise-scale must be positive, got {noise_scale:g}.")
    _check_probability(failure_probability)
    check_files([(data, TABLES)], [(plot, PICTURES)], force=force)
    from privgp import audit
    from privgp.command.io.request import Request, public_computation
    from privgp.tables.cells import FILL_IN

    given = {**vars(asked), "inputs": asked.inputs or "x", "mechanism": law}
    request = Request(data=data or Path(), output=None, about_missing=FILL_IN, **given)
    request.check()
    X, people = _public(request, simulated=data is None)
    with _show_progress() as telling, public_computation():
        telling(0.0, "planning")
        if mechanism == "function":
            attacked: tuple[object, ...] = (_function(request, simulated=data is None), X)
        elif mechanism == "paths":
            attacked = (_paths(request, len(X)), *_worst_datasets(X, request.bounds))
        elif mechanism in SEARCHES:
            attacked = (_search(request, mechanism), RECORDS)
        else:
            model = _estimator(request, mechanism)
            planned = (
                model.plan(len(X)) if mechanism == "features" else model.plan(X, groups=people)
            )
            attacked = (planned, None)
        result = audit.trade_off(
            *attacked, draws=draws, noise_scale=noise_scale, progress=telling,
            failure_probability=failure_probability,
        )  # fmt: skip
    facts = {
        "mechanism": mechanism,
        "noise_scale": noise_scale,
        "epsilon_low": result.epsilon_low(request.delta),
        **_pick_fields(result, TRADE_OFF),
    }
    _report(result, facts, plot, as_json=json)


def membership(
    kernel: Annotated[str | None, o.model(KERNEL_HELP, metavar="TEXT|FILE")] = None,
    noise_variance: o.NoiseVariance = None,
    n: Annotated[int, o.plain("The number of records in a dataset.", "--n", min=1, max=1000)] = 10,
    paths: Annotated[float, o.plain(PATHS_HELP)] = 1.0,
    record: Annotated[tuple[float, float], o.plain(RECORD_HELP, metavar="X Y")] = (0.5, 1.0),
    domain: Annotated[tuple[float, float], o.plain(DOMAIN_HELP, metavar="LO HI")] = (0.0, 1.0),
    label_noise: Annotated[float, o.plain(LABEL_NOISE_HELP)] = 0.0,
    shadows: Annotated[int, o.attack(SHADOWS_HELP, min=100, max=1_000_000)] = 10_000,
    draws: Draws = 10_000,
    failure_probability: FailureProbability = 1e-6,
    seed: Annotated[int | None, o.plain("For a repeatable audit.", min=0, max=2**32 - 1)] = None,
    plot: o.Plot = None,
    force: o.Force = False,
    json: o.Json = False,
) -> None:
    """Test whether posterior paths reveal that a record was in the data. Everything is simulated."""
    check_files([], [(plot, PICTURES)], force=force)
    _check_probability(failure_probability)
    if not all(map(math.isfinite, record)):
        raise Refusal("--record must be two finite numbers.")
    from privgp import audit
    from privgp.command.io.kernel_text import read_kernel
    from privgp.command.io.request import public_computation
    from privgp.gp.kernels.evaluate import split_noise

    if kernel is None:
        kernel = MEMBERS_KERNEL
        noise_variance = MEMBERS_NOISE if noise_variance is None else noise_variance
    signal, white = split_noise(read_kernel(kernel))
    if signal is None:
        raise Refusal("--kernel holds nothing but noise.")
    if (noise_variance is None) == (white is None):
        raise Refusal("Give the noise once: as --noise-variance, or as white() in --kernel.")
    noise = float(noise_variance or 0.0) if white is None else float(white.noise_level)
    with _show_progress() as telling, public_computation(x_bounds="--domain", n_paths="--paths"):
        promise = None
        if math.isfinite(paths) and paths >= 1:
            reach = max(1.0, abs(record[1]))
            promise = audit.path_promise(signal, noise, n, paths, x_bounds=domain, reach=reach)
        result = audit.membership(
            signal, noise, n=n, n_paths=paths, record=record, x_bounds=domain,
            label_noise=label_noise, promise=promise, shadows=shadows, draws=draws,
            failure_probability=failure_probability, random_state=seed, progress=telling,
        )  # fmt: skip
    facts = {
        "paths": result.n_paths,
        **_pick_fields(result, MEMBERSHIP),
        "thresholds": [_pick_fields(threshold, THRESHOLD) for threshold in result.thresholds],
    }
    _report(result, facts, plot, as_json=json)


def _estimator(request: Request, mechanism: str) -> Published:
    """The model whose measurement is attacked: of outputs as asked for, or of another kind."""
    from privgp.models.classifier import PrivateGPClassifier

    model, (low, high) = request.model(), request.bounds
    if mechanism == "labels":
        made: Published = PrivateGPClassifier(
            model.kernel, classes=range(LABELS), epsilon=request.epsilon, delta=request.delta,
            targets=model.targets, mechanism=model.mechanism,
        )  # fmt: skip
        return made
    other: dict[str, dict[str, object]] = {
        "counts": {"max_change": (high - low) / COUNTED},
        "several": {"y_bounds": [request.bounds] * SEVERAL},
        "records": {"protect": "records", "x_bounds": (0.0, 1.0)},
        "features": {"protect": "records", "x_bounds": [(0.0, 1.0)] * FEATURED},
    }
    model.set_params(**other.get(mechanism, {}))
    return model


def _function(request: Request, *, simulated: bool) -> PrivateFunction:
    from privgp.command.io.kernel_text import read_kernel
    from privgp.models.function.estimator import PrivateFunction

    if request.kernel is None and not simulated:
        raise Refusal("--mechanism function needs a --kernel for the inputs of DATA.")
    return PrivateFunction(
        read_kernel(request.kernel or FUNCTION_KERNEL),
        request.noise_variance,
        y_bounds=request.bounds,
        epsilon=request.epsilon,
        delta=request.delta,
    )


def _paths(request: Request, records: int) -> PosteriorPaths:
    """One path of simulated records, with the noise variance that was given or the budget needs."""
    from privgp.command.io.kernel_text import read_kernel
    from privgp.command.paths import calibrate_paths
    from privgp.gp.kernels.evaluate import split_noise
    from privgp.models.paths import PosteriorPaths

    kernel = read_kernel(request.kernel or PATHS_KERNEL)
    paths = PosteriorPaths(
        kernel, request.noise_variance, domain=(0.0, 1.0), y_bounds=request.bounds,
        delta=request.delta, max_points=100,
    )  # fmt: skip
    if request.noise_variance is None and split_noise(kernel)[1] is None:
        calibrate_paths(paths, request.epsilon, records)
    return paths


def _worst_datasets(X: Array, bounds: tuple[float, float]) -> tuple[tuple[Array, Array], ...]:
    """Two simulated datasets that differ as far as one record can."""
    import numpy as np

    outputs = np.full((2, len(X)), bounds[0])
    outputs[1, -1] = bounds[1]
    return (X, outputs[0]), (X, outputs[1])


def _search(request: Request, mechanism: str) -> PrivateBayesSearchCV | PrivateGridSearchCV:
    """A search over settings that do not matter: only its scores and choices are attacked."""
    from sklearn.dummy import DummyClassifier

    from privgp.models.search.bayes import PrivateBayesSearchCV
    from privgp.models.search.grid import PrivateGridSearchCV

    settings = {"random_state": list(range(SETTINGS))}
    budget: dict[str, Any] = {"epsilon": request.epsilon, "delta": request.delta}
    if mechanism == "scores":
        return PrivateBayesSearchCV(DummyClassifier(), settings, n_iter=5, **budget)
    return PrivateGridSearchCV(DummyClassifier(), settings, method=mechanism, **budget)


def _public(request: Request, *, simulated: bool) -> tuple[Array, Cells | None]:
    """The public inputs of the table, or simulated ones; and person identifiers."""
    import numpy as np

    if simulated:
        return np.linspace(0.0, 1.0, 30)[:, None], None
    X, people = request.public_columns()
    return X.to_numpy().astype(np.float64), people


def _report(
    result: TradeOff | Membership, facts: dict[str, object], plot: Path | None, *, as_json: bool
) -> None:
    """Draw and tell; exit with 1 if the guarantee is broken."""
    from privgp.command.io.results import picture_lines, write_picture

    if plot is not None:
        write_picture(result.plot(), plot)
    promise = None if result.promise is None else result.promise.describe()
    facts = {**facts, "promise": promise, "holds": result.holds, "plot": plot}
    tell(facts, [PUBLIC, result.describe(), *picture_lines(plot)], None, as_json=as_json)
    if not result.holds:
        raise typer.Exit(1)


def _pick_fields(result: object, names: str) -> dict[str, object]:
    return {name: getattr(result, name) for name in names.split()}


def _check_probability(value: float) -> None:
    if not 0 < value < 1:
        raise Refusal(f"--failure-probability must lie between 0 and 1, got {value:g}.")


@contextmanager
def _show_progress() -> Iterator[Callable[[float, str], None]]:
    """The command's bar as an audit's callback."""
    with terminal_bar() as bar:
        task = bar.add_task("Starting", total=1.0)
        yield lambda share, doing: bar.update(
            task, completed=share, description=doing.capitalize(), refresh=True
        )
