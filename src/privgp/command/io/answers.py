"""What is written of a release at new rows: a function with its error bars, or probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import is_classifier

from privgp.command.errors import Refusal, listed
from privgp.command.io.columns import answering, in_blocks
from privgp.command.io.screen import Step
from privgp.types import Array

BLOCK = 4096


@dataclass(frozen=True)
class OfFunction:
    """Mean, std and interval of a function, or of new outputs."""

    of_labels: ClassVar[bool] = False
    model: Any

    @property
    def names(self) -> tuple[str, ...]:
        return "mean", "std", "low", "high"

    def steps(self, rows: int) -> int:
        return -(-rows // BLOCK)

    def at(self, X: Array, step: Step, coverage: float, observation: bool) -> list[Any]:
        """A column for every name, by blocks of rows, so that any number fits into memory."""
        parts = []
        for rows in in_blocks(self.model, X, BLOCK, step, "Predicting row"):
            with answering():
                parts.append(self._block(rows, coverage, observation))
        columns = [np.concatenate(each) for each in zip(*parts, strict=True)]
        if not all(np.all(np.isfinite(each)) for each in columns if each.dtype.kind == "f"):
            raise Refusal("Some rows are too far away: their predictions would overflow.")
        return columns

    def _block(self, rows: Any, coverage: float, observation: bool) -> list[Any]:
        spread = self.model.predict(rows, return_std=True, observation=observation)
        return [*spread, *self.model.interval(rows, coverage, observation=observation)]

    def plot(self, observation: bool) -> Any:
        return self.model.plot(observation=observation)

    def told(self, names: Sequence[str], observation: bool) -> str:
        what = "a new output" if observation else "the function"
        return f"{names[0]}, and {names[1]} of {what}."

    def interval(self, names: Sequence[str]) -> str:
        return f"From {names[2]} to {names[3]} is its interval"

    def described(self) -> list[str]:
        return [
            f"Variance of an output about the function: {self.model.noise_variance_:.4g}.",
            "Error bars: 'privgp predict' gives intervals of the function, of new outputs with "
            "--observation.",
        ]


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

    def plot(self, observation: bool) -> Any:
        return self.model.plot()

    def told(self, names: Sequence[str], observation: bool) -> str:
        count = len(self.classes)
        return f"{names[0]}, the most probable class, and {listed(names[1 : 1 + count])}."

    def interval(self, names: Sequence[str]) -> str:
        count = len(self.classes)
        return f"From {names[1 + count]} to {names[1 + 2 * count]}, and so on, are their intervals"

    def described(self) -> list[str]:
        return [
            f"Classes: {listed(self.classes)}.",
            "Error bars: 'privgp predict' gives the probability of every class and its interval.",
        ]


def answer_of(model: Any) -> OfFunction:
    """What is written of this model."""
    return OfLabels(model) if is_classifier(model) else OfFunction(model)
