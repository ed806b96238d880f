"""What is planned where outputs are counts: the logarithm of their rate, as a Gaussian process."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.gaussian_process.kernels import ConstantKernel, Kernel, Matern

from privgp.gp.input_maps import blend_ranks, spreads
from privgp.gp.kernels.evaluate import signal_and_noise
from privgp.gp.measurement import Measurement
from privgp.gp.priors import Hyperparameters, Prior, prior_about
from privgp.plan.kinds import Outputs
from privgp.plan.outcomes.exposures import Exposures
from privgp.types import Array, Positive

if TYPE_CHECKING:
    from privgp.plan.build import Question
    from privgp.plan.inputs.inputs import Inputs
    from privgp.plan.part import Part

# Prior stds of the logarithm of a rate: about its level, and of that about the unit rate.
SIGNAL_STD = 0.5
LEVEL_STD = 1.5


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
        strategy: Any = plan.strategy
        return Exposures(self.rate, strategy.expected)

    def read_measurement(self, plan: Part, measurement: Measurement) -> Measurement:
        """The measured sums of counts themselves: the middle of the bounds is added back."""
        strategy: Any = plan.strategy
        middle = 0.5 * plan.y_bounds[0] + 0.5 * plan.y_bounds[1]
        rows = strategy.per_input(strategy.row_weights)
        return replace(measurement, values=measurement.values + middle * (strategy.matrix @ rows))


def default_kernel(X: Array, inputs: Inputs | None = None) -> Kernel:
    """Matern 5/2 on the logarithm of the rate, plus its unknown level."""
    scales = spreads(X) * np.sqrt(X.shape[1]) if inputs is None else inputs.scales(X)
    lengthscale = scales if len(scales) > 1 else float(scales[0])
    level = ConstantKernel(LEVEL_STD**2, "fixed")
    return ConstantKernel(SIGNAL_STD**2) * Matern(lengthscale, nu=2.5) + level


def rate_priors(
    X: Array,
    question: Question,
    shares: tuple[float, ...],
    plain: tuple[int, ...] = (),
    widths: tuple[int, ...] = (),
) -> tuple[Prior, ...]:
    """One prior per input map. The noise variance is that of a count over its mean: 1 by default.

    ``plain``: inputs that are not ranked; ``widths``: of inputs that share a lengthscale.
    """
    given, inputs = question.kernel, question.inputs
    if given is None:
        kernel = default_kernel(X, inputs)
    else:
        kernel = given if inputs is None else inputs.kernel(given)
    signal, noise = signal_and_noise(kernel, question.noise_variance, X.shape[1], default=1.0)
    models = (Hyperparameters(signal, noise, blend_ranks(X, share, plain)) for share in shares)
    return tuple(prior_about(model, noise_free=False, widths=widths) for model in models)
