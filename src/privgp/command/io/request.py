"""What every command that plans a release is asked, checked before any table is read."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import polars as pl

from privgp.command.errors import Failure, Refusal, refusal
from privgp.command.io.axes import read_ranges, read_targets
from privgp.command.io.columns import (
    FileRows,
    file_rows,
    identifiers,
    input_columns,
    output_column,
    outputs,
    private_columns,
    split_names,
)
from privgp.command.io.files import open_stored
from privgp.command.io.kernel_text import read_kernel
from privgp.command.io.tables import Source, count_rows, load, load_whole, open_table
from privgp.command.options import ReleaseOptions
from privgp.models.classifier import PrivateGPClassifier
from privgp.models.inducing import plan_rows
from privgp.models.load import estimator_for
from privgp.models.planned import named
from privgp.models.records import domain as checked_domain
from privgp.models.regressor import PrivateGPRegressor
from privgp.plan.classes.declared import declared_classes
from privgp.plan.file import load_plan
from privgp.plan.inputs.arguments import check_bounds
from privgp.plan.plan import Plan
from privgp.privacy.budget import check_budget
from privgp.vault.labels import written_classes

TOO_EXTREME = (
    "The plan could not be computed: the numbers are too large or too small, so choose other units "
    "for the inputs, the bounds or the kernel."
)
OF_ALL = ("epsilon", "delta", "protect", "hyperparameters", "mechanism")
NOT_OF_LABELS = ("noise_variance", "objective", "reconstruct", "inducing")


@dataclass(frozen=True, kw_only=True)
class Request(ReleaseOptions):
    """What is asked of which table. ``plan``: a saved one, of ``plan_path``, instead of options."""

    data: Path
    output: str | None
    seed: int | None = None
    plan: Any = None
    plan_path: Path | None = None

    @property
    def inputs_are_private(self) -> bool:
        return self.protect == "records"

    def domain(self) -> tuple[tuple[float, float], ...] | None:
        if not self.inputs_are_private:
            return None
        if not self.x_bounds:
            raise Refusal(
                "--protect records needs --x-bounds LO HI, once per input: bounds that the private "
                "inputs are known to lie in, chosen without looking at them."
            )
        ranges = read_ranges(self.x_bounds, self.input_names, "--x-bounds")
        try:
            return checked_domain(ranges)
        except ValueError as problem:
            raise refusal(problem) from None

    @property
    def input_names(self) -> list[str]:
        return split_names(self.inputs)

    @property
    def public_names(self) -> list[str]:
        """The columns that a plan may load."""
        names = self.input_names
        return names if self.groups in (None, *names) else [*names, str(self.groups)]

    def check(self) -> None:
        """Refuse what is wrong whatever the file holds."""
        self._check_classes()
        try:
            check_budget(self.epsilon, self.delta, pure=self.mechanism != "gaussian")
            if self.classes is None:
                check_bounds("--bounds", self.bounds)
        except ValueError as problem:
            raise refusal(problem) from None
        if self.inputs_are_private:
            self.domain()
            if self.groups is not None:
                raise Refusal("--groups is not available with --protect records.")
            if self.inducing is not None:
                raise Refusal(
                    "--inducing does not go with --protect records, which measures bins, whose "
                    "number does not grow with the rows: leave --inducing out."
                )
        elif self.x_bounds:
            raise Refusal("--x-bounds is for --protect records only: public inputs need no bounds.")
        if self.inducing is not None and self.groups is not None:
            raise Refusal("--groups does not go with --inducing: leave --inducing out.")
        if self.inducing is not None and self.inducing < 1:
            raise Refusal(f"--inducing must be at least 1, got {self.inducing}.")
        if self.noise_variance is not None and not 0 < self.noise_variance < math.inf:
            raise Refusal(f"--noise-variance must be positive, got {self.noise_variance:g}.")
        if self.output is not None and not self.output:
            raise Refusal("--output must name a column.")
        if self.groups is not None and not self.groups:
            raise Refusal("--groups must name a column.")
        if self.output in self.input_names:
            raise Refusal(f"The private output '{self.output}' cannot be among the --inputs.")
        if self.output is not None and self.output == self.groups:
            raise Refusal(f"The private output '{self.output}' cannot name the people.")

    @property
    def class_names(self) -> list[str] | None:
        """The declared classes, written as labels of a table are; None where outputs are numbers."""
        if self.classes is None:
            return None
        return written_classes(self.classes.split(","))

    def _check_classes(self) -> None:
        """Refuse classes that are none, and options that do not go with labels."""
        if self.class_names is None:
            if self.bounds is None:
                raise Refusal("Missing option '--bounds': give it, or --classes for labels.")
            return
        try:
            declared_classes(self.class_names)
        except ValueError as problem:
            raise refusal(problem) from None
        if not all(self.class_names):
            raise Refusal("--classes must be labels separated by commas, such as yes,no.")
        if self.bounds is not None:
            raise Refusal("--bounds does not go with --classes: labels have no bounds.")
        for name in NOT_OF_LABELS:
            if getattr(self, name) != getattr(ReleaseOptions, name):
                raise Refusal(f"--{name.replace('_', '-')} does not go with --classes.")

    def model(self) -> PrivateGPRegressor | PrivateGPClassifier:
        """The model that was asked for; reads the kernel and the targets."""
        shared: dict[str, Any] = {
            "kernel": None if self.kernel is None else read_kernel(self.kernel),
            "x_bounds": self.domain(),
            "targets": None
            if self.targets is None
            else read_targets(self.targets, self.input_names),
            "random_state": self.seed,
            **{name: getattr(self, name) for name in OF_ALL},
        }
        if self.classes is not None:
            return PrivateGPClassifier(classes=self.class_names, link=self.link, **shared)
        only = {name: getattr(self, name) for name in NOT_OF_LABELS}
        return PrivateGPRegressor(y_bounds=self.bounds, **shared, **only)

    def named(self, plan: Plan) -> Plan:
        return named(plan, tuple(self.input_names), self.groups)

    def public_columns(self) -> tuple[pl.DataFrame, Any]:
        """The inputs and, if asked for, person identifiers; the output column is never read."""
        source = open_table(self.data)
        return self._inputs_and_people(load(source, self.public_names), source)

    def public_rows(self) -> tuple[pl.DataFrame | FileRows | int, Any]:
        """All that a plan needs: as above, in parts if asked for, or the number of private records."""
        if self.inputs_are_private:
            return count_rows(open_table(self.data), self.input_names), None
        if self.inducing is not None:
            return file_rows(open_table(self.data), self.input_names), None
        return self.public_columns()

    def all_columns(self, output: str) -> tuple[pl.DataFrame, Any, Any]:
        """Inputs, person identifiers and outputs, every line of the table checked."""
        source, frame = load_whole(self.data, [*self.public_names, output])
        X, people = self._inputs_and_people(frame, source)
        if self.classes is not None:
            return X, people, outputs(frame, output, source, "classes")
        return X, people, output_column(frame, output, source)

    def _inputs_and_people(self, frame: pl.DataFrame, source: Source) -> tuple[pl.DataFrame, Any]:
        if self.inputs_are_private:
            return private_columns(frame, self.input_names, source), None
        X = input_columns(frame, self.input_names, source)
        return X, None if self.groups is None else identifiers(frame, self.groups, source)


@dataclass(frozen=True, kw_only=True)
class PlannedRequest(Request):
    """What a saved plan was made for, in the place of options."""

    @classmethod
    def of(cls, path: Path, data: Path, output: str, seed: int | None) -> Self:
        plan = open_stored(path, load_plan)
        made, asked = plan.made_for, plan.made_for.parameters
        if made.names is None or (plan.strategy.people is not None and made.groups is None):
            raise Refusal(f"'{path}' does not name the columns it is for: make it by privgp plan.")
        labels = asked.labels()
        if labels is not None and labels != list(asked.arguments()["classes"]):
            raise Refusal(f"'{path}' is for labels that are numbers: make it by privgp plan.")
        inducing = asked.inducing if asked.inducing is None else int(np.size(asked.inducing))
        bounds: Any = None if labels else asked.y_bounds
        return cls(
            plan=plan, plan_path=path, data=data, inputs=",".join(made.names), output=output,
            groups=made.groups, bounds=bounds,
            classes=None if labels is None else ",".join(labels), epsilon=asked.epsilon, delta=asked.delta,
            protect=asked.protect, mechanism=asked.mechanism, inducing=inducing, seed=seed,
        )  # fmt: skip

    @property
    def input_names(self) -> list[str]:
        return [*self.plan.made_for.names]

    def domain(self) -> Any:
        return self.plan.made_for.parameters.x_bounds

    @property
    def class_names(self) -> list[str] | None:
        labels: list[str] | None = self.plan.made_for.parameters.labels()
        return labels

    def model(self) -> Any:
        return estimator_for(self.plan.made_for.parameters).set_params(random_state=self.seed)


def make_plan(model: Any, X: pl.DataFrame | FileRows | int, people: Any) -> Plan:
    """The model's plan, from inputs in memory or in a file, or from the number of private records."""
    if model.protect == "records" and isinstance(X, pl.DataFrame):
        X = X.height
    with public_computation():
        plan: Plan = plan_rows(model, X) if isinstance(X, FileRows) else model.plan(X, people)
        if not math.isfinite(plan.starting_error):
            raise ArithmeticError
    return plan


@contextmanager
def public_computation(**options: str) -> Iterator[None]:
    """Pass on, in one sentence, what a computation without private values refuses. ``options``:
    those of this command whose names differ from the usual ones."""
    try:
        with np.errstate(all="ignore"):
            yield
    except (np.linalg.LinAlgError, ArithmeticError):
        raise Failure(TOO_EXTREME) from None
    except (ValueError, NotImplementedError) as problem:
        if "not finite" in str(problem):  # the inputs are, so it is what was computed from them
            raise Failure(TOO_EXTREME) from None
        raise refusal(problem, **options) from None
