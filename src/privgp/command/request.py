"""What ``plan`` and ``release`` are both asked, checked before any file is read."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from privgp.command.columns import identifiers, input_columns, split_names
from privgp.command.errors import Failure, Refusal
from privgp.command.kernel_text import read_kernel
from privgp.command.streams import FileRows
from privgp.command.tables import Source
from privgp.command.targets import read_targets
from privgp.models.arguments import check_bounds
from privgp.models.inducing import plan_rows
from privgp.models.regressor import PrivateGPRegressor
from privgp.plan.preview import Plan
from privgp.privacy.calibrate import check_budget

TOO_EXTREME = (
    "The plan could not be computed: the numbers are too large or too small, so choose other units "
    "for the inputs, the bounds or the kernel."
)


@dataclass(frozen=True)
class Request:
    """The arguments as given on the command line."""

    data: Path
    inputs: str
    output: str | None
    bounds: tuple[float, float]
    epsilon: float
    delta: float
    groups: str | None = None
    kernel: str | None = None
    noise_variance: float | None = None
    targets: str | None = None
    objective: str = "posterior"
    reconstruct: str = "posterior"
    hyperparameters: str = "learned"
    protect: str = "outputs"
    inducing: int | None = None
    seed: int | None = None

    @property
    def input_names(self) -> list[str]:
        return split_names(self.inputs, "--inputs")

    @property
    def public_names(self) -> list[str]:
        """The columns that a plan may load."""
        names = self.input_names
        return names if self.groups in (None, *names) else [*names, str(self.groups)]

    def check(self) -> None:
        """Refuse what is wrong whatever the file holds."""
        try:
            check_budget(self.epsilon, self.delta)
            check_bounds("--bounds", self.bounds)
        except ValueError as problem:
            raise Refusal(str(problem)) from None
        if self.protect == "records":
            raise Refusal(
                "--protect records is not available here yet: use --protect outputs, or "
                "PrivateGPRegressor(protect='records') in Python."
            )
        if self.inducing is not None and self.groups is not None:
            raise Refusal("--groups does not go with --inducing: leave --inducing out.")
        if self.inducing is not None and self.inducing < 1:
            raise Refusal(f"--inducing must be at least 1, got {self.inducing}.")
        if self.noise_variance is not None and not (
            math.isfinite(self.noise_variance) and self.noise_variance > 0
        ):
            raise Refusal(f"--noise-variance must be positive, got {self.noise_variance:g}.")
        if self.output is not None and not self.output:
            raise Refusal("--output must name a column.")
        if self.groups is not None and not self.groups:
            raise Refusal("--groups must name a column.")
        if self.output in self.input_names:
            raise Refusal(
                f"The private output '{self.output}' cannot be among the public --inputs."
            )
        if self.output is not None and self.output == self.groups:
            raise Refusal(f"The private output '{self.output}' cannot name the people.")

    def model(self) -> PrivateGPRegressor:
        """The regressor that was asked for; reads the kernel and the targets."""
        return PrivateGPRegressor(
            kernel=None if self.kernel is None else read_kernel(self.kernel),
            noise_variance=self.noise_variance,
            y_bounds=self.bounds,
            epsilon=self.epsilon,
            delta=self.delta,
            protect=self.protect,
            targets=None if self.targets is None else read_targets(self.targets, self.input_names),
            objective=self.objective,
            reconstruct=self.reconstruct,
            hyperparameters=self.hyperparameters,
            inducing=self.inducing,
            random_state=self.seed,
        )

    def public_columns(
        self, frame: pl.DataFrame, source: Source
    ) -> tuple[pl.DataFrame, np.ndarray | None]:
        """Inputs and person identifiers from a table that holds at least these."""
        X = input_columns(frame, self.input_names, source)
        people = None if self.groups is None else identifiers(frame, self.groups, source)
        return X, people


def make_plan(model: PrivateGPRegressor, X: pl.DataFrame | FileRows, people: Any) -> Plan:
    """The model's plan, for a table in memory or one that is read in parts."""
    with public_computation():
        plan: Plan = plan_rows(model, X) if isinstance(X, FileRows) else model.plan(X, people)
        if not math.isfinite(plan.expected_error()):
            raise ArithmeticError
    return plan


@contextmanager
def public_computation() -> Iterator[None]:
    """Pass on what a plan refuses, in one sentence: it has seen no output."""
    try:
        with np.errstate(all="ignore"):
            yield
    except (np.linalg.LinAlgError, ArithmeticError):
        raise Failure(TOO_EXTREME) from None
    except (ValueError, NotImplementedError) as problem:
        sentence, *_ = [*str(problem).strip().splitlines(), "The plan could not be made."]
        if "not finite" in sentence:  # the inputs are, so it is what was computed from them
            raise Failure(TOO_EXTREME) from None
        raise Refusal(sentence if sentence.endswith(".") else f"{sentence}.") from None
