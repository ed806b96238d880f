"""Plans for public inputs: how near the best they are, and how they are told."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np

from privgp.gp.functionals import Functionals
from privgp.plan.designs.hypotheses import design_models, exact_certificate, hypotheses_for
from privgp.plan.designs.noise_aware import Certificate, certify, gain, unexplained
from privgp.types import Array, Integers, Within

if TYPE_CHECKING:
    from privgp.plan.plan import Plan

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

    ``inputs``: distinct ones, or inducing inputs; ``chosen``: those that carry the function;
    ``unbiased``, ``design_gap``: of linear designs.
    """

    x_bounds: ClassVar[None] = None
    default_kernel: ClassVar[bool] = False
    unread: ClassVar[str] = "no output"
    condition: ClassVar[str] = ""
    inputs: Array = field(repr=False)
    chosen: Integers = field(repr=False)
    unbiased: Unbiased | None = field(repr=False, default=None)
    design_gap: Annotated[float, Within(infinite=True)] | None = None

    @property
    def is_quick(self) -> bool:
        return len(self.inputs) <= QUICK_INPUTS

    def check_in(self, plan: Plan) -> None:
        """Refuse parts that do not belong together, as only a file can have them."""
        inputs, targets, made = self.inputs.shape, (len(plan.targets),), self.unbiased
        fits = inputs == (plan.strategy.matrix.shape[1], plan.targets.shape[1])
        fits = fits and self.chosen.ndim == 1 and bool(np.isin(self.chosen, range(inputs[0])).all())
        if made is not None:
            shape = (*targets, len(plan.functionals.weights))
            fits = fits and made.reconstruction.shape == shape
            fits = fits and made.variance.shape == targets and bool(np.all(made.variance >= 0.0))
        if not fits or (made is not None) != (plan.reconstruct == "unbiased"):
            raise ValueError("the parts of the plan are not of one length.")

    def functionals(self, plan: Plan, strategy: Any, noise: Any) -> Functionals:
        """What is measured of f does not depend on the noise."""
        return plan.functionals

    def certificate(self, plan: Plan, gaussian: Plan) -> Certificate:
        """The posterior error, and the floor below which no Gaussian measurement can go."""
        if plan.strategy.distinct_inputs is None:
            raise ValueError("a plan with inducing inputs has no certificate of its error.")
        strategy: Any = gaussian.strategy
        noise, B = gaussian.measured_noise_std**2, strategy.matrix
        # Whoever has several rows can at least change one of them, so what holds for strategies that
        # protect single rows holds for those that protect people.
        rows = replace(strategy, people=None, row_weights=np.ones(strategy.rows))
        error, slope = exact_certificate(*_whole(gaussian, rows))
        reached = error
        if plan is not gaussian or np.any(strategy.row_weights != 1.0):
            reached, _ = exact_certificate(*_whole(plan, plan.strategy))
        if slope is not None:
            return Certificate(reached, certify(B, error, slope, noise).floor)
        models, goal = design_models(plan.priors), (plan.targets, plan.target_weights)
        low_rank = hypotheses_for(models, self.inputs, self.chosen, rows, *goal)
        low_error = sum(h.weight * h.total for h in low_rank) - gain(B, low_rank, noise)[0]
        left = unexplained(B, low_rank, noise)
        return Certificate(reached, certify(B, low_error, left, noise, is_root=True).floor)

    def domain(self) -> str:
        return ""

    def measured(self, plan: Plan) -> str:
        """How much is measured of what, and how near the best that is."""
        strategy = plan.strategy
        people = ""
        if strategy.people is not None:
            people = f" of {int(strategy.people.max()) + 1} people"
        exact = strategy.distinct_inputs is not None
        inputs = f"{'at' if exact else 'through'} {len(self.inputs)} "
        inputs += f"{'distinct' if exact else 'inducing'} inputs"
        return (
            f"{strategy.rows} rows{people} {inputs}; {strategy.size} numbers are measured "
            f"(objective {plan.objective}){_certified(plan)}"
        )


def _whole(plan: Plan, strategy: Any) -> tuple[Any, ...]:
    """What the error of a measurement is computed from."""
    noise = plan.measured_noise_std**2
    models, inputs = design_models(plan.priors), plan.inputs
    return models, inputs, strategy, plan.targets, plan.target_weights, noise


def _certified(plan: Plan) -> str:
    """How near the best the measurement is, unless finding out would take long."""
    if not plan.is_quick:
        return ""
    if not plan.gap < 0.5:  # a floor for single rows says little about people with many
        return ""
    if plan.rival is not None and plan.certificate.gap < 0:
        share = -100 * plan.certificate.gap
        return (
            f" with {plan.noise.describe()}, an error {share:.2g}% below the least that Gaussian noise "
            "allows"
        )
    if plan.objective == "logdet":
        return f", certified within {plan.gap:.3g} nats of the best"
    return f", certified within {100 * plan.gap:.2g}% of the least possible error"
