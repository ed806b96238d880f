"""What is kept of one private function, whether of outputs or of records."""

from dataclasses import dataclass, field, replace
from typing import Annotated, ClassVar, TypeVar

import numpy as np

from privgp.gp.kernels.evaluate import check_kernel
from privgp.privacy.budget import check_budget
from privgp.privacy.noise import SAME_NOISE, GaussianNoise
from privgp.question.rules import check_bounds, check_choice
from privgp.storage.archive import require
from privgp.types import Array, Pair, Positive, Seed, Share
from privgp.vault.measure import add_noise
from privgp.vault.states.kept import OTHER_PROMISE, Contents


@dataclass(frozen=True, kw_only=True)
class FunctionDraws:
    """The draws of one function, and the numbers needed to go on: all of them are public here.

    Attributes
    ----------
    noise : for the most coordinates there may be
    seed : seed of a simulation; None for the noise that protects
    points : (asked, columns); through inducing inputs there are none
    answers : (asked,), in units of y
    numbers : the noisy coordinates

    """

    noise: GaussianNoise
    seed: Seed | None
    points: Annotated[Array, "points columns"]
    answers: Annotated[Array, "points"] = field(default_factory=lambda: np.empty(0))
    numbers: Annotated[Array, "*"] = field(default_factory=lambda: np.empty(0), repr=False)

    GROWS: ClassVar[tuple[str, ...]] = ("points", "answers", "numbers")

    def with_noise(self, exact: Array) -> Array:
        """The numbers, and further coordinates with their noise.

        A simulation's noise is on no lattice, with one stream per coordinate.

        Parameters
        ----------
        exact
            (new,), private coordinates.

        Raises
        ------
        ValueError
            No coordinates are left.

        """
        first, count = len(self.numbers), len(exact)
        if first + count > self.noise.size:
            raise ValueError("this function has no coordinates left.")
        if self.seed is None:
            drawn = add_noise(exact, replace(self.noise, size=count))
        else:  # one stream per coordinate: a simulation does not depend on batches or restarts
            streams = (np.random.default_rng([self.seed, first + i]) for i in range(count))
            normals = np.array([stream.standard_normal() for stream in streams])
            drawn = exact + self.noise.std * normals
        return np.concatenate([self.numbers, drawn])


Draws = TypeVar("Draws", bound=FunctionDraws)


@dataclass(frozen=True)
class FunctionContents(Contents):
    """All there is to a function.

    Attributes
    ----------
    y_bounds : declared
    epsilon, delta : the budget of all answers together
    sensitivity : name of the bound that was chosen
    dominance : if it was declared
    norm : half the sensitivity for outputs scaled to [-1, 1]

    """

    y_bounds: Pair
    epsilon: Positive
    delta: Share
    sensitivity: str
    dominance: Positive | None
    norm: Positive

    PROTECT: ClassVar[str]
    SENSITIVITIES: ClassVar[tuple[str, ...]]

    @property
    def most(self) -> float:
        """How many points are ever answered: one coordinate each."""
        return float(self.draws.noise.size)

    def parameters(self) -> dict[str, object]:
        """The arguments that an estimator of these contents was made with."""
        asked = ("y_bounds", "epsilon", "delta", "sensitivity", "dominance")
        return {
            **{name: getattr(self, name) for name in asked},
            "protect": self.PROTECT,
            "domain": self.model.domain,
            "kernel": self.model.kernel,
            "noise_variance": self._noise(),
            "inducing": self.model.nodes,
            "random_state": self.draws.seed,
        }

    def _noise(self) -> float | Array:
        """The noise variance, one number per distinct input where it differs by row."""
        each: Array | None = getattr(self.model, "noise_variances", None)
        return float(self.model.noise_variance) if each is None else each

    def in_units(self, scaled: Array) -> Array:
        """From outputs scaled to [-1, 1] to units of y."""
        low, high = self.y_bounds
        return (0.5 * high + 0.5 * low) + (0.5 * high - 0.5 * low) * scaled

    def with_answers(self, draws: Draws, points: Array, lower: Array) -> Draws:
        """The draws with the answers of new points.

        Parameters
        ----------
        draws
            Draws that end with the numbers of the new points.
        points
            (new, columns).
        lower
            (new, old + new), rows of L.

        """
        answers = self.in_units(lower @ draws.numbers)
        return replace(
            draws,
            points=np.vstack([draws.points, points]),
            answers=np.concatenate([draws.answers, answers]),
        )

    def check(self) -> None:
        """Refuse parts that do not belong together: bounds, budget, kernel, guarantee and noise."""
        super().check()
        check_bounds("bounds", self.y_bounds)
        check_budget(self.epsilon, self.delta)
        check_choice("sensitivity", self.sensitivity, self.SENSITIVITIES)
        check_kernel(self.model.kernel, self.model.columns)
        promised = (self.guarantee.epsilon, self.guarantee.delta)
        require(promised == (self.epsilon, self.delta), OTHER_PROMISE)
        held, needed = self.draws.noise, self.model.noise(self.epsilon, self.delta, self.norm)
        require(self.guarantee.events == (held.event,), OTHER_PROMISE)
        require(_is_enough(held, needed), "its noise is not that of its budget")


def _is_enough(held: GaussianNoise, needed: GaussianNoise) -> bool:
    """Whether noise is what a budget needs, or more; the last digits are those of a machine."""
    ratios = (
        needed.std / held.std,
        held.multiplier / needed.multiplier,
        needed.delta_slack / held.delta_slack,
    )
    same = (held.size, held.exponent) == (needed.size, needed.exponent)
    return same and max(ratios) <= 1.0 + SAME_NOISE
