"""What a search's budget buys, before anything private is read."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from privgp.plan.search.space import Space
from privgp.privacy.kusner import KusnerConstants
from privgp.privacy.noise import GaussianNoise
from privgp.types import Array

CHANCE = 3.0  # theorems hold but for probability delta + e^-3, 5%


@dataclass(frozen=True)
class SearchPlan:
    """A search that is ready to be made, with the noise it will have. All of it is public.

    ``rows``: validation records; ``shares``: of the budget, one per step, the last of the chosen
    setting; ``noise``: one per step, of the mean loss scaled to [0, 1]; ``width``: of the loss bounds;
    ``unit_std``: the prior's std of Kusner's algorithms, in units of the score.
    """

    method: str
    epsilon: float
    delta: float
    rows: int
    space: Space = field(repr=False)
    shares: tuple[float, ...] = ()
    has_final: bool = False
    noise: tuple[GaussianNoise, ...] = field(default=(), repr=False)
    width: float = 1.0
    constants: KusnerConstants | None = None
    unit_std: float = 1.0

    @property
    def noise_std(self) -> Array:
        """Std of the noise of every measured score, (steps,), in units of the score."""
        return np.array([step.std * self.width for step in self.noise])

    @property
    def score_std(self) -> float:
        """Std of the error of the reported score that is due to privacy alone.

        Measured: the noise of the last measurement (without one, of a single step). Kusner: the std
        of the Laplace noise.
        """
        if self.constants is not None:
            return math.sqrt(2.0) * self.constants.laplace_scale * self.unit_std
        return float(self.noise_std[-1])

    def theorem_bounds(self, a: float = CHANCE) -> dict[str, float]:
        """The utility theorems of Kusner's algorithms as numbers, in units of the score.

        Each holds but for probability delta + e^-a: ``setting`` (theorem 2), how far the posterior
        mean at the chosen setting may fall short of the best; ``value`` (4 or 6), how far the
        released value may be from it. Empty for the measured search, which has exact noise instead.
        """
        if self.constants is None:
            return {}
        return {
            "setting": self.constants.setting_bound(a) * self.unit_std,
            "value": self.constants.value_bound(a) * self.unit_std,
        }

    def describe(self) -> str:
        settings = f"{len(self.space):,} settings" + (
            "" if self.space.whole else " spread over the space"
        )
        lines = [
            f"({self.epsilon:g}, {self.delta:g}) for {self.rows:,} validation records; {settings} of "
            f"{', '.join(self.space.names)}."
        ]
        if self.constants is None:
            steps = self.noise_std[: len(self.noise) - self.has_final]
            low, high = steps.min(), steps.max()
            range_ = f"{low:.3g}" if high < 1.001 * low else f"{low:.3g} to {high:.3g}"
            lines.append(f"{len(steps)} scores are measured, each with noise of std {range_}.")
            if self.has_final:
                lines.append(
                    f"The chosen setting is then measured once more, with noise of std "
                    f"{self.score_std:.3g}: that is the reported score."
                )
            return "\n".join(lines)
        c, bounds = self.constants, self.theorem_bounds()
        certainty = 1.0 - c.delta - math.exp(-CHANCE)
        lines += [
            f"{c.steps} scores are computed; the setting and its score get epsilon {c.epsilon:g} and "
            f"delta {c.delta:g} each.",
            f"The score gets Laplace noise of std {self.score_std:.3g}.",
            f"The theorems allow, with probability {certainty:.3f}, a setting up to "
            f"{bounds['setting']:.3g} worse than the best and a score up to {bounds['value']:.3g} off.",
            "The promise rests on the assumption that the scores of all datasets are draws from one "
            "known Gaussian process.",
        ]
        return "\n".join(lines)
