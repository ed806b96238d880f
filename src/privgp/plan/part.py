"""One part of a plan: what is measured of one outcome, and how accurate that will be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Annotated, Any, ClassVar, cast

import numpy as np

from privgp.gp.inference.posterior import mean_map
from privgp.gp.measurement import Functionals, Measurement
from privgp.gp.priors import Hyperparameters, Prior
from privgp.plan import accuracy
from privgp.plan.accuracy import variances_beyond_rows
from privgp.plan.bins.counts import Records
from privgp.plan.choice import AnyStrategy
from privgp.plan.designs.earlier import Earlier, EarlierRecords
from privgp.plan.designs.noise_aware import (
    Certificate,
    certify,
    design_models,
    exact_certificate,
    gaussian_floor,
    hypotheses_for,
    several_scales,
)
from privgp.plan.designs.stages import Residuals, scatters_of
from privgp.plan.features import FeatureRecords
from privgp.plan.parameters import LabelParameters, Parameters
from privgp.plan.strategy import NOT_TOGETHER, OutputSums, noise_of
from privgp.privacy.noise import Noise
from privgp.privacy.sensitivity import WHOLE
from privgp.question.outcomes import Number, Outcome, Unit, unit_for
from privgp.question.parameters import RECONSTRUCTIONS, choices
from privgp.question.rules import Exposures, check_bounds
from privgp.storage.codec import fingerprint
from privgp.types import Array, Integers, Pair, Positive, Within, added_field

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
        return Certificate(reached, gaussian_floor(B, low_rank, noise))

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


@dataclass(frozen=True)
class Part:
    """A measurement of one outcome, with the accuracy it will have. All of it is public.

    Attributes
    ----------
    epsilon, delta : float
        The budget of the whole plan.
    y_bounds : (low, high)
    objective, reconstruct : str
        As asked for.
    targets, target_weights : array (targets, columns) and (targets,)
        Where to be accurate, and how much each target counts.
    strategy : AnyStrategy
        What is measured.
    functionals : Functionals
        What is measured of f, with ``noise``, under ``priors`` of the hyperparameters.
    noise : Noise
        On the numbers of this part.
    priors : tuple of Prior
    kind : Outputs or Records
        Behaviour specific to public or to private inputs.
    rival : AnyStrategy, optional
        The best measurement with the other noise distribution, where both were compared.
    earlier : Earlier or EarlierRecords, optional
        Measurements that it builds on; errors are then those of all together.
    residuals : Residuals, optional
        How the budget is divided, where a second stage measures residuals; ``noise`` is then what one
        stage with the whole budget would have.
    asked : Parameters, optional
        What was declared of the outcome; None if not made by a model. Files hold it once, for all parts.

    """

    _own_axes: ClassVar[bool] = True
    epsilon: float
    delta: float
    y_bounds: Pair
    objective: Annotated[str, choices("objective")]
    reconstruct: Annotated[str, choices("reconstruct")]
    targets: Array = field(repr=False)
    target_weights: Array = field(repr=False)
    strategy: AnyStrategy = field(repr=False)
    functionals: Functionals = field(repr=False)
    noise: Noise = field(repr=False)
    priors: tuple[Prior, ...] = field(repr=False)
    kind: Outputs | Rates | Records | FeatureRecords = field(repr=False)
    rival: AnyStrategy | None = field(repr=False, default=None)
    earlier: Earlier | EarlierRecords | None = field(
        repr=False, default=None, metadata={"later": True}
    )
    residuals: Residuals | None = field(repr=False, default=None, metadata={"later": True})
    asked: Parameters | LabelParameters | None = field(
        repr=False, default=None, metadata={"later": True}
    )

    @property
    def inputs(self) -> Any:
        """The distinct or inducing inputs; None where inputs are private."""
        return self.kind.inputs

    @property
    def x_bounds(self) -> tuple[Pair, ...] | None:
        """The declared domain of private inputs; None where inputs are public."""
        return self.kind.x_bounds

    @property
    def unbiased(self) -> Unbiased | None:
        """How the papers' output is made from the measurement; None for a posterior."""
        return self.kind.unbiased

    @property
    def unit(self) -> float | None:
        """The rate that rates are multiples of, where outputs are counts; None where they are not."""
        return self.kind.unit

    @property
    def exposures(self) -> Exposures | None:
        """The unit rate and expected counts, where outputs are counts."""
        return self.kind.exposures(self)

    @property
    def rows(self) -> int:
        return self.strategy.rows

    @property
    def noises(self) -> tuple[Noise, ...]:
        """The noise of every measurement that will be made: of one, or of two stages."""
        if self.residuals is None:
            return (self.noise,)
        return self.residuals.noises(self.strategy, self.epsilon, self.delta)  # type: ignore[arg-type]

    @property
    def outcome(self) -> Outcome:
        """What is measured about a person; a number if the part was not made by a model."""
        return Number(*self.y_bounds) if self.asked is None else self.asked.outcome()

    @property
    def start(self) -> Hyperparameters:
        """The starting hyperparameters, on the inputs as they are."""
        return self.priors[0].start

    @property
    def max_change(self) -> float | None:
        """How much one person changes one output; None: from one bound to the other."""
        if self.strategy.change >= WHOLE:
            return None
        asked = None if self.asked is None else self.asked.max_change
        return self.strategy.change * self.half_width if asked is None else asked

    @property
    def half_width(self) -> float:
        """Half the width of the bounds."""
        return 0.5 * self.y_bounds[1] - 0.5 * self.y_bounds[0]

    @property
    def measured_noise_std(self) -> float:
        """Std of the noise on every measured sum of outputs, in units of y."""
        return self.strategy.sum_std(self.noise.std) * self.half_width

    @cached_property
    def noise_std(self) -> Array:
        """Std at every target of the privacy noise alone; in a posterior's mean, at the start."""
        if self.unbiased is None:
            rows = mean_map(*self.together(self.start), self.start, self.targets)
        else:
            rows = self.unbiased.reconstruction
        return np.asarray(self.as_one.measured_noise_std * np.linalg.norm(rows, axis=1))

    @property
    def learns(self) -> bool:
        """Whether hyperparameters will be learned from the measurement."""
        if self.unbiased is not None:
            return False
        if self.asked is None:
            return self.strategy.energy_weight > 0
        return self.asked.hyperparameters == "learned"

    def expected_error(self) -> float:
        """Expected root-mean-square error at the targets, averaged over the models planned for."""
        return self._error

    @cached_property
    def _error(self) -> float:
        return self.starting_error if self.unbiased else accuracy.expected_error(self)

    @cached_property
    def starting_error(self) -> float:
        """The same under the starting hyperparameters alone, at all targets."""
        if self.unbiased is not None:
            return self.weighted(np.sqrt(self.unbiased.variance + self.noise_std**2))
        return self.weighted(np.sqrt(accuracy.variances_under(self, self.start, self.targets)))

    def error_range(self) -> tuple[float, float]:
        """The ends of 90% of the errors over the prior of the hyperparameters."""
        kept = vars(self)
        if "_range" not in kept:
            both = self._error, self._error
            kept["_range"] = accuracy.error_range(self) if self.learns else both
        low, high = kept["_range"]
        return low, high

    def weighted(self, stds: Array) -> float:
        """The root mean square over the targets of a value at each of them."""
        return float(np.sqrt(self.target_weights / self.target_weights.sum() @ stds**2))

    def measuring(self, strategy: Any, epsilon: float | None = None) -> Part:
        """The same part with another measurement, or at another epsilon."""
        epsilon = self.epsilon if epsilon is None else epsilon
        noise = noise_of(strategy, epsilon, self.delta)
        functionals = self.kind.functionals(self, strategy, noise, self.start)
        new = {"strategy": strategy, "noise": noise, "functionals": functionals, "rival": None}
        return replace(self, epsilon=epsilon, **new)

    @property
    def is_quick(self) -> bool:
        """Whether finding the gap takes no noticeable time."""
        free = self.earlier is not None or self.residuals is not None
        return "gap" in self.__dict__ or self.kind.is_quick or free

    @cached_property
    def gap(self) -> float:
        """Certified relative distance from the least possible error (nats for ``"logdet"``).

        The least possible with Gaussian noise, over the same bins where inputs are private; 0 where
        Laplace noise gets below it, infinite where nothing is certified or compared.
        """
        if self.kind.design_gap is not None:
            return self.kind.design_gap
        uncompared = (self.noise.pure and self.rival is None) or self.earlier is not None
        uncompared = uncompared or self.residuals is not None
        return float("inf") if uncompared else max(0.0, self.certificate.gap)

    @cached_property
    def certificate(self) -> Certificate:
        """The error of the measurement, and the floor below which no Gaussian one can go."""
        if self.noise.pure and self.rival is None:
            raise ValueError(
                f"a plan with {self.noise.describe()} alone has no certificate of its error."
            )
        gaussian = self if not self.noise.pure else self.measuring(self.rival)
        return self.kind.certificate(self, gaussian)

    def together(self, model: Hyperparameters) -> tuple[Functionals, Measurement]:
        """All that will have been measured if this model holds, new values zero: the variances that
        they leave are exact."""
        whole = self.as_one
        measured = whole.kind.functionals(whole, whole.strategy, whole.noise, model)
        known = np.zeros(0) if self.earlier is None else self.earlier.values
        values = np.append(known, np.zeros(len(measured.weights) - len(known)))
        return measured, Measurement(values, whole.measured_noise_std, None, 0.0)

    @cached_property
    def as_one(self) -> Part:
        """The part of one measurement that tells as much as this and the earlier ones together, or as both
        stages; Laplace noise counts by its std."""
        if self.residuals is not None:
            scatters = scatters_of(self.priors[0], self.half_width)
            left = self.residuals.noise_of_both(self.noise, self.noises, scatters)
            return replace(self, noise=self.noise.with_size(self.noise.size, left), residuals=None)
        return self if self.earlier is None else self.earlier.as_one(self)


