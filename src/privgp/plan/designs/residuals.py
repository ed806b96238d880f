"""Two stages within one budget: a first curve, and then what outputs are above or below it.

A share of the budget measures sums of outputs, as any plan does. From these numbers a curve f1 and the
scatter of outputs about it are learned. The rest of the budget measures the same sums of the residuals
``y - f1(x)``, clipped to a few learned stds, so that one output moves a sum by twice that width and not by
the whole declared range. Proof: docs/proofs/residuals.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
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
REACH = 2.5  # stds of the outputs about the first curve
LEAST = 1000.0  # people times epsilon: below it the first curve tells too little
MANY_ROWS = (
    "residuals='always' needs rows in memory, at most 20,000: rows that are read in blocks are read once "
    "(docs/proofs/residuals.md). Leave residuals='auto'."
)
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
        self, whole: Noise, stages: tuple[Noise, ...], scatters: list[float]
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

        """
        first, second = ((whole.std / each.std) ** 2 for each in stages)
        widths = [self.width(each, 1.0) for each in scatters]
        return math.exp(-0.5 * float(np.mean([math.log(first + second / w**2) for w in widths])))


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
    if strategy.tally is not None:  # its sums are made in one pass
        if question.residuals == "always":
            raise ValueError(MANY_ROWS)
        return None
    found = Residuals()
    if question.residuals == "always":
        return found
    people = strategy.rows if strategy.people is None else int(strategy.people.max()) + 1
    if not question.adapts or people * budget.epsilon < LEAST:
        return None
    whole, stages = budget.noise_of(strategy), found.noises(strategy, budget.epsilon, budget.delta)
    left = found.noise_of_both(whole, stages, scatters_of(prior, question.half_width))
    return found if left < 1.0 else None
