"""Two stages within one budget: a first curve, and then what outputs are above or below it.

A share of the budget measures sums of outputs, as any plan does. From these numbers a curve f1 and the
scatter of outputs about it are learned. The rest of the budget measures the same sums of the residuals
``y - f1(x)``, clipped to a few learned stds, so that one output moves a sum by twice that width and not by
the whole declared range. Proof: docs/proofs/residuals.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import numpy as np

from privgp.gp.priors import NOISE_STD, Prior
from privgp.plan.strategy import OutputSums, Strategy, noise_of
from privgp.privacy.noise import Noise
from privgp.privacy.sensitivity import WHOLE
from privgp.privacy.stages import Budgets, share_out
from privgp.types import Within

if TYPE_CHECKING:
    from privgp.plan.build import Budget, Question

FIRST_SHARE = 0.25
REACH = 2.5  # stds of the outputs about the first curve, at least
REACHES = np.linspace(REACH, 6.0, 36)
SMOOTHED = 0.5  # noise on the curve over that on the mean of a cell
LEAST = 1000.0  # people times epsilon: below it the first curve tells too little
WORTH_A_PASS = 0.95  # error over that of one stage for which many rows are read once more
QUANTILES = np.linspace(-1.5, 1.5, 7)  # of the prior of the scatter, in its stds


@dataclass(frozen=True)
class Residuals:
    """How a budget is divided between a first curve and the residuals about it.

    Attributes
    ----------
    share : float
        The first stage's share of the budget.
    reach : float
        Residuals are clipped to this many learned stds.

    """

    share: Annotated[float, Within(0.05, 0.95)] = FIRST_SHARE
    reach: Annotated[float, Within(1.0, 10.0)] = REACH

    def budgets(self, law: str, epsilon: float, delta: float) -> Budgets:
        """(epsilon, delta) of both stages, which compose to no more than the whole."""
        return share_out(law, epsilon, delta, (self.share, 1.0 - self.share))

    def noises(self, strategy: Strategy, epsilon: float, delta: float) -> tuple[Noise, ...]:
        """The noise of both stages, for numbers scaled to [-1, 1] in each."""
        budgets = self.budgets(strategy.law, epsilon, delta)
        return tuple(noise_of(strategy, *budget) for budget in budgets)

    def width(self, std: float, most: float) -> float:
        """Where residuals are clipped. ``std``: learned, of outputs about the first curve; ``most``: half
        the width of the bounds."""
        return float(np.clip(self.reach * std, 1e-6 * most, most))

    def noise_of_both(
        self, whole: Noise, stages: tuple[Noise, ...], scatters: list[float], rows: float = 0.0
    ) -> float:
        """The noise on a sum that both stages leave, over that of one stage: the mean of logarithms.

        Parameters
        ----------
        whole : Noise
            Of one stage with the whole budget.
        stages : tuple of Noise
            Of both stages.
        scatters : list of float
            Stds of outputs about the function, over half the width of the bounds, equally likely.
        rows : float
            How many outputs a sum holds, whose scatter counts as noise too.

        """
        first, second = ((whole.std / each.std) ** 2 for each in stages)
        logs = []
        for scatter in scatters:
            left = 1.0 / (first + second / self.width(scatter, 1.0) ** 2)
            own = rows * min(scatter, 1.0) ** 2 / whole.std**2
            logs.append(math.log((left + own) / (1.0 + own)))
        return math.exp(0.5 * float(np.mean(logs)))


def reach_for(noise: float, rows: float) -> float:
    """How many stds residuals are clipped to, so that noise and what is cut off are least together.

    Outputs that are skewed like exponential ones lose ``exp(-r - 1)`` stds of their mean by clipping at r
    stds. The more rows a sum holds, the less noise its mean has, and the more that counts.

    Parameters
    ----------
    noise : float
        Std of the second stage's noise on a sum of numbers in [-1, 1].
    rows : float
        How many outputs a sum holds.

    """
    left = np.square(SMOOTHED * noise / rows * REACHES) + np.exp(-2.0 * (REACHES + 1.0))
    return float(REACHES[np.argmin(left)])


def scatters_of(prior: Prior, half_width: float) -> list[float]:
    """Stds of outputs about the function that the prior holds for plausible, over ``half_width``."""
    std = math.sqrt(prior.start.noise_variance) / half_width
    return [std * math.exp(NOISE_STD * z * prior.noise_free) for z in QUANTILES]


def residuals_for(
    question: Question, budget: Budget, strategy: OutputSums, prior: Prior
) -> Residuals | None:
    """Two stages where they were asked for, or are expected to gain; None: one stage."""
    possible = (
        question.reconstruct == question.objective == "posterior"
        and question.exposures is None
        and question.squares
        and question.classes == 2
        and question.change >= WHOLE
    )
    if question.residuals == "never" or not possible:
        return None
    people = float(strategy.rows if strategy.people_count is None else strategy.people_count)
    whole, first = budget.noise_of(strategy), Residuals()
    stages, each = (
        first.noises(strategy, budget.epsilon, budget.delta),
        people / len(strategy.matrix),
    )
    found = replace(first, reach=reach_for(stages[1].std, each))
    if question.residuals == "always":
        return found
    if not question.adapts or people * budget.epsilon < LEAST:
        return None
    scatters = scatters_of(prior, question.half_width)
    noise, error = (found.noise_of_both(whole, stages, scatters, rows) for rows in (0.0, each))
    gains = noise < 1.0 and error < (1.0 if strategy.tally is None else WORTH_A_PASS)
    return found if gains else None