def table_rows(part: Part) -> int:
    """How many rows the table has: of points, not of the bins that they are counted in."""
    return part.rows if part.asked is None else part.asked.table_rows(part.rows)


def unit_of(part: Part) -> Unit:
    """Who is protected: neighbouring datasets differ in one of them."""
    protect = "records" if part.kind.private_inputs else "outputs"
    protect = protect if part.asked is None else part.asked.protect
    return unit_for(protect, several_rows=part.strategy.people_count is not None)


def hash_part(part: Part, **known: object) -> str:
    """SHA-256 of a part and of what is ``known`` besides; the noise follows from the rest."""
    left_out = {"noise", "asked"}
    left_out |= {name for name in ("earlier", "residuals") if getattr(part, name) is None}
    own = {f.name: getattr(part, f.name) for f in fields(part) if f.name not in left_out}
    return fingerprint(part.strategy.law, own | known)


def check_part(part: Part, asked: Parameters, names: tuple[str, ...] | None) -> None:
    """Refuse what does not belong together, as only a file can have it.

    Parameters
    ----------
    part : Part
        The part of a plan.
    asked : Parameters
        What was declared of its outcome.
    names : tuple of str, optional
        The names of the input columns.

    """
    columns, targets, strategy = part.functionals.nodes.shape[1], len(part.targets), part.strategy
    if not part.priors:
        raise ValueError(NOT_TOGETHER)
    weights = part.target_weights
    check_bounds("bounds", part.y_bounds)
    asked.check_for(columns)
    for prior in part.priors:
        prior.check_for(columns)
    public = not unit_of(part).private_inputs
    sums = strategy.size - int(strategy.energy_weight > 0)
    fits = (
        (part.epsilon, part.delta, part.y_bounds) == (asked.epsilon, asked.delta, asked.y_bounds)
        and (strategy.change, part.kind.private_inputs) == (asked.change, asked.private_inputs)
        and strategy.private_inputs != public
        and (not public or len(part.functionals.nodes) <= asked.most_nodes)
        and len(strategy.matrix) == len(part.functionals.weights)
        and (not public or sums == asked.outcome().functions * len(strategy.matrix))
        and (strategy.energy_weight == 0.0 or asked.outcome().column)  # points have no squares
        and (names is None or len(names) == asked.inputs_of(columns))
        and part.targets.shape == (targets, columns)
        and weights.shape == (targets,)
        and weights.min() >= 0.0 < weights.sum()
        and part.kind.fits(replace(part, asked=asked))
        and (part.residuals is None or (public and _has_scatter(part, asked)))
        and (part.residuals is None or part.residuals.fits(len(strategy.matrix)))
    )
    if not fits:
        raise ValueError(NOT_TOGETHER)


def _has_scatter(part: Part, asked: Parameters) -> bool:
    """Whether outputs are numbers that scatter about a posterior, from one bound to the other."""
    plain = asked.outcome().has_squares and part.unbiased is None
    return plain and part.strategy.change >= WHOLE
