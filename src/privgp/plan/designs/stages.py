"""A budget for the same rows, divided between several measurements of them.

Gaussian noise loses nothing: with shares s_k of ``mu^2`` all stages tell as much as one measurement.
Pure epsilons add up, but information is proportional to their squares: ``sum s_k^2`` of it remains.

Two stages within one fit: a share of the budget measures sums of outputs, neighbouring ones added up, as
it can distinguish fewer of them. From these numbers a curve f1 and the scatter of outputs about it are
learned. The rest of the budget measures the sums of the residuals ``y - f1(x)``, clipped to a few learned
stds, so that one output moves a sum by twice that width and not by the whole declared range. Proof:
docs/proofs/residuals.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import TYPE_CHECKING, Annotated

import numpy as np

from privgp.gp.arithmetic import add_rows, one_thread
from privgp.gp.priors import NOISE_STD, Prior, spreads
from privgp.plan.cells import halve
from privgp.plan.strategy import OutputSums, noise_of
from privgp.privacy.budget import check_budget, gaussian_epsilon, gaussian_multiplier
from privgp.privacy.noise import GAUSSIAN, PURE, Noise
from privgp.types import Array, Integers, Within, added_field

if TYPE_CHECKING:
    from privgp.plan.build import Budget, Question


Budgets = tuple[tuple[float, float], ...]
BELOW = 1.0 - 1e-6  # so that lattice and rounding stay within the total


@dataclass(frozen=True)
class Stages:
    """How to measure the same rows several times within one budget.

    Attributes
    ----------
    mechanism : the noise distribution to use in all stages
    budgets : (epsilon, delta) of each, for ``fit`` and then ``refine``
    errors : by noise distribution, the expected error once all is spent if every stage measures
        the same; a later one that uses the first release does better

    """

    mechanism: str
    budgets: Budgets
    errors: dict[str, float]

    def describe(self) -> str:
        """The stages and the expected errors in a few sentences. Nothing private is in them."""
        each = ", then ".join(f"epsilon {e:.4g}, delta {d:.3g}" for e, d in self.budgets)
        told = [f"{law.capitalize()} noise: {error:.4g}" for law, error in self.errors.items()]
        return (
            f"Measure with {self.mechanism.capitalize()} noise: {each}.\n"
            f"Expected error once all is spent, if every stage measured the same: {'; '.join(told)}.\n"
            "Nothing has been spent: this needs no output."
        )


def check_shares(shares: object) -> tuple[float, ...]:
    """Positive shares of a budget, scaled to sum to 1; ValueError unless there are two or more."""
    given = tuple(shares) if isinstance(shares, Sequence) else ()
    plain = all(isinstance(s, Real) and 0.0 < float(s) < math.inf for s in given)
    if len(given) < 2 or not plain:
        raise ValueError(f"shares must be two or more positive numbers, got {shares!r}.")
    total = math.fsum(map(float, given))
    return tuple(float(s) / total for s in given)


def information_share(law: str, shares: Sequence[float]) -> float:
    """The epsilon at which one measurement tells what all stages do, as a share of the total.

    Parameters
    ----------
    law
        The noise distribution; Gaussian noise loses nothing.
    shares
        Shares of the stages, adding up to 1.

    """
    return math.hypot(*shares) if law in PURE else 1.0


def share_out(law: str, epsilon: float, delta: float, shares: Sequence[float]) -> Budgets:
    """Budgets of the stages that compose to at most (epsilon, delta).

    Parameters
    ----------
    law
        The noise distribution of all stages.
    epsilon, delta
        The total.
    shares
        Shares of mu^2 for Gaussian noise, of epsilon for pure noise.

    Returns
    -------
    tuple of (epsilon, delta)
        One per share; with pure noise every delta is 0.

    """
    check_budget(epsilon, delta, pure=law in PURE)
    if law != GAUSSIAN:
        return tuple((BELOW * epsilon * share, 0.0) for share in shares)
    mu = BELOW / gaussian_multiplier(epsilon, delta)
    return tuple(
        (gaussian_epsilon(share * delta, 1.0 / (mu * math.sqrt(share))), share * delta)
        for share in shares
    )


FIRST_SHARE = 0.25
REACH = 2.5  # stds of the outputs about the first curve
# How many neighbouring sums the first stage adds up, few or many as they are, and the least that it has.
ADDED, ADDED_OF_MANY, MANY, LEAST_ADDED = 4, 8, 400, 8
WORTH_A_PASS = 0.9  # error over that of one stage for which many rows are read once more
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
    groups : tuple of int, (measured,)
        Sums of one group are added up in the first stage; none are where this is empty.

    """

    share: Annotated[float, Within(0.05, 0.95)] = FIRST_SHARE
    reach: Annotated[float, Within(1.0, 10.0)] = REACH
    groups: tuple[int, ...] = added_field(())

    def groups_of(self, sums: int) -> Integers:
        """The group of every sum in the first stage, (sums,)."""
        return np.array(self.groups, dtype=np.int64) if self.groups else np.arange(sums)

    def fits(self, sums: int) -> bool:
        """Whether these are groups of this number of sums, which a file may not have."""
        groups = sorted(set(self.groups))
        return not groups or (len(self.groups) == sums and groups == [*range(len(groups))])

    def add_up(self, numbers: Array) -> Array:
        """The first stage's numbers, from sums and what is measured besides, (numbers,)."""
        sums = len(self.groups)
        if not sums:
            return numbers
        return np.append(add_rows(numbers[:sums], self.groups_of(sums)), numbers[sums:])

    def strategies(self, strategy: OutputSums) -> tuple[OutputSums, OutputSums]:
        """What each stage measures."""
        if not self.groups:
            return strategy, strategy
        return replace(strategy, matrix=add_rows(strategy.matrix, self.groups_of(0))), strategy

    def budgets(self, law: str, epsilon: float, delta: float) -> Budgets:
        """(epsilon, delta) of both stages, which compose to no more than the whole."""
        return share_out(law, epsilon, delta, (self.share, 1.0 - self.share))

    def noises(self, strategy: OutputSums, epsilon: float, delta: float) -> tuple[Noise, ...]:
        """The noise of both stages, for numbers scaled to [-1, 1] in each."""
        budgets = self.budgets(strategy.law, epsilon, delta)
        each = zip(self.strategies(strategy), budgets, strict=True)
        return tuple(noise_of(measured, *budget) for measured, budget in each)

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


