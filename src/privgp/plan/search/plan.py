"""What a search's budget buys, before anything private is read."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from privgp.gp.surrogate import Hyperprior
from privgp.plan.search.space import Space
from privgp.privacy.kusner import KusnerConstants
from privgp.privacy.noise import GaussianNoise
from privgp.types import Array

CHANCE = 3.0  # theorems hold but for probability delta + e^-3, 5%


@dataclass(frozen=True)
class SearchPlan:
    """A search that is ready to be made, with the noise it will have. All of it is public.

    ``rows``: the number of validation records
    ``width``: of the loss bounds
    ``shares``: of the budget, one per measurement
    ``has_final``: whether the last one measures the chosen setting once more
    ``noise``: one per measurement, of the mean loss scaled to [0, 1]
    ``constants``, ``prior``: of Kusner's algorithms
    ``prior_mean``, ``prior_std``: of the scores, as Kusner's algorithms assume
    """

    method: str
    epsilon: float
    delta: float
    rows: int
    space: Space = field(repr=False)
    width: float
    shares: tuple[float, ...] = ()
    has_final: bool = False
    noise: tuple[GaussianNoise, ...] = field(default=(), repr=False)
    constants: KusnerConstants | None = None
    prior: Hyperprior | None = field(default=None, repr=False)
    prior_mean: float = 0.0
    prior_std: float = 1.0

    @property
    def noise_std(self) -> Array:
        """Std of the noise of every measured score, in units of the score."""
        return np.array([each.std * self.width for each in self.noise])

    @property
    def score_std(self) -> float:
        """Std of the error of the reported score that is due to privacy alone.

        Measured: of the last measurement. Kusner: of the Laplace noise.
        """
        if self.constants is not None:
            return math.sqrt(2.0) * self.constants.laplace_scale * self.prior_std
        return float(self.noise_std[-1])

    def theorem_bounds(self, a: float = CHANCE) -> dict[str, float]:
        """The utility theorems of Kusner's algorithms as numbers, in units of the score.

        Each holds but for probability delta + e^-a. Empty for the measured search.
        ``setting``: how far the posterior mean at the chosen setting may fall short (theorem 2)
        ``value``: how far the released value may be from the best (theorems 4 and 6)
        """
        if self.constants is None:
            return {}
        return {
            "setting": self.constants.setting_bound(a) * self.prior_std,
            "value": self.constants.value_bound(a) * self.prior_std,
        }

    def describe(self) -> str:
        spread = "" if self.space.whole else " spread over the space"
        first = (
            f"({self.epsilon:g}, {self.delta:g}) for {self.rows:,} validation records; "
            f"{len(self.space):,} settings{spread} of {', '.join(self.space.names)}."
        )
        lines = self._measured_lines() if self.constants is None else self._kusner_lines()
        return "\n".join([first, *lines])

    def _measured_lines(self) -> list[str]:
        tried = self.noise_std[: len(self.noise) - self.has_final]
        low, high = tried.min(), tried.max()
        stds = f"{low:.3g}" if high < 1.001 * low else f"{low:.3g} to {high:.3g}"
        lines = [f"{len(tried)} scores are measured, each with noise of std {stds}."]
        if self.has_final:
            lines.append(
                f"The chosen setting is then measured once more, with noise of std "
                f"{self.score_std:.3g}: that is the reported score."
            )
        return lines

    def _kusner_lines(self) -> list[str]:
        assert self.constants is not None
        c, bounds = self.constants, self.theorem_bounds()
        certainty = 1.0 - c.delta - math.exp(-CHANCE)
        return [
            f"{c.steps} scores are computed; the setting and its score get epsilon {c.epsilon:g} and "
            f"delta {c.delta:g} each.",
            f"The score gets Laplace noise of std {self.score_std:.3g}.",
            f"The theorems allow, with probability {certainty:.3f}, a setting up to "
            f"{bounds['setting']:.3g} worse than the best and a score up to {bounds['value']:.3g} off.",
            "The promise rests on the assumption that the scores of all datasets are draws from one "
            "known Gaussian process.",
        ]
