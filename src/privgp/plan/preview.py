"""Plan: what a budget buys, before any private value is read."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, ClassVar

import numpy as np

from privgp.plan.accuracy import Accuracy
from privgp.plan.designs.hypotheses import design_models, exact_certificate, hypotheses_for
from privgp.plan.designs.noise_aware import Certificate, certify, gain, unexplained
from privgp.plan.parameters import OBJECTIVES, RECONSTRUCTIONS
from privgp.plan.strategy import GroupSums, OutputSums, noise_of
from privgp.plan.streamed.columns import StreamedSums
from privgp.types import Array, Integers, Within

QUICK_INPUTS = 600  # up to here a certificate takes no noticeable time


@dataclass(frozen=True)
class Unbiased:
    """How the papers' output is made from the measurement: ``C y + noise`` at the targets.

    ``reconstruction``: (targets, measured); ``variance``: (targets,), of f about ``C y``;
    ``jitter``: what was added to the diagonal of K, part of the predictor.
    """

    reconstruction: Array
    variance: Array
    jitter: float


@dataclass(frozen=True)
class Plan(Accuracy):
    """A measurement that is ready to be made, with the accuracy it will have.

    Made by ``PrivateGPRegressor.plan(X)``. Everything in it is public. ``rival``: the best Gaussian
    measurement, where Laplace noise was taken instead.
    """

    x_bounds: ClassVar[None] = None  # inputs are public
    objective: Annotated[str, OBJECTIVES]
    reconstruct: Annotated[str, RECONSTRUCTIONS]
    inputs: Array = field(repr=False)
    target_weights: Array = field(repr=False)
    strategy: OutputSums | GroupSums | StreamedSums = field(repr=False)
    chosen: Integers = field(repr=False)
    unbiased: Unbiased | None = field(repr=False)
    design_gap: Annotated[float, Within(infinite=True)] | None = field(repr=False)
    rival: OutputSums | None = field(repr=False, default=None)

    @cached_property
    def noise_std(self) -> Array:
        """Std at every target of the privacy noise alone.

        Unbiased: of the release. Posterior: of its mean under the starting hyperparameters.
        """
        if self.unbiased is None:
            return super().noise_std
        rows = self.unbiased.reconstruction
        return np.asarray(self.measured_noise_std * np.linalg.norm(rows, axis=1))

    @property
    def rows(self) -> int:
        return self.strategy.rows

    def check_parts(self) -> None:
        super().check_parts()
        inputs, targets = self.inputs.shape, (len(self.targets),)
        fits = inputs == (self.strategy.matrix.shape[1], self.targets.shape[1])
        fits = fits and self.chosen.ndim == 1 and bool(np.isin(self.chosen, range(inputs[0])).all())
        weights = self.target_weights
        fits = fits and weights.shape == targets and weights.min() >= 0.0 < weights.sum()
        if (made := self.unbiased) is not None:
            shape = (*targets, len(self.functionals.weights))
            fits = fits and made.reconstruction.shape == shape
            fits = fits and made.variance.shape == targets and bool(np.all(made.variance >= 0.0))
        if not fits or (made is not None) != (self.reconstruct == "unbiased"):
            raise ValueError("the parts of the plan are not of one length.")

    @property
    def is_quick(self) -> bool:
        """Whether finding the gap takes no noticeable time."""
        return "gap" in self.__dict__ or len(self.inputs) <= QUICK_INPUTS

    @cached_property
    def gap(self) -> float:
        """Certified relative distance from the least possible error (nats for ``"logdet"``).

        The least possible is that of Gaussian measurements; 0 where Laplace noise gets below it.
        Infinite where nothing is certified, as with inducing inputs for more rows than a sample, or
        with delta = 0, where no Gaussian measurement is private.
        """
        if self.design_gap is not None:
            return self.design_gap
        if self.is_pure and self.rival is None:
            return float("inf")
        return max(0.0, self.certificate.gap)

    @cached_property
    def certificate(self) -> Certificate:
        """The posterior error, and the floor below which no Gaussian measurement can go."""
        strategy = self.strategy
        if isinstance(strategy, StreamedSums):
            raise ValueError("a plan with inducing inputs has no certificate of its error.")
        if self.is_pure and self.rival is None:
            raise ValueError("a plan with delta = 0 has no certificate of its error.")
        noise, B = self.measured_noise_std**2, strategy.matrix
        if self.rival is not None:
            gaussian = replace(
                self,
                rival=None,
                strategy=self.rival,
                noise=noise_of(self.rival, self.epsilon, self.delta),
            )
            whole = design_models(self.priors), self.inputs, strategy
            error, _ = exact_certificate(*whole, self.targets, self.target_weights, noise)
            return Certificate(error, gaussian.certificate.floor)
        models = design_models(self.priors)
        goal = self.targets, self.target_weights
        # Whoever has several rows can at least change one of them, so what holds for strategies that
        # protect single rows holds for those that protect people.
        rows = replace(strategy, people=None, row_weights=np.ones(strategy.rows))
        error, slope = exact_certificate(models, self.inputs, rows, *goal, noise)
        reached = error
        if np.any(strategy.row_weights != 1.0):
            reached, _ = exact_certificate(models, self.inputs, strategy, *goal, noise)
        if slope is not None:
            return Certificate(reached, certify(B, error, slope, noise).floor)
        low_rank = hypotheses_for(models, self.inputs, self.chosen, rows, *goal)
        explained = gain(B, low_rank, noise)[0]
        low_error = sum(h.weight * h.total for h in low_rank) - explained
        left = unexplained(B, low_rank, noise)
        return Certificate(reached, certify(B, low_error, left, noise, is_root=True).floor)

    def expected_error(self, epsilon: float | None = None) -> float:
        """Expected root-mean-square error at the targets under the starting hyperparameters.

        At another ``epsilon`` it is that of this same measurement with the noise it would need
        there; a plan made for that epsilon does at least as well.
        """
        if epsilon is not None:
            noise = noise_of(self.strategy, epsilon, self.delta)
            return replace(self, epsilon=epsilon, noise=noise)._expected_error
        return self._expected_error

    @cached_property
    def _expected_error(self) -> float:
        weights = self.target_weights / self.target_weights.sum()
        return float(np.sqrt(weights @ self._variance_at_targets()))

    def _variance_at_targets(self) -> Array:
        if self.unbiased is not None:
            return self.unbiased.variance + self.noise_std**2
        return self.expected_std(self.targets) ** 2

    def describe(self) -> str:
        """A few sentences for people."""
        return f"{self.summary()}\nNothing has been spent: no output was read."

    def summary(self) -> str:
        """The same as it remains true after the release."""
        return self._summary

    @cached_property
    def _summary(self) -> str:
        weights = self.target_weights / self.target_weights.sum()
        expected = self.expected_error()
        spread = ""
        if self.unbiased is None:
            low, high = np.sqrt((self.expected_std(self.targets, 0.9) ** 2) @ weights)
            spread = f"; {low:.4g} to {high:.4g} over 90% of their prior"
        noise = float(np.sqrt(weights @ self.noise_std**2))
        people = (
            ""
            if self.strategy.people is None
            else (f" of {int(self.strategy.people.max()) + 1} people")
        )
        streamed = isinstance(self.strategy, StreamedSums)
        inputs = f"{len(self.inputs)} {'inducing' if streamed else 'distinct'} inputs"
        inputs = f"{'through' if streamed else 'at'} {inputs}"
        return "\n".join(
            [
                f"Budget: {self.budget}; outputs in [{self.y_bounds[0]:g}, {self.y_bounds[1]:g}].",
                f"{self.strategy.rows} rows{people} {inputs}; {self.strategy.size} numbers "
                f"are measured (objective {self.objective}){self._certified()}.",
                f"Privacy noise at the targets: {noise:.4g} (root mean square).",
                f"Expected error of the released function there: {expected:.4g} under the starting "
                f"hyperparameters{spread}.",
            ]
        )

    def _certified(self) -> str:
        """How near the best the measurement is, unless finding out would take long."""
        if not self.is_quick:
            return ""
        if not self.gap < 0.5:  # a floor for single rows says little about people with many
            return ""
        if self.rival is not None and self.certificate.gap < 0:
            share = -100 * self.certificate.gap
            return (
                f" with Laplace noise, an error {share:.2g}% below the least that Gaussian noise "
                "allows"
            )
        if self.objective == "logdet":
            return f", certified within {self.gap:.3g} nats of the best"
        return f", certified within {100 * self.gap:.2g}% of the least possible error"
