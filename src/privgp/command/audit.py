"""``privgp audit``: attacks on the promises, on public inputs and made-up outputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import typer

from privgp import audit
from privgp.command.errors import Failure, Refusal
from privgp.command.io.destinations import PICTURES, check_apart, check_destination
from privgp.command.io.kernel_text import read_kernel
from privgp.command.io.request import Request, public_computation
from privgp.command.io.screen import progress, say, say_json
from privgp.command.io.tables import load, open_table
from privgp.gp.kernels.noise import signal_and_noise
from privgp.models.function.estimator import PrivateFunction
from privgp.models.regressor import PrivateGPRegressor
from privgp.pictures.pictures import save_figure
from privgp.types import Array

STEPS = 100
MADE_UP = np.linspace(0.0, 1.0, 30)[:, None]
FUNCTION_KERNEL = "matern52(0.2) + white(0.3)"


@dataclass(frozen=True)
class Attacked:
    """The arguments of ``privgp audit trade-off`` as given."""

    request: Request
    has_data: bool
    mechanism: str
    draws: int
    noise_scale: float
    failure_probability: float

    def check(self) -> None:
        if self.has_data and not self.request.inputs:
            raise Refusal("--inputs must name the public columns of DATA.")
        self.request.check()
        if not (math.isfinite(self.noise_scale) and self.noise_scale > 0):
            raise Refusal(f"--noise-scale must be positive, got {self.noise_scale:g}.")
        _check_probability(self.failure_probability)
        if not self.has_data and (self.request.groups or self.request.input_names != ["x"]):
            raise Refusal("--inputs and --groups name columns of DATA: give it, or leave them out.")
        if self.has_data and self.mechanism == "records":
            raise Refusal(
                "--mechanism records protects inputs too, so no table is needed: leave DATA out."
            )
        if self.request.groups and self.mechanism != "outputs":
            raise Refusal("--groups goes with --mechanism outputs only.")

    def target(self) -> Any:
        """What is attacked: the model as its user would make it."""
        r = self.request
        if self.mechanism == "function":
            if self.has_data and r.kernel is None:
                raise Refusal("--mechanism function needs a --kernel for the inputs of DATA.")
            kernel = read_kernel(FUNCTION_KERNEL if r.kernel is None else r.kernel)
            return PrivateFunction(
                kernel, r.noise_variance, y_bounds=r.bounds, epsilon=r.epsilon, delta=r.delta
            )
        model = r.model()
        if self.mechanism == "records":
            model.set_params(protect="records", x_bounds=(0.0, 1.0))
        return model


@dataclass(frozen=True)
class Asked:
    """The arguments of ``privgp audit membership`` as given."""

    kernel: str
    noise_variance: float | None
    n: int
    paths: float
    record: tuple[float, float]
    domain: tuple[float, float]
    label_noise: float
    shadows: int
    draws: int
    failure_probability: float
    seed: int | None


def run_trade_off(attacked: Attacked, *, plot: Path | None, force: bool, as_json: bool) -> None:
    """Attack and print; exit with 1 if the promise is broken."""
    attacked.check()
    request = attacked.request
    check_destination(plot, PICTURES, force=force)
    check_apart([request.data if attacked.has_data else None], [plot])
    X, people = _public(attacked)
    with _telling() as tell, public_computation():
        tell(0.0, "planning")
        target = attacked.target()
        regressor = isinstance(target, PrivateGPRegressor)
        result = audit.trade_off(
            target.plan(X, people) if regressor else target,
            None if regressor else X,
            draws=attacked.draws,
            noise_scale=attacked.noise_scale,
            failure_probability=attacked.failure_probability,
            progress=tell,
        )
    facts = {
        "mechanism": attacked.mechanism,
        "promised_mu": result.promised_mu,
        "mu_low": result.mu_low,
        "mu_high": result.mu_high,
        "false_positive_rate": result.false_positive_rate,
        "false_negative_rate": result.false_negative_rate,
        "draws": result.draws,
        "noise_scale": attacked.noise_scale,
        "failure_probability": result.failure_probability,
        "epsilon_low": result.epsilon_low(request.delta),
        "is_tight": result.is_tight,
    }
    _report(result, facts, plot, as_json)


def run_membership(asked: Asked, *, plot: Path | None, force: bool, as_json: bool) -> None:
    """Attack made-up posteriors and print; exit with 1 if their promise is broken."""
    check_destination(plot, PICTURES, force=force)
    _check_probability(asked.failure_probability)
    if not all(map(math.isfinite, asked.record)):
        raise Refusal("--record must be two finite numbers.")
    with _telling() as tell, public_computation(x_bounds="--domain", n_paths="--paths"):
        kernel, noise = signal_and_noise(read_kernel(asked.kernel), asked.noise_variance, inputs=1)
        reach = max(1.0, abs(asked.record[1]))
        promise = None
        if math.isfinite(asked.paths) and asked.paths >= 1:
            promise = audit.path_promise(
                kernel, noise, asked.n, asked.paths, x_bounds=asked.domain, reach=reach
            )
        result = audit.membership(
            kernel,
            noise,
            n=asked.n,
            n_paths=asked.paths,
            record=asked.record,
            x_bounds=asked.domain,
            label_noise=asked.label_noise,
            promise=promise,
            shadows=asked.shadows,
            draws=asked.draws,
            failure_probability=asked.failure_probability,
            random_state=asked.seed,
            progress=tell,
        )
    facts = {
        "n": result.n,
        "paths": result.n_paths,
        "shadows": result.shadows,
        "draws": result.draws,
        "auc": result.auc,
        "auc_bounds": list(result.auc_bounds),
        "thresholds": [
            {
                "false_positive_rate": t.false_positive_rate,
                "true_positive_rate": t.true_positive_rate,
                "true_positive_bounds": list(t.true_positive_bounds),
            }
            for t in result.thresholds
        ],
        "failure_probability": result.failure_probability,
    }
    _report(result, facts, plot, as_json)


def _public(attacked: Attacked) -> tuple[Array, Any]:
    """The public inputs of the table, or made-up ones; and person identifiers."""
    if not attacked.has_data:
        return MADE_UP, None
    source = open_table(attacked.request.data)
    frame = load(source, attacked.request.public_names)
    X, people = attacked.request.columns(frame, source)
    return X.to_numpy().astype(np.float64), people


def _report(result: Any, facts: dict[str, Any], plot: Path | None, as_json: bool) -> None:
    if plot is not None:
        try:
            save_figure(result.plot(), plot)
        except OSError:
            raise Failure(f"'{plot}' could not be written.") from None
    if as_json:
        drawn = None if plot is None else str(plot)
        promise = None if result.promise is None else result.promise.describe()
        say_json({**facts, "promise": promise, "holds": result.holds, "plot": drawn})
    else:
        say("Public or made-up data only: nobody's outputs were read.")
        say(result.describe())
        if plot is not None:
            say(f"Drawn in {plot}.")
    if not result.holds:
        raise typer.Exit(1)


def _check_probability(value: float) -> None:
    if not 0 < value < 1:
        raise Refusal(f"--failure-probability must lie between 0 and 1, got {value:g}.")


@contextmanager
def _telling() -> Iterator[Callable[[float, str], None]]:
    """The command's bar as an audit's callback."""
    with progress(STEPS) as step:
        done = -1

        def tell(share: float, doing: str) -> None:
            nonlocal done
            while done < int(STEPS * share):
                done += 1
                step(doing.capitalize())

        yield tell
