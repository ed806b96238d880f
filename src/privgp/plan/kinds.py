"""What only plans for public inputs, or only those for private ones, have and do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, cast

import numpy as np

from privgp.gp.measurement import Functionals, Measurement
from privgp.gp.priors import Hyperparameters, Prior
from privgp.plan.accuracy import variances_beyond_rows
from privgp.plan.bins import bins
from privgp.plan.bins.bins import Bins, Grid
from privgp.plan.bins.counts import bin_functionals, counts_after_noise
from privgp.plan.designs.noise_aware import (
    Certificate,
    Hypothesis,
    certify,
    design_models,
    exact_certificate,
    gain,
    hypotheses_for,
    residual_factors,
    several_scales,
)
from privgp.plan.inputs.arguments import Exposures
from privgp.plan.strategy import EqualRows, OutputSums
from privgp.question.parameters import RECONSTRUCTIONS
from privgp.types import Array, Integers, Positive, Within, added_field

if TYPE_CHECKING:
    from privgp.plan.part import Part
    from privgp.privacy.noise import Noise


FINE = {1: 64, 2: 20, 3: 8}  # parts per input that stand for even records
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
class Outputs:
    """What is planned where outputs alone are private.

    ``inputs``: distinct or inducing ones; ``unbiased``, ``design_gap``: of linear designs.
    """

    private_inputs: ClassVar[bool] = False
    x_bounds: ClassVar[None] = None
    default_kernel: ClassVar[bool] = False
    unneeded: ClassVar[str] = "no output"
    condition: ClassVar[str] = ""
    totals: ClassVar[str] = "the values"
    inputs: Array = field(repr=False)
    chosen: Integers = field(repr=False)
    unbiased: Unbiased | None = field(repr=False, default=None)
    design_gap: Annotated[float, Within(infinite=True)] | None = None
    cells: int | None = added_field(None)

    @property
    def unit(self) -> float | None:
        """The rate that rates are multiples of, where outputs are counts."""
        return None

    @property
    def is_quick(self) -> bool:
        return len(self.inputs) <= QUICK_INPUTS

    def fits(self, plan: Part) -> bool:
        """Whether these are parts of such a plan; only a file can have others."""
        inputs, targets, made = self.inputs.shape, len(plan.targets), self.unbiased
        fits = (
            (made is not None) == RECONSTRUCTIONS[plan.reconstruct].at_targets
            and inputs == (plan.strategy.matrix.shape[1], plan.targets.shape[1])
            and self.chosen.ndim == 1
            and bool(np.isin(self.chosen, range(inputs[0])).all())
        )
        if made is None or not fits:
            return fits
        shapes = made.reconstruction.shape, made.variance.shape
        wanted = (targets, len(plan.functionals.weights)), (targets,)
        return shapes == wanted and bool(np.all(made.variance >= 0.0))

    def exposures(self, plan: Part) -> Exposures | None:
        """What every count counts over, where outputs are counts."""
        return None

    def read_measurement(self, plan: Part, measurement: Measurement) -> Measurement:
        """What was measured, as the reconstruction reads it."""
        return measurement

    def models(self, priors: Sequence[Prior]) -> list[Hyperparameters]:
        """The weighted models that a measurement is chosen for where hyperparameters are learned."""
        return several_scales(design_models(priors))

    def functionals(
        self, plan: Part, strategy: object, noise: object, model: Hyperparameters
    ) -> Functionals:
        """What is measured of f depends neither on the noise nor on the model."""
        return plan.functionals

    def variances_without_noise(self, plan: Part, model: Hyperparameters, targets: Array) -> Array:
        """The variance of f at the targets, were the outputs themselves published."""
        nodes, strategy = plan.functionals.nodes, cast(OutputSums, plan.strategy)
        counts = strategy.per_input(strategy.sizes)
        return variances_beyond_rows(model, self.inputs, counts, nodes, targets)

    def certificate(self, plan: Part, gaussian: Part) -> Certificate:
        """The posterior error, and the floor below which no Gaussian measurement can go."""
        strategy = cast(OutputSums, gaussian.strategy)
        noise, B = gaussian.measured_noise_std**2, strategy.matrix
        models, goal = design_models(plan.priors), (plan.targets, plan.target_weights)
        # Anyone who has several rows can at least change one of them, so what holds for strategies that
        # protect single rows holds for those that protect people.
        rows = replace(strategy, people=None, row_weights=np.ones(len(strategy.index)))
        error, slope = exact_certificate(models, self.inputs, rows, *goal, noise)
        reached = error
        if plan is not gaussian or np.any(strategy.row_weights != 1.0):
            own, noise_of_own = cast(OutputSums, plan.strategy), plan.measured_noise_std**2
            reached, _ = exact_certificate(models, self.inputs, own, *goal, noise_of_own)
        if slope is not None:
            return Certificate(reached, certify(B, error, slope, noise).floor)
        low_rank = hypotheses_for(models, self.inputs, self.chosen, rows, *goal)
        return Certificate(reached, _floor(B, low_rank, noise))

    def domain(self, plan: Part) -> str:
        return ""

    def describe_rows(self, plan: Part) -> str:
        """How many rows there are, of whom and where, in words."""
        strategy, people = plan.strategy, ""
        if strategy.people_count is not None:
            whose = "people" if plan.max_change is None else "groups"
            people = f" of {strategy.people_count} {whose}"
        cells, count = self.cells, len(self.inputs)
        inputs = f"at {count} distinct inputs" if cells is None else f"in {cells} cells"
        effective = getattr(strategy, "effective_rows", strategy.rows)
        worth = ""
        if effective < 0.9995 * strategy.rows:
            worth = f" (by their sample weights worth {effective:.0f} of equal weight)"
        found = f"{strategy.rows} rows{people}{worth} {inputs}"
        return found if plan.asked is None else plan.asked.describe_rows(found)

    def describe_measurement(self, plan: Part) -> str:
        """How much is measured of what, and how near the best that is."""
        return (
            f"{self.describe_rows(plan)}; {plan.strategy.size} numbers are measured "
            f"(objective {plan.objective}){_gap_text(plan)}"
        )


def _gap_text(plan: Part) -> str:
    """How near the best the measurement is, unless finding out would take long."""
    if not plan.is_quick or not plan.gap < 0.5:  # a floor for rows says little about people
        return ""
    if plan.rival is not None and plan.certificate.gap < 0:
        share = -100 * plan.certificate.gap
        return (
            f" with {plan.noise.describe()}, which leaves {share:.2g}% less error than the best "
            "Gaussian noise"
        )
    if plan.objective == "logdet":
        return f", certified within {plan.gap:.3g} nats of the best"
    return f", certified within {100 * plan.gap:.2g}% of the least possible error"


@dataclass(frozen=True)
class Records:
    """What is planned where whole records are private, from their number alone.

    The accuracy is that for records spread evenly over the declared domain, ``x_bounds``.
    ``rate``: the unit of rates, where outputs are counts.
    """

    private_inputs: ClassVar[bool] = True
    inputs: ClassVar[None] = None
    chosen: ClassVar[None] = None
    unbiased: ClassVar[None] = None
    design_gap: ClassVar[float | None] = None
    is_quick: ClassVar[bool] = True
    unneeded: ClassVar[str] = "neither an input nor an output"
    totals: ClassVar[str] = "records and their values over bins of the declared domain"
    x_bounds: tuple[tuple[float, float], ...]
    default_kernel: bool
    rate: Positive | None = added_field(None)

    @property
    def unit(self) -> float | None:
        """The rate that rates are multiples of, where outputs are counts."""
        return self.rate

    @property
    def condition(self) -> str:
        relative = "" if self.rate is None else " (relative to the rate)"
        return f"{relative}, if records lie evenly over the domain"

    def fits(self, plan: Part) -> bool:
        """Whether bins and classes are those that were declared; only a file can have others."""
        bins = cast(Bins, plan.strategy)
        same = np.array_equal(np.array(self.x_bounds).T, [bins.low, bins.high])
        return same and bins.classes == plan.outcome.functions

    def exposures(self, plan: Part) -> Exposures | None:
        """What every count counts over, where outputs are counts: as much as any other."""
        return None if self.rate is None else Exposures(self.rate, np.array([self.rate]))

    def read_measurement(self, plan: Part, measurement: Measurement) -> Measurement:
        """What was measured, as the reconstruction reads it: counts about the unit rate."""
        return measurement if self.rate is None else replace(measurement, centre=1.0)

    def models(self, priors: Sequence[Prior]) -> list[Hyperparameters]:
        """The equally weighted models that bins are chosen for where hyperparameters are learned."""
        return bins.design_models(priors[0])

    def functionals(
        self, plan: Part, strategy: Any, noise: Noise, model: Hyperparameters
    ) -> Functionals:
        """What is measured of f, given counts as uncertain as this noise leaves them."""
        counts = counts_after_noise(strategy, strategy.count_std(noise.std), None)
        return bin_functionals(strategy, *counts, model, unit=self.unit)

    def variances_without_noise(self, plan: Part, model: Hyperparameters, targets: Array) -> Array:
        """The variance of f at the targets, were even records themselves published."""
        low, high = np.array(self.x_bounds).T
        grid = Grid(low, high, (FINE[len(low)],) * len(low))
        even = np.full(grid.count, plan.rows / grid.count) * (self.unit or 1.0)
        return variances_beyond_rows(model, grid.centres(), even, grid.centres(), targets)

    def certificate(self, plan: Part, gaussian: Part) -> Certificate:
        """The expected mean square at the targets, and the least that Gaussian noise allows.

        That is for sums over these bins with known counts; noisy counts are part of the gap.
        """
        bins = cast(Bins, gaussian.strategy)
        known = even_hypotheses(bins, [plan.start], plan.targets, self.unit)
        floor = _floor(bins.matrix, known, gaussian.measured_noise_std**2)
        return Certificate(plan.starting_error**2, floor / len(plan.targets))

    def domain(self, plan: Part) -> str:
        columns = None if plan.asked is None else plan.asked.columns
        if columns is not None:
            return f", inputs {'; '.join(columns.describe())}; all of them private"
        pairs = " x ".join(f"[{a:g}, {b:g}]" for a, b in self.x_bounds)
        return f", inputs in {pairs}, both private"

    def describe_rows(self, plan: Part) -> str:
        """How many records there are, of whom and where, in words."""
        bins = cast(Bins, plan.strategy)
        return f"{bins.rows} {bins.counted}{bins.weight_words} in {' x '.join(map(str, bins.shape))} bins"

    def describe_measurement(self, plan: Part) -> str:
        """How much is measured with which noise, and what the other noise would give."""
        text = (
            f"{self.describe_rows(plan)}; {plan.strategy.size} numbers are measured, with "
            f"{plan.noise.describe()}"
        )
        if plan.rival is None:
            return text
        other = plan.measuring(plan.rival)
        error = other.expected_error()
        return f"{text} ({other.noise.describe()}: an expected error of {error:.4g})"


def _floor(B: Array, hypotheses: Sequence[Hypothesis], noise: float) -> float:
    """The error below which no Gaussian measurement can go, certified from this one."""
    error = sum(h.weight * h.total for h in hypotheses) - gain(B, hypotheses, noise)[0]
    return certify(B, error, residual_factors(B, hypotheses, noise), noise, is_root=True).floor


def even_hypotheses(
    bins: Bins, models: Sequence[Hyperparameters], targets: Array, unit: float | None = None
) -> list[Hypothesis]:
    """The models for records spread evenly over the bins' centres, as if that were known."""
    even = EqualRows(np.full(bins.count, bins.prior_total / bins.count) * (unit or 1.0))
    goal = targets, np.ones(len(targets))
    return hypotheses_for(models, bins.centres(), np.arange(bins.count), even, *goal)


@dataclass(frozen=True)
class Rates(Outputs):
    """Counts: row i has mean ``expected_i exp(f)``; ``rate``: at f = 0."""

    condition: ClassVar[str] = " (relative to the rate)"
    rate: Positive = 1.0

    @property
    def unit(self) -> float:
        return self.rate

    def fits(self, plan: Part) -> bool:
        """Whether these are parts of such a plan; only a file can have others."""
        return super().fits(plan) and getattr(plan.strategy, "expected", None) is not None

    def exposures(self, plan: Part) -> Exposures:
        """What every count counts over."""
        return Exposures(self.rate, cast(OutputSums, plan.strategy).sizes)

    def read_measurement(self, plan: Part, measurement: Measurement) -> Measurement:
        """The measured sums of counts themselves: the middle of the bounds is added back."""
        strategy = cast(OutputSums, plan.strategy)
        middle = 0.5 * plan.y_bounds[0] + 0.5 * plan.y_bounds[1]
        rows = strategy.per_input(strategy.row_weights)
        return replace(measurement, values=measurement.values + middle * (strategy.matrix @ rows))
