"""Plan: what a budget buys, before any private value is read."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Annotated, Any, ClassVar, Self

import numpy as np

from privgp.gp.functionals import Functionals
from privgp.gp.inference.posterior import mean_map
from privgp.gp.measurement import Measurement
from privgp.gp.priors import Hyperparameters, Prior
from privgp.plan import accuracy
from privgp.plan.choice import AnyStrategy
from privgp.plan.counts.exposures import Exposures
from privgp.plan.counts.rates import Rates
from privgp.plan.designs.earlier import Earlier, EarlierRecords
from privgp.plan.designs.noise_aware import Certificate
from privgp.plan.designs.residuals import Residuals, scatters_of
from privgp.plan.features.kind import FeatureRecords
from privgp.plan.fingerprint import fingerprint
from privgp.plan.inputs.arguments import check_bounds
from privgp.plan.inputs.rows import STREAMED
from privgp.plan.kinds import Outputs, Records, Unbiased
from privgp.plan.parameters import OBJECTIVES, RECONSTRUCTIONS, MadeFor
from privgp.plan.strategy import NOT_TOGETHER, noise_of
from privgp.privacy.guarantee import exactly
from privgp.privacy.noise import SAME_NOISE, Noise
from privgp.privacy.sensitivity import WHOLE
from privgp.types import Array, Integers

NOTICE = (
    "The file contains inputs: coordinates of the rows of X, or of inducing inputs, which count as "
    "public. Publish it only if no column of X is private, nor computed from a private one."
)


def check_first(plan: Any) -> None:
    """Refuse to save a plan that cannot be carried out by itself."""
    if plan.earlier is not None:
        raise ValueError("a plan that builds on an earlier release cannot be saved.")


@dataclass(frozen=True)
class Plan:
    """A measurement that is ready to be made, with the accuracy it will have.

    Made by ``PrivateGPRegressor.plan(X)``. Everything in it is public.

    ``kind``: what only plans for public inputs, or only those for private ones, have and do
    ``target_weights``: (targets,), how much each target counts
    ``functionals``: what is measured of f, with ``noise``, under ``priors`` of the hyperparameters
    ``rival``: the best measurement with the other noise distribution, where both were compared
    ``fingerprint``: of what it was made for, which ``fit`` compares; empty if not made by a model
    ``made_for``: what it was asked for; None if not made by a model
    ``earlier``: measurements that it builds on; errors are then those of all together
    ``residuals``: how the budget is divided, where a second stage measures residuals; ``noise`` is then
    what one stage with the whole budget would have
    """

    _own_axes: ClassVar[bool] = True
    epsilon: float
    delta: float
    y_bounds: tuple[float, float]
    objective: Annotated[str, OBJECTIVES]
    reconstruct: Annotated[str, RECONSTRUCTIONS]
    targets: Array = field(repr=False)
    target_weights: Array = field(repr=False)
    strategy: AnyStrategy = field(repr=False)
    functionals: Functionals = field(repr=False)
    noise: Noise = field(repr=False)
    priors: tuple[Prior, ...] = field(repr=False)
    kind: Outputs | Rates | Records | FeatureRecords = field(repr=False)
    rival: AnyStrategy | None = field(repr=False, default=None)
    fingerprint: str = field(repr=False, default="")
    made_for: MadeFor | None = field(repr=False, default=None)
    earlier: Earlier | EarlierRecords | None = field(
        repr=False, default=None, metadata={"later": True}
    )
    residuals: Residuals | None = field(repr=False, default=None, metadata={"later": True})

    @property
    def inputs(self) -> Any:
        """The distinct or inducing inputs; None where inputs are private."""
        return self.kind.inputs

    @property
    def x_bounds(self) -> tuple[tuple[float, float], ...] | None:
        """The declared domain of private inputs; None where inputs are public."""
        return self.kind.x_bounds

    @property
    def chosen(self) -> Integers | None:
        """The inputs that carry the function; None where inputs are private."""
        return self.kind.chosen

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
    def design_gap(self) -> float | None:
        """The gap that a linear design was certified with; None for others."""
        return self.kind.design_gap

    @property
    def rows(self) -> int:
        return self.strategy.rows

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the plan, for the certificate of its release; the noise follows from the rest."""
        parts = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "noise"}
        for later in ("earlier", "residuals"):
            if parts[later] is None:
                parts.pop(later)
        return fingerprint(self.strategy.law, parts)

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write a .plan file, for approval and ``privgp.load_plan``; warns if it holds inputs."""
        from privgp.plan.file import save_plan

        check_first(self)
        save_plan(self, path, overwrite=overwrite)
        if self.made_for is not None and self.made_for.parameters.protect == "outputs":
            warnings.warn(NOTICE, UserWarning, stacklevel=2)

    def with_noise_for(self, epsilon: float, delta: float) -> Self:
        """The plan with the noise that its strategy needs; refused if it holds other noise."""
        self.strategy.check()
        needed, held = noise_of(self.strategy, epsilon, delta), self.noise
        same = (held.law, held.size) == (needed.law, needed.size)
        if not same or not abs(held.std - needed.std) <= SAME_NOISE * needed.std:
            raise ValueError("plan holds other noise than its budget asks for. Nothing was spent.")
        return self if held == needed else replace(self, noise=needed)

    def check_parts(self) -> None:
        """Refuse parts that do not belong together, as only a file can have them."""
        made, columns, targets = self.made_for, self.functionals.nodes.shape[1], len(self.targets)
        if made is None or not self.priors:
            raise ValueError(NOT_TOGETHER)
        asked, weights = made.parameters, self.target_weights
        check_bounds("bounds", self.y_bounds)
        asked.check_for(columns)
        for prior in self.priors:
            prior.check_for(columns)
        public, counted = asked.protect == "outputs", self.strategy.distinct_inputs is not None
        streams = asked.inducing is not None or asked.most_rows is not None
        streams = streams or self.rows > STREAMED  # where nobody has to ask
        promised = self.epsilon, self.delta, self.y_bounds
        classes = len(asked.labels() or ())
        functions = classes if classes > 2 else 1
        sums = self.strategy.size - int(self.strategy.energy_weight > 0)
        fits = (
            promised == (asked.epsilon, asked.delta, asked.y_bounds)
            and self.strategy.change == asked.change
            and (self.x_bounds is None) == public
            and (counted or not public or streams)
            and (not counted or self._nodes_asked_for(asked.inducing))
            and (public or not counted)
            and len(self.strategy.matrix) == len(self.functionals.weights)
            and (not public or sums == functions * len(self.strategy.matrix))
            and (made.names is None or len(made.names) == made.parameters.inputs_of(columns))
            and self.targets.shape == (targets, columns)
            and weights.shape == (targets,)
            and weights.min() >= 0.0 < weights.sum()
            and self.kind.fits(self)
            and (self.residuals is None or (public and counted and self._has_scatter))
        )
        if not fits:
            raise ValueError(NOT_TOGETHER)

    def _nodes_asked_for(self, inducing: int | Array | None) -> bool:
        """Whether no more inputs carry the function than were asked for."""
        if inducing is None:
            return True
        most = len(inducing) if isinstance(inducing, np.ndarray) else inducing
        return len(self.functionals.nodes) <= most

    @property
    def _has_scatter(self) -> bool:
        """Whether outputs are numbers that scatter about a posterior, from one bound to the other."""
        plain = self.unit is None and self.unbiased is None and self.strategy.change >= WHOLE
        asked = None if self.made_for is None else self.made_for.parameters
        return plain and (asked is None or asked.labels() is None)

    @property
    def noises(self) -> tuple[Noise, ...]:
        """The noise of every measurement that will be made: of one, or of two stages."""
        if self.residuals is None:
            return (self.noise,)
        return self.residuals.noises(self.strategy, self.epsilon, self.delta)

    @property
    def start(self) -> Hyperparameters:
        """The starting hyperparameters, on the inputs as they are."""
        return self.priors[0].start

    @property
    def is_pure(self) -> bool:
        """Whether the release will be epsilon-private with delta = 0, whatever delta is offered."""
        return self.noise.pure

    @property
    def promised_delta(self) -> float:
        """The delta of the release: what was offered, or 0 where the noise needs none."""
        return 0.0 if self.is_pure else self.delta

    @property
    def budget(self) -> str:
        """What will be spent, in words."""
        pure = f" ({self.noise.describe()} needs none)" if self.is_pure else ""
        return f"epsilon = {self.epsilon:g}, delta = {self.promised_delta:g}{pure}"

    @property
    def max_change(self) -> float | None:
        """How much one person changes one output; None: from one bound to the other."""
        if self.strategy.change >= WHOLE:
            return None
        made = self.made_for
        asked = None if made is None else made.parameters.max_change
        return self.strategy.change * self.half_width if asked is None else asked

    @property
    def half_width(self) -> float:
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
        if self.made_for is None:
            return self.strategy.energy_weight > 0
        return self.made_for.parameters.hyperparameters == "learned"

    def expected_std(self, X_new: Array, prior_range: float | None = None) -> Array:
        """Std of f about the release, with privacy noise, over the models that were planned for.

        Those are several lengthscales where hyperparameters are learned, else the given model.
        ``prior_range=0.9``: two rows, the ends of this share of the hyperparameters' prior.
        """
        X_new, columns = np.asarray(X_new, dtype=float), self.functionals.nodes.shape[1]
        X_new = X_new[:, None] if X_new.ndim == 1 and columns == 1 else X_new
        if X_new.ndim != 2 or X_new.shape[1] != columns:
            raise ValueError(f"X_new must have {columns} columns.")
        if prior_range is None:
            return np.sqrt(accuracy.average_variances(self, X_new))
        if not 0 < prior_range < 1:
            raise ValueError(f"prior_range must lie between 0 and 1, got {prior_range}.")
        tail = 0.5 * (1.0 - prior_range)
        stds = np.sqrt(accuracy.variances_by_draw(self, X_new))
        return np.asarray(np.quantile(stds, [tail, 1.0 - tail], axis=0))

    def expected_error(self, epsilon: float | None = None) -> float:
        """Expected root-mean-square error at the targets, averaged over the models planned for.

        At another ``epsilon``: of a plan made again for it, see ``at``.
        """
        if epsilon is None:
            return self._rms_error
        if epsilon not in self._errors:
            self._errors[epsilon] = self.at(epsilon)._rms_error
        return self._errors[epsilon]

    @property
    def error_unit(self) -> str:
        """What an error is counted in, in words."""
        if self.unit is not None:
            return "relative to the rate"
        made = self.made_for
        is_label = made is not None and made.parameters.labels() is not None
        return "as a probability" if is_label else "in units of the output"

    @cached_property
    def _rms_error(self) -> float:
        return self._error_of_papers if self.unbiased else accuracy.expected_error(self)

    @property
    def _error_of_papers(self) -> float:
        assert self.unbiased is not None
        return self.weighted(np.sqrt(self.unbiased.variance + self.noise_std**2))

    @cached_property
    def _errors(self) -> dict[float, float]:
        """The expected errors that were asked for, by epsilon."""
        return {self.epsilon: self._rms_error}

    @cached_property
    def starting_error(self) -> float:
        """The same under the starting hyperparameters alone, at all targets."""
        if self.unbiased is not None:
            return self._error_of_papers
        return self.weighted(np.sqrt(accuracy.variances_under(self, self.start, self.targets)))

    def error_range(self) -> tuple[float, float]:
        """The ends of 90% of the errors over the prior of the hyperparameters.

        Lengthscales, variances and noise vary as the learning allows, the function within the bounds.
        Where hyperparameters are not learned, both are the expected error.
        """
        return self._error_range

    @cached_property
    def _error_range(self) -> tuple[float, float]:
        if not self.learns:
            return self._rms_error, self._rms_error
        return accuracy.error_range(self)

    def error_without_privacy(self) -> float:
        """The expected error of a prediction from the outputs themselves."""
        if self.unbiased is not None:
            return self.weighted(np.sqrt(self.unbiased.variance))
        return accuracy.error_without_privacy(self)

    @property
    def can_plan_again(self) -> bool:
        """Whether the plan holds what it was made for, so that ``at`` can plan again."""
        exact = self.x_bounds is not None or self.strategy.distinct_inputs is not None
        return exact and self.made_for is not None and self.earlier is None

    def at(self, epsilon: float) -> Plan:
        """The plan for the same inputs, groups and parameters at another epsilon.

        Planned again, its noise distribution may differ. With inducing inputs, whose plan does not
        hold the rows: the same measurement with the noise it would need.
        """
        if not self.can_plan_again:
            return self.measuring(self.strategy, epsilon)
        from privgp.plan.replan import plan_again

        return plan_again(self, epsilon)

    def weighted(self, stds: Array) -> float:
        """The root mean square over the targets of a value at each of them."""
        return float(np.sqrt(self.target_weights / self.target_weights.sum() @ stds**2))

    def measuring(self, strategy: Any, epsilon: float | None = None) -> Plan:
        """The same plan with another measurement, or at another epsilon."""
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
        if self.design_gap is not None:
            return self.design_gap
        uncompared = (self.is_pure and self.rival is None) or self.earlier is not None
        uncompared = uncompared or self.residuals is not None
        return float("inf") if uncompared else max(0.0, self.certificate.gap)

    @cached_property
    def certificate(self) -> Certificate:
        """The error of the measurement, and the floor below which no Gaussian one can go."""
        if self.is_pure and self.rival is None:
            raise ValueError(
                f"a plan with {self.noise.describe()} alone has no certificate of its error."
            )
        gaussian = self if not self.is_pure else self.measuring(self.rival)
        return self.kind.certificate(self, gaussian)

    def describe(self) -> str:
        """A few sentences for people."""
        unknown = ""
        if self.learns:
            least, most = self.error_range()
            unknown = (
                f"It is {least:.4g} to {most:.4g} over 90% of the prior of the hyperparameters: how "
                "rough the function is, and whether it changes abruptly, is not known before "
                "measuring.\n"
            )
        return (
            f"{self.summary()}\n{unknown}Nothing has been spent: a plan needs {self.kind.unneeded}."
        )

    def summary(self) -> str:
        """What remains true after the release."""
        return self._summary

    @cached_property
    def _summary(self) -> str:
        low, high = self.y_bounds
        declared = f"outputs in [{low:g}, {high:g}]"
        if self.made_for is not None:
            declared = self.made_for.parameters.describe_declaration()
        changed = ""
        if self.max_change is not None:
            changed = f"; one person changes one output by at most {exactly(self.max_change)}"
        averaged = "averaged over the lengthscales it was planned for"
        if not self.learns:
            averaged = "under the given hyperparameters"
        return (
            f"Budget: {self.budget}; {declared}{changed}{self.kind.domain(self)}.\n"
            f"{self.kind.describe_measurement(self)}.\n{self._describe_stages()}"
            f"Privacy noise at the targets: {self.weighted(self.noise_std):.4g} (root mean square).\n"
            f"Expected error of the released function there{self.kind.condition}: "
            f"{self.expected_error():.4g}, {averaged}."
        )

    def _describe_stages(self) -> str:
        """What each of two stages measures and spends, in words; nothing where there is one."""
        if self.residuals is None:
            return ""
        given = self.residuals.budgets(self.strategy.law, self.epsilon, self.delta)
        first, second = (f"epsilon = {epsilon:.4g}" for epsilon, _ in given)
        return (
            f"Two stages: {first} measures these numbers; {second} measures the same sums of what "
            f"outputs are above or below the curve learned from them, clipped to {self.residuals.reach:g} "
            "learned stds. The expected error is an average over how much outputs scatter.\n"
        )

    def plot(self, ax: Any = None) -> Any:
        """The error to expect against epsilon, as a figure."""
        from privgp.plan.picture import plot_plan

        return plot_plan(self, ax)

    def together(self, model: Hyperparameters) -> tuple[Functionals, Measurement]:
        """All that will have been measured if this model holds, new values zero: the variances that
        they leave are exact."""
        whole = self.as_one
        measured = whole.kind.functionals(whole, whole.strategy, whole.noise, model)
        known = np.zeros(0) if self.earlier is None else self.earlier.values
        values = np.append(known, np.zeros(len(measured.weights) - len(known)))
        return measured, Measurement(values, whole.measured_noise_std, None, 0.0)

    @cached_property
    def as_one(self) -> Plan:
        """The plan of one measurement that tells as much as this and the earlier ones together, or as both
        stages; Laplace noise counts by its std."""
        if self.residuals is not None:
            scatters = scatters_of(self.priors[0], self.half_width)
            left = self.residuals.noise_left(self.noise, self.noises, scatters)
            return replace(self, noise=self.noise.with_size(self.noise.size, left), residuals=None)
        return self if self.earlier is None else self.earlier.as_one(self)
