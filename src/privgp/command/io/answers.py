"""What is written of a release at new rows: a function with its error bars, or probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from polars import DataFrame
from sklearn.base import is_classifier

from privgp.command.errors import Refusal, list_names
from privgp.command.io.columns import in_blocks, refuse_questions
from privgp.command.io.kernel_text import write_kernel
from privgp.command.io.screen import Step
from privgp.release.release import Release

BLOCK = 4096
ERROR_BARS = "Error bars: 'privgp predict' gives intervals of the function, of new outputs with --observation."


@dataclass(frozen=True)
class OfFunction:
    """Mean, std and interval of a function, or of new outputs."""

    of_labels: ClassVar[bool] = False
    model: Any

    @property
    def names(self) -> tuple[str, ...]:
        return "mean", "std", "low", "high"

    @property
    def of_rates(self) -> bool:
        return bool(self.model.likelihood == "poisson")

    def steps(self, rows: int) -> int:
        return -(-rows // BLOCK)

    def at(
        self,
        X: Any,
        step: Step,
        coverage: float,
        observation: bool,
        *,
        simultaneous: bool = False,
    ) -> list[Any]:
        """A column for every name, by blocks of rows, so that any number fits into memory; one block
        where intervals are those of all rows at once."""
        parts = []
        size = max(X.height, 1) if simultaneous else BLOCK
        for rows in in_blocks(self.model._released.names, X, size, step, "Predicting row"):
            with refuse_questions():
                if simultaneous:
                    parts.append(self._band(rows, coverage))
                else:
                    parts.append(self._block(rows, coverage, observation))
        columns = [np.concatenate(each) for each in zip(*parts, strict=True)]
        if not all(np.all(np.isfinite(each)) for each in columns if each.dtype.kind == "f"):
            raise Refusal("Some rows are too far away: their predictions would overflow.")
        return columns

    def _block(self, rows: Any, coverage: float, observation: bool) -> list[Any]:
        spread = self.model.predict(rows, return_std=True, observation=observation)
        return [*spread, *self.model.interval(rows, coverage, observation=observation)]

    def _band(self, rows: Any, coverage: float) -> list[Any]:
        """The same with intervals that hold the function at all rows at once."""
        frame = DataFrame(rows) if self.model._released.names is not None else rows
        found = self.model.predict_frame(frame, coverage, simultaneous=True)
        return [found[name].to_numpy() for name in self.names]

    def plot(self, observation: bool, points: Any = None) -> Any:
        with refuse_questions():
            return self.model.plot(observation=observation, points=points)

    def describe_columns(self, names: Sequence[str], observation: bool) -> str:
        what = "a new output" if observation else "the rate" if self.of_rates else "the function"
        return f"{names[0]}, and {names[1]} of {what}."

    def interval(self, names: Sequence[str]) -> str:
        return f"From {names[2]} to {names[3]} is its interval"

    def map_columns(self, names: Sequence[str]) -> dict[str, str]:
        """The columns whose contours make a map, by what is shown."""
        told = self.model.output_ or {}
        says_it = str(told.get("units")).startswith("per ")
        per = " per unit of exposure" if self.of_rates and not says_it else ""
        return {f"{told.get('name', 'output')}{per}": names[0]}

    def facts(self, names: Sequence[str]) -> dict[str, Any]:
        """The columns' names for a program."""
        return dict(zip(self.names, names, strict=True))

    def describe_fit(self) -> list[str]:
        return [*describe_model(self.model._released), ERROR_BARS]


@dataclass(frozen=True)
class OfSeveral(OfFunction):
    """The same of every output."""

    @property
    def names(self) -> tuple[str, ...]:
        outputs, each = self.model.output_names_, super().names
        return tuple(f"{output}_{name}" for output in outputs for name in each)

    def _block(self, rows: Any, coverage: float, observation: bool) -> list[Any]:
        each = np.array(super()._block(rows, coverage, observation))  # (4, rows, outputs)
        return [*each.transpose(2, 0, 1).reshape(-1, each.shape[1])]

    def describe_columns(self, names: Sequence[str], observation: bool) -> str:
        others = list_names(self.model.output_names_[1:])
        return f"{super().describe_columns(names, observation)[:-1]}, and so for {others}."

    def map_columns(self, names: Sequence[str]) -> dict[str, str]:
        return dict(zip(self.model.output_names_, names[::4], strict=True))

    def facts(self, names: Sequence[str]) -> dict[str, Any]:
        return {name: [*names[place::4]] for place, name in enumerate(super().names)}

    def describe_fit(self) -> list[str]:
        each = zip(self.model._released.each, self.model.output_names_, strict=True)
        return [*(line for one, name in each for line in describe_model(one, name)), ERROR_BARS]


@dataclass(frozen=True)
class OfLabels(OfFunction):
    """The most probable class, and the probability of each with its interval."""

    of_labels: ClassVar[bool] = True

    @property
    def classes(self) -> list[str]:
        return [str(each) for each in self.model.classes_]

    @property
    def names(self) -> tuple[str, ...]:
        kinds = ("probability", "low", "high")
        return "label", *(f"{kind}_{each}" for kind in kinds for each in self.classes)

    def _block(self, rows: Any, coverage: float, observation: bool) -> list[Any]:
        probabilities = self.model.predict_proba(rows)
        label = self.model.classes_[np.argmax(probabilities, axis=1)]
        return [label, *probabilities.T, *np.hstack(self.model.interval(rows, coverage)).T]

    def plot(self, observation: bool, points: Any = None) -> Any:
        with refuse_questions():
            return self.model.plot(points=points)

    def describe_columns(self, names: Sequence[str], observation: bool) -> str:
        count = len(self.classes)
        return f"{names[0]}, the most probable class, and {list_names(names[1 : 1 + count])}."

    def map_columns(self, names: Sequence[str]) -> dict[str, str]:
        columns = zip(self.classes, names[1:], strict=False)
        return {f"probability of {label}": column for label, column in columns}

    def interval(self, names: Sequence[str]) -> str:
        count = len(self.classes)
        return f"From {names[1 + count]} to {names[1 + 2 * count]}, and so on, are their intervals"

    def describe_fit(self) -> list[str]:
        return [
            kernel_line(self.model._released),
            f"Classes: {list_names(self.classes)}.",
            "Error bars: 'privgp predict' gives the probability of every class and its interval.",
        ]


def answer_of(model: Any) -> OfFunction:
    """What is written of this model."""
    if is_classifier(model):
        return OfLabels(model)
    return OfFunction(model) if model._released.output_names is None else OfSeveral(model)


def kernel_line(release: Release, of: str = "") -> str:
    kernel, inputs = release.parts[0].models[0].kernel, release.parameters.columns
    kernel = kernel if inputs is None else inputs.narrow_kernel(kernel)
    return f"Most plausible kernel{of}: {write_kernel(kernel, figures=4)}."


def describe_model(release: Release, output: str = "") -> list[str]:
    """What was learned of an output; ``output``: its name where there are several."""
    scattered = f"{output or 'an output'} about the function"
    (part,) = release.parts
    if part.unit_rate is not None:
        scattered = "a count over its mean"
    return [
        kernel_line(release, f" of {output}" if output else ""),
        f"Variance of {scattered}: {part.noise_variance:.4g}.",
    ]