def neighbours(strategy: OutputSums, inputs: Array) -> tuple[int, ...]:
    """The sums that the first stage adds up: the group of every sum, by where its rows are.

    A quarter of epsilon can distinguish that many fewer sums. What clipping cuts off everywhere
    is told by the first stage alone: the fewer numbers it has, the less noise their total has.

    Parameters
    ----------
    strategy : OutputSums
        What the second stage measures, every output in one sum.
    inputs : array, (inputs, columns)
        The distinct inputs, or parts of cells.

    """
    if strategy.law not in PURE:  # whose sums overlap
        return ()
    sums = len(strategy.matrix)
    each = ADDED if sums < MANY else ADDED_OF_MANY
    weights = strategy.matrix * strategy.per_input(strategy.row_weights)
    with one_thread():  # the same groups, whatever the number of threads
        places = weights @ inputs / np.maximum(weights.sum(axis=1, keepdims=True), 1e-300)
    most = max(sums // each, min(sums, LEAST_ADDED))
    return tuple(halve(places / spreads(inputs), most).tolist())


def scatters_of(prior: Prior, half_width: float) -> list[float]:
    """Stds of outputs about the function that the prior holds for plausible, over ``half_width``."""
    std = math.sqrt(prior.start.noise_variance) / half_width
    return [std * math.exp(NOISE_STD * z * prior.noise_free) for z in QUANTILES]


def residuals_for(
    question: Question, budget: Budget, strategy: OutputSums, prior: Prior, inputs: Array
) -> Residuals | None:
    """Two stages where they were asked for, or are expected to gain; None: one stage."""
    found = Residuals(groups=neighbours(strategy, inputs))
    if question.residuals == "always":
        return found
    scatters, each = scatters_of(prior, question.half_width), strategy.units / len(strategy.matrix)
    whole, stages = budget.noise_of(strategy), found.noises(strategy, budget.epsilon, budget.delta)
    noise, error = (found.noise_of_both(whole, stages, scatters, rows) for rows in (0.0, each))
    gains = noise < 1.0 and error < (1.0 if strategy.tally is None else WORTH_A_PASS)
    return found if gains else None
