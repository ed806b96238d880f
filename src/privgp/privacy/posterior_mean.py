"""How far a posterior moves when one record (x, y) is replaced by another.

Units: the kernel is divided by its variance, so that k(x, x) = 1; ``ridge`` is r^2, noise variance
over kernel variance; outputs lie within 1 of their centre. The sensitivity is the norm of the
change of the posterior mean in the Hilbert space of the posterior covariance of the records that
stay, never less than that of the prior. Upper bounds, rounded up. Proofs: docs/proofs/paths.md."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from sklearn.gaussian_process.kernels import Kernel

from privgp.gp.kernels.evaluate import variance
from privgp.gp.kernels.proved import exponential_rate, least_value
from privgp.types import Array

LEAST_RIDGE, LARGEST_RIDGE = 1e-9, 1e12
MOST_RECORDS = 10**12
UP = 1.0 + 1e-12
ROUNDED = 1e-15
ROOT_TWO = math.sqrt(2.0) * (1.0 + 1e-15)
DOWN = 1.0 - 1e-12  # more than the kernel's variance is rounded by

SENSITIVITIES = ("auto", "paper")
GENERIC, EXPONENTIAL, CONSTANT, DIAGONAL = "generic", "exponential", "constant", "diagonal"
FORMS = (GENERIC, EXPONENTIAL, CONSTANT, DIAGONAL)


@dataclass(frozen=True)
class PosteriorShape:
    """The public facts about a posterior that its sensitivity depends on.

    Attributes
    ----------
    ridge : r^2, the noise variance over the kernel's variance
    records : n, their number
    least : a lower bound, not negative, of k(x, x') over the domain, in units of the variance
    form : "generic", "exponential" (one input, k = exp(-|x - x'| / l)), "constant" or "diagonal"
        (0 between different inputs, at most 1 at equal ones)

    """

    ridge: float
    records: int
    least: float = 0.0
    form: str = GENERIC

    def __post_init__(self) -> None:
        if not LEAST_RIDGE <= self.ridge <= LARGEST_RIDGE:
            raise ValueError(
                "the noise variance over the kernel's variance must lie between "
                f"{LEAST_RIDGE:g} and {LARGEST_RIDGE:g}, got {self.ridge:g}."
            )
        if not 1 <= self.records <= MOST_RECORDS:
            raise ValueError(f"the number of records must be at least 1, got {self.records}.")
        if not 0.0 <= self.least <= 1.0:
            raise ValueError(f"least must lie between 0 and 1, got {self.least}.")
        if self.form not in FORMS:
            raise ValueError(f"form must be one of {FORMS}, got {self.form!r}.")

    @property
    def largest_variance(self) -> float:
        """V: no point has a larger posterior variance given any n - 1 records:
        ``1 - k^2 (n - 1) / (n - 1 + r^2)``, written without cancellation."""
        k = self.least
        return min(1.0, ((1.0 - k) * (1.0 + k) + k * k * self.least_variance) * UP + ROUNDED)

    @property
    def least_variance(self) -> float:
        """No point has a smaller one: all n - 1 records stand at it."""
        return self.ridge / (self.records - 1 + self.ridge)

    @property
    def influence(self) -> float:
        """V / (V + r^2): the largest share of a record in the mean at its own input."""
        return self.largest_variance / (self.largest_variance + self.ridge)


@dataclass(frozen=True)
class MeanSensitivity:
    """A bound of how far one record moves a posterior mean, and the lemma that proves it.

    Attributes
    ----------
    value : in the norm of the kernel's Hilbert space, for outputs within 1 of their centre
    lemma : the name of the bound

    """

    value: float
    lemma: str


def posterior_shape(
    kernel: Kernel, noise_variance: float, widths: Array, records: int
) -> PosteriorShape:
    """The shape of the posterior of ``records`` records in a box.

    Parameters
    ----------
    kernel
        One whose error bounds are proved.
    noise_variance
        Variance of an output about the function, in the kernel's units.
    widths
        (inputs,), the sides of the declared domain.
    records
        How many.

    """
    scale = variance(kernel)
    rate = exponential_rate(kernel)
    form = GENERIC
    if rate is not None and (rate == 0.0 or len(widths) == 1):
        form = CONSTANT if rate == 0.0 else EXPONENTIAL
    least = 1.0 if form == CONSTANT else min(1.0, least_value(kernel, widths) / scale * DOWN)
    return PosteriorShape(noise_variance / scale, records, least, form)


def mean_sensitivity(shape: PosteriorShape, choice: str = "auto") -> MeanSensitivity:
    """A proved bound of how far one record moves the posterior mean.

    Parameters
    ----------
    shape
        The public facts about the posterior.
    choice
        "auto", the least bound that applies, or "paper", the paper's own lemma.

    """
    if choice not in SENSITIVITIES:
        raise ValueError(f"sensitivity must be one of {SENSITIVITIES}, got {choice!r}.")
    bounds = {
        (GENERIC, "paper"): [generic_paper],
        (GENERIC, "auto"): [generic_joint, generic_split],
        (EXPONENTIAL, "paper"): [exponential_paper],
        (EXPONENTIAL, "auto"): [generic_joint, generic_split, exponential],
        (DIAGONAL, "paper"): [diagonal_paper],
        (DIAGONAL, "auto"): [diagonal],
    }
    proved = bounds.get((shape.form, choice), [constant])
    return min((bound(shape) for bound in proved), key=lambda bound: bound.value)


def generic_paper(shape: PosteriorShape) -> MeanSensitivity:
    """Lemma B.1: ``2 (1 + sqrt(n - 1) / r) sqrt(Phi)``, for any kernel."""
    reach = 1.0 + math.sqrt((shape.records - 1) / shape.ridge)
    return MeanSensitivity(2.0 * reach * root_phi(shape, 0.0), "generic (lemma B.1)")


def generic_joint(shape: PosteriorShape) -> MeanSensitivity:
    """``2 sup_v sqrt(v) / (v + r^2) (1 + sqrt((n - 1) v (1 - v)) / r)``, for any kernel."""
    r2, factor = shape.ridge, math.sqrt((shape.records - 1) / shape.ridge)

    def rises(v: float) -> bool:
        slope = (r2 - v) * math.sqrt(1.0 - v)
        return slope + factor * math.sqrt(v) * (2.0 * r2 - 3.0 * r2 * v - v * v) > 0.0

    a, b = _around_top(rises, shape.least_variance, shape.largest_variance)
    # v sqrt(1 - v) / (v + r^2) is largest where v^2 + 3 r^2 v = 2 r^2
    v = _clip(4.0 * r2 / (3.0 * r2 + math.sqrt(9.0 * r2 * r2 + 8.0 * r2)), a, b)
    pull = v * math.sqrt(1.0 - v) / (v + r2)
    return MeanSensitivity(2.0 * (root_phi(shape, a, b) + factor * pull) * UP, "generic")


def generic_split(shape: PosteriorShape) -> MeanSensitivity:
    """``2 sqrt(Phi) + sqrt(n - 1) / r min(V / (V + r^2), 1 / (2 (v0 + r^2)))``, for any kernel.

    v0 is its least variance. This is less than the joint form if r is large.
    """
    factor = math.sqrt((shape.records - 1) / shape.ridge)
    pull = min(shape.influence, 0.5 / (shape.least_variance + shape.ridge))
    return MeanSensitivity((2.0 * root_phi(shape) + factor * pull) * UP, "generic, split")


def exponential_paper(shape: PosteriorShape) -> MeanSensitivity:
    """Lemma B.7: ``4 sqrt(Phi)``, for one input and the exponential kernel."""
    _needs(shape, EXPONENTIAL)
    return MeanSensitivity(4.0 * root_phi(shape, 0.0), "exponential (lemma B.7)")


def exponential(shape: PosteriorShape) -> MeanSensitivity:
    """``2 sup_v sqrt((1 + sqrt(1 - v^2)) v) / (v + r^2)``, at most 2 sqrt(2) sqrt(Phi)."""
    _needs(shape, EXPONENTIAL)
    r2 = shape.ridge

    def rises(v: float) -> bool:
        cosine = math.sqrt((1.0 - v) * (1.0 + v))
        return (r2 - v) * cosine * (1.0 + cosine) > v * v * (v + r2)

    a, b = _around_top(rises, shape.least_variance, shape.largest_variance)
    reach = math.sqrt(1.0 + math.sqrt((1.0 - a) * (1.0 + a)))
    return MeanSensitivity(2.0 * reach * root_phi(shape, a, b) * UP, "exponential, one input")


def constant(shape: PosteriorShape) -> MeanSensitivity:
    """Lemma B.4: ``2 sqrt(n - 1 + r^2) / (r (n + r^2))``, for a constant kernel; attained."""
    _needs(shape, CONSTANT)
    n, r2 = shape.records, shape.ridge
    return MeanSensitivity(2.0 * math.sqrt((n - 1 + r2) / r2) / (n + r2) * UP, "constant")


def diagonal_paper(shape: PosteriorShape) -> MeanSensitivity:
    """Lemma B.5: ``2 sqrt(2) sqrt(Phi)`` with V = 1, for a kernel that is 0 between inputs."""
    _needs(shape, DIAGONAL)
    return MeanSensitivity(2.0 * ROOT_TWO * root_phi(shape, 0.0, 1.0), "diagonal (lemma B.5)")


def diagonal(shape: PosteriorShape) -> MeanSensitivity:
    """``sup_v sqrt(v) / (v + r^2) max(2, sqrt(2) (2 - v))``, for a kernel that is 0 between inputs.

    The mean at an input is at most 1 - v there, so that no output is further from it than 2 - v. No
    kernel that sample paths accept is diagonal: all are continuous.
    """
    _needs(shape, DIAGONAL)
    r2 = shape.ridge
    a, b = _around_top(lambda v: 2.0 * (r2 - v) > v * (3.0 * r2 + v), 0.0, 1.0)
    apart = ROOT_TWO * math.sqrt(b) * (2.0 - a) / (a + r2)
    return MeanSensitivity(max(apart, 2.0 * root_phi(shape, 0.0, 1.0)) * UP, "diagonal")


def sensitivity_for_norm(shape: PosteriorShape, norm: float) -> MeanSensitivity:
    """Lemma B.8: ``2 |f| V / (V + r^2)`` if every output is f(x).

    Nobody can enforce that for all neighbours: it is never chosen automatically.

    Parameters
    ----------
    shape
        The public facts about the posterior.
    norm
        |f| in the Hilbert space of the kernel divided by its variance.

    """
    if not (math.isfinite(norm) and norm > 0):
        raise ValueError(f"the norm of the function must be positive and finite, got {norm}.")
    return MeanSensitivity(2.0 * norm * shape.influence * UP, "one function of known norm")


def root_phi(shape: PosteriorShape, low: float | None = None, high: float | None = None) -> float:
    """``sup sqrt(v) / (v + r^2)`` over the variances v that can occur; the paper starts from 0.

    Parameters
    ----------
    shape
        The public facts about the posterior.
    low, high
        Limits of v; the shape's least and largest variance by default.

    """
    low = shape.least_variance if low is None else low
    v = _clip(shape.ridge, low, shape.largest_variance if high is None else high)
    return math.sqrt(v) / (v + shape.ridge) * UP


def _around_top(rises: Callable[[float], bool], low: float, high: float) -> tuple[float, float]:
    """Neighbouring floats about the top of a function with one top; an end if it lies outside."""
    low = min(low, high)
    if rises(high):
        return high, high
    if not rises(low):
        return low, low
    while low < (middle := 0.5 * (low + high)) < high:
        low, high = (middle, high) if rises(middle) else (low, middle)
    return low, high


def _clip(value: float, low: float, high: float) -> float:
    return min(max(value, min(low, high)), high)


def _needs(shape: PosteriorShape, form: str) -> None:
    if shape.form != form:
        raise ValueError(f"this bound is for the {form} kernel only.")
