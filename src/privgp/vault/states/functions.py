"""What is kept of one private function, whether of outputs or of records."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

import numpy as np

from privgp.gp.kernels.evaluate import check_kernel
from privgp.plan.inputs.arguments import check_bounds, check_choice
from privgp.privacy.budget import check_budget
from privgp.privacy.noise import GaussianNoise
from privgp.storage.archive import DamagedFile
from privgp.types import Array, Pair, Positive, Share
from privgp.vault.noise import add_noise
from privgp.vault.states.kept import OTHER_PROMISE, Contents

Draws = TypeVar("Draws")


@dataclass(frozen=True)
class FunctionContents(Contents):
    """All there is to a function; ``norm``: half its sensitivity for outputs scaled to [-1, 1]."""

    y_bounds: Pair
    epsilon: Positive
    delta: Share
    sensitivity: str
    dominance: Positive | None
    norm: Positive

    PROTECT: ClassVar[str]
    SENSITIVITIES: ClassVar[tuple[str, ...]]
    ADVICE: ClassVar[str]
    COPIED = (
        "a fitted PrivateFunction cannot be copied or pickled: two copies would draw different noise "
        "for one function. Use save_state and load_state."
    )
    OTHER_PROCESS = (
        "this function belongs to another process, which would draw it otherwise: give it a state "
        "file and load that with load_state."
    )

    @property
    def most(self) -> float:
        return float(self.draws.noise.size)

    def parameters(self) -> dict[str, Any]:
        asked = ("y_bounds", "epsilon", "delta", "sensitivity", "dominance")
        return {
            **{name: getattr(self, name) for name in asked},
            "protect": self.PROTECT,
            "domain": self.model.domain,
            "kernel": self.model.kernel,
            "noise_variance": self.model.noise_variance,
            "inducing": self.model.nodes,
            "random_state": self.draws.seed,
        }

    def in_units(self, scaled: Array) -> Array:
        """From outputs scaled to [-1, 1] to units of y."""
        low, high = self.y_bounds
        return (0.5 * high + 0.5 * low) + (0.5 * high - 0.5 * low) * scaled

    def with_answers(self, draws: Draws, points: Array, lower: Array) -> Draws:
        """Draws whose last numbers are those of new points, of which ``lower`` are the rows of L."""
        answers = self.in_units(lower @ draws.numbers)  # type: ignore[attr-defined]
        return replace(  # type: ignore[type-var]
            draws,
            points=np.vstack([self.draws.points, points]),
            answers=np.concatenate([self.draws.answers, answers]),
        )

    def too_many(self, most: float, answered: int) -> str:
        return (
            f"a function answers at most {most:,.0f} points, and this one has answered "
            f"{answered:,}: ask for fewer" + self.ADVICE
        )

    def second_file(self, path: str) -> str:
        return f"this function is kept in {path!r}: a second file would fall behind."

    def check(self) -> None:
        super().check()
        check_bounds("bounds", self.y_bounds)
        check_budget(self.epsilon, self.delta)
        check_choice("sensitivity", self.sensitivity, self.SENSITIVITIES)
        check_kernel(self.model.kernel, self.model.columns)
        if (self.guarantee.epsilon, self.guarantee.delta) != (self.epsilon, self.delta):
            raise DamagedFile(OTHER_PROMISE)


def with_noise(exact: Array, noise: GaussianNoise, seed: int | None, first: int) -> Array:
    """Coordinates from the ``first`` on with their noise; that of simulations is on no lattice."""
    if seed is None:
        return add_noise(exact, replace(noise, size=len(exact)))
    # one stream per coordinate: a simulation does not depend on batches or restarts
    streams = (np.random.default_rng([seed, first + i]) for i in range(len(exact)))
    return exact + noise.std * np.array([stream.standard_normal() for stream in streams])
