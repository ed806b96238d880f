"""The plan for private inputs: made from the number of records, the bounds and the budget alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated

import numpy as np

from privgp.plan.accuracy import Accuracy
from privgp.plan.bins.bins import Bins, HalvedBins, centres
from privgp.plan.bins.counts import bin_functionals, counts_given
from privgp.plan.bins.grids import (
    GRIDS,
    Aim,
    Domain,
    best_bins,
    best_pure_bins,
    design_models,
    even_hypotheses,
)
from privgp.plan.build import Budget, Question
from privgp.plan.designs.noise_aware import Certificate, certify, gain, unexplained
from privgp.plan.inputs.start import starting_priors
from privgp.plan.strategy import noise_of
from privgp.privacy.noise import GAUSSIAN, LAPLACE
from privgp.types import Array


@dataclass(frozen=True)
class RecordsPlan(Accuracy):
    """A measurement of whole records that is ready to be made, with the accuracy it will have.

    Made by ``PrivateGPRegressor(protect="records").plan(X)`` from ``len(X)`` alone. Its accuracy is
    that for records spread evenly over the domain. ``rival``: the best measurement with the other law
    of noise, where both were compared.
    """

    x_bounds: tuple[tuple[float, float], ...]
    strategy: Bins | HalvedBins = field(repr=False)
    default_kernel: bool = field(repr=False)
    objective: Annotated[str, ("posterior",)] = "posterior"
    reconstruct: Annotated[str, ("posterior",)] = "posterior"
    rival: Bins | HalvedBins | None = field(repr=False, default=None)

    is_quick = True

    @property
    def unbiased(self) -> None:
        """There is no unbiased release of records."""

    @property
    def target_weights(self) -> Array:
        return np.ones(len(self.targets))

    @property
    def rows(self) -> int:
        return self.strategy.rows

    def check_parts(self) -> None:
        super().check_parts()
        domain = np.array(self.x_bounds)
        if not np.array_equal(domain.T, [self.strategy.low, self.strategy.high]):
            raise ValueError("the bins are not those of the domain.")

    @cached_property
    def gap(self) -> float:
        """Relative distance of the expected error from a floor for the same bins.

        No Gaussian measurement of sums over these bins, even with the counts known and the records
        spread evenly, has a smaller error under the starting hyperparameters. Noisy counts are part
        of it. Where Laplace noise was taken the floor is that of the Gaussian rival, and the gap 0
        below it; infinite where the two were not compared.
        """
        reached = self.expected_error() ** 2
        if self.strategy.law == LAPLACE:
            if self.rival is None:
                return float("inf")
            floor = self._measuring(self.rival, self.epsilon)._gaussian_floor()
            return max(0.0, Certificate(reached, floor).gap)
        return Certificate(reached, self._gaussian_floor()).gap

    def _gaussian_floor(self) -> float:
        """The least mean square at the targets that Gaussian noise on sums over these bins allows."""
        B, noise = self.strategy.matrix, self.measured_noise_std**2
        known = even_hypotheses(self.strategy, [self.start], self.targets)
        error = known[0].total - gain(B, known, noise)[0]
        floor = certify(B, error, unexplained(B, known, noise), noise, is_root=True).floor
        return floor / len(self.targets)

    def expected_error(self, epsilon: float | None = None) -> float:
        """Expected root-mean-square error at the targets under the starting hyperparameters."""
        plan = self
        if epsilon is not None:
            plan = self._measuring(self.strategy, epsilon)
        return float(np.sqrt(np.mean(plan.expected_std(self.targets) ** 2)))

    def _law(self) -> str:
        """Which noise is added, and what the other law would give."""
        pure = self.strategy.law == LAPLACE
        ours, others = ("Laplace", "Gaussian") if pure else ("Gaussian", "Laplace")
        text = f"{ours} noise"
        if self.rival is None:
            return text
        other = self._measuring(self.rival, self.epsilon).expected_error()
        return f"{text} ({others} noise: an expected error of {other:.4g})"

    def _measuring(self, bins: Bins, epsilon: float) -> RecordsPlan:
        """The same plan with other bins or another epsilon."""
        noise = noise_of(bins, epsilon, self.delta)
        counts = counts_given(bins, bins.sum_std(noise.std), None)
        found = bin_functionals(bins, *counts, self.start)
        return replace(
            self, epsilon=epsilon, strategy=bins, noise=noise, functionals=found, rival=None
        )

    def describe(self) -> str:
        """A few sentences for people."""
        spent = "Nothing has been spent: neither an input nor an output was read."
        return f"{self.summary()}\n{spent}"

    def summary(self) -> str:
        """The same as it remains true after the release."""
        return self._summary

    @cached_property
    def _summary(self) -> str:
        low, high = np.sqrt(np.mean(self.expected_std(self.targets, 0.9) ** 2, axis=1))
        domain = " x ".join(f"[{a:g}, {b:g}]" for a, b in self.x_bounds)
        grid = " x ".join(map(str, self.strategy.shape))
        return "\n".join(
            [
                f"Budget: {self.budget}; outputs in "
                f"[{self.y_bounds[0]:g}, {self.y_bounds[1]:g}], inputs in {domain}, both private.",
                f"{self.strategy.rows} records in {grid} bins; {self.strategy.size} numbers are "
                f"measured, with {self._law()}.",
                f"Privacy noise at the targets: {np.sqrt(np.mean(self.noise_std**2)):.4g} "
                "(root mean square).",
                "Expected error of the released function there, if records lie evenly over the "
                f"domain: {self.expected_error():.4g} under the starting hyperparameters; "
                f"{low:.4g} to {high:.4g} over 90% of their prior.",
            ]
        )


def make_records_plan(
    rows: int, x_bounds: Sequence[tuple[float, float]], question: Question, budget: Budget
) -> RecordsPlan:
    """Choose the measurement. Sees the number of records, never an input or an output."""
    low, high = np.array(x_bounds, dtype=float).T
    width = question.y_bounds[1] - question.y_bounds[0]
    # Two points with the mean and the spread of an even distribution over the domain.
    middle, spread = 0.5 * low + 0.5 * high, (high - low) / np.sqrt(12.0)
    even = np.vstack([middle - spread, middle + spread])
    priors = starting_priors(even, width, question.kernel, question.noise_variance, learned=False)
    targets = question.targets
    if targets is None:
        targets = centres(low, high, (GRIDS[len(low)][-1],) * len(low))
    aim = Aim(design_models(priors[0]), targets, 0.5 * width)
    bins, rival = _choose(Domain(low, high, rows), aim, question, budget)
    drawn = budget.noise_of(bins)
    start = priors[0].start
    return RecordsPlan(
        epsilon=budget.epsilon,
        delta=budget.delta,
        y_bounds=question.y_bounds,
        x_bounds=tuple((float(a), float(b)) for a, b in zip(low, high, strict=True)),
        targets=targets,
        strategy=bins,
        functionals=bin_functionals(
            bins, *counts_given(bins, bins.sum_std(drawn.std), None), start
        ),
        noise=drawn,
        priors=priors,
        default_kernel=question.kernel is None,
        rival=rival,
    )


def _choose(
    domain: Domain, aim: Aim, question: Question, budget: Budget
) -> tuple[Bins, Bins | None]:
    """The measurement with the least error to expect, and the best with the other law of noise."""
    if question.mechanism == LAPLACE:
        return best_pure_bins(domain, aim, budget, energy=question.learned)[0], None
    gaussian, error = best_bins(domain, aim, budget.noise_for(1, 2.0, 0.0).std)
    if question.mechanism == GAUSSIAN:
        return gaussian, None
    pure, pure_error = best_pure_bins(domain, aim, budget, energy=question.learned)
    return (pure, gaussian) if pure_error < error else (gaussian, pure)
