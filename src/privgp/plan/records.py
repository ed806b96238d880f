"""The plan for private inputs: made from the number of records, the bounds and the budget alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from privgp.plan.aware import aware_design
from privgp.plan.bins import Bins, centres
from privgp.plan.build import Budget, Question
from privgp.plan.counts import bin_functionals, counts_given
from privgp.plan.functionals import Functionals
from privgp.plan.hypotheses import hypotheses_for
from privgp.plan.preview import PRIOR_DRAWS
from privgp.plan.priors import Hyperparameters, Prior
from privgp.plan.start import starting_priors
from privgp.plan.strategy import Measurement, Strategy
from privgp.privacy.lattice import LatticeNoise, lattice_noise
from privgp.release.posterior import Posterior, mean_map, posterior
from privgp.types import Array

BINS_PER_INPUT = {1: 32, 2: 20, 3: 8}
MOST_MEASURED = {1: 24, 2: 100, 3: 120}
DESIGN_SCALES = (-1.2, 0.0, 1.2)  # standard deviations of the prior's common lengthscale


@dataclass(frozen=True)
class RecordsPlan:
    """A measurement of whole records that is ready to be made, with the accuracy it will have.

    Made by ``PrivateGPRegressor(protect="records").plan(X)`` from ``len(X)`` alone. Its accuracy is
    that for records spread evenly over the domain.
    """

    epsilon: float
    delta: float
    y_bounds: tuple[float, float]
    x_bounds: tuple[tuple[float, float], ...]
    targets: Array = field(repr=False)
    strategy: Bins = field(repr=False)
    functionals: Functionals = field(repr=False)
    noise: LatticeNoise
    priors: tuple[Prior, ...] = field(repr=False)
    default_kernel: bool = field(repr=False)
    objective: str = "posterior"
    reconstruct: str = "posterior"

    @property
    def unbiased(self) -> None:
        """There is no unbiased release of records."""

    @property
    def target_weights(self) -> Array:
        return np.ones(len(self.targets))

    @property
    def start(self) -> Hyperparameters:
        return self.priors[0].start

    @property
    def half_width(self) -> float:
        return 0.5 * self.y_bounds[1] - 0.5 * self.y_bounds[0]

    @property
    def measured_noise_std(self) -> float:
        """Std of the noise on every measured sum, in units of y; of counts it is ``noise.std``."""
        return self.noise.std * self.half_width

    @cached_property
    def noise_std(self) -> Array:
        """Std at every target of the privacy noise on sums, under the starting hyperparameters."""
        rows = mean_map(self.functionals, self._nothing(), self.start, self.targets)
        return np.asarray(self.measured_noise_std * np.linalg.norm(rows, axis=1))

    def expected_std(self, X_new: Array, prior_range: float | None = None) -> Array:
        """Std of f about the release at new points, for records spread evenly over the domain.

        Under the starting hyperparameters; with ``prior_range=0.9``, an array of two rows with the
        ends of that share of the prior's range of hyperparameters.
        """
        X_new = np.asarray(X_new, dtype=float)
        columns = len(self.x_bounds)
        X_new = X_new[:, None] if X_new.ndim == 1 and columns == 1 else X_new
        if X_new.ndim != 2 or X_new.shape[1] != columns:
            raise ValueError(f"X_new must have {columns} columns.")
        if prior_range is None:
            return np.sqrt(self._prior_posterior(self.start).mean_and_variance(X_new)[1])
        if not 0 < prior_range < 1:
            raise ValueError(f"prior_range must lie between 0 and 1, got {prior_range}.")
        rng, prior = np.random.default_rng(0), self.priors[0]
        models = [prior.at(rng.standard_normal(prior.size)) for _ in range(PRIOR_DRAWS)]
        variances = [self._prior_posterior(m).mean_and_variance(X_new)[1] for m in models]
        tail = 0.5 * (1.0 - prior_range)
        return np.asarray(np.quantile(np.sqrt(variances), [tail, 1.0 - tail], axis=0))

    def expected_error(self, epsilon: float | None = None) -> float:
        """Expected root-mean-square error at the targets under the starting hyperparameters."""
        plan = self
        if epsilon is not None:
            bins = self.strategy
            size = (bins.size, bins.sensitivity(), bins.float_error())
            noise = lattice_noise(epsilon, self.delta, *size)
            counts = counts_given(bins, noise.std, None)
            plan = replace(
                self,
                epsilon=epsilon,
                noise=noise,
                functionals=bin_functionals(bins, *counts, self.start),
            )
        return float(np.sqrt(np.mean(plan.expected_std(self.targets) ** 2)))

    def describe(self) -> str:
        """A few sentences for people."""
        spent = "Nothing has been spent: neither an input nor an output was read."
        return f"{self.summary()}\n{spent}"

    def summary(self) -> str:
        """The same as it remains true after the release."""
        low, high = np.sqrt(np.mean(self.expected_std(self.targets, 0.9) ** 2, axis=1))
        domain = " x ".join(f"[{a:g}, {b:g}]" for a, b in self.x_bounds)
        grid = " x ".join(map(str, self.strategy.shape))
        return "\n".join(
            [
                f"Budget: epsilon = {self.epsilon:g}, delta = {self.delta:g}; outputs in "
                f"[{self.y_bounds[0]:g}, {self.y_bounds[1]:g}], inputs in {domain}, both private.",
                f"{self.strategy.rows} records in {grid} bins; {self.strategy.size} numbers are "
                "measured.",
                f"Privacy noise at the targets: {np.sqrt(np.mean(self.noise_std**2)):.4g} "
                "(root mean square).",
                "Expected error of the released function there, if records lie evenly over the "
                f"domain: {self.expected_error():.4g} under the starting hyperparameters; "
                f"{low:.4g} to {high:.4g} over 90% of their prior.",
            ]
        )

    def plot(self, ax: Any = None) -> Any:
        """The error to expect against epsilon, as a figure; see privgp.release.plots.plot_plan."""
        from privgp.release.plots import plot_plan

        return plot_plan(self, ax)

    def _nothing(self) -> Measurement:
        return Measurement(np.zeros(len(self.strategy.matrix)), self.measured_noise_std, None, 0.0)

    def _prior_posterior(self, model: Hyperparameters) -> Posterior:
        return posterior(self.functionals, self._nothing(), [model], 0.0)


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
    shape = (BINS_PER_INPUT[len(low)],) * len(low)
    noise = (budget.noise_for(1, 2.0, 0.0).std * 0.5 * width) ** 2
    matrix = _matrix(priors[0], centres(low, high, shape), rows, noise, question.targets)
    bins = Bins(low, high, shape, rows, matrix)
    drawn = budget.noise_for(bins.size, bins.sensitivity(), bins.float_error())
    start = priors[0].start
    return RecordsPlan(
        epsilon=budget.epsilon,
        delta=budget.delta,
        y_bounds=question.y_bounds,
        x_bounds=tuple((float(a), float(b)) for a, b in zip(low, high, strict=True)),
        targets=centres(low, high, shape) if question.targets is None else question.targets,
        strategy=bins,
        functionals=bin_functionals(bins, *counts_given(bins, drawn.std, None), start),
        noise=drawn,
        priors=priors,
        default_kernel=question.kernel is None,
    )


def _matrix(prior: Prior, places: Array, rows: int, noise: float, targets: Array | None) -> Array:
    """The noise-aware design for even records, made safe for private inputs.

    Its columns b get norm at most 1; if their least inner product is -rho < 0, a row of sqrt(rho)
    lifts it to 0, and all is scaled down by sqrt(1 + rho).
    """
    each = np.full(len(places), rows / len(places))
    index = np.arange(len(places))
    even = Strategy(np.ones((1, len(places))), index, each, None, 0.0, each)
    size = prior.size
    # The first free direction of a kernel's lengthscales is their common factor.
    models = [prior.at(step * _common(prior)) for step in DESIGN_SCALES] if size else [prior.start]
    goal = places if targets is None else targets
    hypotheses = hypotheses_for(models, places, index, even, goal, np.ones(len(goal)))
    rank = min(MOST_MEASURED[places.shape[1]], len(places))
    B = aware_design(hypotheses, noise, rank)
    B = B / max(1.0, float(np.linalg.norm(B, axis=0).max()) * (1.0 + 1e-12))
    rho = max(0.0, -float((B.T @ B).min())) + 1e-12
    lifted = np.vstack([B, np.full((1, len(places)), np.sqrt(rho))])
    return np.asarray(lifted / (np.sqrt(1.0 + rho) * (1.0 + 1e-12)))


def _common(prior: Prior) -> Array:
    """The prior's direction in which all lengthscales move together, one standard deviation."""
    names = [
        parameter.name
        for parameter in prior.start.kernel.hyperparameters
        if not parameter.fixed
        for _ in range(parameter.n_elements)
    ]
    move = np.zeros(prior.size)
    for place, name in enumerate(names):
        if name.endswith("length_scale"):
            move[place] = 1.0
    return np.asarray(np.linalg.solve(prior.root, move), dtype=np.float64)
